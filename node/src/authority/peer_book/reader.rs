//! The other authorities for one part of the node, as they become known.

use std::collections::BTreeMap;

use fastpay_client::{AuthorityClient, AuthorityEndpoints, ClientError, ClientOptions};
use fastpay_core::{AuthorityName, MemberEndpoint, VerifiedEndpoint};
use tokio::sync::watch;

use super::{Entry, PeerBook, place_of};

/// Gives each authority once, again when it has moved, and says when it has left.
#[derive(Clone)]
pub struct PeerReader {
    source: Option<Source>,
    /// Those that nobody has taken yet.
    waiting: Vec<AuthorityClient>,
    /// Where those are that said so themselves.
    given: BTreeMap<AuthorityName, MemberEndpoint>,
    is_once_per_address: bool,
}

#[derive(Clone)]
struct Source {
    book: PeerBook,
    options: ClientOptions,
    changes: watch::Receiver<u64>,
    /// The change up to which the book was read.
    read: Option<u64>,
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
        let changes = self.shared.changes.subscribe();
        let source = Source { book: self.clone(), options, changes, read: None };
        PeerReader { source: Some(source), ..PeerReader::of(of_file.collect()) }
    }
}

impl PeerReader {
    /// A reader of these authorities alone.
    #[must_use]
    pub fn of(peers: Vec<AuthorityClient>) -> Self {
        Self { source: None, waiting: peers, given: BTreeMap::new(), is_once_per_address: false }
    }

    /// The same without those that the endpoints file lists at the same address under an earlier name.
    #[must_use]
    pub fn once_per_address(self) -> Self {
        Self { is_once_per_address: true, ..self }
    }

    /// Brings a list up to date: adds the authorities that are new since the last call, puts those that have moved in
    /// their places, and removes those that have left, unless the endpoints file lists them.
    pub fn update<P>(
        &mut self,
        all: &mut Vec<P>,
        name: impl Fn(&P) -> AuthorityName,
        mut make: impl FnMut(AuthorityClient) -> P,
    ) {
        let (news, gone) = self.news();
        all.retain(|known| !gone.contains(&name(known)));
        for client in news {
            match all.iter_mut().find(|known| name(known) == client.name()) {
                Some(known) => *known = make(client),
                None => all.push(make(client)),
            }
        }
    }

    /// The authorities that are new since the last call or have moved, and those that have left.
    fn news(&mut self) -> (Vec<AuthorityClient>, Vec<AuthorityName>) {
        let mut news = std::mem::take(&mut self.waiting);
        let Some(Source { book, options, changes, read }) = &mut self.source else { return (news, Vec::new()) };
        let change = *changes.borrow_and_update();
        if read.replace(change) == Some(change) {
            return (news, Vec::new());
        }
        let listed = &book.shared.listed;
        let is_listed = |name: &AuthorityName, shards: &[String]| {
            let is_at = |entry: &AuthorityEndpoints| self.is_once_per_address && entry.shards == shards;
            listed.iter().any(|entry| entry.name == *name || is_at(entry))
        };
        let (mut moved, mut gone) = (Vec::new(), Vec::new());
        {
            let told = book.told();
            for (name, Entry { endpoint, .. }) in &told.by_name {
                let place = place_of(endpoint);
                let is_other = !is_listed(name, &place.shards) && !book.shared.names.contains(name);
                if is_other && self.given.get(name) != Some(&place) {
                    self.given.insert(*name, place);
                    moved.push(endpoint.clone());
                }
            }
            self.given.retain(|name, _| {
                let is_known = told.by_name.contains_key(name);
                gone.extend((!is_known).then_some(*name));
                is_known
            });
        }
        news.extend(moved.iter().filter_map(|endpoint| client(endpoint, *options)));
        (news, gone)
    }

    /// Returns when there may be news; never if there cannot be any.
    pub async fn changed(&mut self) {
        let is_open = match &mut self.source {
            Some(Source { changes, .. }) => changes.changed().await.is_ok(),
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
