//! [`Plan`] and [`Record`] → text, in the same short words that are parsed.

use gtid::{GtidSet, Uuid};

use crate::action::{Action, Directive};
use crate::observed::Role;
use crate::plan::Plan;
use crate::record::{Kind, Member, Record, Step, Transition};

/// A plan, a line per action.
pub fn plan(plan: &Plan) -> String {
    match plan {
        Plan::Settled => "settled\n".to_owned(),
        Plan::Wait(why) => format!("wait {why}\n"),
        Plan::NeedsHuman(why) => format!("needs-human {why}\n"),
        Plan::Do(actions) => actions
            .iter()
            .map(|action| action_line(action) + "\n")
            .collect(),
    }
}

fn action_line(action: &Action) -> String {
    match action {
        Action::Record(record) => format!("record {}", record_words(record)),
        Action::Order { to, directive, .. } => {
            format!("order shop-{to} {}", directive_words(directive))
        }
        Action::Role { of, role: None } => format!("role shop-{of} none"),
        Action::Role {
            of,
            role: Some(Role::Primary),
        } => format!("role shop-{of} primary"),
        Action::Role {
            of,
            role: Some(Role::Replica),
        } => format!("role shop-{of} replica"),
        Action::CreateInstance {
            ordinal,
            generation,
        } => format!("create shop-{ordinal} generation={generation}"),
        Action::DeletePod { ordinal, why, .. } => format!("delete-pod shop-{ordinal} \"{why}\""),
    }
}

fn directive_words(directive: &Directive) -> String {
    let name = directive.name();
    match directive {
        Directive::Initialise
        | Directive::Boot
        | Directive::Resume
        | Directive::Fence
        | Directive::FenceSelf
        | Directive::CatchUp
        | Directive::ServeReads
        | Directive::CloseReads
        | Directive::Stop
        | Directive::EnsureApp => name.to_owned(),
        Directive::Clone { donor, .. } => format!("{name} donor={donor}"),
        Directive::Follow { source, within, .. } => {
            format!("{name} source={source} within={}", set(within))
        }
        Directive::Admit { source_uuid } => format!("{name} source={}", uuid(*source_uuid)),
        Directive::Promote { until, k } => format!("{name} until={} k={k}", set(until)),
        Directive::SemiSync { k } | Directive::Open { k } => format!("{name} k={k}"),
        Directive::Freeze {
            wait_milliseconds, ..
        } => format!("{name} wait={wait_milliseconds}ms"),
        Directive::Discard { epoch, kept } => format!("{name} epoch={epoch} kept={}", set(kept)),
        Directive::DiscardRelayLogs { kept } => format!("{name} kept={}", set(kept)),
    }
}

fn record_words(record: &Record) -> String {
    let mut words = vec![
        format!("v={}", record.version),
        format!("e={}", record.epoch),
    ];
    if let Some(primary) = &record.primary {
        words.push(format!("primary={}", member(primary)));
    }
    words.push(format!("k={}", record.k));
    words.push(format!(
        "ackers={}",
        record
            .ackers
            .iter()
            .map(member)
            .collect::<Vec<_>>()
            .join(",")
    ));
    words.push(format!("watermark={}", set(&record.watermark)));
    if let Some(transition) = &record.transition {
        words.push(transition_words(transition));
    }
    for deposed in &record.deposed {
        let strict = if deposed.strict { "strict" } else { "loose" };
        words.push(format!(
            "deposed={}/{}/{}/{strict}",
            uuid(deposed.uuid),
            deposed.epoch,
            set(&deposed.kept)
        ));
    }
    if let Some(bootstrap) = &record.bootstrap {
        words.push(format!("bootstrap={}", bootstrap.instance));
    }
    for entry in &record.generations {
        words.push(format!("generation={}/{}", entry.ordinal, entry.generation));
    }
    if let Some(handled) = &record.handled_request {
        words.push(format!("handled={handled}"));
    }
    words.join(" ")
}

fn transition_words(transition: &Transition) -> String {
    let kind = match transition.kind {
        Kind::Failover => "failover",
        Kind::Switchover => "switchover",
        Kind::Reconfigure => "reconfigure",
    };
    let step = match transition.step {
        Step::Fencing => "fencing",
        Step::Demoting => "demoting",
        Step::Promoting => "promoting",
        Step::Removing => "removing",
    };
    let from = transition.from.or_else(|| transition.out.first().copied());
    let or_dash = |ordinal: Option<crate::Ordinal>| {
        ordinal.map_or("-".to_owned(), |ordinal| ordinal.to_string())
    };
    format!(
        "transition={kind}/{step}/{}/{}/{}",
        transition.since,
        or_dash(from),
        or_dash(transition.to)
    )
}

fn member(member: &Member) -> String {
    let life = if member.incarnation == "1" {
        String::new()
    } else {
        format!("/{}", member.incarnation)
    };
    format!("{}/{}{life}", member.ordinal, uuid(member.uuid))
}

/// A uuid, as one digit where it is made of one.
fn uuid(uuid: Uuid) -> String {
    let long = uuid.to_string();
    let first = long.chars().next().unwrap_or_default();
    match long.chars().all(|char| char == first || char == '-') {
        true => first.to_string(),
        false => long,
    }
}

/// A GTID set with short uuids; `-` when empty.
pub fn set(set: &GtidSet) -> String {
    if set.is_empty() {
        return "-".to_owned();
    }
    let mut text = set.to_string().replace('\n', "").replace(", ", ",");
    for server in set.uuids().collect::<Vec<_>>() {
        text = text.replace(&server.to_string(), &uuid(server));
    }
    text
}
