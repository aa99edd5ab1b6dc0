//! A bot that watches a package of Debian's, on a mirror on disk.
//!
//! Hides how a day passes for apt's lists.

use std::fs;

use crate::bases::{Mirror, deb_of};
use crate::bot::{MAKEFILE, POOL, Play, QUICK, ended, everything};

/// A bot whose only watch is the kernel of a suite.
struct Watch {
    play: Play,
    mirror: Mirror,
}

impl Watch {
    /// `None` on a machine without apt, which CI is not.
    fn new() -> Option<Self> {
        let watch = Self {
            play: Play::new(QUICK),
            mirror: Mirror::new()?,
        };
        let config = watch.play.read("bot.toml");
        let (head, _) = config.split_once("[[watch]]").expect("a watch");
        let config = format!("{head}[[watch]]\nname = \"debian\"\ndebian = \"sid\"\n");
        watch.play.write("bot.toml", &config);
        watch.mirror.own(&[("debian", "sid")]);
        Some(watch)
    }

    /// Publishes a kernel of this version with this file, and nothing else.
    fn publish(&self, version: &str, pool: &str) {
        let release = version.split(['-', '~']).next().unwrap_or_default();
        let numbers: Vec<_> = release.split('.').collect();
        let candidate = version.split_once("~rc").map(|(_, rest)| {
            let digits = rest.split('-').next().unwrap_or_default();
            format!("-rc{digits}")
        });
        let makefile = MAKEFILE
            .replace("VERSION = 1", &format!("VERSION = {}", numbers[0]))
            .replace("PATCHLEVEL = 0", &format!("PATCHLEVEL = {}", numbers[1]))
            .replace(
                "SUBLEVEL = 0",
                &format!("SUBLEVEL = {}", numbers.get(2).unwrap_or(&"0")),
            )
            .replace(
                "EXTRAVERSION =",
                &format!("EXTRAVERSION = {}", candidate.unwrap_or_default()),
            );
        let files = [
            (".gitattributes", "*.[ch] diff=cpp\n"),
            ("Kconfig", "mainmenu \"Linux\"\n"),
            ("Makefile", &makefile),
            ("mm/pool.c", pool),
        ];
        let package = ("linux-source-7.3", version, deb_of(version, &files));
        self.mirror.publish("debian", "sid", "Debian", &[package]);
    }

    /// The lists are of yesterday from now on.
    fn next_day(&self) {
        let apt = fs::read_dir(self.play.path("home/cache/reroll/apt")).expect("apt's place");
        for entry in apt {
            let path = entry.expect("an entry").path();
            if path.extension().is_some_and(|end| end == "updated") {
                fs::remove_file(path).expect("removed");
            }
        }
    }

    #[track_caller]
    fn bot(&self, code: i32) -> (String, String) {
        let args = ["bot", "run"];
        let mut command = self.play.command(env!("CARGO_BIN_EXE_reroll"), ".", &args);
        command.env("APT_CONFIG", self.mirror.path("apt.conf"));
        ended(&command.output().expect("it starts"), &args, code)
    }
}

#[test]
fn packages_of_debian_are_bases_and_stay_bases_when_there_are_newer_ones() {
    let Some(watch) = Watch::new() else { return };
    let play = &watch.play;
    watch.publish("7.3~rc7-1~exp1", POOL);
    let (told, _) = watch.bot(0);
    assert_eq!(told, "tiny on debian-7.3~rc7-1~exp1: clean\n");

    // A second run writes nothing: neither into the bot's repository nor into the cache.
    let before = everything(&play.path(""));
    let (told, said) = watch.bot(0);
    assert_eq!((told.as_str(), said.as_str()), ("", ""));
    assert!(
        everything(&play.path("")) == before,
        "a run with nothing new wrote something"
    );

    // A new version is seen when apt's lists are renewed, which is once a day.
    let pool = POOL.replace("pool_put(pool, i);", "pool_put(pool, i + 1);");
    watch.publish("7.3.4-1", &pool);
    assert_eq!(watch.bot(0).0, "");
    watch.next_day();
    let (told, _) = watch.bot(0);
    let drifted = "tiny on debian-7.3.4-1: drifted (was clean on debian-7.3~rc7-1~exp1)\n  batch: drifted: unlike on debian-7.3~rc7-1~exp1: it changes other lines\n";
    assert!(told.starts_with(drifted), "{told}");
    let records = play.records();
    assert_eq!(
        records.keys().collect::<Vec<_>>(),
        ["debian-7.3.4-1", "debian-7.3~rc7-1~exp1"]
    );
    assert_eq!(
        records["debian-7.3.4-1"]["record"]["base"]["release"],
        "7.3.4"
    );
    assert_eq!(
        records["debian-7.3~rc7-1~exp1"]["record"]["base"]["release"],
        "7.3-rc7"
    );
    for name in ["7.3.4-1", "7.3%7erc7-1%7eexp1"] {
        let refs = play.refs("bot.git");
        assert!(
            refs.contains(&format!("refs/heads/reroll/tiny/debian-{name}")),
            "{refs}"
        );
        assert!(
            refs.contains(&format!("refs/reroll/bases/debian/debian/debian-{name}")),
            "{refs}"
        );
    }

    // A base without the file is a verdict.
    watch.publish("7.3.5-1", "int nothing;\n");
    watch.next_day();
    let (told, _) = watch.bot(0);
    assert!(
        told.starts_with("tiny on debian-7.3.5-1: conflict (was drifted on debian-7.3.4-1)\n"),
        "{told}"
    );
    assert!(
        !watch.mirror.path("a-hook-ran").exists(),
        "no hook of the system's runs"
    );
}

#[test]
fn a_mirror_that_is_gone_or_broken_is_no_verdict() {
    let Some(watch) = Watch::new() else { return };
    let play = &watch.play;
    let (told, said) = watch.bot(4);
    assert!(
        told.is_empty() && said.contains("trying again") && said.contains("hint: "),
        "{said}"
    );
    watch.publish("7.3.4-1", POOL);
    watch.bot(0);
    let refs = play.refs("bot.git");
    // A package that is not what the lists say.
    watch.publish("7.3.5-1", POOL);
    let file = watch
        .mirror
        .path("debian/pool/linux-source-7.3_7.3.5-1_all.deb");
    let whole = fs::read(&file).expect("a package");
    fs::write(&file, &whole[..whole.len() / 2]).expect("written");
    watch.next_day();
    let (told, said) = watch.bot(4);
    assert!(told.is_empty() && said.contains("error: "), "{told}{said}");
    assert_eq!(play.refs("bot.git"), refs);
    // A package in which there is no kernel.
    let other = deb_of("7.3.5-1", &[("README", "no kernel\n")]);
    let package = ("linux-source-7.3", "7.3.5-1", other);
    watch.mirror.publish("debian", "sid", "Debian", &[package]);
    watch.next_day();
    let (told, said) = watch.bot(4);
    assert!(told.is_empty() && said.contains("got no kernel"), "{said}");
    assert_eq!(play.refs("bot.git"), refs);
    // The next run goes on.
    watch.publish("7.3.5-1", POOL);
    watch.next_day();
    fs::write(&file, &whole).expect("written");
    let (told, _) = watch.bot(0);
    assert_eq!(told, "");
    assert_eq!(play.records()["debian-7.3.5-1"]["state"], "clean");
}
