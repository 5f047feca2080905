//! The files that git knows or would add, as values. Binary files are left out:
//! they have no lines to judge.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A text file of the tree.
#[derive(Debug, Clone)]
pub struct File {
    /// From the top of the tree.
    pub path: PathBuf,
    /// All of it.
    pub text: String,
}

impl File {
    /// Lines with their numbers, from 1.
    pub fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text
            .lines()
            .enumerate()
            .map(|(index, line)| (index + 1, line))
    }

    /// Whether it is Rust.
    pub fn is_rust(&self) -> bool {
        self.has_extension("rs")
    }

    /// Whether it is Markdown.
    pub fn is_markdown(&self) -> bool {
        self.has_extension("md")
    }

    fn has_extension(&self, wanted: &str) -> bool {
        self.path.extension().is_some_and(|is| is == wanted)
    }
}

/// Why the tree could not be read.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// git did not list it.
    #[error("`git ls-files` failed in {root}: {said}")]
    Git {
        /// Where.
        root: PathBuf,
        /// What git said.
        said: String,
    },
    /// A file that must be there is not.
    #[error("{path} is missing")]
    Missing {
        /// Which.
        path: PathBuf,
    },
    /// A listed file could not be read.
    #[error("could not read {path}")]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// All text files, by path.
#[derive(Debug, Clone, Default)]
pub struct Tree {
    files: BTreeMap<PathBuf, File>,
    others: Vec<PathBuf>,
}

impl Tree {
    /// Reads what git tracks and what it would add.
    pub fn read(root: &Path) -> Result<Self, TreeError> {
        let mut tree = Self::default();
        for path in list(root)? {
            let full = root.join(&path);
            if !full.is_file() {
                // Deleted and not yet committed.
                continue;
            }
            let bytes = std::fs::read(&full).map_err(|source| TreeError::Read {
                path: path.clone(),
                source,
            })?;
            match String::from_utf8(bytes) {
                Ok(text) => tree.add(path, text),
                Err(_) => tree.others.push(path),
            }
        }
        Ok(tree)
    }

    /// Adds a text file.
    pub fn add(&mut self, path: impl Into<PathBuf>, text: impl Into<String>) {
        let path = path.into();
        self.files.insert(
            path.clone(),
            File {
                path,
                text: text.into(),
            },
        );
    }

    /// Every text file, in order.
    pub fn texts(&self) -> impl Iterator<Item = &File> {
        self.files.values()
    }

    /// One file's text.
    pub fn text(&self, path: &Path) -> Result<&str, TreeError> {
        match self.files.get(path) {
            Some(file) => Ok(&file.text),
            None => Err(TreeError::Missing {
                path: path.to_path_buf(),
            }),
        }
    }

    /// Whether a file or a folder of this name is in the tree.
    pub fn has(&self, path: &Path) -> bool {
        let below = |file: &PathBuf| file.starts_with(path);
        path == Path::new("") || self.files.keys().any(below) || self.others.iter().any(below)
    }
}

fn list(root: &Path) -> Result<Vec<PathBuf>, TreeError> {
    let failed = |said: String| TreeError::Git {
        root: root.to_path_buf(),
        said,
    };
    let output = Command::new("git")
        .current_dir(root)
        .args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ])
        .output()
        .map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    let names = String::from_utf8_lossy(&output.stdout);
    Ok(names
        .split('\0')
        .filter(|name| !name.is_empty())
        .map(PathBuf::from)
        .collect())
}
