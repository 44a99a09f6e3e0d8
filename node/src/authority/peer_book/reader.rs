//! The other authorities for one part of the node, as they become known.

use std::collections::{BTreeMap, VecDeque};

use fastpay_client::{AuthorityClient, ClientError, ClientOptions};
use fastpay_core::{AuthorityName, VerifiedEndpoint};
use tokio::sync::watch;

use super::PeerBook;

/// Gives each authority once, and again when it has moved.
#[derive(Clone)]
pub struct PeerReader {
    source: Option<(PeerBook, ClientOptions, watch::Receiver<u64>)>,
    /// Those that nobody has taken yet.
    waiting: VecDeque<AuthorityClient>,
    /// The numbers of those that said themselves where they are.
    given: BTreeMap<AuthorityName, u64>,
    is_once_per_address: bool,
}

impl PeerBook {
    /// A reader whose clients have these time-outs. Must be called within a tokio runtime.
    #[must_use]
    pub fn reader(&self, options: ClientOptions) -> PeerReader {
        let of_file = self.shared.listed.iter().filter_map(|entry| match AuthorityClient::new(entry, options) {
            Ok(client) => Some(client),
            Err(error) => {
                tracing::error!(authority = %entry.name, %error, "a peer is not asked; correct the file of endpoints and start again");
                None
            }
        });
        let (waiting, seen) = (of_file.collect(), self.shared.changes.subscribe());
        PeerReader {
            source: Some((self.clone(), options, seen)),
            waiting,
            given: BTreeMap::new(),
            is_once_per_address: false,
        }
    }
}

impl PeerReader {
    /// A reader of these authorities alone.
    #[must_use]
    pub fn of(peers: Vec<AuthorityClient>) -> Self {
        Self { source: None, waiting: peers.into(), given: BTreeMap::new(), is_once_per_address: false }
    }

    /// The same without those that the endpoints file lists at the same address under an earlier name.
    #[must_use]
    pub fn once_per_address(self) -> Self {
        Self { is_once_per_address: true, ..self }
    }

    /// The authorities that are new since the last call, and those that have moved, with their new addresses.
    pub fn news(&mut self) -> Vec<AuthorityClient> {
        let mut news: Vec<_> = self.waiting.drain(..).collect();
        let Some((book, options, seen)) = &mut self.source else { return news };
        seen.mark_unchanged();
        let told: Vec<VerifiedEndpoint> = book.told().by_name.values().cloned().collect();
        for endpoint in told {
            let (name, number) = (endpoint.authority(), endpoint.endpoint().number);
            let listed = &book.shared.listed;
            let is_listed = listed.iter().any(|entry| {
                entry.name == name || (self.is_once_per_address && entry.shards == endpoint.endpoint().shards)
            });
            let is_own = book.shared.names.contains(&name);
            if is_listed || is_own || self.given.get(&name).is_some_and(|given| *given >= number) {
                continue;
            }
            self.given.insert(name, number);
            news.extend(client(&endpoint, *options));
        }
        news
    }

    /// Returns when there may be news; never if there cannot be any.
    pub async fn changed(&mut self) {
        let is_open = match &mut self.source {
            Some((_, _, seen)) => seen.changed().await.is_ok(),
            None => false,
        };
        if !is_open {
            std::future::pending::<()>().await;
        }
    }
}

fn client(endpoint: &VerifiedEndpoint, options: ClientOptions) -> Option<AuthorityClient> {
    let unusable = |error: &ClientError| {
        tracing::warn!(authority = %endpoint.authority(), %error, "a member cannot be reached where it says that it is");
    };
    AuthorityClient::of_member(endpoint, options).inspect_err(unusable).ok()
}
