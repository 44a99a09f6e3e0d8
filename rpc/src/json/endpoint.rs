//! Where members can be reached, in JSON: of the HTTP API, and as programs keep it.

use fastpay_core as core;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::text::{Bytes32, Bytes64, Decimal, Hex, Uint64};

/// Where members of the committee can be reached, as each of them says itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MemberEndpoints {
    /// Of members of the current committee and of the one before. One of each.
    #[schema(max_items = 510)]
    pub endpoints: Vec<MemberEndpoint>,
}

/// Where a member can be reached: the EIP-712 struct `MemberEndpoint`, signed by the member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MemberEndpoint {
    /// The Ed25519 key of the authority.
    pub authority: Bytes32,
    /// Of two endpoints of a member, the one with the higher number counts.
    pub number: Uint64,
    /// The gRPC address of each shard, from the first.
    #[schema(min_items = 1, max_items = 256)]
    pub shards: Vec<String>,
    /// The address of the JSON API; absent: none (an empty text in the signed struct).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<String>,
    /// The certificate authority (PEM) of the shards' TLS certificate; absent: none (an empty text in the signed struct).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_ca: Option<String>,
    /// By the authority's key, over the EIP-712 digest.
    pub signature: Bytes64,
}

impl MemberEndpoints {
    /// The endpoints, in the form to show or to keep.
    pub fn new<'a>(endpoints: impl IntoIterator<Item = &'a core::SignedEndpoint>) -> Self {
        Self { endpoints: endpoints.into_iter().map(Into::into).collect() }
    }

    /// The endpoints, unverified.
    pub fn read(self) -> impl Iterator<Item = core::SignedEndpoint> {
        self.endpoints.into_iter().map(Into::into)
    }
}

impl From<&core::SignedEndpoint> for MemberEndpoint {
    fn from(core::SignedEndpoint { endpoint, authority, signature }: &core::SignedEndpoint) -> Self {
        let core::MemberEndpoint { number, shards, http, tls_ca } = endpoint.clone();
        let some = |text: String| (!text.is_empty()).then_some(text);
        Self {
            authority: Hex(authority.0),
            number: Decimal(number),
            shards,
            http: some(http),
            tls_ca: some(tls_ca),
            signature: Hex(signature.0),
        }
    }
}

impl From<MemberEndpoint> for core::SignedEndpoint {
    fn from(of: MemberEndpoint) -> Self {
        let MemberEndpoint { authority, number, shards, http, tls_ca, signature } = of;
        let (http, tls_ca) = (http.unwrap_or_default(), tls_ca.unwrap_or_default());
        Self {
            endpoint: core::MemberEndpoint { number: number.0, shards, http, tls_ca },
            authority: core::AuthorityName(authority.0),
            signature: core::Ed25519Signature(signature.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_read_as_it_was_written() {
        for (http, tls_ca) in [("", ""), ("http://a:2", ""), ("http://a:2", "pem")] {
            let endpoint = core::MemberEndpoint {
                number: u64::MAX,
                shards: vec!["http://a:1".into()],
                http: http.into(),
                tls_ca: tls_ca.into(),
            };
            let (authority, signature) = (core::AuthorityName([7; 32]), core::Ed25519Signature([8; 64]));
            let signed = core::SignedEndpoint { endpoint, authority, signature };
            let text = serde_json::to_string(&MemberEndpoints::new([&signed])).unwrap();
            assert_eq!(text.contains("tlsCa"), !tls_ca.is_empty(), "{text}");
            let read: MemberEndpoints = serde_json::from_str(&text).unwrap();
            assert_eq!(read.read().collect::<Vec<_>>(), [signed]);
        }
    }
}
