//! Those who sign: owners of reserves, and the authorities of a FastPay committee.

use fastpay_core::{
    AccountId, AccountKey, Amount, Asset, AuthorityKeys, Committee, ContractVote, CouncilStatement, Digest, Domain,
    Epoch, PossessionProof, PrimaryAddress, Redemption, SequenceNumber, UnlockVote, VoteSignature, sign_batch_vote,
    sign_council_vote, sign_redemption_vote,
};
use fastpay_ledger_statement::{
    Action, Announced, Announcing, NextCommittee, Outcome, Rejection, StateKey, UnlockRequest,
};

use crate::world::{COMMITTEE, PARAMETERS, World};

pub struct Client {
    pub key: AccountKey,
}

impl Client {
    pub fn new(at: u8) -> Self {
        Self { key: client(at) }
    }
}

/// Every third owner has an Ed25519 key, so cannot be paid redemptions; the others have Ethereum keys.
pub fn client(at: u8) -> AccountKey {
    match at % 3 {
        2 => AccountKey::ed25519([at + 1; 32]),
        _ => AccountKey::ethereum([at + 1; 32]).unwrap(),
    }
}

/// The authorities of an epoch, in the order of their names.
pub fn authorities(epoch: u8) -> Vec<AuthorityKeys> {
    let keys = |member: u8| AuthorityKeys::from_secrets([100 + 4 * epoch + member; 32], [100 + 4 * epoch + member; 32]);
    let mut keys: Vec<_> = (0..4).map(|member| keys(member).unwrap()).collect();
    keys.sort_by_key(|keys| keys.public().name);
    keys
}

pub fn committee(epoch: u8) -> Committee {
    Committee::new(Epoch(epoch.into()), authorities(epoch).iter().map(AuthorityKeys::public).collect()).unwrap()
}

/// The guardian of epoch 0, by its number among the clients.
pub const GUARDIAN: u8 = 4;

/// The address of a client with an Ethereum key.
pub fn address(at: u8) -> PrimaryAddress {
    client(at).account().ethereum_address().unwrap()
}

pub fn account(at: u8) -> AccountId {
    AccountId::from_ed25519(&[at; 32])
}

pub fn redemption(sender: u8, sequence: u64, recipient: PrimaryAddress, amount: u128, fee: u128) -> Redemption {
    Redemption {
        sender: account(sender),
        recipient,
        asset: Asset::ETHER,
        amount: Amount(amount),
        fee: Amount(fee),
        sequence: SequenceNumber(sequence),
        memo: Default::default(),
    }
}

/// A redemption with the votes of a quorum of an epoch.
pub fn certified(domain: &Domain, epoch: u8, redemption: Redemption) -> Action {
    let vote = |keys: &AuthorityKeys| {
        let (vote, _) = sign_redemption_vote(keys, domain, Epoch(epoch.into()), &redemption);
        let VoteSignature::Redemption { signature } = vote.signature else { panic!("for a redemption") };
        ContractVote { authority: vote.authority, signature }
    };
    let votes = authorities(epoch)[..3].iter().map(vote).collect();
    Action::Redeem { committee: COMMITTEE, redemption, epoch: Epoch(epoch.into()), votes }
}

/// Redemptions with the votes of a quorum of an epoch on all of them.
pub fn certified_batch(domain: &Domain, epoch: u8, redemptions: Vec<Redemption>) -> Action {
    let vote = |keys: &AuthorityKeys| sign_batch_vote(keys, domain, Epoch(epoch.into()), &redemptions);
    let votes = authorities(epoch)[..3].iter().map(vote).collect();
    Action::RedeemBatch { committee: COMMITTEE, redemptions, epoch: Epoch(epoch.into()), votes }
}

/// A deadline, in seconds, that is not too far ahead when a world begins, and after every one ends.
pub const FAR: u64 = 2_000_000;

/// The committee of an epoch, as it is announced.
pub fn next(epoch: u8, compromised_since: u8) -> NextCommittee {
    NextCommittee {
        committee: committee(epoch),
        guardian: address(GUARDIAN),
        compromised_since: Epoch(compromised_since.into()),
        checkpoint: Digest::repeat_byte(3),
        deadline: FAR,
    }
}

/// The votes of three members of an epoch on a statement of the council.
pub fn council_votes(domain: &Domain, by: u8, statement: &CouncilStatement<'_>) -> Vec<ContractVote> {
    authorities(by)[..3].iter().map(|keys| sign_council_vote(keys, domain, statement)).collect()
}

/// An announcement by a quorum of the epoch before, with proofs of the members of the epoch that would begin.
pub fn announce(domain: &Domain, next: NextCommittee) -> Announcing {
    let epoch = u8::try_from(next.committee.epoch().0).unwrap();
    let statement = next.announcement();
    let votes = council_votes(domain, epoch - 1, &CouncilStatement::Announcement(&statement));
    let proofs = authorities(epoch).iter().map(|keys| PossessionProof::new(keys, domain).into()).collect();
    Announcing { committee: COMMITTEE, next, proofs, votes }
}

/// The installation of what was announced and has matured, accepted by three members of an epoch.
pub fn accept(domain: &Domain, by: u8, id: Digest, announced: &Announced) -> Action {
    let votes = council_votes(domain, by, &announced.acceptance(id).unwrap());
    Action::Install { committee: COMMITTEE, announcement: id, votes }
}

/// The owner of a FastPay account.
pub fn owner(at: u8) -> AccountKey {
    AccountKey::ed25519([at; 32])
}

/// The request of the owner of a key's account to unlock a number.
pub fn request_unlock(domain: &Domain, key: &AccountKey, sequence: u64) -> UnlockRequest {
    let (account, sequence) = (key.account(), SequenceNumber(sequence));
    let authorization = key.authorize(domain.unlock_request_digest(account, sequence));
    UnlockRequest { committee: COMMITTEE, account, sequence, authorization }
}

/// The votes of these many members of an epoch about a number.
pub fn unlock_votes(
    domain: &Domain,
    epoch: u8,
    count: usize,
    account: AccountId,
    sequence: u64,
    vote: UnlockVote,
) -> Vec<ContractVote> {
    let sign = |keys: &AuthorityKeys| vote.sign(keys, domain, Epoch(epoch.into()), account, SequenceNumber(sequence));
    authorities(epoch)[..count].iter().map(sign).collect()
}

/// The upholding of an order, by a quorum of an epoch.
pub fn uphold(domain: &Domain, epoch: u8, account: AccountId, sequence: u64, digest: Digest) -> Action {
    let votes = unlock_votes(domain, epoch, 3, account, sequence, UnlockVote::Certificate(digest));
    Action::Uphold { committee: COMMITTEE, account, sequence: SequenceNumber(sequence), digest, votes }
}

/// The voiding of a number, by a quorum of an epoch or by all of it.
pub fn void(domain: &Domain, epoch: u8, account: AccountId, sequence: u64, unanimous: bool) -> Action {
    let count = if unanimous { 4 } else { 3 };
    let votes = unlock_votes(domain, epoch, count, account, sequence, UnlockVote::Void { unanimous });
    Action::Void { committee: COMMITTEE, account, sequence: SequenceNumber(sequence), unanimous, votes }
}

impl World {
    /// The domain of the first committee.
    pub fn domain(&self) -> Domain {
        self.layout().deployment().domain(COMMITTEE)
    }

    /// An announcement in the state.
    pub fn announced(&self, id: Digest) -> Option<Announced> {
        self.read(self.settlement(), &StateKey::Announcement(COMMITTEE, id))
    }

    /// Announces the committee of an epoch, and waits until it has matured. The installation is yet to come.
    pub fn matured(&mut self, epoch: u8, compromised_since: u8) -> Action {
        let domain = self.domain();
        // Another deadline is another announcement, where the epoch was announced before.
        let next = NextCommittee { deadline: FAR - self.now().0 % 100_000, ..next(epoch, compromised_since) };
        let id = next.id(&domain);
        self.act(5, Action::Announce(Box::new(announce(&domain, next)))).unwrap();
        self.wait_until(self.announced(id).unwrap().installable_at(&PARAMETERS));
        self.act(5, Action::Mature { committee: COMMITTEE, announcement: id }).unwrap();
        accept(&domain, epoch, id, &self.announced(id).unwrap())
    }

    /// Announces the committee of an epoch, waits, and installs it.
    pub fn rotate(&mut self, epoch: u8, compromised_since: u8) -> Result<Outcome, Rejection> {
        let install = self.matured(epoch, compromised_since);
        self.act(5, install)
    }
}
