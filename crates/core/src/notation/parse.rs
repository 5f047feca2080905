//! Text → [`Observed`]. Every word must be known: a misspelt fact must not
//! silently become the default.

use std::collections::BTreeMap;

use gtid::{GtidSet, Uuid};
use thiserror::Error;

use super::words::{Result, Words};

use crate::observed::{
    Access, Agent, Claim, Instance, Mode, Mysqld, Observed, OnDisk, Pod, Position, Rebuild,
    Receiver, Refusal, Replication, Request, Role, Seen, Server, Silence, Spec, Tail, Volume,
};
use crate::record::{
    Acknowledge, Bootstrap, Deposed, Generation, Kind, Member, Ordinal, Record, Step, Transition,
};

/// What is wrong with a text, and where.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("line {line}: {what}")]
pub struct ParseError {
    /// Counted from 1.
    pub line: usize,
    /// A sentence.
    pub what: String,
}

/// Parses a whole picture.
pub fn observed(text: &str) -> std::result::Result<Observed, ParseError> {
    let mut seen = Observed {
        cluster: "shop".to_owned(),
        spec: spec(&Words::new("")).map_err(|what| ParseError { line: 0, what })?,
        record: Record::default(),
        instances: BTreeMap::new(),
        request: None,
    };
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        read_line(&mut seen, line).map_err(|what| ParseError {
            line: number + 1,
            what,
        })?;
    }
    Ok(seen)
}

fn read_line(seen: &mut Observed, line: &str) -> Result<()> {
    let (head, rest) = line
        .split_once(':')
        .ok_or_else(|| format!("`{line}` has no colon"))?;
    let words = Words::new(rest);
    match head {
        "spec" => seen.spec = spec(&words)?,
        "record" => seen.record = record(&words)?,
        "request" => seen.request = Some(request(&words)?),
        name => {
            let ordinal = name
                .rsplit_once('-')
                .and_then(|(_, number)| number.parse().ok());
            let ordinal =
                Ordinal(ordinal.ok_or_else(|| format!("`{name}` is no instance's name"))?);
            let instance = instance(&words, ordinal, seen.record.version)?;
            seen.instances.insert(ordinal, instance);
        }
    }
    words.all_used()
}

fn uuid(text: &str) -> Result<Uuid> {
    let long = match text.len() {
        1 => [8, 4, 4, 4, 12].map(|count| text.repeat(count)).join("-"),
        _ => text.to_owned(),
    };
    long.parse().map_err(|_| format!("`{text}` is no uuid"))
}

pub(super) fn gtids(text: &str) -> Result<GtidSet> {
    let mut set = GtidSet::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (server, rest) = part
            .split_once(':')
            .ok_or_else(|| format!("`{part}` is no GTID set"))?;
        let long: GtidSet = format!("{}:{rest}", uuid(server)?)
            .parse()
            .map_err(|error| format!("`{part}`: {error}"))?;
        set = set.union(&long);
    }
    Ok(set)
}

fn ordinal(text: &str) -> Result<Ordinal> {
    text.parse()
        .map(Ordinal)
        .map_err(|_| format!("`{text}` is no ordinal"))
}

fn spec(words: &Words) -> Result<Spec> {
    let mode = match words.get("mode") {
        None | Some("run") => Mode::Run,
        Some("paused") => Mode::Paused,
        Some("offline") => Mode::Offline,
        Some("deleting") => Mode::Deleting,
        Some(other) => return Err(format!("mode={other} is not known")),
    };
    Ok(Spec {
        replicas: words.number("replicas", 3)?,
        acknowledge: if words.has("fsynced") {
            Acknowledge::Fsynced
        } else {
            Acknowledge::Received
        },
        silence_milliseconds: words.milliseconds("silence")?.unwrap_or(5_000),
        rebuild: if words.has("manual-rebuild") {
            Rebuild::Manual
        } else {
            Rebuild::Auto
        },
        mode,
    })
}

fn request(words: &Words) -> Result<Request> {
    let id = words.get("id").ok_or("a request needs id=")?.to_owned();
    Ok(Request {
        id,
        to: words.get("to").map(ordinal).transpose()?,
    })
}

/// `0/a` or `0/a/life`.
fn member(text: &str) -> Result<Member> {
    let mut parts = text.split('/');
    let number = ordinal(parts.next().unwrap_or_default())?;
    let uuid = uuid(
        parts
            .next()
            .ok_or_else(|| format!("`{text}` is no member"))?,
    )?;
    let incarnation = parts.next().map_or_else(|| "1".to_owned(), str::to_owned);
    Ok(Member {
        ordinal: number,
        uuid,
        incarnation,
    })
}

fn record(words: &Words) -> Result<Record> {
    let ackers = words
        .get("ackers")
        .unwrap_or_default()
        .split(',')
        .filter(|part| !part.is_empty());
    let bootstrap = words.get("bootstrap").map(ordinal).transpose()?;
    Ok(Record {
        version: words.number("v", 0)?,
        epoch: words.number("e", 0)?,
        primary: words.get("primary").map(member).transpose()?,
        k: words.number("k", 0)?,
        acknowledge: if words.has("fsynced") {
            Acknowledge::Fsynced
        } else {
            Acknowledge::Received
        },
        ackers: ackers.map(member).collect::<Result<_>>()?,
        watermark: words.gtids("watermark")?,
        transition: words.get("transition").map(transition).transpose()?,
        deposed: words
            .all("deposed")
            .into_iter()
            .map(deposed)
            .collect::<Result<_>>()?,
        bootstrap: bootstrap.map(|instance| Bootstrap {
            instance,
            volume: format!("claim-{instance}"),
        }),
        generations: words
            .all("generation")
            .into_iter()
            .map(generation)
            .collect::<Result<_>>()?,
        handled_request: words.get("handled").map(str::to_owned),
    })
}

/// `failover/fencing/since/from/to`, `-` where there is none.
fn transition(text: &str) -> Result<Transition> {
    let parts: Vec<&str> = text.split('/').collect();
    let [kind, step, since, from, to] = parts.as_slice() else {
        return Err(format!("`{text}` is not kind/step/since/from/to"));
    };
    let kind = match *kind {
        "failover" => Kind::Failover,
        "switchover" => Kind::Switchover,
        "reconfigure" => Kind::Reconfigure,
        other => return Err(format!("`{other}` is no kind of transition")),
    };
    let step = match *step {
        "fencing" => Step::Fencing,
        "demoting" => Step::Demoting,
        "promoting" => Step::Promoting,
        "removing" => Step::Removing,
        other => return Err(format!("`{other}` is no step of a transition")),
    };
    let optional = |text: &str| {
        if text == "-" {
            Ok(None)
        } else {
            ordinal(text).map(Some)
        }
    };
    let from = optional(from)?;
    Ok(Transition {
        id: "t".to_owned(),
        kind,
        step,
        since: since
            .parse()
            .map_err(|_| format!("`{since}` is no version"))?,
        from: if kind == Kind::Reconfigure {
            None
        } else {
            from
        },
        to: optional(to)?,
        out: if kind == Kind::Reconfigure {
            from.into_iter().collect()
        } else {
            Vec::new()
        },
    })
}

/// `a/epoch/kept/strict` or `…/loose`.
fn deposed(text: &str) -> Result<Deposed> {
    let parts: Vec<&str> = text.split('/').collect();
    let [server, epoch, kept, strict] = parts.as_slice() else {
        return Err(format!("`{text}` is not uuid/epoch/kept/strict"));
    };
    Ok(Deposed {
        uuid: uuid(server)?,
        epoch: epoch
            .parse()
            .map_err(|_| format!("`{epoch}` is no epoch"))?,
        kept: gtids(kept)?,
        strict: *strict == "strict",
        why: "scenario".to_owned(),
    })
}

/// `0/1`.
fn generation(text: &str) -> Result<Generation> {
    let (instance, number) = text
        .split_once('/')
        .ok_or_else(|| format!("`{text}` is not ordinal/generation"))?;
    let generation = number
        .parse()
        .map_err(|_| format!("`{number}` is no generation"))?;
    Ok(Generation {
        ordinal: ordinal(instance)?,
        generation,
    })
}

fn instance(words: &Words, ordinal: Ordinal, version: u64) -> Result<Instance> {
    let pod = Pod {
        uid: format!("pod-{ordinal}"),
        deleting: words.has("deleting"),
        ended: words.has("ended"),
        role: match words.get("role") {
            None => None,
            Some("primary") => Some(Role::Primary),
            Some("replica") => Some(Role::Replica),
            Some(other) => return Err(format!("role={other} is not known")),
        },
        outdated: words.has("outdated"),
        trouble: words.get("trouble").map(str::to_owned),
        trouble_reason: words.get("trouble").map(|_| "Trouble".to_owned()),
    };
    let claim = Claim {
        uid: format!("claim-{ordinal}"),
        generation: words.number("claim", 0)?,
    };
    let refusal = words.get("refused").map(|act| Refusal {
        act: act.to_owned(),
        version,
        message: "refused in this scenario".to_owned(),
    });
    let silent = words.milliseconds("silent")?;
    let agent = match (silent, words.has("nopod"), words.has("noagent")) {
        (Some(milliseconds), _, _) => Seen::Unknown(Silence {
            milliseconds,
            why: "no answer".to_owned(),
        }),
        (None, true, _) | (None, _, true) => Seen::Absent,
        (None, false, false) => Seen::Present(agent(words, version)?),
    };
    let pod = if words.has("nopod") {
        Seen::Absent
    } else {
        Seen::Present(pod)
    };
    Ok(Instance {
        pod,
        claim: if words.has("no-claim") {
            Seen::Absent
        } else {
            Seen::Present(claim)
        },
        agent,
        refusal,
    })
}

fn agent(words: &Words, version: u64) -> Result<Agent> {
    let source_silent = words.milliseconds("source-silent")?;
    let seen_version = words.number("seen", version)?;
    let (volume, mysqld) = volume_and_mysqld(words, seen_version)?;
    let follows = matches!(&mysqld, Mysqld::Running(server) if server.replication.is_some());
    Ok(Agent {
        incarnation: words.get("life").unwrap_or("1").to_owned(),
        seen_version,
        self_fenced: words
            .get("self-fenced")
            .map(str::parse)
            .transpose()
            .map_err(|_| "self-fenced= is no version")?,
        not_strict: words
            .all("not-strict")
            .into_iter()
            .filter_map(|epoch| epoch.parse().ok())
            .collect(),
        volume,
        mysqld,
        terminating: words.has("terminating"),
        job: words.get("job").map(str::to_owned),
        job_failure: words.get("job-failure").map(str::to_owned),
        settled_milliseconds: words.milliseconds("settled")?.unwrap_or(60_000),
        unanswered_milliseconds: words.milliseconds("unanswered")?.unwrap_or(0),
        source_silent_milliseconds: source_silent.or(follows.then_some(100)),
    })
}

fn volume_and_mysqld(words: &Words, seen_version: u64) -> Result<(Volume, Mysqld)> {
    let gated = Mysqld::Gated {
        failed_starts: words.number("failed-starts", 0)?,
        message: words.get("error").map(str::to_owned),
    };
    if let Some(_running) = words.get("running") {
        let data = OnDisk {
            uuid: None,
            binlog: GtidSet::new(),
            relay: GtidSet::new(),
            tail: Vec::new(),
            undo: false,
        };
        return Ok((
            Volume::Data(data),
            Mysqld::Running(server(words, seen_version)?),
        ));
    }
    let volume = if words.has("empty") {
        Volume::Empty
    } else if words.has("locked") {
        Volume::Locked
    } else if words.has("half-clone") {
        Volume::PartialClone
    } else if words.has("half-initialised") {
        Volume::PartialInitialise
    } else if let Some(message) = words.get("unreadable") {
        Volume::Unreadable(message.to_owned())
    } else {
        Volume::Data(on_disk(words)?)
    };
    let mysqld = if words.has("starting") {
        Mysqld::Starting
    } else {
        gated
    };
    Ok((volume, mysqld))
}

fn on_disk(words: &Words) -> Result<OnDisk> {
    let Some(server) = words.get("gated").or_else(|| words.get("data")) else {
        return Err(
            "an instance is running=, gated=, empty, locked, half-clone, silent= or nopod"
                .to_owned(),
        );
    };
    let stopped = words.has("stopped");
    let tail = words.gtids("tail")?;
    Ok(OnDisk {
        uuid: (server != "-").then(|| uuid(server)).transpose()?,
        binlog: words.gtids("binlog")?,
        relay: words.gtids("relay")?,
        tail: vec![Tail {
            gtids: tail,
            stopped,
        }],
        undo: words.has("undo"),
    })
}

fn server(words: &Words, seen_version: u64) -> Result<Server> {
    let access = match (
        words.has("writes"),
        words.has("reads"),
        words.has("opening"),
    ) {
        (true, _, _) => Access::Writes,
        (_, true, _) => Access::Reads,
        (_, _, true) => Access::Opening,
        (false, false, false) => Access::Closed,
    };
    let executed = words.gtids("executed")?;
    let k: u32 = words.number("k", 0)?;
    Ok(Server {
        as_of_version: words.number("as-of", seen_version)?,
        uuid: uuid(words.get("running").unwrap_or_default())?,
        version: (9, 7, words.number("patch", 4)?),
        last_binlog: words.gtids("last-binlog")?,
        executed,
        binlog_end: position(words.get("end"))?,
        access,
        semi_sync: (k > 0).then_some(k),
        waiters: words.has("waiters"),
        replication: words
            .get("from")
            .map(|from| replication(words, from))
            .transpose()?,
        drift: words.all("drift").into_iter().map(str::to_owned).collect(),
        app_ready: !words.has("no-app"),
    })
}

fn replication(words: &Words, from: &str) -> Result<Replication> {
    let receiver = match words.get("receiver") {
        None | Some("yes") => Receiver::Yes,
        Some("connecting") => Receiver::Connecting,
        Some("no") => Receiver::No,
        Some(other) => return Err(format!("receiver={other} is not known")),
    };
    let acks = words.has("acks");
    Ok(Replication {
        source: Some(uuid(from)?),
        receiver,
        applier: !words.has("applier-off"),
        retrieved: words.gtids("retrieved")?,
        position: position(words.get("pos"))?,
        semi_sync_enabled: acks,
        semi_sync_active: acks && receiver == Receiver::Yes,
        lag_seconds: words
            .get("lag")
            .map(str::parse)
            .transpose()
            .map_err(|_| "lag= is no number")?,
        receiver_error: words.get("receiver-error").map(str::to_owned),
        applier_error: words.get("applier-error").map(str::to_owned),
    })
}

/// `2:500`.
fn position(text: Option<&str>) -> Result<Position> {
    let Some(text) = text else {
        return Ok(Position::default());
    };
    let (file, offset) = text
        .split_once(':')
        .ok_or_else(|| format!("`{text}` is no position"))?;
    let number = |text: &str| text.parse().map_err(|_| format!("`{text}` is no number"));
    Ok(Position {
        file: number(file)?,
        offset: number(offset)?,
    })
}
