//! A user with a wallet. Each action runs the `fastpay` command.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Command;

use fastpay_client::QuorumOptions;
use fastpay_core::{AccountId, AccountKey};
use fastpay_wallet::Wallet;
use fastpay_wallet::folder::Folder;
use serde_json::Value;

use crate::chain::RICH_KEYS;
use crate::failure::Failure;
use crate::network::{Network, Primary};
use crate::place::program;
use crate::process::{Finished, Program, run};

/// The passphrase of the test keys.
const PASSPHRASE: &str = "correct horse battery staple";

/// A wallet's folder and its commands.
#[derive(Clone, Debug)]
pub struct User {
    name: String,
    home: PathBuf,
    passphrase: PathBuf,
    log: PathBuf,
}

impl User {
    /// A new wallet for this network.
    ///
    /// # Errors
    /// If the command fails.
    pub async fn new(network: &Network, name: &str) -> Result<Self, Failure> {
        let home = network.place().path("wallets").join(name);
        std::fs::create_dir_all(&home).map_err(|error| Failure::Io { path: home.clone(), error })?;
        let passphrase = network.place().write("passphrase", format!("{PASSPHRASE}\n"))?;
        let person = Self { name: name.to_owned(), home, passphrase, log: network.place().log(name) };
        person.set_up(network, &[]).await?;
        Ok(person)
    }

    /// Sets the wallet up again, with the endpoints that the network has now. Keys and orders are kept.
    ///
    /// # Errors
    /// If the command fails.
    pub async fn set_up_again(&self, network: &Network) -> Result<(), Failure> {
        self.set_up(network, &["--force"]).await
    }

    async fn set_up(&self, network: &Network, options: &[&str]) -> Result<(), Failure> {
        let endpoints = network.endpoints_file();
        let mut arguments = vec!["init".into(), "--endpoints".into(), endpoints.into_os_string()];
        arguments.extend(options.iter().map(Into::into));
        match network.primary() {
            Primary::Contract { rpc_url, chain_id, contract } => {
                let rest = ["--rpc-url", rpc_url, "--poll-interval-ms", "200", "--contract", &contract.to_string()];
                arguments.extend(rest.map(Into::into));
                arguments.extend(["--chain-id".into(), chain_id.to_string().into()]);
            }
            Primary::Genesis(path) => arguments.extend(["--genesis".into(), path.clone().into_os_string()]),
        }
        self.fastpay(arguments).await.map(drop)
    }

    /// The user's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The wallet's folder.
    #[must_use]
    pub fn home(&self) -> &PathBuf {
        &self.home
    }

    /// The file with the passphrase of its keys.
    #[must_use]
    pub fn passphrase_file(&self) -> &PathBuf {
        &self.passphrase
    }

    fn command(&self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Result<Command, Failure> {
        let mut command = Command::new(program("fastpay")?);
        command.arg("--home").arg(&self.home).arg("--passphrase-file").arg(&self.passphrase).arg("--json");
        command.args(arguments);
        Ok(command)
    }

    /// Runs `fastpay --json …` and parses its answer.
    ///
    /// # Errors
    /// If it fails, or its answer is not JSON.
    pub async fn fastpay(&self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Result<Value, Failure> {
        let done = self.try_fastpay(arguments).await?.success()?;
        serde_json::from_str(&done.out)
            .map_err(|error| Failure::Wrong(format!("{}: {error}: {}", done.command, done.out)))
    }

    /// Runs a command that may fail, to its end.
    ///
    /// # Errors
    /// If it cannot be started.
    pub async fn try_fastpay(
        &self,
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> Result<Finished, Failure> {
        let mut command = self.command(arguments)?;
        tokio::task::spawn_blocking(move || run(&mut command)).await.map_err(Failure::wrong)?
    }

    /// Starts a command without waiting for it.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start_fastpay(&self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Result<Program, Failure> {
        Program::start(&self.name, &mut self.command(arguments)?, &self.log)
    }

    /// Imports one of the chain's rich keys, and returns its account.
    ///
    /// # Errors
    /// If the command fails.
    pub async fn import_rich_key(&self, name: &str, number: usize) -> Result<AccountId, Failure> {
        let secret = RICH_KEYS.get(number).ok_or_else(|| Failure::Wrong(format!("there is no rich key {number}")))?;
        self.import_key(name, "--ethereum", secret).await
    }

    /// Imports a key of this kind, given as 64 hexadecimal digits, and returns its account.
    ///
    /// # Errors
    /// If the command fails.
    pub async fn import_key(&self, name: &str, kind: &str, secret: &str) -> Result<AccountId, Failure> {
        let file = self.home.join(format!("{name}.secret"));
        std::fs::write(&file, format!("{secret}\n")).map_err(|error| Failure::Io { path: file.clone(), error })?;
        let file_text = file.to_string_lossy().into_owned();
        self.fastpay(["keys", "import", name, kind, "--secret-file", &file_text]).await?;
        std::fs::remove_file(&file).map_err(|error| Failure::Io { path: file, error })?;
        self.account(name).await
    }

    /// Creates an Ed25519 key, and returns its account.
    ///
    /// # Errors
    /// If the command fails.
    pub async fn new_ed25519_key(&self, name: &str) -> Result<AccountId, Failure> {
        self.fastpay(["keys", "new", name, "--ed25519"]).await?;
        self.account(name).await
    }

    /// Opens the same wallet and one of its keys through the library.
    ///
    /// # Errors
    /// If the wallet cannot be opened or the key not decrypted.
    pub fn open(&self, key: &str) -> Result<(Wallet, AccountKey), Failure> {
        let folder = Folder::new(&self.home);
        let key = folder.keys().unlock(key, PASSPHRASE).map_err(Failure::wrong)?;
        Ok((Wallet::open(folder, QuorumOptions::default()).map_err(Failure::wrong)?, key))
    }

    /// The account of a key.
    ///
    /// # Errors
    /// If the command fails.
    pub async fn account(&self, key: &str) -> Result<AccountId, Failure> {
        let answer = self.fastpay(["address", "--from", key]).await?;
        let account = answer.get("account").and_then(Value::as_str).unwrap_or_default();
        account.parse().map_err(|_| Failure::Wrong(format!("no account in {answer}")))
    }
}
