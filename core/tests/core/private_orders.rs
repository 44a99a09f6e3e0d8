//! Private orders for tests of the rules, and checks of proofs that stand in for the real one, which needs a prover.
//! `private/tests` has the rules with real proofs.

use fastpay_core::private::*;
use fastpay_core::{
    AccountId, Amount, Asset, AuthorityKeys, Digest, Domain, Epoch, SequenceNumber, VerifiedVote, Vote,
    sign_payment_votes,
};
use fastpay_testkit::TestCommittee;

/// Under which the orders are proved.
pub const VERSIONS: Versions = Versions { committee: 3, oldest_rules: 5, newest_rules: 7 };

/// A nullifier with this number.
pub fn nullifier(number: u64) -> Nullifier {
    let mut bytes = [0; 32];
    bytes[24..].copy_from_slice(&number.to_be_bytes());
    Nullifier(bytes.into())
}

/// A transfer of ether that spends these nullifiers and withdraws an amount.
pub fn transfer(account: u64, coin: u64, amount_out: u128) -> PrivateTransfer {
    let recipient = if amount_out == 0 { AccountId::ZERO } else { AccountId([0xaa; 32]) };
    PrivateTransfer {
        committee: VERSIONS.committee,
        rules: VERSIONS.newest_rules,
        asset: Asset::ETHER,
        account_spent: nullifier(account),
        sequence: SequenceNumber(0),
        coin_spent: nullifier(coin),
        account: [1; 32].into(),
        coin: [2; 32].into(),
        amount_out: Amount(amount_out),
        recipient,
        memo: [0; 32].into(),
        notes_hash: notes_hash(&NOTES.0, &NOTES.1),
    }
}

const NOTES: ([u8; PAYMENT_NOTE_BYTES], [u8; OWN_NOTE_BYTES]) = ([8; PAYMENT_NOTE_BYTES], [9; OWN_NOTE_BYTES]);

/// The order of a transfer, with a proof that [`Bound`] accepts.
pub fn proven(domain: &Domain, transfer: PrivateTransfer) -> ProvenOrder {
    let mut proof = [0; PROOF_BYTES];
    proof[..32].copy_from_slice(domain.private_transfer_digest(&transfer).as_slice());
    ProvenOrder { order: PrivateOrder { transfer, payment_note: NOTES.0, own_note: NOTES.1 }, proof }
}

/// Accepts a proof that begins with the transfer's digest.
pub struct Bound;

impl ProofCheck for Bound {
    fn check(&self, claims: &[ProofClaim<'_>]) -> Vec<Result<(), ProofError>> {
        let is_bound = |claim: &ProofClaim<'_>| claim.proof[..32] == claim.digest[..];
        claims.iter().map(|claim| if is_bound(claim) { Ok(()) } else { Err(ProofError::BadProof) }).collect()
    }
}

/// Accepts the request that a nullifier's owner authorizes by [`authorization`].
pub struct Owner;

impl OwnershipCheck for Owner {
    fn is_owner(&self, nullifier: Nullifier, request: Digest, proof: &[u8; PROOF_BYTES]) -> bool {
        proof[..32] == request[..] && proof[32..64] == nullifier.0[..]
    }
}

/// The authorization of a request to unlock a number of a nullifier.
pub fn authorization(domain: &Domain, nullifier: Nullifier, sequence: SequenceNumber) -> Vec<u8> {
    let request = domain.unlock_request_digest(nullifier.account(), sequence);
    let mut proof = [0; PROOF_BYTES];
    proof[..32].copy_from_slice(request.as_slice());
    proof[32..64].copy_from_slice(nullifier.0.as_slice());
    [nullifier.0.as_slice(), &proof].concat()
}

/// The order as verified.
pub fn verified(domain: &Domain, transfer: PrivateTransfer) -> VerifiedPrivateOrder {
    let checked = proven(domain, transfer).check(domain).expect("a good order");
    verify_proofs(vec![checked], &Bound).remove(0).expect("a good proof")
}

/// A vote by the holder of these keys, whatever the order is.
pub fn vote(keys: &AuthorityKeys, domain: &Domain, epoch: Epoch, order: &VerifiedPrivateOrder) -> Vote {
    sign_payment_votes(keys, domain, epoch, &[order.digest()]).expect("one digest").0.remove(0)
}

/// The verified votes of these members.
pub fn votes(committee: &TestCommittee, order: &VerifiedPrivateOrder, members: &[usize]) -> Vec<VerifiedVote> {
    let TestCommittee { domain, committee, keys } = committee;
    let vote = |member: &usize| vote(&keys[*member], domain, committee.epoch(), order);
    let verify = |vote| order.verify_vote(vote, domain, committee).expect("a good vote");
    members.iter().map(|member| verify(vote(member))).collect()
}

/// The certificate of an order with the votes of the first members that form a quorum.
pub fn certified(committee: &TestCommittee, order: &VerifiedPrivateOrder) -> VerifiedPrivateCertificate {
    let members: Vec<usize> = (0..committee.committee.quorum()).collect();
    PrivateCertificate::from_votes(order, &committee.committee, &votes(committee, order, &members)).expect("a quorum")
}
