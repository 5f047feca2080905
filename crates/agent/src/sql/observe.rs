//! What a running server says, in one round. Only statements that answer while
//! commits are stuck (fact 8). Never decides anything.

use std::{collections::BTreeMap, path::Path, time::Duration};

use gtid::GtidSet;
use mysql_async::Row;
use wire::{BinlogPosition, Drift, Receiver, Replication, SemiSyncSource, Server, Stamp};

use super::{
    accounts::CLIENTS,
    session::{Session, SqlError, text},
};
use crate::volume::live_binlog::LiveBinlog;

const VARIABLES: &str = "SELECT @@global.server_uuid AS server_uuid, @@global.version AS version, \
     @@global.gtid_executed AS gtid_executed, @@global.offline_mode AS offline_mode, \
     @@global.super_read_only AS super_read_only, \
     @@global.rpl_semi_sync_source_enabled AS source_enabled, \
     @@global.rpl_semi_sync_source_wait_for_replica_count AS k, \
     @@global.rpl_semi_sync_replica_enabled AS replica_enabled";
const STATUS: &str = "SHOW GLOBAL STATUS LIKE 'Rpl_semi_sync%'";
const REPLICA: &str = "SHOW REPLICA STATUS";
const HEARTBEATS: &str = "SELECT count_received_heartbeats AS heartbeats \
     FROM performance_schema.replication_connection_status WHERE channel_name=''";

/// Attempts at the last binlog after the first, and the pause between them.
const BINLOG_RETRIES: u32 = 5;
const BINLOG_RETRY: Duration = Duration::from_millis(5);

/// What one round gave.
#[derive(Debug)]
pub(crate) struct Observation {
    pub(crate) number: u64,
    /// `read_only` is the variable; whether it counts is decided by who knows
    /// which SET returned (fact 9).
    pub(crate) server: Server,
    /// Replicas that acknowledge to this source, as it believes.
    pub(crate) ackers: u32,
    /// Changes when the receiver hears from its source.
    pub(crate) source_pulse: Option<Pulse>,
}

/// The life sign of a source.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Pulse {
    /// The receiver is connected.
    pub(crate) attached: bool,
    /// Heartbeats received, position reached.
    pub(crate) beat: (Option<String>, BinlogPosition),
}

/// What was so when a round began.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Begun {
    /// Rounds of one server, in order.
    pub(crate) number: u64,
    /// The highest version whose order had been obeyed.
    pub(crate) as_of: Stamp,
}

/// How long to wait for each answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    /// As long as it takes: the kept connection of the poll.
    Endless,
    /// The ordinary bound.
    Bounded,
}

async fn rows(
    session: &mut Session,
    statement: &str,
    patience: Patience,
) -> Result<Vec<Row>, SqlError> {
    match patience {
        Patience::Endless => session.rows_patiently(statement).await,
        Patience::Bounded => session.rows(statement).await,
    }
}

/// A rotation or a purge under way is over soon. Never a position that was not
/// read: every replica would seem to have received what is before it.
async fn binlog_end(
    datadir: &Path,
    binlog: &std::sync::Mutex<LiveBinlog>,
) -> Result<(BinlogPosition, GtidSet), SqlError> {
    let mut attempts = 0;
    loop {
        let read = crate::lock(binlog).read(datadir);
        match read {
            Ok(last) => return Ok(last),
            Err(error) if attempts == BINLOG_RETRIES => {
                return Err(SqlError::Binlog(error));
            }
            Err(error) => tracing::debug!(%error, "the last binlog was not read"),
        }
        attempts += 1;
        tokio::time::sleep(BINLOG_RETRY).await;
    }
}

/// One round of questions.
pub(crate) async fn observe(
    session: &mut Session,
    patience: Patience,
    begun: Begun,
    datadir: &Path,
    binlog: &std::sync::Mutex<LiveBinlog>,
) -> Result<Observation, SqlError> {
    let variables = rows(session, VARIABLES, patience).await?;
    let variables = Answer::first(VARIABLES, &variables)?;
    let status = status(&rows(session, STATUS, patience).await?);
    let replica = rows(session, REPLICA, patience).await?;
    // After `executed`: a waiter is in the one or in the other.
    let (binlog_end, last_binlog_gtids) = binlog_end(datadir, binlog).await?;
    let count = format!("SELECT COUNT(*) AS clients {CLIENTS}");
    let clients = rows(session, &count, patience).await?;
    let mut pulse = None;
    let mut replication = None;
    if let Some(row) = replica.first() {
        let answer = Answer {
            statement: REPLICA,
            row,
        };
        let facts = replication_of(&answer, &variables, &status)?;
        let heartbeats = rows(session, HEARTBEATS, patience).await?;
        let count = heartbeats.first().and_then(|row| text(row, "heartbeats"));
        pulse = Some(Pulse {
            attached: facts.receiver == Receiver::Yes,
            beat: (count, facts.position.clone()),
        });
        replication = Some(facts);
    }
    let server = Server {
        as_of: begun.as_of,
        uuid: variables.parsed("server_uuid")?,
        version: variables.required("version")?,
        executed: variables.gtids("gtid_executed")?,
        read_only: variables.flag("super_read_only")?,
        offline: variables.flag("offline_mode")?,
        binlog_end,
        last_binlog_gtids,
        semi_sync: source_of(&variables, &status)?,
        replication,
        drift: Vec::new(),
        clients: clients
            .first()
            .and_then(|row| text(row, "clients"))
            .and_then(|n| n.parse().ok())
            .unwrap_or_default(),
        app_ready: false,
    };
    Ok(Observation {
        number: begun.number,
        ackers: number(&status, "Rpl_semi_sync_source_clients"),
        server,
        source_pulse: pulse,
    })
}

type Status = BTreeMap<String, String>;

fn status(rows: &[Row]) -> Status {
    rows.iter()
        .filter_map(|row| Some((text(row, "Variable_name")?, text(row, "Value")?)))
        .collect()
}

fn number<T: std::str::FromStr + Default>(status: &Status, name: &str) -> T {
    status
        .get(name)
        .and_then(|value| value.parse().ok())
        .unwrap_or_default()
}

fn source_of(variables: &Answer<'_>, status: &Status) -> Result<SemiSyncSource, SqlError> {
    Ok(SemiSyncSource {
        enabled: variables.flag("source_enabled")?,
        k: variables.parsed("k")?,
        waiting: number(status, "Rpl_semi_sync_source_wait_sessions"),
        no_tx: number(status, "Rpl_semi_sync_source_no_tx"),
    })
}

fn replication_of(
    row: &Answer<'_>,
    variables: &Answer<'_>,
    status: &Status,
) -> Result<Replication, SqlError> {
    let receiver = match row.required("Replica_IO_Running")?.as_str() {
        "Yes" => Receiver::Yes,
        "No" => Receiver::No,
        // Anything else is not stopped.
        _ => Receiver::Connecting,
    };
    let error = |number: &str, message: &str| {
        let code = row.optional(number).filter(|code| code != "0")?;
        Some(format!(
            "{code} {}",
            row.optional(message).unwrap_or_default()
        ))
    };
    Ok(Replication {
        source: row
            .optional("Source_UUID")
            .and_then(|uuid| uuid.parse().ok()),
        host: row.optional("Source_Host").unwrap_or_default(),
        receiver,
        applier: row.required("Replica_SQL_Running")? == "Yes",
        retrieved: row.gtids("Retrieved_Gtid_Set")?,
        position: BinlogPosition {
            file: row
                .optional("Source_Log_File")
                .and_then(|file| file.rsplit_once('.')?.1.parse().ok())
                .unwrap_or_default(),
            offset: row.parsed("Read_Source_Log_Pos")?,
        },
        semi_sync_enabled: variables.flag("replica_enabled")?,
        semi_sync_active: status
            .get("Rpl_semi_sync_replica_status")
            .is_some_and(|value| value == "ON"),
        lag_seconds: row
            .optional("Seconds_Behind_Source")
            .and_then(|seconds| seconds.parse().ok()),
        receiver_error: error("Last_IO_Errno", "Last_IO_Error"),
        applier_error: error("Last_SQL_Errno", "Last_SQL_Error"),
    })
}

/// One row of an answer, with the statement for messages.
struct Answer<'a> {
    statement: &'static str,
    row: &'a Row,
}

impl<'a> Answer<'a> {
    fn first(statement: &'static str, rows: &'a [Row]) -> Result<Self, SqlError> {
        match rows.first() {
            Some(row) => Ok(Self { statement, row }),
            None => Err(SqlError::Answer {
                statement: statement.to_owned(),
                what: "no row".to_owned(),
            }),
        }
    }

    fn optional(&self, column: &str) -> Option<String> {
        text(self.row, column)
    }

    fn required(&self, column: &str) -> Result<String, SqlError> {
        self.optional(column)
            .ok_or_else(|| self.unexpected(column, "missing"))
    }

    fn unexpected(&self, column: &str, what: &str) -> SqlError {
        SqlError::Answer {
            statement: self.statement.to_owned(),
            what: format!("{column}: {what}"),
        }
    }

    fn parsed<T: std::str::FromStr>(&self, column: &str) -> Result<T, SqlError> {
        let value = self.required(column)?;
        value.parse().map_err(|_| self.unexpected(column, &value))
    }

    fn gtids(&self, column: &str) -> Result<GtidSet, SqlError> {
        self.parsed(column)
    }

    fn flag(&self, column: &str) -> Result<bool, SqlError> {
        Ok(matches!(self.required(column)?.as_str(), "1" | "ON"))
    }
}

/// Forced settings that are not as forced.
pub(crate) async fn drift(
    session: &mut Session,
    forced: &[(&'static str, String)],
) -> Result<Vec<Drift>, SqlError> {
    let columns: Vec<String> = forced
        .iter()
        .map(|(name, _)| format!("@@global.{name} AS {name}"))
        .collect();
    let statement = format!("SELECT {}", columns.join(", "));
    let rows = session.rows(&statement).await?;
    let Some(row) = rows.first() else {
        return Ok(Vec::new());
    };
    Ok(forced
        .iter()
        .map(|(name, want)| {
            (
                name,
                want,
                text(row, name).unwrap_or_else(|| "NULL".to_owned()),
            )
        })
        .filter(|(_, want, have)| *want != have)
        .map(|(name, want, have)| Drift {
            name: (*name).to_owned(),
            want: want.clone(),
            have,
        })
        .collect())
}
