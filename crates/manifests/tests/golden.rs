//! The objects of examples/shop.yaml, to the letter. `UPDATE_EXPECT=1 cargo
//! test -p manifests` writes them anew; the difference is what to review.

#![allow(
    clippy::unwrap_used,
    reason = "a test stops where its picture is wrong"
)]

use api::MySQLCluster;
use expect_test::{ExpectFile, expect_file};
use manifests::{
    AppCredentials, InstallFile, InstancePlace, KeyPair, Services, ValidatedCluster, app_secret,
    ca_secret, config_map, disruption_budget, install, pod, services, tls_secret, validate,
    volume_claim,
};
use serde::Serialize;

const IMAGE: &str = "localhost/katazuke/katazuke:0.1.0";

fn example() -> MySQLCluster {
    let text = include_str!("../../../examples/shop.yaml");
    let mut cluster: MySQLCluster = serde_yaml_ng::from_str(text).unwrap();
    cluster.metadata.uid = Some("6f2f4f6a-9a53-4c7e-9c3f-0d7f5c1a2b3c".into());
    cluster
}

fn shop() -> ValidatedCluster {
    validate(&example()).unwrap()
}

fn pair() -> KeyPair {
    let pem = |what: &str| format!("-----BEGIN {what}-----\n…\n-----END {what}-----\n");
    KeyPair {
        certificate: pem("CERTIFICATE"),
        key: pem("PRIVATE KEY"),
        trust: pem("CERTIFICATE"),
    }
}

fn check(object: &impl Serialize, expected: &ExpectFile) {
    expected.assert_eq(&serde_yaml_ng::to_string(object).unwrap());
}

#[test]
fn services_point_where_the_role_label_is() {
    let Services {
        headless,
        primary,
        replica,
    } = services(&shop());
    check(&headless, &expect_file!["golden/service-headless.yaml"]);
    check(&primary, &expect_file!["golden/service-primary.yaml"]);
    check(&replica, &expect_file!["golden/service-replica.yaml"]);
}

#[test]
fn the_configuration_says_where_each_line_comes_from() {
    check(
        &config_map(&shop()),
        &expect_file!["golden/config-map.yaml"],
    );
}

#[test]
fn secrets_carry_what_they_are_given() {
    let app = AppCredentials {
        user: "shop".into(),
        password: "s3cr+t".into(),
        database: "shop".into(),
    };
    check(
        &ca_secret(&shop(), &pair()),
        &expect_file!["golden/secret-ca.yaml"],
    );
    check(
        &tls_secret(&shop(), 0, &pair()),
        &expect_file!["golden/secret-tls-0.yaml"],
    );
    check(
        &app_secret(&shop(), &app),
        &expect_file!["golden/secret-app.yaml"],
    );
}

#[test]
fn an_instance_is_a_claim_and_a_pod() {
    let place = InstancePlace {
        ordinal: 0,
        generation: 2,
    };
    check(
        &volume_claim(&shop(), place),
        &expect_file!["golden/volume-claim.yaml"],
    );
    check(
        &pod(&shop(), place, IMAGE),
        &expect_file!["golden/pod.yaml"],
    );
}

#[test]
fn one_instance_may_be_evicted_at_a_time_but_a_single_one_is_not_guarded() {
    check(
        &disruption_budget(&shop()),
        &expect_file!["golden/disruption-budget.yaml"],
    );
    let mut single = example();
    single.spec.replicas = 1;
    assert_eq!(disruption_budget(&validate(&single).unwrap()), None);
}

#[test]
fn the_operator_is_installed_by_these_files() {
    for InstallFile { name, documents } in install(IMAGE).unwrap() {
        let texts: Vec<String> = documents
            .iter()
            .map(|document| serde_yaml_ng::to_string(document).unwrap())
            .collect();
        let text = texts.join("---\n");
        match name {
            // Compared by the tests of the api crate, and too long to read.
            "00-crd.yaml" => assert!(text.contains("kind: CustomResourceDefinition")),
            "10-namespace.yaml" => {
                expect_file!["golden/install-namespace.yaml"].assert_eq(&text);
            }
            "20-rights.yaml" => expect_file!["golden/install-rights.yaml"].assert_eq(&text),
            "30-operator.yaml" => expect_file!["golden/install-operator.yaml"].assert_eq(&text),
            other => panic!("no picture of {other}"),
        }
    }
}
