//! Good and bad specs against a real API server: the same files that the tests
//! of `api` check without one. Dry runs, except where an update needs a before.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test stops where its picture is wrong"
)]

use std::path::{Path, PathBuf};

use api::{GROUP, KIND, VERSION};
use kube::Api;
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams,
};
use serde::Deserialize;
use xtask::host::project_root;
use xtask::stage::{Stage, StageError};

/// A file: documents to be applied before, and one to be judged.
struct Case {
    file: String,
    /// Where and with which sentence; `None`: accepted.
    refused: Option<(String, String)>,
    before: Vec<DynamicObject>,
    judged: DynamicObject,
}

fn cases() -> Vec<Case> {
    let folder = project_root().join("crates/api/tests/specs");
    let entries = std::fs::read_dir(folder).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.iter().map(|path| case(path)).collect()
}

fn case(path: &Path) -> Case {
    let text = std::fs::read_to_string(path).unwrap();
    let header = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key));
        line.map(|rest| rest.trim().to_owned())
    };
    let documents = serde_yaml_ng::Deserializer::from_str(&text);
    let mut documents: Vec<DynamicObject> = documents
        .map(|document| DynamicObject::deserialize(document).unwrap())
        .collect();
    let judged = documents.pop().unwrap();
    Case {
        file: path.file_name().unwrap().to_string_lossy().into_owned(),
        refused: header("# refused:").map(|says| (header("# at:").unwrap_or_default(), says)),
        before: documents,
        judged,
    }
}

fn clusters(stage: &Stage) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk(GROUP, VERSION, KIND);
    let resource = ApiResource::from_gvk_with_plural(&kind, "mysqlclusters");
    Api::namespaced_with(stage.client(), "default", &resource)
}

/// What the API server says to the last document.
fn judge(stage: &Stage, case: &Case) -> Result<(), String> {
    let clusters = clusters(stage);
    let name = case.judged.metadata.name.clone().unwrap();
    // Applied, as an update by replacement would race with an operator.
    let apply = PatchParams::apply("e2e");
    for document in &case.before {
        let document = Patch::Apply(document);
        stage
            .ask("apply", clusters.patch(&name, &apply, &document))
            .unwrap();
    }
    let answer = if case.before.is_empty() {
        let dry = PostParams {
            dry_run: true,
            ..PostParams::default()
        };
        stage.ask("create", clusters.create(&dry, &case.judged))
    } else {
        let dry = apply.dry_run();
        let judged = Patch::Apply(&case.judged);
        let answer = stage.ask("apply", clusters.patch(&name, &dry, &judged));
        let now = DeleteParams::default();
        stage.ask("delete", clusters.delete(&name, &now)).unwrap();
        answer
    };
    match answer {
        Ok(_) => Ok(()),
        Err(StageError::Api { source, .. }) => Err(source.to_string()),
        Err(other) => panic!("{other}"),
    }
}

/// The first sentence that is not as the file says.
fn difference(case: &Case, answer: &Result<(), String>) -> Option<String> {
    let wrong = match (&case.refused, answer) {
        (None, Ok(())) => return None,
        (None, Err(says)) => format!("should be accepted: {says}"),
        (Some((_, sentence)), Ok(())) => format!("should be refused: {sentence}"),
        (Some((at, sentence)), Err(says)) => {
            if says.contains(at.as_str()) && says.contains(sentence.as_str()) {
                return None;
            }
            format!("should be refused at `{at}` with `{sentence}`, but: {says}")
        }
    };
    Some(format!("{}: {wrong}", case.file))
}

#[test]
fn every_spec_is_accepted_or_refused_as_its_file_says() {
    let stage = e2e::bare_stage();
    stage
        .apply(&project_root().join("deploy/00-crd.yaml"))
        .unwrap();
    let wait =
        "wait --for=condition=Established --timeout=60s crd/mysqlclusters.mysql.katazuke.dev";
    stage.cluster.kubectl(wait.split(' ')).unwrap();
    let cases = cases();
    let refused = cases.iter().filter(|case| case.refused.is_some()).count();
    assert!(
        refused > 10 && cases.len() - refused > 5,
        "files of both kinds: {}",
        cases.len()
    );
    let wrong: Vec<String> = cases
        .iter()
        .filter_map(|case| difference(case, &judge(&stage, case)))
        .collect();
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        cases.len(),
        wrong.join("\n")
    );
}

#[test]
fn what_deploy_holds_is_accepted() {
    e2e::bare_stage()
        .apply(&project_root().join("deploy"))
        .unwrap();
}
