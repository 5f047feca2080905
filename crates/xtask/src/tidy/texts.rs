//! Rules for every text file: nothing that is true on one machine only. A path
//! or a mirror of whoever wrote a file is noise for everybody else, and may be
//! a secret.

use super::Finding;
use super::tree::File;

/// Folders of particular machines, in two halves (see `sources`).
const MACHINE_PATHS: [&str; 5] = [
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/"),
    concat!("/tmp", "/my"),
    concat!("/home", "/"),
    concat!("/Use", "rs/"),
];

/// Hosts that an address in a tracked file may name. Public, and not a mirror.
const HOSTS: [&str; 23] = [
    "127.0.0.1",
    "localhost",
    "0.0.0.0",
    "github.com",
    "docs.rs",
    "doc.rust-lang.org",
    "www.rust-lang.org",
    "rustup.rs",
    "go.dev",
    "kubernetes.io",
    "json-schema.org",
    "json.schemastore.org",
    "dev.mysql.com",
    "bugs.mysql.com",
    "www.apache.org",
    "keepachangelog.com",
    "semver.org",
    "prometheus.io",
    "opentelemetry.io",
    "www.kernel.org",
    "physics.nist.gov",
    "packages.debian.org",
    "www.rfc-editor.org",
];

/// Names below these are examples or names inside a cluster.
const DOMAINS: [&str; 6] = [
    "example",
    "example.com",
    "example.org",
    "svc",
    "cluster.local",
    "katazuke.dev",
];

/// All findings in one file.
pub(super) fn check(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in file.lines() {
        let mut found = |what: String| findings.push(Finding::new(&file.path, Some(number), what));
        for path in MACHINE_PATHS.iter().filter(|path| has_path(line, path)) {
            found(format!("`{path}` is a path of one machine"));
        }
        for host in hosts(line).filter(|host| !is_public(host)) {
            found(format!(
                "`{host}` is not on the list of public hosts in tidy/texts.rs"
            ));
        }
    }
    findings
}

/// The path as such, not as the end of a longer one (`.../my/work/`).
fn has_path(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '}' | '*'))
    })
}

/// The host of every `http://` and `https://` address on the line.
fn hosts(line: &str) -> impl Iterator<Item = &str> {
    let after = line
        .match_indices("://")
        .map(|(at, _)| (&line[..at], &line[at + 3..]));
    after
        .filter(|(before, _)| before.ends_with("http") || before.ends_with("https"))
        .map(|(_, rest)| {
            let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || ".-_".contains(c)));
            &rest[..end.unwrap_or(rest.len())]
        })
}

fn is_public(host: &str) -> bool {
    // Empty: the address is put together at run time.
    let in_domain = |domain: &&str| {
        host.strip_suffix(*domain)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    host.is_empty() || HOSTS.contains(&host) || DOMAINS.iter().any(in_domain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let file = File {
            path: "a.md".into(),
            text: text.into(),
        };
        check(&file).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn public_addresses_and_names_inside_the_cluster_are_fine() {
        let text = "https://github.com/x/y http://127.0.0.1:80/ https://{host}/ \
                    http://shop-primary.db.svc:3306 http://a.b.cluster.local https://go.dev";
        assert!(found(text).is_empty(), "{:?}", found(text));
    }

    #[test]
    fn a_mirror_is_found_whatever_its_name() {
        for host in ["10.1.2.3", "crates.internal", "mirror"] {
            assert_eq!(
                found(&format!("http://{host}:80/debian")).len(),
                1,
                "{host}"
            );
        }
    }

    #[test]
    fn a_path_of_a_machine_is_found_and_a_longer_one_is_not() {
        let path = MACHINE_PATHS[0];
        assert_eq!(found(&format!("see {path}main")).len(), 1);
        assert!(found(&format!("overlay/upper{path}x")).is_empty());
    }
}
