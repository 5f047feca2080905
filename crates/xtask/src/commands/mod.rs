//! One module per task: its arguments and what it prints. The work itself is
//! in the library.

pub(crate) mod bench;
pub(crate) mod cluster;
pub(crate) mod demo;
pub(crate) mod generate;
pub(crate) mod image;
pub(crate) mod sim;
pub(crate) mod test;
pub(crate) mod tidy;
pub(crate) mod workload;

/// What a task ends with: an exit code, or an error to be printed.
pub(crate) type Done = Result<std::process::ExitCode, Box<dyn std::error::Error>>;

/// An error with everything that it says caused it.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
