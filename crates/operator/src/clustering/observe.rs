//! observe: turns what the caches and the agents say into core's picture.
//! Parses at the border. What could not be seen stays unknown; nothing is
//! judged here, and nothing is read that was not handed in.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::MySQLCluster;
use k8s_openapi::api::core::v1::{Node, PersistentVolumeClaim, Pod as KubePod, PodSpec};
use katazuke_core::observed::{
    Access, Agent, Claim, Instance, Mode, Mysqld, Observed, OnDisk, Pod, Position, Rebuild,
    Receiver, Refusal, Replication, Request, Role, Seen, Server, Silence, Spec, Tail, Volume,
};
use katazuke_core::record::{Ordinal, Record};
use kube::ResourceExt;

use super::record::read_acknowledge;
use super::trouble;
use crate::agents::{Fresh, Said};
use crate::labels;

/// What one pass looks at.
pub(super) struct Sources<'a> {
    /// The resource.
    pub cluster: &'a MySQLCluster,
    /// `status.ha`, read.
    pub record: Record,
    /// Taken before the record.
    pub said: &'a BTreeMap<Ordinal, Said>,
    /// How long an instance without a link has been silent at least.
    pub milliseconds_without_link: u64,
    /// Pods of the cluster by name; `None` while the cache is not synced.
    pub pods: Option<BTreeMap<String, Arc<KubePod>>>,
    /// Claims of the cluster by name; `None` while the cache is not synced.
    pub claims: Option<BTreeMap<String, Arc<PersistentVolumeClaim>>>,
    /// Nodes by name.
    pub node: &'a dyn Fn(&str) -> Option<Arc<Node>>,
    /// Hash that an up-to-date Pod carries, where the spec is valid.
    pub spec_hash: &'a dyn Fn(Ordinal) -> Option<String>,
    /// Orders that were refused.
    pub refusals: &'a BTreeMap<Ordinal, Refusal>,
}

/// The picture of this pass.
pub(super) fn observe(sources: &Sources<'_>) -> Observed {
    let name = sources.cluster.name_any();
    let replicas = u32::try_from(sources.cluster.spec.replicas).unwrap_or(0);
    let mut ordinals: BTreeSet<Ordinal> = (0..replicas).map(Ordinal).collect();
    if let Some(pods) = &sources.pods {
        ordinals.extend(pods.keys().filter_map(|pod| ordinal(&name, pod)));
    }
    ordinals.extend(sources.record.primary_ordinal());
    ordinals.extend(sources.record.ackers.iter().map(|acker| acker.ordinal));
    let instances = ordinals
        .into_iter()
        .map(|o| (o, instance(sources, &name, o)))
        .collect();
    Observed {
        request: request(sources.cluster),
        spec: spec(sources.cluster, replicas),
        record: sources.record.clone(),
        cluster: name,
        instances,
    }
}

/// `2` in `shop-2`.
pub fn ordinal(cluster: &str, instance: &str) -> Option<Ordinal> {
    let number = instance.strip_prefix(cluster)?.strip_prefix('-')?;
    number.parse().ok().map(Ordinal)
}

fn spec(cluster: &MySQLCluster, replicas: u32) -> Spec {
    let spec = &cluster.spec;
    let mode = if cluster.metadata.deletion_timestamp.is_some() {
        Mode::Deleting
    } else if spec.paused {
        Mode::Paused
    } else if spec.offline {
        Mode::Offline
    } else {
        Mode::Run
    };
    Spec {
        replicas,
        acknowledge: read_acknowledge(spec.durability.acknowledge),
        silence_milliseconds: u64::try_from(spec.failover.silence_seconds).unwrap_or(5) * 1000,
        rebuild: match spec.rebuild.policy {
            api::RebuildPolicy::Auto => Rebuild::Auto,
            api::RebuildPolicy::Manual => Rebuild::Manual,
        },
        mode,
    }
}

/// `<id>` or `<id> to=<ordinal or instance>`. A target that cannot be read
/// makes the request one that core refuses: an instance that does not exist.
fn request(cluster: &MySQLCluster) -> Option<Request> {
    let text = cluster.annotations().get(labels::SWITCHOVER)?;
    let mut words = text.split_whitespace();
    let id = words.next()?.to_owned();
    let to = words
        .find_map(|word| word.strip_prefix("to="))
        .map(|target| {
            let by_number = target.parse().ok().map(Ordinal);
            by_number
                .or_else(|| ordinal(&cluster.name_any(), target))
                .unwrap_or(Ordinal(u32::MAX))
        });
    Some(Request { id, to })
}

fn instance(sources: &Sources<'_>, cluster: &str, of: Ordinal) -> Instance {
    let name = format!("{cluster}-{of}");
    let of_pod = sources
        .pods
        .as_ref()
        .and_then(|pods| pods.get(&name)?.spec.as_ref());
    let mounted = of_pod
        .and_then(|pod| mounted_generation(pod, cluster, of))
        .unwrap_or_else(|| sources.record.generation(of));
    let pod = match &sources.pods {
        None => Seen::Unknown(not_synced()),
        Some(pods) => pods.get(&name).map_or(Seen::Absent, |pod| {
            seen_pod(sources, pod, (sources.spec_hash)(of))
        }),
    };
    let claim = match &sources.claims {
        None => Seen::Unknown(not_synced()),
        Some(claims) => claims
            .get(&manifests::names::volume_claim(cluster, of.0, mounted))
            .map_or(Seen::Absent, |claim| seen_claim(claim, mounted)),
    };
    let agent = match sources.said.get(&of) {
        Some(Said::Fresh(fresh)) => Seen::Present(agent(fresh)),
        Some(Said::Silent { milliseconds, why }) => Seen::Unknown(Silence {
            milliseconds: *milliseconds,
            why: why.clone(),
        }),
        None => Seen::Unknown(Silence {
            milliseconds: sources.milliseconds_without_link,
            why: "its Pod has no address to dial".to_owned(),
        }),
    };
    let refusal = sources
        .refusals
        .get(&of)
        .filter(|refusal| refusal.version == sources.record.version)
        .cloned();
    Instance {
        pod,
        claim,
        agent,
        refusal,
    }
}

/// The generation of the volume that a Pod uses: while an instance is rebuilt
/// it is an older one than the record names.
fn mounted_generation(pod: &PodSpec, cluster: &str, of: Ordinal) -> Option<u32> {
    let prefix = format!("data-{cluster}-{of}-");
    pod.volumes.as_ref()?.iter().find_map(|volume| {
        let claim = &volume.persistent_volume_claim.as_ref()?.claim_name;
        claim.strip_prefix(&prefix)?.parse().ok()
    })
}

fn not_synced() -> Silence {
    let why = "the watch of the API server is not synced yet".to_owned();
    Silence {
        milliseconds: 0,
        why,
    }
}

fn seen_claim(claim: &PersistentVolumeClaim, generation: u32) -> Seen<Claim> {
    Seen::Present(Claim {
        uid: claim.uid().unwrap_or_default(),
        generation,
    })
}

fn seen_pod(sources: &Sources<'_>, pod: &KubePod, wanted: Option<String>) -> Seen<Pod> {
    let ours = sources.cluster.metadata.uid.as_deref();
    if let Some(owner) = pod
        .owner_references()
        .iter()
        .find(|owner| owner.controller == Some(true))
        && Some(owner.uid.as_str()) != ours
    {
        return Seen::Unknown(Silence {
            milliseconds: 0,
            why: format!(
                "Pod {} belongs to {} {}",
                pod.name_any(),
                owner.kind,
                owner.name
            ),
        });
    }
    let claims = sources.claims.iter().flat_map(BTreeMap::values);
    let trouble = trouble::of(pod).map(|trouble| trouble.with_claims(pod, claims.map(Arc::as_ref)));
    let hash = pod.annotations().get(manifests::SPEC_HASH);
    Seen::Present(Pod {
        uid: pod.uid().unwrap_or_default(),
        deleting: pod.metadata.deletion_timestamp.is_some(),
        ended: ended(pod) || out_of_service(sources, pod),
        role: pod
            .labels()
            .get(manifests::labels::ROLE)
            .and_then(|role| read_role(role)),
        outdated: wanted.is_some_and(|wanted| hash != Some(&wanted)),
        trouble_reason: trouble.as_ref().map(|trouble| trouble.reason.clone()),
        trouble: trouble.map(|trouble| trouble.sentence),
    })
}

/// The role in a label.
pub(super) fn read_role(label: &str) -> Option<Role> {
    match label {
        manifests::labels::ROLE_PRIMARY => Some(Role::Primary),
        manifests::labels::ROLE_REPLICA => Some(Role::Replica),
        _ => None,
    }
}

/// The label of a role.
pub(super) fn write_role(role: Role) -> &'static str {
    match role {
        Role::Primary => manifests::labels::ROLE_PRIMARY,
        Role::Replica => manifests::labels::ROLE_REPLICA,
    }
}

fn ended(pod: &KubePod) -> bool {
    let phase = pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

fn out_of_service(sources: &Sources<'_>, pod: &KubePod) -> bool {
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
    let Some(node) = node.and_then(sources.node) else {
        return false;
    };
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
    taints.is_some_and(|taints| {
        taints
            .iter()
            .any(|taint| taint.key == labels::OUT_OF_SERVICE)
    })
}

fn agent(fresh: &Fresh) -> Agent {
    let state = &fresh.state;
    Agent {
        incarnation: state.incarnation.clone(),
        seen_version: state.seen.version,
        self_fenced: state.self_fenced.map(|stamp| stamp.version),
        not_strict: state.not_strict.iter().copied().collect(),
        volume: volume(&state.volume),
        mysqld: mysqld(&state.mysqld),
        terminating: state.terminating,
        // Percentages tick: they are the agent's metrics.
        job: state
            .job
            .as_ref()
            .map(|job| format!("{:?}: {}", job.kind, job.stage)),
        job_failure: state.job_failure.clone(),
        settled_milliseconds: fresh.settled_milliseconds,
        unanswered_milliseconds: fresh.unanswered_milliseconds,
        source_silent_milliseconds: fresh.source_silent_milliseconds,
    }
}

fn volume(volume: &wire::Volume) -> Volume {
    match volume {
        wire::Volume::Locked => Volume::Locked,
        wire::Volume::Empty => Volume::Empty,
        wire::Volume::Partial {
            what: wire::JobKind::Initialise,
        } => Volume::PartialInitialise,
        wire::Volume::Partial {
            what: wire::JobKind::Clone | wire::JobKind::Discard,
        } => Volume::PartialClone,
        wire::Volume::Partial {
            what: what @ wire::JobKind::CatchUp,
        } => Volume::Unreadable(format!("half of a {what:?}, which never empties a volume")),
        wire::Volume::Data { on_disk } => Volume::Data(OnDisk {
            uuid: on_disk.uuid,
            binlog: on_disk.binlog.clone(),
            relay: on_disk.relay.clone(),
            tail: on_disk
                .tail
                .iter()
                .map(|tail| Tail {
                    gtids: tail.gtids.clone(),
                    stopped: tail.stopped || tail.unparsable,
                })
                .collect(),
            undo: on_disk.undo.is_some(),
        }),
        wire::Volume::Unreadable { message } => Volume::Unreadable(message.clone()),
    }
}

fn mysqld(mysqld: &wire::Mysqld) -> Mysqld {
    match mysqld {
        wire::Mysqld::Gated { last_exit } => Mysqld::Gated {
            failed_starts: last_exit.as_ref().map_or(0, |exit| exit.failed_starts),
            message: last_exit.as_ref().and_then(|exit| exit.message.clone()),
        },
        wire::Mysqld::Starting => Mysqld::Starting,
        wire::Mysqld::Running { server } => Mysqld::Running(self::server(server)),
    }
}

fn server(server: &wire::Server) -> Server {
    Server {
        as_of_version: server.as_of.version,
        uuid: server.uuid,
        version: version(&server.version),
        executed: server.executed.clone(),
        last_binlog: server.last_binlog_gtids.clone(),
        binlog_end: position(&server.binlog_end),
        access: match (server.read_only, server.offline) {
            (true, true) => Access::Closed,
            (true, false) => Access::Reads,
            (false, false) => Access::Writes,
            (false, true) => Access::Opening,
        },
        semi_sync: server.semi_sync.enabled.then_some(server.semi_sync.k),
        waiters: server.semi_sync.waiting > 0,
        replication: server.replication.as_ref().map(replication),
        drift: server
            .drift
            .iter()
            .map(|drift| format!("{} is {}, not {}", drift.name, drift.have, drift.want))
            .collect(),
        app_ready: server.app_ready,
    }
}

fn replication(replication: &wire::Replication) -> Replication {
    Replication {
        source: replication.source,
        receiver: match replication.receiver {
            wire::Receiver::Yes => Receiver::Yes,
            wire::Receiver::Connecting => Receiver::Connecting,
            wire::Receiver::No => Receiver::No,
        },
        applier: replication.applier,
        retrieved: replication.retrieved.clone(),
        position: position(&replication.position),
        semi_sync_enabled: replication.semi_sync_enabled,
        semi_sync_active: replication.semi_sync_active,
        lag_seconds: replication.lag_seconds,
        receiver_error: replication.receiver_error.clone(),
        applier_error: replication.applier_error.clone(),
    }
}

fn position(position: &wire::BinlogPosition) -> Position {
    Position {
        file: position.file,
        offset: position.offset,
    }
}

/// `(9, 7, 4)` in `9.7.4-debug`; a part that is not a number counts as 0, the
/// lowest, which an election prefers.
fn version(text: &str) -> (u16, u16, u16) {
    let mut parts = text.split('.').map(|part| {
        let digits: String = part.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().unwrap_or(0)
    });
    let mut next = || parts.next().unwrap_or(0);
    (next(), next(), next())
}

#[cfg(test)]
mod tests;
