//! Services. Where they point is decided by the role label alone. Never owns a
//! nodePort, a clusterIP or anything else that Kubernetes or a load balancer
//! fills in.

use crate::labels::{self, Component, Labels};
use crate::validate::ValidatedCluster;
use crate::{names, owner};
use api::{ServiceTemplate, ServiceType};
use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use wire::layout;

/// Name of the port of MySQL in Pods and Services.
pub(crate) const PORT_MYSQL: &str = "mysql";
/// Name of the port of the agent.
pub(crate) const PORT_AGENT: &str = "agent";
/// Name of the port of probes and metrics.
pub(crate) const PORT_PROBES: &str = "probes";

/// The Services of a cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Services {
    /// Names of the instances, ready or not.
    pub headless: Service,
    /// The primary.
    pub primary: Service,
    /// The replicas.
    pub replica: Service,
}

/// Every Service of the cluster.
pub fn services(cluster: &ValidatedCluster) -> Services {
    Services {
        headless: headless(cluster),
        primary: routed(
            cluster,
            names::primary_service(&cluster.name),
            &cluster.primary_service,
            Routed {
                role: labels::ROLE_PRIMARY,
                // The label is put on by whoever verified the primary; waiting
                // for a probe as well would only lengthen a failover.
                publish_not_ready_addresses: Some(true),
            },
        ),
        replica: routed(
            cluster,
            names::replica_service(&cluster.name),
            &cluster.replica_service,
            Routed {
                role: labels::ROLE_REPLICA,
                publish_not_ready_addresses: None,
            },
        ),
    }
}

fn headless(cluster: &ValidatedCluster) -> Service {
    let labels = labels::own(cluster, Component::Routing);
    Service {
        metadata: owner::owned(cluster, names::headless(&cluster.name), labels),
        spec: Some(ServiceSpec {
            cluster_ip: Some("None".to_owned()),
            ports: Some(vec![
                port(PORT_MYSQL, layout::MYSQL_PORT),
                port(PORT_AGENT, layout::AGENT_PORT),
            ]),
            publish_not_ready_addresses: Some(true),
            selector: Some(labels::instances(cluster)),
            ..ServiceSpec::default()
        }),
        status: None,
    }
}

#[derive(Clone, Copy)]
struct Routed {
    role: &'static str,
    publish_not_ready_addresses: Option<bool>,
}

fn routed(
    cluster: &ValidatedCluster,
    name: String,
    added: &ServiceTemplate,
    to: Routed,
) -> Service {
    let ServiceTemplate {
        service_type,
        annotations,
        labels,
    } = added;
    let labels = labels::with(labels, labels::own(cluster, Component::Routing));
    let mut metadata = owner::owned(cluster, name, labels);
    metadata.annotations = some(annotations);
    Service {
        metadata,
        spec: Some(ServiceSpec {
            type_: Some(type_name(*service_type).to_owned()),
            ports: Some(vec![port(PORT_MYSQL, layout::MYSQL_PORT)]),
            publish_not_ready_addresses: to.publish_not_ready_addresses,
            selector: Some(labels::in_role(cluster, to.role)),
            ..ServiceSpec::default()
        }),
        status: None,
    }
}

const fn type_name(service_type: ServiceType) -> &'static str {
    match service_type {
        ServiceType::ClusterIP => "ClusterIP",
        ServiceType::NodePort => "NodePort",
        ServiceType::LoadBalancer => "LoadBalancer",
    }
}

fn some(map: &Labels) -> Option<Labels> {
    (!map.is_empty()).then(|| map.clone())
}

fn port(name: &str, number: u16) -> ServicePort {
    ServicePort {
        name: Some(name.to_owned()),
        port: i32::from(number),
        protocol: Some("TCP".to_owned()),
        target_port: Some(IntOrString::String(name.to_owned())),
        ..ServicePort::default()
    }
}
