//! The core's own clippy.toml replaces that of the workspace, so it must be
//! there and ban what makes a decision unrepeatable.

use std::path::Path;

use super::Finding;
use super::tree::Tree;

const FILE: &str = "crates/core/clippy.toml";

const BANNED: [&str; 10] = [
    "std::collections::HashMap",
    "std::collections::HashSet",
    "std::time::Instant",
    "std::time::SystemTime",
    "std::time::Instant::now",
    "std::time::SystemTime::now",
    "std::env::var",
    "std::fs::read",
    "std::net::TcpStream",
    "std::thread::sleep",
];

/// What the file lacks.
pub(super) fn core_bans_what_it_must(tree: &Tree) -> Vec<Finding> {
    let path = Path::new(FILE);
    let text = tree.text(path).unwrap_or_default();
    let missing = BANNED
        .iter()
        .filter(|banned| !text.contains(&format!("\"{banned}\"")));
    missing
        .map(|banned| Finding::new(path, None, format!("does not ban `{banned}`")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_file_bans_nothing() {
        assert_eq!(core_bans_what_it_must(&Tree::default()).len(), BANNED.len());
    }
}
