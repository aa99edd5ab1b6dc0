//! `reroll bench` on a stand-in for a kernel, with a harness that says what was planted instead of what a clock says.
//!
//! Hides both; no test here times anything.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bstr::BString;
use reroll::exec::{End, Output, Task};
use reroll::repo::{MODE_FILE, ObjectId, Repo, Signature};
use serde_json::Value;
use tempfile::TempDir;

const ARCH: &str = if cfg!(target_arch = "aarch64") {
    "arm64"
} else {
    "x86_64"
};

const MAKEFILE: &str = r"
MAKEFLAGS += -rR
.PHONY: FORCE
VERSION = 6
PATCHLEVEL = 99
SUBLEVEL = 0
EXTRAVERSION =
defconfig:
	@echo CONFIG_ALWAYS=y > $(O)/.config
olddefconfig:
	@echo CONFIG_ALWAYS=y > $(O)/.config
prepare:
	@true
%.o: FORCE
	@mkdir -p $(O)/$(@D)
	@gcc -O2 -c -o $(O)/$@ $(CURDIR)/$*.c
	@echo 'savedcmd_$@ := gcc -O2 -I/somewhere/of/this/machine -c -o $@ $(CURDIR)/$*.c ; true' > $(O)/$(@D)/.$(@F).cmd
FORCE:
";

const THING: &str = "struct cell {
	unsigned long value;
};

void fill(struct cell *cells, unsigned long nr);

void fill(struct cell *cells, unsigned long nr)
{
	unsigned long i;

	for (i = 0; i < nr; i++)
		cells[i].value = i;
}
";

const SERIES: &str = r#"
name = "cells"
title = "mm: fill cells faster"
version = 1
change-id = "20260101-cells-0123456789ab"
sign-off = true
author = "A U Thor <author@example.org>"
patches = ["0001-count-down", "0002-by-two"]

[inputs]
table = "performance.table"
measured = "performance.present"

[check]
objects = ["mm/thing.o"]
options = ["ALWAYS=y"]

[check.equality]
object = "mm/thing.o"
entry = "fill"
harness = "harness"

[[check.configuration]]
name = "gcc"
arch = "ARCH"
warnings = ""
equality = true
"#;

const PATCH_1: &str = r#"
[inputs]
table = "performance.table"
measured = "performance.present"

[[edit]]
name = "down"
action = "replace"
file = "mm/thing.c"
function = "fill"
statement = "for (i = 0; i < nr; i++) cells[i].value = i;"
template = "down.c"
"#;

const PATCH_2: &str = r#"
[inputs]
table = "performance.table"
measured = "performance.present"

[[edit]]
name = "two"
action = "replace"
file = "mm/thing.c"
function = "fill"
statement = "for (i = nr; i-- > 0;) cells[i].value = i;"
template = "two.c"
"#;

const DOWN: &str = "for (i = nr; i-- > 0;)\n\tcells[i].value = i;\n";
const TWO: &str = "for (i = 0; i < nr; i++)\n\tcells[i].value = i + 0;\n";
const MESSAGE: &str =
    "mm: fill cells\n\nThere is a reason.\n@% if measured %@\n\n@{ table }@\n@% endif %@\n";

const HARNESS: &str = r#"
kernel = ["side.c"]
user = ["main.c"]
table = "table.h"
faults = ["fault_first"]
verify = ["verify"]
verify-faults = ["verify"]
bench = ["bench"]
verify-bench = [["verify"]]
[arch]
x86_64 = []
arm64 = []
"#;

const SIDE: &str = "struct cell { unsigned long value; };
void init_base(struct cell *cells, unsigned long nr);
void init_fault_first(struct cell *cells, unsigned long nr);
void init_fault_first(struct cell *cells, unsigned long nr)
{
	init_base(cells, nr);
	cells[0].value = FAULT;
}
";

const TABLE: &str = "struct variant {
	const char *name;
	void *fn;
	unsigned int placement;
};
extern const struct variant variants[];
extern const unsigned int nr_variants;
";

/// Planted: 10, 8, 4 and 3 ns a page; every turn of the placements is slower than the one before by a part of the first. With 77 rounds it
/// hangs in the fourth turn, with 78 it breaks off. `WHERE` is how many times as long something takes that lies at the address `at`.
const MAIN: &str = r#"#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "table.h"
static unsigned long a[64], b[64];
int main(int argc, char **argv)
{
	static const char *names[] = { "base", "p1", "p2", "limit" };
	static const double planted[] = { 10, 8, 4, 3 };
	unsigned long pages = 0, rounds = 0, repeat = 0, placements = 0, r, p, s, v, failed = 0;
	int i;
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!strcmp(argv[1], "verify")) {
		((void (*)(unsigned long *, unsigned long))variants[0].fn)(a, 64);
		for (v = 1; v < nr_variants; v++) {
			memset(b, 0xa5, sizeof(b));
			((void (*)(unsigned long *, unsigned long))variants[v].fn)(b, 64);
			failed += !!memcmp(a, b, sizeof(a));
			printf("{\"variant\":\"%s\",\"bytes_equal\":%s}\n", variants[v].name, memcmp(a, b, sizeof(a)) ? "false" : "true");
		}
		printf("{\"checks\":%u}\n", nr_variants - 1);
		return failed != 0;
	}
	for (i = 2; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--pages"))
			pages = strtoul(argv[i + 1], NULL, 0);
		if (!strcmp(argv[i], "--rounds"))
			rounds = strtoul(argv[i + 1], NULL, 0);
		if (!strcmp(argv[i], "--repeat"))
			repeat = strtoul(argv[i + 1], NULL, 0);
	}
	for (v = 0; v < nr_variants; v++)
		if (variants[v].placement >= placements)
			placements = variants[v].placement + 1;
	for (r = 0; r < rounds; r++)
		for (p = 0; p < placements; p++)
			for (s = 0; s < 4; s++) {
				double ns = planted[s] * (1 + r * SLOWER) * pages * repeat;
				for (v = 0; v < nr_variants; v++) {
					unsigned long at = (unsigned long)variants[v].fn;
					if (variants[v].placement == p && !strcmp(variants[v].name, names[s]))
						ns *= WHERE;
				}
				if (r == 3 && s == 1 && rounds == 77)
					pause();
				if (r == 3 && rounds == 78) {
					fprintf(stderr, "out of planted luck\n");
					return 3;
				}
				printf("{\"record\":\"sample\",\"round\":%lu,\"placement\":%lu,\"variant\":\"%s\",\"threads\":1,\"cpu_ns\":%.0f,\"wall_ns\":1,\"retries\":0}\n",
				       r * placements + p, p, names[s], ns);
			}
	return 0;
}
"#;

/// The planted main program.
fn main_half(slower: &str, at: &str) -> String {
    MAIN.replace("SLOWER", slower)
        .replace("WHERE", &format!("({at})"))
}

/// A stand-in kernel in a repository, a series on disk, and a cache of its own.
struct Lab {
    dir: TempDir,
    base: ObjectId,
}

impl Lab {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        Repo::init_bare(&dir.path().join("kernel.git")).expect("a repository");
        let mut lab = Self {
            dir,
            base: ObjectId::ZERO_SHA1,
        };
        lab.base = lab.commit("start\n");
        let series = SERIES.replace("ARCH", ARCH);
        for (path, text) in [
            ("series.toml", series.as_str()),
            (
                "cover.txt",
                "Cells are filled slowly.\n@% if measured %@\n\n@{ table }@\n@% endif %@\n",
            ),
            ("0001-count-down/patch.toml", PATCH_1),
            ("0001-count-down/message.txt", MESSAGE),
            ("0002-by-two/patch.toml", PATCH_2),
            ("0002-by-two/message.txt", MESSAGE),
            ("templates/down.c.tera", DOWN),
            ("templates/two.c.tera", TWO),
            ("harness/harness.toml", HARNESS),
            ("harness/side.c", &SIDE.replace("FAULT", "77")),
            ("harness/table.h", TABLE),
            ("harness/main.c", &main_half("0.1", "at ? 1 : 1")),
        ] {
            lab.write(path, text);
        }
        lab
    }

    /// A base whose `COPYING` is this.
    fn commit(&self, copying: &str) -> ObjectId {
        let repo = Repo::open(&self.path("kernel.git")).expect("a repository");
        let files: [(BString, &str); 3] = [
            ("Makefile".into(), MAKEFILE),
            ("COPYING".into(), copying),
            ("mm/thing.c".into(), THING),
        ];
        let blobs =
            files.map(|(path, text)| (path, repo.write_blob(text.as_bytes()).expect("a blob")));
        let entries: Vec<_> = blobs
            .iter()
            .map(|(path, id)| (path.as_ref(), MODE_FILE, *id))
            .collect();
        let tree = repo.write_new_tree(&entries).expect("a tree");
        let author = Signature {
            name: "A U Thor".into(),
            email: "author@example.org".into(),
            time: 1_700_000_000,
            offset: 60,
        };
        repo.write_commit(tree, None, &author, "base\n".into())
            .expect("a commit")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, path: &str, text: &str) {
        let file = self.path("series").join(path);
        fs::create_dir_all(file.parent().expect("a parent")).expect("a directory");
        fs::write(file, text).expect("written");
    }

    fn task(&self, command: &str, base: ObjectId, args: &[&str]) -> Task {
        Task::new(env!("CARGO_BIN_EXE_reroll"))
            .home()
            .env("XDG_CACHE_HOME", self.path("cache"))
            .dir(self.dir.path())
            .arg(command)
            .arg("--tree")
            .arg(self.path("kernel.git"))
            .args(["--base", &base.to_string(), "--series"])
            .arg(self.path("series"))
            .args(args)
    }

    fn bench(&self, args: &[&str]) -> Said {
        let small = [
            "--pages", "1024", "--order", "0,9", "--rounds", "3", "--memory", "touched",
        ];
        Said::of(
            &self
                .task("bench", self.base, &[&small[..], args].concat())
                .run()
                .expect("reroll starts"),
        )
    }

    fn regen_on(&self, base: ObjectId) -> Said {
        Said::of(
            &self
                .task("regen", base, &["--mbox", "-"])
                .run()
                .expect("reroll starts"),
        )
    }

    fn regen(&self) -> Said {
        self.regen_on(self.base)
    }

    fn record(&self) -> PathBuf {
        self.path("series/performance.json")
    }
}

#[derive(Debug)]
struct Said {
    end: End,
    out: String,
    err: String,
}

impl Said {
    fn of(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self {
            end: output.exit,
            out: text(&output.stdout),
            err: text(&output.stderr),
        }
    }
}

/// A measured and recorded series.
fn recorded() -> Lab {
    let lab = Lab::new();
    let said = lab.bench(&["--record"]);
    assert_eq!(said.end, End::Code(0), "{said:?}");
    lab
}

#[test]
fn planted_times_come_out_as_json_a_table_and_a_picture() {
    let lab = Lab::new();
    let picture = lab.path("x.svg");
    let said = lab.bench(&["--json", "--svg", picture.to_str().expect("text")]);
    assert_eq!(said.end, End::Code(0), "{said:?}");
    let lines: Vec<Value> = said
        .out
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(lines.len(), 1 + 2 * 4);
    let run = &lines[0];
    assert_eq!(
        (&run["record"], &run["release"], &run["object"]),
        (&"run".into(), &"6.99".into(), &"mm/thing.o".into())
    );
    assert!(
        run["compiler"]
            .as_str()
            .expect("a compiler")
            .contains("gcc"),
        "{run}"
    );
    assert_eq!(run["flags"], serde_json::json!(["-O2"]));
    assert!(
        run["load"]["before"].is_number() && run["machine"]["cpus"].is_number(),
        "{run}"
    );
    assert!(
        !said.out.contains("/somewhere")
            && !said.out.contains(lab.dir.path().to_str().expect("text")),
        "{}",
        said.out
    );
    let two = lines
        .iter()
        .find(|it| it["step"] == "by-two" && it["order"] == 9)
        .expect("a figure");
    assert_eq!(
        (
            &two["ns"]["placements"]["median"],
            &two["times-base"]["placements"]["median"],
            &two["of-limit"]["placements"]["median"]
        ),
        (&4.4.into(), &2.5.into(), &1.3333.into())
    );
    assert_eq!(
        (&two["placements"], &two["rounds"], &two["memory"]),
        (&8.into(), &24.into(), &"touched".into())
    );
    let svg = fs::read_to_string(&picture).expect("a picture");
    assert!(svg.starts_with("<svg ") && svg.contains("by-two"), "{svg}");

    let table = lab.bench(&[]);
    assert!(table.out.contains("2 by-two"), "{}", table.out);
    assert!(
        table.out.contains("4.400 (4.40 to 4.40; 9 %)"),
        "{}",
        table.out
    );
    assert!(!lab.record().exists(), "nothing is recorded unasked");
}

/// Where the functions called `init_...` are in the program that was measured.
fn entries(lab: &Lab) -> Vec<(String, u64)> {
    let builds = fs::read_dir(lab.path("cache/reroll/lab/build")).expect("builds");
    let program = builds
        .flatten()
        .map(|build| build.path().join("p0/bench-p0/program"))
        .find(|program| program.exists());
    let text = Task::new("nm")
        .arg(program.expect("a program"))
        .output()
        .expect("nm runs");
    let text = String::from_utf8(text).expect("text");
    let entry = |line: &str| {
        let mut words = line.split(' ');
        let at = u64::from_str_radix(words.next()?, 16).ok()?;
        let name = words.nth(1)?.strip_prefix("init_")?;
        Some((name.to_owned(), at))
    };
    text.lines().filter_map(entry).collect()
}

#[test]
fn what_a_patch_leaves_as_it_is_stands_at_the_same_place_of_a_page_at_each_placement() {
    let lab = recorded();
    let entries = entries(&lab);
    let at = |name: &str| {
        let entry = entries.iter().find(|(found, _)| found == name);
        entry.expect("an entry").1
    };
    let (mut places, mut orders) = (BTreeSet::new(), BTreeSet::new());
    for placement in 0..8 {
        let name = |state: &str| match placement {
            0 => state.to_owned(),
            _ => format!("{state}_at_{placement}"),
        };
        let addresses = ["base", "p1", "p2"].map(|state| at(&name(state)));
        let place = addresses[0] % 4096;
        assert!(addresses.iter().all(|at| at % 4096 == place), "{entries:?}");
        places.insert(place);
        orders.insert((addresses[0] < addresses[1], addresses[1] < addresses[2]));
    }
    assert_eq!((places.len(), orders.len()), (8, 3), "{entries:?}");
}

/// The figure of the last patch on single pages where it takes longer by `at`, and what the table says of it. The patch does nothing
/// but to move the code: a function of 600 bytes is put in front of it.
fn moved(at: &str) -> (Value, String) {
    let lab = Lab::new();
    lab.write(
        "harness/main.c",
        &main_half("0", at).replace("{ 10, 8, 4, 3 }", "{ 10, 10, 10, 3 }"),
    );
    lab.write(
        "0002-by-two/patch.toml",
        "[inputs]\ntable = \"performance.table\"\nmeasured = \"performance.present\"\n\n[[edit]]\nname = \"pad\"\naction = \"insert\"\n\
         place = \"before\"\nfile = \"mm/thing.c\"\nfunction = \"fill\"\ndefines = [\"pad\"]\ntext = \"\"\"\nvoid pad(void)\n{\n\tasm volatile(\".skip 600\");\n}\n\"\"\"\n",
    );
    let table = lab.bench(&[]);
    assert_eq!(table.end, End::Code(0), "{table:?}");
    let json = lab.bench(&["--json"]);
    let figures = json
        .out
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let figure = figures
        .into_iter()
        .find(|it| it["step"] == "by-two" && it["order"] == 0);
    (figure.expect("a figure"), table.out)
}

#[test]
fn a_patch_that_only_moves_code_is_no_slower_than_the_base() {
    // One place of a page where code takes three times as long: the base is there at one placement, the padded copy at another.
    let (figure, table) = moved("at % 4096 / 512 == 5 ? 3 : 1");
    let ratio = &figure["times-base"]["placements"];
    assert_eq!(
        (&ratio["low"], &ratio["median"], &ratio["high"]),
        (&0.3333.into(), &1.0.into(), &3.0.into()),
        "{figure}"
    );
    assert!(!table.contains("slower than the base"), "{table}");
}

#[test]
fn what_is_slower_than_the_base_wherever_it_lies_is_said_to_be() {
    let (figure, table) =
        moved("!strcmp(names[s], \"p2\") ? (at % 4096 / 512 == 5 ? 1.3 : 1.1) : 1");
    assert_eq!(
        figure["times-base"]["placements"]["median"], 0.9091,
        "{figure}"
    );
    let marked = table
        .lines()
        .filter(|line| line.ends_with("slower than the base"));
    assert!(
        marked.clone().all(|line| line.starts_with("2 by-two")),
        "{table}"
    );
    assert_eq!(marked.count(), 2, "{table}");
}

#[test]
fn the_letters_show_what_was_recorded_each_up_to_its_patch() {
    let lab = recorded();
    let said = lab.regen();
    assert_eq!(said.end, End::Code(0), "{said:?}");
    assert!(!said.err.contains("warning"), "{}", said.err);
    let mails: Vec<_> = said.out.split("\nSubject: ").skip(1).collect();
    assert_eq!(mails.len(), 3);
    let row = |name: &str, ns: &str, ratio: &str| {
        format!("  {name:10}{ns:>12}{ratio:>8}{ns:>12}{ratio:>8}\n")
    };
    let two = row("patch 2", "4.40", "2.50x");
    for (mail, shows_two) in mails.iter().zip([true, false, true]) {
        assert!(mail.contains(&row("base", "11.00", "1.00x")), "{mail}");
        assert!(mail.contains(&row("patch 1", "8.80", "1.25x")), "{mail}");
        assert_eq!(mail.contains(&two), shows_two, "{mail}");
        assert!(
            mail.contains("fill() of mm/thing.o (gcc), Linux 6.99,"),
            "{mail}"
        );
    }
    assert_eq!(lab.regen().out, said.out, "the same bytes again");
}

#[test]
fn without_a_record_the_letters_show_nothing_and_say_nothing() {
    let said = Lab::new().regen();
    assert_eq!(
        (said.end, said.err.contains("warning")),
        (End::Code(0), false),
        "{said:?}"
    );
    assert!(
        said.out.contains("There is a reason.\n\nSigned-off-by:")
            && !said.out.contains("Nanoseconds"),
        "{}",
        said.out
    );
}

#[test]
fn a_stale_record_is_warned_of_once_and_never_shown() {
    let lab = recorded();
    let other = lab.commit("another base\n");
    let stale = |said: Said, why: &str| {
        assert_eq!(said.end, End::Code(0), "{said:?}");
        assert_eq!(said.err.matches("warning:").count(), 1, "{}", said.err);
        assert!(
            said.err.contains("performance.json` is stale") && said.err.contains(why),
            "{}",
            said.err
        );
        assert!(
            !said.out.contains("Nanoseconds") && !said.out.contains("2.50x"),
            "{}",
            said.out
        );
    };
    stale(lab.regen_on(other), "another base, Linux 6.99");

    lab.write("templates/two.c.tera", &TWO.replace("+ 0", "+ 0UL"));
    stale(lab.regen(), "templates or edits have changed");
    lab.write("templates/two.c.tera", TWO);

    lab.write(
        "series.toml",
        &SERIES
            .replace("ARCH", ARCH)
            .replace("warnings = \"\"", "flags = [\"-O3\"]"),
    );
    stale(lab.regen(), "options of the configuration `gcc`");
    lab.write("series.toml", &SERIES.replace("ARCH", ARCH));

    let text = fs::read_to_string(lab.record()).expect("recorded");
    let compiler = serde_json::from_str::<Value>(&text).expect("JSON")["run"]["compiler"]
        .as_str()
        .expect("a compiler")
        .to_owned();
    lab.write("performance.json", &text.replace(&compiler, "gcc 1.0"));
    stale(lab.regen(), "another compiler, gcc 1.0");

    // Words do not count.
    lab.write("performance.json", &text);
    lab.write(
        "series.toml",
        &SERIES
            .replace("ARCH", ARCH)
            .replace("faster", "much faster"),
    );
    assert!(lab.regen().out.contains("2.50x"));
}

#[test]
fn a_noisy_record_is_warned_of_and_never_shown() {
    let lab = Lab::new();
    lab.write("harness/main.c", &main_half("1.0", "at ? 1 : 1"));
    let said = lab.bench(&["--record"]);
    assert_eq!(said.end, End::Code(0), "{said:?}");
    assert!(
        said.err
            .contains("the letters will not show it: a figure spreads by 50 %"),
        "{}",
        said.err
    );
    let said = lab.regen();
    assert_eq!(
        (said.end, said.err.matches("warning:").count()),
        (End::Code(0), 1),
        "{said:?}"
    );
    assert!(
        said.err.contains("too noisy") && !said.out.contains("Nanoseconds"),
        "{said:?}"
    );
}

#[test]
fn a_record_that_was_edited_into_nonsense_is_refused() {
    let lab = recorded();
    let text = fs::read_to_string(lab.record()).expect("recorded");
    for wrong in [
        text.replacen("8.8", "-8.8", 1),
        text.replacen("\"run\"", "\"ran\"", 1),
        "{}".to_owned(),
    ] {
        lab.write("performance.json", &wrong);
        let said = lab.regen();
        assert_eq!(said.end, End::Code(2), "{said:?}");
        assert!(
            said.err.contains("performance.json` is wrong"),
            "{}",
            said.err
        );
    }
}

#[test]
fn an_object_that_writes_something_else_is_not_measured() {
    let lab = recorded();
    let before = fs::read(lab.record()).expect("recorded");
    lab.write(
        "templates/two.c.tera",
        "for (i = 0; i < nr; i++)\n\tcells[i].value = i + (i == 5);\n",
    );
    let said = lab.bench(&["--record"]);
    assert_eq!(said.end, End::Code(1), "{said:?}");
    assert!(
        said.err
            .contains("patch 2, `by-two`, is not measured: 1 of 2 comparisons not equal"),
        "{}",
        said.err
    );
    assert_eq!(said.out, "");
    assert_eq!(fs::read(lab.record()).expect("recorded"), before);
}

#[test]
fn an_object_that_crashes_is_not_measured_and_its_patch_is_named() {
    let lab = Lab::new();
    lab.write(
        "templates/two.c.tera",
        "for (i = 0; i < nr; i++)\n\tcells[i].value = i;\n__builtin_trap();\n",
    );
    let said = lab.bench(&[]);
    assert_eq!(said.end, End::Code(1), "{said:?}");
    assert!(
        said.err.contains("patch 2, `by-two`") && said.err.contains("crashed with signal"),
        "{}",
        said.err
    );
}

#[test]
fn a_patch_that_does_not_build_is_named() {
    let lab = Lab::new();
    lab.write(
        "templates/two.c.tera",
        "for (i = 0; i < nr; i++)\n\tcells[i].missing = i;\n",
    );
    let said = lab.bench(&[]);
    assert_eq!(said.end, End::Code(1), "{said:?}");
    assert!(
        said.err
            .contains("patch 2, `by-two`, is not measured: it does not build"),
        "{}",
        said.err
    );
}

#[test]
fn a_harness_that_does_not_notice_its_fault_measures_nothing() {
    let lab = Lab::new();
    lab.write("harness/side.c", &SIDE.replace("FAULT", "0"));
    let said = lab.bench(&[]);
    assert_eq!(said.end, End::Code(4), "{said:?}");
    assert!(
        said.err
            .contains("does not notice planted faults: fault_first"),
        "{}",
        said.err
    );
}

#[test]
fn a_harness_that_breaks_off_gives_no_figures() {
    let said = Lab::new().bench(&["--rounds", "78"]);
    assert_eq!(
        (said.end, said.out.as_str()),
        (End::Code(2), ""),
        "an option twice is refused: {said:?}"
    );
    let lab = Lab::new();
    let task = lab.task(
        "bench",
        lab.base,
        &[
            "--pages", "1024", "--order", "0", "--memory", "touched", "--rounds", "78", "--record",
        ],
    );
    let said = Said::of(&task.run().expect("reroll starts"));
    assert_eq!(
        (said.end, said.out.as_str()),
        (End::Code(4), ""),
        "{said:?}"
    );
    assert!(said.err.contains("out of planted luck"), "{}", said.err);
    assert!(!lab.record().exists());
}

#[test]
fn a_wrong_plan_costs_no_build() {
    let lab = Lab::new();
    for (args, why) in [
        (vec!["--configuration", "icc"], "no configuration `icc`"),
        (vec!["--threads", "9"], "1 to 8 threads"),
        (vec!["--threads", "2"], "nothing to measure"),
    ] {
        let said = lab.bench(&args);
        assert_eq!(said.end, End::Code(2), "{said:?}");
        assert!(said.err.contains(why), "{}", said.err);
    }
    assert!(!lab.path("cache/reroll/lab").exists());
}

/// The process of `reroll bench` on this repository.
fn own_bench(repo: &Path) -> Option<rustix::process::Pid> {
    fs::read_dir("/proc").ok()?.flatten().find_map(|entry| {
        let command = String::from_utf8_lossy(&fs::read(entry.path().join("cmdline")).ok()?)
            .replace('\0', " ");
        let mine = command.contains("reroll bench") && command.contains(repo.to_str()?);
        let pid = entry.file_name().to_str()?.parse().ok()?;
        mine.then(|| rustix::process::Pid::from_raw(pid)).flatten()
    })
}

/// Whether a measurement below `dir` has come as far as the planted hang.
fn hangs(dir: &Path) -> bool {
    let runs = fs::read_dir(dir.join("reroll/lab/run"))
        .into_iter()
        .flatten()
        .flatten();
    runs.map(|run| run.path().join("measure-0.log")).any(|log| {
        fs::read_to_string(log)
            .is_ok_and(|text| text.contains("\"round\":24,\"placement\":0,\"variant\":\"base\""))
    })
}

#[test]
fn an_interrupted_measurement_keeps_its_complete_rounds_and_records_nothing() {
    let lab = Lab::new();
    let args = [
        "--pages", "1024", "--order", "0,9", "--memory", "touched", "--rounds", "77", "--record",
    ];
    let task = lab.task("bench", lab.base, &args);
    let output = std::thread::scope(|scope| {
        let run = scope.spawn(|| task.run());
        let deadline = Instant::now() + Duration::from_mins(2);
        while !hangs(&lab.path("cache")) {
            assert!(Instant::now() < deadline, "it does not get there");
            std::thread::sleep(Duration::from_millis(20));
        }
        let pid = own_bench(&lab.path("kernel.git")).expect("it runs");
        rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("sent");
        run.join().expect("no panic").expect("reroll starts")
    });
    let said = Said::of(&output);
    assert_eq!(said.end, End::Code(130), "{said:?}");
    assert!(
        said.out
            .contains("1024 single pages, touched before, 1 thread, 24 rounds at 8 placements"),
        "{}",
        said.out
    );
    assert!(
        said.out.contains("4.400 (4.40 to 4.40; 9 %)") && !said.out.contains("compound"),
        "{}",
        said.out
    );
    assert!(
        said.err.contains("interrupted") && said.err.contains("nothing was recorded"),
        "{}",
        said.err
    );
    assert!(!lab.record().exists());
}

#[test]
fn nothing_can_be_recorded_beside_the_embedded_series() {
    let lab = Lab::new();
    let task = Task::new(env!("CARGO_BIN_EXE_reroll"))
        .home()
        .env("XDG_CACHE_HOME", lab.path("cache"))
        .dir(lab.dir.path())
        .args([
            "bench",
            "--series",
            "zone-device",
            "--record",
            "--pages",
            "1024",
            "--order",
            "0",
            "--tree",
        ])
        .arg(lab.path("kernel.git"));
    let said = Said::of(&task.run().expect("reroll starts"));
    assert_eq!(said.end, End::Code(2), "{said:?}");
    assert!(said.err.contains("inside this binary"), "{}", said.err);
}

/// Stands in for the kernel half of the real harness.
const KERNEL_HALF: &str = r#"#include <string.h>
#include "khost.h"
#include "user.h"
static unsigned long *memmap, first;
static const struct khost_type types[] = { { "fsdax", 1 }, { "generic", 2 } };
static void one(unsigned long i, unsigned long n) { while (n--) memmap[8 * i++] = 1; }
static void two(unsigned long i, unsigned long n) { while (n--) memmap[8 * i++] = 1; }
const struct variant variants[] = {
	{ "base", one, 0 }, { "p1", two, 0 }, { "p1", two, 1 }, { "base", one, 1 },
};
const unsigned int nr_variants = 4;
void khost_get_layout(struct khost_layout *layout)
{
	*layout = (struct khost_layout){ .page_size = 64, .folio_size = 256, .pages_per_section = 32768, .pages_per_block = 512 };
}
const struct khost_type *khost_types(unsigned int *nr) { *nr = 2; return types; }
void khost_set_memmap(void *start, unsigned long pfn) { memmap = start; first = pfn; }
void khost_set_device(const struct khost_device *dev) { (void)dev; }
void khost_run(void *fn, unsigned int thread, unsigned long pfn, unsigned long nr)
{
	(void)thread;
	((void (*)(unsigned long, unsigned long))fn)(pfn - first, nr);
}
void khost_take_blocks(struct khost_blocks *blocks) { memset(blocks, 0, sizeof(*blocks)); }
"#;

/// The real harness with that half, in `dir`.
#[cfg(target_arch = "x86_64")]
fn real_harness(dir: &Path) -> PathBuf {
    let harness = Path::new(env!("CARGO_MANIFEST_DIR")).join("harness");
    let half = dir.join("half.c");
    fs::write(&half, KERNEL_HALF).expect("written");
    let program = dir.join("program");
    let task = Task::new("gcc")
        .args(["-O1", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(&harness);
    let sources = ["main.c", "bench.c", "verify.c"].map(|name| harness.join(name));
    task.arg("-o")
        .arg(&program)
        .args(sources)
        .arg(&half)
        .arg("-lpthread")
        .output()
        .expect("it compiles");
    program
}

#[test]
#[cfg(target_arch = "x86_64")]
fn the_real_harness_runs_everything_once_a_round_in_a_changing_order() {
    let dir = tempfile::tempdir().expect("a directory");
    let program = real_harness(dir.path());
    let run = |args: &[&str]| {
        Said::of(
            &Task::new(&program)
                .arg("bench")
                .args(args)
                .run()
                .expect("it starts"),
        )
    };
    let said = run(&[
        "--pages",
        "524288",
        "--rounds",
        "8",
        "--order",
        "9",
        "--threads",
        "1,2",
        "--repeat",
        "1",
        "--fresh",
        "0",
    ]);
    assert_eq!(said.end, End::Code(0), "{said:?}");
    let mut rounds: Vec<Vec<String>> = vec![Vec::new(); 16];
    let mut placements: Vec<BTreeSet<u64>> = vec![BTreeSet::new(); 16];
    for line in said.out.lines().filter(|line| line.contains("\"sample\"")) {
        let value: Value = serde_json::from_str(line).expect("JSON");
        let round = usize::try_from(value["round"].as_u64().expect("a round")).expect("small");
        assert!(
            value["cpu_ns"].is_number()
                && value["wall_ns"].is_number()
                && value["retries"].is_number(),
            "{line}"
        );
        placements[round].extend(value["placement"].as_u64());
        rounds[round].push(format!(
            "{} {}",
            value["variant"].as_str().expect("a name"),
            value["threads"]
        ));
    }
    assert!(
        placements.iter().all(|of_round| of_round.len() == 1),
        "{placements:?}"
    );
    for turn in placements.chunks(2) {
        assert_ne!(
            turn[0], turn[1],
            "each placement once before any comes again"
        );
    }
    let turns: BTreeSet<_> = placements.chunks(2).collect();
    assert_eq!(
        turns.len(),
        2,
        "the placements do not always come in one order"
    );
    let orders: BTreeSet<_> = rounds.iter().cloned().collect();
    assert!(orders.len() > 4, "{orders:?}");
    for mut round in rounds {
        round.sort();
        assert_eq!(
            round,
            ["base 1", "base 2", "limit 1", "limit 2", "p1 1", "p1 2"]
        );
    }
    let fresh = run(&[
        "--pages",
        "4096",
        "--rounds",
        "2",
        "--order",
        "0",
        "--threads",
        "1",
        "--fresh",
        "1",
    ]);
    assert_eq!(fresh.out.matches("\"sample\"").count(), 12, "{fresh:?}");
    for wrong in [
        ["--pages", "4096", "--order", "0", "--threads", "2"],
        ["--pages", "4096", "--order", "18", "--threads", "1"],
        ["--pages", "4096", "--order", "0", "--rounds", "0"],
    ] {
        assert_eq!(run(&wrong).end, End::Code(2), "{wrong:?}");
    }
}
