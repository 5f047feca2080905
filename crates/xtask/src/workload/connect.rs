//! Short-tempered connections: a client that waits long measures its own
//! patience, not the cluster.

use std::net::SocketAddr;
use std::time::Duration;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, OptsBuilder, SslOpts};

use super::record::Answer;

/// The variable through which the password reaches the process.
pub const PASSWORD_VARIABLE: &str = "KATAZUKE_WORKLOAD_PASSWORD";

/// A new connection is given this long.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_millis(500);
/// A statement is given this long.
pub(super) const STATEMENT_TIMEOUT: Duration = Duration::from_secs(1);

/// Who logs in.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct Login {
    /// The account.
    #[arg(long)]
    pub user: String,
    /// Its password; given by the environment, so that no process list shows it.
    #[arg(long, env = PASSWORD_VARIABLE, hide_env_values = true)]
    pub password: String,
    /// The schema.
    #[arg(long)]
    pub database: String,
}

/// Which table of which server.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct Target {
    /// Address and port; a Service's, or an instance's own.
    #[arg(long)]
    pub address: SocketAddr,
    /// The account.
    #[command(flatten)]
    pub login: Login,
    /// The table; letters, digits and underscores.
    #[arg(long, default_value = "katazuke_writes", value_parser = table_name)]
    pub table: String,
}

fn table_name(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if !text.is_empty() && text.chars().all(is_plain) {
        Ok(text.to_owned())
    } else {
        Err("letters, digits and underscores only".to_owned())
    }
}

/// A connection and who is at its other end.
pub(super) struct Session {
    pub(super) connection: Conn,
    pub(super) server: String,
}

/// Connects and asks for the server's uuid.
pub(super) async fn connect(target: &Target, patience: Duration) -> Result<Session, String> {
    let connecting = async {
        let mut connection = Conn::new(options(target)).await?;
        let server = connection.query_first("SELECT @@server_uuid").await?;
        Ok::<_, mysql_async::Error>(Session {
            connection,
            server: server.unwrap_or_default(),
        })
    };
    match tokio::time::timeout(patience, connecting).await {
        Ok(Ok(session)) => Ok(session),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("no connection within {} ms", patience.as_millis())),
    }
}

fn options(target: &Target) -> OptsBuilder {
    // The writer checks what becomes of data, not who the server is.
    let tls = SslOpts::default().with_danger_accept_invalid_certs(true);
    OptsBuilder::default()
        .ip_or_hostname(target.address.ip().to_string())
        .tcp_port(target.address.port())
        .user(Some(&target.login.user))
        .pass(Some(&target.login.password))
        .db_name(Some(&target.login.database))
        .ssl_opts(tls)
        .prefer_socket(false)
        // Known, so that connecting needs no further question.
        .max_allowed_packet(Some(1 << 24))
        .wait_timeout(Some(28_800))
}

/// Errors that come before anything could have been written. Whatever is not
/// listed is unknown: a wrong "unknown" costs nothing, a wrong "failed" would
/// call a rightful row unexpected.
const REFUSED_BEFORE_WRITING: [u16; 6] = [
    1044, // no access to the schema
    1045, // no access
    1049, // no such schema
    1142, // not allowed on the table
    1146, // no such table
    1205, // a lock was not to be had
];

/// What an error says about the row.
pub(super) fn answer_of(error: &mysql_async::Error) -> Answer {
    let why = error.to_string();
    match error {
        mysql_async::Error::Server(said) if REFUSED_BEFORE_WRITING.contains(&said.code) => {
            Answer::Failed { why }
        }
        mysql_async::Error::Server(_)
        | mysql_async::Error::Driver(_)
        | mysql_async::Error::Io(_)
        | mysql_async::Error::Other(_)
        | mysql_async::Error::Url(_) => Answer::Unknown { why },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server_error(code: u16) -> mysql_async::Error {
        mysql_async::Error::Server(mysql_async::ServerError {
            code,
            message: String::new(),
            state: String::new(),
        })
    }

    #[test]
    fn read_only_offline_and_shutdown_prove_nothing() {
        for code in [1290, 3032, 1053, 1317, 1836, 3100] {
            assert!(
                matches!(answer_of(&server_error(code)), Answer::Unknown { .. }),
                "{code}"
            );
        }
        assert!(matches!(
            answer_of(&server_error(1146)),
            Answer::Failed { .. }
        ));
    }

    #[test]
    fn a_table_name_is_never_more_than_a_name() {
        assert!(table_name("katazuke_writes").is_ok());
        for bad in ["", "a b", "a`", "a;b", "a.b"] {
            assert!(table_name(bad).is_err(), "{bad:?}");
        }
    }
}
