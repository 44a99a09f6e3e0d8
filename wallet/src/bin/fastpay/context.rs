//! The common start of all commands: the folder, the passphrase, the wallet.

use std::io::{BufRead, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use fastpay_client::QuorumOptions;
use fastpay_core::{AccountId, AccountKey, Amount, Asset};
use fastpay_ethereum::Primary;
use fastpay_telemetry::{Export, Service, Tracer};
use fastpay_wallet::folder::{Folder, KeyEntry, KeyError, KeyKind};
use fastpay_wallet::{ChainAccount, Wallet, WalletError};
use zeroize::Zeroizing;

use crate::args::{AccountArgs, AssetName};
use crate::output::Screen;

/// The context of a command.
pub struct Context {
    pub folder: Folder,
    pub json: bool,
    pub screen: Screen,
    passphrase_file: Option<PathBuf>,
    timeout: Duration,
    /// Started with the first wallet; what it took last leaves when this goes.
    traces: OnceLock<(Tracer, Option<Export>)>,
}

impl Context {
    pub fn new(
        home: Option<PathBuf>,
        json: bool,
        passphrase_file: Option<PathBuf>,
        timeout: u64,
    ) -> Result<Self, WalletError> {
        let missing = || WalletError::Argument("there is no home folder; name the wallet's folder with --home".into());
        let home = match home {
            Some(home) => home,
            None => std::env::home_dir().ok_or_else(missing)?.join(".fastpay"),
        };
        let (screen, timeout) = (Screen::new(), Duration::from_secs(timeout.max(1)));
        Ok(Self { folder: Folder::new(home), json, screen, passphrase_file, timeout, traces: OnceLock::new() })
    }

    /// Asks at the terminal whether to pay what a link or list asks for, unless `yes`.
    pub fn agree(&self, yes: bool, asking: &str, payments: &str, them: &str) -> Result<(), WalletError> {
        if yes {
            return Ok(());
        }
        let input = std::io::stdin();
        if self.json || !input.is_terminal() {
            return Err(WalletError::Argument(format!(
                "there is no terminal to confirm the {payments}; give --yes to pay the {asking}. Nothing was signed"
            )));
        }
        self.screen.show(format!("pay {them}? Type yes: "));
        let mut answer = String::new();
        if input.lock().read_line(&mut answer).is_err() || answer.trim() != "yes" {
            return Err(WalletError::Argument(format!("the {asking} was not paid; nothing was signed")));
        }
        Ok(())
    }

    /// The wallet, telling of its progress.
    pub fn wallet(&self) -> Result<Wallet, WalletError> {
        let options = QuorumOptions { deadline: self.timeout, ..QuorumOptions::default() };
        let screen = self.screen.clone();
        let wallet = Wallet::open(self.folder.clone(), options)?.with_tracer(self.tracer()?);
        Ok(wallet.with_listener(Arc::new(move |progress| screen.progress(progress))))
    }

    /// Nobody is kept from paying because it cannot be traced.
    fn tracer(&self) -> Result<Tracer, WalletError> {
        let settings = self.folder.config()?.traces;
        let start = || {
            let Some(settings) = settings else { return (Tracer::off(), None) };
            match Export::start(&settings, Service { name: "fastpay-wallet", instance: None }) {
                Ok((tracer, export)) => (tracer, Some(export)),
                Err(error) => {
                    tracing::warn!(%error, "payments are not traced");
                    (Tracer::off(), None)
                }
            }
        };
        Ok(self.traces.get_or_init(start).0.clone())
    }

    /// The passphrase of this wallet's keys.
    pub fn passphrase(&self, prompt: &str) -> Result<Zeroizing<String>, WalletError> {
        match &self.passphrase_file {
            Some(path) => read_passphrase(path, "--passphrase-file"),
            None => match std::env::var("FASTPAY_PASSPHRASE") {
                Ok(passphrase) => Ok(Zeroizing::new(passphrase)),
                Err(_) => ask(prompt),
            },
        }
    }

    /// The passphrase for a new key, asked for twice where a person types it.
    pub fn new_passphrase(&self) -> Result<Zeroizing<String>, WalletError> {
        let typed = self.passphrase_file.is_none() && std::env::var_os("FASTPAY_PASSPHRASE").is_none();
        let passphrase = self.passphrase("Passphrase for the new key: ")?;
        if typed && *ask("Repeat the passphrase: ")? != *passphrase {
            return Err(WalletError::Argument("the two passphrases differ; try again".into()));
        }
        if passphrase.is_empty() {
            return Err(WalletError::Argument("the passphrase is empty; choose one".into()));
        }
        Ok(passphrase)
    }

    /// Decrypts a key.
    pub fn unlock(&self, entry: &KeyEntry) -> Result<AccountKey, WalletError> {
        let passphrase = self.passphrase(&format!("Passphrase of key {}: ", entry.name))?;
        Ok(self.folder.keys().unlock(&entry.name, &passphrase)?)
    }

    /// The key that is meant.
    pub fn choose(&self, name: Option<&str>, kind: Option<KeyKind>) -> Result<KeyEntry, WalletError> {
        Ok(self.folder.keys().choose(name, kind)?)
    }

    /// An asset by its address, or by the symbol of a token that this wallet knows.
    pub fn asset(&self, name: &AssetName) -> Result<Asset, WalletError> {
        let symbol = match name {
            AssetName::Known(asset) => return Ok(*asset),
            AssetName::Symbol(symbol) => symbol,
        };
        match self.folder.assets_named(symbol)?.as_slice() {
            [asset] => {
                self.screen.line(format!("{symbol} is the token {asset}"));
                Ok(*asset)
            }
            [] => Err(WalletError::Argument(format!(
                "this wallet knows no token with the symbol {symbol:?}; give its address (0x…) once"
            ))),
            several => {
                let addresses: Vec<_> = several.iter().map(Asset::to_string).collect();
                let addresses = addresses.join(" and ");
                Err(WalletError::Argument(format!("{addresses} are both called {symbol:?}; give the address")))
            }
        }
    }

    /// An amount in whole units, or max for all that an account holds of an asset.
    pub async fn amount(
        &self,
        wallet: &Wallet,
        account: AccountId,
        asset: Asset,
        text: &str,
    ) -> Result<Amount, WalletError> {
        if text != "max" {
            return wallet.read_amount(asset, text).await;
        }
        let view = wallet.view(account).await?;
        let held = view.balances.iter().find(|held| held.asset == asset);
        let amount = held.and_then(|held| held.balance.to_string().parse().ok()).map(Amount).unwrap_or_default();
        if amount == Amount::ZERO {
            return Err(WalletError::Argument("the account has none of this asset; nothing was signed".into()));
        }
        Ok(amount)
    }

    /// An account by its address, or by the name of a contact or of a key of this wallet.
    pub fn account(&self, text: &str) -> Result<AccountId, WalletError> {
        if text.starts_with("0x") || text.starts_with("fp1") {
            return text.parse().map_err(|error| WalletError::Argument(format!("{error}")));
        }
        // A link of another scheme, or a web page: no name has a colon.
        if text.contains(':') {
            let hint = "is not an account (fp1… or 0x…), a name or a payment link (fastpay:…)";
            return Err(WalletError::Argument(format!("{text:?} {hint}; copy it again completely")));
        }
        Ok(self.folder.named(text)?)
    }

    /// The account that a reading command is about.
    pub fn account_of(&self, args: &AccountArgs) -> Result<AccountId, WalletError> {
        match &args.account {
            Some(text) => self.account(text),
            None => Ok(self.choose(args.from.as_deref(), None)?.account),
        }
    }

    /// The Ethereum key that pays for gas: the one named, or the account's own.
    pub fn gas_payer(&self, entry: &KeyEntry, name: Option<&str>) -> Result<KeyEntry, WalletError> {
        match name {
            None if entry.kind == KeyKind::Ethereum => Ok(entry.clone()),
            name => self.choose(name, Some(KeyKind::Ethereum)).map_err(|error| match error {
                WalletError::Key(KeyError::Ambiguous { names, .. }) => {
                    KeyError::Ambiguous { names, option: "--gas-key" }.into()
                }
                error => error,
            }),
        }
    }

    /// The Primary's side of an Ethereum key.
    pub fn chain_account(&self, primary: Primary, entry: &KeyEntry) -> Result<ChainAccount, WalletError> {
        let key = self.unlock(entry)?;
        let sender = self.folder.config()?.primary()?.sender.clone();
        let screen = self.screen.clone();
        let account = ChainAccount::new(&self.folder, primary, &entry.name, &key, sender)?;
        Ok(account.with_listener(Arc::new(move |errand, progress| screen.chain_progress(errand, progress))))
    }
}

/// The first line of the passphrase file that an option names.
pub fn read_passphrase(path: &Path, option: &str) -> Result<Zeroizing<String>, WalletError> {
    first_line(path).map_err(|error| {
        let path = path.display();
        WalletError::Argument(format!("the passphrase file {path} of {option} cannot be read: {error}"))
    })
}

/// The first line of a file with a secret.
pub fn first_line(path: &Path) -> std::io::Result<Zeroizing<String>> {
    let content = std::fs::read_to_string(path).map(Zeroizing::new)?;
    Ok(Zeroizing::new(content.lines().next().unwrap_or_default().to_owned()))
}

/// Asks at the terminal without echo.
pub fn ask(prompt: &str) -> Result<Zeroizing<String>, WalletError> {
    rpassword::prompt_password(prompt).map(Zeroizing::new).map_err(|_| {
        let hint =
            "there is no terminal to prompt for the passphrase; give --passphrase-file or set FASTPAY_PASSPHRASE";
        WalletError::Argument(hint.into())
    })
}
