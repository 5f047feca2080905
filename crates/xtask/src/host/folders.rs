//! Where things are kept. Never the system's own folders: what a task makes is
//! in the project or in the user's cache.

use std::path::{Path, PathBuf};

/// The top folder of this checkout.
pub fn project_root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_path_buf()
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
