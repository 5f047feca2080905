//! The small world, exhausted: three instances, Healthy; every pair of faults,
//! to every victim, at every gap of a list that straddles what the protocol
//! does meanwhile. Not every order of events: that is what seeds are for.

use katazuke_core::record::{Acknowledge, Ordinal};

use crate::event::Event;
use crate::explore::Report;
use crate::faults::{Fault, Way};
use crate::run::{Outcome, begin, finish};
use crate::world::{Setting, World};

/// Between the first fault and the second: at once, within a pass, within a
/// fence, within an opening, after the silence.
const GAPS: [u64; 5] = [0, 60, 250, 900, 5_600];
const VICTIMS: u32 = 3;
const TIME: u64 = 8_000;

fn menu() -> Vec<Fault> {
    let mut menu = vec![
        Fault::AllNodesDie(TIME),
        Fault::OperatorDies(0, 2_000),
        Fault::OperatorPauses(0, TIME),
        Fault::ApiDown(TIME / 2),
        Fault::Switchover(Some(Ordinal(1))),
    ];
    for victim in (0..VICTIMS).map(|ordinal| Some(Ordinal(ordinal))) {
        menu.extend([
            Fault::KillMysqld(victim),
            Fault::KillAgent(victim),
            Fault::ForceDelete(victim),
            Fault::Delete(victim),
            Fault::NodeDies(victim, TIME),
            Fault::LoseDisk(victim, TIME),
            Fault::Isolate(victim, Way::Both, TIME),
            Fault::Isolate(victim, Way::To, TIME),
            Fault::Isolate(victim, Way::From, TIME),
            Fault::CutFromOperators(victim, Way::Both, TIME),
            Fault::Freeze(victim, TIME),
            Fault::Sigterm(victim),
        ]);
    }
    menu
}

/// Runs every pair, in parts for several threads.
pub fn exhaust(threads: u64) -> Report {
    let threads = threads.max(1);
    let mut report = Report::default();
    std::thread::scope(|scope| {
        let parts: Vec<_> = (0..threads)
            .map(|part| scope.spawn(move || some(part, threads)))
            .collect();
        for part in parts {
            if let Ok(part) = part.join() {
                report.merge(part);
            }
        }
    });
    report.held.sort();
    report.violated.sort();
    report
}

fn some(part: u64, threads: u64) -> Report {
    let mut report = Report::default();
    let setting = Setting {
        replicas: VICTIMS,
        acknowledge: Acknowledge::Received,
    };
    let mut healthy = World::new(1, setting, false);
    healthy.states = Some(std::collections::BTreeSet::new());
    if !begin(&mut healthy) {
        report
            .violated
            .push((0, "L0 Begins: not Healthy at first".to_owned()));
        return report;
    }
    let menu = menu();
    let mut number = 0;
    for first in &menu {
        for second in &menu {
            for gap in GAPS {
                number += 1;
                if number % threads == part {
                    let mut outcome = pair(&healthy, number, *first, *second, gap);
                    report.states.append(&mut outcome.1);
                    report.take(outcome.0);
                }
            }
        }
    }
    report
}

type States = std::collections::BTreeSet<u64>;

fn pair(healthy: &World, number: u64, first: Fault, second: Fault, gap: u64) -> (Outcome, States) {
    let mut world = healthy.clone();
    world.faults_until = world.now + 20_000;
    world.after(500, Event::Fault(first));
    world.after(500 + gap, Event::Fault(second));
    let mut outcome = finish(&mut world, number, 20_000);
    if let crate::run::End::Violated(why) | crate::run::End::Held(why) = &mut outcome.end {
        *why = format!("{first:?}, {gap} ms, {second:?}: {why}");
    }
    (outcome, world.states.take().unwrap_or_default())
}
