//! Rules for Rust files. Reads lines, not syntax: a rule that needs a parser
//! belongs to clippy.

use std::path::Path;

use super::Finding;
use super::exceptions::{LINES_MAX, allows_sleep, lines_max};
use super::tree::File;

/// Written in two halves, so that this file does not break its own rules.
const FORBIDDEN: [(&str, &str); 5] = [
    (
        concat!("#[", "ignore"),
        "a test that needs something is in a tier that says so loudly",
    ),
    (concat!("TO", "DO"), "open an issue, or do it"),
    (concat!("FIX", "ME"), "open an issue, or fix it"),
    (concat!("dbg", "!("), "left over from debugging"),
    (concat!("todo", "!("), "unfinished"),
];

/// So near before a pause stands the deadline of its loop.
const LOOP_LINES: usize = 25;

/// All findings in one file.
pub(super) fn check(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(head(file));
    findings.extend(length(file));
    findings.extend(forbidden(file));
    findings.extend(sleeps_in_tests(file));
    findings
}

fn head(file: &File) -> Option<Finding> {
    let first = file.text.lines().next().unwrap_or_default();
    let says = first.strip_prefix("//!").map(str::trim);
    match says {
        Some(says) if !says.is_empty() && !says.starts_with("placeholder") => None,
        _ => Some(Finding::new(
            &file.path,
            Some(1),
            "begins without a `//!` head: what the module does and what it must never do",
        )),
    }
}

fn length(file: &File) -> Option<Finding> {
    let (lines, allowed) = (file.text.lines().count(), lines_max(&file.path));
    let what = if allowed == LINES_MAX {
        format!("has {lines} lines; {LINES_MAX} is the limit")
    } else {
        format!("has {lines} lines; its exception ends at {allowed}")
    };
    (lines > allowed).then(|| Finding::new(&file.path, None, what))
}

fn forbidden(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in file.lines() {
        for (text, why) in FORBIDDEN {
            if line.contains(text) {
                findings.push(Finding::new(
                    &file.path,
                    Some(number),
                    format!("`{text}`: {why}"),
                ));
            }
        }
    }
    findings
}

/// A test waits for a condition with a deadline; a fixed sleep is either too
/// short (flaky) or too long (slow). The pause of a loop that has a deadline is
/// not meant.
fn sleeps_in_tests(file: &File) -> Vec<Finding> {
    if allows_sleep(&file.path) {
        return Vec::new();
    }
    let is_test = is_in_tests(&file.path);
    let lines: Vec<&str> = file.text.lines().collect();
    let first = lines
        .iter()
        .position(|line| is_test || *line == "#[cfg(test)]");
    let tests = (first.unwrap_or(lines.len())..lines.len()).filter(|index| {
        let near = &lines[index.saturating_sub(LOOP_LINES)..*index];
        let is_pause = near
            .iter()
            .any(|line| line.contains("deadline") || line.contains("elapsed("));
        lines[*index].contains(concat!("sleep", "(")) && !is_pause
    });
    let what = "a test that sleeps: wait for the condition with a deadline";
    tests
        .map(|index| Finding::new(&file.path, Some(index + 1), what))
        .collect()
}

/// `crates/<crate>/tests/…`
fn is_in_tests(path: &Path) -> bool {
    path.components()
        .nth(2)
        .is_some_and(|part| part.as_os_str() == "tests")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        let file = File {
            path: path.into(),
            text: text.into(),
        };
        check(&file).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_head_a_short_body_and_no_leftovers_is_tidy() {
        assert!(found("a.rs", "//! Does a thing.\nfn a() {}\n").is_empty());
    }

    #[test]
    fn a_file_without_a_head_is_found() {
        for text in ["fn a() {}\n", "//!\nfn a() {}\n", "", "//! placeholder\n"] {
            assert_eq!(found("a.rs", text).len(), 1, "{text:?}");
        }
    }

    #[test]
    fn a_file_of_501_lines_is_found() {
        let text = format!("//! Long.\n{}", "\n".repeat(LINES_MAX - 1));
        assert!(found("a.rs", &text).is_empty());
        let finding = found("a.rs", &format!("{text}\n"));
        assert_eq!(finding, ["a.rs: has 501 lines; 500 is the limit"]);
    }

    #[test]
    fn leftovers_are_found_with_their_line() {
        for (word, _) in FORBIDDEN {
            let finding = found("a.rs", &format!("//! A.\n\n  {word}x)\n"));
            assert!(finding[0].starts_with("a.rs:3: "), "{finding:?}");
        }
    }

    #[test]
    fn sleeping_is_a_finding_only_in_tests() {
        let call = concat!("sleep", "(second);\n");
        assert!(found("src/a.rs", &format!("//! A.\n{call}")).is_empty());
        assert_eq!(
            found("src/a.rs", &format!("//! A.\n#[cfg(test)]\n{call}")).len(),
            1
        );
        assert_eq!(
            found("crates/a/tests/a.rs", &format!("//! A.\n{call}")).len(),
            1
        );
        let pause = format!("//! A.\nassert!(Instant::now() < deadline);\n{call}");
        assert!(found("crates/a/tests/a.rs", &pause).is_empty());
    }
}
