//! Where members can be reached, to and from protobuf. What is decoded is unverified: [`SignedEndpoint::verify`].

use fastpay_core::{COMMITTEE_SIZE_MAX, ENDPOINT_BYTES_MAX, Ed25519Signature, MemberEndpoint, SignedEndpoint};

use crate::convert::{Malformed, array, authority_name, copy};
use crate::{MESSAGE_BYTES_MAX, proto};

/// The bytes of a member's endpoint beside its texts: name, number, signature, and the lengths of all fields.
const ENDPOINT_OVERHEAD: usize = 160;
/// The longest answer with members' endpoints, in bytes. Those of the largest committee fit into it.
pub const ENDPOINTS_BYTES_MAX: usize = COMMITTEE_SIZE_MAX * (ENDPOINT_BYTES_MAX + ENDPOINT_OVERHEAD);
/// An address has at least eight bytes, and two more for its tag and length; of 128 bytes or more, three.
const _: () = assert!(ENDPOINTS_BYTES_MAX / 4 * 5 < MESSAGE_BYTES_MAX);

/// As many endpoints, from the first, as fit into one answer.
pub fn endpoints_that_fit<'a>(
    endpoints: impl Iterator<Item = &'a SignedEndpoint>,
) -> impl Iterator<Item = &'a SignedEndpoint> {
    let mut left = ENDPOINTS_BYTES_MAX;
    endpoints.take_while(move |signed| {
        let MemberEndpoint { shards, http, tls_ca, .. } = &signed.endpoint;
        let texts = shards.iter().chain([http, tls_ca]).map(String::len);
        let length = texts.fold(ENDPOINT_OVERHEAD, usize::saturating_add);
        left.checked_sub(length).inspect(|rest| left = *rest).is_some()
    })
}

impl From<&SignedEndpoint> for proto::MemberEndpoint {
    fn from(SignedEndpoint { endpoint, authority, signature }: &SignedEndpoint) -> Self {
        let MemberEndpoint { number, shards, http, tls_ca } = endpoint.clone();
        Self { authority: copy(&authority.0), number, shards, http, tls_ca, signature: copy(&signature.0) }
    }
}

impl TryFrom<proto::MemberEndpoint> for SignedEndpoint {
    type Error = Malformed;
    fn try_from(endpoint: proto::MemberEndpoint) -> Result<Self, Malformed> {
        let proto::MemberEndpoint { authority, number, shards, http, tls_ca, signature } = endpoint;
        Ok(Self {
            authority: authority_name("authority", &authority)?,
            signature: Ed25519Signature(array("signature", &signature)?),
            endpoint: MemberEndpoint { number, shards, http, tls_ca },
        })
    }
}

impl TryFrom<proto::EndpointsResponse> for Vec<SignedEndpoint> {
    type Error = Malformed;
    fn try_from(response: proto::EndpointsResponse) -> Result<Self, Malformed> {
        if response.endpoints.len() > 2 * COMMITTEE_SIZE_MAX {
            return Err(Malformed::OutOfRange("endpoints"));
        }
        response.endpoints.into_iter().map(TryInto::try_into).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpay_core::{AuthorityName, ENDPOINT_SHARDS_MAX};
    use prost::Message as _;

    fn signed(texts: usize) -> SignedEndpoint {
        let endpoint = MemberEndpoint {
            number: u64::MAX,
            shards: vec!["http://a:1".into(); ENDPOINT_SHARDS_MAX],
            http: String::new(),
            tls_ca: "x".repeat(texts - 10 * ENDPOINT_SHARDS_MAX),
        };
        SignedEndpoint { endpoint, authority: AuthorityName([7; 32]), signature: Ed25519Signature([8; 64]) }
    }

    #[test]
    fn the_endpoints_of_the_largest_committee_fit_into_a_message_and_no_more_are_sent() {
        let all = vec![signed(ENDPOINT_BYTES_MAX); COMMITTEE_SIZE_MAX + 1];
        let fitting: Vec<_> = endpoints_that_fit(all.iter()).map(proto::MemberEndpoint::from).collect();
        assert_eq!(fitting.len(), COMMITTEE_SIZE_MAX);
        assert!(proto::EndpointsResponse { endpoints: fitting }.encoded_len() < MESSAGE_BYTES_MAX);
        let mut small = signed(10 * ENDPOINT_SHARDS_MAX);
        small.endpoint.shards.fill("http://a".into());
        let all = vec![small; 2 * COMMITTEE_SIZE_MAX];
        let fitting: Vec<_> = endpoints_that_fit(all.iter()).map(proto::MemberEndpoint::from).collect();
        assert!(fitting.len() > COMMITTEE_SIZE_MAX, "the shorter, the more");
        assert!(proto::EndpointsResponse { endpoints: fitting }.encoded_len() < MESSAGE_BYTES_MAX);
    }

    #[test]
    fn an_endpoint_is_read_as_it_was_written_and_nothing_of_another_length_is_one() {
        let written = proto::MemberEndpoint::from(&signed(ENDPOINT_BYTES_MAX));
        assert_eq!(SignedEndpoint::try_from(written.clone()), Ok(signed(ENDPOINT_BYTES_MAX)));
        let short = proto::MemberEndpoint { signature: copy(&[8; 63]), ..written.clone() };
        assert!(SignedEndpoint::try_from(short).is_err());
        let short = proto::MemberEndpoint { authority: copy(&[8; 31]), ..written.clone() };
        assert!(SignedEndpoint::try_from(short).is_err());
        let endpoints = vec![written; 2 * COMMITTEE_SIZE_MAX + 1];
        assert!(Vec::<SignedEndpoint>::try_from(proto::EndpointsResponse { endpoints }).is_err());
    }
}
