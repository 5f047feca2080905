//! The record between its two shapes: `status.ha` as the API server stores it,
//! and core's. Loss-less both ways. What cannot be read is an error: it is
//! never taken for an empty record, which would mean a cluster without data.

use api::{
    Acker, BootstrapRecord, DeposedRecord, HaRecord, PrimaryRecord, TransitionKind,
    TransitionRecord, TransitionStep, VolumeRecord,
};
use gtid::{GtidSet, Uuid};
use katazuke_core::record::{
    Acknowledge, Bootstrap, Deposed, Generation, Kind, Member, Ordinal, Record, Step, Transition,
};

/// A field of the stored record that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("status.ha.{field} cannot be read: {why}")]
pub(super) struct Unreadable {
    /// Which field.
    pub field: &'static str,
    /// Why.
    pub why: String,
}

/// From `status.ha`; nothing stored is the empty record.
pub(super) fn read(stored: Option<&HaRecord>) -> Result<Record, Unreadable> {
    let Some(stored) = stored else {
        return Ok(Record::default());
    };
    let HaRecord {
        version,
        epoch,
        primary,
        k,
        acknowledge,
        ackers,
        watermark,
        transition,
        deposed,
        bootstrap,
        volumes,
        handled_request,
    } = stored;
    Ok(Record {
        version: *version,
        epoch: *epoch,
        primary: primary.as_ref().map(read_primary).transpose()?,
        k: *k,
        acknowledge: read_acknowledge(*acknowledge),
        ackers: ackers.iter().map(read_acker).collect::<Result<_, _>>()?,
        watermark: set("watermark", watermark)?,
        transition: transition.as_ref().map(read_transition),
        deposed: deposed.iter().map(read_deposed).collect::<Result<_, _>>()?,
        bootstrap: bootstrap
            .as_ref()
            .map(|BootstrapRecord { ordinal, volume }| Bootstrap {
                instance: Ordinal(*ordinal),
                volume: volume.clone(),
            }),
        generations: volumes
            .iter()
            .map(
                |VolumeRecord {
                     ordinal,
                     generation,
                 }| Generation {
                    ordinal: Ordinal(*ordinal),
                    generation: *generation,
                },
            )
            .collect(),
        handled_request: handled_request.clone(),
    })
}

/// To `status.ha`.
pub(super) fn write(record: &Record) -> HaRecord {
    let Record {
        version,
        epoch,
        primary,
        k,
        acknowledge,
        ackers,
        watermark,
        transition,
        deposed,
        bootstrap,
        generations,
        handled_request,
    } = record;
    HaRecord {
        version: *version,
        epoch: *epoch,
        primary: primary.as_ref().map(
            |Member {
                 ordinal,
                 uuid,
                 incarnation,
             }| PrimaryRecord {
                ordinal: ordinal.0,
                uuid: uuid.to_string(),
                incarnation: incarnation.clone(),
            },
        ),
        k: *k,
        acknowledge: write_acknowledge(*acknowledge),
        ackers: ackers
            .iter()
            .map(
                |Member {
                     ordinal,
                     uuid,
                     incarnation,
                 }| Acker {
                    ordinal: ordinal.0,
                    uuid: uuid.to_string(),
                    incarnation: incarnation.clone(),
                },
            )
            .collect(),
        watermark: watermark.to_string(),
        transition: transition.as_ref().map(write_transition),
        deposed: deposed.iter().map(write_deposed).collect(),
        bootstrap: bootstrap
            .as_ref()
            .map(|Bootstrap { instance, volume }| BootstrapRecord {
                ordinal: instance.0,
                volume: volume.clone(),
            }),
        volumes: generations
            .iter()
            .map(
                |Generation {
                     ordinal,
                     generation,
                 }| VolumeRecord {
                    ordinal: ordinal.0,
                    generation: *generation,
                },
            )
            .collect(),
        handled_request: handled_request.clone(),
    }
}

/// The level of durability in core's words.
pub(super) fn read_acknowledge(level: api::Acknowledge) -> Acknowledge {
    match level {
        api::Acknowledge::Received => Acknowledge::Received,
        api::Acknowledge::Fsynced => Acknowledge::Fsynced,
    }
}

fn write_acknowledge(level: Acknowledge) -> api::Acknowledge {
    match level {
        Acknowledge::Received => api::Acknowledge::Received,
        Acknowledge::Fsynced => api::Acknowledge::Fsynced,
    }
}

fn uuid(field: &'static str, text: &str) -> Result<Uuid, Unreadable> {
    text.parse().map_err(|error| Unreadable {
        field,
        why: format!("{text:?}: {error}"),
    })
}

fn set(field: &'static str, text: &str) -> Result<GtidSet, Unreadable> {
    text.parse().map_err(|error| Unreadable {
        field,
        why: format!("{text:?}: {error}"),
    })
}

fn read_primary(stored: &PrimaryRecord) -> Result<Member, Unreadable> {
    let PrimaryRecord {
        ordinal,
        uuid: text,
        incarnation,
    } = stored;
    Ok(Member {
        ordinal: Ordinal(*ordinal),
        uuid: uuid("primary.uuid", text)?,
        incarnation: incarnation.clone(),
    })
}

fn read_acker(stored: &Acker) -> Result<Member, Unreadable> {
    let Acker {
        ordinal,
        uuid: text,
        incarnation,
    } = stored;
    Ok(Member {
        ordinal: Ordinal(*ordinal),
        uuid: uuid("ackers.uuid", text)?,
        incarnation: incarnation.clone(),
    })
}

fn read_transition(stored: &TransitionRecord) -> Transition {
    let TransitionRecord {
        id,
        kind,
        step,
        since,
        from,
        to,
        out,
    } = stored;
    Transition {
        id: id.clone(),
        kind: match kind {
            TransitionKind::Failover => Kind::Failover,
            TransitionKind::Switchover => Kind::Switchover,
            TransitionKind::Reconfigure => Kind::Reconfigure,
        },
        step: match step {
            TransitionStep::Fencing => Step::Fencing,
            TransitionStep::Demoting => Step::Demoting,
            TransitionStep::Promoting => Step::Promoting,
            TransitionStep::Removing => Step::Removing,
        },
        since: *since,
        from: from.map(Ordinal),
        to: to.map(Ordinal),
        out: out.iter().copied().map(Ordinal).collect(),
    }
}

fn write_transition(transition: &Transition) -> TransitionRecord {
    let Transition {
        id,
        kind,
        step,
        since,
        from,
        to,
        out,
    } = transition;
    TransitionRecord {
        id: id.clone(),
        kind: match kind {
            Kind::Failover => TransitionKind::Failover,
            Kind::Switchover => TransitionKind::Switchover,
            Kind::Reconfigure => TransitionKind::Reconfigure,
        },
        step: match step {
            Step::Fencing => TransitionStep::Fencing,
            Step::Demoting => TransitionStep::Demoting,
            Step::Promoting => TransitionStep::Promoting,
            Step::Removing => TransitionStep::Removing,
        },
        since: *since,
        from: from.map(|ordinal| ordinal.0),
        to: to.map(|ordinal| ordinal.0),
        out: out.iter().map(|ordinal| ordinal.0).collect(),
    }
}

fn read_deposed(stored: &DeposedRecord) -> Result<Deposed, Unreadable> {
    let DeposedRecord {
        uuid: text,
        epoch,
        kept,
        strict,
        why,
    } = stored;
    Ok(Deposed {
        uuid: uuid("deposed.uuid", text)?,
        epoch: *epoch,
        kept: set("deposed.kept", kept)?,
        strict: *strict,
        why: why.clone(),
    })
}

fn write_deposed(deposed: &Deposed) -> DeposedRecord {
    let Deposed {
        uuid,
        epoch,
        kept,
        strict,
        why,
    } = deposed;
    DeposedRecord {
        uuid: uuid.to_string(),
        epoch: *epoch,
        kept: kept.to_string(),
        strict: *strict,
        why: why.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
    const B: &str = "4e11fa47-71ca-11e1-9e33-c80aa9429562";

    fn member(ordinal: u32, uuid: &str) -> Member {
        Member {
            ordinal: Ordinal(ordinal),
            uuid: uuid.parse().unwrap(),
            incarnation: format!("boot-{ordinal}"),
        }
    }

    fn full() -> Record {
        Record {
            version: 7,
            epoch: 3,
            primary: Some(member(1, B)),
            k: 1,
            acknowledge: Acknowledge::Fsynced,
            ackers: vec![member(2, A)],
            watermark: format!("{A}:1-9").parse().unwrap(),
            transition: Some(Transition {
                id: "failover-3".into(),
                kind: Kind::Failover,
                step: Step::Promoting,
                since: 6,
                from: Some(Ordinal(0)),
                to: Some(Ordinal(1)),
                out: vec![Ordinal(0)],
            }),
            deposed: vec![Deposed {
                uuid: A.parse().unwrap(),
                epoch: 2,
                kept: format!("{A}:1-8").parse().unwrap(),
                strict: true,
                why: "mysqld was killed".into(),
            }],
            bootstrap: Some(Bootstrap {
                instance: Ordinal(0),
                volume: "volume-uid".into(),
            }),
            generations: vec![Generation {
                ordinal: Ordinal(2),
                generation: 1,
            }],
            handled_request: Some("r-1".into()),
        }
    }

    #[test]
    fn a_record_comes_back_as_it_was_written_also_through_json() {
        for record in [Record::default(), full()] {
            let stored = write(&record);
            assert_eq!(read(Some(&stored)), Ok(record.clone()));
            let json = serde_json::to_value(&stored).unwrap();
            let stored: HaRecord = serde_json::from_value(json).unwrap();
            assert_eq!(read(Some(&stored)), Ok(record));
        }
    }

    #[test]
    fn nothing_stored_is_the_empty_record_and_damage_is_an_error() {
        assert_eq!(read(None), Ok(Record::default()));
        let mut stored = write(&full());
        stored.watermark = "not a set".into();
        assert_eq!(
            read(Some(&stored)).map_err(|error| error.field),
            Err("watermark")
        );
    }
}
