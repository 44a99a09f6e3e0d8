//! Where the other authorities are: as the endpoints file says, and for members that it does not list, as they say
//! themselves. What members say is kept in the data folder, and told to all who ask.
//!
//! ```text
//!  own line of the endpoints file ─► signed with the present key ─► every peer, and what they know in return (`spread`)
//!      callers ─► offered ─► checked ─► kept ─► told to clients and peers; new peers for all parts (`reader`)
//! ```
//! Invariants: an entry is signed by a member of the current committee or of the one before, and never replaced by one
//! with a lower number. The endpoints file comes first: no other authority can change where this one finds those that
//! its operator lists.

mod reader;
mod spread;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fastpay_client::{AuthorityEndpoints, Endpoints};
use fastpay_core::{
    AuthorityName, Committees, Domain, MemberEndpoint, SignedEndpoint, VerifiedEndpoint, is_recent_member,
};
use fastpay_program::files;
use fastpay_rpc::endpoints_that_fit;
use fastpay_rpc::json::MemberEndpoints;
use tokio::sync::watch;

pub use reader::PeerReader;
pub use spread::{Spread, SpreadTimes};

/// The file in the data folder. Losing it costs time only.
const FILE: &str = "members.json";

/// See the [module](self). Cheap to clone.
#[derive(Clone)]
pub struct PeerBook {
    shared: Arc<Shared>,
}

struct Shared {
    domain: Domain,
    /// The names that this authority has had.
    names: Vec<AuthorityName>,
    /// The others in the endpoints file.
    listed: Vec<AuthorityEndpoints>,
    /// What the own line of the endpoints file says, without a number.
    own: Option<MemberEndpoint>,
    file: Option<PathBuf>,
    told: Mutex<Told>,
    changes: watch::Sender<u64>,
}

#[derive(Default)]
struct Told {
    by_name: BTreeMap<AuthorityName, VerifiedEndpoint>,
    /// The highest number that this authority has given before to something else than what it says now.
    own_before: u64,
    is_kept: bool,
}

impl PeerBook {
    /// The authorities of the endpoints file, if there is one. This one has had `names`.
    #[must_use]
    pub fn new(domain: Domain, endpoints: Option<Endpoints>, names: &[AuthorityName]) -> Self {
        let all = endpoints.map(|endpoints| endpoints.authorities).unwrap_or_default();
        let (own, listed): (Vec<_>, Vec<_>) = all.into_iter().partition(|entry| names.contains(&entry.name));
        // The newest name comes last.
        let own = own.into_iter().max_by_key(|entry| names.iter().position(|name| *name == entry.name));
        let own = own.and_then(|entry| {
            let refused = |error: String| {
                tracing::error!(error, "clients and new members are not told where this authority is; correct its line of the file of endpoints and start again");
            };
            said(&entry).inspect_err(|error| refused(error.clone())).ok()
        });
        let told = Mutex::new(Told { is_kept: true, ..Told::default() });
        let (file, changes) = (None, watch::Sender::new(0));
        Self { shared: Arc::new(Shared { domain, names: names.to_vec(), listed, own, file, told, changes }) }
    }

    /// The same with what members said in an earlier run, which is kept in the data folder.
    #[must_use]
    pub fn open(
        data: &Path,
        (domain, committees): (Domain, &Committees),
        endpoints: Option<Endpoints>,
        names: &[AuthorityName],
    ) -> Self {
        let Self { shared } = Self::new(domain, endpoints, names);
        let mut shared = Arc::into_inner(shared).expect("nobody else has it yet");
        let file = data.join(FILE);
        let kept = files::read(&file).map(Option::unwrap_or_default);
        let kept = kept.and_then(|content| match content.as_slice() {
            [] => Ok(MemberEndpoints::default()),
            content => serde_json::from_slice(content).map_err(Into::into),
        });
        let kept = kept.unwrap_or_else(|error| {
            tracing::warn!(%error, "where other members are is asked for anew");
            MemberEndpoints::default()
        });
        shared.file = Some(file);
        let book = Self { shared: Arc::new(shared) };
        book.learn(kept.read(), committees);
        book.told().is_kept = true;
        book
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.shared.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps what members of the current committee, or of the one before, say, as far as it is newer than what is known
    /// of them. Only of these are signatures checked, one after the other.
    pub fn learn(&self, endpoints: impl IntoIterator<Item = SignedEndpoint>, committees: &Committees) {
        let (mut told, mut is_new) = (self.told(), false);
        for signed in endpoints {
            let (name, number) = (signed.authority, signed.endpoint.number);
            if told.by_name.get(&name).is_some_and(|known| known.endpoint().number >= number) {
                continue;
            }
            match signed.verify(&self.shared.domain, committees) {
                // An earlier run of this authority said it, perhaps with another copy of the folder or by another clock.
                Ok(_) if self.shared.names.contains(&name) => told.own_before = told.own_before.max(number),
                Ok(endpoint) => {
                    told.by_name.insert(name, endpoint);
                    is_new = true;
                }
                Err(error) => tracing::debug!(%error, "an endpoint is not taken"),
            }
        }
        if is_new {
            told.is_kept = false;
            drop(told);
            self.shared.changes.send_modify(|changes| *changes = changes.wrapping_add(1));
        }
    }

    /// What is told to others: the members of the current committee first.
    #[must_use]
    pub fn tell(&self, committees: &Committees) -> Vec<SignedEndpoint> {
        let told = self.told();
        let recent = told.by_name.values().filter(|endpoint| is_recent_member(committees, &endpoint.authority()));
        let is_current = |endpoint: &&VerifiedEndpoint| committees.current().member(&endpoint.authority()).is_some();
        let (current, before): (Vec<_>, Vec<_>) = recent.partition(is_current);
        endpoints_that_fit(current.into_iter().chain(before).map(VerifiedEndpoint::signed)).cloned().collect()
    }

    /// Whether this authority knows where a member is, or is that member.
    fn knows(&self, member: &AuthorityName) -> bool {
        let is_listed = self.shared.listed.iter().any(|entry| entry.name == *member);
        is_listed || self.shared.names.contains(member) || self.told().by_name.contains_key(member)
    }

    /// Forgets those who are no members any more, and keeps the others on disk if there is anything new.
    fn keep(&self, committees: &Committees) {
        let endpoints = {
            let mut told = self.told();
            let before = told.by_name.len();
            told.by_name.retain(|name, _| is_recent_member(committees, name));
            if told.is_kept && told.by_name.len() == before {
                return;
            }
            told.is_kept = true;
            MemberEndpoints::new(told.by_name.values().map(VerifiedEndpoint::signed))
        };
        let Some(file) = &self.shared.file else { return };
        let content = serde_json::to_vec_pretty(&endpoints).map_err(std::io::Error::from);
        if let Err(error) = content.and_then(|content| files::replace(file, &content)) {
            self.told().is_kept = false;
            tracing::warn!(%error, "where other members are cannot be kept; they are asked for again after a restart");
        }
    }
}

/// What a line of the endpoints file says, in the form in which its member signs it.
fn said(entry: &AuthorityEndpoints) -> Result<MemberEndpoint, String> {
    let tls_ca = entry.tls_ca.as_ref().map(|path| {
        let read = std::fs::read_to_string(path);
        read.map_err(|error| format!("{}: {error}", path.display()))
    });
    let endpoint = MemberEndpoint {
        number: 0,
        shards: entry.shards.clone(),
        http: entry.http.clone().unwrap_or_default(),
        tls_ca: tls_ca.transpose()?.unwrap_or_default(),
    };
    endpoint.check().map_err(|error| error.to_string())?;
    Ok(endpoint)
}

#[cfg(test)]
mod tests;
