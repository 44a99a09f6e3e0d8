//! The folder of the service:
//!
//! ```text
//!  merchant.toml     the owner's configuration
//!  wallet/           a wallet without keys: the endpoints, and the received payments
//!  secrets/token     the token that the shop sends with its requests
//!  secrets/webhook   the key that signs webhooks
//!  invoices.db       invoices, payments, webhooks
//! ```

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use fastpay_client::QuorumOptions;
use fastpay_core::AccountId;
use fastpay_program::configuration;
use fastpay_program::files;
use fastpay_wallet::folder::Folder;
use fastpay_wallet::{LabelTooLong, PaymentLink, Wallet, WalletError, check_label, set_up};
use serde::{Deserialize, Serialize};
use url::Url;
use zeroize::Zeroizing;

use crate::checkout::is_safe;
use crate::forms::LinkBase;
use crate::http::HttpLimits;
use crate::signature::Secret;

/// The default interval between reads from the authorities.
const POLL_MS: u64 = 1_000;
/// The default delay after a failed webhook.
const FIRST_DELAY_MS: u64 = 5_000;
/// The default time-out of a webhook.
const WEBHOOK_TIMEOUT_MS: u64 = 10_000;

/// The owner's configuration, `merchant.toml`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The account to be paid. Its key need not be on this machine.
    pub account: AccountId,
    /// The address at which the shop reaches this service.
    pub listen: SocketAddr,
    /// Whether a reverse proxy with TLS is in front of this service, so that it may listen beyond this machine.
    #[serde(default)]
    pub behind_proxy: bool,
    /// The maximum number of unpaid invoices.
    #[serde(default = "open_invoices_max")]
    pub open_invoices_max: usize,
    /// A key of an earlier release, refused with the reason.
    #[serde(default, skip_serializing)]
    pub keep_days: Option<u32>,
    /// The shop's name in payment links.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The page of a web wallet that opens payment links.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub web_wallet: Option<Url>,
    /// The URL at which customers reach the pages under `/checkout/`; by default the listening address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkout_url: Option<Url>,
    /// The URL at which the shop receives webhooks. Without it, none are sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook_url: Option<Url>,
    /// The interval between reads from the authorities, in milliseconds.
    #[serde(default = "poll_ms")]
    pub poll_ms: u64,
    /// The delay after the first failed attempt of a webhook, in milliseconds.
    #[serde(default = "first_delay_ms")]
    pub webhook_first_delay_ms: u64,
    /// The time-out of a webhook, in milliseconds. After that, it counts as failed.
    #[serde(default = "webhook_timeout_ms")]
    pub webhook_timeout_ms: u64,
}

fn open_invoices_max() -> usize {
    HttpLimits::default().open_invoices_max
}

fn webhook_timeout_ms() -> u64 {
    WEBHOOK_TIMEOUT_MS
}

fn poll_ms() -> u64 {
    POLL_MS
}

fn first_delay_ms() -> u64 {
    FIRST_DELAY_MS
}

impl Config {
    /// A configuration with the defaults and without webhooks.
    #[must_use]
    pub fn new(account: AccountId, listen: SocketAddr) -> Self {
        Self {
            account,
            listen,
            behind_proxy: false,
            open_invoices_max: open_invoices_max(),
            keep_days: None,
            label: None,
            web_wallet: None,
            checkout_url: None,
            webhook_url: None,
            poll_ms: POLL_MS,
            webhook_first_delay_ms: FIRST_DELAY_MS,
            webhook_timeout_ms: WEBHOOK_TIMEOUT_MS,
        }
    }

    /// Checks that the token is safe: it is sent in the clear, so the service listens on this machine only, or behind a
    /// proxy with TLS. The label must be short enough that payers see all of it.
    fn check(&self) -> Result<(), ConfigError> {
        self.label.as_deref().map_or(Ok(()), check_label)?;
        if self.keep_days.is_some() {
            return Err(ConfigError::KeepDays);
        }
        if let Some(url) = self.checkout_url.as_ref().filter(|url| !is_safe(url.as_str())) {
            return Err(ConfigError::Readable(url.clone()));
        }
        let is_fit = self.behind_proxy || self.listen.ip().to_canonical().is_loopback();
        if is_fit { Ok(()) } else { Err(ConfigError::Exposed(self.listen)) }
    }
}

/// Why the folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file system failed.
    #[error("cannot use {path}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        error: std::io::Error,
    },
    /// A file is malformed.
    #[error("{path} is invalid: {reason}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The defect.
        reason: String,
    },
    /// The token would cross a network in the clear.
    #[error(
        "{0} is reached from other machines, and the token would cross the network in the clear: listen on 127.0.0.1, or \
         put a server with TLS before it and say behind_proxy = true (init: --behind-proxy)"
    )]
    Exposed(SocketAddr),
    /// Customers would see a payment link that anybody on the way can change.
    #[error(
        "checkout_url {0} is not encrypted; give a URL that begins with https://, or with http:// and this machine's \
         own name"
    )]
    Readable(Url),
    /// The file has a key of an earlier release.
    #[error("`keep_days` was removed: the database keeps all invoices. Delete it from merchant.toml")]
    KeepDays,
    /// The shop's name is too long.
    #[error(transparent)]
    Label(#[from] LabelTooLong),
    /// The folder does not exist, or is another one.
    #[error("{0} does not exist; create it with `fastpay-merchant init`, or name the service's folder with --home")]
    NotSetUp(PathBuf),
    /// The folder exists already.
    #[error("{0} already exists; it is never overwritten")]
    Exists(PathBuf),
    /// The wallet in it cannot be used.
    #[error(transparent)]
    Wallet(#[from] WalletError),
}

/// The service's folder.
#[derive(Clone, Debug)]
pub struct Home(PathBuf);

impl Home {
    /// The folder at a path, which need not exist yet.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// The folder's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Creates the folder for this configuration, with the committee and Primary of the wallet in `template`.
    ///
    /// # Errors
    /// If it exists, the template is not set up, or its Primary does not answer.
    pub async fn init(&self, config: &Config, template: &Folder) -> Result<(), ConfigError> {
        config.check()?;
        let path = self.config_path();
        if path.exists() {
            return Err(ConfigError::Exists(path));
        }
        let wallet_config = template.config().map_err(WalletError::from)?;
        let wallet = Folder::new(self.0.join("wallet"));
        set_up(&wallet, &wallet_config, true).await?;
        // Copy the tokens that the owner's wallet knows.
        for asset in template.known_assets().map_err(WalletError::from)? {
            if let Some(info) = template.known_asset(asset).map_err(WalletError::from)? {
                wallet.learn_asset(asset, &info).map_err(WalletError::from)?;
            }
        }
        Folder::new(self.0.join("secrets")).create().map_err(WalletError::from)?;
        let token = Zeroizing::new(hex::encode(rand::random::<[u8; 32]>()));
        write_new(&self.token_path(), &token)?;
        write_new(&self.0.join("secrets/webhook"), &Secret::random().expose())?;
        let content = toml::to_string(config)
            .map_err(|error| ConfigError::Malformed { path: path.clone(), reason: error.to_string() })?;
        // Last, so that a folder with a configuration is complete.
        write_new(&path, &content)
    }

    /// The owner's configuration, `merchant.toml`.
    ///
    /// # Errors
    /// If it is missing or malformed, would expose the token, or its label is too long for links.
    pub fn config(&self) -> Result<Config, ConfigError> {
        let path = self.config_path();
        if !path.exists() {
            return Err(ConfigError::NotSetUp(path));
        }
        let content = read(&path)?;
        let config: Config = configuration::read(&content)
            .map_err(|error| ConfigError::Malformed { path, reason: error.to_string() })?;
        config.check().map(|()| config)
    }

    /// The token that authenticates the shop's requests.
    ///
    /// # Errors
    /// If it is missing.
    pub fn token(&self) -> Result<Zeroizing<String>, ConfigError> {
        let path = self.token_path();
        let token = Zeroizing::new(read(&path)?.trim().to_owned());
        // An empty token would admit everybody.
        let is_token = token.len() >= 32 && token.bytes().all(|byte| byte.is_ascii_graphic());
        is_token.then_some(token).ok_or_else(|| ConfigError::Malformed {
            path,
            reason: "a token has 32 characters or more, and no spaces".into(),
        })
    }

    /// The key that signs webhooks.
    ///
    /// # Errors
    /// If it is missing or malformed.
    pub fn webhook_secret(&self) -> Result<Secret, ConfigError> {
        let path = self.0.join("secrets/webhook");
        let reason = || "it is not whsec_ and base64 of 24 to 64 bytes".to_owned();
        Secret::parse(&read(&path)?).ok_or_else(|| ConfigError::Malformed { path, reason: reason() })
    }

    /// The wallet in the folder.
    ///
    /// # Errors
    /// If it is not set up.
    pub fn wallet(&self) -> Result<Wallet, ConfigError> {
        Ok(Wallet::open(Folder::new(self.0.join("wallet")), QuorumOptions::default())?)
    }

    /// The common part of this shop's payment links.
    #[must_use]
    pub fn link_base(config: &Config, wallet: &Wallet) -> LinkBase {
        let domain = wallet.network().domain();
        let bare = PaymentLink::new(config.account, domain, fastpay_core::Asset::ETHER);
        let own = (!config.behind_proxy).then(|| format!("http://{}", config.listen));
        let checkout = config.checkout_url.as_ref().map(|url| url.as_str().trim_end_matches('/').to_owned()).or(own);
        let link = PaymentLink { label: config.label.clone(), ..bare };
        LinkBase { link, page: config.web_wallet.clone(), checkout }
    }

    fn config_path(&self) -> PathBuf {
        self.0.join("merchant.toml")
    }

    fn token_path(&self) -> PathBuf {
        self.0.join("secrets/token")
    }
}

fn read(path: &Path) -> Result<Zeroizing<String>, ConfigError> {
    let content = std::fs::read_to_string(path).map_err(|error| ConfigError::Io { path: path.into(), error })?;
    Ok(Zeroizing::new(content))
}

/// Writes a file that only its owner can read. A file left by a failed init is overwritten.
fn write_new(path: &Path, content: &str) -> Result<(), ConfigError> {
    files::replace(path, format!("{content}\n").as_bytes())
        .map_err(|error| ConfigError::Io { path: path.into(), error })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn secrets_that_protect_nothing_and_folders_that_are_in_use_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path());
        assert!(matches!(home.config(), Err(ConfigError::NotSetUp(_))));
        std::fs::create_dir(folder.path().join("secrets")).unwrap();
        for token in ["", "short", "0123456789abcdef 0123456789abcdef"] {
            std::fs::write(folder.path().join("secrets/token"), token).unwrap();
            assert!(matches!(home.token(), Err(ConfigError::Malformed { .. })), "{token}");
        }
        std::fs::write(folder.path().join("secrets/webhook"), "whsec_AAAA\n").unwrap();
        assert!(matches!(home.webhook_secret(), Err(ConfigError::Malformed { .. })));

        let config = Config::new(AccountId([1; 32]), ([127, 0, 0, 1], 7080).into());
        let path = folder.path().join("merchant.toml");
        std::fs::write(&path, toml::to_string(&config).unwrap()).unwrap();
        assert_eq!(home.config().unwrap(), config);
        std::fs::write(&path, format!("keep_days = 30\n{}", toml::to_string(&config).unwrap())).unwrap();
        assert!(matches!(home.config(), Err(ConfigError::KeepDays)));
        std::fs::write(&path, toml::to_string(&config).unwrap()).unwrap();
        let again = home.init(&config, &Folder::new(folder.path())).await;
        assert!(matches!(again, Err(ConfigError::Exists(_))));
        for (listen, behind_proxy, is_fit) in [
            ("0.0.0.0:7080", false, false),
            ("[::]:7080", false, false),
            ("192.168.1.7:7080", false, false),
            ("192.168.1.7:7080", true, true),
            ("[::1]:7080", false, true),
            ("[::ffff:127.0.0.1]:7080", false, true),
        ] {
            let config = Config { listen: listen.parse().unwrap(), behind_proxy, ..config.clone() };
            std::fs::write(&path, toml::to_string(&config).unwrap()).unwrap();
            let read = home.config();
            assert!(if is_fit { read.is_ok() } else { matches!(read, Err(ConfigError::Exposed(_))) }, "{listen}");
        }
        let readable = Config { checkout_url: Some("http://pay.shop.example".parse().unwrap()), ..config.clone() };
        std::fs::write(&path, toml::to_string(&readable).unwrap()).unwrap();
        assert!(matches!(home.config(), Err(ConfigError::Readable(_))));
        let long = Config { label: Some("x".repeat(65)), ..config.clone() };
        std::fs::write(&path, toml::to_string(&long).unwrap()).unwrap();
        assert!(home.config().unwrap_err().to_string().contains("at most 64 are shown"));
        let exposed = Config { listen: "0.0.0.0:7080".parse().unwrap(), ..config.clone() };
        let elsewhere = Home::new(folder.path().join("new"));
        let made = elsewhere.init(&exposed, &Folder::new(folder.path())).await;
        assert!(matches!(made, Err(ConfigError::Exposed(_))) && !elsewhere.path().exists());
        std::fs::write(&path, "webhook = \"https://shop.example/0123\"").unwrap();
        let error = home.config().unwrap_err();
        assert!(error.to_string().contains("line 1, column 1, `webhook`: unknown field"), "{error}");
        assert!(!format!("{error}{error:?}").contains("0123"), "{error:?}");
    }
}
