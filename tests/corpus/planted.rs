//! Faults planted in the recipe: the judge must call each of them wrong, or its "right" is worth nothing.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::base::{self, Answer, EMITTED};
use crate::judge::{Bench, Case, Judge, Sentence};
use crate::kinds::Kind;
use crate::support::{copy, newest};
use crate::tree::{Files, Step};

/// A fault: a file of the recipe, what is replaced there, and what the judge has to say.
struct Fault {
    name: &'static str,
    file: &'static str,
    from: &'static str,
    to: &'static str,
    says: &'static str,
}

const FAULTS: [Fault; 6] = [
    Fault {
        name: "a word that is not copied",
        file: "templates/page-copy.c.tera",
        from: "@% if stream %@zone_device_store_u64(&dst[1], src[1], stream);@% else %@dst[1] = src[1];@% endif %@",
        to: "",
        says: "patch 2 differs",
    },
    Fault {
        name: "a word that only streams leave out",
        file: "templates/page-copy.c.tera",
        from: "zone_device_store_u64(&dst[3], src[3], stream);",
        to: "if (!stream) zone_device_store_u64(&dst[3], src[3], stream);",
        says: "patch 4 differs",
    },
    Fault {
        name: "a tail that counts as used",
        file: "templates/compound-copies.c.tera",
        from: "template = *pfn_to_page(pfn - 1);\n",
        to: "template = *pfn_to_page(pfn - 1);\natomic_set(&template._refcount, 1);\n",
        says: "patch 3 differs",
    },
    Fault {
        name: "a variable that nobody uses",
        file: "templates/stream-memmap.c.tera",
        from: "{\n",
        to: "{\n\tint planted;\n\n",
        says: "patch 4 brings a warning",
    },
    Fault {
        name: "a member that no page has",
        file: "templates/template-set-pfn.c.tera",
        from: "{\n",
        to: "{\n\ttemplate->planted = 0;\n",
        says: "patch 2 does not compile",
    },
    Fault {
        name: "a crash",
        file: "templates/template-set-pfn.c.tera",
        from: "{\n",
        to: "{\n\tBUG_ON(pfn & 1);\n",
        says: "crashes",
    },
];

/// A copy of the recipe with a fault in it.
fn recipe(dir: &Path, fault: Option<&Fault>) -> PathBuf {
    let project = Path::new(env!("CARGO_MANIFEST_DIR"));
    let series = dir.join("zone-device");
    for (from, to) in [
        ("patches/zone-device", ""),
        ("templates/zone-device", "templates"),
    ] {
        copy(&project.join(from), &series.join(to));
    }
    copy(&project.join("harness"), &series.join("harness"));
    if let Some(fault) = fault {
        let path = series.join(fault.file);
        let text = std::fs::read_to_string(&path).expect("a file of the recipe");
        assert!(
            text.contains(fault.from),
            "`{}` is in the recipe",
            fault.from
        );
        let text = text.replacen(fault.from, fault.to, 1);
        std::fs::write(path, text).expect("it is written");
    }
    series
}

/// Plants each fault, and a base that does not compile; what was missed is the error.
pub(crate) fn check() -> Result<(), String> {
    let Some(kernel) = newest() else {
        return Ok(());
    };
    let paths = EMITTED.map(str::to_owned).into();
    let bench = Bench::prepare(kernel, &paths).map_err(|error| format!("{error:#}"))?;
    let judge = Judge::new(&bench).map_err(|error| format!("{error:#}"))?;
    let kind = Kind::nothing();
    let sentence = |drift: &Files, patches: &[(String, Files)]| {
        let case = Case {
            kind: &kind,
            drift,
            patches,
        };
        judge.judge(&case).map_err(|error| format!("{error:#}"))
    };
    for fault in [None].into_iter().chain(FAULTS.iter().map(Some)) {
        let dir = TempDir::new().expect("a directory");
        let series = recipe(dir.path(), fault);
        let steps = [Step {
            message: "the base as it is\n".to_owned(),
            files: Files::new(),
        }];
        let Answer::Carried(patches) = base::regen(kernel, &steps, Some(&series)) else {
            return Err(format!("the recipe does not do for {}", kernel.name));
        };
        let found = sentence(&Files::new(), &patches)?;
        let expected = match (fault, &found) {
            (None, found) => *found == Sentence::Right,
            (Some(fault), Sentence::Wrong(what)) => what.contains(fault.says),
            _ => false,
        };
        if !expected {
            let name = fault.map_or("no fault", |fault| fault.name);
            return Err(format!("the judge says of {name}: {found:?}"));
        }
    }
    let broken = Files::from([("mm/mm_init.c".to_owned(), b"int broken\n".to_vec())]);
    match sentence(&broken, &[])? {
        Sentence::Mistake(_) => Ok(()),
        found => Err(format!(
            "the judge says of a base that does not compile: {found:?}"
        )),
    }
}
