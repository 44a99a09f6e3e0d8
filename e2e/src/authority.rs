//! One authority as its operator runs it: keys, configuration, process.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use fastpay_client::{AuthorityClient, AuthorityEndpoints, ClientOptions};
use fastpay_core::{Authority as Member, AuthorityKeys};
use fastpay_testkit::Ports;

use crate::failure::{Failure, wait_for};
use crate::http::http_get;
use crate::namespace::Namespace;
use crate::network::Primary;
use crate::place::{Place, program};
use crate::process::{Finished, Program, run};

// No start takes this long, however busy the machine is.
const READY_PATIENCE: Duration = Duration::from_secs(300);
const STOP_PATIENCE: Duration = Duration::from_secs(120);

/// The network namespace of one authority.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The authority's address in the namespace, as text.
    pub host: String,
    /// The namespace.
    pub namespace: Arc<Namespace>,
}

/// An authority, running or not.
#[derive(Debug)]
pub struct Authority {
    name: String,
    member: Member,
    config: PathBuf,
    keys: PathBuf,
    log: PathBuf,
    endpoints: Option<AuthorityEndpoints>,
    program: Option<Program>,
    /// The core to which the process is bound, if any.
    core: Option<usize>,
    /// The address on which the process listens.
    host: String,
    /// The network namespace of its commands and its process, if it has its own.
    inside: Option<Arc<Namespace>>,
    /// The program to run instead of this workspace's, if any.
    node: Option<&'static Path>,
    /// Environment variables of the process.
    variables: Vec<(String, String)>,
}

impl Authority {
    /// Creates the keys of authority `number`.
    ///
    /// # Errors
    /// If the command fails.
    pub fn with_new_keys(place: &Place, number: usize, node: Option<&'static Path>) -> Result<Self, Failure> {
        let name = format!("authority-{number}");
        let keys = place.path(&name).join("keys");
        let member = keygen(node_program(node)?, &keys)?;
        let config = place.path(&name).join("authority.toml");
        let log = place.log(&name);
        let (host, inside, variables) = ("127.0.0.1".to_owned(), None, Vec::new());
        let (endpoints, program, core) = (None, None, None);
        Ok(Self { name, member, config, keys, log, endpoints, program, core, host, inside, node, variables })
    }

    /// Makes the authority run in a namespace and listen on its address there, from [`Authority::init`] on.
    pub fn move_into(&mut self, cell: Cell) {
        (self.host, self.inside) = (cell.host, Some(cell.namespace));
    }

    fn node(&self, prepare: impl FnOnce(&mut Command)) -> Result<Command, Failure> {
        let mut command = Command::new(node_program(self.node)?);
        prepare(&mut command);
        Ok(match &self.inside {
            None => command,
            Some(namespace) => namespace.inside(&command),
        })
    }

    /// Writes the configuration and creates the data folder.
    ///
    /// # Errors
    /// If the command fails.
    pub fn init(&mut self, ports: &mut Ports, shards: u16, primary: &Primary) -> Result<(), Failure> {
        let (listen, http) = (ports.next(shards)?, ports.next(1)?);
        let mut command = self.node(|command| {
            command.arg("init").arg("--config").arg(&self.config).arg("--keys").arg(&self.keys);
            command.arg("--data").arg(self.data()).args(["--shards", &shards.to_string()]);
            let at = |port| format!("{}:{port}", self.host);
            command.args(["--listen", &at(listen), "--http", &at(http)]);
            match primary {
                Primary::Contract { rpc_url, chain_id, contract } => {
                    command.args(["--rpc-url", rpc_url, "--chain-id", &chain_id.to_string()]);
                    command.args(["--contract", &contract.to_string()]);
                }
                Primary::Genesis(path) => {
                    command.arg("--genesis").arg(path);
                }
            }
        })?;
        let made = run(&mut command)?.success()?;
        self.endpoints = Some(serde_json::from_str(&made.out).map_err(Failure::wrong)?);
        Ok(())
    }

    /// Creates keys for the next epoch beside the present ones, for use from the next start on. Returns their public
    /// part.
    ///
    /// # Errors
    /// If the command fails, or the configuration cannot be written.
    pub fn add_keys(&mut self, folder: &str) -> Result<Member, Failure> {
        let keys = self.config.with_file_name(folder);
        let member = keygen(node_program(self.node)?, &keys)?;
        let pair = |name: &str| keys.join(name).with_extension("key").display().to_string();
        let files = format!("\n[[keys]]\nvoting = {:?}\nredemption = {:?}\n", pair("voting"), pair("redemption"));
        let io = |error| Failure::Io { path: self.config.clone(), error };
        let text = std::fs::read_to_string(&self.config).map_err(io)?;
        std::fs::write(&self.config, text + &files).map_err(io)?;
        Ok(member)
    }

    /// Removes the first keys from the configuration and deletes their folder.
    ///
    /// # Errors
    /// If the configuration has no other keys, or cannot be written.
    pub fn drop_first_keys(&mut self) -> Result<(), Failure> {
        let io = |error| Failure::Io { path: self.config.clone(), error };
        let text = std::fs::read_to_string(&self.config).map_err(io)?;
        let mut table: toml::Table = text.parse().map_err(Failure::wrong)?;
        match table.get_mut("keys").and_then(toml::Value::as_array_mut) {
            Some(pairs) if pairs.len() > 1 => drop(pairs.remove(0)),
            _ => return Err(Failure::Wrong(format!("{} has no other keys", self.name))),
        }
        std::fs::write(&self.config, table.to_string()).map_err(io)?;
        std::fs::remove_dir_all(&self.keys).map_err(|error| Failure::Io { path: self.keys.clone(), error })
    }

    /// Configures the other authorities' endpoints, from the next start on.
    ///
    /// # Errors
    /// If the configuration cannot be written.
    pub fn set_endpoints(&self, file: &Path) -> Result<(), Failure> {
        let io = |error| Failure::Io { path: self.config.clone(), error };
        let text = std::fs::read_to_string(&self.config).map_err(io)?;
        std::fs::write(&self.config, format!("endpoints = {:?}\n{text}", file.display().to_string())).map_err(io)
    }

    /// Makes the node run before a committee lists its keys.
    ///
    /// # Errors
    /// If the configuration cannot be written.
    pub fn set_observer(&self) -> Result<(), Failure> {
        let io = |error| Failure::Io { path: self.config.clone(), error };
        let text = std::fs::read_to_string(&self.config).map_err(io)?;
        std::fs::write(&self.config, format!("observer = true\n{text}")).map_err(io)
    }

    /// Configures limits for clients, as lines of TOML, from the next start on.
    ///
    /// # Errors
    /// If the configuration cannot be written.
    pub fn set_limits(&self, lines: &str) -> Result<(), Failure> {
        let io = |error| Failure::Io { path: self.config.clone(), error };
        let text = std::fs::read_to_string(&self.config).map_err(io)?;
        std::fs::write(&self.config, format!("{text}\n[limits]\n{lines}\n")).map_err(io)
    }

    /// Configures an archive of certified checkpoints, from the next start on.
    ///
    /// # Errors
    /// If the configuration cannot be written.
    pub fn set_archive(&self, every_seconds: u64) -> Result<(), Failure> {
        self.set_archive_with(every_seconds, "")
    }

    /// The same with more settings of the archive, as lines of TOML.
    ///
    /// # Errors
    /// If the configuration cannot be written.
    pub fn set_archive_with(&self, every_seconds: u64, lines: &str) -> Result<(), Failure> {
        let io = |error| Failure::Io { path: self.config.clone(), error };
        let text = std::fs::read_to_string(&self.config).map_err(io)?;
        let archive = format!("[archive]\nfolder = \"archive\"\nevery_seconds = {every_seconds}\n{lines}\n");
        std::fs::write(&self.config, format!("{text}\n{archive}")).map_err(io)
    }

    /// Sets an environment variable of the process, from the next start on.
    pub fn set_variable(&mut self, name: &str, value: &str) {
        self.variables.push((name.to_owned(), value.to_owned()));
    }

    /// Configures fewer shards, on the first ports of before, from the next start on.
    pub(crate) fn set_shards(&mut self, shards: u16) -> Result<(), Failure> {
        let io = |error| Failure::Io { path: self.config.clone(), error };
        let text = std::fs::read_to_string(&self.config).map_err(io)?;
        let mut table: toml::Table = text.parse().map_err(Failure::wrong)?;
        table.insert("shards".into(), i64::from(shards).into());
        std::fs::write(&self.config, table.to_string()).map_err(io)?;
        self.endpoints.iter_mut().for_each(|endpoints| endpoints.shards.truncate(shards.into()));
        Ok(())
    }

    /// The path of the archive.
    #[must_use]
    pub fn archive(&self) -> PathBuf {
        self.config.with_file_name("archive")
    }

    /// Configures these Ethereum nodes, from the next start on.
    ///
    /// # Errors
    /// If the authority has no Primary, or the configuration cannot be written.
    pub fn set_rpc_urls(&self, urls: &[&str]) -> Result<(), Failure> {
        let io = |error| Failure::Io { path: self.config.clone(), error };
        let text = std::fs::read_to_string(&self.config).map_err(io)?;
        let mut table: toml::Table = text.parse().map_err(Failure::wrong)?;
        let primary = table.get_mut("primary").and_then(toml::Value::as_table_mut);
        let primary = primary.ok_or_else(|| Failure::Wrong(format!("{} has no Primary", self.name)))?;
        primary.insert("rpc_urls".into(), urls.iter().map(ToString::to_string).collect::<Vec<_>>().into());
        std::fs::write(&self.config, table.to_string()).map_err(io)
    }

    /// Copies the data folder as operators do.
    ///
    /// # Errors
    /// If that fails.
    pub fn back_up(&self, to: &Path) -> Result<(), Failure> {
        copy(&self.data(), to)
    }

    /// Replaces the data folder with a copy. The process must not run.
    ///
    /// # Errors
    /// If that fails.
    pub fn restore(&self, from: &Path) -> Result<(), Failure> {
        std::fs::remove_dir_all(self.data()).map_err(|error| Failure::Io { path: self.data(), error })?;
        copy(from, &self.data())
    }

    /// Runs a command of `fastpay-node` that takes nothing but the configuration.
    ///
    /// # Errors
    /// If the command cannot be started.
    pub fn operate(&self, command: &str) -> Result<Finished, Failure> {
        run(Command::new(node_program(self.node)?).arg(command).arg("--config").arg(&self.config))
    }

    /// Starts a command of `fastpay-node` with these arguments and the configuration, without waiting for it.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start_operating(&self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Result<Program, Failure> {
        let mut command = Command::new(node_program(self.node)?);
        command.args(arguments).arg("--config").arg(&self.config);
        Program::start(&format!("{}'s operator", self.name), &mut command, &self.log)
    }

    /// Runs a command of `fastpay-node` with these arguments and the configuration.
    ///
    /// # Errors
    /// If the command cannot be started.
    pub fn operate_with(&self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Result<Finished, Failure> {
        run(Command::new(node_program(self.node)?).args(arguments).arg("--config").arg(&self.config))
    }

    /// Proves possession of the keys in a folder that [`Authority::add_keys`] made, or of its first keys if there is no such
    /// folder, and writes the proof to `out`.
    ///
    /// # Errors
    /// If the command cannot be run.
    pub fn prove(&self, folder: &str, out: &Path) -> Result<Finished, Failure> {
        let keys = self.config.with_file_name(folder);
        let mut command = self.committee_command("prove")?;
        command.arg("--keys").arg(if keys.exists() { &keys } else { &self.keys }).arg("--out").arg(out);
        run(&mut command)
    }

    /// Signs (`sign`) or accepts (`accept`) an announcement, and writes the result to the file `out`.
    ///
    /// # Errors
    /// If the command cannot be run.
    pub fn vote(&self, what: &str, announcement: &Path, proofs: &[PathBuf], out: &Path) -> Result<Finished, Failure> {
        let mut command = self.committee_command(what)?;
        command.arg("--announcement").arg(announcement).arg("--out").arg(out);
        for proof in proofs {
            command.arg("--proof").arg(proof);
        }
        run(&mut command)
    }

    fn committee_command(&self, what: &str) -> Result<Command, Failure> {
        let mut command = Command::new(node_program(self.node)?);
        command.args(["committee", what, "--config"]).arg(&self.config);
        Ok(command)
    }

    /// Makes the authority run this workspace's program from the next start on.
    pub fn upgrade(&mut self) {
        self.node = None;
    }

    /// Binds the process to one core from the next start on.
    pub fn bind_to_core(&mut self, core: usize) {
        self.core = Some(core);
    }

    /// The name of the process.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The authority as the committee lists it.
    #[must_use]
    pub fn member(&self) -> Member {
        self.member
    }

    /// The path of the configuration file.
    #[must_use]
    pub fn config(&self) -> &PathBuf {
        &self.config
    }

    /// The path of the data folder.
    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.config.with_file_name("data")
    }

    /// The generation of the journals that count in the data folder: more than 0 once they begin at a checkpoint.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn generation(&self) -> Result<u64, Failure> {
        let path = self.data().join("meta.json");
        let text = std::fs::read_to_string(&path).map_err(|error| Failure::Io { path, error })?;
        let meta: serde_json::Value = serde_json::from_str(&text).map_err(Failure::wrong)?;
        Ok(meta.get("generation").and_then(serde_json::Value::as_u64).unwrap_or_default())
    }

    /// The path of the keys' folder.
    #[must_use]
    pub fn keys_folder(&self) -> &PathBuf {
        &self.keys
    }

    /// The authority's endpoints.
    ///
    /// # Errors
    /// Before [`Authority::init`].
    pub fn endpoints(&self) -> Result<&AuthorityEndpoints, Failure> {
        self.endpoints.as_ref().ok_or_else(|| Failure::Wrong(format!("{} is not set up", self.name)))
    }

    /// A client of the authority.
    ///
    /// # Errors
    /// Before [`Authority::init`].
    pub fn client(&self) -> Result<AuthorityClient, Failure> {
        AuthorityClient::new(self.endpoints()?, ClientOptions::default()).map_err(Failure::wrong)
    }

    /// The value of one of the running node's metrics, without its labels' values: the sum over them.
    ///
    /// # Errors
    /// If the node does not answer, or has no such metric.
    pub async fn metric(&self, name: &str) -> Result<f64, Failure> {
        let http = self.endpoints()?.http.clone().unwrap_or_default();
        let (_, text) = http_get(&http, "/metrics").await.map_err(Failure::Wrong)?;
        let values: Vec<f64> = text
            .lines()
            .filter(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with([' ', '{'])))
            .filter_map(|line| line.rsplit(' ').next()?.parse().ok())
            .collect();
        if values.is_empty() { Err(Failure::Wrong(format!("no metric {name}"))) } else { Ok(values.iter().sum()) }
    }

    /// The authority's secret keys, for tests that play a Byzantine authority and for the bench.
    ///
    /// # Errors
    /// If the keys are encrypted.
    pub fn secret_keys(&self) -> Result<AuthorityKeys, Failure> {
        let secret = |name: &str| {
            let path = self.keys.join(name).with_extension("key");
            let text = std::fs::read_to_string(&path).map_err(|error| Failure::Io { path: path.clone(), error })?;
            let bytes = alloy::primitives::hex::decode(text.trim()).map_err(Failure::wrong)?;
            <[u8; 32]>::try_from(bytes).map_err(|_| Failure::Wrong(format!("{} is no key", path.display())))
        };
        AuthorityKeys::from_secrets(secret("voting")?, secret("redemption")?).map_err(Failure::wrong)
    }

    /// The command that runs the authority.
    ///
    /// # Errors
    /// If the program was not built.
    pub fn run_command(&self) -> Result<Command, Failure> {
        let mut command = self.node(|command| {
            command.arg("run").arg("--config").arg(&self.config).envs(self.variables.iter().cloned());
        })?;
        if let Some(core) = self.core {
            let node = std::mem::replace(&mut command, Command::new("taskset"));
            command.args(["-c", &core.to_string()]).arg(node.get_program()).args(node.get_args());
        }
        Ok(command)
    }

    /// Starts the process, without waiting until it is ready.
    ///
    /// # Errors
    /// If the process cannot be started.
    pub fn start(&mut self) -> Result<(), Failure> {
        self.program = Some(Program::start(&self.name, &mut self.run_command()?, &self.log)?);
        Ok(())
    }

    /// Waits until the authority votes and has followed the Primary to its head.
    ///
    /// # Errors
    /// If the process ends, or is not ready in time.
    pub async fn wait_ready(&mut self) -> Result<(), Failure> {
        let http = self.endpoints()?.http.clone().unwrap_or_default();
        let name = self.name.clone();
        let program = &mut self.program;
        let mut ended = None;
        let ready = wait_for(READY_PATIENCE, || {
            ended = program.as_mut().and_then(|program| program.check().err());
            let (has_ended, http, name) = (ended.is_some(), http.clone(), name.clone());
            async move {
                if has_ended {
                    return Ok(());
                }
                match http_get(&http, "/ready").await {
                    Ok((200, _)) => Ok(()),
                    Ok((_, body)) => Err(format!("{name} is not ready: {body}")),
                    Err(error) => Err(format!("{name} is not ready: {error}")),
                }
            }
        });
        ready.await?;
        ended.map_or(Ok(()), Err)
    }

    /// The running process.
    ///
    /// # Errors
    /// If the process is not running.
    pub fn program(&mut self) -> Result<&mut Program, Failure> {
        self.program.as_mut().ok_or_else(|| Failure::Wrong(format!("{} is not running", self.name)))
    }

    /// Ends the process as a power cut would: `kill -9`.
    pub fn kill(&mut self) {
        if let Some(mut program) = self.program.take() {
            program.kill();
        }
    }

    /// Ends the process as its operator would: with SIGTERM, after which it must end by itself without an error.
    ///
    /// # Errors
    /// If the process does not end so.
    pub fn stop(&mut self) -> Result<(), Failure> {
        let Some(mut program) = self.program.take() else { return Ok(()) };
        let status = program.stop(STOP_PATIENCE)?;
        if status.success() {
            return Ok(());
        }
        Err(Failure::Ended { name: self.name.clone(), status: status.to_string(), log: program.log_tail() })
    }

    /// Runs the process to its end, for starts that must fail.
    ///
    /// # Errors
    /// If the process cannot be started.
    pub fn run_to_end(&self) -> Result<Finished, Failure> {
        run(&mut self.run_command()?)
    }
}

fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    run(Command::new("cp").arg("-a").args([from, to]))?.success().map(drop)
}

fn node_program(chosen: Option<&Path>) -> Result<PathBuf, Failure> {
    chosen.map_or_else(|| program("fastpay-node"), |path| Ok(path.to_owned()))
}

fn keygen(node: PathBuf, folder: &Path) -> Result<Member, Failure> {
    let made = run(Command::new(node).args(["keygen", "--plain", "--keys"]).arg(folder))?;
    serde_json::from_str(&made.success()?.out).map_err(Failure::wrong)
}
