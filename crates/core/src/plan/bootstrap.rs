//! From nothing to a recorded primary. Initialising is itself recorded first
//! (R4), and only when every volume was *seen* to be empty.

use super::Steps;
use crate::action::Directive;
use crate::observed::{Agent, Mysqld, Observed, Seen, Volume};
use crate::record::{Bootstrap, Member, Ordinal, Record};

const FIRST: Ordinal = Ordinal(0);

pub(super) fn plan(observed: &Observed) -> Steps {
    let mut steps = super::pods::repairs(observed);
    if !steps.others.is_empty() {
        return steps;
    }
    match &observed.record.bootstrap {
        None => steps.record(begin(observed)),
        Some(bootstrap) => go_on(observed, bootstrap, &mut steps),
    }
    steps
}

/// All volumes are seen to be empty: record which one is initialised.
fn begin(observed: &Observed) -> Option<Record> {
    let all_empty = (0..observed.spec.replicas).all(|ordinal| {
        observed
            .agent(Ordinal(ordinal))
            .is_some_and(|agent| matches!(agent.volume, Volume::Empty))
    });
    let claim = match &observed.instances.get(&FIRST)?.claim {
        Seen::Present(claim) => claim,
        Seen::Absent | Seen::Unknown(_) => return None,
    };
    all_empty.then(|| Record {
        acknowledge: observed.spec.acknowledge,
        bootstrap: Some(Bootstrap {
            instance: FIRST,
            volume: claim.uid.clone(),
        }),
        ..observed.record.next()
    })
}

fn go_on(observed: &Observed, bootstrap: &Bootstrap, steps: &mut Steps) {
    let Some(agent) = observed.agent(bootstrap.instance) else {
        return;
    };
    if agent.job.is_some() {
        return;
    }
    match &agent.volume {
        Volume::Empty | Volume::PartialInitialise => {
            steps.order(observed, bootstrap.instance, Directive::Initialise);
        }
        Volume::Data(_) => steps.record(found(observed, bootstrap, agent)),
        Volume::Locked | Volume::PartialClone | Volume::Unreadable(_) => {}
    }
}

/// The new data directory is there: its server is the primary of epoch 1, with k = 0.
fn found(observed: &Observed, bootstrap: &Bootstrap, agent: &Agent) -> Option<Record> {
    let uuid = agent
        .uuid()
        .filter(|_| matches!(agent.mysqld, Mysqld::Gated { .. }))?;
    Some(Record {
        epoch: 1,
        primary: Some(Member {
            ordinal: bootstrap.instance,
            uuid,
            incarnation: agent.incarnation.clone(),
        }),
        k: 0,
        bootstrap: None,
        ..observed.record.next()
    })
}
