//! Running programs and touching files, with errors that name the command or
//! the path. Nothing here retries or ignores a failure.

use std::path::Path;
use std::process::{Command, Stdio};

use super::HostError;

/// The end of a program's output is where it says why it failed.
const OUTPUT_SHOWN_BYTES: usize = 2000;

/// The command line as a person would type it.
pub fn line_of(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// Runs to the end; returns standard output, or the failure with its output.
pub fn run(command: &mut Command) -> Result<String, HostError> {
    command.stdin(Stdio::null());
    let output = command.output().map_err(|source| HostError::Start { command: line_of(command), source })?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(text);
    }
    let said = format!("{text}{}", String::from_utf8_lossy(&output.stderr));
    Err(HostError::Failed { command: line_of(command), status: output.status, output: end_of(said.trim()) })
}

/// Whether the program ran and reported success; its output is dropped.
pub fn succeed(command: &mut Command) -> bool {
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
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
    Ok(output.trim_start_matches('\\').chars().take_while(char::is_ascii_hexdigit).collect())
}

/// Reads a text file.
pub fn read(path: &Path) -> Result<String, HostError> {
    std::fs::read_to_string(path).map_err(|source| HostError::File { doing: "read", path: path.into(), source })
}

/// Writes a file, making its folder first.
pub fn write(path: &Path, text: impl AsRef<[u8]>) -> Result<(), HostError> {
    if let Some(folder) = path.parent() {
        create_folder(folder)?;
    }
    std::fs::write(path, text).map_err(|source| HostError::File { doing: "write", path: path.into(), source })
}

/// Makes a folder and those above it; one that exists is fine.
pub fn create_folder(path: &Path) -> Result<(), HostError> {
    std::fs::create_dir_all(path).map_err(|source| HostError::File { doing: "create", path: path.into(), source })
}

/// Removes a folder with all it holds; a missing one is fine.
pub fn remove_folder(path: &Path) -> Result<(), HostError> {
    absent_is_fine(std::fs::remove_dir_all(path))
        .map_err(|source| HostError::File { doing: "remove", path: path.into(), source })
}

/// Removes a file; a missing one is fine.
pub fn remove_file(path: &Path) -> Result<(), HostError> {
    absent_is_fine(std::fs::remove_file(path))
        .map_err(|source| HostError::File { doing: "remove", path: path.into(), source })
}

fn absent_is_fine(result: std::io::Result<()>) -> std::io::Result<()> {
    match result {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
