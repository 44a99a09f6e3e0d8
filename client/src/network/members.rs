//! Finds members that the endpoints file does not list: each says itself where it can be reached, signed by its key, and
//! all authorities tell what members told them.
//!
//! A member has the higher number's endpoint. A false one costs availability alone, and that of its own member: nobody
//! else can sign it, and every answer is verified.

use std::collections::BTreeMap;

use fastpay_core::{AuthorityName, SignedEndpoint, VerifiedEndpoint};
use tokio::time::Instant;

use super::{Known, Network};
use crate::AuthorityClient;

/// How often authorities are asked: those that are found may know of others.
const ROUNDS_MAX: usize = 3;

/// Where members can be reached, with a client of each.
pub(super) type Told = BTreeMap<AuthorityName, (VerifiedEndpoint, AuthorityClient)>;

impl Network {
    /// Takes over where members say that they can be reached, as far as it counts and is newer than what is known of
    /// them. Returns whether there was any.
    pub fn learn(&self, endpoints: impl IntoIterator<Item = SignedEndpoint>) -> bool {
        let mut known = self.shared.known.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        let Known { committees, names, mut told, .. } = known.clone();
        let mut is_new = false;
        for signed in endpoints {
            let (name, number) = (signed.authority, signed.endpoint.number);
            if self.is_listed(&name) {
                continue;
            }
            if told.get(&name).is_some_and(|(known, _)| known.endpoint().number >= number) {
                continue;
            }
            let endpoint = match signed.verify(&self.shared.domain, &committees) {
                Ok(endpoint) => endpoint,
                Err(error) => {
                    tracing::debug!(%error, "an endpoint is not taken over");
                    continue;
                }
            };
            match AuthorityClient::of_member(&endpoint, self.shared.options) {
                Ok(client) => {
                    told.insert(name, (endpoint, client));
                    is_new = true;
                }
                Err(error) => tracing::warn!(authority = %name, %error, "a member's endpoint cannot be used"),
            }
        }
        if is_new {
            *known = Known::new(committees, names, told, &self.shared.listed);
        }
        is_new
    }

    /// Where members say that they can be reached, to be kept.
    #[must_use]
    pub fn told(&self) -> Vec<SignedEndpoint> {
        self.known().told.values().map(|(endpoint, _)| endpoint.signed().clone()).collect()
    }

    /// The current members without an address.
    #[must_use]
    pub fn unreached(&self) -> Vec<AuthorityName> {
        let known = self.known();
        let members = known.committees.current().members().iter().map(|member| member.name);
        let is_reached = |name: &AuthorityName| known.authorities.iter().any(|authority| authority.name() == *name);
        members.filter(|name| !is_reached(name)).collect()
    }

    /// Whether the endpoints file lists all current members under their present names.
    #[must_use]
    pub fn is_all_listed(&self) -> bool {
        self.committee().members().iter().all(|member| self.is_listed(&member.name))
    }

    /// Whether the endpoints file lists each current member under its present name, or the member says itself where it is.
    /// For any other member, an endpoint may stand that falsely claims to be it.
    #[must_use]
    pub fn is_all_found(&self) -> bool {
        let known = self.known();
        let mut members = known.committees.current().members().iter().map(|member| member.name);
        members.all(|name| self.is_listed(&name) || known.told.contains_key(&name))
    }

    pub(super) fn is_listed(&self, name: &AuthorityName) -> bool {
        self.shared.listed.iter().any(|listed| listed.name() == *name)
    }

    /// Asks all authorities where the members are that the endpoints file does not list. Returns whether anything new is
    /// known.
    pub async fn find_members(&self, deadline: Instant) -> bool {
        let mut is_new = false;
        for _ in 0..ROUNDS_MAX {
            let answers = self.ask_all(deadline, |authority| async move { authority.endpoints(None).await }).await;
            if !self.learn(answers.into_iter().filter_map(|(_, answer)| answer.ok()).flatten()) {
                break;
            }
            is_new = true;
            if self.is_all_found() {
                break;
            }
        }
        is_new
    }
}
