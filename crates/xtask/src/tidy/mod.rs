//! `cargo xtask tidy`: the rules of STYLE.md and ARCHITECTURE.md that a program
//! can check. Every check takes text and returns findings, so each is tested
//! with a few lines; only this file touches the tree. Never repairs anything.

mod dependencies;
mod exceptions;
mod links;
mod lint;
mod sources;
mod table;
mod texts;
mod tree;

use std::path::{Path, PathBuf};

pub use dependencies::{Ours, ours_of};
pub use table::{Row, TableError, parse_table};
pub use tree::{Tree, TreeError};

/// One breach: where, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The file, from the top of the tree.
    pub path: PathBuf,
    /// The line, when there is one.
    pub line: Option<usize>,
    /// A sentence.
    pub what: String,
}

impl Finding {
    fn new(path: &Path, line: Option<usize>, what: impl Into<String>) -> Self {
        Self {
            path: path.to_path_buf(),
            line,
            what: what.into(),
        }
    }
}

impl std::fmt::Display for Finding {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            Some(line) => write!(to, "{}:{line}: {}", self.path.display(), self.what),
            None => write!(to, "{}: {}", self.path.display(), self.what),
        }
    }
}

/// Why the tree could not be judged.
#[derive(Debug, thiserror::Error)]
pub enum TidyError {
    /// The tree could not be read.
    #[error("could not read the tree")]
    Tree(#[from] TreeError),
    /// The dependency table could not be read.
    #[error("could not read the dependency table of ARCHITECTURE.md")]
    Table(#[from] TableError),
    /// A generated file could not be made.
    #[error("the generated files")]
    Generate(#[from] crate::generate::GenerateError),
    /// Cargo did not answer.
    #[error("`cargo metadata` failed")]
    Metadata(#[from] cargo_metadata::Error),
}

/// Checks the tree below `root`. An empty answer is a tidy tree.
pub fn tidy(root: &Path) -> Result<Vec<Finding>, TidyError> {
    let tree = Tree::read(root)?;
    let mut findings = dependency_findings(root, &tree)?;
    findings.extend(lint::core_bans_what_it_must(&tree));
    for file in tree.texts() {
        findings.extend(texts::check(file));
        if file.is_rust() {
            findings.extend(sources::check(file));
        }
        if file.is_markdown() {
            findings.extend(links::check(file, &tree));
        }
    }
    findings.extend(exceptions::stale(&tree));
    let stale = crate::generate::stale(root)?;
    findings.extend(stale.iter().map(|path| {
        Finding::new(
            path,
            None,
            "is not what the code says: cargo xtask generate",
        )
    }));
    findings.sort();
    Ok(findings)
}

fn dependency_findings(root: &Path, tree: &Tree) -> Result<Vec<Finding>, TidyError> {
    let page = tree.text(Path::new(dependencies::PAGE))?;
    let rows = parse_table(page)?;
    let metadata = cargo_metadata::MetadataCommand::new()
        .manifest_path(root.join("Cargo.toml"))
        .exec()?;
    Ok(dependencies::check(&rows, &ours_of(&metadata)))
}
