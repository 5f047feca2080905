//! The second line of defence behind the CRD's rules, and the border behind
//! which a spec is known to be good: builders take only a [`ValidatedCluster`].
//! Never repairs a spec: it says what to write.

use api::{
    Acknowledge, MySQLCluster, MySQLClusterSpec, OnScaleDown, PodTemplate, Policy, Reads,
    RebuildPolicy, Resources, ServiceTemplate, Storage, WhenShort, forced,
};
use std::collections::BTreeMap;

use crate::quantity;

/// A field that cannot be built on, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {message}")]
pub struct Invalid {
    /// The field, as in the resource.
    pub field: &'static str,
    /// What to write.
    pub message: String,
}

/// A cluster that can be built. Made only by [`validate`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ValidatedCluster {
    /// Name of the resource.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Its uid.
    pub uid: String,
    /// Number of instances, 1 to 9.
    pub replicas: u32,
    /// Image of mysqld.
    pub image: String,
    /// The volume of each instance.
    pub storage: Storage,
    /// CPU and memory of mysqld.
    pub resources: Resources,
    /// Settings of mysqld, none of them forced.
    pub config: BTreeMap<String, String>,
    /// What the user adds to Pods.
    pub pod_template: PodTemplate,
    /// What the user adds to the primary's Service.
    pub primary_service: ServiceTemplate,
    /// What the user adds to the replicas' Service.
    pub replica_service: ServiceTemplate,
    /// What an acknowledgement is worth.
    pub acknowledge: Acknowledge,
    /// What happens to the volumes when the resource is deleted.
    pub deletion_policy: Policy,
    /// What no object shows: how the operator acts.
    pub behaviour: Behaviour,
}

/// How the operator acts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Behaviour {
    /// Silence after which a primary is suspected.
    pub silence_seconds: u32,
    /// Stop every instance.
    pub offline: bool,
    /// Only observe and report.
    pub paused: bool,
    /// The volume of a removed instance.
    pub on_scale_down: OnScaleDown,
    /// Who decides that an instance is made anew.
    pub rebuild: RebuildPolicy,
    /// How long a replaced volume is kept.
    pub keep_old_volume_seconds: u64,
    /// How long an archived tail is kept.
    pub keep_archive_seconds: u64,
}

/// Everything that is wrong, not only the first thing.
pub fn validate(cluster: &MySQLCluster) -> Result<ValidatedCluster, Vec<Invalid>> {
    let mut found = Found(Vec::new());
    // Destructured, so that a new field cannot be forgotten here.
    let MySQLClusterSpec {
        replicas,
        image,
        storage,
        resources,
        config,
        pod_template,
        primary_service,
        replica_service,
        durability,
        deletion,
        reads,
        // Judged in behaviour().
        rebuild: _,
        failover: _,
        offline: _,
        paused: _,
    } = cluster.spec.clone();
    found.image(&image);
    found.storage(&storage);
    found.config(&config);
    found.pod_template(&pod_template);
    found.free("spec.primaryService.labels", &primary_service.labels);
    found.free("spec.replicaService.labels", &replica_service.labels);
    found.ours(
        "spec.primaryService.annotations",
        &primary_service.annotations,
        &[OURS],
    );
    found.ours(
        "spec.replicaService.annotations",
        &replica_service.annotations,
        &[OURS],
    );
    found.built(durability.when_short, reads, deletion.on_scale_down);
    let validated = ValidatedCluster {
        name: found.name(cluster.metadata.name.as_deref()),
        namespace: found.given("metadata.namespace", cluster.metadata.namespace.as_deref()),
        uid: found.given("metadata.uid", cluster.metadata.uid.as_deref()),
        replicas: found.number("spec.replicas", replicas, 9),
        image,
        storage,
        resources,
        config,
        pod_template,
        primary_service,
        replica_service,
        acknowledge: durability.acknowledge,
        deletion_policy: deletion.policy,
        behaviour: found.behaviour(&cluster.spec),
    };
    if found.0.is_empty() {
        Ok(validated)
    } else {
        Err(found.0)
    }
}

/// Labels and annotations that begin like this are Katazuke's.
const OURS: &str = "mysql.katazuke.dev/";

struct Found(Vec<Invalid>);

impl Found {
    fn add(&mut self, field: &'static str, message: impl Into<String>) {
        self.0.push(Invalid {
            field,
            message: message.into(),
        });
    }

    fn check(&mut self, good: bool, field: &'static str, message: &str) {
        if !good {
            self.add(field, message);
        }
    }

    fn given(&mut self, field: &'static str, value: Option<&str>) -> String {
        let value = value.unwrap_or_default();
        self.check(
            !value.is_empty(),
            field,
            "is missing: read the resource from the API server",
        );
        value.to_owned()
    }

    fn name(&mut self, name: Option<&str>) -> String {
        let name = name.unwrap_or_default();
        let letters = name
            .bytes()
            .all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-'));
        let good = (1..=40).contains(&name.len())
            && letters
            && name.starts_with(|first: char| first.is_ascii_lowercase())
            && !name.ends_with('-');
        self.check(
            good,
            "metadata.name",
            "write at most 40 lower-case letters, digits and hyphens, beginning with a letter",
        );
        name.to_owned()
    }

    fn number(&mut self, field: &'static str, value: i32, most: u32) -> u32 {
        match u32::try_from(value) {
            Ok(number) if (1..=most).contains(&number) => number,
            Ok(_) | Err(_) => {
                self.add(field, format!("write 1 to {most}"));
                1
            }
        }
    }

    fn image(&mut self, image: &str) {
        let good = !image.is_empty() && !image.contains(char::is_whitespace);
        self.check(
            good,
            "spec.image",
            "name an image that holds mysqld 8.4 or 9.7, such as mysql:9.7",
        );
    }

    fn storage(&mut self, storage: &Storage) {
        let good = quantity::nano(&storage.size).is_some_and(|size| size > 0);
        self.check(
            good,
            "spec.storage.size",
            "write a size above 0, such as 20Gi",
        );
    }

    fn config(&mut self, config: &BTreeMap<String, String>) {
        const FIELD: &str = "spec.config";
        for (key, value) in config {
            if let Some(row) = forced(key) {
                let (name, reason) = (row.name, row.reason);
                self.add(
                    FIELD,
                    format!("remove {name}: Katazuke sets it itself: {reason}"),
                );
            } else if !is_setting(key) {
                self.add(FIELD, format!("{key:?} is no name of a setting"));
            }
            // A tab does no harm; anything else could begin a line of its own.
            if value.contains(|letter: char| letter.is_control() && letter != '\t') {
                self.add(FIELD, format!("write the value of {key:?} as one line"));
            }
        }
    }

    fn pod_template(&mut self, template: &PodTemplate) {
        let restricted = "write an id above 0, such as 999";
        self.check(
            template.run_as_user > 0,
            "spec.podTemplate.runAsUser",
            restricted,
        );
        self.check(
            template.fs_group > 0,
            "spec.podTemplate.fsGroup",
            restricted,
        );
        self.free("spec.podTemplate.labels", &template.labels);
        self.ours(
            "spec.podTemplate.annotations",
            &template.annotations,
            &[OURS],
        );
    }

    fn free(&mut self, field: &'static str, labels: &BTreeMap<String, String>) {
        self.ours(field, labels, &[OURS, "app.kubernetes.io/"]);
    }

    /// Keys by which Katazuke finds its objects are not for others to set.
    fn ours(&mut self, field: &'static str, keys: &BTreeMap<String, String>, ours: &[&str]) {
        for key in keys.keys() {
            if ours.iter().any(|prefix| key.starts_with(prefix)) {
                self.add(field, format!("remove {key}: it is set by Katazuke"));
            }
        }
    }

    fn built(&mut self, when_short: WhenShort, reads: Reads, on_scale_down: OnScaleDown) {
        match when_short {
            WhenShort::Block => {}
            WhenShort::Continue => {
                self.add(
                    "spec.durability.whenShort",
                    "write Block: Continue is not built yet",
                );
            }
        }
        match reads {
            Reads::Available => {}
            Reads::Strict => self.add("spec.reads", "write Available: Strict is not built yet"),
        }
        match on_scale_down {
            OnScaleDown::Retain => {}
            OnScaleDown::Delete => {
                self.add(
                    "spec.deletion.onScaleDown",
                    "write Retain: Delete is not built yet",
                );
            }
        }
    }

    fn behaviour(&mut self, spec: &MySQLClusterSpec) -> Behaviour {
        let rebuild = &spec.rebuild;
        let (old_volume, archive) = (&rebuild.keep_old_volume_for, &rebuild.keep_archive_for);
        let silence = spec.failover.silence_seconds;
        Behaviour {
            silence_seconds: self.number("spec.failover.silenceSeconds", silence, 300),
            offline: spec.offline,
            paused: spec.paused,
            on_scale_down: spec.deletion.on_scale_down,
            rebuild: rebuild.policy,
            keep_old_volume_seconds: self.period("spec.rebuild.keepOldVolumeFor", old_volume),
            keep_archive_seconds: self.period("spec.rebuild.keepArchiveFor", archive),
        }
    }

    fn period(&mut self, field: &'static str, text: &str) -> u64 {
        let seconds = period_seconds(text);
        self.check(
            seconds.is_some(),
            field,
            "write a number and s, m, h or d, such as 24h",
        );
        seconds.unwrap_or_default()
    }
}

fn is_setting(key: &str) -> bool {
    key.len() <= 128
        && key.starts_with(|first: char| first.is_ascii_alphabetic())
        && key
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'))
}

fn period_seconds(text: &str) -> Option<u64> {
    let (number, seconds) = [('s', 1), ('m', 60), ('h', 3_600), ('d', 86_400)]
        .into_iter()
        .find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, seconds)))?;
    if number.is_empty() || number.len() > 5 || !number.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    number.parse::<u64>().ok()?.checked_mul(seconds)
}
