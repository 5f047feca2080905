//! The rules that an API server checks, each with the sentence that a user
//! reads. A sentence says what to write instead; it never says only "invalid".
//!
//! A rule's cost grows with the sizes that [`BOUNDS`] allow: a string or map
//! that a rule reads never goes without a bound.

use crate::forced::{FORCED_SETTINGS, Forced};

/// One rule of the CRD.
pub(crate) struct Rule {
    /// The place in the schema, with dots.
    pub(crate) at: &'static str,
    /// CEL; true is good.
    pub(crate) cel: String,
    /// What to write instead.
    pub(crate) message: String,
}

fn rule(at: &'static str, cel: &str, message: &'static str) -> Rule {
    Rule {
        at,
        cel: cel.to_owned(),
        message: message.to_owned(),
    }
}

/// A limit on a size. `*` in the place stands for the values of a map.
pub(crate) enum Bound {
    /// Most keys of a map.
    Properties(&'static str, i64),
    /// Longest string.
    Length(&'static str, i64),
}

pub(crate) const BOUNDS: &[Bound] = &[
    Bound::Length("spec.image", 512),
    Bound::Length("spec.storage.size", 32),
    Bound::Length("spec.storage.storageClassName", 253),
    Bound::Properties("spec.config", 64),
    Bound::Length("spec.config.*", 1024),
    Bound::Properties("spec.resources.requests", 16),
    Bound::Length("spec.resources.requests.*", 32),
    Bound::Properties("spec.resources.limits", 16),
    Bound::Length("spec.resources.limits.*", 32),
    Bound::Properties("spec.podTemplate.labels", 32),
    Bound::Length("spec.podTemplate.labels.*", 63),
    Bound::Properties("spec.podTemplate.annotations", 32),
    Bound::Length("spec.podTemplate.annotations.*", 8192),
    Bound::Properties("spec.podTemplate.nodeSelector", 32),
    Bound::Length("spec.podTemplate.nodeSelector.*", 63),
    Bound::Length("spec.podTemplate.priorityClassName", 253),
    Bound::Length("spec.podTemplate.runtimeClassName", 253),
    Bound::Properties("spec.primaryService.labels", 32),
    Bound::Length("spec.primaryService.labels.*", 63),
    Bound::Properties("spec.primaryService.annotations", 32),
    Bound::Length("spec.primaryService.annotations.*", 8192),
    Bound::Properties("spec.replicaService.labels", 32),
    Bound::Length("spec.replicaService.labels.*", 63),
    Bound::Properties("spec.replicaService.annotations", 32),
    Bound::Length("spec.replicaService.annotations.*", 8192),
    Bound::Length("spec.rebuild.keepOldVolumeFor", 16),
    Bound::Length("spec.rebuild.keepArchiveFor", 16),
];

/// Every rule, in the order of the spec.
pub(crate) fn all() -> Vec<Rule> {
    let mut rules = vec![
        name(),
        rule(
            "spec.replicas",
            "self >= 1 && self <= 9",
            "write 1 to 9; to stop every instance and keep the data, write offline: true",
        ),
        rule(
            "spec.replicas",
            "self >= oldSelf",
            "scaling down is not built yet: write the old number or a larger one; for fewer instances, load the data into a new cluster",
        ),
    ];
    rules.push(rule(
        "spec.image",
        r"self.matches(r'^\S+$')",
        "name an image that holds mysqld 8.4 or 9.7, such as mysql:9.7",
    ));
    rules.extend(storage());
    rules.extend(resources());
    rules.extend(config());
    rules.extend(FORCED_SETTINGS.iter().map(forced_setting));
    rules.extend(pod_template());
    rules.extend(service(
        "spec.primaryService.labels",
        "spec.primaryService.annotations",
    ));
    rules.extend(service(
        "spec.replicaService.labels",
        "spec.replicaService.annotations",
    ));
    rules.extend(behaviour());
    rules
}

fn name() -> Rule {
    rule(
        "",
        "size(self.metadata.name) <= 40 && self.metadata.name.matches(r'^[a-z]([a-z0-9-]*[a-z0-9])?$')",
        "metadata.name: write at most 40 lower-case letters, digits and hyphens, beginning with a letter, so that every name made from it is a DNS label",
    )
}

fn storage() -> [Rule; 3] {
    [
        rule(
            "spec.storage.size",
            "isQuantity(string(self)) && quantity(string(self)).isGreaterThan(quantity('0'))",
            "write a size above 0, such as 20Gi",
        ),
        rule(
            "spec.storage.size",
            "!isQuantity(string(self)) || !isQuantity(string(oldSelf)) || quantity(string(self)).compareTo(quantity(string(oldSelf))) >= 0",
            "a volume can grow but not shrink: write the old size or a larger one; to move to smaller volumes, load the data into a new cluster",
        ),
        rule(
            "spec.storage",
            "has(self.storageClassName) == has(oldSelf.storageClassName) && (!has(self.storageClassName) || self.storageClassName == oldSelf.storageClassName)",
            "storageClassName cannot be changed: write the old one back; to move to another class, load the data into a new cluster",
        ),
    ]
}

fn resources() -> [Rule; 3] {
    let quantities = "self.all(name, isQuantity(string(self[name])))";
    [
        rule(
            "spec.resources.requests",
            quantities,
            "write amounts such as cpu: \"1\" or memory: 2Gi",
        ),
        rule(
            "spec.resources.limits",
            quantities,
            "write amounts such as cpu: \"2\" or memory: 2Gi",
        ),
        rule(
            "spec.resources",
            "!has(self.requests) || !has(self.limits) || self.requests.all(name, !(name in self.limits) || !isQuantity(string(self.requests[name])) || !isQuantity(string(self.limits[name])) || quantity(string(self.requests[name])).compareTo(quantity(string(self.limits[name]))) <= 0)",
            "a request cannot be above the limit of the same resource: lower it or raise the limit",
        ),
    ]
}

/// Names of settings as mysqld has them, structured and component ones too.
const SETTING: &str = "^[A-Za-z][A-Za-z0-9_.-]{0,127}$";

fn config() -> [Rule; 2] {
    [
        rule(
            "spec.config",
            &format!("self.all(key, key.matches(r'{SETTING}'))"),
            "a key is the name of one mysqld setting: letters, digits, '_', '-' and '.', such as max_connections",
        ),
        rule(
            "spec.config",
            r"self.all(key, !self[key].matches(r'[\x00-\x08\x0a-\x1f\x7f]'))",
            "write the value as one line, without control characters",
        ),
    ]
}

/// One rule per setting and not one for all: a message that names the culprit
/// by an expression is estimated far above the API server's budget.
fn forced_setting(row: &Forced) -> Rule {
    let pattern = row.pattern();
    let Forced { name, reason } = row;
    Rule {
        at: "spec.config",
        cel: format!("self.all(key, !key.lowerAscii().replace('-', '_').matches(r'{pattern}'))"),
        message: format!("remove {name}: Katazuke sets it itself: {reason}"),
    }
}

fn pod_template() -> Vec<Rule> {
    let mut rules = vec![
        rule("spec.podTemplate.labels", LABELS, LABELS_SENTENCE),
        rule("spec.podTemplate.labels", LABELS_FREE, LABELS_FREE_SENTENCE),
        rule(
            "spec.podTemplate.annotations",
            ANNOTATIONS,
            ANNOTATIONS_SENTENCE,
        ),
        rule("spec.podTemplate.nodeSelector", LABELS, LABELS_SENTENCE),
    ];
    rules.push(rule(
        "spec.podTemplate.runAsUser",
        "self > 0 && self < 2147483648",
        "write a user id above 0, such as 999: the Pods keep to the restricted security profile",
    ));
    rules.push(rule(
        "spec.podTemplate.fsGroup",
        "self > 0 && self < 2147483648",
        "write a group id above 0, such as 999: the Pods keep to the restricted security profile",
    ));
    rules
}

const LABELS: &str = "self.all(key, !format.qualifiedName().validate(key).hasValue() && !format.labelValue().validate(self[key]).hasValue())";
const LABELS_SENTENCE: &str = "write labels such as team: payments: a key of letters, digits, '-', '_' and '.', with or without a domain and '/', and a value of at most 63 of them";
const LABELS_FREE: &str = "self.all(key, !key.startsWith('mysql.katazuke.dev/') && !key.startsWith('app.kubernetes.io/'))";
const LABELS_FREE_SENTENCE: &str = "choose another label: those of mysql.katazuke.dev and app.kubernetes.io are set by Katazuke, which finds its objects by them";
const ANNOTATIONS: &str = "self.all(key, !format.qualifiedName().validate(key.lowerAscii()).hasValue() && !key.startsWith('mysql.katazuke.dev/'))";
const ANNOTATIONS_SENTENCE: &str = "write annotations such as example.com/owner: payments; those of mysql.katazuke.dev are set by Katazuke";

fn service(labels: &'static str, annotations: &'static str) -> [Rule; 3] {
    [
        rule(labels, LABELS, LABELS_SENTENCE),
        rule(labels, LABELS_FREE, LABELS_FREE_SENTENCE),
        rule(annotations, ANNOTATIONS, ANNOTATIONS_SENTENCE),
    ]
}

fn behaviour() -> [Rule; 7] {
    let period = "self.matches(r'^[0-9]{1,5}[smhd]$')";
    [
        rule(
            "spec.durability.acknowledge",
            "self == oldSelf",
            "changing it is not built yet: write the old one back; for the other one, load the data into a new cluster",
        ),
        rule(
            "spec.durability.whenShort",
            "self == 'Block'",
            "write Block: Continue, by which commits go on unprotected, is not built yet",
        ),
        rule(
            "spec.deletion.onScaleDown",
            "self == 'Retain'",
            "write Retain: Delete, by which the volume of a removed instance is deleted, is not built yet",
        ),
        rule(
            "spec.rebuild.keepOldVolumeFor",
            period,
            "write a number and s, m, h or d, such as 24h",
        ),
        rule(
            "spec.rebuild.keepArchiveFor",
            period,
            "write a number and s, m, h or d, such as 30d",
        ),
        rule(
            "spec.reads",
            "self == 'Available'",
            "write Available: Strict, by which reads wait until everything is replicated, is not built yet",
        ),
        rule(
            "spec.failover.silenceSeconds",
            "self >= 1 && self <= 300",
            "write 1 to 300 seconds; 5 is usual",
        ),
    ]
}
