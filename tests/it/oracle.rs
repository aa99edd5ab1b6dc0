//! The shipped series on real kernels, held against git: what git writes for the same commits, and what it makes of our mails.
//!
//! Hides which lines of a cover letter are ours alone, and how repositories of every kind come into being.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use bstr::{BString, ByteSlice};
use serde_json::Value;

use crate::support::{AUTHOR, Kernel, Program, Sandbox, Store, assert_same, kernels, newest};

/// The commits of a series, as `--json` reports them.
struct Series {
    base: String,
    commits: Vec<Commit>,
}

struct Commit {
    id: String,
    tree: String,
    files: Vec<String>,
}

impl Series {
    fn of(report: &Value) -> Self {
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        let list = |value: &Value| value.as_array().expect("a list").clone();
        let commit = |value: &Value| Commit {
            id: text(&value["commit"]),
            tree: text(&value["tree"]),
            files: list(&value["files"]).iter().map(text).collect(),
        };
        Self {
            base: text(&report["base"]["commit"]),
            commits: list(&report["commits"]).iter().map(commit).collect(),
        }
    }

    fn tip(&self) -> &str {
        &self.commits.last().expect("patches").id
    }

    fn files(&self) -> Vec<&str> {
        let mut files: Vec<_> = self
            .commits
            .iter()
            .flat_map(|commit| &commit.files)
            .map(String::as_str)
            .collect();
        files.sort_unstable();
        files.dedup();
        files
    }
}

fn regen(sandbox: &Sandbox, tree: &Path, rev: &str, out: &str) -> Program {
    let program = sandbox.reroll([
        "regen",
        "--author",
        AUTHOR,
        "--signoff",
        "--base",
        rev,
        "-o",
        out,
    ]);
    program.arg("--tree").arg(tree)
}

/// The series on a kernel, with its commits in a repository beside it and its mails in `out`.
fn on(sandbox: &Sandbox, kernel: &Kernel) -> (Store, Series) {
    let store = Store::beside(sandbox, "store.git", kernel);
    let ran = regen(sandbox, &store.path, &kernel.commit_id.to_string(), "out")
        .args(["--json", "--ref", "refs/heads/series"])
        .run()
        .expect_exit(0);
    let series = Series::of(&ran.json());
    (store, series)
}

/// The mails of a directory, in order.
fn mails(sandbox: &Sandbox, dir: &str) -> Vec<(String, BString)> {
    sandbox
        .files(dir)
        .into_iter()
        .filter(|(name, _)| name.ends_with(".patch"))
        .collect()
}

/// A repository with a work tree that has nothing but the attributes of the base; its objects are those of `store`.
fn work_tree(sandbox: &Sandbox, store: &Store, kernel_tree: &str) -> PathBuf {
    let work = sandbox.path("work");
    sandbox.git(["init", "-q", "work"]).run().expect_exit(0);
    let objects = format!("{}\n", store.path.join("objects").display());
    fs::write(work.join(".git/objects/info/alternates"), objects).expect("alternates");
    fs::write(
        work.join(".gitattributes"),
        store.file(kernel_tree, ".gitattributes"),
    )
    .expect("attributes");
    work
}

#[test]
fn on_every_kernel_there_are_a_cover_letter_and_four_patches() {
    for kernel in kernels() {
        let sandbox = Sandbox::new();
        let (store, series) = on(&sandbox, kernel);
        let names: Vec<_> = mails(&sandbox, "out")
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        let prefixes: Vec<_> = names.iter().map(|name| &name[..5]).collect();
        assert_eq!(
            prefixes,
            ["0000-", "0001-", "0002-", "0003-", "0004-"],
            "{}",
            kernel.name
        );
        assert_eq!(names[0], "0000-cover-letter.patch");
        assert_eq!(series.commits.len(), 4);
        assert_eq!(series.base, kernel.commit_id.to_string());
        let tip = store
            .repo
            .reference("refs/heads/series")
            .expect("a ref")
            .expect("it is there");
        assert_eq!(tip.to_string(), series.tip());
        let mut files = series.files();
        files.retain(|file| !file.ends_with("struct_page_init.h"));
        assert_eq!(
            files,
            ["include/asm-generic/Kbuild", kernel.home()],
            "{}",
            kernel.name
        );
    }
}

#[test]
fn git_am_rebuilds_the_very_same_files_messages_and_authors() {
    for kernel in kernels() {
        let sandbox = Sandbox::new();
        let (store, series) = on(&sandbox, kernel);
        sandbox.git(["init", "-q", "am"]).run().expect_exit(0);
        for path in series.files() {
            let base = store
                .repo
                .file(kernel.tree_id, path.into())
                .expect("a tree");
            if let Some(file) = base {
                sandbox.write(Path::new("am").join(path), file.bytes);
            }
        }
        let git = |args: &[&str]| sandbox.git(args).dir(sandbox.path("am"));
        git(&["add", "-A", "-f"]).run().expect_exit(0);
        git(&["commit", "-q", "-m", "base"]).run().expect_exit(0);
        let dir = sandbox.path("out");
        let names = mails(&sandbox, "out").into_iter().skip(1);
        let paths: Vec<_> = names.map(|(name, _)| dir.join(name)).collect();
        git(&["am", "-q"]).args(&paths).run().expect_exit(0);
        for (at, commit) in series.commits.iter().enumerate() {
            let rev = format!("HEAD~{}", series.commits.len() - 1 - at);
            for path in series.files() {
                let theirs = git(&["rev-parse", "-q", "--verify", &format!("{rev}:{path}")])
                    .run()
                    .stdout;
                let ours = sandbox.git([
                    "rev-parse",
                    "-q",
                    "--verify",
                    &format!("{}:{path}", commit.id),
                ]);
                let ours = ours.env("GIT_DIR", &store.path).run().stdout;
                assert_eq!(
                    theirs,
                    ours,
                    "{}: {path} after patch {}",
                    kernel.name,
                    at + 1
                );
            }
            let format = "--format=%an%n%ae%n%ad%n%B";
            let theirs = git(&["log", "-1", "--date=raw", format, &rev])
                .run()
                .expect_exit(0)
                .stdout;
            let ours = sandbox
                .git(["log", "-1", "--date=raw", format, &commit.id])
                .env("GIT_DIR", &store.path);
            assert_same(
                &theirs,
                &ours.run().expect_exit(0).stdout,
                &format!("{}: patch {}", kernel.name, at + 1),
            );
        }
    }
}

#[test]
fn the_mails_applied_to_the_whole_tree_give_the_trees_of_the_commits() {
    for kernel in kernels() {
        let sandbox = Sandbox::new();
        let (store, series) = on(&sandbox, kernel);
        let git = |args: &[&str]| {
            sandbox
                .git(args)
                .env("GIT_DIR", &store.path)
                .env("GIT_INDEX_FILE", sandbox.path("index"))
        };
        git(&["read-tree", &kernel.tree_id.to_string()])
            .run()
            .expect_exit(0);
        for ((name, _), commit) in mails(&sandbox, "out").iter().skip(1).zip(&series.commits) {
            let mail = sandbox.path("out").join(name);
            git(&["apply", "--cached"]).arg(mail).run().expect_exit(0);
            let tree = git(&["write-tree"]).run().expect_exit(0).stdout;
            assert_eq!(
                tree.trim().as_bstr(),
                commit.tree,
                "{}: {name}",
                kernel.name
            );
        }
        let fsck = sandbox.git([
            "fsck",
            "--strict",
            "--no-dangling",
            "--connectivity-only",
            series.tip(),
        ]);
        fsck.env("GIT_DIR", &store.path).run().expect_exit(0);
    }
}

#[test]
fn git_format_patch_writes_the_same_bytes() {
    for kernel in kernels() {
        let sandbox = Sandbox::new();
        let (store, series) = on(&sandbox, kernel);
        regen(
            &sandbox,
            &store.path,
            &kernel.commit_id.to_string(),
            "plain",
        )
        .arg("--no-thread")
        .run()
        .expect_exit(0);
        let args = ["--no-thread"];
        compare_with_format_patch(&sandbox, &store, kernel, &series, "plain", &args);
    }
}

#[test]
fn options_for_the_subject_the_sender_and_recipients_give_gits_bytes_too() {
    let Some(kernel) = newest() else { return };
    let sandbox = Sandbox::new();
    let (store, series) = on(&sandbox, kernel);
    let sender = "Sénder, Junior <sender@example.org>";
    regen(
        &sandbox,
        &store.path,
        &kernel.commit_id.to_string(),
        "plain",
    )
    .args(["--no-thread", "-v", "12", "--rfc", "--from", sender])
    .args(["--to", "One <one@example.org>", "--cc", "two@example.org"])
    .run()
    .expect_exit(0);
    let from = format!("--from={sender}");
    let args = ["--no-thread", "-v12", "--rfc", &from];
    compare_with_format_patch(&sandbox, &store, kernel, &series, "plain", &args);
}

/// Compares a directory of ours with what git writes for the same commits.
fn compare_with_format_patch(
    sandbox: &Sandbox,
    store: &Store,
    kernel: &Kernel,
    series: &Series,
    dir: &str,
    args: &[&str],
) {
    let work = work_tree(sandbox, store, &kernel.commit_id.to_string());
    let ours = mails(sandbox, dir);
    // Who writes the cover letter is, to git, who runs it.
    let from = args.iter().find_map(|arg| arg.strip_prefix("--from="));
    let people = from.unwrap_or(AUTHOR).split_once(" <").expect("an address");
    let base = store.repo.base(&series.base).expect("a base");
    let date = format!("{} +0000", base.time);
    let recipients = |name: &str, option: &str| {
        let addresses = header_values(&ours[0].1, name).into_iter();
        addresses
            .map(|address| format!("--{option}={address}"))
            .collect::<Vec<_>>()
    };
    let range = format!("{}..{}", series.base, series.tip());
    sandbox
        .git([
            "-c",
            "core.abbrev=12",
            "format-patch",
            "-q",
            "--cover-letter",
            "-o",
        ])
        .arg(sandbox.path("gits"))
        .arg(format!("--signature=reroll {}", env!("CARGO_PKG_VERSION")))
        .args(recipients("To", "to"))
        .args(recipients("Cc", "cc"))
        .args(args)
        .arg(range)
        .dir(&work)
        .env("GIT_COMMITTER_NAME", people.0)
        .env("GIT_COMMITTER_EMAIL", people.1.trim_end_matches('>'))
        .env("GIT_COMMITTER_DATE", date)
        .run()
        .expect_exit(0);
    let gits = mails(sandbox, "gits");
    let names = |mails: &[(String, BString)]| {
        mails
            .iter()
            .map(|(name, _)| name.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&ours), names(&gits), "{}", kernel.name);
    for ((name, ours), (_, gits)) in ours.iter().zip(&gits).skip(1) {
        assert_same(ours, gits, &format!("{}: {name}", kernel.name));
    }
    let ours = without_our_own(&ours[0].1);
    let gits = with_our_words(&gits[0].1, &ours);
    assert_same(&ours, &gits, &format!("{}: the cover letter", kernel.name));
}

/// The addresses of a header of recipients, unfolded.
fn header_values(mail: &[u8], name: &str) -> Vec<String> {
    let head = mail.to_str_lossy();
    let head = head
        .split("\n\n")
        .next()
        .unwrap_or_default()
        .replace("\n ", " ");
    let label = format!("{name}: ");
    let values = head.lines().filter_map(|line| line.strip_prefix(&label));
    values
        .flat_map(|value| value.split(','))
        .map(|address| address.trim().to_owned())
        .collect()
}

/// A cover letter without the line of the change id, and the blank line that it needs where no base is named.
fn without_our_own(cover: &[u8]) -> Vec<u8> {
    let text = cover.to_str().expect("UTF-8");
    let at = text.find("change-id: ").expect("a change id");
    let (before, after) = (&text[..at], &text[at..]);
    let before = if text.contains("\nbase-commit: ") {
        before
    } else {
        before.strip_suffix('\n').expect("a blank line")
    };
    let rest = after.split_once('\n').expect("a line").1;
    // An author who is not in ASCII, or a blurb, makes our cover letter say so; git looks at the commits.
    let mime = "MIME-Version: 1.0\nContent-Type: text/plain; charset=UTF-8\nContent-Transfer-Encoding: 8bit\n";
    format!("{before}{rest}")
        .replacen(mime, "", usize::from(text.is_ascii()))
        .into_bytes()
}

/// git's cover letter with the subject and the text of ours in the place of its own.
fn with_our_words(gits: &[u8], ours: &[u8]) -> Vec<u8> {
    let ours = ours.to_str().expect("UTF-8");
    let (head, body) = ours.split_once("\n\n").expect("a header");
    let subject = head.split_once("\nSubject: [").expect("a subject").1;
    let subject = subject.split_once("] ").expect("a bracket").1;
    let subject = subject.lines().next().expect("a line");
    let blurb = body
        .split_once("\n\nA U Thor (4):")
        .expect("the list of patches")
        .0;
    let gits = gits.to_str().expect("UTF-8");
    assert!(gits.contains("*** SUBJECT HERE ***") && gits.contains("*** BLURB HERE ***"));
    gits.replace("*** SUBJECT HERE ***", subject)
        .replace("*** BLURB HERE ***", blurb)
        .into_bytes()
}

#[test]
fn the_diffstat_of_each_mail_is_git_diffs() {
    for kernel in kernels() {
        let sandbox = Sandbox::new();
        let (store, series) = on(&sandbox, kernel);
        let base = kernel.commit_id.to_string();
        let mut before = base.clone();
        let mut pairs = vec![(base, series.tip().to_owned())];
        for commit in &series.commits {
            pairs.push((
                std::mem::replace(&mut before, commit.id.clone()),
                commit.id.clone(),
            ));
        }
        for ((name, mail), (from, to)) in mails(&sandbox, "out").iter().zip(&pairs) {
            let stat = sandbox
                .git(["diff", "--stat=72", "--summary", from, to])
                .env("GIT_DIR", &store.path);
            let stat = stat.run().expect_exit(0).stdout;
            assert!(
                mail.contains_str(&stat),
                "{}: {name}\n{mail}\n--- git says\n{stat}",
                kernel.name
            );
        }
    }
}

#[test]
fn mails_are_threaded_below_the_cover_letter_by_ids_that_hold_no_time() {
    let Some(kernel) = newest() else { return };
    let sandbox = Sandbox::new();
    on(&sandbox, kernel);
    let mails = mails(&sandbox, "out");
    let id = |mail: &BString| header_values(mail, "Message-ID").remove(0);
    let cover = [id(&mails[0].1)];
    let mut ids = cover.to_vec();
    for (name, mail) in mails.iter().skip(1) {
        assert_eq!(header_values(mail, "In-Reply-To"), cover, "{name}");
        assert_eq!(header_values(mail, "References"), cover, "{name}");
        ids.push(id(mail));
    }
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 5, "no id comes twice");
    // Another version is another thread.
    regen(
        &sandbox,
        &sandbox.path("store.git"),
        &kernel.commit_id.to_string(),
        "v2",
    )
    .args(["-v", "2"])
    .run()
    .expect_exit(0);
    let second = self::mails(&sandbox, "v2");
    assert!(ids.iter().all(|known| *known != id(&second[0].1)));
}

/// A slice of a kernel with a history of two commits, and what a run on it writes.
fn sliced(sandbox: &Sandbox, kernel: &Kernel) -> (Store, String, BTreeMap<String, BString>) {
    let (store, import) = kernel.slice(sandbox, "slice.git");
    let tree_id = store
        .repo
        .base(&import.to_string())
        .expect("a commit")
        .tree_id;
    let tip = store
        .commit(tree_id, Some(import), "mm: the newest change of upstream\n")
        .to_string();
    store.publish(&tip);
    for key in ["uploadpack.allowFilter", "uploadpack.allowAnySHA1InWant"] {
        sandbox
            .git(["config", key, "true"])
            .env("GIT_DIR", &store.path)
            .run()
            .expect_exit(0);
    }
    regen(sandbox, &store.path, &tip, "bare")
        .run()
        .expect_exit(0);
    let files = sandbox.files("bare");
    assert_eq!(files.len(), 5, "five mails");
    (store, tip, files)
}

#[test]
fn every_kind_of_repository_gives_the_same_bytes() {
    let Some(kernel) = newest() else { return };
    let sandbox = Sandbox::new();
    let (store, tip, expected) = sliced(&sandbox, kernel);
    let bare = store.path.to_str().expect("plain");
    let url = format!("file://{bare}");
    let clone = |args: &[&str]| sandbox.git(["clone", "-q"]).args(args).run().expect_exit(0);
    clone(&[bare, "work"]);
    clone(&["--shared", "--no-checkout", bare, "alternates"]);
    clone(&["--depth=1", &url, "shallow"]);
    clone(&["--filter=blob:none", "--no-checkout", &url, "blobless"]);
    clone(&[
        "--filter=tree:0",
        "--no-checkout",
        "--bare",
        &url,
        "treeless",
    ]);
    clone(&[
        "--depth=1",
        "--filter=blob:none",
        "--bare",
        &url,
        "shallow-blobless",
    ]);
    sandbox
        .git(["worktree", "add", "-q", "--detach", "../linked"])
        .dir(sandbox.path("work"))
        .run()
        .expect_exit(0);
    for kind in [
        "work",
        "linked",
        "alternates",
        "shallow",
        "blobless",
        "treeless",
        "shallow-blobless",
        "work/.git",
    ] {
        let out = format!("out-{}", kind.replace('/', "-"));
        regen(&sandbox, &sandbox.path(kind), "HEAD", &out)
            .run()
            .expect_exit(0);
        assert_eq!(sandbox.files(&out), expected, "{kind}");
    }
    // What a work tree holds is nobody's business, nor is its index: reading a kernel's takes longer than all else together.
    sandbox.write("linked/.gitattributes", "* -diff\n");
    sandbox.write("work/.git/worktrees/linked/index", "no index\n");
    regen(&sandbox, &sandbox.path("linked"), "HEAD", "beside")
        .run()
        .expect_exit(0);
    assert_eq!(sandbox.files("beside"), expected);
    // Run from inside, with nothing said: the tree that one stands in, and its HEAD.
    let args = ["regen", "--author", AUTHOR, "-s", "-o"];
    sandbox
        .reroll(args)
        .arg(sandbox.path("inside"))
        .dir(sandbox.path("linked/mm"))
        .run()
        .expect_exit(0);
    assert_eq!(sandbox.files("inside"), expected);
    assert!(
        store
            .repo
            .reference("refs/heads/main")
            .expect("a ref")
            .is_some_and(|id| id.to_string() == tip)
    );
}

#[test]
fn what_was_not_asked_for_is_not_touched() {
    let Some(kernel) = newest() else { return };
    let sandbox = Sandbox::new();
    let (store, ..) = sliced(&sandbox, kernel);
    let bare = store.path.to_str().expect("plain");
    sandbox
        .git(["clone", "-q", bare, "work"])
        .run()
        .expect_exit(0);
    sandbox.write("work/mm/mm_init.c", "not what HEAD has\n");
    let state = || {
        (
            sandbox.listing("work"),
            sandbox.read("work/.git/index"),
            sandbox.read("work/.git/HEAD"),
            sandbox.read("work/mm/mm_init.c"),
        )
    };
    let before = state();
    for args in [&["--dry-run"][..], &["--mbox", "all.mbox"], &[]] {
        let program = sandbox
            .reroll(["regen", "--author", AUTHOR, "-s", "--tree"])
            .arg(sandbox.path("work"));
        program.args(args).run().expect_exit(0);
        assert_eq!(state(), before, "{args:?}");
    }
    assert!(
        sandbox
            .path("outgoing/zone-device/v1/0000-cover-letter.patch")
            .exists()
    );
    // A named ref is written, and the objects that it needs; nothing else.
    let program = sandbox.reroll([
        "regen",
        "--author",
        AUTHOR,
        "-s",
        "--ref",
        "refs/heads/new",
        "--tree",
    ]);
    program.arg(sandbox.path("work")).run().expect_exit(0);
    let (listing, index, head, file) = state();
    assert_eq!((&index, &head, &file), (&before.1, &before.2, &before.3));
    let new: Vec<_> = listing
        .iter()
        .filter(|path| !before.0.contains(path))
        .collect();
    let known = |path: &&&String| {
        path.starts_with(".git/objects/")
            || path.starts_with(".git/refs/heads/new")
            || path.starts_with(".git/logs/")
    };
    assert!(new.iter().all(|path| known(&path)), "{new:?}");
    assert!(new.iter().any(|path| *path == ".git/refs/heads/new"));
    let status = sandbox
        .git(["status", "--porcelain", "-uno"])
        .dir(sandbox.path("work"))
        .run()
        .expect_exit(0);
    assert_eq!(status.stdout, " M mm/mm_init.c\n");
}

#[test]
fn no_configuration_or_environment_of_the_user_changes_a_byte() {
    let Some(kernel) = newest() else { return };
    let sandbox = Sandbox::new();
    let (store, tip, expected) = sliced(&sandbox, kernel);
    let hostile = "\
[user]\n\tname = Somebody Else\n\temail = else@example.org\n
[author]\n\tname = Nobody\n\temail = nobody@example.org\n
[core]\n\tabbrev = 40\n\tattributesFile = ~/attributes\n\tquotePath = false\n\tautocrlf = true\n\teol = crlf\n\tpager = false\n
[diff]\n\talgorithm = histogram\n\tcontext = 9\n\tinterHunkContext = 20\n\tnoprefix = true\n\tmnemonicPrefix = true\n\tsrcPrefix = x/\n\tdstPrefix = y/\n\torderFile = ~/order\n\tsuppressBlankEmpty = true\n\trenames = copies\n\tindentHeuristic = false\n\tstatGraphWidth = 5\n\tstatNameWidth = 8\n\texternal = false\n
[diff \"cpp\"]\n\txfuncname = nothing\n
[format]\n\tsignature = mine\n\tsubjectPrefix = MINE\n\tthread = deep\n\theaders = \"X-Mine: 1\\n\"\n\tto = mine@example.org\n\tcc = mine@example.org\n\tattach\n\tsignOff = true\n\tnumbered = false\n\tsuffix = .mail\n\tfilenameMaxLength = 20\n\tuseAutoBase = true\n\tcoverLetter = false\n\tfrom = true\n
[i18n]\n\tcommitEncoding = ISO-8859-1\n\tlogOutputEncoding = ISO-8859-1\n
[commit]\n\tgpgSign = true\n\ttemplate = ~/none\n
[mailmap]\n\tfile = ~/mailmap\n
[safe]\n\tdirectory = *\n";
    sandbox.write("home/.gitconfig", hostile);
    sandbox.write("home/attributes", "* -diff\n");
    sandbox.write("home/order", "mm/*\narch/*\n");
    sandbox.write(
        "home/mailmap",
        "Mapped <mapped@example.org> <author@example.org>\n",
    );
    let own = store.path.join("config");
    let config = fs::read_to_string(&own).expect("a configuration");
    fs::write(
        &own,
        format!(
            "{config}\n{}",
            hostile.replace("[safe]\n\tdirectory = *\n", "")
        ),
    )
    .expect("it is written");
    regen(&sandbox, &store.path, &tip, "hostile")
        .without("GIT_CONFIG_GLOBAL")
        .without("GIT_CONFIG_NOSYSTEM")
        .env("LANG", "de_DE.UTF-8")
        .env("LC_ALL", "tr_TR.UTF-8")
        .env("LANGUAGE", "de")
        .env("TZ", "Pacific/Chatham")
        .env("COLUMNS", "40")
        .env("TERM", "xterm-256color")
        .env("CLICOLOR_FORCE", "1")
        .env("GIT_DIFF_OPTS", "--unified=1")
        .env("GIT_EXTERNAL_DIFF", "false")
        .env("GIT_DIR", "/nowhere")
        .env("GIT_WORK_TREE", "/nowhere")
        .env("GIT_INDEX_FILE", "/nowhere")
        .env("GIT_OBJECT_DIRECTORY", "/nowhere")
        .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", "/nowhere")
        .env("GIT_NAMESPACE", "nowhere")
        .env("SOURCE_DATE_EPOCH", "1")
        .run()
        .expect_exit(0);
    assert_eq!(sandbox.files("hostile"), expected);
}

#[test]
fn a_second_run_writes_nothing_and_gives_the_same_ids() {
    let Some(kernel) = newest() else { return };
    let sandbox = Sandbox::new();
    let (store, tip, expected) = sliced(&sandbox, kernel);
    let ran = || {
        let program =
            regen(&sandbox, &store.path, &tip, "bare").args(["--json", "--ref", "refs/heads/new"]);
        program.run().expect_exit(0)
    };
    let first = ran();
    let objects = sandbox.listing("slice.git");
    let written = |name: &String| {
        fs::metadata(sandbox.path("bare").join(name))
            .and_then(|found| found.modified())
            .expect("a time")
    };
    let times: Vec<_> = expected.keys().map(written).collect();
    let second = ran().says(&["unchanged: 5 mails", "unchanged: refs/heads/new"]);
    assert_eq!(second.json(), first.json());
    assert_eq!(sandbox.listing("slice.git"), objects);
    assert_eq!(expected.keys().map(written).collect::<Vec<_>>(), times);
    assert_eq!(sandbox.files("bare"), expected);
}

#[test]
fn one_mbox_holds_what_the_files_hold_and_git_am_takes_it() {
    let Some(kernel) = newest() else { return };
    let sandbox = Sandbox::new();
    let (store, tip, files) = sliced(&sandbox, kernel);
    let mbox = |to: &str| {
        sandbox
            .reroll([
                "regen", "--author", AUTHOR, "-s", "--mbox", to, "--base", &tip, "--tree",
            ])
            .arg(&store.path)
    };
    mbox("all.mbox").run().expect_exit(0);
    let all = sandbox.read("all.mbox");
    assert_same(
        &mbox("-").run().expect_exit(0).stdout,
        &all,
        "standard output",
    );
    // As `git format-patch --stdout` has it: one after the other, with an empty line between.
    let mails = files.iter().filter(|(name, _)| name.ends_with(".patch"));
    let mails: Vec<&[u8]> = mails.map(|(_, mail)| mail.as_slice()).collect();
    assert_same(&all, &mails.join(&b"\n"[..]), "the mails");
    sandbox
        .git(["clone", "-q"])
        .arg(&store.path)
        .arg("work")
        .run()
        .expect_exit(0);
    fs::create_dir(sandbox.path("split")).expect("a directory");
    let count = sandbox
        .git(["mailsplit", "-osplit", "all.mbox"])
        .run()
        .expect_exit(0)
        .stdout;
    assert_eq!(count, "5\n");
    // The first is the cover letter, which has no patch.
    let patches: Vec<_> = ["0002", "0003", "0004", "0005"]
        .iter()
        .map(|name| sandbox.path("split").join(name))
        .collect();
    sandbox
        .git(["am", "-q"])
        .args(patches)
        .dir(sandbox.path("work"))
        .run()
        .expect_exit(0);
}

#[test]
fn only_a_commit_that_others_can_have_is_named_as_the_base() {
    let Some(kernel) = newest() else { return };
    let sandbox = Sandbox::new();
    let (store, tip, files) = sliced(&sandbox, kernel);
    let cover = |files: &BTreeMap<String, BString>| files["0000-cover-letter.patch"].clone();
    let line = format!("\nbase-commit: {tip}\nchange-id: ");
    assert!(cover(&files).contains_str(&line), "{}", cover(&files));
    assert_eq!(
        files
            .values()
            .filter(|mail| mail.contains_str("base-commit"))
            .count(),
        1
    );

    let tree_id = store.repo.base(&tip).expect("a commit").tree_id;
    let parent = Some(store.repo.base(&tip).expect("a commit").commit_id);
    let import = store
        .commit(tree_id, parent, "Linux\n\nReroll-import: directory\n")
        .to_string();
    let root = store.commit(tree_id, None, "Linux\n").to_string();
    let own = store
        .commit(tree_id, parent, "mm: a change that nobody else has\n")
        .to_string();
    let released = "the released source of Linux";
    let not_public = "a commit that has not been published";
    for (name, rev, words) in [
        ("import", &import, released),
        ("root", &root, released),
        ("own", &own, not_public),
    ] {
        let ran = regen(&sandbox, &store.path, rev, name).run().expect_exit(0);
        assert_eq!(
            ran.stderr
                .contains("note: the mails have no `base-commit:`"),
            name == "own",
            "{}",
            ran.stderr
        );
        let files = sandbox.files(name);
        let told: Vec<_> = files
            .values()
            .filter(|mail| mail.contains_str("base-commit") || mail.contains_str(rev))
            .collect();
        assert!(told.is_empty(), "{name}: {told:?}");
        assert!(
            cover(&files).contains_str(words),
            "it says what it applies to instead"
        );
    }
}

#[test]
fn no_message_speaks_of_what_a_base_does_not_have() {
    for kernel in kernels() {
        let sandbox = Sandbox::new();
        let (store, series) = on(&sandbox, kernel);
        let mails = mails(&sandbox, "out");
        let text = mails.iter().map(|(_, mail)| {
            mail.split_str("\n---\n")
                .next()
                .unwrap_or_default()
                .to_str_lossy()
        });
        let text: String = text.collect();
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let facts = sandbox
            .reroll([
                "facts",
                "--json",
                "--base",
                &kernel.commit_id.to_string(),
                "--tree",
            ])
            .arg(&store.path);
        let facts = facts.run().expect_exit(0).json();
        let fact = |name: &str| {
            let all = facts["facts"].as_array().expect("facts");
            let found = all
                .iter()
                .find(|fact| fact["name"] == name)
                .unwrap_or_else(|| panic!("{name}"));
            assert!(!found["place"].as_str().expect("a place").is_empty());
            found["value"].as_bool().expect("a flag")
        };
        let code = store.file(series.tip(), kernel.home());
        let name = &kernel.name;
        assert_eq!(text.contains("32 bits"), !fact("only_64bit"), "{name}");
        assert_eq!(
            code.contains_str("IS_ENABLED(CONFIG_64BIT)"),
            !fact("only_64bit"),
            "{name}"
        );
        assert_eq!(
            text.contains("page by page"),
            fact("pageblock_in_page"),
            "{name}"
        );
        assert_eq!(
            text.contains("The switch over the memory types"),
            fact("refcount_by_switch"),
            "{name}"
        );
        assert_eq!(
            text.contains("by the index"),
            fact("tail_by_index"),
            "{name}"
        );
        for word in ["@{", "@%", "TODO", "TBD"] {
            assert!(!text.contains(word), "{name}: {word}");
        }
    }
}
