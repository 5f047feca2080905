//! System accounts. Never binlogged; an instance's account opens only with that
//! instance's certificate, and has no password worth knowing.

use std::fmt::Write;

use sha2::{Digest, Sha256};

use super::session::{Session, SqlError, text};
use crate::certificate::SubjectPattern;

/// The agent's own account.
pub(crate) const AGENT: &str = "katazuke_agent@localhost";
/// Its user name.
pub(crate) const AGENT_USER: &str = "katazuke_agent";
/// Longest user name of MySQL.
const USER_LENGTH_MAX: usize = 32;

/// The replication account of one instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Account {
    user: String,
    subject: String,
}

impl Account {
    /// By the instance's name.
    pub(crate) fn new(instance: &str, subjects: &SubjectPattern) -> Self {
        Self {
            user: user(instance),
            subject: subjects.of(instance),
        }
    }

    /// Statements after which the instance can replicate and clone from here,
    /// also while this server is offline (fact 10).
    pub(crate) fn open(&self) -> [String; 3] {
        let Self { user, subject } = self;
        let subject = subject.replace('\\', "\\\\").replace('\'', "''");
        [
            format!("CREATE USER IF NOT EXISTS '{user}'@'%' ACCOUNT LOCK"),
            format!(
                "GRANT REPLICATION SLAVE, BACKUP_ADMIN, CONNECTION_ADMIN ON *.* TO '{user}'@'%'"
            ),
            format!(
                "ALTER USER '{user}'@'%' IDENTIFIED WITH caching_sha2_password BY '' \
                 REQUIRE SUBJECT '{subject}' ACCOUNT UNLOCK"
            ),
        ]
    }
}

/// `kz_<instance>`; long names end in a digest.
pub(crate) fn user(instance: &str) -> String {
    let plain = format!("kz_{instance}");
    if plain.len() <= USER_LENGTH_MAX {
        return plain;
    }
    let digest = Sha256::digest(instance.as_bytes());
    let mut short: String = plain.chars().take(USER_LENGTH_MAX - 13).collect();
    short.push('_');
    for byte in digest.iter().take(6) {
        // Writing to a String does not fail.
        let _ = write!(short, "{byte:02x}");
    }
    short
}

/// Opens these accounts and locks all other replication accounts; whoever
/// replicates with one of those is cut off. The session must be allowed to
/// write; nothing is binlogged.
pub(crate) async fn keep_only(session: &mut Session, peers: &[Account]) -> Result<(), SqlError> {
    session.run("SET SESSION sql_log_bin=0").await?;
    let done = keep_only_unlogged(session, peers).await;
    session.run("SET SESSION sql_log_bin=1").await?;
    done
}

async fn keep_only_unlogged(session: &mut Session, peers: &[Account]) -> Result<(), SqlError> {
    for statement in peers.iter().flat_map(Account::open) {
        session.run(&statement).await?;
    }
    let users = session
        .rows("SELECT user AS user FROM mysql.user WHERE user LIKE 'kz\\_%'")
        .await?;
    let others: Vec<String> = users
        .iter()
        .filter_map(|row| text(row, "user"))
        .filter(|user| peers.iter().all(|peer| peer.user != *user))
        .collect();
    for user in &others {
        session
            .run(&format!("ALTER USER '{user}'@'%' ACCOUNT LOCK"))
            .await?;
    }
    cut_off(session, &others).await
}

/// Ends the connections of these users, and confirms that they are gone.
async fn cut_off(session: &mut Session, users: &[String]) -> Result<(), SqlError> {
    if users.is_empty() {
        return Ok(());
    }
    let list = format!("'{}'", users.join("','"));
    let statement = format!(
        "SELECT processlist_id AS id FROM performance_schema.threads WHERE processlist_user IN ({list})"
    );
    for _attempt in 0..100 {
        let ids: Vec<String> = session
            .rows(&statement)
            .await?
            .iter()
            .filter_map(|row| text(row, "id"))
            .collect();
        if ids.is_empty() {
            return Ok(());
        }
        for id in ids {
            kill(session, &id).await?;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    Err(SqlError::Answer {
        statement,
        what: "locked users stay connected".to_owned(),
    })
}

/// KILL; a thread that is gone already is as good.
pub(crate) async fn kill(session: &mut Session, id: &str) -> Result<(), SqlError> {
    const NO_SUCH_THREAD: u16 = 1094;
    match session.run(&format!("KILL {id}")).await {
        Err(error) if error.code() == Some(NO_SUCH_THREAD) => Ok(()),
        other => other,
    }
}

/// Ends every client session: not the system's, not the agent's, not the peers'.
pub(crate) async fn kill_clients(session: &mut Session) -> Result<(), SqlError> {
    let clients = session
        .rows(&format!("SELECT processlist_id AS id {CLIENTS}"))
        .await?;
    for id in clients.iter().filter_map(|row| text(row, "id")) {
        kill(session, &id).await?;
    }
    Ok(())
}

/// The clients, as the FROM of a query.
pub(crate) const CLIENTS: &str = "FROM performance_schema.threads WHERE type='FOREGROUND' \
     AND processlist_id IS NOT NULL AND processlist_user IS NOT NULL \
     AND processlist_user NOT IN ('katazuke_agent','event_scheduler','system user') \
     AND processlist_user NOT LIKE 'kz\\_%'";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_name_fits_and_stays_distinct() {
        assert_eq!(user("shop-0"), "kz_shop-0");
        let long = "a-very-long-cluster-name-of-a-team-1";
        assert_eq!(user(long).len(), USER_LENGTH_MAX);
        assert_ne!(user(long), user("a-very-long-cluster-name-of-a-team-2"));
    }
}
