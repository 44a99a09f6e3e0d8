//! Where a member of a committee can be reached, as it says itself. A committee's list names keys and no addresses; with
//! this statement clients and members find a member that their own files do not list.
//!
//! A false address costs availability alone: every answer is verified like any other. So the statement names no epoch,
//! and it counts as long as its signer is a member.

use crate::amount::Epoch;
use crate::committee::Committee;
use crate::epochs::Committees;
use crate::identity::AuthorityName;
use crate::keys::AuthorityKeys;
use crate::signature::{Ed25519Signature, verify_ed25519};
use crate::statement::Domain;

/// The most bytes of all texts of an endpoint. Those of the largest committee fit into one message.
pub const ENDPOINT_BYTES_MAX: usize = 3_072;
/// The most shards of an authority.
pub const ENDPOINT_SHARDS_MAX: usize = 256;

/// The statement `MemberEndpoint`. It is public: anybody may show it to anybody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberEndpoint {
    /// Of two endpoints of a member, the one with the higher number counts.
    pub number: u64,
    /// The gRPC address of each shard, from the first: `http://host:port` or `https://host:port`.
    pub shards: Vec<String>,
    /// The address of the JSON API; empty: none.
    pub http: String,
    /// The certificate authority (PEM) that signed the TLS certificate of the shards; empty: none.
    pub tls_ca: String,
}

impl MemberEndpoint {
    /// Signs the endpoint as that of the holder of `keys`.
    ///
    /// # Errors
    /// [`EndpointError::Form`] if nobody would accept it.
    pub fn sign(self, keys: &AuthorityKeys, domain: &Domain) -> Result<SignedEndpoint, EndpointError> {
        self.check()?;
        let signature = keys.sign_ed25519(domain.member_endpoint_digest(&self));
        Ok(SignedEndpoint { endpoint: self, authority: keys.public().name, signature })
    }

    /// Checks its form.
    ///
    /// # Errors
    /// [`EndpointError::Form`] if nobody would accept it.
    pub fn check(&self) -> Result<(), EndpointError> {
        let Self { shards, http, tls_ca, .. } = self;
        let is_address = |text: &String| {
            let host = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
            host.is_some_and(|host| !host.is_empty() && !host.starts_with([':', '/', '?', '#']))
        };
        if shards.is_empty() || shards.len() > ENDPOINT_SHARDS_MAX {
            return Err(EndpointError::Form("it must have 1 to 256 shards"));
        }
        if !shards.iter().all(is_address) || !(http.is_empty() || is_address(http)) {
            return Err(EndpointError::Form("an address must be http:// or https:// and a host"));
        }
        let texts = shards.iter().chain([http, tls_ca]);
        if texts.map(String::len).fold(0, usize::saturating_add) > ENDPOINT_BYTES_MAX {
            return Err(EndpointError::Form(
                "more than 3,072 bytes of addresses and certificate authority: give the root alone in `tlsCa`",
            ));
        }
        Ok(())
    }
}

/// An endpoint with its member's signature, not yet checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedEndpoint {
    /// The endpoint.
    pub endpoint: MemberEndpoint,
    /// The member.
    pub authority: AuthorityName,
    /// By its Ed25519 key.
    pub signature: Ed25519Signature,
}

impl SignedEndpoint {
    /// Checks that a member of the current committee, or of the one before, signed this.
    ///
    /// # Errors
    /// See [`EndpointError`].
    pub fn verify(self, domain: &Domain, committees: &Committees) -> Result<VerifiedEndpoint, EndpointError> {
        let authority = self.authority;
        if !is_recent_member(committees, &authority) {
            return Err(EndpointError::NotAMember(authority));
        }
        self.endpoint.check()?;
        if !verify_ed25519(&authority.0, &self.signature, domain.member_endpoint_digest(&self.endpoint)) {
            return Err(EndpointError::Signature(authority));
        }
        Ok(VerifiedEndpoint(self))
    }
}

/// Whether the endpoint of this authority is kept: it is a member of the current committee, or of the one before, which
/// hands over.
#[must_use]
pub fn is_recent_member(committees: &Committees, authority: &AuthorityName) -> bool {
    let is_in = |committee: &Committee| committee.member(authority).is_some();
    let before = committees.current().epoch().0.checked_sub(1).map(Epoch);
    is_in(committees.current()) || before.and_then(|epoch| committees.get(epoch)).is_some_and(|before| is_in(before))
}

/// An endpoint that its member signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedEndpoint(SignedEndpoint);

impl VerifiedEndpoint {
    /// The endpoint, to be shown to others.
    #[must_use]
    pub fn signed(&self) -> &SignedEndpoint {
        &self.0
    }

    /// The endpoint.
    #[must_use]
    pub fn endpoint(&self) -> &MemberEndpoint {
        &self.0.endpoint
    }

    /// The member.
    #[must_use]
    pub fn authority(&self) -> AuthorityName {
        self.0.authority
    }
}

/// Why an endpoint is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// It is not that of a present or the last former member.
    #[error("{0} is a member neither of the current committee nor of the one before")]
    NotAMember(AuthorityName),
    /// It is malformed.
    #[error("the endpoint is malformed: {0}")]
    Form(&'static str),
    /// Its member did not sign it.
    #[error("the endpoint of {0} is not signed by its key")]
    Signature(AuthorityName),
}
