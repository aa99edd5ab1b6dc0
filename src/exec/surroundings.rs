//! What a child sees of the environment that reroll was started in.
//!
//! Hides the lists: what is not in one of them never reaches a child, so that nothing that somebody has set for other work (`GIT_DIR`,
//! `PERL5OPT`, `MAKEFLAGS`, a `~/.checkpatch.conf`) can change what is found.

use std::ffi::OsString;

type Variables = Vec<(OsString, OsString)>;

/// Where programs and temporary files are.
const PLAIN: [&str; 2] = ["PATH", "TMPDIR"];

/// The home of a child that needs none: no file can lie below it, and git and perl take that for "there is none".
pub(super) const NO_HOME: &str = "/dev/null";

/// What it takes to reach another machine, and to be let in there.
const NETWORK: [&str; 46] = [
    "HOME",
    "XDG_CONFIG_HOME",
    "XDG_CACHE_HOME",
    "XDG_RUNTIME_DIR",
    "USER",
    "LOGNAME",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "DBUS_SESSION_BUS_ADDRESS",
    "http_proxy",
    "https_proxy",
    "HTTPS_PROXY",
    "ftp_proxy",
    "FTP_PROXY",
    "all_proxy",
    "ALL_PROXY",
    "no_proxy",
    "NO_PROXY",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "CURL_CA_BUNDLE",
    "KRB5CCNAME",
    "KRB5_CONFIG",
    "GNUPGHOME",
    "SSH_AUTH_SOCK",
    "SSH_AGENT_PID",
    "SSH_ASKPASS",
    "SSH_ASKPASS_REQUIRE",
    "APT_CONFIG",
    "GIT_ALLOW_PROTOCOL",
    "GIT_ASKPASS",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_SSH_VARIANT",
    "GIT_PROXY_COMMAND",
    "GIT_PROXY_SSL_CAINFO",
    "GIT_PROXY_SSL_CERT",
    "GIT_PROXY_SSL_KEY",
    "GIT_HTTP_PROXY_AUTHMETHOD",
    "GIT_HTTP_USER_AGENT",
    "GIT_SSL_CAINFO",
    "GIT_SSL_CAPATH",
    "GIT_SSL_CERT",
    "GIT_SSL_KEY",
    "GIT_SSL_NO_VERIFY",
    "GIT_SSL_VERSION",
];

/// How git is told of configuration, by files or in the environment itself.
const CONFIGURATION: &str = "GIT_CONFIG";

/// What every child sees.
pub(super) fn plain() -> Variables {
    let mut variables = listed(&PLAIN);
    for (key, value) in [
        ("HOME", NO_HOME),
        ("XDG_CONFIG_HOME", NO_HOME),
        ("LC_ALL", "C"),
    ] {
        variables.push((key.into(), value.into()));
    }
    variables
}

/// The user's home.
pub(super) fn home() -> Variables {
    listed(&["HOME"])
}

/// What the network needs.
pub(super) fn network() -> Variables {
    listed(&NETWORK)
}

/// Everything that says what git is configured to.
pub(super) fn configuration() -> Variables {
    let all = std::env::vars_os();
    let told = all.filter(|(key, _)| key.to_string_lossy().starts_with(CONFIGURATION));
    told.chain(listed(&["HOME", "XDG_CONFIG_HOME"])).collect()
}

fn listed(keys: &[&str]) -> Variables {
    let value = |key: &&str| Some(((*key).into(), std::env::var_os(key)?));
    keys.iter().filter_map(value).collect()
}
