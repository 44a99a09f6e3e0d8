//! A client of one authority: all its shards.

use fastpay_core::{
    AccountId, AuthorityName, Certificate, MemberEndpoint, Pruned, ShardLayout, SignedEndpoint, VerifiedEndpoint,
};
use fastpay_rpc::{PAGE_ENTRIES_MAX, TransferName};

use super::{ClientError, ClientOptions, ShardClient};
use crate::endpoints::AuthorityEndpoints;

/// A client of one authority. Requests about an account go straight to the shard that owns it there.
#[derive(Clone, Debug)]
pub struct AuthorityClient {
    name: AuthorityName,
    layout: ShardLayout,
    shards: Vec<ShardClient>,
}

impl AuthorityClient {
    /// Connects lazily to all shards of an authority. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// If an address is malformed, no shard is listed, or the certificate authority's file cannot be read.
    pub fn new(endpoints: &AuthorityEndpoints, options: ClientOptions) -> Result<Self, ClientError> {
        let wrong = |reason: &str| ClientError::Address { address: endpoints.name.to_string(), reason: reason.into() };
        let tls_ca = match &endpoints.tls_ca {
            None => None,
            Some(path) => Some(std::fs::read_to_string(path).map_err(|e| wrong(&format!("{}: {e}", path.display())))?),
        };
        Self::at(endpoints.name, &endpoints.shards, tls_ca.as_deref(), options)
    }

    /// Connects lazily to all shards of a member, where it says that they are. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// If an address or the certificate authority is malformed.
    pub fn of_member(member: &VerifiedEndpoint, options: ClientOptions) -> Result<Self, ClientError> {
        let MemberEndpoint { shards, tls_ca, .. } = member.endpoint();
        let tls_ca = Some(tls_ca.as_str()).filter(|pem| !pem.is_empty());
        Self::at(member.authority(), shards, tls_ca, options)
    }

    fn at(
        name: AuthorityName,
        shards: &[String],
        tls_ca: Option<&str>,
        options: ClientOptions,
    ) -> Result<Self, ClientError> {
        let shards = shards.iter().map(|address| ShardClient::new(address, tls_ca, options));
        Self::of(name, shards.collect::<Result<_, _>>()?)
    }

    /// A client of the authority `name`, from the clients of all its shards, in order.
    ///
    /// # Errors
    /// If there is no shard.
    pub fn of(name: AuthorityName, shards: Vec<ShardClient>) -> Result<Self, ClientError> {
        let none = || ClientError::Address { address: name.to_string(), reason: "no shard is listed".into() };
        let count = u32::try_from(shards.len()).ok().and_then(std::num::NonZeroU32::new).ok_or_else(none)?;
        Ok(Self { name, layout: ShardLayout::new(count), shards })
    }

    /// Where members can be reached, as they say themselves, unverified; none from an earlier release. A member that asks
    /// gives its `own` endpoint.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn endpoints(&self, own: Option<&SignedEndpoint>) -> Result<Vec<SignedEndpoint>, ClientError> {
        self.shards.first().ok_or(ClientError::NotFound)?.endpoints(own).await
    }

    /// The authority's name, as the file of endpoints gives it.
    #[must_use]
    pub fn name(&self) -> AuthorityName {
        self.name
    }

    /// The same authority under another name: it may have changed its keys since the file was written.
    #[must_use]
    pub fn named(&self, name: AuthorityName) -> Self {
        Self { name, ..self.clone() }
    }

    /// Returns those of the named certificates that the authority has confirmed and keeps, in the order of the names. One
    /// that it pruned is absent, like one that it never had: another authority may show it.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn certificates(&self, names: &[TransferName]) -> Result<Vec<Certificate>, ClientError> {
        // Any shard answers for all of its authority.
        let shard = self.shards.first().ok_or(ClientError::NotFound)?;
        let (mut rest, mut found) = (names, Vec::new());
        while !rest.is_empty() {
            let page = rest.get(..PAGE_ENTRIES_MAX as usize).unwrap_or(rest);
            let looked_up = match shard.certificates(page).await {
                Ok(answer) => {
                    found.extend(answer.found);
                    answer.looked_up
                }
                // The first of them is pruned, and of its account all below the first that is kept.
                Err(ClientError::Pruned(Pruned { first, .. })) => {
                    let account = rest.first().map(|(account, _)| *account);
                    let is_pruned = |(of, sequence): &TransferName| Some(*of) == account && sequence.0 < first;
                    rest.iter().take_while(|name| is_pruned(name)).count().max(1)
                }
                Err(error) => return Err(error),
            };
            rest = rest.get(looked_up..).unwrap_or_default();
        }
        Ok(found)
    }

    /// Its shards, from the first.
    #[must_use]
    pub fn shards(&self) -> &[ShardClient] {
        &self.shards
    }

    /// The shard that owns `account` at this authority.
    #[must_use]
    pub fn shard_of(&self, account: &AccountId) -> &ShardClient {
        let index = self.layout.shard_of(account).0 as usize;
        self.shards.get(index).expect("the layout has as many shards as the list")
    }
}
