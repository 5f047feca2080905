//! Builds hack/local-cluster: Kubernetes, etcd, CoreDNS and the project's own
//! small programs. Ten minutes when nothing is cached, so the result is kept by
//! the hash of its sources and shared by every checkout on the machine.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{HostError, Progress, cache_folder, key_of, made_once, project_root, read, run};

/// The programs built from hack/local-cluster.
#[derive(Debug, Clone)]
pub struct LocalKube {
    /// The multi-call binary; it must keep the name `localkube`.
    pub localkube: PathBuf,
    /// PID 1 of every Pod sandbox.
    pub pause: PathBuf,
}

/// Builds, or finds what was built from the same sources.
pub fn local_kube(progress: &Progress) -> Result<LocalKube, HostError> {
    let module = project_root().join("hack/local-cluster");
    let folder = cache_folder().join(format!("localkube-{}", hash_of(&module)?));
    let built = LocalKube {
        localkube: folder.join("localkube"),
        pause: folder.join("pause"),
    };
    made_once(&built.localkube, || build_both(&module, &built, progress))?;
    Ok(built)
}

fn build_both(module: &Path, built: &LocalKube, progress: &Progress) -> Result<(), HostError> {
    check_go(module)?;
    progress.step("building the local Kubernetes with Go (about ten minutes the first time)");
    let kubernetes = required_version(module, "k8s.io/kubernetes")?;
    build(module, "./pause", &built.pause, "-s -w")?;
    build(module, ".", &built.localkube, &version_flags(&kubernetes))?;
    progress.step("built the local Kubernetes");
    Ok(())
}

fn build(module: &Path, package: &str, to: &Path, linker_flags: &str) -> Result<(), HostError> {
    let unfinished = to.with_extension("unfinished");
    let mut go = Command::new("go");
    go.current_dir(module)
        .env("CGO_ENABLED", "0")
        .env("GOWORK", "off");
    go.args([
        "build",
        "-trimpath",
        "-tags",
        "providerless",
        "-ldflags",
        linker_flags,
        "-o",
    ]);
    run(go.arg(&unfinished).arg(package))?;
    std::fs::rename(&unfinished, to).map_err(|source| HostError::File {
        doing: "rename",
        path: unfinished,
        source,
    })
}

/// Kubernetes compares its own version with that of others; an unset one is 0.0.
fn version_flags(version: &str) -> String {
    let package = "k8s.io/component-base/version";
    let mut numbers = version.trim_start_matches('v').split('.');
    let (major, minor) = (
        numbers.next().unwrap_or_default(),
        numbers.next().unwrap_or_default(),
    );
    format!(
        "-s -w -X {package}.gitVersion={version} -X {package}.gitMajor={major} -X {package}.gitMinor={minor}"
    )
}

fn required_version(module: &Path, name: &str) -> Result<String, HostError> {
    let text = read(&module.join("go.mod"))?;
    let line = text
        .lines()
        .map(str::trim)
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    Ok(line
        .unwrap_or_default()
        .split(' ')
        .next()
        .unwrap_or_default()
        .to_owned())
}

fn check_go(module: &Path) -> Result<(), HostError> {
    // Run in the module: go itself compares its version with that in go.mod.
    match run(Command::new("go").current_dir(module).args(["list", "-m"])) {
        Ok(_) => Ok(()),
        Err(error) => {
            let wanted = required_version(module, "go")?;
            Err(HostError::Go {
                wanted,
                found: error.to_string(),
            })
        }
    }
}

fn hash_of(module: &Path) -> Result<String, HostError> {
    let mut files = Vec::new();
    sources(module, &mut files)?;
    files.sort();
    let mut inputs = Vec::new();
    for file in files {
        let name = file.strip_prefix(module).unwrap_or(&file);
        inputs.extend([name.display().to_string(), read(&file)?]);
    }
    let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
    Ok(key_of(&inputs))
}

fn sources(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), HostError> {
    let failed = |source| HostError::File {
        doing: "list",
        path: folder.to_path_buf(),
        source,
    };
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() {
            sources(&path, files)?;
        } else if is_source(&path) {
            files.push(path);
        }
    }
    Ok(())
}

/// What the programs are made of; their tests are not in them.
fn is_source(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let kinds = [".go", ".mod", ".sum"];
    kinds.iter().any(|kind| name.ends_with(kind)) && !name.ends_with("_test.go")
}
