//! Installing Katazuke as a user does: kubectl and the files of deploy/.

use std::path::Path;

use k8s_openapi::api::apps::v1::Deployment;
use manifests::{OPERATOR_NAMESPACE, OPERATOR_SERVICE_ACCOUNT};

use super::{Name, Stage, StageError, Wait};
use crate::host::project_root;
use crate::terminal::Terminal;

const OPERATOR_SECONDS_MAX: u64 = 120;

impl Stage {
    /// Applies deploy/ and waits until both operators are there.
    pub fn install(&self, terminal: &mut Terminal) -> Result<(), StageError> {
        self.apply(&project_root().join("deploy"))?;
        self.operators(2, terminal)
    }

    /// Applies a file or the files of a folder.
    pub fn apply(&self, path: &Path) -> Result<(), StageError> {
        let mut kubectl = self.cluster.kubectl_command();
        kubectl
            .args(["apply", "--server-side", "--filename"])
            .arg(path);
        crate::host::run(&mut kubectl)?;
        Ok(())
    }

    /// Makes a namespace; one that exists is fine.
    pub fn make_namespace(&self, name: &str) -> Result<(), StageError> {
        let kind = "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\"";
        let text = format!("{kind},\"metadata\":{{\"name\":\"{name}\"}}}}");
        self.apply_text(&text)
    }

    /// Applies a manifest.
    pub fn apply_text(&self, text: &str) -> Result<(), StageError> {
        let file = tempfile::NamedTempFile::new().map_err(|source| {
            let path = std::env::temp_dir();
            crate::host::HostError::File {
                doing: "create a file in",
                path,
                source,
            }
        })?;
        crate::host::write(file.path(), text)?;
        self.apply(file.path())
    }

    /// Scales the operator, and waits until as many are available.
    pub fn scale_operator(&self, count: i32, terminal: &mut Terminal) -> Result<(), StageError> {
        let replicas = format!("--replicas={count}");
        let name = format!("deployment/{OPERATOR_SERVICE_ACCOUNT}");
        self.cluster
            .kubectl(["--namespace", OPERATOR_NAMESPACE, "scale", &name, &replicas])?;
        self.operators(count, terminal)
    }

    fn operators(&self, count: i32, terminal: &mut Terminal) -> Result<(), StageError> {
        let about = Name::new(OPERATOR_NAMESPACE, OPERATOR_SERVICE_ACCOUNT);
        let what = format!("{count} operators to be available");
        let wait = Wait {
            what: &what,
            seconds_max: OPERATOR_SECONDS_MAX,
        };
        self.wait(&wait, terminal, &about, |stage| {
            let deployment: Deployment = stage.get(&about.namespace, &about.name)?;
            let status = deployment.status.unwrap_or_default();
            let (all, available) = (status.replicas, status.available_replicas);
            let is_so = all.unwrap_or(0) == count && available.unwrap_or(0) == count;
            Ok(is_so.then_some(()))
        })
    }
}
