//! Clone: the donor's data into another directory of the same volume, renamed
//! when it is complete and synced. The server that receives it is a pristine
//! one without a network; half a clone is never a data directory, so mysqld
//! never restarts itself (exit code 16) and the gate stays the only way in.

use std::{fs, path::PathBuf, sync::Arc, time::Duration};

use gtid::GtidSet;
use mysql_async::{ClientIdentity, Conn, OptsBuilder, SslOpts, prelude::Queryable};
use tokio::time::{sleep, timeout};
use wire::{Endpoint, JobKind, Outcome, layout};

use super::{
    ActError, gated,
    initialise::{empty, place, pristine},
    under_way,
};
use crate::{
    agent::Agent,
    mysqld::{child::Child, init_file, settings},
    sql::{
        accounts::{AGENT_USER, user},
        session::{Login, Session, SqlError, text},
    },
    volume::{durable, live_binlog::LiveBinlog},
};

const KNOCK: Duration = Duration::from_millis(50);
const PROGRESS: Duration = Duration::from_millis(500);
/// Until the recipient answers; it has crash recovery of nothing to do.
const RECIPIENT_BOUND: Duration = Duration::from_mins(2);
/// Between two attempts at a donor that serves another.
const DONOR_BUSY: Duration = Duration::from_millis(250);
const DONOR_BOUND: Duration = Duration::from_secs(5);
/// Without any progress for this long, the clone is given up and begun again.
const STALLED: Duration = Duration::from_mins(10);
const STAGES: &str = "SELECT stage AS stage, state AS state, CAST(IF(estimate>0, 100*data/estimate, 0) \
     AS UNSIGNED) AS percent, data AS data FROM performance_schema.clone_progress \
     WHERE state='In Progress'";

/// Answers Started.
pub(crate) fn clone(agent: &Arc<Agent>, donor: &Endpoint) -> Result<Outcome, ActError> {
    gated(agent)?;
    if under_way(agent, JobKind::Clone)? {
        return Ok(Outcome::Started);
    }
    empty(agent)?;
    agent.begin_job(JobKind::Clone, "making the receiving server");
    let agent = Arc::clone(agent);
    let donor = donor.clone();
    tokio::spawn(async move {
        let failure = receive(&agent, &donor)
            .await
            .err()
            .map(|error| error.to_string());
        agent.refresh_volume(&LiveBinlog::default());
        agent.end_job(failure);
    });
    Ok(Outcome::Started)
}

async fn receive(agent: &Agent, donor: &Endpoint) -> Result<(), ActError> {
    pristine(agent).await?;
    // Used up, whatever becomes of it: the recipient writes to it.
    let mut made = agent.pristine.lock().await;
    *made = false;
    agent.job_stage("asking the donor who it is", None);
    is_donor(agent, donor).await?;
    let io = |doing| move |source| ActError::Io { doing, source };
    let incoming = agent.options.incoming();
    durable::remove_directory(&incoming).map_err(io("removing half a clone"))?;
    agent.job_stage("starting the receiving server", None);
    let (child, login) = recipient(agent)?;
    let received = receive_into(agent, &child, &login, donor, &incoming).await;
    // It holds nothing; its data directory goes.
    child.kill().await;
    received?;
    agent.job_stage("syncing", None);
    agent
        .renew_incarnation()
        .map_err(io("renewing the incarnation"))?;
    agent.amend_record(|record| {
        record.cloned = true;
        record.unlogged = GtidSet::default();
    })?;
    place(agent, &incoming)?;
    durable::remove_directory(&agent.options.pristine())
        .map_err(io("removing the receiving server"))
}

/// The donor must be the server that the order names.
async fn is_donor(agent: &Agent, donor: &Endpoint) -> Result<(), ActError> {
    let path = |file| agent.options.tls(file).into();
    let tls = SslOpts::default()
        .with_client_identity(Some(ClientIdentity::new(
            path(layout::TLS_CERT),
            path(layout::TLS_KEY),
        )))
        .with_root_certs(vec![path(layout::TLS_CA)])
        .with_disable_built_in_roots(true);
    let options = OptsBuilder::default()
        .ip_or_hostname(donor.host.clone())
        .tcp_port(donor.port)
        .user(Some(user(&agent.options.instance)))
        .pass(Some(""))
        .prefer_socket(false)
        .ssl_opts(Some(tls));
    let ask = async {
        let mut conn = Conn::new(options).await?;
        let uuid: Option<String> = conn.query_first("SELECT @@global.server_uuid").await?;
        conn.disconnect().await?;
        Ok::<_, mysql_async::Error>(uuid)
    };
    let who = format!("the donor {}:{}", donor.host, donor.port);
    let uuid = match timeout(DONOR_BOUND, ask).await {
        Ok(Ok(uuid)) => uuid.unwrap_or_default(),
        Ok(Err(error)) => return Err(ActError::NotReached(format!("{who}: {error}"))),
        Err(_) => return Err(ActError::NotReached(format!("{who} does not answer"))),
    };
    if uuid == donor.uuid.to_string() {
        return Ok(());
    }
    Err(ActError::NotReached(format!(
        "{who} is the server {uuid}, not {}",
        donor.uuid
    )))
}

fn recipient(agent: &Agent) -> Result<(Child, Login), ActError> {
    let io = |doing| move |source| ActError::Io { doing, source };
    let login = Login {
        socket: agent.options.run_dir.join("recipient.sock"),
        user: AGENT_USER.to_owned(),
        password: uuid::Uuid::new_v4().to_string(),
    };
    let file: PathBuf = agent.options.run_dir.join("recipient.sql");
    init_file::write(&file, &init_file::statements(&login.password, &[]))
        .map_err(io("writing the init file"))?;
    let mut command = settings::recipient(&agent.options, &login.socket, &file);
    let child = agent
        .children
        .start(&mut command)
        .map_err(io("starting the receiving server"))?;
    Ok((child, login))
}

async fn receive_into(
    agent: &Agent,
    child: &Child,
    login: &Login,
    donor: &Endpoint,
    incoming: &std::path::Path,
) -> Result<(), ActError> {
    let mut session = answers(child, login).await?;
    let mut progress = Session::open(login.clone()).await?;
    fs::remove_file(agent.options.run_dir.join("recipient.sql")).map_err(|source| {
        ActError::Io {
            doing: "removing the init file",
            source,
        }
    })?;
    let donors = format!(
        "SET GLOBAL clone_valid_donor_list='{}:{}'",
        donor.host, donor.port
    );
    session.run(&donors).await?;
    let statement = format!(
        "CLONE INSTANCE FROM '{}'@'{}':{} IDENTIFIED BY '' DATA DIRECTORY='{}' REQUIRE SSL",
        user(&agent.options.instance),
        donor.host,
        donor.port,
        incoming.display()
    );
    tokio::select! {
        done = in_turn(agent, &mut session, &statement) => done,
        stalled = watch_progress(agent, &mut progress) => Err(stalled),
        ended = child.wait() => Err(ActError::NotReached(format!(
            "the receiving server ended: {ended:?}, {}",
            child.log.last_error().unwrap_or_default()
        ))),
    }
}

/// A donor serves one at a time.
async fn in_turn(agent: &Agent, session: &mut Session, statement: &str) -> Result<(), ActError> {
    loop {
        agent.job_stage("cloning", None);
        match session.rows_patiently(statement).await {
            Err(error)
                if error
                    .to_string()
                    .contains("Too many concurrent clone operations") =>
            {
                agent.job_stage("waiting until the donor is done with another clone", None);
                sleep(DONOR_BUSY).await;
            }
            other => return Ok(other.map(drop)?),
        }
    }
}

async fn answers(child: &Child, login: &Login) -> Result<Session, ActError> {
    let knocking = async {
        loop {
            match Session::open(login.clone()).await {
                Ok(session) => return session,
                Err(_) => sleep(KNOCK).await,
            }
        }
    };
    tokio::select! {
        session = knocking => Ok(session),
        ended = child.wait() => Err(ActError::NotReached(format!(
            "the receiving server ended: {ended:?}, {}",
            child.log.last_error().unwrap_or_default()
        ))),
        () = sleep(RECIPIENT_BOUND) => Err(SqlError::LoginUnanswered.into()),
    }
}

/// Returns only when there is no progress any more.
async fn watch_progress(agent: &Agent, session: &mut Session) -> ActError {
    let mut before = None;
    let mut moved = tokio::time::Instant::now();
    loop {
        sleep(PROGRESS).await;
        let rows = match session.rows(STAGES).await {
            Ok(rows) => rows,
            Err(error) => {
                tracing::debug!(%error, "the clone's progress was not read");
                continue;
            }
        };
        let Some(row) = rows.first() else { continue };
        let stage = text(row, "stage").unwrap_or_default().to_lowercase();
        let percent = text(row, "percent").and_then(|percent| percent.parse().ok());
        agent.job_stage(&format!("cloning: {stage}"), percent);
        let now = Some((stage, text(row, "data")));
        if now != before {
            before = now;
            moved = tokio::time::Instant::now();
        } else if moved.elapsed() > STALLED {
            return ActError::NotReached("the clone makes no progress".to_owned());
        }
    }
}
