//! The settings of mysqld that Katazuke decides, and the recognition of every
//! way to write them. One list for the CRD's rule and for `manifests`: a
//! setting is never forced in one place and free in the other.
//!
//! mysqld takes hyphens for underscores and strips the prefixes loose, skip,
//! disable, enable and maximum, one after the other; plugins also listen to
//! their options with the prefix plugin. Letters of the wrong case are refused
//! by mysqld, and by us too, before it fails to start.

/// A setting that a user cannot choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forced {
    /// Its name with underscores; a `*` at the end stands for any ending.
    pub name: &'static str,
    /// Why, as the end of "Katazuke sets it itself: …".
    pub reason: &'static str,
}

const fn row(name: &'static str, reason: &'static str) -> Forced {
    Forced { name, reason }
}

const ACKED: &str = "an acknowledged write would not survive a crash otherwise";
const REPLICATION: &str = "a replica could not become the primary otherwise";
const SEMI_SYNC: &str = "who acknowledges, and how many, is decided with the record of the cluster";
const START: &str =
    "an instance must not serve or acknowledge before it was compared with the others";
const SAME_DATA: &str = "every instance must hold the same data";
const FILES: &str = "the agent locks, measures and trims the files where it put them";
const ACCESS: &str =
    "clients, replicas and the agent must find the instance where they look for it";
const IDENTITY: &str = "acknowledgements are counted by it";
const PLUGINS: &str = "the plugins that replication rests on are loaded from here";
const OTHER: &str = "another source of settings would escape these rules";

/// Every forced setting (docs/clustering, section 15).
pub const FORCED_SETTINGS: &[Forced] = &[
    // plugins
    row("plugin_load", PLUGINS),
    row("plugin_load_add", PLUGINS),
    row("early_plugin_load", PLUGINS),
    row("plugin_dir", PLUGINS),
    row("rpl_semi_sync_*", SEMI_SYNC),
    row("clone", PLUGINS),
    row(
        "clone_valid_donor_list",
        "the donor of a clone is chosen when it is needed",
    ),
    row("group_replication*", "Katazuke replicates in its own way"),
    // what an acknowledged write rests on
    row("sync_binlog", ACKED),
    row("innodb_flush_log_at_trx_commit", ACKED),
    row("innodb_doublewrite", ACKED),
    row("innodb_flush_method", ACKED),
    row("binlog_error_action", ACKED),
    row("binlog_order_commits", ACKED),
    row("sync_relay_log", "it follows durability.acknowledge"),
    row(
        "relay_log_recovery",
        "relay logs are the only second copy of an acknowledged write",
    ),
    row(
        "relay_log_purge",
        "relay logs are purged when they are applied, neither before nor never",
    ),
    row("disabled_storage_engines", "only InnoDB is crash-safe"),
    // replication
    row("gtid_mode", REPLICATION),
    row("enforce_gtid_consistency", REPLICATION),
    row("log_bin", REPLICATION),
    row("log_bin_index", FILES),
    row("log_replica_updates", REPLICATION),
    row("log_slave_updates", REPLICATION),
    row("binlog_format", REPLICATION),
    row(
        "binlog_transaction_compression",
        "replicas would flush several times as often otherwise",
    ),
    row(
        "binlog_encryption",
        "the agent reads the binlogs and relay logs to tell what an instance holds",
    ),
    row("relay_log", FILES),
    row("relay_log_index", FILES),
    row("replica_preserve_commit_order", SAME_DATA),
    row("slave_preserve_commit_order", SAME_DATA),
    row(
        "replication_sender_observe_commit_only",
        "replication could stop for good otherwise",
    ),
    row(
        "replica_allow_higher_version_source",
        "a failover in the middle of an upgrade needs it",
    ),
    row("replicate_*", SAME_DATA),
    row("binlog_do_db", SAME_DATA),
    row("binlog_ignore_db", SAME_DATA),
    row("replica_skip_errors", SAME_DATA),
    row("slave_skip_errors", SAME_DATA),
    row("replica_exec_mode", SAME_DATA),
    row("slave_exec_mode", SAME_DATA),
    row("init_replica", SAME_DATA),
    row("init_slave", SAME_DATA),
    // the start gate
    row("skip_replica_start", START),
    row("skip_slave_start", START),
    row("super_read_only", START),
    row("read_only", START),
    row("offline_mode", START),
    row("init_file", START),
    row("skip_grant_tables", START),
    row("upgrade", START),
    row("initialize", START),
    row("initialize_insecure", START),
    row("daemonize", "mysqld is the agent's child"),
    // identity, places, access
    row("server_id", IDENTITY),
    row("server_id_bits", IDENTITY),
    row("datadir", FILES),
    row("basedir", FILES),
    row("tmpdir", FILES),
    row("chroot", FILES),
    row("user", FILES),
    row("pid_file", FILES),
    row(
        "secure_file_priv",
        "SQL must not read or write the files of the Pod",
    ),
    row("report_*", ACCESS),
    row("log_error", "the log belongs to the Pod's log"),
    row("innodb_data_home_dir", FILES),
    row("innodb_log_group_home_dir", FILES),
    row("innodb_undo_directory", FILES),
    row("innodb_doublewrite_dir", FILES),
    row("innodb_directories", FILES),
    row("socket", ACCESS),
    row("port", ACCESS),
    row("bind_address", ACCESS),
    row("skip_networking", ACCESS),
    row(
        "admin_*",
        "the agent must get in when all connections are taken",
    ),
    row(
        "create_admin_listener_thread",
        "the agent must get in when all connections are taken",
    ),
    row(
        "mysqlx*",
        "clients are served on one port, where they can be seen and drained",
    ),
    row("ssl", "replication and the agents rest on certificates"),
    row("ssl_*", "certificates are made and renewed by Katazuke"),
    // other sources of settings
    row("persisted_globals_load", OTHER),
    row("defaults_*", OTHER),
    row("no_defaults", OTHER),
    row("login_path", OTHER),
    row("set_variable", OTHER),
];

/// What mysqld, or one of its plugins, strips from the front of an option.
const PREFIXES: [&str; 6] = [
    "loose_", "skip_", "disable_", "enable_", "maximum_", "plugin_",
];

/// The forced setting that this key of `spec.config` would change, however it
/// is written.
///
/// ```
/// assert_eq!(api::forced("loose-Sync-Binlog").map(|row| row.name), Some("sync_binlog"));
/// assert_eq!(api::forced("max_connections"), None);
/// ```
pub fn forced(key: &str) -> Option<&'static Forced> {
    let name = normal(key);
    FORCED_SETTINGS.iter().find(|row| {
        let own = normal(row.name);
        match own.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => name == own,
        }
    })
}

fn normal(key: &str) -> String {
    let lower = key.trim().to_ascii_lowercase().replace('-', "_");
    without_prefixes(&lower).to_owned()
}

fn without_prefixes(name: &str) -> &str {
    PREFIXES
        .iter()
        .find_map(|prefix| name.strip_prefix(prefix))
        .map_or(name, without_prefixes)
}

impl Forced {
    /// The same recognition as a regular expression on a key in lower case with
    /// underscores, for the CRD's rule.
    pub(crate) fn pattern(&self) -> String {
        let prefixes = PREFIXES
            .map(|prefix| prefix.trim_end_matches('_'))
            .join("|");
        format!("^(({prefixes})_)*{}$", normal(self.name).replace('*', ".*"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(key: &str) -> Option<&'static str> {
        forced(key).map(|row| row.name)
    }

    #[test]
    fn a_forced_setting_is_recognised_in_every_spelling() {
        for key in [
            "sync_binlog",
            "sync-binlog",
            "sync-binlog_",
            "SYNC_BINLOG",
            "Sync-Binlog",
            "loose_sync_binlog",
            "loose-sync-binlog",
            "LOOSE-sync_binlog",
            "loose_loose_sync_binlog",
            "maximum-sync-binlog",
            "loose_maximum_sync_binlog",
            "enable_sync_binlog",
            " sync_binlog ",
        ] {
            let expected = (key != "sync-binlog_").then_some("sync_binlog");
            assert_eq!(name(key), expected, "{key:?}");
        }
        for (key, row) in [
            ("skip-log-bin", "log_bin"),
            ("disable_log_bin", "log_bin"),
            ("skip_replica_start", "skip_replica_start"),
            ("replica-start", "skip_replica_start"),
            ("loose_skip_slave_start", "skip_slave_start"),
            ("skip_ssl", "ssl"),
            ("ssl-ca", "ssl_*"),
            ("skip-networking", "skip_networking"),
            ("skip_innodb_doublewrite", "innodb_doublewrite"),
            ("loose_rpl_semi_sync_master_enabled", "rpl_semi_sync_*"),
            ("plugin-rpl-semi-sync-source-enabled", "rpl_semi_sync_*"),
            ("plugin_load_add", "plugin_load_add"),
            ("skip-clone", "clone"),
            ("replicate-do-db", "replicate_*"),
            ("skip_mysqlx", "mysqlx*"),
            ("set-variable", "set_variable"),
            ("admin-ssl-ca", "admin_*"),
        ] {
            assert_eq!(name(key), Some(row), "{key:?}");
        }
    }

    #[test]
    fn other_settings_are_free() {
        for key in [
            "max_connections",
            "innodb_buffer_pool_size",
            "skip_name_resolve",
            "replica_parallel_workers",
            "binlog_expire_logs_seconds",
            "port_open_timeout",
            "clone_buffer_size",
            "log_error_verbosity",
            "relay_log_space_limit",
            "disabled",
            "",
            "*",
            "loose_",
        ] {
            assert_eq!(name(key), None, "{key:?}");
        }
    }

    #[test]
    fn every_row_is_found_by_its_own_name_and_has_a_reason() {
        for row in FORCED_SETTINGS {
            let key = row.name.replace('*', "x");
            assert_eq!(name(&key).map(normal), Some(normal(row.name)), "{key}");
            assert!(row.reason.len() > 10, "{}", row.name);
            assert!(
                row.name
                    .bytes()
                    .all(|b| matches!(b, b'a'..=b'z' | b'_' | b'*'))
            );
        }
    }
}
