//! Long work of an agent, and the end of a Pod: what takes seconds and can die
//! half way.

use katazuke_core::observed::{Access, Mysqld as Said};

use crate::disk::{Content, Data};
use crate::event::{Event, Work};
use crate::mysqld::{Mysqld, Then};
use crate::world::{Place, World};

impl World {
    /// Long work goes on, ends, or dies half way.
    pub(crate) fn work(&mut self, id: usize, number: u64, work: Work) {
        let Some(process) = self.process(id) else {
            return;
        };
        if process.job.as_ref().is_none_or(|job| job.number != number) {
            return;
        }
        let (ordinal, again) = (process.ordinal, self.between(300, 1200));
        match work {
            Work::Initialise => {
                let fresh = self.fresh_uuid();
                self.fill(id, Data::new(fresh, gtid::GtidSet::new()));
            }
            Work::Clone {
                donor,
                run,
                base,
                steps,
            } => {
                let broken = match self.processes.get(donor).map(|process| process.ordinal) {
                    Some(at) => !self.linked(Place::Instance(ordinal), Place::Instance(at)),
                    None => true,
                };
                if self.running(donor, run).is_none() || broken {
                    self.tally.count("clones broken");
                    self.end_job(id, Some("the donor went away".to_owned()));
                    return;
                }
                let waits = self.frozen(donor)
                    || self
                        .running(donor, run)
                        .is_some_and(|server| !server.waiting.is_empty());
                if steps > 0 || waits {
                    let steps = steps.saturating_sub(1);
                    let work = Work::Clone {
                        donor,
                        run,
                        base,
                        steps,
                    };
                    self.after(
                        again,
                        Event::Job {
                            process: id,
                            number,
                            work,
                        },
                    );
                    return;
                }
                self.cloned(id, donor);
            }
        }
    }

    fn cloned(&mut self, id: usize, donor: usize) {
        let base = self
            .server_and_data(donor)
            .map(|(server, data)| server.executed(data));
        let Some(base) = base else { return };
        self.renew_incarnation(id);
        let fresh = self.fresh_uuid();
        self.tally.count("clones done");
        self.fill(id, Data::new(fresh, base));
    }

    fn fill(&mut self, id: usize, data: Data) {
        if let Some(volume) = self.volume_of_mut(id) {
            volume.content = Content::Data(Box::new(data));
        }
        self.end_job(id, None);
        self.end_mysqld(id);
    }

    fn end_job(&mut self, id: usize, failure: Option<String>) {
        if let Some(process) = self.process_mut(id) {
            process.job = None;
            process.job_failure = failure;
        }
    }

    /// Section 13: some time for a switchover, then an end that lies to nobody.
    pub(crate) fn terminating(&mut self, id: usize, since: u64) {
        let now = self.now;
        let Some(process) = self.process_mut(id) else {
            return;
        };
        process.terminating = true;
        let needed = match &process.said {
            Said::Running(server) => {
                server.replication.is_none()
                    && !matches!(server.access, Access::Closed | Access::Opening)
            }
            Said::Gated { .. } | Said::Starting => false,
        };
        if now - since > 40_000 || matches!(process.mysqld, Mysqld::Gated) {
            self.pod_ends(id);
            return;
        }
        self.after(100, Event::Terminating { process: id, since });
        let waits = needed && now - since < 10_000;
        let Some(process) = self.process(id) else {
            return;
        };
        let stopping = process
            .server()
            .is_some_and(|server| server.freezing.is_some());
        if !waits && !stopping {
            if matches!(process.mysqld, Mysqld::Starting { .. }) {
                self.end_mysqld(id);
            } else {
                self.shut(id, Then::Shutdown(None), 5_000);
            }
        }
    }
}
