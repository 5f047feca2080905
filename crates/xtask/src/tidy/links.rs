//! Links between the pages of this tree lead somewhere: the file exists, and so
//! does the heading. Addresses of other sites are not followed; tidy needs no
//! network.

use std::path::{Component, Path, PathBuf};

use super::Finding;
use super::tree::{File, Tree};

/// All findings in one page.
pub(super) fn check(file: &File, tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in outside_of_code(file) {
        let broken = targets(line).filter_map(|target| problem(&file.path, target, tree));
        findings.extend(broken.map(|what| Finding::new(&file.path, Some(number), what)));
    }
    findings
}

fn outside_of_code(file: &File) -> impl Iterator<Item = (usize, &str)> {
    let mut in_code = false;
    file.lines().filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        !in_code && !is_fence
    })
}

/// What stands in the parentheses of `[text](target)`.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.match_indices("](").filter_map(|(at, _)| {
        let rest = &line[at + 2..];
        rest.find([')', ' ']).map(|end| &rest[..end])
    })
}

fn problem(page: &Path, target: &str, tree: &Tree) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, heading) = target.split_once('#').unwrap_or((target, ""));
    let to = if path.is_empty() {
        page.to_path_buf()
    } else {
        resolve(page, path)
    };
    if !tree.has(&to) {
        return Some(format!("the link `{target}` leads nowhere"));
    }
    let has_heading = heading.is_empty()
        || tree
            .text(&to)
            .is_ok_and(|text| text.lines().any(|line| anchor(line) == heading));
    (!has_heading).then(|| format!("{} has no heading `#{heading}`", to.display()))
}

fn resolve(page: &Path, path: &str) -> PathBuf {
    let mut to = page.parent().unwrap_or(Path::new("")).to_path_buf();
    for part in Path::new(path).components() {
        match part {
            Component::ParentDir => drop(to.pop()),
            Component::Normal(name) => to.push(name),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    to
}

/// The anchor that a heading gets: lower case, spaces to dashes, no punctuation.
fn anchor(line: &str) -> String {
    let Some(heading) = line.strip_prefix('#') else {
        return String::new();
    };
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = text
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let mut tree = Tree::default();
        tree.add("README.md", "# Katazuke");
        tree.add("docs/page.md", text);
        tree.add("docs/other.md", "# Title\n\n## Two words, and `code`\n");
        let page = File {
            path: "docs/page.md".into(),
            text: text.into(),
        };
        check(&page, &tree)
            .into_iter()
            .map(|finding| finding.what)
            .collect()
    }

    #[test]
    fn links_to_files_folders_headings_and_sites_are_fine() {
        for link in [
            "other.md",
            "../README.md",
            "../docs",
            "other.md#two-words-and-code",
            "https://go.dev",
        ] {
            assert!(found(&format!("[x]({link})")).is_empty(), "{link}");
        }
    }

    #[test]
    fn a_missing_file_and_a_missing_heading_are_found() {
        assert_eq!(found("[x](gone.md)"), ["the link `gone.md` leads nowhere"]);
        assert_eq!(
            found("[x](other.md#three)"),
            ["docs/other.md has no heading `#three`"]
        );
    }

    #[test]
    fn code_is_not_a_link() {
        assert!(found("```\na[0](x)\n```\n").is_empty());
    }
}
