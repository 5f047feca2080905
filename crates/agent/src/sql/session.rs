//! One connection to our own mysqld, every statement with a bound. A statement
//! that did not come back leaves the connection unusable: it is dropped, and
//! the session connects again when it is needed.

use std::{path::PathBuf, time::Duration};

use mysql_async::{Conn, OptsBuilder, Row, prelude::Queryable};
use tokio::time::timeout;

use crate::volume::live_binlog::LiveBinlogError;

/// Ordinary statements of the agent.
pub(crate) const BOUND: Duration = Duration::from_secs(5);
/// A login; longer means alive but stuck (fact 7).
const LOGIN_BOUND: Duration = Duration::from_secs(2);

/// What the server, or its silence, answered.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SqlError {
    /// New logins do not come through.
    #[error("logging in: no answer within {} ms", LOGIN_BOUND.as_millis())]
    LoginUnanswered,
    /// Login refused.
    #[error("logging in: {0}")]
    Login(mysql_async::Error),
    /// No answer within the bound.
    #[error("`{statement}`: no answer within {} ms", .bound.as_millis())]
    Unanswered { statement: String, bound: Duration },
    /// An error of the server or of the connection.
    #[error("`{statement}`: {source}")]
    Statement {
        statement: String,
        source: mysql_async::Error,
    },
    /// The answer has not the form that was expected.
    #[error("`{statement}`: unexpected answer, {what}")]
    Answer { statement: String, what: String },
    /// The binlog's end, which is read from the files.
    #[error(transparent)]
    Binlog(LiveBinlogError),
}

impl SqlError {
    /// The server's error number.
    pub(crate) fn code(&self) -> Option<u16> {
        match self {
            Self::Statement {
                source: mysql_async::Error::Server(error),
                ..
            } => Some(error.code),
            Self::Statement { .. }
            | Self::LoginUnanswered
            | Self::Login(_)
            | Self::Unanswered { .. }
            | Self::Answer { .. }
            | Self::Binlog(_) => None,
        }
    }
}

/// How to log in.
#[derive(Debug, Clone)]
pub(crate) struct Login {
    pub(crate) socket: PathBuf,
    pub(crate) user: String,
    pub(crate) password: String,
}

/// One connection, kept.
#[derive(Debug)]
pub(crate) struct Session {
    login: Login,
    conn: Option<Conn>,
}

impl Session {
    /// Logs in when it is first used.
    pub(crate) const fn closed(login: Login) -> Self {
        Self { login, conn: None }
    }

    /// Logs in.
    pub(crate) async fn open(login: Login) -> Result<Self, SqlError> {
        let mut session = Self::closed(login);
        session.conn = Some(session.connect().await?);
        Ok(session)
    }

    async fn connect(&self) -> Result<Conn, SqlError> {
        let options = OptsBuilder::default()
            .socket(Some(self.login.socket.to_string_lossy()))
            .user(Some(&self.login.user))
            .pass(Some(&self.login.password))
            // Given, so that the driver asks nothing at login.
            .max_allowed_packet(Some(64 * 1024 * 1024))
            .wait_timeout(Some(31_536_000))
            .prefer_socket(false);
        let mut conn = match timeout(LOGIN_BOUND, Conn::new(options)).await {
            Ok(conn) => conn.map_err(SqlError::Login)?,
            Err(_) => return Err(SqlError::LoginUnanswered),
        };
        let keep = "SET SESSION wait_timeout=31536000, SESSION lock_wait_timeout=5";
        match timeout(LOGIN_BOUND, conn.query_drop(keep)).await {
            Ok(done) => done.map_err(SqlError::Login)?,
            Err(_) => return Err(SqlError::LoginUnanswered),
        }
        Ok(conn)
    }

    /// Rows of a statement.
    pub(crate) async fn rows_within(
        &mut self,
        statement: &str,
        bound: Duration,
    ) -> Result<Vec<Row>, SqlError> {
        let mut conn = match self.conn.take() {
            Some(conn) => conn,
            None => self.connect().await?,
        };
        match timeout(bound, conn.query::<Row, _>(statement)).await {
            Ok(Ok(rows)) => {
                self.conn = Some(conn);
                Ok(rows)
            }
            Ok(Err(source)) => {
                if !source.is_fatal() {
                    self.conn = Some(conn);
                }
                Err(SqlError::Statement {
                    statement: redacted(statement),
                    source,
                })
            }
            Err(_) => Err(SqlError::Unanswered {
                statement: redacted(statement),
                bound,
            }),
        }
    }

    /// Rows of a statement that is never let go, for the connection that must
    /// not be lost while the server is stuck. Waits as long as it takes.
    pub(crate) async fn rows_patiently(&mut self, statement: &str) -> Result<Vec<Row>, SqlError> {
        self.rows_within(statement, Duration::from_hours(8760))
            .await
    }

    /// Rows within the ordinary bound.
    pub(crate) async fn rows(&mut self, statement: &str) -> Result<Vec<Row>, SqlError> {
        self.rows_within(statement, BOUND).await
    }

    /// A statement without rows.
    pub(crate) async fn run(&mut self, statement: &str) -> Result<(), SqlError> {
        self.rows_within(statement, BOUND).await.map(drop)
    }

    /// A statement without rows, with a bound of its own.
    pub(crate) async fn run_within(
        &mut self,
        statement: &str,
        bound: Duration,
    ) -> Result<(), SqlError> {
        self.rows_within(statement, bound).await.map(drop)
    }
}

/// Passwords do not belong in messages.
fn redacted(statement: &str) -> String {
    let upper = statement.to_uppercase();
    match upper.find(" BY '") {
        Some(at) => format!("{} BY …", &statement[..at]),
        None => statement.to_owned(),
    }
}

/// A column by name; NULL and absent are both `None`.
pub(crate) fn text(row: &Row, column: &str) -> Option<String> {
    row.get_opt::<Option<String>, _>(column)
        .and_then(Result::ok)
        .flatten()
}
