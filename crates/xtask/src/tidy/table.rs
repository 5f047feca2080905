//! Reads the dependency table of ARCHITECTURE.md. The page is the rule; there is
//! no second list in code that could differ from it.

use std::collections::BTreeSet;

/// Heading of the first column; the table is found by it.
const FIRST_COLUMN: &str = "crate";
const COLUMNS: usize = 4;

/// Which names a cell allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Allowed {
    /// The cell says "any".
    Any,
    /// These and no others; a dash is an empty list.
    Only(BTreeSet<String>),
}

impl Allowed {
    pub(super) fn admits(&self, name: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Only(names) => names.contains(name),
        }
    }
}

/// What one crate may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Folder below `crates/`.
    pub name: String,
    /// Crates of this workspace.
    pub ours: Allowed,
    /// Crates from outside, as direct dependencies.
    pub outside: Allowed,
    /// Crates that it must not even reach through others.
    pub never: BTreeSet<String>,
}

/// Why the table could not be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// No table begins with the right heading.
    #[error("no table whose first column is `{FIRST_COLUMN}`")]
    Missing,
    /// A row has too few or too many cells.
    #[error("the row `{row}` has {cells} cells instead of {COLUMNS}")]
    Cells {
        /// The row.
        row: String,
        /// How many it has.
        cells: usize,
    },
    /// The first cell has no name in backticks.
    #[error("the row `{row}` names no crate in backticks")]
    Nameless {
        /// The row.
        row: String,
    },
}

/// The rows of the first table whose first column is "crate".
pub fn parse_table(page: &str) -> Result<Vec<Row>, TableError> {
    let mut lines = page.lines().skip_while(|line| !is_heading(line));
    if lines.next().is_none() {
        return Err(TableError::Missing);
    }
    lines
        .skip(1)
        .take_while(|line| line.trim_start().starts_with('|'))
        .map(parse_row)
        .collect()
}

fn is_heading(line: &str) -> bool {
    line.starts_with('|')
        && cells(line)
            .first()
            .is_some_and(|cell| *cell == FIRST_COLUMN)
}

fn cells(line: &str) -> Vec<&str> {
    line.trim()
        .trim_matches('|')
        .split('|')
        .map(str::trim)
        .collect()
}

fn parse_row(line: &str) -> Result<Row, TableError> {
    let cells = cells(line);
    let [name, ours, outside, never] = cells.as_slice() else {
        return Err(TableError::Cells {
            row: line.to_owned(),
            cells: cells.len(),
        });
    };
    let Some(name) = names(name).into_iter().next() else {
        return Err(TableError::Nameless {
            row: line.to_owned(),
        });
    };
    Ok(Row {
        name,
        ours: allowed(ours),
        outside: allowed(outside),
        never: names(never),
    })
}

fn allowed(cell: &str) -> Allowed {
    if cell.starts_with("any") {
        Allowed::Any
    } else {
        Allowed::Only(names(cell))
    }
}

/// Only what stands in backticks is a name; the words around it are for people.
fn names(cell: &str) -> BTreeSet<String> {
    cell.split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_row_is_names_in_backticks_and_words_for_people() {
        let page = "text\n\n| crate | ours | from outside | never |\n|---|---|---|---|\n\
                    | `core` | `gtid` | `serde`, `thiserror` | `kube`, a clock |\n\
                    | `xtask` | any | any | – |\n\nmore | text\n";
        let rows = parse_table(page).unwrap();
        assert_eq!(
            rows,
            [
                Row {
                    name: "core".into(),
                    ours: Allowed::Only(set(&["gtid"])),
                    outside: Allowed::Only(set(&["serde", "thiserror"])),
                    never: set(&["kube"]),
                },
                Row {
                    name: "xtask".into(),
                    ours: Allowed::Any,
                    outside: Allowed::Any,
                    never: set(&[])
                },
            ]
        );
    }

    #[test]
    fn a_dash_allows_nothing() {
        let rows = parse_table("| crate | a | b | c |\n|-|-|-|-|\n| `gtid` | – | – | – |").unwrap();
        assert!(!rows[0].ours.admits("wire"));
        assert!(!rows[0].outside.admits("serde"));
    }

    #[test]
    fn a_page_without_the_table_and_a_broken_row_are_errors() {
        assert_eq!(parse_table("# page"), Err(TableError::Missing));
        let broken = "| crate | a | b | c |\n|-|-|-|-|\n| `gtid` | – |";
        assert!(matches!(
            parse_table(broken),
            Err(TableError::Cells { cells: 2, .. })
        ));
        let nameless = "| crate | a | b | c |\n|-|-|-|-|\n| gtid | – | – | – |";
        assert!(matches!(
            parse_table(nameless),
            Err(TableError::Nameless { .. })
        ));
    }
}
