//! The statements that run at every boot before anybody can log in (fact 18).
//! Never binlogged; the agent's password lives only in memory and in a file
//! that is removed once mysqld answers.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use crate::sql::accounts::{AGENT, Account};

/// Statements of the init file: the agent's account, the peers' accounts.
/// All replication accounts are locked first, so that what the list does not
/// name stays locked, whoever made it (section 14).
pub(crate) fn statements(password: &str, peers: &[Account]) -> Vec<String> {
    let mut statements = vec![
        "SET SESSION sql_log_bin=0".to_owned(),
        format!("CREATE USER IF NOT EXISTS {AGENT}"),
        format!(
            "ALTER USER {AGENT} IDENTIFIED WITH caching_sha2_password BY '{password}' \
             REQUIRE NONE ACCOUNT UNLOCK"
        ),
        format!("GRANT ALL ON *.* TO {AGENT} WITH GRANT OPTION"),
        // Made without a password by --initialize-insecure.
        "ALTER USER IF EXISTS root@localhost ACCOUNT LOCK".to_owned(),
        "UPDATE mysql.user SET account_locked='Y' WHERE user LIKE 'kz\\_%'".to_owned(),
        "FLUSH PRIVILEGES".to_owned(),
    ];
    statements.extend(peers.iter().flat_map(Account::open));
    statements
}

/// Writes them where only this user can read them.
pub(crate) fn write(path: &Path, statements: &[String]) -> io::Result<()> {
    match fs::remove_file(path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    for statement in statements {
        writeln!(file, "{statement};")?;
    }
    Ok(())
}
