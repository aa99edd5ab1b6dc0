//! The bot on bases where something that the series rests on has changed: it proves what is harmless by itself and says so, refuses
//! what is not, and says "unproven" where it cannot find out.

use std::path::{Path, PathBuf};

use bstr::ByteSlice;
use serde_json::Value;

use crate::bot::{Play, QUICK, everything};
use crate::drift::{recipe_with, within};
use crate::rests::record_all;
use crate::support::{AUTHOR, Kernel, Program, Sandbox, Store, left_out, newest, test_cache};

const SINGLE: &str = "__init_single_page";

// ---------------------------------------------------------------------------------------------- the small recipe

const POOL_HEADER: &str = "struct pool { int left; };\n\nvoid pool_init(struct pool *pool);\nvoid pool_put(struct pool *pool, int number);\nstatic inline void pool_seal(struct pool *pool)\n{\n\tpool->left = 0;\n}\n";

#[track_caller]
fn says(said: &str, all: &[&str]) {
    for words in all {
        assert!(said.contains(words), "{words}: {said}");
    }
}

/// A play whose series rests on what it calls, and was proven on the first base.
fn resting(config: &str) -> Play {
    let play = Play::new(config);
    let series = play.read("patches/tiny/series.toml");
    play.write(
        "patches/tiny/series.toml",
        &format!("{series}\n[rests-on]\n"),
    );
    play.write("remote/include/linux/pool.h", POOL_HEADER);
    play.release(1, "one");
    record_all(
        "tiny",
        &play.path("."),
        &[(&play.path("remote/.git"), "v1.1")],
    );
    play
}

/// Pools are sealed otherwise from this base on.
fn seal_otherwise(play: &Play, number: usize) {
    let header = POOL_HEADER.replace("left = 0", &format!("left = {number}"));
    play.write("remote/include/linux/pool.h", &header);
    play.release(number, "seal pools otherwise");
}

#[test]
fn what_cannot_be_proven_needs_a_person_and_never_goes_out() {
    let play = resting(QUICK);
    let said = play.bot();
    assert!(said.contains("tiny on v1.1: clean"), "{said}");
    seal_otherwise(&play, 2);
    let said = play.bot();
    says(
        &said,
        &[
            "tiny on v1.2: unproven (was clean on v1.1)\n",
            "`pool_seal`, which the series rests on, was never proven as it is on this base\n",
            "include/linux/pool.h:7: \tpool->left = 2;\n",
            "not proven: the recipe has no `[[check.configuration]]` to build in\n",
        ],
    );
    let record = &play.records()["v1.2"]["record"];
    assert_eq!(record["verdict"], "unproven");
    assert_eq!(play.verdicts("v1.2"), ["clean"; 4]);
    let refs = play.refs("bot.git");
    assert!(refs.contains(" refs/heads/reroll/tiny/v1.1"), "{refs}");
    assert!(!refs.contains(" refs/heads/reroll/tiny/v1.2"), "{refs}");
    assert!(
        record["cover"]
            .as_str()
            .expect("text")
            .contains("Unproven on this base: `pool_seal`")
    );
    play.reroll(&["bot", "status", "--exit-code"], 3);

    // It is tried again, and nothing is written or said as long as nothing changes.
    let before = everything(&play.path("bot.git"));
    assert_eq!(play.bot(), "");
    assert!(everything(&play.path("bot.git")) == before);

    // A person has a look, and the record that then lies beside the series is enough.
    record_all(
        "tiny",
        &play.path("."),
        &[
            (&play.path("remote/.git"), "v1.1"),
            (&play.path("remote/.git"), "v1.2"),
        ],
    );
    let said = play.bot();
    assert!(
        said.contains("tiny on v1.2: clean (was unproven)"),
        "{said}"
    );
    play.reroll(&["bot", "status", "--exit-code"], 0);
}

#[test]
fn cells_build_what_is_unproven_and_reports_tell_of_it() {
    let play = resting(QUICK);
    let series = play.read("patches/tiny/series.toml");
    let check = "\n[check]\nobjects = [\"mm/pool.o\"]\n\n[[check.configuration]]\nname = \"gcc\"\narch = \"x86_64\"\n";
    play.write("patches/tiny/series.toml", &format!("{series}{check}"));
    let plan = |play: &Play| play.reroll(&["bot", "plan", "--format", "github"], 0).0;
    let quick = plan(&play);
    assert!(
        quick.contains("tiny/v1.1/quick") && !quick.contains("build"),
        "{quick}"
    );
    seal_otherwise(&play, 2);
    let both = plan(&play);
    assert!(both.contains("tiny/v1.2/build/gcc"), "{both}");
    assert!(!both.contains("tiny/v1.1/build"), "{both}");

    // A run of the bot finds that this is no kernel to build.
    let said = play.bot();
    assert!(said.contains("tiny on v1.2: unproven"), "{said}");
    assert!(
        said.contains("not proven: the gate `build` could not run"),
        "{said}"
    );
    let page = [
        "report",
        "-o",
        "page.html",
        "--junit",
        "junit.xml",
        "--markdown",
        "summary.md",
    ];
    play.reroll(&page, 0);
    for (text, words) in [
        (
            play.read("page.html"),
            "<span class=\"unproven\">Unproven</span>",
        ),
        (
            play.read("summary.md"),
            "was never proven as it is on this base",
        ),
        (play.read("junit.xml"), "name=\"rests-on\""),
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

// --------------------------------------------------------------------------------------------------- a real kernel

/// A bot whose repository borrows a kernel's objects, and whose series is built in one configuration.
struct Real {
    sandbox: Sandbox,
    store: Store,
    kernel: &'static Kernel,
    cache: PathBuf,
}

impl Real {
    fn new(kernel: &'static Kernel, cache: PathBuf) -> Self {
        let sandbox = Sandbox::new();
        let series = recipe_with(&sandbox, "series.toml", |text| {
            let start = text
                .find("[[check.configuration]]")
                .expect("configurations");
            let second = text[start + 1..].find("[[check.configuration]]");
            let second = start + 1 + second.expect("more than one");
            let end = text.find("# A booted kernel").expect("the guest");
            format!("{}{}", &text[..second], &text[end..])
        });
        std::fs::create_dir(sandbox.path("patches")).expect("a directory");
        std::fs::rename(series, sandbox.path("patches/zone-device")).expect("moved");
        sandbox.write(
            "bot.toml",
            format!(
                "repository = \"bot.git\"\nseries = [\"zone-device\"]\nauthor = \"{AUTHOR}\"\nsign-off = true\ngates = [\"apply\"]\n\n\
                 [[watch]]\nname = \"main\"\nrefs = [\"refs/tags/v*\"]\n"
            ),
        );
        let store = Store::beside(&sandbox, "bot.git", kernel);
        Self {
            sandbox,
            store,
            kernel,
            cache,
        }
    }

    /// A base whose function is as `change` leaves it.
    fn base(&self, tag: &str, change: impl Fn(&str) -> String) {
        let path = self.kernel.home();
        let text = self.kernel.file(path);
        let text = change(text.to_str().expect("UTF-8"));
        let tree_id = self
            .store
            .tree_with(self.kernel.tree_id, &[(path, text.as_bytes())]);
        let commit = self.store.commit(tree_id, None, "changed by a test\n");
        let name = format!("refs/tags/{tag}");
        let git = self.sandbox.git(["update-ref", &name, &commit.to_string()]);
        git.env("GIT_DIR", &self.store.path).run().expect_exit(0);
    }

    fn reroll(&self, args: &[&str]) -> Program {
        // Builds are worth keeping between tests.
        let program = self.sandbox.reroll(args);
        program.env("XDG_CACHE_HOME", &self.cache)
    }

    fn bot(&self) -> String {
        let ran = self.reroll(&["bot", "run"]).run().expect_exit(0);
        ran.stdout.to_string()
    }

    fn record(&self, tag: &str) -> Value {
        let status = self.reroll(&["bot", "status", "--json"]).run();
        let status = status.expect_exit(0).json();
        let rows = status["records"].as_array().expect("a list").clone();
        let row = rows
            .into_iter()
            .find(|row| row["record"]["base"]["name"] == tag);
        row.expect("a record")["record"].clone()
    }
}

#[test]
fn a_harmless_change_of_what_a_series_rests_on_is_proven_and_a_harmful_one_refused() {
    let (Some(kernel), Some(cache)) = (newest(), test_cache()) else {
        left_out("the bot's own proof", "there is no kernel");
        return;
    };
    let real = Real::new(kernel, cache);
    let gates = |record: &Value| -> Vec<String> {
        let gates = record["gates"].as_array().expect("a list").iter();
        let mut names: Vec<_> = gates
            .map(|gate| gate["gate"].as_str().expect("a name").to_owned())
            .collect();
        names.dedup();
        names
    };

    // As it was proven: only what is configured is run.
    real.base("v1", str::to_owned);
    let said = real.bot();
    assert!(said.contains("zone-device on v1: clean"), "{said}");
    assert_eq!(gates(&real.record("v1")), ["apply"]);

    // Two stores that do not matter to each other change places.
    let harmless = |text: &str| {
        let (one, two) = (
            "\tpage_cpupid_reset_last(page);\n",
            "\tpage_kasan_tag_reset(page);\n",
        );
        within(text, SINGLE, &format!("{one}{two}"), &format!("{two}{one}"))
    };
    real.base("v2", harmless);
    let said = real.bot();
    says(
        &said,
        &[
            "zone-device on v2: clean",
            "`__init_single_page`, which the series rests on, was never proven as it is on this base; the gates prove it here",
            "(x86-64 gcc)",
        ],
    );
    assert_eq!(gates(&real.record("v2")), ["apply", "build", "equality"]);

    // The page frame number goes into every page: a template has that of another page.
    let harmful = |text: &str| {
        let last = "\tpage_kasan_tag_reset(page);\n";
        within(
            text,
            SINGLE,
            last,
            &format!("{last}\tpage->private = pfn;\n"),
        )
    };
    real.base("v3", harmful);
    let said = real.bot();
    says(
        &said,
        &[
            "zone-device on v3: conflict",
            "`__init_single_page`, which the series rests on, was never proven as it is on this base; the gates refute it",
            "equality x86-64 gcc, patch 2: ",
            "word",
        ],
    );
    let refs = real.sandbox.git(["for-each-ref"]);
    let refs = refs.env("GIT_DIR", &real.store.path).run().expect_exit(0);
    assert!(refs.stdout.contains_str("refs/heads/reroll/zone-device/v2"));
    assert!(!refs.stdout.contains_str("refs/heads/reroll/zone-device/v3"));

    // What was proven on one base is known on the next ones, and not worth a word.
    real.base("v4", |text| {
        let last = "\tpage_kasan_tag_reset(page);\n";
        within(
            &harmless(text),
            SINGLE,
            last,
            &format!("\t/* Says a test. */\n{last}"),
        )
    });
    let said = real.bot();
    assert!(
        said.contains("zone-device on v4: clean (was conflict, equality fails on v3)"),
        "{said}"
    );
    assert!(!said.contains("proven"), "{said}");
    let record = real.record("v4");
    assert_eq!(gates(&record), ["apply"]);
    assert!(Path::new(&real.cache).exists());
}
