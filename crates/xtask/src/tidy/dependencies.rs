//! Compares the table of ARCHITECTURE.md with what cargo resolved. Direct
//! dependencies are compared with the allowed lists; the "never" column holds
//! through every dependency that is linked. Dev-dependencies are linked into no
//! program: for them only "never" holds, and only for what a manifest names.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use cargo_metadata::{DependencyKind, Metadata, NodeDep, PackageId};

use super::Finding;
use super::table::Row;

/// The page with the table.
pub(super) const PAGE: &str = "ARCHITECTURE.md";

/// A crate of this workspace and what it uses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ours {
    /// Folder below `crates/`.
    pub name: String,
    /// Crates of this workspace in `dependencies`, by folder.
    pub ours: BTreeSet<String>,
    /// Crates from outside in `dependencies`.
    pub outside: BTreeSet<String>,
    /// Everything that is linked, directly or not; our own by folder.
    pub reached: BTreeSet<String>,
    /// What `dev-dependencies` names.
    pub in_tests: BTreeSet<String>,
}

/// The workspace's crates, from cargo's answer.
pub fn ours_of(metadata: &Metadata) -> Vec<Ours> {
    let graph = Graph::of(metadata);
    metadata
        .workspace_members
        .iter()
        .map(|id| graph.crate_of(id))
        .collect()
}

struct Graph<'a> {
    names: BTreeMap<&'a PackageId, String>,
    members: BTreeSet<&'a PackageId>,
    edges: BTreeMap<&'a PackageId, &'a [NodeDep]>,
}

impl<'a> Graph<'a> {
    fn of(metadata: &'a Metadata) -> Self {
        let members: BTreeSet<_> = metadata.workspace_members.iter().collect();
        let name_of = |package: &cargo_metadata::Package| {
            let folder = package
                .manifest_path
                .parent()
                .and_then(|folder| folder.file_name());
            match folder {
                Some(folder) if members.contains(&package.id) => folder.to_owned(),
                _ => package.name.to_string(),
            }
        };
        let names = metadata
            .packages
            .iter()
            .map(|package| (&package.id, name_of(package)));
        let nodes = metadata.resolve.iter().flat_map(|resolve| &resolve.nodes);
        Self {
            names: names.collect(),
            edges: nodes.map(|node| (&node.id, node.deps.as_slice())).collect(),
            members,
        }
    }

    fn crate_of(&self, id: &'a PackageId) -> Ours {
        let mut found = Ours {
            name: self.name(id),
            ..Ours::default()
        };
        for dependency in self.edges.get(id).copied().unwrap_or_default() {
            let name = self.name(&dependency.pkg);
            if is_only_for_tests(dependency) {
                found.in_tests.insert(name);
            } else if self.members.contains(&dependency.pkg) {
                found.ours.insert(name);
            } else {
                found.outside.insert(name);
            }
        }
        self.reach(id, &mut found.reached);
        found
    }

    fn reach(&self, id: &PackageId, reached: &mut BTreeSet<String>) {
        for dependency in self.edges.get(id).copied().unwrap_or_default() {
            if !is_only_for_tests(dependency) && reached.insert(self.name(&dependency.pkg)) {
                self.reach(&dependency.pkg, reached);
            }
        }
    }

    fn name(&self, id: &PackageId) -> String {
        self.names
            .get(id)
            .cloned()
            .unwrap_or_else(|| id.repr.clone())
    }
}

fn is_only_for_tests(dependency: &NodeDep) -> bool {
    dependency
        .dep_kinds
        .iter()
        .all(|kind| kind.kind == DependencyKind::Development)
}

/// Every breach of the table.
pub(super) fn check(rows: &[Row], crates: &[Ours]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for ours in crates {
        match rows.iter().find(|row| row.name == ours.name) {
            Some(row) => findings.extend(breaches(row, ours)),
            None => findings.push(of_page(format!("the table has no row for `{}`", ours.name))),
        }
    }
    let gone = rows
        .iter()
        .filter(|row| !crates.iter().any(|ours| ours.name == row.name));
    findings.extend(gone.map(|row| of_page(format!("there is no crate `{}`", row.name))));
    let mut names = BTreeSet::new();
    let twice = rows.iter().filter(|row| !names.insert(&row.name));
    findings.extend(twice.map(|row| of_page(format!("`{}` has two rows", row.name))));
    findings
}

fn of_page(what: String) -> Finding {
    Finding::new(Path::new(PAGE), None, what)
}

fn breaches(row: &Row, ours: &Ours) -> Vec<Finding> {
    let Ours {
        name,
        ours: own,
        outside,
        reached,
        in_tests,
    } = ours;
    let manifest = Path::new("crates").join(name).join("Cargo.toml");
    let of = |list: &BTreeSet<String>, wrong: &dyn Fn(&str) -> Option<String>| {
        let wrong = list.iter().filter_map(|dependency| wrong(dependency));
        wrong
            .map(|what| Finding::new(&manifest, None, what))
            .collect::<Vec<_>>()
    };
    let never = |by: &'static str| {
        move |dependency: &str| {
            let is_banned = row.never.contains(dependency);
            is_banned.then(|| format!("`{name}` must never {by} `{dependency}` ({PAGE})"))
        }
    };
    let mut findings = of(own, &|dependency| {
        let is_refused = !row.ours.admits(dependency);
        is_refused.then(|| format!("`{name}` may not depend on our `{dependency}` ({PAGE})"))
    });
    findings.extend(of(outside, &|dependency| {
        let is_refused = !row.outside.admits(dependency);
        is_refused.then(|| format!("`{name}` may not depend on `{dependency}` ({PAGE})"))
    }));
    findings.extend(of(reached, &never("reach")));
    findings.extend(of(in_tests, &never("use in tests")));
    findings
}

#[cfg(test)]
mod tests {
    use super::super::table::parse_table;
    use super::*;

    const TABLE: &str = "| crate | ours | from outside | never |\n|-|-|-|-|\n\
                         | `core` | `gtid` | `serde` | `kube`, `tokio` |\n";

    fn core(ours: &[&str], outside: &[&str], reached: &[&str], in_tests: &[&str]) -> Ours {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Ours {
            name: "core".into(),
            ours: set(ours),
            outside: set(outside),
            reached: set(reached),
            in_tests: set(in_tests),
        }
    }

    fn findings(crates: &[Ours]) -> Vec<String> {
        let rows = parse_table(TABLE).unwrap();
        check(&rows, crates)
            .into_iter()
            .map(|finding| finding.what)
            .collect()
    }

    #[test]
    fn what_the_table_allows_is_fine() {
        assert!(findings(&[core(&["gtid"], &["serde"], &["serde"], &["proptest"])]).is_empty());
    }

    #[test]
    fn a_crate_from_outside_that_is_not_listed_is_named() {
        let found = findings(&[core(&[], &["rand"], &["rand"], &[])]);
        assert_eq!(found, ["`core` may not depend on `rand` (ARCHITECTURE.md)"]);
    }

    #[test]
    fn never_holds_through_others_and_in_tests() {
        let found = findings(&[core(&["wire"], &[], &["wire", "kube"], &["tokio"])]);
        assert_eq!(
            found,
            [
                "`core` may not depend on our `wire` (ARCHITECTURE.md)",
                "`core` must never reach `kube` (ARCHITECTURE.md)",
                "`core` must never use in tests `tokio` (ARCHITECTURE.md)",
            ]
        );
    }

    #[test]
    fn a_crate_without_a_row_and_a_row_without_a_crate_are_findings() {
        let stray = Ours {
            name: "stray".into(),
            ..Ours::default()
        };
        let found = findings(&[stray]);
        assert_eq!(
            found,
            [
                "the table has no row for `stray`",
                "there is no crate `core`"
            ]
        );
    }
}
