//! Where things are kept. Never the system's own folders: what a task makes is
//! in the project or in the user's cache.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

use super::{HostError, create_folder};

/// The top folder of this checkout.
pub fn project_root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_path_buf()
}

/// This program, also after cargo has built it anew while it ran: Linux then
/// says "(deleted)" behind the name at which the new one stands.
pub fn this_program() -> std::io::Result<PathBuf> {
    let path = std::env::current_exe()?;
    let text = path.to_string_lossy();
    Ok(text
        .strip_suffix(" (deleted)")
        .map_or_else(|| path.clone(), PathBuf::from))
}

/// What takes minutes to make and is the same for every checkout.
pub fn cache_folder() -> PathBuf {
    let from = |name: &str| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    from("XDG_CACHE_HOME")
        .or_else(|| from("HOME").map(|home| home.join(".cache")))
        .unwrap_or_else(|| project_root().join("target"))
        .join("katazuke")
}

/// Makes a thing of the cache unless it is there. Two tasks that want the same
/// at once do not disturb each other: the second waits and finds it made. So
/// `make` must let the thing appear last, and complete.
pub fn made_once<E: From<HostError>>(
    thing: &Path,
    make: impl FnOnce() -> Result<(), E>,
) -> Result<(), E> {
    if thing.exists() {
        return Ok(());
    }
    if let Some(folder) = thing.parent() {
        create_folder(folder)?;
    }
    let path = thing.with_extension("lock");
    let failed = |source| HostError::File {
        doing: "lock",
        path: path.clone(),
        source,
    };
    let mut options = OpenOptions::new();
    let lock = options.create(true).truncate(false).write(true).open(&path);
    let lock = lock.map_err(failed)?;
    lock.lock().map_err(failed)?;
    if thing.exists() { Ok(()) } else { make() }
}
