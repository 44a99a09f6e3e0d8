//! Those who sign: owners of reserves, and the authorities of a FastPay committee.

use fastpay_core::{
    AccountId, AccountKey, Amount, Announcement, Asset, AuthorityKeys, Committee, ContractVote, CouncilStatement,
    Digest, Domain, Epoch, PrimaryAddress, Redemption, SequenceNumber, VoteSignature, sign_council_vote,
    sign_redemption_vote,
};
use fastpay_ledger_statement::{Action, Rotation};

use crate::world::COMMITTEE;

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

pub fn first_committee() -> Committee {
    committee(0)
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

/// A deadline, in seconds, that is not too far ahead when a world begins, and after every one ends.
pub const FAR: u64 = 2_000_000;

/// The rotation to an epoch, with the votes of quorums.
pub fn rotation(domain: &Domain, epoch: u8, compromised_since: u8, deadline: u64) -> Rotation {
    sign_rotation(domain, committee(epoch), Epoch(compromised_since.into()), deadline, [epoch - 1, epoch])
}

/// A rotation that quorums of these epochs announce and accept.
pub fn sign_rotation(
    domain: &Domain,
    next: Committee,
    compromised_since: Epoch,
    deadline: u64,
    [announcer, acceptor]: [u8; 2],
) -> Rotation {
    let announcement = Announcement {
        committee: next.clone(),
        guardian: PrimaryAddress::ZERO,
        recovery: PrimaryAddress::ZERO,
        compromised_since,
        checkpoint: Digest::repeat_byte(3),
        deadline,
    };
    let vote = |by: u8, statement: CouncilStatement<'_>| {
        authorities(by)[..3].iter().map(|keys| sign_council_vote(keys, domain, &statement)).collect()
    };
    let announced = CouncilStatement::Announcement(&announcement);
    let announcing = vote(announcer, announced);
    let announcement = domain.council_digest(&announced);
    let accepted = CouncilStatement::Acceptance { epoch: next.epoch(), announcement, block_hash: Digest::ZERO };
    let accepting = vote(acceptor, accepted);
    let checkpoint = Digest::repeat_byte(3);
    Rotation { committee: COMMITTEE, next, compromised_since, checkpoint, deadline, announcing, accepting }
}
