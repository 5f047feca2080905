//! What agents and servers do in the kind world.

use gtid::{Gtid, GtidSet, Uuid};
use katazuke_core::Directive;
use katazuke_core::observed::{
    Access, Agent, Mysqld, OnDisk, Position, Receiver, Replication, Server, Tail, Volume,
};

pub(super) fn next_gtid(server: &Server) -> Gtid {
    #[expect(clippy::cast_possible_truncation, reason = "a test writes a handful")]
    let number = server
        .executed
        .union(&server.last_binlog)
        .only(server.uuid)
        .count() as u64
        + 1;
    format!("{}:{number}", server.uuid).parse().unwrap()
}

/// mysqld is gone: what it had is on its disk.
pub(super) fn gate(agent: &mut Agent) {
    if let Mysqld::Running(server) = &agent.mysqld {
        let relay = server
            .replication
            .as_ref()
            .map(|r| r.retrieved.clone())
            .unwrap_or_default();
        agent.volume = Volume::Data(OnDisk {
            uuid: Some(server.uuid),
            binlog: server.executed.union(&server.last_binlog),
            relay,
            tail: vec![Tail {
                gtids: server.executed.union(&server.last_binlog),
                stopped: false,
            }],
            undo: false,
        });
    }
    agent.mysqld = Mysqld::Gated {
        failed_starts: 0,
        message: None,
    };
    agent.source_silent_milliseconds = None;
    agent.settled_milliseconds = 0;
}

pub(super) fn tick_agent(agent: &mut Agent, sources: &[Server]) {
    agent.settled_milliseconds += 1_000;
    let seen_version = agent.seen_version;
    let Mysqld::Running(server) = &mut agent.mysqld else {
        return;
    };
    server.as_of_version = seen_version;
    let Some(replication) = &mut server.replication else {
        return;
    };
    let source = sources
        .iter()
        .find(|source| Some(source.uuid) == replication.source);
    agent.source_silent_milliseconds = match (&source, replication.receiver) {
        (Some(_), Receiver::Yes) => Some(0),
        (_, _) => Some(agent.source_silent_milliseconds.unwrap_or(0) + 1_000),
    };
    if let (Some(source), Receiver::Yes) = (source, replication.receiver) {
        replication.retrieved = replication.retrieved.union(&source.executed);
        replication.position = source.binlog_end;
        if replication.applier {
            server.executed = server.executed.union(&replication.retrieved);
        }
    }
}

pub(super) fn boot(agent: &mut Agent) {
    let Volume::Data(data) = &agent.volume else {
        panic!("boot without data")
    };
    agent.mysqld = Mysqld::Running(Server {
        as_of_version: agent.seen_version,
        uuid: data.uuid.unwrap(),
        version: (9, 7, 4),
        executed: data.binlog.clone(),
        last_binlog: GtidSet::new(),
        binlog_end: Position {
            file: 2,
            offset: 200,
        },
        access: Access::Closed,
        semi_sync: None,
        waiters: false,
        replication: None,
        drift: Vec::new(),
        app_ready: false,
    });
}

pub(super) fn data(agent: &mut Agent, uuid: Uuid, binlog: GtidSet) {
    let tail = vec![Tail {
        gtids: binlog.clone(),
        stopped: false,
    }];
    agent.volume = Volume::Data(OnDisk {
        uuid: Some(uuid),
        binlog,
        relay: GtidSet::new(),
        tail,
        undo: false,
    });
}

pub(super) fn obey(
    agent: &mut Agent,
    directive: Directive,
    version: u64,
    fresh: Uuid,
    donor: Option<GtidSet>,
) {
    match directive {
        Directive::Initialise => return data(agent, fresh, GtidSet::new()),
        Directive::Clone { .. } => return data(agent, fresh, donor.unwrap_or_default()),
        Directive::Boot | Directive::Resume => return boot(agent),
        Directive::FenceSelf | Directive::Stop => {
            agent.self_fenced = Some(version);
            return gate(agent);
        }
        Directive::Discard { .. } => {
            agent.volume = Volume::Empty;
            return;
        }
        Directive::Follow { .. }
        | Directive::Admit { .. }
        | Directive::Fence
        | Directive::CatchUp
        | Directive::Promote { .. }
        | Directive::SemiSync { .. }
        | Directive::Open { .. }
        | Directive::ServeReads
        | Directive::CloseReads
        | Directive::Freeze { .. }
        | Directive::DiscardRelayLogs { .. }
        | Directive::EnsureApp => {}
    }
    let Mysqld::Running(server) = &mut agent.mysqld else {
        return;
    };
    tell(server, directive);
    server.as_of_version = version;
}

fn tell(server: &mut Server, directive: Directive) {
    match directive {
        Directive::Follow {
            source_uuid,
            within,
            ..
        } => {
            assert!(
                within.contains(&server.received()),
                "Follow with an errant set"
            );
            server.semi_sync = None;
            server.replication = Some(Replication {
                source: Some(source_uuid),
                receiver: Receiver::Yes,
                applier: true,
                retrieved: GtidSet::new(),
                position: Position::default(),
                semi_sync_enabled: false,
                semi_sync_active: false,
                lag_seconds: Some(0),
                receiver_error: None,
                applier_error: None,
            });
        }
        Directive::Admit { .. } => acks(server, true),
        Directive::Fence => {
            acks(server, false);
            if let Some(replication) = &mut server.replication {
                replication.receiver = Receiver::No;
            }
        }
        Directive::CatchUp => server.executed = server.received(),
        Directive::Promote { until, k } => {
            assert!(server.executed.contains(&until));
            server.replication = None;
            server.access = Access::Closed;
            server.semi_sync = (k > 0).then_some(k);
        }
        Directive::SemiSync { k } => server.semi_sync = (k > 0).then_some(k),
        Directive::Open { k } => {
            assert_eq!(server.semi_sync, (k > 0).then_some(k));
            server.access = Access::Writes;
        }
        Directive::CloseReads => server.access = Access::Closed,
        Directive::ServeReads | Directive::Freeze { .. } => server.access = Access::Reads,
        Directive::EnsureApp => {
            let gtid = next_gtid(server);
            server.executed.insert(gtid);
            server.binlog_end.offset += 100;
            server.app_ready = true;
        }
        Directive::DiscardRelayLogs { .. } => server.replication = None,
        Directive::Initialise
        | Directive::Clone { .. }
        | Directive::Boot
        | Directive::Resume
        | Directive::FenceSelf
        | Directive::Stop
        | Directive::Discard { .. } => {}
    }
}

fn acks(server: &mut Server, on: bool) {
    if let Some(replication) = &mut server.replication {
        replication.semi_sync_enabled = on;
        replication.semi_sync_active = on;
    }
}
