//! `endpoints.json`: what members sign to say where they can be reached, and whether each counts.

use alloy_primitives::{B256, Bytes};
use fastpay_core::{
    Authority, AuthorityName, Committee, Committees, ENDPOINT_BYTES_MAX, Ed25519Signature, Epoch, MemberEndpoint,
    SignedEndpoint,
};
use fastpay_testkit::{TestCommittee, test_domain};
use serde::{Deserialize, Serialize};

use super::{json, pinned};

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct File {
    domain: json::Domain,
    /// Of each epoch.
    committees: Vec<Vec<Authority>>,
    endpoints: Vec<Case>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Case {
    name: String,
    authority: B256,
    number: String,
    shards: Vec<String>,
    /// Empty: none.
    http: String,
    /// Empty: none.
    tls_ca: String,
    /// What the member signs.
    digest: B256,
    signature: Bytes,
    valid: bool,
}

impl Case {
    fn of(name: &str, signed: &SignedEndpoint, valid: bool) -> Self {
        let SignedEndpoint { endpoint, authority, signature } = signed.clone();
        let digest = test_domain().member_endpoint_digest(&endpoint);
        let MemberEndpoint { number, shards, http, tls_ca } = endpoint;
        Self {
            name: name.into(),
            authority: authority.0.into(),
            number: number.to_string(),
            shards,
            http,
            tls_ca,
            digest,
            signature: signature.0.into(),
            valid,
        }
    }

    fn read(&self) -> SignedEndpoint {
        let endpoint = MemberEndpoint {
            number: self.number.parse().unwrap(),
            shards: self.shards.clone(),
            http: self.http.clone(),
            tls_ca: self.tls_ca.clone(),
        };
        let signature = Ed25519Signature(self.signature.as_ref().try_into().unwrap());
        SignedEndpoint { endpoint, authority: AuthorityName(self.authority.0), signature }
    }
}

#[test]
fn endpoints() {
    let file = pinned("endpoints.json", &build());
    let domain = file.domain.read();
    let mut committees = (0..).map(Epoch).zip(file.committees).map(|(epoch, members)| Committee::new(epoch, members));
    let mut known = Committees::new(committees.next().unwrap().unwrap()).unwrap();
    committees.for_each(|committee| known.install(committee.unwrap()).unwrap());
    for case in file.endpoints {
        let signed = case.read();
        assert_eq!(domain.member_endpoint_digest(&signed.endpoint), case.digest, "{}", case.name);
        assert_eq!(signed.verify(&domain, &known).is_ok(), case.valid, "{}", case.name);
    }
}

fn build() -> File {
    let first = TestCommittee::new(4);
    let (second, third) = (first.rotated(), first.rotated().rotated());
    let endpoint = |number, shards: &[&str], http: &str, tls_ca: &str| MemberEndpoint {
        number,
        shards: shards.iter().map(|shard| (*shard).to_owned()).collect(),
        http: http.into(),
        tls_ca: tls_ca.into(),
    };
    let sign = |endpoint: MemberEndpoint, committee: &TestCommittee| {
        endpoint.sign(&committee.keys[1], &test_domain()).unwrap()
    };
    let whole = endpoint(
        1_790_000_000,
        &["https://a.example:9000", "https://a.example:9001"],
        "https://a.example:9100",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n",
    );
    let small = endpoint(1, &["http://10.0.0.1:9000"], "", "");
    let good = sign(whole.clone(), &third);
    let altered = |alter: &dyn Fn(&mut SignedEndpoint)| {
        let mut signed = good.clone();
        alter(&mut signed);
        signed
    };
    // What nobody accepts, with the signature of what it was made from: `sign` refuses to sign it.
    let endpoints = vec![
        Case::of("of a present member", &good, true),
        Case::of("without what may be absent", &sign(small.clone(), &third), true),
        Case::of("of a member of the committee before", &sign(small.clone(), &second), true),
        Case::of("of a member of an earlier committee", &sign(small, &first), false),
        Case::of(
            "under another member's name",
            &altered(&|signed| signed.authority = third.keys[2].public().name),
            false,
        ),
        Case::of("another number", &altered(&|signed| signed.endpoint.number += 1), false),
        Case::of("another address", &altered(&|signed| signed.endpoint.shards[0].push('0')), false),
        Case::of("the addresses in another order", &altered(&|signed| signed.endpoint.shards.reverse()), false),
        Case::of("another certificate authority", &altered(&|signed| signed.endpoint.tls_ca.clear()), false),
        Case::of("no shard", &altered(&|signed| signed.endpoint.shards.clear()), false),
        Case::of(
            "an address of another kind",
            &altered(&|signed| signed.endpoint.http = "ftp://a.example".into()),
            false,
        ),
        Case::of("too long", &altered(&|signed| signed.endpoint.tls_ca = "x".repeat(ENDPOINT_BYTES_MAX)), false),
    ];
    let committees = [&first, &second, &third].map(|of| of.committee.members().to_vec()).to_vec();
    File { domain: test_domain().into(), committees, endpoints }
}
