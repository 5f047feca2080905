//! Running programs and touching files, with errors that name the command or
//! the path. Nothing here retries or ignores a failure.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use sha2::{Digest, Sha256};

use super::HostError;

/// The end of a program's output is where it says why it failed.
const OUTPUT_SHOWN_BYTES: usize = 2000;

/// A program that is killed when we are: what an interrupted task started must
/// not go on making things after the clean-up.
pub fn bound(program: &str) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", program]);
    command
}

/// The command line as a person would type it.
pub fn line_of(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}

/// Runs to the end; returns standard output, or the failure with its output.
pub fn run(command: &mut Command) -> Result<String, HostError> {
    command.stdin(Stdio::null());
    let output = command.output().map_err(|source| HostError::Start {
        command: line_of(command),
        source,
    })?;
    judge(command, &output)
}

/// Runs to the end with `input` on standard input; otherwise like `run`.
pub fn feed(command: &mut Command, input: &str) -> Result<String, HostError> {
    let line = line_of(command);
    let failed = |source| HostError::Start {
        command: line.clone(),
        source,
    };
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that failed has closed its input; its own message is better.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output().map_err(failed)?;
    judge(command, &output)
}

fn judge(command: &Command, output: &Output) -> Result<String, HostError> {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(text);
    }
    let said = format!("{text}{}", String::from_utf8_lossy(&output.stderr));
    Err(HostError::Failed {
        command: line_of(command),
        status: output.status,
        output: end_of(said.trim()),
    })
}

/// Whether the program ran and reported success; its output is dropped.
pub fn succeed(command: &mut Command) -> bool {
    let status = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}

fn end_of(text: &str) -> String {
    let mut start = text.len().saturating_sub(OUTPUT_SHOWN_BYTES);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    text[start..].to_owned()
}

/// `sha256sum`: hashing half a gigabyte with an unoptimised crate takes longer
/// than building the image.
pub fn sha256(path: &Path) -> Result<String, HostError> {
    let output = run(Command::new("sha256sum").arg("--").arg(path))?;
    Ok(output
        .trim_start_matches('\\')
        .chars()
        .take_while(char::is_ascii_hexdigit)
        .collect())
}

/// Names a cached thing by what it was made from.
pub fn key_of(inputs: &[&str]) -> String {
    let mut hash = Sha256::new();
    for input in inputs {
        hash.update(input.len().to_le_bytes());
        hash.update(input);
    }
    let mut text = format!("{:x}", hash.finalize());
    text.truncate(16);
    text
}

/// Reads a text file.
pub fn read(path: &Path) -> Result<String, HostError> {
    std::fs::read_to_string(path).map_err(|source| HostError::File {
        doing: "read",
        path: path.into(),
        source,
    })
}

/// Writes a file, making its folder first.
pub fn write(path: &Path, text: impl AsRef<[u8]>) -> Result<(), HostError> {
    if let Some(folder) = path.parent() {
        create_folder(folder)?;
    }
    std::fs::write(path, text).map_err(|source| HostError::File {
        doing: "write",
        path: path.into(),
        source,
    })
}

/// Makes a folder and those above it; one that exists is fine.
pub fn create_folder(path: &Path) -> Result<(), HostError> {
    std::fs::create_dir_all(path).map_err(|source| HostError::File {
        doing: "create",
        path: path.into(),
        source,
    })
}

/// Removes a folder with all it holds; a missing one is fine.
pub fn remove_folder(path: &Path) -> Result<(), HostError> {
    absent_is_fine(std::fs::remove_dir_all(path)).map_err(|source| HostError::File {
        doing: "remove",
        path: path.into(),
        source,
    })
}

/// Removes a file; a missing one is fine.
pub fn remove_file(path: &Path) -> Result<(), HostError> {
    absent_is_fine(std::fs::remove_file(path)).map_err(|source| HostError::File {
        doing: "remove",
        path: path.into(),
        source,
    })
}

fn absent_is_fine(result: std::io::Result<()>) -> std::io::Result<()> {
    match result {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
