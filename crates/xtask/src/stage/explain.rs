//! What there is to say about a cluster when something did not happen: the
//! reader of a failed run has nothing else.

use k8s_openapi::api::core::v1::{Event, Pod};
use kube::api::ListParams;

use super::{Name, Stage};

const EVENTS_SHOWN: usize = 20;

impl Stage {
    /// Situation, why, conditions, instances, Pods, events, and where logs are.
    /// What cannot be read is left out and said so: it must not hide the rest.
    pub fn explain(&self, name: &Name) -> String {
        let mut lines = self.resource_lines(name);
        match self.pods(name) {
            Ok(pods) => lines.extend(pods.iter().map(pod_line)),
            Err(error) => lines.push(error.to_string()),
        }
        lines.extend(self.event_lines(&name.namespace));
        lines.push(format!(
            "logs of the cluster: {}",
            self.cluster.logs().display()
        ));
        for node in self.cluster.nodes() {
            lines.push(format!("logs of Pods: {}", node.pod_logs().display()));
        }
        lines
            .iter()
            .map(|line| format!("    {line}"))
            .collect::<Vec<_>>()
            .join("\n")
    }

    fn resource_lines(&self, name: &Name) -> Vec<String> {
        let picture = match self.look(name) {
            Ok(Some(picture)) => picture,
            Ok(None) => return vec![format!("MySQLCluster {name} does not exist")],
            Err(error) => return vec![error.to_string()],
        };
        let mut lines = vec![format!("MySQLCluster {name}: {}", picture.sentence())];
        let status = picture.resource.status.unwrap_or_default();
        for condition in status.conditions {
            lines.push(format!(
                "  {}={} {}: {}",
                condition.type_, condition.status, condition.reason, condition.message
            ));
        }
        for instance in status.instances {
            let message = instance.message.unwrap_or_default();
            lines.push(format!(
                "  {} {}: {message}",
                instance.name, instance.situation
            ));
        }
        lines
    }

    fn event_lines(&self, namespace: &str) -> Vec<String> {
        let events = self.api::<Event>(namespace);
        let list = self.ask("list events", async {
            events.list(&ListParams::default()).await
        });
        let mut events = match list {
            Ok(list) => list.items,
            Err(error) => return vec![error.to_string()],
        };
        events.sort_by_key(|event| {
            let micros = event.event_time.as_ref().map(|time| time.0);
            let seconds = event.last_timestamp.as_ref().map(|time| time.0);
            seconds.max(micros)
        });
        let recent = events.into_iter().rev().take(EVENTS_SHOWN).map(|event| {
            let about = event.involved_object.name.unwrap_or_default();
            let (reason, message) = (
                event.reason.unwrap_or_default(),
                event.message.unwrap_or_default(),
            );
            format!("  event {about} {reason}: {message}")
        });
        let mut lines: Vec<String> = recent.collect();
        lines.reverse();
        lines
    }
}

fn pod_line(pod: &Pod) -> String {
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let node = pod
        .spec
        .as_ref()
        .and_then(|spec| spec.node_name.as_deref())
        .unwrap_or("no node");
    let status = pod.status.as_ref();
    let phase = status
        .and_then(|status| status.phase.as_deref())
        .unwrap_or_default();
    let containers = status.into_iter().flat_map(|status| {
        let init = status.init_container_statuses.iter().flatten();
        init.chain(status.container_statuses.iter().flatten())
    });
    let told = containers.map(|container| {
        let state = container.state.as_ref();
        let waiting = state.and_then(|state| state.waiting.as_ref());
        let why = waiting.map_or(String::new(), |waiting| {
            let message = waiting.message.as_deref().unwrap_or_default();
            format!(
                " {} {message}",
                waiting.reason.as_deref().unwrap_or_default()
            )
        });
        format!(
            "{} restarts={}{why}",
            container.name, container.restart_count
        )
    });
    format!(
        "Pod {name} on {node}: {phase} ({})",
        told.collect::<Vec<_>>().join(", ")
    )
}
