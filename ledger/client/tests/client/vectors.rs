//! `vectors/ledger-reads.json`: what a browser is told of a ledger, reads of a committee's entries in seven of its states,
//! and reads that are not to be believed. It is built here from fixed keys, by the real rules, and must equal the file in
//! the tree; the SDK judges the same reads.
//!
//! After a change that is meant: `UPDATE_VECTORS=1 cargo test --workspace --test client -- vectors`.

use alloy_primitives::{B256, Bytes, keccak256};
use fastpay_core::{
    AccountId, AccountKey, Amount, Asset, AuthorityKeys, Committee, Digest, Epoch, PrimaryAddress, Redemption,
    SequenceNumber, UnlockVote,
};
use fastpay_ledger_client::scripted::{CLUSTER, COMMITTEE, History, ScriptedLedger};
use fastpay_ledger_client::{DescribedMember, Description};
use fastpay_ledger_statement::{
    Action, ClusterId, Deployment, Evidence, Header, Height, Layout, MemberIndex, MemberKeys, QuorumCertificate,
    ReadProof, StateKey, StateProof, StatementVerifier, Time, UnlockRequest, VoteKind, VoteStatement, Wire,
    branch_digest, key_bit, leaf_digest, value_digest,
};
use serde_json::{Value, json};

/// The keys of four authorities, as the SDK's tests make them.
fn authorities(epoch: u64) -> Vec<AuthorityKeys> {
    let secret = |kind: &str, number: u8| keccak256(format!("{kind} epoch {epoch} {number}")).0;
    let keys = |number| AuthorityKeys::from_secrets(secret("voting", number), secret("redemption", number)).unwrap();
    let mut all: Vec<_> = (0..4).map(keys).collect();
    all.sort_by_key(|keys| keys.public().name);
    all
}

fn committee(epoch: u64) -> Committee {
    Committee::new(Epoch(epoch), authorities(epoch).iter().map(AuthorityKeys::public).collect()).unwrap()
}

/// Alice of the SDK's tests.
fn alice() -> AccountId {
    alices_key().account()
}

fn alices_key() -> AccountKey {
    AccountKey::ed25519(keccak256("alice").0)
}

fn keys() -> [StateKey; 8] {
    [
        StateKey::Epoch(COMMITTEE),
        StateKey::EventIndex(COMMITTEE),
        StateKey::Committee(COMMITTEE, Epoch(1)),
        StateKey::Committee(COMMITTEE, Epoch(2)),
        StateKey::Omnibus(COMMITTEE, Asset::ETHER),
        StateKey::Spent(COMMITTEE, alice(), SequenceNumber(0)),
        StateKey::Spent(COMMITTEE, alice(), SequenceNumber(1)),
        StateKey::Unlock(COMMITTEE, alice(), SequenceNumber(1)),
    ]
}

fn bytes(encoded: Vec<u8>) -> Bytes {
    encoded.into()
}

fn key_bytes(key: &StateKey) -> Bytes {
    bytes(borsh::to_vec(key).unwrap())
}

fn judge(layout: &Layout, key: &StateKey, encoding: &[u8]) -> Result<Option<Bytes>, String> {
    let proof = ReadProof::decode(encoding).map_err(|error| error.to_string())?;
    let (partition, members) = (layout.partition(), layout.members(CLUSTER).unwrap());
    let verifier = &mut StatementVerifier::default();
    let found = proof.verify(key, Time(0), partition, members, verifier, &mut rand::rng());
    found.map(|reading| reading.value.map(Bytes::from)).map_err(|error| error.to_string())
}

fn state(name: &str, layout: &Layout, history: &History) -> Value {
    let read = |key: &StateKey| {
        let proof = history.prove(key);
        let encoding = proof.encode();
        let value = judge(layout, key, &encoding).unwrap();
        assert_eq!(value, history.read(key).map(Bytes::from));
        json!({ "key": key_bytes(key), "encoding": bytes(encoding), "value": value })
    };
    let Header { height, time, .. } = history.prove(&StateKey::Epoch(COMMITTEE)).header;
    json!({ "name": name, "height": height, "time": time, "reads": keys().iter().map(read).collect::<Vec<_>>() })
}

/// Votes of the first members for a header, as for one of their ledger and cluster, whatever it says.
fn votes(layout: &Layout, header: &Header, kind: VoteKind, count: u8) -> QuorumCertificate {
    let mut keys: Vec<_> = (1..=4_u8).map(|seed| MemberKeys::from_seed([seed; 32])).collect();
    keys.sort_by_key(MemberKeys::public);
    let (deployment, cluster, height, value) = (layout.deployment(), CLUSTER, header.height, Some(header.id()));
    let digest = VoteStatement { deployment, cluster, height, round: 0, kind, value }.digest();
    let votes = (0..count).map(|member| (MemberIndex(member), keys[usize::from(member)].sign(digest))).collect();
    QuorumCertificate { round: 0, votes }
}

/// Traitors certify a root to which this leads from a key, whether or not it is about that key.
fn certified(layout: &Layout, mut header: Header, key: &StateKey, proof: StateProof, end: Digest) -> Vec<u8> {
    let key = key.digest();
    let up = |hash: Digest, (depth, sibling): (usize, &Digest)| match key_bit(&key, depth) {
        true => branch_digest(sibling, &hash),
        false => branch_digest(&hash, sibling),
    };
    header.state = proof.siblings.iter().enumerate().rev().fold(end, up);
    ReadProof { header, certificate: votes(layout, &header, VoteKind::Precommit, 3), proof }.encode()
}

/// The read of the only entry of a state that traitors certify.
fn lone(layout: &Layout, header: Header, key: &StateKey, value: Vec<u8>) -> Vec<u8> {
    let end = leaf_digest(key.digest(), value_digest(&value));
    certified(layout, header, key, StateProof { evidence: Evidence::Present(value), siblings: Vec::new() }, end)
}

fn altered(layout: &Layout, history: &History, key: &StateKey, about: &str) -> Vec<Value> {
    let honest = history.prove(key);
    let alter = |alter: &dyn Fn(&mut ReadProof)| {
        let mut proof = honest.clone();
        alter(&mut proof);
        proof.encode()
    };
    let Evidence::Present(value) = &honest.proof.evidence else { panic!("{key:?} is there") };
    let other_value = || {
        let mut value = value.clone();
        *value.last_mut().unwrap() ^= 1;
        Evidence::Present(value)
    };
    let elsewhere = Deployment(Digest::repeat_byte(0xee));
    let zero = Digest::ZERO;
    let other = Evidence::Other { key: key.digest(), value: zero };
    // The votes are valid for what the header says.
    let of_other = |change: &dyn Fn(&mut Header)| {
        alter(&|p| {
            change(&mut p.header);
            p.certificate = votes(layout, &p.header, VoteKind::Precommit, 3);
        })
    };
    let mut off_path = key.digest();
    off_path.0[0] ^= 0x80;
    let forged = |evidence: Evidence, siblings: usize| {
        let end = match &evidence {
            Evidence::Present(value) => leaf_digest(key.digest(), value_digest(value)),
            Evidence::Nothing => zero,
            Evidence::Other { key, value } => leaf_digest(*key, *value),
        };
        let siblings = vec![Digest::repeat_byte(5); siblings];
        certified(layout, honest.header, key, StateProof { evidence, siblings }, end)
    };
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("another value", alter(&|p| p.proof.evidence = other_value())),
        ("said to be absent", alter(&|p| p.proof.evidence = Evidence::Nothing)),
        ("said to be another entry", alter(&|p| p.proof.evidence = other.clone())),
        ("another sibling", alter(&|p| p.proof.siblings[0].0[0] ^= 1)),
        ("a sibling left out", alter(&|p| p.proof.siblings.truncate(p.proof.siblings.len() - 1))),
        ("a sibling more", alter(&|p| p.proof.siblings.push(Digest::ZERO))),
        ("siblings in another order", alter(&|p| p.proof.siblings.reverse())),
        ("more siblings than a hash has bits", alter(&|p| p.proof.siblings = vec![Digest::ZERO; 257])),
        ("another root", alter(&|p| p.header.state.0[0] ^= 1)),
        ("another height", alter(&|p| p.header.height = Height(p.header.height.0 + 1))),
        ("another time", alter(&|p| p.header.time = Time(p.header.time.0 + 1))),
        ("another round", alter(&|p| p.certificate.round += 1)),
        ("another signature of the maker", alter(&|p| p.header.signature.0[0] ^= 1)),
        ("a signature of another vote", alter(&|p| p.certificate.votes[2].1 = p.certificate.votes[1].1)),
        ("too few votes", alter(&|p| p.certificate.votes.truncate(2))),
        ("a vote more", alter(&|p| p.certificate.votes.push((MemberIndex(3), p.certificate.votes[0].1)))),
        ("a repeated voter", alter(&|p| p.certificate.votes[2] = p.certificate.votes[1])),
        ("votes in another order", alter(&|p| p.certificate.votes.reverse())),
        ("an unknown voter", alter(&|p| p.certificate.votes[2].0 = MemberIndex(4))),
        ("prevotes", alter(&|p| p.certificate = votes(layout, &p.header, VoteKind::Prevote, 3))),
        ("the votes of all members", alter(&|p| p.certificate = votes(layout, &p.header, VoteKind::Precommit, 4))),
        ("another deployment", of_other(&|header| header.deployment = elsewhere)),
        ("another cluster", of_other(&|header| header.cluster = ClusterId(2))),
        ("an entry that is not on the path", forged(Evidence::Other { key: off_path, value: zero }, 1)),
        ("the entry itself as another one", forged(Evidence::Other { key: key.digest(), value: zero }, 1)),
        ("more siblings than bits, which lead to the root", forged(honest.proof.evidence.clone(), 257)),
        ("the read of another key", history.prove(&StateKey::Epoch(COMMITTEE)).encode()),
        ("another version", [&[2], &honest.encode()[1..]].concat()),
        ("a byte more", [&*honest.encode(), &[0]].concat()),
        ("a byte less", honest.encode().split_last().unwrap().1.to_vec()),
        ("nothing", Vec::new()),
    ];
    let case = |(name, encoding): (&str, Vec<u8>)| {
        let error = judge(layout, key, &encoding).expect_err(name);
        json!({ "name": format!("{about}: {name}"), "key": key_bytes(key), "encoding": bytes(encoding), "error": error })
    };
    cases.into_iter().map(case).collect()
}

async fn build() -> Value {
    let bank = AccountKey::ed25519([1; 32]);
    let ledger = ScriptedLedger::start(&committee(0), &bank, Time(1_800_000_000_000)).await;
    let layout = ledger.network().layout(CLUSTER).unwrap();
    let mut history = ledger.history().clone();
    let mut states = vec![state("open", &layout, &history)];
    history.fund(&bank, &[(alice(), 100)]);
    states.push(state("funded", &layout, &history));
    let mut refused = altered(&layout, &history, &StateKey::Omnibus(COMMITTEE, Asset::ETHER), "the omnibus");
    let redemption = Redemption {
        sender: alice(),
        recipient: PrimaryAddress::with_last_byte(0xaa),
        asset: Asset::ETHER,
        amount: Amount(30),
        fee: Amount::ZERO,
        sequence: SequenceNumber(0),
        memo: B256::ZERO,
    };
    history.redeem(&bank, &authorities(0), Epoch(0), &redemption).unwrap();
    states.push(state("redeemed", &layout, &history));
    // Alice has the ledger unlock her next number. All members void it at once.
    let (domain, account, sequence) = (history.domain(), alice(), SequenceNumber(1));
    let authorization = alices_key().authorize(domain.unlock_request_digest(account, sequence));
    let request = UnlockRequest { committee: COMMITTEE, account, sequence, authorization };
    history.act(&bank, Action::RequestUnlock(request)).unwrap();
    states.push(state("requested", &layout, &history));
    let (unanimous, vote) = (true, UnlockVote::Void { unanimous: true });
    let votes = authorities(0).iter().map(|keys| vote.sign(keys, &domain, Epoch(0), account, sequence)).collect();
    history.act(&bank, Action::Void { committee: COMMITTEE, account, sequence, unanimous, votes }).unwrap();
    states.push(state("voided", &layout, &history));
    let (before, next) = (authorities(0), authorities(1));
    history.rotate(&bank, &before, (&committee(1), &next), Epoch(1)).unwrap();
    states.push(state("rotated", &layout, &history));
    refused.extend(altered(&layout, &history, &StateKey::Committee(COMMITTEE, Epoch(1)), "the committee"));
    // The keys of epoch 1 were out.
    let after = authorities(2);
    history.rotate(&bank, &next, (&committee(2), &after), Epoch(1)).unwrap();
    states.push(state("compromised", &layout, &history));

    // What no honest cluster certifies: proven, and not what the key demands.
    let header = history.prove(&StateKey::Epoch(COMMITTEE)).header;
    let [epoch, omnibus] = [StateKey::Epoch(COMMITTEE), StateKey::Omnibus(COMMITTEE, Asset::ETHER)];
    let of_epoch_1 = StateKey::Committee(COMMITTEE, Epoch(1));
    let absurd: Vec<_> = [
        ("the committee of another epoch", &of_epoch_1, borsh::to_vec(&committee(2)).unwrap()),
        ("an epoch with a byte more", &epoch, [&*history.read(&epoch).unwrap(), &[0]].concat()),
        ("an epoch with another option", &epoch, [&[0_u8; 16][..], &[2], &[0; 32]].concat()),
        ("a balance of 31 bytes", &omnibus, vec![0; 31]),
    ]
    .into_iter()
    .map(|(name, key, value)| {
        let encoding = lone(&layout, header, key, value);
        judge(&layout, key, &encoding).unwrap();
        json!({ "name": name, "key": key_bytes(key), "encoding": bytes(encoding) })
    })
    .collect();

    let mut description = ledger.network().describe(COMMITTEE).unwrap();
    // The ports of this run are no part of the vectors.
    for (at, DescribedMember { http, .. }) in description.members.iter_mut().enumerate() {
        *http = format!("http://member-{at}.example");
    }
    let Description { contract, .. } = description;
    assert_eq!(contract, history.domain().contract());
    let deployment: B256 = layout.deployment().0;
    json!({ "description": description, "deployment": deployment, "states": states, "refused": refused, "absurd": absurd })
}

#[tokio::test]
async fn the_reads_for_browsers_are_what_the_code_proves_and_refuses() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/ledger-reads.json");
    let text = serde_json::to_string_pretty(&build().await).unwrap() + "\n";
    if std::env::var_os("UPDATE_VECTORS").is_some() {
        std::fs::write(path, &text).unwrap();
    }
    let found = std::fs::read_to_string(path).unwrap();
    assert!(
        found == text,
        "vectors/ledger-reads.json is not what the code builds; if that is meant, set UPDATE_VECTORS=1"
    );
}

#[tokio::test]
async fn a_committee_that_is_not_in_the_genesis_is_not_described() {
    let bank = AccountKey::ed25519([1; 32]);
    let ledger = ScriptedLedger::start(&committee(0), &bank, Time(0)).await;
    assert_eq!(ledger.network().describe(fastpay_ledger_statement::CommitteeNumber(1)), None);
}
