//! What tells one life of this volume's page cache from the next: kernel boot
//! id and a token in memory. Never stored on the volume.

use std::{fs, io, path::Path};

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
const TOKEN: &str = "incarnation";

/// The present incarnation; makes the token if there is none.
pub(crate) fn read(run_dir: &Path) -> io::Result<String> {
    let path = run_dir.join(TOKEN);
    match fs::read_to_string(&path) {
        Ok(token) if !token.trim().is_empty() => Ok(join(&boot_id()?, token.trim())),
        Ok(_) => renew(run_dir),
        Err(error) if error.kind() == io::ErrorKind::NotFound => renew(run_dir),
        Err(error) => Err(error),
    }
}

/// Before anything that destroys relay logs or data.
pub(crate) fn renew(run_dir: &Path) -> io::Result<String> {
    let token = uuid::Uuid::new_v4().to_string();
    let temporary = run_dir.join("incarnation.tmp");
    fs::write(&temporary, &token)?;
    fs::rename(&temporary, run_dir.join(TOKEN))?;
    Ok(join(&boot_id()?, &token))
}

fn boot_id() -> io::Result<String> {
    Ok(fs::read_to_string(BOOT_ID)?.trim().to_owned())
}

fn join(boot_id: &str, token: &str) -> String {
    format!("{boot_id}:{token}")
}
