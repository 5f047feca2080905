//! The last word of each server: its rows, its set of GTIDs and the checksum of
//! the table.

use std::collections::BTreeSet;
use std::time::Duration;

use mysql_async::prelude::Queryable;
use serde::{Deserialize, Serialize};

use super::WorkloadError;
use super::connect::{Session, Target, connect};

/// Reading a hundred thousand rows on a busy machine.
const READ_SECONDS_MAX: u64 = 60;
const CONNECT_SECONDS_MAX: u64 = 10;

/// Where to read from.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct ReadArguments {
    /// Where.
    #[command(flatten)]
    pub target: Target,
}

/// What one server has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// `@@server_uuid`.
    pub server: String,
    /// `@@gtid_executed`, as text.
    pub executed: String,
    /// `CHECKSUM TABLE`.
    pub checksum: Option<u64>,
    /// The rows.
    pub ids: BTreeSet<u64>,
}

/// Reads the whole table.
pub async fn read(arguments: &ReadArguments) -> Result<Reading, WorkloadError> {
    let target = &arguments.target;
    let silent = |doing, seconds| WorkloadError::Silent {
        doing,
        address: target.address.to_string(),
        seconds,
    };
    let patience = Duration::from_secs(CONNECT_SECONDS_MAX);
    let session = connect(target, patience).await;
    let session = session.map_err(|_| silent("connecting", CONNECT_SECONDS_MAX))?;
    let reading =
        tokio::time::timeout(Duration::from_secs(READ_SECONDS_MAX), take(target, session));
    match reading.await {
        Ok(Ok(reading)) => Ok(reading),
        Ok(Err(source)) => Err(WorkloadError::Sql {
            doing: "reading the table back",
            address: target.address.to_string(),
            source,
        }),
        Err(_) => Err(silent("reading the table back", READ_SECONDS_MAX)),
    }
}

async fn take(target: &Target, session: Session) -> Result<Reading, mysql_async::Error> {
    let Session {
        mut connection,
        server,
    } = session;
    let table = &target.table;
    let ids: Vec<u64> = connection
        .query(format!("SELECT id FROM `{table}`"))
        .await?;
    let checksum: Option<(String, Option<u64>)> = connection
        .query_first(format!("CHECKSUM TABLE `{table}`"))
        .await?;
    let executed: Option<String> = connection
        .query_first("SELECT @@global.gtid_executed")
        .await?;
    Ok(Reading {
        server,
        executed: executed.unwrap_or_default(),
        checksum: checksum.and_then(|(_, checksum)| checksum),
        ids: ids.into_iter().collect(),
    })
}
