//! The addresses of a committee's authorities: a JSON file that wallets, relayers and operators share. The file is not
//! trusted; only the committee identifies an authority.

use std::path::{Path, PathBuf};

use fastpay_core::{AuthorityName, Digest};
use serde::{Deserialize, Serialize};

/// The maximum number of shards of one authority.
const SHARDS_MAX: usize = 1024;
/// The maximum number of relayers: a wallet asks all of them.
const RELAYERS_MAX: usize = 16;
/// The maximum length of a label in characters: a longer one does not fit beside an answer.
const LABEL_LENGTH_MAX: usize = 40;

/// How one authority is reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AuthorityEndpoints {
    /// The authority's name.
    pub name: AuthorityName,
    /// The gRPC address of each shard, from the first: `http://host:port` or `https://host:port`.
    pub shards: Vec<String>,
    /// The address of the JSON API, health and metrics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<String>,
    /// A file with the certificate authority (PEM) that signed this authority's TLS certificate, where
    /// its addresses are `https`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_ca: Option<PathBuf>,
    /// The authority's display name. It does not identify the authority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

/// The authorities of one committee, and the relayers that are known to serve its accounts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Endpoints {
    /// One entry for each authority, in any order.
    pub authorities: Vec<AuthorityEndpoints>,
    /// Relayers that publish their fees, as `http://host:port` or `https://host:port`: a wallet asks them before it
    /// proposes a fee. Anyone may relay, so the list decides nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub relayers: Vec<String>,
    /// A web wallet whose explorer shows the transfers of this committee, as `http://host` or `https://host`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explorer: Option<String>,
}

impl Endpoints {
    /// Reads the file.
    ///
    /// # Errors
    /// If it is missing or malformed, lists no authority, or lists one twice or without a shard.
    pub fn read(path: &Path) -> Result<Self, EndpointsError> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| EndpointsError::Unreadable { path: path.into(), error: error.to_string() })?;
        let endpoints: Self = serde_json::from_str(&text)
            .map_err(|error| EndpointsError::Malformed { path: path.into(), error: error.to_string() })?;
        if endpoints.authorities.is_empty() {
            return Err(EndpointsError::Nobody(path.into()));
        }
        endpoints.check()?;
        Ok(endpoints)
    }

    fn check(&self) -> Result<(), EndpointsError> {
        for (index, authority) in self.authorities.iter().enumerate() {
            if authority.shards.is_empty() || authority.shards.len() > SHARDS_MAX {
                return Err(EndpointsError::Shards(authority.name));
            }
            if self.authorities.iter().take(index).any(|other| other.name == authority.name) {
                return Err(EndpointsError::Repeated(authority.name));
            }
            let is_fit = |label: &str| {
                (1..=LABEL_LENGTH_MAX).contains(&label.chars().count()) && !label.chars().any(char::is_control)
            };
            if authority.label.as_deref().is_some_and(|label| !is_fit(label)) {
                return Err(EndpointsError::Label(authority.name));
            }
        }
        if self.relayers.len() > RELAYERS_MAX {
            return Err(EndpointsError::Relayers);
        }
        let is_http = |url: &str| url.starts_with("http://") || url.starts_with("https://");
        if let Some(url) = self.relayers.iter().find(|url| !is_http(url)) {
            return Err(EndpointsError::RelayerUrl(url.clone()));
        }
        match self.explorer.iter().find(|url| !is_http(url)) {
            Some(url) => Err(EndpointsError::ExplorerUrl(url.clone())),
            None => Ok(()),
        }
    }

    /// The explorer's page of a transfer.
    #[must_use]
    pub fn transfer_page(&self, digest: Digest) -> Option<String> {
        self.explorer.as_ref().map(|url| format!("{}/explore/transfer/{digest}", url.trim_end_matches('/')))
    }
}

/// Why a file of endpoints cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndpointsError {
    /// The file cannot be read.
    #[error("cannot read the authorities' endpoints from {path}: {error}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        error: String,
    },
    /// The file is not JSON of this form.
    #[error("{path} is not a list of endpoints: {error}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The defect.
        error: String,
    },
    /// No authority at all.
    #[error("{0} lists no authority; add the line that `fastpay-node init` printed for each of them")]
    Nobody(PathBuf),
    /// No shard, or far too many.
    #[error("authority {0} must list between 1 and {SHARDS_MAX} shards")]
    Shards(AuthorityName),
    /// Far too many relayers.
    #[error("more than {RELAYERS_MAX} relayers are listed; remove some")]
    Relayers,
    /// A relayer's address is not an HTTP or HTTPS URL.
    #[error("{0} is not the address of a relayer; give a URL that begins with http:// or https://")]
    RelayerUrl(String),
    /// The explorer's address is not an HTTP or HTTPS URL.
    #[error("{0} is not the address of an explorer; give a URL that begins with http:// or https://")]
    ExplorerUrl(String),
    /// A label that is empty, too long or not plain.
    #[error("the label of authority {0} must have 1 to {LABEL_LENGTH_MAX} characters and no control character")]
    Label(AuthorityName),
    /// Two entries for one authority.
    #[error("authority {0} is listed twice")]
    Repeated(AuthorityName),
}
