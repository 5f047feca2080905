//! What the servers hold, each asked itself: the same rows, the same GTIDs, the
//! same checksum, and every row that was promised.

use std::net::SocketAddr;

use gtid::GtidSet;

use super::{Name, Stage, StageError, Wait};
use crate::cluster::CLIENT_NAMESPACE;
use crate::terminal::Terminal;
use crate::workload::{History, Login, Reading, Target, Verdict, read_through};

/// Replicas catch up, and a re-cloned one may just have started.
const AGREE_SECONDS_MAX: u64 = 120;

/// What one instance holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copy {
    /// The Pod.
    pub instance: String,
    /// Its answer.
    pub reading: Reading,
}

/// All instances, equal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agreement {
    /// Each instance.
    pub copies: Vec<Copy>,
    /// The record compared with what is there.
    pub verdict: Verdict,
}

impl Stage {
    /// How an application logs in.
    pub fn login(&self, name: &Name) -> Result<Login, StageError> {
        let secret = manifests::names::app_secret(&name.name);
        let read = |key| self.secret(&name.namespace, &secret, key);
        Ok(Login {
            user: read("user")?,
            password: read("password")?,
            database: read("database")?,
        })
    }

    /// The primary's Service.
    pub fn primary(&self, name: &Name, table: &str) -> Result<Target, StageError> {
        let service = manifests::names::primary_service(&name.name);
        let address = self.cluster_ip(&name.namespace, &service)?;
        let address = SocketAddr::new(address, wire::layout::MYSQL_PORT);
        Ok(Target {
            address,
            login: self.login(name)?,
            table: table.to_owned(),
        })
    }

    /// Reads from every instance until all agree, and compares with the record.
    pub fn agreement(
        &self,
        name: &Name,
        table: &str,
        history: &History,
        terminal: &mut Terminal,
    ) -> Result<Agreement, StageError> {
        let wait = Wait {
            what: "all instances to hold the same",
            seconds_max: AGREE_SECONDS_MAX,
        };
        let copies = self.wait(&wait, terminal, name, |stage| {
            let copies = stage.copies(name, table)?;
            Ok(agree(&copies).then_some(copies))
        })?;
        let present = copies
            .first()
            .map(|copy| copy.reading.ids.clone())
            .unwrap_or_default();
        Ok(Agreement {
            verdict: Verdict::of(history, &present),
            copies,
        })
    }

    fn copies(&self, name: &Name, table: &str) -> Result<Vec<Copy>, StageError> {
        let login = self.login(name)?;
        let mut copies = Vec::new();
        for pod in self.pods(name)? {
            let instance = pod.metadata.name.unwrap_or_default();
            let address = pod.status.and_then(|status| status.pod_ip?.parse().ok());
            let Some(address) = address else { continue };
            let address = SocketAddr::new(address, wire::layout::MYSQL_PORT);
            let target = Target {
                address,
                login: login.clone(),
                table: table.to_owned(),
            };
            // One that does not answer yet does not agree yet.
            if let Ok(reading) = read_through(CLIENT_NAMESPACE, &target) {
                copies.push(Copy { instance, reading });
            }
        }
        let wanted = self
            .look(name)?
            .map_or(0, |picture| picture.resource.spec.replicas);
        let are_all = usize::try_from(wanted).is_ok_and(|wanted| wanted == copies.len());
        Ok(if are_all { copies } else { Vec::new() })
    }
}

/// Nobody agrees with nobody.
fn agree(copies: &[Copy]) -> bool {
    let executed = |copy: &Copy| copy.reading.executed.parse::<GtidSet>().ok();
    let Some(first) = copies.first() else {
        return false;
    };
    let (Some(all), Some(_)) = (executed(first), first.reading.checksum) else {
        return false;
    };
    copies.iter().all(|copy| {
        copy.reading.ids == first.reading.ids
            && copy.reading.checksum == first.reading.checksum
            && executed(copy).is_some_and(|set| set == all)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(executed: &str, checksum: u64) -> Copy {
        let reading = Reading {
            server: String::new(),
            executed: executed.to_owned(),
            checksum: Some(checksum),
            ids: [1].into(),
        };
        Copy {
            instance: String::new(),
            reading,
        }
    }

    const A: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5";

    #[test]
    fn the_same_set_in_other_words_agrees() {
        let words = "3E11FA47-71CA-11E1-9E33-C80AA9429562:1-3:4-5";
        assert!(agree(&[copy(A, 1), copy(words, 1)]));
    }

    #[test]
    fn one_transaction_or_one_bit_more_does_not() {
        assert!(!agree(&[copy(A, 1), copy(&A.replace("1-5", "1-6"), 1)]));
        assert!(!agree(&[copy(A, 1), copy(A, 2)]));
        assert!(!agree(&[]));
    }
}
