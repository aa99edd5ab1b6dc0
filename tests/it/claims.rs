//! Each sentence of the README is shown by a test that is named here, or says nothing that could be wrong.
//!
//! A sentence that is new, or says something else than it did, is told; so is a test that is gone. Add a line below, with the test that
//! fails where the sentence is wrong.

use crate::readme::project;

/// Words of a sentence, and the tests that show it: `FILE::TEST`, of `tests/it` where there is no `/` in it.
const CLAIMS: &[(&str, &[&str])] = &[
    (
        "structural edits that are located by syntax",
        &[
            "recipe::a_recipe_of_every_action_gives_the_golden_mails_and_files",
            "anchors::an_include_goes_to_the_others_at_the_head_of_the_file",
        ],
    ),
    (
        "in the bytes of `git format-patch`",
        &["oracle::git_format_patch_writes_the_same_bytes"],
    ),
    (
        "says which edit lost its anchor",
        &[
            "drift::a_renamed_function_is_refused_with_the_nearest_candidates",
            "drift::a_statement_that_is_gone_is_refused_with_what_looks_like_it",
        ],
    ),
    (
        "four patches, proven on the releases",
        &[
            "readme::the_series_is_proven_on_the_releases_that_the_readme_names",
            "oracle::on_every_kernel_there_are_a_cover_letter_and_four_patches",
        ],
    ),
    (
        "kernels that were changed in 415 ways",
        &["claims::the_number_of_changed_kernels_is_that_of_the_corpus"],
    ),
    (
        "builds reroll, fetches the newest kernel source",
        &[
            "bases::package_lists_are_asked_for_once_a_day_or_on_demand_and_the_default_base_never_again",
            "bases::debian_kernels_come_from_the_machine_s_own_mirror",
            "oracle::on_every_kernel_there_are_a_cover_letter_and_four_patches",
        ],
    ),
    (
        "regenerate the series on your own tree",
        &["oracle::every_kind_of_repository_gives_the_same_bytes"],
    ),
    (
        "leave the commits on a branch, too",
        &[
            "oracle::what_was_not_asked_for_is_not_touched",
            "failure::a_ref_that_is_elsewhere_is_refused_before_anything_is_written",
        ],
    ),
    (
        "send version 2",
        &[
            "mail::message_ids_are_stable_and_differ_where_mails_do",
            "output::git_takes_no_file_of_the_directory_but_the_mails",
        ],
    ),
    (
        "prove it before it is sent",
        &[
            "gate_kernel::the_shipped_series_passes_every_gate_on_the_newest_kernel",
            "gate::a_missing_compiler_is_an_error_with_its_package",
        ],
    ),
    (
        "prove patches that something else made",
        &[
            "gate::a_directory_of_patches_is_proven_like_the_branch_it_came_from",
            "foreign::a_finding_can_be_left_by_hand_with_a_reason",
        ],
    ),
    (
        "see whether a series applies elsewhere",
        &["gate::other_bases_are_told_clean_drifted_conflict_or_upstream"],
    ),
    (
        "compare two versions",
        &[
            "rangediff::the_command_prints_gits_bytes_and_says_by_its_exit_code_whether_versions_differ",
            "rangediff::recipes_are_regenerated_and_their_patches_known_by_name",
        ],
    ),
    (
        "see what would happen, and where",
        &["recipe::facts_and_explain_show_every_fact_and_edit_with_its_place"],
    ),
    (
        "see what the series rests on without editing it",
        &["rests::explain_lists_what_a_series_rests_on"],
    ),
    (
        "keep, beside the series, that it was proven",
        &["gate_kernel::the_shipped_series_passes_every_gate_on_the_newest_kernel"],
    ),
    (
        "see what was probed in the tree",
        &["recipe::facts_and_explain_show_every_fact_and_edit_with_its_place"],
    ),
    (
        "measure what it gains",
        &["bench::the_letters_show_what_was_recorded_each_up_to_its_patch"],
    ),
    (
        "have kernels at hand without a clone",
        &[
            "bases::every_form_of_a_source_gives_the_tree_that_git_makes_of_the_directory",
            "bases::debian_kernels_come_from_the_machine_s_own_mirror",
        ],
    ),
    (
        "give back the space",
        &["gate::what_was_not_used_for_long_is_pruned_and_made_again"],
    ),
    (
        "default to it and to `HEAD`",
        &["oracle::every_kind_of_repository_gives_the_same_bytes"],
    ),
    (
        "takes any git repository",
        &["oracle::every_kind_of_repository_gives_the_same_bytes"],
    ),
    (
        "Nothing in it is touched",
        &[
            "oracle::what_was_not_asked_for_is_not_touched",
            "place::a_partial_clone_fetches_what_is_near_and_not_the_whole_tree",
        ],
    ),
    (
        "writes all of a directory or nothing of it",
        &[
            "output::a_run_that_is_killed_at_any_step_is_finished_by_the_next",
            "failure::a_directory_with_edited_mails_is_kept_unless_forced",
            "output::what_reroll_wrote_itself_it_writes_over_until_somebody_edits_it",
        ],
    ),
    (
        "Links, devices, pipes and modes",
        &[
            "output::what_is_under_a_name_stays_what_it_is",
            "output::devices_and_pipes_are_written_through",
        ],
    ),
    (
        "the same commit ids on every machine",
        &[
            "oracle::a_second_run_writes_nothing_and_gives_the_same_ids",
            "oracle::no_configuration_or_environment_of_the_user_changes_a_byte",
            "configuration::no_key_at_any_place_changes_what_a_command_says",
        ],
    ),
    (
        "with which an error is JSON as well",
        &[
            "cli::an_error_is_json_where_json_is_asked_for",
            "claims::every_reading_command_has_json",
        ],
    ),
    (
        "Which recipe is used is said first",
        &["cli::a_recipe_of_the_directories_above_is_found_and_said"],
    ),
    (
        "print completions and man pages",
        &[
            "cli::completions_are_made_for_each_shell_and_parse",
            "cli::there_is_a_man_page_for_each_subcommand",
        ],
    ),
    (
        "Nothing is written.",
        &["drift::every_mismatch_is_told_at_once"],
    ),
    (
        "changes the recipe line that the message names",
        &["drift::a_statement_that_no_part_claims_is_refused_wherever_it_is"],
    ),
    (
        "needs nobody",
        &[
            "drift::a_new_case_of_the_reference_count_is_carried",
            "drift::a_changed_comment_is_carried",
            "drift::a_pageblock_set_up_in_the_page_function_is_carried_and_done_for_every_page",
        ],
    ),
    (
        "go on with the rest",
        &["bot_merged::by_hand_the_rest_is_numbered_anew_and_it_is_said_which_commits_have_what"],
    ),
    (
        "The rest is numbered anew",
        &["bot_merged::by_hand_the_rest_is_numbered_anew_and_it_is_said_which_commits_have_what"],
    ),
    (
        "What is left out is proven",
        &[
            "bot_merged::by_hand_anything_less_than_the_same_is_refused",
            "content::a_series_that_was_applied_is_there_with_and_without_a_history",
        ],
    ),
    (
        "No history is needed for that",
        &["bot_merged::by_hand_no_history_is_needed"],
    ),
    (
        "A base that has less is refused",
        &["content::a_statement_that_is_missing_or_another_one_is_named"],
    ),
    (
        "a base on which one of these definitions was never proven",
        &["rests::what_says_something_else_is_unproven_and_shown"],
    ),
    (
        "every mail goes through `git mailinfo` and `git am`",
        &[
            "gate::other_bases_are_told_clean_drifted_conflict_or_upstream",
            "cases::hostile_authors_survive_or_are_refused_before_anything_is_written",
        ],
    ),
    (
        "the conventions of kernel mail",
        &["gate::a_subject_of_76_characters_fails_the_mail_gate_only"],
    ),
    (
        "the base's own `checkpatch.pl --strict`",
        &[
            "gate::a_space_indented_line_fails_checkpatch_only",
            "gate_kernel::a_space_indented_line_turns_the_bases_own_checkpatch_red",
        ],
    ),
    (
        "the tree builds after every patch",
        &[
            "gate::a_patch_that_compiles_only_with_the_next_fails_alone",
            "gate::only_warnings_that_the_base_does_not_have_fail",
            "gate_kernel::faults_in_the_code_turn_the_builds_red_that_can_see_them",
        ],
    ),
    (
        "no new section mismatch",
        &["gate::a_new_section_mismatch_fails_the_section_gate_only"],
    ),
    (
        "leaves the same bytes in memory as the base's",
        &["gate_kernel::faults_in_what_is_written_turn_the_equality_gate_red"],
    ),
    (
        "a kernel booted in an emulator",
        &["gate_kernel::a_booted_kernel_writes_the_same_and_a_fault_turns_the_guest_gate_red"],
    ),
    (
        "calls a maintainer; it says whom",
        &[
            "gate::maintainers_come_as_headers",
            "gate_kernel::patches_of_the_real_kernel_answer_get_maintainer",
        ],
    ),
    (
        "Results are cached by what they depend on",
        &[
            "gate::a_clean_series_passes_and_a_second_run_knows_it_at_once",
            "configuration::a_script_of_the_kernel_sees_only_what_the_base_has",
        ],
    ),
    (
        "`--json` and `--junit FILE` are for machines",
        &["gate::junit_has_a_case_for_each_patch_gate_and_configuration"],
    ),
    (
        "A gate that could not run is an error",
        &[
            "gate::a_missing_compiler_is_an_error_with_its_package",
            "gate::sparse_that_kbuild_skips_in_silence_is_an_error",
        ],
    ),
    (
        "it speaks only of what changed",
        &[
            "bot::bases_come_one_after_another_and_each_is_judged",
            "bot_bases::five_real_bases_come_one_after_another_and_a_second_run_writes_nothing",
        ],
    ),
    (
        "A base that is unproven it proves by itself",
        &[
            "bot_proof::a_harmless_change_of_what_a_series_rests_on_is_proven_and_a_harmful_one_refused",
            "bot_proof::what_cannot_be_proven_needs_a_person_and_never_goes_out",
        ],
    ),
    (
        "Results are on `refs/heads/reroll/SERIES/BASE`",
        &["bot::bases_come_one_after_another_and_each_is_judged"],
    ),
    (
        "A branch that somebody else moved",
        &[
            "bot::a_moved_branch_is_followed_and_an_edited_result_is_left_alone",
            "bot_refs::a_branch_that_any_work_tree_uses_is_left_alone",
            "bot_refs::what_is_overwritten_on_the_push_remote_is_kept_there",
        ],
    ),
    (
        "`bot forget BASE` is for a tag that is gone",
        &["bot_refs::a_base_is_forgotten_here_and_on_the_push_remote"],
    ),
    (
        "makes a page of it, for any browser and without a network",
        &[
            "report::the_page_has_every_cell_once_and_every_link_leads_somewhere",
            "report_browser::the_page_has_no_fault_at_any_width_and_in_any_light",
            "report::what_was_measured_is_drawn_over_the_bases_in_their_order",
        ],
    ),
    (
        "pipelines for GitLab and GitHub",
        &[
            "ci_gitlab::the_gitlab_pipeline_runs_on_a_shell",
            "ci_github::the_github_workflow_goes_from_the_plan_over_its_cells_to_the_page",
        ],
    ),
    (
        "already applied\" and \"nothing to do\"",
        &["failure::exit_0_is_done"],
    ),
    (
        "a gate failed, or versions differ",
        &[
            "rangediff::the_command_prints_gits_bytes_and_says_by_its_exit_code_whether_versions_differ",
        ],
    ),
    (
        "the command line, the recipe or another input is wrong",
        &["failure::exit_2_is_a_wrong_command_line_or_recipe"],
    ),
    (
        "the base does not fit the recipe, or is unproven",
        &["failure::exit_3_is_a_base_that_does_not_fit"],
    ),
    (
        "an outside tool, the network or the disk",
        &[
            "failure::exit_4_is_a_tool_that_is_missing_or_a_repository_that_is_broken",
            "failure::a_directory_that_cannot_be_written_is_refused",
        ],
    ),
    (
        "| 130 | interrupted |",
        &["failure::exit_130_is_an_interruption"],
    ),
    (
        "a directory anywhere that `--series` names",
        &["recipe::two_runs_from_different_directories_give_the_same_ids"],
    ),
];

/// Words of sentences that tell a person why or where, and promise nothing of the program; `tests/run` and CI show those about themselves.
const NO_CLAIMS: &[&str] = &[
    "Keeps a kernel patch series alive",
    "A patch series lives for months.",
    "Every week a new -rc",
    "Replaying diffs",
    "On a Debian machine with Rust",
    "And",
    "passes all tests.",
    "It installs the Debian packages that they need",
    "| you want to | command |",
    "Nothing of what the series edits may have moved",
    "| gate | what passes |",
    "| code | meaning |",
    "| 70 | a bug in reroll |",
    "describes the recipe's keys",
    "How fast it is",
    "[docs/performance.md](docs/performance.md).",
    "Licence:",
    "GPL-2.0-only",
];

/// The sentences of a page in Markdown, and the rows of its tables; not its headings, pictures and what is set in.
fn sentences(page: &str) -> Vec<String> {
    let (mut found, mut paragraph) = (Vec::new(), String::new());
    for line in page.lines().chain([""]) {
        let is_rule = line.chars().all(|char| "|-".contains(char));
        let is_row = line.starts_with('|') && !is_rule;
        if ["    ", "#", "!["]
            .iter()
            .any(|start| line.starts_with(start))
            || is_rule
            || is_row
        {
            found.extend(split(&paragraph));
            paragraph.clear();
            found.extend(is_row.then(|| line.to_owned()));
        } else {
            paragraph = format!("{paragraph} {line}");
        }
    }
    found
}

/// Cut behind a full stop or a colon that something follows which begins a sentence.
fn split(paragraph: &str) -> Vec<String> {
    let words: Vec<&str> = paragraph.split_whitespace().collect();
    let mut sentences: Vec<Vec<&str>> = Vec::new();
    for (index, word) in words.iter().enumerate() {
        let begins =
            word.starts_with(|char: char| char.is_ascii_uppercase() || "`[".contains(char));
        let ends = index > 0 && words[index - 1].ends_with(['.', ':']);
        if sentences.is_empty() || begins && ends {
            sentences.push(Vec::new());
        }
        if let Some(last) = sentences.last_mut() {
            last.push(word);
        }
    }
    sentences.iter().map(|words| words.join(" ")).collect()
}

/// Sentences that no line above is about, and lines above that no sentence is about.
fn unshown(page: &str) -> (Vec<String>, Vec<&'static str>) {
    let sentences = sentences(page);
    let words = || {
        let claims = CLAIMS.iter().map(|(words, _)| *words);
        claims.chain(NO_CLAIMS.iter().copied())
    };
    // A short one is a whole sentence: it may be in others by accident.
    let fits = |sentence: &str, words: &str| match words.len() {
        ..8 => sentence == words,
        _ => sentence.contains(words),
    };
    let without = sentences
        .iter()
        .filter(|sentence| !words().any(|words| fits(sentence, words)));
    let idle = words().filter(|words| !sentences.iter().any(|sentence| fits(sentence, words)));
    (without.cloned().collect(), idle.collect())
}

#[test]
fn each_sentence_of_the_readme_is_shown_by_a_test() {
    let (without, idle) = unshown(&project("README.md"));
    assert!(
        without.is_empty(),
        "no line of `CLAIMS` is about: {without:#?}"
    );
    assert!(idle.is_empty(), "no sentence has: {idle:#?}");
    for (words, tests) in CLAIMS {
        for test in *tests {
            let (file, name) = test.split_once("::").expect("FILE::TEST");
            let source = project(&format!("tests/it/{file}.rs"));
            let is_test = source.split("#[test]").skip(1).any(|rest| {
                let name = format!("\nfn {name}(");
                rest.find("\nfn ")
                    .is_some_and(|at| rest[at..].starts_with(&name))
            });
            assert!(is_test, "`{words}`: there is no test `{test}`");
        }
    }
}

#[test]
fn a_new_sentence_and_one_that_is_gone_are_told() {
    let page = project("README.md");
    let (without, _) = unshown(&page.replace(
        "\n## Exit codes",
        "It never makes a\nmistake.\n\n## Exit codes",
    ));
    assert_eq!(without, ["It never makes a mistake."]);
    let (_, idle) =
        unshown(&page.replace("Links, devices, pipes and modes stay what they are.", ""));
    assert_eq!(idle, ["Links, devices, pipes and modes"]);
}

#[test]
fn every_reading_command_has_json() {
    let sandbox = crate::support::Sandbox::new();
    for command in [
        "regen",
        "check",
        "diff",
        "explain",
        "facts",
        "bench",
        "doctor",
        "report",
        "bot status",
        "base list",
    ] {
        let words = command.split(' ').chain(["--help"]);
        let help = sandbox.reroll(words).run().expect_exit(0);
        assert!(help.stdout.to_string().contains("--json"), "{command}");
    }
}

#[test]
fn the_number_of_changed_kernels_is_that_of_the_corpus() {
    let number = |page: &str| {
        let page = project(page);
        let words: Vec<String> = page.split_whitespace().map(str::to_owned).collect();
        let at = words.windows(2).position(|pair| {
            ["ways", "kinds"].contains(&pair[1].trim_matches(|char: char| !char.is_alphabetic()))
                && pair[0].parse::<u32>().is_ok()
        });
        words[at.expect("a number")].clone()
    };
    assert_eq!(number("README.md"), number("docs/drift.md"));
}
