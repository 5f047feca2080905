//! One agent process with its directories and ports. Kills what it started,
//! and nothing else.

use std::{
    fs,
    net::TcpListener,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use http_body_util::{BodyExt, Full};
use hyper::{
    Request,
    body::{Bytes, Incoming},
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use mysql_async::{Conn, OptsBuilder};
use nix::{
    sys::signal::{Signal, kill, killpg},
    unistd::Pid,
};
use rustls::ClientConfig;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use wire::{AgentState, Frame, Order, Reply, layout};

use super::{CLUSTER_UID, PATIENCE, pki::Authority};

pub struct Instance {
    pub ordinal: usize,
    pub name: String,
    pub directory: PathBuf,
    pub mysql_port: u16,
    pub agent_port: u16,
    pub probe_port: u16,
    pub acknowledge: &'static str,
    /// A user id without an entry in passwd, for the agent and mysqld.
    pub uid: Option<u32>,
    pub process: Option<Child>,
    groups: Vec<Pid>,
    operator: Arc<ClientConfig>,
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
}

/// Who runs it.
#[derive(Clone, Copy)]
enum User {
    Root,
    Other,
}

/// The root file system where every user can read it: as it is, or as a tree of
/// links below the instance, for a cache is often its owner's alone.
fn within_reach(root: &Path, beside: &Path) -> PathBuf {
    let is_open = |path: &Path| {
        let mode = fs::metadata(path).unwrap().permissions().mode();
        mode & 0o001 != 0
    };
    if root.ancestors().all(is_open) {
        return root.to_owned();
    }
    let linked = beside.join("mysql");
    if linked.exists() {
        return linked;
    }
    for how in ["-al", "-a"] {
        // Links need the same file system; a copy does not.
        let copied = Command::new("cp").arg(how).arg(root).arg(&linked).output();
        if copied.unwrap().status.success() {
            return linked;
        }
        fs::remove_dir_all(&linked).unwrap();
    }
    panic!("{} was not copied to {}", root.display(), linked.display());
}

/// A program that starts mysqld out of the root file system it was installed in.
fn mysqld(directory: &Path, user: User) -> PathBuf {
    let root = std::env::var("KATAZUKE_MYSQL_ROOT").expect(
        "KATAZUKE_MYSQL_ROOT must name a root file system with mysqld in it; `cargo xtask test --tier mysqld` sets it",
    );
    let root = Path::new(&root);
    assert!(
        root.join("usr/sbin/mysqld").exists(),
        "no usr/sbin/mysqld in {}",
        root.display()
    );
    let root = match user {
        User::Root => root.to_owned(),
        User::Other => within_reach(root, directory.parent().unwrap()),
    };
    let program = directory.join("mysqld");
    let root = root.display();
    let script = format!(
        "#!/bin/sh\nexec {root}/lib64/ld-linux-x86-64.so.2 --library-path \
         {root}/usr/lib/x86_64-linux-gnu:{root}/usr/lib/mysql/private {root}/usr/sbin/mysqld \"$@\" \
         --lc-messages-dir={root}/usr/share/mysql --character-sets-dir={root}/usr/share/mysql/charsets \
         --plugin-dir={root}/usr/lib/mysql/plugin\n"
    );
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    program
}

fn give_away(path: &Path, uid: u32) {
    std::os::unix::fs::chown(path, Some(uid), Some(uid)).unwrap();
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            give_away(&entry.unwrap().path(), uid);
        }
    }
}

impl Instance {
    pub fn new(parent: &Path, authority: &Authority, ordinal: usize) -> Self {
        let name = format!("shop-{ordinal}");
        let directory = parent.join(&name);
        for part in ["volume", "run", "app", "config", "tmp"] {
            fs::create_dir_all(directory.join(part)).unwrap();
        }
        authority.mount(&directory.join("tls"), &name);
        for (file, text) in [
            ("user", "app"),
            ("password", "app's own\\"),
            ("database", "shop"),
        ] {
            fs::write(directory.join("app").join(file), text).unwrap();
        }
        let settings = "[mysqld]\nbind-address=127.0.0.1\nskip_name_resolve=ON\n\
                        replication_optimize_for_static_plugin_config=ON\nreplica_net_timeout=5\n\
                        innodb_buffer_pool_size=64M\ninnodb_redo_log_capacity=32M\nmax_connections=100\n";
        fs::write(directory.join("config").join(layout::MY_CNF_FILE), settings).unwrap();
        Self {
            ordinal,
            name,
            directory,
            mysql_port: free_port(),
            agent_port: free_port(),
            probe_port: free_port(),
            acknowledge: "Received",
            uid: None,
            process: None,
            groups: Vec::new(),
            operator: authority.client(layout::OPERATOR_COMMON_NAME),
        }
    }

    pub fn path(&self, part: &str) -> PathBuf {
        self.directory.join(part)
    }

    pub fn append_to_my_cnf(&self, line: &str) {
        let path = self.path("config").join(layout::MY_CNF_FILE);
        let text = fs::read_to_string(&path).unwrap();
        fs::write(path, format!("{text}{line}\n")).unwrap();
    }

    /// Starts the agent, in a process group of its own.
    pub fn start(&mut self) {
        let log = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.path("log"))
            .unwrap();
        let program = env!("CARGO_BIN_EXE_katazuke-agent");
        let user = self.uid.map_or(User::Root, |_| User::Other);
        let mysqld = mysqld(&self.directory, user);
        let mut command = match self.uid {
            None => Command::new(program),
            Some(uid) => {
                give_away(&self.directory, uid);
                let mut command = Command::new("setpriv");
                command
                    .args([format!("--reuid={uid}"), format!("--regid={uid}")])
                    .args([
                        "--clear-groups",
                        "--no-new-privs",
                        "--bounding-set=-all",
                        program,
                    ]);
                command
            }
        };
        command
            .args([
                "run",
                "--instance",
                &self.name,
                "--cluster-uid",
                CLUSTER_UID,
            ])
            .args([
                "--server-id",
                &(100 + self.ordinal).to_string(),
                "--advertise",
                "127.0.0.1",
            ])
            .args(["--acknowledge", self.acknowledge, "--bind", "127.0.0.1"])
            .arg("--datadir")
            .arg(self.path("volume/data"))
            .arg("--agent-dir")
            .arg(self.path("volume/katazuke"))
            .arg("--run-dir")
            .arg(self.path("run"))
            .arg("--config-dir")
            .arg(self.path("config"))
            .arg("--tls-dir")
            .arg(self.path("tls"))
            .arg("--app-dir")
            .arg(self.path("app"))
            .arg("--tmp-dir")
            .arg(self.path("tmp"))
            .args(["--mysql-port", &self.mysql_port.to_string()])
            .args(["--agent-port", &self.agent_port.to_string()])
            .args(["--probe-port", &self.probe_port.to_string()])
            .arg("--mysqld")
            .arg(mysqld)
            .stdin(Stdio::null())
            .stderr(log.try_clone().unwrap())
            .stdout(log)
            .process_group(0);
        let process = command.spawn().unwrap();
        self.groups
            .push(Pid::from_raw(process.id().try_into().unwrap()));
        self.process = Some(process);
    }

    /// SIGKILL to the agent alone; mysqld becomes an orphan.
    pub fn kill_agent(&mut self) {
        let mut process = self.process.take().unwrap();
        process.kill().unwrap();
        process.wait().unwrap();
    }

    pub fn signal_agent(&self, signal: Signal) {
        let pid = self.process.as_ref().unwrap().id();
        kill(Pid::from_raw(pid.try_into().unwrap()), signal).unwrap();
    }

    pub async fn agent_exits(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.process.as_mut().unwrap().try_wait().unwrap() {
                self.process = None;
                return status;
            }
            assert!(
                Instant::now() < deadline,
                "the agent of {} does not exit",
                self.name
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub fn mysqld_pid(&self) -> Pid {
        let pid = fs::read_to_string(self.path("run/mysqld.pid")).unwrap();
        Pid::from_raw(pid.trim().parse().unwrap())
    }

    pub fn signal_mysqld(&self, signal: Signal) {
        kill(self.mysqld_pid(), signal).unwrap();
    }

    async fn request(
        &self,
        client: &Arc<ClientConfig>,
        request: Request<Full<Bytes>>,
    ) -> Result<Incoming, String> {
        let text =
            |error: &dyn std::error::Error| format!("{}: {error} {:?}", self.name, error.source());
        let stream = TcpStream::connect(("127.0.0.1", self.agent_port))
            .await
            .map_err(|e| text(&e))?;
        let name = self.name.clone().try_into().unwrap();
        let connector = TlsConnector::from(Arc::clone(client));
        let stream = connector
            .connect(name, stream)
            .await
            .map_err(|e| text(&e))?;
        let (mut sender, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
                .await
                .map_err(|e| text(&e))?;
        tokio::spawn(connection);
        let response = sender.send_request(request).await.map_err(|e| text(&e))?;
        Ok(response.into_body())
    }

    pub async fn try_order_as(
        &self,
        client: &Arc<ClientConfig>,
        order: &Order,
    ) -> Result<Reply, String> {
        let body = Full::new(Bytes::from(serde_json::to_vec(order).unwrap()));
        let uri = format!("https://{}{}", self.name, wire::PATH_ORDER);
        let body = self
            .request(client, Request::post(uri).body(body).unwrap())
            .await?;
        let bytes = body
            .collect()
            .await
            .map_err(|error| error.to_string())?
            .to_bytes();
        serde_json::from_slice(&bytes).map_err(|error| error.to_string())
    }

    pub async fn order(&self, order: &Order) -> Reply {
        self.try_order_as(&self.operator, order).await.unwrap()
    }

    pub async fn watch(&self) -> Result<Watch, String> {
        let uri = format!("https://{}{}", self.name, wire::PATH_WATCH);
        let body = self
            .request(
                &self.operator,
                Request::get(uri).body(Full::default()).unwrap(),
            )
            .await?;
        Ok(Watch {
            body,
            buffer: Vec::new(),
        })
    }

    pub async fn frame(&self) -> Result<Frame, String> {
        self.watch().await?.next().await
    }

    /// The agent may have been started this moment.
    pub async fn state(&self) -> AgentState {
        self.until("answer", |_| true).await
    }

    pub async fn until(&self, what: &str, wanted: impl Fn(&AgentState) -> bool) -> AgentState {
        let deadline = Instant::now() + PATIENCE;
        let mut last = Err("not asked yet".to_owned());
        while Instant::now() < deadline {
            match self.frame().await {
                Ok(frame) => {
                    let state = *frame.state.expect("full state first");
                    if wanted(&state) {
                        return state;
                    }
                    last = Ok(state);
                }
                Err(error) => last = Err(error),
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!(
            "{}: no {what} within {PATIENCE:?}; last seen {last:#?}\nlog: {}",
            self.name,
            self.log_tail()
        );
    }

    pub fn log_tail(&self) -> String {
        let log = fs::read_to_string(self.path("log")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(30)..].join("\n")
    }

    /// A client, as the application.
    pub async fn client(&self) -> Result<Conn, mysql_async::Error> {
        let options = OptsBuilder::default()
            .socket(Some(self.path("run/mysqld.sock").to_string_lossy()))
            .user(Some("app"))
            .pass(Some("app's own\\"))
            .db_name(Some("shop"))
            .prefer_socket(false);
        Conn::new(options).await
    }

    /// Status code of a probe.
    pub async fn probe(&self, path: &str) -> (u16, String) {
        let stream = TcpStream::connect(("127.0.0.1", self.probe_port))
            .await
            .unwrap();
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .unwrap();
        tokio::spawn(connection);
        let request = Request::get(path)
            .header("host", "probe")
            .body(Full::<Bytes>::default())
            .unwrap();
        let response = sender.send_request(request).await.unwrap();
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8_lossy(&body).into_owned())
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        for group in &self.groups {
            // mysqld is in its agent's group; a group that is gone is fine.
            let _gone = killpg(*group, Signal::SIGKILL);
        }
        if let Some(mut process) = self.process.take() {
            let _reaped = process.wait();
        }
        if std::thread::panicking() {
            eprintln!("--- {}\n{}", self.name, self.log_tail());
        }
    }
}

/// The lines of a watch stream.
pub struct Watch {
    body: Incoming,
    buffer: Vec<u8>,
}

impl Watch {
    pub async fn next(&mut self) -> Result<Frame, String> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return serde_json::from_slice(&line).map_err(|error| error.to_string());
            }
            match tokio::time::timeout(Duration::from_secs(5), self.body.frame()).await {
                Ok(Some(Ok(frame))) => {
                    if let Some(data) = frame.data_ref() {
                        self.buffer.extend_from_slice(data);
                    }
                }
                Ok(Some(Err(error))) => return Err(error.to_string()),
                Ok(None) => return Err("the stream ended".to_owned()),
                Err(_) => return Err("no frame for 5 s".to_owned()),
            }
        }
    }
}
