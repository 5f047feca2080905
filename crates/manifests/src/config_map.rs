//! my.cnf: defaults and what the user set. Never a forced setting: the agent
//! gives those on mysqld's command line, which wins over any file, and never
//! anything that is switched at run time.

use crate::labels::{self, Component};
use crate::validate::ValidatedCluster;
use crate::{names, owner};
use k8s_openapi::api::core::v1::ConfigMap;
use std::collections::BTreeMap;
use wire::layout;

/// Settings that the user may change (docs/clustering, section 15, rows D).
const DEFAULTS: [(&str, &str, &str); 4] = [
    (
        "skip_name_resolve",
        "ON",
        "Accounts are bound to certificates, not to names of hosts.",
    ),
    (
        "replica_net_timeout",
        "10",
        "Above failover.silenceSeconds: a receiver that knocks at a frozen source takes 2 s to stop.",
    ),
    (
        "replication_optimize_for_static_plugin_config",
        "ON",
        "Plugins are not unloaded here.",
    ),
    (
        "binlog_expire_logs_seconds",
        "604800",
        "A replica that was away for a week need not be cloned.",
    ),
];

/// The ConfigMap with my.cnf.
pub fn config_map(cluster: &ValidatedCluster) -> ConfigMap {
    let labels = labels::own(cluster, Component::Configuration);
    ConfigMap {
        metadata: owner::owned(cluster, names::config_map(&cluster.name), labels),
        data: Some(BTreeMap::from([(
            layout::MY_CNF_FILE.to_owned(),
            my_cnf(cluster),
        )])),
        ..ConfigMap::default()
    }
}

/// What mysqld reads.
pub(crate) fn my_cnf(cluster: &ValidatedCluster) -> String {
    let chosen: Vec<String> = cluster.config.keys().map(|key| spelled(key)).collect();
    let mut file = format!(
        "# Made by Katazuke for MySQLCluster {}/{}. Change spec.config there, not this file.\n\
         # Settings on which durability and failover rest are given on mysqld's command\n\
         # line, which wins over this file.\n\
         [mysqld]\n\n# Defaults, unless spec.config says otherwise.\n",
        cluster.namespace, cluster.name
    );
    for (name, value, why) in DEFAULTS {
        if !chosen.contains(&spelled(name)) {
            file.extend(["# ", why, "\n", name, " = ", value, "\n"]);
        }
    }
    file.push_str("\n# From spec.config.\n");
    for (key, value) in &cluster.config {
        file.extend([key, " = ", &quoted(value), "\n"]);
    }
    file
}

/// One spelling for the many in which mysqld takes a name.
fn spelled(key: &str) -> String {
    let name = key.to_ascii_lowercase().replace('-', "_");
    name.strip_prefix("loose_")
        .map_or(name.clone(), str::to_owned)
}

/// A value as an option file needs it: a `#` would begin a comment, and blanks
/// at the ends would be lost.
fn quoted(value: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"_-+.,:;=/@%*".contains(&b);
    if value.bytes().all(plain) {
        return value.to_owned();
    }
    format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_quoted_where_the_file_would_change_it() {
        for (value, written) in [
            ("1G", "1G"),
            ("", ""),
            (
                "STRICT_TRANS_TABLES,NO_ZERO_DATE",
                "STRICT_TRANS_TABLES,NO_ZERO_DATE",
            ),
            ("SET NAMES utf8mb4", "\"SET NAMES utf8mb4\""),
            ("a#b", "\"a#b\""),
            (" a ", "\" a \""),
            ("a\"b", "\"a\\\"b\""),
            ("a'b", "\"a'b\""),
            ("C:\\new", "\"C:\\\\new\""),
        ] {
            assert_eq!(quoted(value), written);
        }
    }
}
