//! After the last fault: what the servers hold, what the logs say, and what is
//! left when the cluster is deleted.

use kube::Api;

use super::{DemoError, Play, TABLE};
use crate::cluster;
use crate::stage::{Name, Stage, Wait};
use crate::terminal::Terminal;
use crate::workload::History;

const DELETE_SECONDS_MAX: u64 = 180;

/// All instances hold the same, and every promise.
pub(super) fn agreement(
    play: &mut Play<'_>,
    history: &History,
    terminal: &mut Terminal,
) -> Result<(), DemoError> {
    let (stage, name) = (play.stage, play.name.clone());
    let agreement = stage.agreement(&name, TABLE, history, terminal)?;
    let executed = agreement
        .copies
        .first()
        .map(|copy| copy.reading.executed.replace('\n', ""));
    terminal.say(&format!(
        "{} instances hold the same: rows, checksum, gtid_executed = {}",
        agreement.copies.len(),
        executed.unwrap_or_default()
    ));
    play.score_mut().judge(history, agreement.verdict.clone());
    if agreement.verdict.holds() {
        return Ok(());
    }
    let record = super::record().display().to_string();
    Err(DemoError::Broken {
        verdict: Box::new(agreement.verdict),
        record,
    })
}

/// No line that a person should look at.
pub(super) fn logs(play: &mut Play<'_>, terminal: &mut Terminal) -> Result<(), DemoError> {
    play.logs.scan(play.stage)?;
    let found: Vec<_> = play.logs.found().iter().cloned().collect();
    if !found.is_empty() {
        return Err(DemoError::Errors { found });
    }
    terminal.say("no unexpected error in the logs of operators and agents");
    Ok(())
}

/// Deletes it, and looks for anything that stayed.
pub(super) fn delete(stage: &Stage, name: &Name, terminal: &mut Terminal) -> Result<(), DemoError> {
    let uid = stage
        .look(name)?
        .and_then(|picture| picture.resource.metadata.uid);
    let began = terminal.seconds();
    let clusters: Api<api::MySQLCluster> = Api::namespaced(stage.client(), &name.namespace);
    stage.ask("delete the cluster", async {
        clusters
            .delete(&name.name, &kube::api::DeleteParams::default())
            .await
    })?;
    let uid = uid.unwrap_or_default();
    let what = format!("nothing of {name} to be left");
    let wait = Wait {
        what: &what,
        seconds_max: DELETE_SECONDS_MAX,
    };
    let mut left = Vec::new();
    let gone = stage.wait(&wait, terminal, name, |stage| {
        left = stage.leftovers(name, &uid, false)?;
        left.extend(stage.stray_mysqlds()?);
        Ok(left.is_empty().then_some(()))
    });
    if !left.is_empty() {
        return Err(DemoError::LeftBehind { found: left });
    }
    gone?;
    let seconds = terminal.seconds() - began;
    terminal.say(&format!(
        "deleted {name}: nothing is left after {seconds:.1} s (every kind, every namespace, \
         volumes, processes)"
    ));
    cluster::down()?;
    let found = cluster::leftovers()?;
    if !found.is_empty() {
        return Err(DemoError::Machine { found });
    }
    terminal.say("took the local Kubernetes down; nothing of it is left on this machine");
    Ok(())
}

/// For whoever wants to play.
pub(super) fn how_to_use(stage: &Stage, name: &Name) -> Result<(), DemoError> {
    let login = stage.login(name)?;
    let service = manifests::names::primary_service(&name.name);
    let secret = manifests::names::app_secret(&name.name);
    let instance = manifests::names::instance(&name.name, 0);
    let Name { namespace, name } = name;
    println!(
        "
The cluster is left running.

kubectl    export KUBECONFIG={kubeconfig}
           kubectl --namespace {namespace} get mysqlcluster {name} --watch
           (without a kubectl of your own: cargo xtask cluster kubectl …)
MySQL      password=$(kubectl --namespace {namespace} get secret {secret} --output jsonpath='{{.data.password}}' | base64 --decode)
           kubectl --namespace {namespace} exec --stdin --tty {instance} --container mysqld -- \\
             mysql --host={service} --user={user} --password=\"$password\" {database}
break it   cargo xtask cluster node kz-1 crash; cargo xtask cluster node kz-1 start
           kubectl --namespace {namespace} annotate mysqlcluster {name} --overwrite mysql.katazuke.dev/switchover=mine-1
the end    cargo xtask cluster down
",
        kubeconfig = stage.cluster.kubeconfig().display(),
        user = login.user,
        database = login.database,
    );
    Ok(())
}
