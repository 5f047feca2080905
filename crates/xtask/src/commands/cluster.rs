//! `cargo xtask cluster …`

use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum};
use xtask::cluster::{self, Cluster, ClusterError, Existing, Options};
use xtask::host::Progress;
use xtask::image::{ImageError, load_katazuke};

use super::Done;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Bring it up; one that is up already is kept.
    Up {
        /// How many nodes.
        #[arg(long, default_value_t = 3)]
        nodes: u8,
        /// Take a running one down first.
        #[arg(long)]
        fresh: bool,
    },
    /// Take it down and leave nothing behind.
    Down,
    /// Nodes, the address of the API server, the kubeconfig.
    Status,
    /// Break a node, or undo it.
    Node {
        /// Such as kz-1.
        name: String,
        /// What to do to it.
        fault: NodeFault,
    },
    /// Kill the API server, or start it again.
    ApiServer {
        /// What to do to it.
        fault: ApiServerFault,
    },
    /// Run kubectl on it.
    #[command(trailing_var_arg = true)]
    Kubectl {
        /// Arguments of kubectl.
        #[arg(allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Run a program of this machine where Services and Pods are reachable.
    #[command(trailing_var_arg = true)]
    Client {
        /// The program and its arguments.
        #[arg(required = true, allow_hyphen_values = true)]
        command: Vec<String>,
    },
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum NodeFault {
    /// Everything on it dies; undone by start.
    Crash,
    /// A crash that loses what was not synced; undone by start.
    PowerLoss,
    /// Boot it again.
    Start,
    /// All its processes stop; undone by thaw.
    Freeze,
    /// They go on.
    Thaw,
    /// It reaches nobody; undone by heal.
    Partition,
    /// It is reachable again.
    Heal,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ApiServerFault {
    /// SIGKILL; undone by start.
    Kill,
    /// Start it and wait until it answers.
    Start,
}

pub(crate) fn run(arguments: &Arguments) -> Done {
    match &arguments.action {
        Action::Up { nodes, fresh } => up(
            *nodes,
            if *fresh {
                Existing::Replace
            } else {
                Existing::Keep
            },
        ),
        Action::Down => done(cluster::down()),
        Action::Status => status(),
        Action::Node { name, fault } => done(break_node(name, *fault)),
        Action::ApiServer { fault } => done(break_api_server(*fault)),
        Action::Kubectl { arguments } => {
            become_child(Cluster::attach()?.kubectl_command().args(arguments))
        }
        Action::Client { command } => {
            become_child(Cluster::attach()?.on_client_host().args(command))
        }
    }
}

fn done(result: Result<(), ClusterError>) -> Done {
    result?;
    Ok(ExitCode::SUCCESS)
}

fn up(nodes: u8, existing: Existing) -> Done {
    let progress = Progress::shown();
    let cluster = cluster::up(&Options {
        nodes,
        existing,
        progress,
    })?;
    match load_katazuke(&cluster) {
        Ok(()) => progress.step("katazuke image loaded"),
        // A cluster is of use before the product compiles.
        Err(error @ ImageError::NoBinary { .. }) => {
            progress.step(&format!("no katazuke image yet: {error}"));
        }
        Err(error) => return Err(error.into()),
    }
    eprintln!("export KUBECONFIG={}", cluster.kubeconfig().display());
    Ok(ExitCode::SUCCESS)
}

fn status() -> Done {
    let cluster = Cluster::attach()?;
    println!("API server  {}", cluster.api_url());
    println!("kubeconfig  {}", cluster.kubeconfig().display());
    println!("logs        {}", cluster.logs().display());
    let statuses = cluster.node_statuses()?;
    for node in cluster.nodes() {
        let ready = statuses
            .iter()
            .find(|(name, _)| *name == node.name())
            .map_or("none", |(_, ready)| ready);
        let running = if node.is_running() { "running" } else { "down" };
        println!(
            "{:<11} {} {running}, Ready={ready}",
            node.name(),
            node.address()
        );
    }
    Ok(ExitCode::SUCCESS)
}

fn break_node(name: &str, fault: NodeFault) -> Result<(), ClusterError> {
    let node = Cluster::attach()?.node(name)?;
    match fault {
        NodeFault::Crash => node.crash(),
        NodeFault::PowerLoss => node.power_loss(),
        NodeFault::Start => node.start(),
        NodeFault::Freeze => node.freeze(),
        NodeFault::Thaw => node.thaw(),
        NodeFault::Partition => node.partition(),
        NodeFault::Heal => node.heal(),
    }
}

fn break_api_server(fault: ApiServerFault) -> Result<(), ClusterError> {
    let cluster = Cluster::attach()?;
    match fault {
        ApiServerFault::Kill => cluster.api_server_kill(),
        ApiServerFault::Start => cluster.api_server_start(),
    }
}

/// Runs a program with our own input and output and ends as it ends.
fn become_child(command: &mut std::process::Command) -> Done {
    let status = command.status()?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}
