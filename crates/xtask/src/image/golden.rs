//! A containerd root with the images unpacked, made once. Every node starts
//! from hard links to it: layers are read-only, so nodes share the disk blocks
//! and a node is ready in a fraction of a second.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::archive::{Recipe, write_archive, write_program_layer};
use super::{ImageError, PAUSE, mysql_archive};
use crate::host::{
    HostError, LocalKube, Progress, bound, cache_folder, create_folder, key_of, line_of, made_once,
    remove_folder, run, sha256, write,
};

const CONTAINERD_START_SECONDS_MAX: u64 = 20;

/// bolt files are rewritten in place: these must be copies, not links.
const DATABASES: [&str; 2] = [
    "io.containerd.metadata.v1.bolt/meta.db",
    "io.containerd.snapshotter.v1.overlayfs/metadata.db",
];

/// The unpacked images.
#[derive(Debug, Clone)]
pub struct Golden {
    root: PathBuf,
}

/// Unpacks the images, or finds them unpacked.
pub fn golden(programs: &LocalKube, progress: &Progress) -> Result<Golden, ImageError> {
    let mysql = mysql_archive(progress)?;
    let folder = cache_folder().join(format!("images-{}", key(&mysql, programs)?));
    let root = folder.join("root");
    made_once(&root, || {
        progress.step("unpacking the images");
        unpack(&folder, &root, programs, &mysql)
    })?;
    Ok(Golden { root })
}

fn unpack(
    folder: &Path,
    root: &Path,
    programs: &LocalKube,
    mysql: &PathBuf,
) -> Result<(), ImageError> {
    let work = folder.with_extension("unfinished");
    remove_folder(&work)?;
    create_folder(&work)?;
    let pause = pause_archive(&programs.pause, &work)?;
    import(&work, &[&pause, mysql])?;
    let from = work.join("root");
    std::fs::rename(&from, root).map_err(|source| HostError::File {
        doing: "rename",
        path: from,
        source,
    })?;
    Ok(remove_folder(&work)?)
}

fn key(mysql: &Path, programs: &LocalKube) -> Result<String, ImageError> {
    let containerd = run(Command::new("containerd").arg("--version"))?;
    let mysql = mysql.file_name().unwrap_or_default().to_string_lossy();
    Ok(key_of(&[&containerd, &mysql, &sha256(&programs.pause)?]))
}

fn pause_archive(pause: &Path, folder: &Path) -> Result<PathBuf, ImageError> {
    let (layer, archive) = (folder.join("pause.layer"), folder.join("pause.tar"));
    write_program_layer(pause, "/pause", &layer)?;
    write_archive(
        &Recipe {
            name: PAUSE,
            entrypoint: &["/pause"],
        },
        &layer,
        &archive,
    )?;
    Ok(archive)
}

/// Runs a containerd of its own in namespaces of its own: the host never sees
/// the mounts that unpacking needs.
fn import(folder: &Path, archives: &[&PathBuf]) -> Result<(), ImageError> {
    let (socket, log) = (folder.join("s"), folder.join("log"));
    let config = folder.join("containerd.toml");
    let text = format!(
        "version = 2\nroot = '{0}/root'\nstate = '{0}/state'\ndisabled_plugins = ['io.containerd.grpc.v1.cri']\n[grpc]\n  address = '{1}'\n[ttrpc]\n  address = '{1}.ttrpc'\n",
        folder.display(),
        socket.display()
    );
    write(&config, text)?;
    let mut containerd = start(&config, &log)?;
    let imported = wait_for(&socket, &log).and_then(|()| {
        archives.iter().try_for_each(|archive| {
            let mut ctr = Command::new("ctr");
            ctr.arg("--address")
                .arg(&socket)
                .args(["--namespace", "k8s.io", "images", "import"]);
            run(ctr.arg(archive)).map(drop).map_err(ImageError::from)
        })
    });
    stop(&mut containerd);
    imported
}

fn start(config: &Path, log: &Path) -> Result<Child, ImageError> {
    let file = std::fs::File::create(log).map_err(|source| HostError::File {
        doing: "create",
        path: log.into(),
        source,
    })?;
    // With --pdeathsig it ends even if this process is killed.
    let mut command = Command::new("setpriv");
    command.args([
        "--pdeathsig",
        "TERM",
        "unshare",
        "--mount",
        "--net",
        "containerd",
        "--config",
    ]);
    command
        .arg(config)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(file);
    let line = line_of(&command);
    Ok(command.spawn().map_err(|source| HostError::Start {
        command: line,
        source,
    })?)
}

fn wait_for(socket: &Path, log: &Path) -> Result<(), ImageError> {
    let deadline = Instant::now() + Duration::from_secs(CONTAINERD_START_SECONDS_MAX);
    while !socket.exists() {
        if Instant::now() > deadline {
            return Err(ImageError::Containerd {
                seconds: CONTAINERD_START_SECONDS_MAX,
                log: log.into(),
            });
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

/// Lets it finish writing. An error here would only hide a better one.
fn stop(containerd: &mut Child) {
    if let Ok(pid) = i32::try_from(containerd.id()) {
        let _ = nix::sys::signal::kill(
            nix::unistd::Pid::from_raw(pid),
            nix::sys::signal::Signal::SIGTERM,
        );
    }
    let _ = containerd.wait();
}

impl Golden {
    /// Gives a node its own containerd root.
    pub fn seed(&self, root: &Path) -> Result<(), ImageError> {
        if let Some(folder) = root.parent() {
            create_folder(folder)?;
        }
        let copy = |how: &str, from: &Path, to: &Path| {
            run(bound("cp").args(["-a", how]).arg(from).arg(to))
        };
        if copy("--link", &self.root, root).is_err() {
            // The cache is on another file system: costs time and disk only.
            remove_folder(root)?;
            copy("--reflink=auto", &self.root, root)?;
        }
        for database in DATABASES {
            copy(
                "--remove-destination",
                &self.root.join(database),
                &root.join(database),
            )?;
        }
        Ok(())
    }
}
