//! From core's directive to the order on the wire: names, addresses, the
//! record's stamp. Pure. Never adds a decision: one directive, one act.

use std::time::Duration;

use gtid::Uuid;
use katazuke_core::record::Ordinal;
use katazuke_core::semisync::may_replicate;
use katazuke_core::{Directive, Observed};
use wire::{Act, Endpoint, Order, Stamp};

use crate::pki::InstanceName;

/// How long an order may take before it counts as unanswered.
const BOUND: Duration = Duration::from_secs(5);
/// A clean shutdown flushes.
const BOUND_STOP: Duration = Duration::from_secs(20);
/// Beyond what a freeze may wait by itself.
const BOUND_FREEZE_MORE: Duration = Duration::from_secs(3);

/// Whose orders these are.
pub(super) struct Cluster<'a> {
    /// Its name.
    pub name: &'a str,
    /// Namespace.
    pub namespace: &'a str,
    /// Uid of the resource.
    pub uid: &'a str,
}

/// The order for a directive, under the record as committed.
pub(super) fn order(
    cluster: &Cluster<'_>,
    observed: &Observed,
    to: Ordinal,
    uuid: Option<Uuid>,
    directive: &Directive,
) -> Order {
    let record = &observed.record;
    Order {
        cluster_uid: cluster.uid.to_owned(),
        uuid,
        stamp: Stamp {
            version: record.version,
            epoch: record.epoch,
        },
        peers: peers(observed, to),
        act: act(cluster, directive),
    }
}

/// How long to wait for its reply.
pub(super) fn bound(directive: &Directive) -> Duration {
    match directive {
        Directive::Freeze {
            id: _,
            wait_milliseconds,
        } => Duration::from_millis(*wait_milliseconds) + BOUND_FREEZE_MORE,
        Directive::Stop => BOUND_STOP,
        Directive::Initialise
        | Directive::Clone { .. }
        | Directive::Boot
        | Directive::Resume
        | Directive::Follow { .. }
        | Directive::Admit { .. }
        | Directive::Fence
        | Directive::FenceSelf
        | Directive::CatchUp
        | Directive::Promote { .. }
        | Directive::SemiSync { .. }
        | Directive::Open { .. }
        | Directive::ServeReads
        | Directive::CloseReads
        | Directive::Discard { .. }
        | Directive::DiscardRelayLogs { .. }
        | Directive::EnsureApp => BOUND,
    }
}

/// Who may replicate from it.
fn peers(observed: &Observed, to: Ordinal) -> Vec<String> {
    may_replicate(observed, to)
        .into_iter()
        .map(|ordinal| observed.name(ordinal))
        .collect()
}

fn endpoint(cluster: &Cluster<'_>, ordinal: Ordinal, uuid: Uuid) -> Endpoint {
    let instance = format!("{}-{ordinal}", cluster.name);
    let names = InstanceName {
        instance: &instance,
        cluster: cluster.name,
        namespace: cluster.namespace,
    };
    Endpoint {
        host: names.server_name(),
        port: wire::layout::MYSQL_PORT,
        uuid,
        instance,
    }
}

fn act(cluster: &Cluster<'_>, directive: &Directive) -> Act {
    match directive {
        Directive::Initialise => Act::Initialise,
        Directive::Clone { donor, donor_uuid } => Act::Clone {
            donor: endpoint(cluster, *donor, *donor_uuid),
        },
        Directive::Boot => Act::Boot,
        Directive::Resume => Act::Resume,
        Directive::Follow {
            source,
            source_uuid,
            within,
        } => Act::Follow {
            source: endpoint(cluster, *source, *source_uuid),
            within: within.clone(),
        },
        Directive::Admit { source_uuid } => Act::Admit {
            source: *source_uuid,
        },
        Directive::Fence => Act::Fence,
        Directive::FenceSelf => Act::FenceSelf,
        Directive::CatchUp => Act::CatchUp,
        Directive::Promote { until, k } => Act::Promote {
            until: until.clone(),
            k: *k,
        },
        Directive::SemiSync { k } => Act::SemiSync { k: *k },
        Directive::Open { k } => Act::Open { k: *k },
        Directive::ServeReads => Act::ServeReads,
        Directive::CloseReads => Act::CloseReads,
        Directive::Freeze {
            id,
            wait_milliseconds,
        } => Act::Freeze {
            id: id.clone(),
            wait_milliseconds: *wait_milliseconds,
        },
        Directive::Stop => Act::Stop,
        Directive::Discard { epoch, kept } => Act::Discard {
            epoch: *epoch,
            kept: kept.clone(),
        },
        Directive::DiscardRelayLogs { kept } => Act::DiscardRelayLogs { kept: kept.clone() },
        Directive::EnsureApp => Act::EnsureApp,
    }
}
