//! The present names of endpoints that the file lists under earlier ones. Names are not signed, so they decide nothing:
//! only signatures count.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::PoisonError;
use std::time::Duration;

use fastpay_core::AuthorityName;
use tokio::time::Instant;

use super::{Known, Network};
use crate::{Asked, AuthorityClient};

/// The maximum time to ask endpoints without a current member's name for their names.
pub(crate) const NAMES: Duration = Duration::from_secs(1);
/// The current names of endpoints, by their names in the file.
pub type Names = BTreeMap<AuthorityName, AuthorityName>;

impl Network {
    /// Asks each endpoint whose name is not a current member's for its present name, and uses the answers. These are not
    /// signed: a false claim takes the voice of a member that is neither listed nor says itself where it is.
    pub async fn learn_names(&self, deadline: Instant) {
        let epoch = self.committee().epoch();
        let names = self.ask_names(deadline).await;
        let mut known = self.shared.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.committees.current().epoch() == epoch {
            let Known { committees, told, .. } = known.clone();
            *known = Known::new(committees, names, told, &self.shared.listed);
        }
    }

    async fn ask_names(&self, deadline: Instant) -> Names {
        let Known { committees, mut names, told, .. } = self.known().clone();
        let committee = committees.current();
        let now = |listed: &AuthorityClient| names.get(&listed.name()).copied().unwrap_or(listed.name());
        let is_member = |name: &AuthorityName| committee.member(name).is_some();
        let listed = self.shared.listed.iter().flat_map(|listed| [listed.name(), now(listed)]);
        let taken: BTreeSet<_> = listed.chain(told.keys().copied()).filter(is_member).collect();
        let unknown = self.shared.listed.iter().filter(|listed| {
            let names = [listed.name(), now(listed)];
            !names.iter().any(is_member)
        });
        let mut asked =
            Asked::each(unknown, |authority| async move { Some(authority.shards().first()?.status().await) });
        let mut claims: BTreeMap<AuthorityName, Vec<AuthorityName>> = BTreeMap::new();
        while let Some((listed, answer)) = asked.next(deadline).await {
            let Some(Ok(status)) = answer else { continue };
            if is_member(&status.authority) && !taken.contains(&status.authority) {
                claims.entry(status.authority).or_default().push(listed);
            }
        }
        for (name, claimants) in claims {
            match claimants.as_slice() {
                [listed] => drop(names.insert(*listed, name)),
                _ => tracing::warn!(authority = %name, "several endpoints claim to be the same authority"),
            }
        }
        names
    }

    /// The present name of an endpoint that was asked under this name: of a member that has changed its keys, its new one.
    pub(crate) fn present_name(&self, name: AuthorityName) -> AuthorityName {
        let known = self.known();
        let is_member = |name: &AuthorityName| known.committees.current().member(name).is_some();
        let is_found = |name: &AuthorityName| self.is_listed(name) || known.told.contains_key(name);
        match known.names.get(&name) {
            Some(now) if !is_member(&name) && is_member(now) && !is_found(now) => *now,
            _ => name,
        }
    }
}
