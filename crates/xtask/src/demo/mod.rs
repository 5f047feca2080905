//! `cargo xtask demo`: brings a cluster up, breaks it in the ways that hurt, and
//! shows what became of every acknowledged write. The page reads in the order in
//! which things happen. It asserts as it goes; exit status 0 means that all of
//! it held.

mod ending;
mod error;
mod nuisance;
mod score;
mod step;

use std::path::PathBuf;

pub use error::DemoError;
pub use score::{Measured, Score};
pub use step::{Fault, LeaderWas, Play};

use nuisance::Nuisance;

use crate::cluster::{CLIENT_NAMESPACE, Cluster, Existing, Options, up};
use crate::host::project_root;
use crate::image::{build_katazuke, load_katazuke};
use crate::stage::{Name, Stage, Wait};
use crate::terminal::Terminal;
use crate::workload::{History, RunArguments, Writer};

/// The table that the writer fills.
pub const TABLE: &str = "katazuke_writes";
/// Three instances, from nothing to Ready.
const READY_SECONDS_MAX: u64 = 240;
const FLOW_SECONDS_MAX: u64 = 30;
/// The writer stops by itself after this, whatever happens.
const WRITER_SECONDS_MAX: u64 = 5400;

/// What to do with the cluster at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtTheEnd {
    /// Delete it and show that nothing is left.
    Delete,
    /// Leave it running and say how to use it.
    Keep,
}

/// The cluster of examples/shop.yaml.
pub fn shop() -> Name {
    Name::new("db", "shop")
}

/// Whether the operator is left alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// It works undisturbed.
    Undisturbed,
    /// Whoever leads is killed again and again.
    KilledAgainAndAgain,
}

/// The whole demo.
pub fn demo(at_the_end: AtTheEnd, operator: Operator) -> Result<Score, DemoError> {
    let mut terminal = Terminal::new();
    let stage = raise_the_curtain(&mut terminal)?;
    let nuisance = match operator {
        Operator::Undisturbed => None,
        Operator::KilledAgainAndAgain => Some(Nuisance::start()),
    };
    let mut play = begin(&stage, &mut terminal)?;
    let played = act_by_act(&mut play, &mut terminal);
    let history = play.end(&mut terminal)?;
    if let Some(nuisance) = nuisance {
        let killed = nuisance.stop()?;
        terminal.say(&format!("the leading operator was killed {killed} times"));
    }
    // What was broken stays to be looked at, and the cluster with it.
    played?;
    finish(play, &history, at_the_end, &mut terminal)
}

/// Compares, reads the logs, and deletes or keeps.
pub fn finish(
    mut play: Play<'_>,
    history: &History,
    at_the_end: AtTheEnd,
    terminal: &mut Terminal,
) -> Result<Score, DemoError> {
    ending::agreement(&mut play, history, terminal)?;
    ending::logs(&mut play, terminal)?;
    match at_the_end {
        AtTheEnd::Keep => ending::how_to_use(play.stage, &play.name)?,
        AtTheEnd::Delete => ending::delete(play.stage, &play.name, terminal)?,
    }
    Ok(play.into_score())
}

/// A Kubernetes with Katazuke on it.
pub fn raise_the_curtain(terminal: &mut Terminal) -> Result<Stage, DemoError> {
    terminal.say("building katazuke");
    build_katazuke()?;
    let progress = terminal.progress();
    let cluster: Cluster = up(&Options {
        nodes: 3,
        existing: Existing::Replace,
        progress,
    })?;
    load_katazuke(&cluster)?;
    terminal.say("image of katazuke in every node");
    let stage = Stage::on(cluster)?;
    stage.install(terminal)?;
    terminal.say("installed deploy/: two operators are available");
    Ok(stage)
}

/// The cluster and its writer.
pub fn begin<'a>(stage: &'a Stage, terminal: &mut Terminal) -> Result<Play<'a>, DemoError> {
    let name = shop();
    let applied = terminal.seconds();
    stage.make_namespace(&name.namespace)?;
    stage.apply(&project_root().join("examples/shop.yaml"))?;
    let wait = Wait {
        what: "shop to be Healthy",
        seconds_max: READY_SECONDS_MAX,
    };
    stage.wait_until(&wait, terminal, &name, |picture| {
        picture.is_current() && picture.is("Ready") && picture.is("Healthy")
    })?;
    let seconds = terminal.seconds() - applied;
    terminal.say(&format!(
        "examples/shop.yaml is Healthy, {seconds:.1} s after it was applied"
    ));
    let writer = Writer::start(CLIENT_NAMESPACE, &writing(stage, &name)?)?;
    let mut play = Play::new(stage, name, writer, seconds);
    play.wait_for_flow(FLOW_SECONDS_MAX, terminal)?;
    terminal.say("four clients and a probe are writing through Service shop-primary");
    Ok(play)
}

fn writing(stage: &Stage, name: &Name) -> Result<RunArguments, DemoError> {
    Ok(RunArguments {
        target: stage.primary(name, TABLE)?,
        record: record(),
        clients: 4,
        pause_milliseconds: 8,
        seconds_max: WRITER_SECONDS_MAX,
    })
}

/// Kept after the demo, for whoever doubts.
fn record() -> PathBuf {
    project_root().join("target/demo/writes.jsonl")
}

fn act_by_act(play: &mut Play<'_>, terminal: &mut Terminal) -> Result<(), DemoError> {
    play.measure(&Fault::KillMysqld, terminal)?;
    play.measure(&Fault::ForceDeletePod, terminal)?;
    play.measure(&Fault::CrashNode, terminal)?;
    play.measure(&Fault::SwitchOver { to: None }, terminal)?;
    play.measure(&Fault::StartNode, terminal)?;
    Ok(())
}
