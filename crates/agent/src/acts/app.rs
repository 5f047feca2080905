//! EnsureApp: the application's account and database, from the mounted Secret.
//! Binlogged, hence only on an open primary whose ackers are attached, and not
//! at all when the account works already: nothing is written at rest.

use std::{fs, path::Path, time::Duration};

use mysql_async::{Conn, OptsBuilder, prelude::Queryable};
use tokio::time::timeout;
use wire::Outcome;

use super::{ActError, Hands};
use crate::{lock, sql::session::text};

const LOGIN_BOUND: Duration = Duration::from_secs(2);
/// An account statement waits for its acknowledgement.
const WRITE_BOUND: Duration = Duration::from_secs(10);

struct App {
    user: String,
    password: String,
    database: String,
}

impl App {
    fn read(directory: &Path) -> Result<Self, ActError> {
        let read = |file| {
            fs::read_to_string(directory.join(file))
                .map(|text| text.trim_end_matches('\n').to_owned())
                .map_err(|source| ActError::Io {
                    doing: "reading the application's credentials",
                    source,
                })
        };
        Ok(Self {
            user: read("user")?,
            password: read("password")?,
            database: read("database")?,
        })
    }

    /// Logs in as the application would.
    async fn works(&self, socket: &Path) -> bool {
        let options = OptsBuilder::default()
            .socket(Some(socket.to_string_lossy()))
            .user(Some(&self.user))
            .pass(Some(&self.password))
            .db_name(Some(&self.database))
            .prefer_socket(false);
        let login = async {
            let mut conn = Conn::new(options).await?;
            conn.query_drop("DO 1").await?;
            conn.disconnect().await
        };
        matches!(timeout(LOGIN_BOUND, login).await, Ok(Ok(())))
    }

    fn statements(&self) -> [String; 4] {
        let text = |value: &str| value.replace('\\', "\\\\").replace('\'', "''");
        let account = format!("'{}'@'%'", text(&self.user));
        let database = self.database.replace('`', "``");
        [
            format!("CREATE DATABASE IF NOT EXISTS `{database}`"),
            format!("CREATE USER IF NOT EXISTS {account}"),
            format!(
                "ALTER USER {account} IDENTIFIED WITH caching_sha2_password BY '{}'",
                text(&self.password)
            ),
            format!(
                "GRANT ALL ON `{}`.* TO {account}",
                database.replace('_', "\\_").replace('%', "\\%")
            ),
        ]
    }
}

/// Makes or updates them.
pub(crate) async fn ensure(hands: &mut Hands<'_>) -> Result<Outcome, ActError> {
    let app = App::read(&hands.agent.options.app_dir)?;
    let server = hands.observe().await?;
    if server.read_only || server.offline {
        return Err(ActError::wrong_state("not an open primary"));
    }
    let socket = hands.agent.options.socket();
    if !app.works(&socket).await {
        let attached = hands
            .session
            .rows("SHOW GLOBAL STATUS LIKE 'Rpl_semi_sync_source_clients'")
            .await?;
        let attached: u32 = attached
            .first()
            .and_then(|row| text(row, "Value"))
            .and_then(|n| n.parse().ok())
            .unwrap_or(0);
        if server.semi_sync.enabled && attached < server.semi_sync.k {
            // It would wait, and block every login while it does (fact 7).
            return Err(ActError::wrong_state("not enough ackers are attached"));
        }
        for statement in app.statements() {
            hands.session.run_within(&statement, WRITE_BOUND).await?;
        }
        if !app.works(&socket).await {
            return Err(ActError::NotReached(
                "the application's account does not work".to_owned(),
            ));
        }
    }
    lock(&hands.running.facts).app_ready = true;
    hands.observe().await?;
    Ok(Outcome::Done)
}
