//! A FastPay committee on a ledger on this machine, for the demo: its authorities, relayer and wallets are the programs of
//! the root workspace, as processes.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use fastpay_core::{AccountId, Authority, AuthorityKeys};
use fastpay_program::keystore::{PassphraseSource, read_secret};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::localnet::listen;

/// The members of the committee.
const AUTHORITIES: usize = 4;
/// The wallets' keys are encrypted with this.
const PASSPHRASE: &str = "demo";

/// The authorities of a committee, and a relayer. They are killed when it is dropped.
#[derive(Debug)]
pub struct Authorities {
    programs: PathBuf,
    folder: PathBuf,
    public: Vec<Authority>,
    running: Vec<Child>,
    /// Where those that run serve HTTP.
    https: Vec<SocketAddr>,
}

/// Runs a program to its end, and reads the JSON that it prints.
fn run(command: &mut Command) -> io::Result<Value> {
    let output = command.stdin(Stdio::null()).output()?;
    if !output.status.success() {
        let (answer, log) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        return Err(io::Error::other(format!("{command:?}: {}: {answer} {log}", output.status)));
    }
    serde_json::from_slice(&output.stdout).map_err(io::Error::other)
}

impl Authorities {
    /// Makes the keys of four authorities with the programs in a folder.
    ///
    /// # Errors
    /// Any of the system, and of the programs.
    pub fn new(programs: &Path, folder: &Path) -> io::Result<Self> {
        let (programs, folder) = (programs.to_path_buf(), folder.to_path_buf());
        let mut authorities = Self { programs, folder, public: Vec::new(), running: Vec::new(), https: Vec::new() };
        for member in 0..AUTHORITIES {
            let keys = authorities.file(member, "keys");
            let public = run(authorities.node().arg("keygen").arg("--keys").arg(keys).arg("--plain"))?;
            authorities.public.push(serde_json::from_value(public)?);
        }
        Ok(authorities)
    }

    /// The public sides of their keys.
    #[must_use]
    pub fn public(&self) -> &[Authority] {
        &self.public
    }

    /// Their keys, with which their operators sign.
    ///
    /// # Errors
    /// If a key cannot be read.
    pub fn keys(&self) -> io::Result<Vec<AuthorityKeys>> {
        let source = PassphraseSource { file: None, variable: "FASTPAY_PASSPHRASE" };
        let read = |path: &Path| read_secret(path, &source).map_err(io::Error::other);
        let keys = |member| {
            let folder = self.file(member, "keys");
            let (voting, redemption) = (read(&folder.join("voting.key"))?, read(&folder.join("redemption.key"))?);
            AuthorityKeys::from_secrets(*voting, *redemption).map_err(io::Error::other)
        };
        (0..AUTHORITIES).map(keys).collect()
    }

    /// Waits until all of them have taken up an epoch.
    ///
    /// # Errors
    /// If one has not within a minute.
    pub async fn wait_for_epoch(&self, epoch: u64) -> io::Result<()> {
        let end = Instant::now().checked_add(Duration::from_secs(60));
        let expected = format!("\"epoch\":\"{epoch}\"");
        for http in &self.https {
            while !get(*http, "/v1/status").is_ok_and(|answer| answer.contains(&expected)) {
                if end.is_none_or(|end| Instant::now() > end) {
                    return Err(io::Error::other(format!("an authority is not in epoch {epoch}")));
                }
                sleep(Duration::from_millis(200)).await;
            }
        }
        Ok(())
    }

    fn node(&self) -> Command {
        Command::new(self.programs.join("fastpay-node"))
    }

    fn file(&self, member: usize, kind: &str) -> PathBuf {
        self.folder.join(format!("authority-{member}.{kind}"))
    }

    fn endpoints(&self) -> PathBuf {
        self.folder.join("endpoints.json")
    }

    /// Starts all of them on committee 0 of a ledger, and waits until they have read it. Gives where pages find them.
    ///
    /// # Errors
    /// Any of the system, and of the programs; one that is not ready within a minute.
    pub async fn start(&mut self, ledger: &Path) -> io::Result<Vec<Value>> {
        let mut held = Vec::new();
        let mut address = || -> io::Result<SocketAddr> {
            let listener = listen()?;
            let address = listener.local_addr()?;
            held.push(listener);
            Ok(address)
        };
        let (mut endpoints, mut https) = (Vec::new(), Vec::new());
        for member in 0..AUTHORITIES {
            let (shard, http) = (address()?, address()?);
            let mut init = self.node();
            init.arg("init")
                .arg("--config")
                .arg(self.file(member, "toml"))
                .arg("--data")
                .arg(self.file(member, "data"));
            init.arg("--keys").arg(self.file(member, "keys")).arg("--endpoints").arg(self.endpoints());
            init.arg("--listen").arg(shard.to_string()).arg("--http").arg(http.to_string());
            endpoints.push(run(init.arg("--ledger").arg(ledger).args(["--committee", "0"]))?);
            https.push(http);
        }
        drop(held);
        std::fs::write(self.endpoints(), json!({ "authorities": endpoints }).to_string())?;
        for member in 0..AUTHORITIES {
            let log = File::create(self.file(member, "log"))?;
            let mut node = self.node();
            node.arg("run").arg("--config").arg(self.file(member, "toml"));
            self.running.push(node.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).spawn()?);
        }
        let end = Instant::now().checked_add(Duration::from_secs(60));
        for (member, http) in https.iter().enumerate() {
            while !answers(*http, "/ready") {
                if end.is_none_or(|end| Instant::now() > end) {
                    let log = std::fs::read_to_string(self.file(member, "log"))?;
                    return Err(io::Error::other(format!("authority {member} is not ready: {log}")));
                }
                sleep(Duration::from_millis(200)).await;
            }
        }
        self.https = https;
        let place = |(authority, http): (&Authority, &SocketAddr)| json!({ "name": authority.name.to_string(), "http": format!("http://{http}") });
        Ok(self.public.iter().zip(&self.https).map(place).collect())
    }

    /// Starts a relayer on the ledger with this fee, and lists it for wallets. Gives the owner of its reserve.
    ///
    /// # Errors
    /// Any of the system, and of the program; one that does not answer within a minute.
    pub async fn relay(&mut self, ledger: &Path, fee: u128) -> io::Result<AccountId> {
        let (config, listener) = (self.folder.join("relayer.toml"), listen()?);
        let http = listener.local_addr()?;
        drop(listener);
        let relayer = || {
            let mut command = Command::new(self.programs.join("fastpay-relayer"));
            command.arg("--config").arg(&config).stdin(Stdio::null());
            command
        };
        let mut init = relayer();
        init.args(["init", "--unencrypted-key", "--committee", "0", "--ledger"]).arg(ledger);
        let made = init.arg("--endpoints").arg(self.endpoints()).output()?;
        let said = String::from_utf8_lossy(&made.stdout).into_owned();
        let address = said.split_whitespace().last().and_then(|word| word.parse().ok());
        let address = address.ok_or_else(|| io::Error::other(format!("{init:?}: {made:?}")))?;
        let text = std::fs::read_to_string(&config)?;
        let text = text.replace("# http = \"127.0.0.1:9300\"", &format!("http = \"{http}\""));
        std::fs::write(&config, text.replace("= \"0\" # the native asset", &format!("= \"{fee}\"")))?;
        let log = File::create(self.folder.join("relayer.log"))?;
        let running = relayer().arg("run").stdout(log.try_clone()?).stderr(log).spawn()?;
        self.running.push(running);
        let listed = std::fs::read(self.endpoints())?;
        let mut endpoints: Value = serde_json::from_slice(&listed).map_err(io::Error::other)?;
        if let Some(endpoints) = endpoints.as_object_mut() {
            endpoints.insert("relayers".to_owned(), json!([format!("http://{http}")]));
        }
        std::fs::write(self.endpoints(), endpoints.to_string())?;
        let end = Instant::now().checked_add(Duration::from_secs(60));
        while !answers(http, "/v1/fees") {
            if end.is_none_or(|end| Instant::now() > end) {
                let log = std::fs::read_to_string(self.folder.join("relayer.log"))?;
                return Err(io::Error::other(format!("the relayer does not answer: {log}")));
            }
            sleep(Duration::from_millis(100)).await;
        }
        Ok(AccountId::from_ethereum(address))
    }

    /// Makes a wallet on the ledger, with a key of these 32 secret bytes.
    ///
    /// # Errors
    /// Any of the system, and of the program.
    pub fn wallet(&self, name: &str, secret: [u8; 32], ledger: &Path) -> io::Result<Wallet> {
        let home = self.folder.join(name);
        let wallet = Wallet { program: self.programs.join("fastpay"), home };
        std::fs::create_dir_all(&wallet.home)?;
        let file = wallet.home.join("secret");
        std::fs::write(&file, hex::encode(secret))?;
        let [file, ledger, endpoints] = [&file, ledger, &self.endpoints()].map(|path| path.display().to_string());
        wallet.run(&["keys", "import", name, "--ed25519", "--secret-file", &file])?;
        wallet.run(&["init", "--ledger", &ledger, "--committee", "0", "--endpoints", &endpoints])?;
        Ok(wallet)
    }
}

impl Drop for Authorities {
    fn drop(&mut self) {
        for child in &mut self.running {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A wallet of its own.
#[derive(Debug)]
pub struct Wallet {
    program: PathBuf,
    home: PathBuf,
}

impl Wallet {
    /// Runs a command of the wallet, and gives what it answers.
    ///
    /// # Errors
    /// Any of the system, and of the program.
    pub fn run(&self, arguments: &[&str]) -> io::Result<Value> {
        let mut command = Command::new(&self.program);
        command.env("FASTPAY_PASSPHRASE", PASSPHRASE).arg("--home").arg(&self.home).arg("--json").args(arguments);
        run(&mut command)
    }

    /// A file in its folder.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.home.join(name)
    }
}

/// Whether a program answers a request for this path with success.
fn answers(http: SocketAddr, path: &str) -> bool {
    get(http, path).is_ok_and(|answer| answer.starts_with("HTTP/1.1 200"))
}

/// The whole answer of a program.
fn get(http: SocketAddr, path: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&http, Duration::from_secs(1))?;
    stream.set_read_timeout(Some(Duration::from_secs(2)))?;
    write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}
