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
use std::time::Duration;

use fastpay_client::{AuthorityEndpoints, Endpoints};
use fastpay_core::{
    AuthorityName, Committees, Domain, MemberEndpoint, SignedEndpoint, VerifiedEndpoint, is_recent_member,
};
use fastpay_program::files;
use fastpay_rpc::endpoints_that_fit;
use fastpay_rpc::json::MemberEndpoints;
use tokio::sync::watch;
use tokio::time::Instant;

pub use reader::PeerReader;
pub use spread::{Spread, SpreadTimes};

/// The file in the data folder. Losing it costs time only.
const FILE: &str = "members.json";
/// The shortest time between two statements of one member that are taken: it signs as many as it likes, and all others
/// connect anew at each. A member that was refused tells again by itself.
const MOVES_INTERVAL: Duration = Duration::from_secs(10);

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
    by_name: BTreeMap<AuthorityName, Entry>,
    /// For each own name, the highest number that was given under it to something else than what is said now.
    own_before: BTreeMap<AuthorityName, u64>,
    is_kept: bool,
}

struct Entry {
    endpoint: VerifiedEndpoint,
    taken_at: Instant,
}

impl Entry {
    fn now(endpoint: VerifiedEndpoint) -> Self {
        Self { endpoint, taken_at: Instant::now() }
    }

    fn number(&self) -> u64 {
        self.endpoint.endpoint().number
    }
}

impl PeerBook {
    /// The authorities of the endpoints file, if there is one. This one has had `names`.
    #[must_use]
    pub fn new(domain: Domain, endpoints: Option<Endpoints>, names: &[AuthorityName]) -> Self {
        Self::kept_in(None, domain, endpoints, names)
    }

    /// The same with what members said in an earlier run, which is kept in the data folder.
    #[must_use]
    pub fn open(
        data: &Path,
        (domain, committees): (Domain, &Committees),
        endpoints: Option<Endpoints>,
        names: &[AuthorityName],
    ) -> Self {
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
        let book = Self::kept_in(Some(file), domain, endpoints, names);
        book.learn(kept.read(), committees);
        book.told().is_kept = true;
        book
    }

    fn kept_in(file: Option<PathBuf>, domain: Domain, endpoints: Option<Endpoints>, names: &[AuthorityName]) -> Self {
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
        let changes = watch::Sender::new(0);
        Self { shared: Arc::new(Shared { domain, names: names.to_vec(), listed, own, file, told, changes }) }
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.shared.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps what members of the current committee, or of the one before, say, as far as it is newer than what is known
    /// of them. Only of these are signatures checked, one after the other. Of the own statements it keeps the one that
    /// says what this authority says now. Returns whether nothing came too soon after an earlier one of its member.
    pub fn learn(&self, endpoints: impl IntoIterator<Item = SignedEndpoint>, committees: &Committees) -> bool {
        let (mut told, mut is_new, mut is_in_time) = (self.told(), false, true);
        for signed in endpoints {
            let (name, number) = (signed.authority, signed.endpoint.number);
            let (known, is_own) = (told.by_name.get(&name), self.shared.names.contains(&name));
            if known.is_some_and(|known| known.number() >= number) {
                continue;
            }
            if !is_own && known.is_some_and(|known| known.taken_at.elapsed() < MOVES_INTERVAL) {
                tracing::debug!(authority = %name, "a member says too soon that it has moved again");
                is_in_time = false;
                continue;
            }
            match signed.verify(&self.shared.domain, committees) {
                // An earlier run of this authority said it, perhaps with another copy of the folder or by another clock.
                Ok(endpoint) if is_own && self.shared.own != Some(place_of(&endpoint)) => {
                    let before = told.own_before.entry(name).or_default();
                    *before = number.max(*before);
                }
                Ok(endpoint) => {
                    told.by_name.insert(name, Entry::now(endpoint));
                    is_new = true;
                }
                Err(error) => tracing::debug!(%error, "an endpoint is not taken"),
            }
        }
        if is_new {
            told.is_kept = false;
            drop(told);
            self.tell_readers();
        }
        is_in_time
    }

    fn tell_readers(&self) {
        self.shared.changes.send_modify(|changes| *changes = changes.wrapping_add(1));
    }

    /// What is told to others: the members of the current committee first.
    #[must_use]
    pub fn tell(&self, committees: &Committees) -> Vec<SignedEndpoint> {
        let told = self.told();
        let all = told.by_name.values().map(|entry| &entry.endpoint);
        let recent = all.filter(|endpoint| is_recent_member(committees, &endpoint.authority()));
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
        let (endpoints, has_left) = {
            let mut told = self.told();
            let before = told.by_name.len();
            told.by_name.retain(|name, _| is_recent_member(committees, name));
            let has_left = told.by_name.len() < before;
            if told.is_kept && !has_left {
                return;
            }
            told.is_kept = true;
            (MemberEndpoints::new(told.by_name.values().map(|entry| entry.endpoint.signed())), has_left)
        };
        if has_left {
            self.tell_readers();
        }
        let Some(file) = &self.shared.file else { return };
        let content = serde_json::to_vec_pretty(&endpoints).map_err(std::io::Error::from);
        if let Err(error) = content.and_then(|content| files::replace(file, &content)) {
            self.told().is_kept = false;
            tracing::warn!(%error, "where other members are cannot be kept; they are asked for again after a restart");
        }
    }
}

/// Where a member says that it is, whatever the number.
fn place_of(endpoint: &VerifiedEndpoint) -> MemberEndpoint {
    MemberEndpoint { number: 0, ..endpoint.endpoint().clone() }
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
