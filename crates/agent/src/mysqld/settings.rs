//! mysqld's command line: what depends on the instance, and what is forced
//! whatever my.cnf says (clustering.md, section 15; the command line wins).
//! Never holds what is switched at run time: k, semi-sync ON, writes.

use std::{path::Path, process::Command};

use wire::layout;

use crate::options::Options;

/// Forced values that are read back at run time: variable, value on the
/// command line, value as `SELECT @@` shows it.
const FORCED: [(&str, &str, &str); 23] = [
    ("gtid_mode", "ON", "ON"),
    ("enforce_gtid_consistency", "ON", "ON"),
    ("log_replica_updates", "ON", "1"),
    ("binlog_format", "ROW", "ROW"),
    ("sync_binlog", "1", "1"),
    ("innodb_flush_log_at_trx_commit", "1", "1"),
    ("innodb_doublewrite", "ON", "ON"),
    ("innodb_flush_method", "O_DIRECT", "O_DIRECT"),
    ("binlog_error_action", "ABORT_SERVER", "ABORT_SERVER"),
    // ON would throw away received, acknowledged, unapplied transactions.
    ("relay_log_recovery", "OFF", "0"),
    ("binlog_order_commits", "ON", "1"),
    ("relay_log_purge", "ON", "1"),
    ("skip_replica_start", "ON", "1"),
    ("replica_preserve_commit_order", "ON", "1"),
    ("replication_sender_observe_commit_only", "OFF", "0"),
    ("binlog_transaction_compression", "ON", "1"),
    // The agent reads them, running and behind the gate.
    ("binlog_encryption", "OFF", "0"),
    ("disabled_storage_engines", ENGINES, ENGINES),
    (
        "rpl_semi_sync_source_wait_point",
        "AFTER_SYNC",
        "AFTER_SYNC",
    ),
    (
        "rpl_semi_sync_source_timeout",
        "1000000000000000000",
        "1000000000000000000",
    ),
    ("rpl_semi_sync_source_wait_no_replica", "ON", "1"),
    ("persisted_globals_load", "OFF", "0"),
    ("secure_file_priv", "NULL", "NULL"),
];
/// Writes to these are outside every guarantee (fact 3).
const ENGINES: &str = "MyISAM,ARCHIVE,CSV,BLACKHOLE,MRG_MYISAM,FEDERATED";
/// Every boot begins like this; orders change it.
const AT_BOOT: [&str; 5] = [
    "--super-read-only=ON",
    "--read-only=ON",
    "--offline-mode=ON",
    "--rpl-semi-sync-source-enabled=OFF",
    "--rpl-semi-sync-replica-enabled=OFF",
];

/// A forced variable and its value as the server shows it.
pub(crate) fn forced(options: &Options) -> Vec<(&'static str, String)> {
    let mut forced: Vec<_> = FORCED
        .iter()
        .map(|(name, _, shown)| (*name, (*shown).to_owned()))
        .collect();
    forced.push((
        "sync_relay_log",
        options.acknowledge.sync_relay_log().to_string(),
    ));
    forced
}

/// The log stays on standard error: `--log-error` cannot name it (a file
/// `stderr.err` would be made), so the key is one that my.cnf must not hold.
fn program(options: &Options) -> Command {
    let mut command = Command::new(&options.mysqld);
    // Nothing of the agent's environment is meant for mysqld.
    command.env_remove("MYSQLD_PARENT_PID");
    let file = options.config_dir.join(layout::MY_CNF_FILE);
    if file.exists() {
        command.arg(format!("--defaults-file={}", file.display()));
    } else {
        command.arg("--no-defaults");
    }
    if nix::unistd::geteuid().is_root() {
        command.arg("--user=root");
    }
    command.arg(format!("--tmpdir={}", options.tmp_dir.display()));
    for plugin in [
        "rpl_semi_sync_source=semisync_source.so",
        "rpl_semi_sync_replica=semisync_replica.so",
        "clone=mysql_clone.so",
    ] {
        command.arg(format!("--plugin-load-add={plugin}"));
    }
    command
}

fn tls(command: &mut Command, options: &Options, prefix: &str) {
    for (name, file) in [
        ("ca", layout::TLS_CA),
        ("cert", layout::TLS_CERT),
        ("key", layout::TLS_KEY),
    ] {
        command.arg(format!("--{prefix}-{name}={}", options.tls(file).display()));
    }
}

/// The server.
pub(crate) fn server(options: &Options, init_file: &Path) -> Command {
    let mut command = program(options);
    for (name, value, _) in FORCED {
        command.arg(format!("--{}={value}", name.replace('_', "-")));
    }
    command
        .args(AT_BOOT)
        .arg(format!(
            "--sync-relay-log={}",
            options.acknowledge.sync_relay_log()
        ))
        .arg(format!("--log-bin={}", layout::BINLOG_BASENAME))
        .arg(format!("--relay-log={}", layout::RELAY_LOG_BASENAME))
        .arg(format!("--server-id={}", options.server_id))
        .arg(format!("--report-host={}", options.advertise))
        .arg(format!("--report-port={}", options.mysql_port))
        .arg(format!("--port={}", options.mysql_port))
        .arg("--mysqlx=OFF")
        .arg(format!("--datadir={}", options.datadir.display()))
        .arg(format!("--socket={}", options.socket().display()))
        .arg(format!(
            "--pid-file={}",
            options.run_dir.join("mysqld.pid").display()
        ))
        .arg(format!("--init-file={}", init_file.display()));
    tls(&mut command, options, "ssl");
    command
}

/// Makes a new data directory. Not synced while it is made: it is worth
/// nothing until the agent has synced it as a whole.
pub(crate) fn initialise(options: &Options, datadir: &Path) -> Command {
    let mut command = program(options);
    command
        .arg("--initialize-insecure")
        .arg(format!("--datadir={}", datadir.display()))
        .arg("--secure-file-priv=NULL")
        .args([
            "--skip-log-bin",
            "--innodb-doublewrite=OFF",
            "--innodb-flush-method=nosync",
        ])
        .args([
            "--innodb-flush-log-at-trx-commit=0",
            "--performance-schema=OFF",
        ]);
    command
}

/// A server without a network that receives a clone into another directory.
pub(crate) fn recipient(options: &Options, socket: &Path, init_file: &Path) -> Command {
    let mut command = program(options);
    command
        .args([
            "--skip-networking",
            "--skip-log-bin",
            "--skip-replica-start",
            "--mysqlx=OFF",
        ])
        .arg("--secure-file-priv=NULL")
        .arg("--persisted-globals-load=OFF")
        .arg(format!("--server-id={}", options.server_id))
        .arg(format!("--datadir={}", options.pristine().display()))
        .arg(format!("--socket={}", socket.display()))
        .arg(format!(
            "--pid-file={}",
            options.run_dir.join("recipient.pid").display()
        ))
        .arg(format!("--init-file={}", init_file.display()));
    tls(&mut command, options, "clone-ssl");
    command
}
