//! The page in a real browser: Debian's chromium, headless, on records that mean harm.
//!
//! Hides how a browser is asked: a copy of the page has `probe.js`, which leaves what it finds in the page.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde_json::{Value, json};

use crate::bot::Play;
use crate::report::measured;
use crate::support::{in_path, left_out};

/// What would tell that data became code.
const HARM: &str = "<script>window.pwned=1</script><img src=x onerror=window.pwned=1>";

/// As narrow as a telephone.
const NARROW: u32 = 360;
const WIDE: u32 = 1200;

/// So tall is a screenshot.
const HEIGHT: u32 = 9000;

/// A directory to leave screenshots in, for a person to look at.
const SCREENSHOTS: &str = "REROLL_TEST_SCREENSHOTS";

/// A colour scheme that the user prefers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scheme {
    Light,
    Dark,
}

/// Which content a page may have.
#[derive(Debug, Clone, Copy)]
enum Policy {
    /// What its own policy says; what that blocks is told to the console, and to the probe.
    Own,
    /// Any: nothing but escaping keeps a script from being run.
    None,
}

/// A page to look at, and the browser.
struct Browser {
    play: Play,
    program: PathBuf,
}

impl Browser {
    /// None where there is no chromium.
    fn new() -> Option<Self> {
        let Some(program) = in_path("chromium") else {
            left_out(
                "the page in a browser",
                "chromium is not there; `tests/run` installs it",
            );
            return None;
        };
        let play = Play::new(crate::bot::QUICK);
        play.write("page.html", page());
        Some(Self { play, program })
    }

    /// Starts it; what it prints.
    fn run(&self, scheme: Scheme, width: u32, args: &[&str], page: &str) -> String {
        let profile = tempfile::tempdir().expect("a directory");
        let url = format!("file://{}", self.play.path(page).display());
        let options = [
            "--headless",
            // Not for root, and not where a machine has no user name spaces; the page is our own.
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--hide-scrollbars",
            "--virtual-time-budget=2000",
        ];
        let preferred = match scheme {
            Scheme::Dark => 0,
            Scheme::Light => 1,
        };
        let mut command = self.play.command(
            &self.program.to_string_lossy(),
            ".",
            &[
                &format!("--user-data-dir={}", profile.path().display()),
                &format!("--window-size={width},1000"),
                &format!("--blink-settings=preferredColorScheme={preferred}"),
            ],
        );
        let output = command
            .args(options)
            .args(args)
            .arg(url)
            .output()
            .expect("it starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    /// What the probe finds in a page at its full width.
    fn probed(&self, page: &str, policy: Policy, scheme: Scheme) -> Value {
        self.play.write("probed.html", &with_probe(page, policy));
        found(&self.run(scheme, WIDE, &["--dump-dom"], "probed.html"))
    }

    /// The same in a frame as wide as a telephone: a window cannot be so narrow.
    fn probed_narrow(&self, page: &str, policy: Policy, scheme: Scheme) -> Value {
        self.play.write("probed.html", &with_probe(page, policy));
        self.play.write("frame.html", &framed("probed.html", 800));
        found(&self.run(scheme, WIDE, &["--dump-dom"], "frame.html"))
    }
}

/// A page that shows another one in a frame, and what the probe there tells.
fn framed(page: &str, height: u32) -> String {
    format!(
        "<!DOCTYPE html><meta charset=\"utf-8\"><body style=\"margin:0\"><iframe src=\"{page}\" style=\"border:0;display:block\" width=\"{NARROW}\" height=\"{height}\"></iframe>\
         <script>addEventListener('message', (it) => {{ const pre = document.createElement('pre'); pre.id = 'found'; pre.textContent = it.data; document.body.append(pre); }});</script>"
    )
}

/// A copy with the probe in front of everything else, and with the page's own policy or with none.
fn with_probe(page: &str, policy: Policy) -> String {
    let probe = include_str!("probe.js");
    let script = format!("<script id=\"probe\" nonce=\"probe\">{probe}</script>");
    let start = page.find("<meta http-equiv=").expect("a policy");
    let end = start + page[start..].find('>').expect("its end") + 1;
    let (before, own, after) = (&page[..start], &page[start..end], &page[end..]);
    let own = match policy {
        Policy::Own => {
            let default = "default-src 'none';";
            assert!(own.contains(default), "{own}");
            own.replace(default, &format!("{default} script-src 'nonce-probe';"))
        }
        Policy::None => String::new(),
    };
    format!("{before}{own}{script}{after}")
}

/// What the probe left.
fn found(dom: &str) -> Value {
    let (_, rest) = dom
        .rsplit_once("<pre id=\"found\">")
        .unwrap_or_else(|| panic!("the probe did not run: {dom}"));
    let text = rest.split_once("</pre>").expect("its end").0;
    let text = text
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&");
    serde_json::from_str(&text).expect("JSON")
}

/// The names of the lists of faults that are not empty.
fn faults(found: &Value) -> Vec<&str> {
    let faults = found["faults"].as_object().expect("an object");
    let bad = |list: &Value| !list.as_array().expect("a list").is_empty();
    let names = faults.iter().filter(|(_, list)| bad(list));
    names.map(|(name, _)| name.as_str()).collect()
}

/// A page with something of every kind, made once: several series, every verdict, and data that would be code if it could.
fn page() -> &'static str {
    static PAGE: OnceLock<String> = OnceLock::new();
    PAGE.get_or_init(make_page)
}

fn make_page() -> String {
    let play = Play::new("");
    let series = play.read("patches/tiny/series.toml");
    let about = series.replace(
        "opening a pool sets it up",
        &format!("opening a pool sets it up {HARM}"),
    );
    play.write("patches/tiny/series.toml", &about);
    let other = series
        .replace("name = \"tiny\"", "name = \"other\"")
        .replace("mm: fill pools", &format!("mm: {HARM} fill pools"));
    play.write("patches/other/series.toml", &other);
    for (path, text) in crate::bot::recipe() {
        play.write(&format!("patches/other/{path}"), text);
    }
    let config = play.read("bot.toml");
    play.write(
        "bot.toml",
        &config.replace("[\"tiny\"]", "[\"tiny\", \"other\"]"),
    );

    play.release(1, "one");
    let long = "a_name_that_never_ends_".repeat(12);
    play.change(
        "pool_put(pool, i);",
        &format!("pool_put(pool, i + {long});"),
    );
    play.release(2, "two");
    play.change(
        "\tpool_seal(pool);",
        &format!("\tpool_sync(pool, \"{HARM}\");\n\tpool_seal(pool);"),
    );
    play.change("\tpool_init(pool);\n", "");
    play.release(3, &format!("mm/pool: {HARM} | [x](y) {long}"));
    play.git("remote", &["tag", "v1.3\"><script>window.pwned=1</script>"]);
    play.bot();
    play.change(&format!("\tpool_sync(pool, \"{HARM}\");\n"), "");
    play.commit("mm/pool: no sync");
    play.merge_patches("v1.2", 1, "Acked-by: Some One <some@example.org>");
    play.release(4, "four");
    play.bot();
    let mut args = vec!["report", "-o", "page.html", "--performance"];
    let files = ["1", "2", "3", "4", "of-no-base"];
    for (number, name) in files.iter().enumerate() {
        let tag = format!("v1.{name}^{{tree}}");
        let (tree, release) = match *name {
            "of-no-base" => ("0".repeat(40), format!("1.5.0-{HARM}")),
            _ => (
                play.git("remote", &["rev-parse", &tag]),
                format!("1.{name}.0"),
            ),
        };
        #[expect(clippy::cast_precision_loss, reason = "five")]
        let slower = number as f64 / 8.0;
        let cpu = format!("A Processor {HARM}");
        let record = measured(&tree, &release, &cpu, [3.6 + slower, 2.6 + slower, 2.5]);
        play.write(name, &record.to_string());
        args.push(name);
    }
    play.reroll(&args, 0);
    play.read("page.html")
}

#[test]
fn the_page_has_no_fault_at_any_width_and_in_any_light() {
    let Some(browser) = Browser::new() else {
        return;
    };
    for (scheme, policy) in [(Scheme::Light, Policy::None), (Scheme::Dark, Policy::Own)] {
        let wide = browser.probed(page(), policy, scheme);
        let narrow = browser.probed_narrow(page(), policy, scheme);
        for (found, width) in [(&wide, WIDE), (&narrow, NARROW)] {
            assert_eq!(found["inner"], width, "{scheme:?}");
            assert_eq!(found["scroll"], width, "{scheme:?}: it does not fit");
            assert_eq!(found["dark"], scheme == Scheme::Dark);
            // A frame has no focus to give.
            let faults: Vec<_> = faults(found)
                .into_iter()
                .filter(|name| width == WIDE || *name != "unfocused")
                .collect();
            assert_eq!(
                faults, [""; 0],
                "{scheme:?}, {width}: {:#}",
                found["faults"]
            );
            assert_eq!(found["landmarks"], json!([1, 1, 1, 1]));
            assert_eq!(found["skip"], "skip");
            assert!(found["focusable"].as_u64() > Some(20), "{found}");
        }
    }
}

#[test]
fn planted_faults_are_seen() {
    let Some(browser) = Browser::new() else {
        return;
    };
    let more = format!(
        "{HARM}<p id=\"results\" style=\"width: 2000px; font-size: 5px; color: #888; background: #999\">x</p><h6>x</h6><a href=\"#nowhere\" style=\"outline: none\">x</a><table style=\"table-layout: fixed; width: 20px\"><tr><td>narrow</td></tr></table></main>"
    );
    let planted = page()
        .replace("</main>", &more)
        .replacen(" scope=\"row\"", "", 1)
        .replacen(
            "role=\"region\" aria-labelledby=\"grid\"",
            "role=\"region\"",
            1,
        );
    let every = [
        "run",
        "scripts",
        "handlers",
        "outside",
        "dead",
        "twice",
        "unscoped",
        "unnamed",
        "levels",
        "unfocused",
        "pale",
        "small",
        "thin",
        "wide",
    ];
    let found = browser.probed(&planted, Policy::None, Scheme::Light);
    assert_eq!(faults(&found), [&["failed"], &every[..]].concat());
    // The page's own policy would keep the script from being run, and say so.
    let found = browser.probed(&planted, Policy::Own, Scheme::Light);
    assert_eq!(
        faults(&found),
        [&["blocked", "failed"], &every[1..]].concat()
    );
    let found = browser.probed_narrow(&planted, Policy::None, Scheme::Light);
    assert!(found["scroll"].as_u64() > Some(1900), "{found}");
}

/// With `REROLL_TEST_SCREENSHOTS` naming a directory, the page and pictures of it are left there.
#[test]
fn the_page_can_be_looked_at() {
    let Some(dir) = std::env::var_os(SCREENSHOTS) else {
        return;
    };
    let browser = Browser::new().expect("chromium");
    let open = page().replace("<details>", "<details open>");
    browser.play.write("page.html", &open);
    fs::write(Path::new(&dir).join("page.html"), open).expect("a page");
    browser
        .play
        .write("frame.html", &framed("page.html", HEIGHT));
    for (name, scheme) in [("light", Scheme::Light), ("dark", Scheme::Dark)] {
        for (width, source) in [(NARROW, "frame.html"), (WIDE, "page.html")] {
            let file = Path::new(&dir).join(format!("{name}-{width}.png"));
            let shot = format!("--screenshot={}", file.display());
            let size = format!("--window-size={width},{HEIGHT}");
            browser.run(scheme, width, &[&shot, &size], source);
        }
    }
}
