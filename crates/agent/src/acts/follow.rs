//! Follow and Admit: replicate from a source, and acknowledge to it. Never
//! deletes a relay log (fact 11): CHANGE comes with the applier running, or
//! when there was no source before, and never for the source that is configured
//! already: the applier may die just before it.

use std::time::Duration;

use gtid::{GtidSet, Uuid};
use tokio::time::{Instant, sleep};
use wire::{Endpoint, Outcome, Receiver, Refusal, Replication, Server, layout};

use super::{ActError, Hands, fence::stop_receiver};
use crate::{options::Options, sql::accounts::user};

/// Until the receiver is attached; longer is not an error, the state tells.
const ATTACH_BOUND: Duration = Duration::from_millis(1500);
const STEP: Duration = Duration::from_millis(10);

/// Replicates from `source`, semi-sync OFF.
pub(crate) async fn follow(
    hands: &mut Hands<'_>,
    source: &Endpoint,
    within: &GtidSet,
) -> Result<Outcome, ActError> {
    let server = hands.observe().await?;
    if !server.read_only {
        return Err(ActError::wrong_state("open for writes: freeze it first"));
    }
    if server.uuid == source.uuid {
        return Err(ActError::wrong_state("a server does not follow itself"));
    }
    covered(&server, within)?;
    nobody_waits(&server)?;
    if follows(&server, source) {
        return Ok(Outcome::Done);
    }
    if server.replication.is_some() {
        stop_receiver(hands).await?;
        hands
            .session
            .run("SET GLOBAL rpl_semi_sync_replica_enabled=OFF")
            .await?;
        // Again, with nothing coming in any more.
        let stopped = hands.observe().await?;
        covered(&stopped, within)?;
        if is_configured(&stopped, source) {
            hands.session.run("START REPLICA SQL_THREAD").await?;
            hands.session.run("START REPLICA IO_THREAD").await?;
        } else {
            repoint(hands, source).await?;
        }
    } else {
        hands
            .session
            .run("SET GLOBAL rpl_semi_sync_replica_enabled=OFF")
            .await?;
        let change = change(&hands.agent.options, source);
        hands
            .session
            .run(&format!("{change}, SOURCE_AUTO_POSITION=1"))
            .await?;
        hands.session.run("START REPLICA").await?;
    }
    attached(hands, source).await
}

/// A source that becomes a replica stops being one (see `nudge`), which answers
/// OK to whoever waits there: nobody may.
fn nobody_waits(server: &Server) -> Result<(), ActError> {
    match server.semi_sync.waiting > 0 && server.replication.is_none() {
        true => Err(ActError::wrong_state("commits wait for an acknowledgement")),
        false => Ok(()),
    }
}

fn covered(server: &Server, within: &GtidSet) -> Result<(), ActError> {
    let received = match &server.replication {
        Some(replication) => server.executed.union(&replication.retrieved),
        None => server.executed.clone(),
    };
    let errant = received.subtract(within);
    if errant.is_empty() {
        return Ok(());
    }
    Err(ActError::refused(
        Refusal::Errant,
        format!("not covered by the order: {errant}"),
    ))
}

fn follows(server: &Server, source: &Endpoint) -> bool {
    let Some(replication) = &server.replication else {
        return false;
    };
    let Replication {
        source: uuid,
        host,
        receiver,
        applier,
        semi_sync_enabled,
        ..
    } = replication;
    *uuid == Some(source.uuid)
        && *host == source.host
        && *receiver == Receiver::Yes
        && *applier
        && !semi_sync_enabled
}

/// Whether it replicates or not. A source that was never reached has no uuid
/// yet; whoever answers there is looked at when it is attached.
fn is_configured(server: &Server, source: &Endpoint) -> bool {
    server.replication.as_ref().is_some_and(|replication| {
        replication.host == source.host && replication.source.is_none_or(|uuid| uuid == source.uuid)
    })
}

/// The receiver is stopped; the applier keeps the relay logs alive.
async fn repoint(hands: &mut Hands<'_>, source: &Endpoint) -> Result<(), ActError> {
    hands.session.run("START REPLICA SQL_THREAD").await?;
    let server = hands.observe().await?;
    let running = server
        .replication
        .as_ref()
        .is_some_and(|replication| replication.applier);
    if !running {
        let error = server
            .replication
            .and_then(|replication| replication.applier_error);
        return Err(ActError::NotReached(format!(
            "the applier does not run, and without it a change of source deletes the relay logs: {}",
            error.unwrap_or_default()
        )));
    }
    let unapplied = match &server.replication {
        Some(replication) => replication.retrieved.subtract(&server.executed),
        None => GtidSet::default(),
    };
    let change = change(&hands.agent.options, source);
    let changed = hands.session.run(&change).await;
    still_there(hands, &unapplied).await?;
    changed?;
    hands.session.run("START REPLICA IO_THREAD").await?;
    Ok(())
}

/// The applier may have died between the look at it and CHANGE. Relay logs that
/// are gone, or of which nothing is known, end this incarnation.
async fn still_there(hands: &mut Hands<'_>, unapplied: &GtidSet) -> Result<(), ActError> {
    let lost = match hands.observe().await {
        Ok(server) => {
            let retrieved = server.replication.map(|replication| replication.retrieved);
            unapplied
                .subtract(&server.executed)
                .subtract(&retrieved.unwrap_or_default())
        }
        Err(error) => {
            tracing::warn!(%error, "what is left after a change of source is not known");
            unapplied.clone()
        }
    };
    if lost.is_empty() {
        return Ok(());
    }
    hands
        .agent
        .renew_incarnation()
        .map_err(|source| ActError::Io {
            doing: "renewing the incarnation",
            source,
        })?;
    Err(ActError::NotReached(format!(
        "the change of source deleted relay logs, or may have, that were not applied: {lost}"
    )))
}

fn change(options: &Options, source: &Endpoint) -> String {
    let text = |value: &str| value.replace('\\', "\\\\").replace('\'', "''");
    let path = |file| text(&options.tls(file).to_string_lossy());
    format!(
        "CHANGE REPLICATION SOURCE TO SOURCE_HOST='{}', SOURCE_PORT={}, SOURCE_USER='{}', \
         SOURCE_PASSWORD='', SOURCE_SSL=1, SOURCE_SSL_CA='{}', SOURCE_SSL_CERT='{}', \
         SOURCE_SSL_KEY='{}', SOURCE_SSL_VERIFY_SERVER_CERT=1, SOURCE_CONNECT_RETRY=1, \
         SOURCE_RETRY_COUNT=0, SOURCE_HEARTBEAT_PERIOD=0.5",
        text(&source.host),
        source.port,
        text(&user(&options.instance)),
        path(layout::TLS_CA),
        path(layout::TLS_CERT),
        path(layout::TLS_KEY),
    )
}

/// Waits a little for the receiver, and lets go of a source that is another server.
async fn attached(hands: &mut Hands<'_>, source: &Endpoint) -> Result<Outcome, ActError> {
    let deadline = Instant::now() + ATTACH_BOUND;
    loop {
        let server = hands.observe().await?;
        let Some(replication) = server.replication else {
            return Err(ActError::NotReached(
                "no source is configured after CHANGE".to_owned(),
            ));
        };
        match (replication.receiver, replication.source) {
            (Receiver::Yes, Some(uuid)) if uuid != source.uuid => {
                stop_receiver(hands).await?;
                return Err(ActError::NotReached(format!(
                    "{}:{} is the server {uuid}, not {}",
                    source.host, source.port, source.uuid
                )));
            }
            (Receiver::Yes, Some(_)) => return Ok(Outcome::Done),
            (Receiver::Yes | Receiver::Connecting | Receiver::No, _) => {}
        }
        if Instant::now() >= deadline {
            // It keeps trying for ever; the state tells why it fails.
            return Ok(Outcome::Done);
        }
        sleep(STEP).await;
    }
}

/// From now on this instance acknowledges.
pub(crate) async fn admit(hands: &mut Hands<'_>, source: Uuid) -> Result<Outcome, ActError> {
    let server = hands.observe().await?;
    let Some(replication) = server.replication else {
        return Err(ActError::wrong_state("follows nobody"));
    };
    if replication.source != Some(source) || replication.receiver != Receiver::Yes {
        return Err(ActError::wrong_state(format!(
            "the receiver is {:?} at {:?}, not attached to {source}",
            replication.receiver, replication.source
        )));
    }
    if replication.semi_sync_enabled && replication.semi_sync_active {
        return Ok(Outcome::Done);
    }
    hands
        .session
        .run("SET GLOBAL rpl_semi_sync_replica_enabled=ON")
        .await?;
    stop_receiver(hands).await?;
    hands.session.run("START REPLICA IO_THREAD").await?;
    let deadline = Instant::now() + ATTACH_BOUND;
    loop {
        let server = hands.observe().await?;
        let active = server.replication.is_some_and(|replication| {
            replication.semi_sync_active && replication.receiver == Receiver::Yes
        });
        if active || Instant::now() >= deadline {
            return Ok(Outcome::Done);
        }
        sleep(STEP).await;
    }
}
