//! The bot over five real kernels that come into a remote one after another.
//!
//! Hides that each is only the part of a kernel that the series is about.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::Instant;

use serde_json::Value;

use crate::bot::everything;
use crate::support::{AUTHOR, Kernel, Sandbox, kernels};

/// The kernels in the order in which they come, with their tags.
const BASES: [(&str, &str); 5] = [
    ("6.1", "v6.1"),
    ("6.12", "v6.12"),
    ("7.2", "v7.2"),
    ("rc", "v7.3-rc"),
    ("7.3", "v7.3"),
];

/// All five; `None` where one cannot be had, which was said then, and which fails in CI.
fn all() -> Option<Vec<(&'static Kernel, &'static str)>> {
    let find = |name: &str| kernels().iter().find(|kernel| kernel.name == name);
    let found = BASES.map(|(name, tag)| find(name).map(|kernel| (kernel, tag)));
    found.into_iter().collect()
}

fn bot(sandbox: &Sandbox) -> String {
    let ran = sandbox.reroll(["bot", "run"]).run().expect_exit(0);
    assert_eq!(ran.stderr, "");
    ran.stdout.to_string()
}

/// The records by base.
fn grid(sandbox: &Sandbox) -> BTreeMap<String, Value> {
    let ran = sandbox.reroll(["bot", "status", "--json"]).run();
    let status = ran.expect_exit(0).json();
    let rows = status["records"].as_array().expect("a list").clone();
    let name = |row: &Value| row["record"]["base"]["name"].as_str().map(str::to_owned);
    rows.into_iter()
        .map(|row| (name(&row).expect("a name"), row))
        .collect()
}

fn refs(sandbox: &Sandbox, dir: &str) -> String {
    let listed = sandbox.git(["for-each-ref", "--format=%(objectname) %(refname)"]);
    let listed = listed.env("GIT_DIR", sandbox.path(dir));
    listed.run().expect_exit(0).stdout.to_string()
}

/// Each base has the verdicts that one knows it to have, and was told of when it came.
fn check_grid(
    bases: &[(&Kernel, &str)],
    grid: &BTreeMap<String, Value>,
    told: &BTreeMap<&str, String>,
) {
    assert_eq!(grid.len(), bases.len());
    for (at, (_, tag)) in bases.iter().enumerate() {
        let record = &grid[*tag]["record"];
        let patches = record["patches"].as_array().expect("a list");
        let numbers: Vec<_> = patches
            .iter()
            .map(|patch| patch["number"].as_u64())
            .collect();
        assert_eq!(numbers, [1, 2, 3, 4].map(Some), "{tag}");
        let verdicts: Vec<_> = patches
            .iter()
            .map(|patch| patch["verdict"].as_str().expect("a verdict"))
            .collect();
        match *tag {
            "v6.1" => assert_eq!(verdicts, ["clean"; 4]),
            "v6.12" => assert_eq!(verdicts, ["clean", "clean", "clean", "drifted"]),
            "v7.2" => assert_eq!(verdicts, ["drifted", "clean", "clean", "drifted"]),
            // These move on: what they are fits, whether a line of it changed or not.
            _ => assert!(
                verdicts
                    .iter()
                    .all(|verdict| ["clean", "drifted"].contains(verdict)),
                "{tag}: {verdicts:?}"
            ),
        }
        // A change is told when it comes, with what changed; that nothing did is not worth a word.
        let state = grid[*tag]["state"].as_str().expect("a state");
        let drifted = verdicts.contains(&"drifted");
        assert_eq!(state, if drifted { "drifted" } else { "clean" }, "{tag}");
        let says = format!("zone-device on {tag}: {state}");
        assert!(
            told[tag].starts_with(&says) || (!drifted && told[tag].is_empty()),
            "{}",
            told[tag]
        );
        assert_eq!(
            told[tag].matches(": drifted: unlike on v").count(),
            verdicts
                .iter()
                .filter(|verdict| **verdict == "drifted")
                .count()
        );
        let compared = &record["compared"]["base"];
        let earlier = |(_, tag): &(&Kernel, &str)| *compared == *tag;
        assert_eq!(bases[..at].iter().any(earlier), at > 0, "{tag}: {compared}");
        let gates = record["gates"].as_array().expect("a list");
        assert!(gates.len() >= 8, "{tag}: {gates:?}");
        let content = |gate: &Value| gate["status"] == "pass" || gate["status"] == "skipped";
        assert!(gates.iter().all(content), "{tag}: {gates:?}");
    }
    let words =
        "factor-helpers: drifted: unlike on v6.12: the code that edit `refcount` works on changed";
    assert!(told["v7.2"].contains(words), "{}", told["v7.2"]);
}

#[test]
fn five_real_bases_come_one_after_another_and_a_second_run_writes_nothing() {
    let Some(bases) = all() else { return };
    let sandbox = Sandbox::new();
    for dir in ["remote.git", "shared.git"] {
        sandbox
            .git(["init", "-q", "--bare", dir])
            .run()
            .expect_exit(0);
    }
    let config = format!(
        "repository = \"bot.git\"\nseries = [\"zone-device\"]\nauthor = \"{AUTHOR}\"\nsign-off = true\n\
         gates = [\"apply\", \"mail\"]\npush = \"shared.git\"\n\n\
         [[watch]]\nname = \"main\"\nremote = \"remote.git\"\ntags = [\"v*\"]\n"
    );
    sandbox.write("bot.toml", config);
    let mut told = BTreeMap::new();
    for (kernel, tag) in &bases {
        let (store, commit) = kernel.slice(&sandbox, &format!("{tag}.git"));
        sandbox
            .git(["push", "-q"])
            .arg(sandbox.path("remote.git"))
            .arg(format!("{commit}:refs/tags/{tag}"))
            .env("GIT_DIR", &store.path)
            .run()
            .expect_exit(0);
        told.insert(*tag, bot(&sandbox));
    }

    check_grid(&bases, &grid(&sandbox), &told);

    // Nothing new: nothing is written, in any repository or in the cache.
    let state = || {
        (
            refs(&sandbox, "bot.git"),
            refs(&sandbox, "shared.git"),
            everything(&sandbox.path("")),
        )
    };
    let (bot_refs, shared_refs, files) = state();
    assert_eq!(
        bot_refs.matches(" refs/heads/reroll/zone-device/v").count(),
        bases.len()
    );
    assert_eq!(
        bot_refs
            .matches(" refs/reroll/records/zone-device/v")
            .count(),
        bases.len()
    );
    let since = Instant::now();
    assert_eq!(bot(&sandbox), "");
    let took = since.elapsed();
    let (bot_again, shared_again, files_again) = state();
    assert_eq!((bot_again, shared_again), (bot_refs, shared_refs));
    assert!(
        files == files_again,
        "a run with nothing new wrote something"
    );
    let build = if cfg!(debug_assertions) {
        "debug"
    } else {
        "release"
    };
    let _ = writeln!(
        std::io::stderr(),
        "a second run over {} bases took {:.0} ms in a {build} build",
        bases.len(),
        took.as_secs_f64() * 1e3
    );
}
