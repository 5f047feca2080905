//! The MySQL image, from Debian packages: mysqld and its client, the semi-sync
//! and clone plugins, nothing that starts by itself. The mirror is the one that
//! apt on this machine uses; no address is ever written down here.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::archive::{Recipe, write_archive};
use super::{ImageError, MYSQL};
use crate::host::{Progress, cache_folder, key_of, made_once, read, remove_file, run};

const SERIES: &str = "9.7";
const SUITE: &str = "sid";
const PACKAGES: &str = "mysql-server-core,mysql-client-core";

/// Files that no Pod reads; they are half of the image.
const LEFT_OUT: [&str; 6] = [
    "/usr/share/doc/*",
    "/usr/share/man/*",
    "/usr/share/locale/*",
    "/usr/share/info/*",
    "/usr/share/lintian/*",
    "/var/lib/mysql/*",
];

/// mysqld refuses to start without the folder of `secure-file-priv`. 999 is the
/// user that Katazuke's Pods run as; others need to see it only.
const PREPARE: &str = r#"mkdir -p "$1/var/lib/mysql-files" && chown 999:999 "$1/var/lib/mysql-files" && chmod 0755 "$1/var/lib/mysql-files""#;

/// Makes the image, or finds it in the cache.
pub fn mysql_archive(progress: &Progress) -> Result<PathBuf, ImageError> {
    let key = key_of(&[SERIES, SUITE, PACKAGES, PREPARE, &LEFT_OUT.concat()]);
    let archive = cache_folder().join(format!("mysql-{SERIES}-{key}.tar"));
    made_once(&archive, || make(&archive, progress))?;
    Ok(archive)
}

fn make(archive: &Path, progress: &Progress) -> Result<(), ImageError> {
    progress.step("making the MySQL image from Debian packages (about a minute)");
    let layer = archive.with_extension("layer");
    let version = archive.with_extension("version");
    bootstrap(&layer, &version)?;
    let found = read(&version)?.trim().to_owned();
    if !found.contains(&format!("Ver {SERIES}.")) {
        let wanted = SERIES;
        return Err(ImageError::MysqlVersion { found, wanted });
    }
    let recipe = Recipe {
        name: MYSQL,
        entrypoint: &[],
    };
    write_archive(&recipe, &layer, archive)?;
    remove_file(&layer)?;
    progress.step(&format!("made the MySQL image: {found}"));
    Ok(())
}

fn bootstrap(layer: &Path, version: &Path) -> Result<(), ImageError> {
    let mirror = mirror()?;
    let mut command = Command::new("mmdebstrap");
    command.args([
        "--quiet",
        "--mode=root",
        "--variant=minbase",
        "--format=tar",
    ]);
    command.arg(format!("--include={PACKAGES}"));
    for option in apt_options()? {
        command.arg(format!("--aptopt={option}"));
    }
    for files in LEFT_OUT {
        command.arg(format!("--dpkgopt=path-exclude={files}"));
    }
    command.arg(format!("--customize-hook={PREPARE}"));
    command.arg(format!(
        "--customize-hook=chroot \"$1\" mysqld --version > '{}'",
        version.display()
    ));
    run(command.arg(SUITE).arg(layer).arg(mirror))?;
    Ok(())
}

/// The archive that serves this machine's own packages serves sid as well; its
/// security archive does not.
fn mirror() -> Result<String, ImageError> {
    let format = [
        "indextargets",
        "--format",
        "$(CODENAME) $(REPO_URI)",
        "Created-By: Packages",
    ];
    let targets = run(Command::new("apt-get").args(format))?;
    let mut mirrors = targets.lines().filter_map(|line| line.split_once(' '));
    let (_, uri) = mirrors
        .find(|(suite, _)| !suite.contains("security"))
        .ok_or(ImageError::NoMirror)?;
    Ok(uri.to_owned())
}

/// How this machine reaches its mirror (a proxy, a mirror that lags) holds for
/// the bootstrap too.
fn apt_options() -> Result<Vec<String>, ImageError> {
    let all = run(Command::new("apt-config").args(["dump", "Acquire"]))?;
    let wanted = [
        "Acquire::Check-Valid-Until ",
        "Acquire::http::Proxy ",
        "Acquire::https::Proxy ",
    ];
    let lines = all
        .lines()
        .filter(|line| wanted.iter().any(|name| line.starts_with(name)));
    Ok(lines
        .map(|line| line.trim_end_matches(';').to_owned())
        .collect())
}
