//! A test case: a deployment, a call, and the mutation of its votes.

use alloy_primitives::B256;
use fastpay_core::{
    Amount, Asset, AuthorityKeys, Committee, Domain, Epoch, PrimaryAddress, Redemption, SequenceNumber, Transfer,
    VoteSignature, sign_batch_vote, sign_vote,
};
use fastpay_testkit::{TestAccount, secret};
use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, SliceRandom};

use super::mutation::Mutation;

/// The signers in an epoch, in the committee's order.
#[derive(Clone, Debug)]
pub struct Signers {
    pub committee: Committee,
    pub keys: Vec<AuthorityKeys>,
}

impl Signers {
    fn random(random: &mut StdRng, epoch: u64) -> Self {
        let size = random.random_range(4..=20);
        let mut keys: Vec<AuthorityKeys> = (0..size)
            .map(|_| AuthorityKeys::from_secrets(secret(3, random.random()), secret(4, random.random())).unwrap())
            .collect();
        keys.sort_by_key(|keys| keys.public().name);
        let members = keys.iter().map(AuthorityKeys::public).collect();
        Self { committee: Committee::new(Epoch(epoch), members).unwrap(), keys }
    }

    /// A random quorum of members, in order.
    fn some_quorum(&self, random: &mut StdRng) -> Vec<usize> {
        let mut members: Vec<usize> = (0..self.keys.len()).collect();
        members.shuffle(random);
        members.truncate(self.committee.quorum());
        members.sort_unstable();
        members
    }
}

/// Which function is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    Redeem,
    RedeemBatch,
}

/// Signs for one case: what was really said, before anything is altered.
#[derive(Clone, Debug)]
pub struct Statement {
    pub function: Function,
    pub domain: Domain,
    pub epoch: Epoch,
    pub redemptions: Vec<Redemption>,
    pub guardian: PrimaryAddress,
}

impl Statement {
    /// A signature of 65 bytes.
    pub fn sign(&self, keys: &AuthorityKeys) -> [u8; 65] {
        match self.function {
            Function::Redeem => {
                let transfer = Transfer::Redemption(self.redemptions[0].clone());
                let vote = sign_vote(keys, &self.domain, self.epoch, &transfer, B256::ZERO);
                let VoteSignature::Redemption { signature } = vote.signature else { panic!("a redemption's vote") };
                signature.0
            }
            Function::RedeemBatch => sign_batch_vote(keys, &self.domain, self.epoch, &self.redemptions).signature.0,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Case {
    /// The committee of epoch 0, and of each epoch after it that was installed.
    pub epochs: Vec<Signers>,
    /// The time since the last rotation, in seconds.
    pub since_rotation: u64,
    /// The call after the mutation.
    pub call: Statement,
    /// The votes in the call, packed, after the mutation.
    pub votes: Vec<u8>,
    /// Whether the senders' own signatures are good. The contract does not see them.
    pub ordered: bool,
    pub mutation: Mutation,
}

/// How long this deployment accepts votes of an ended epoch.
pub const VOTES_VALIDITY: u64 = 7 * 24 * 60 * 60;

impl Case {
    pub fn random(random: &mut StdRng) -> Self {
        let epochs: Vec<Signers> =
            (0..random.random_range(1..=3)).map(|epoch| Signers::random(random, epoch)).collect();
        let function = *[Function::Redeem, Function::Redeem, Function::RedeemBatch].choose(random).unwrap();
        let current = epochs.len() - 1;
        // Mostly the current epoch, sometimes one that has ended.
        let epoch = if random.random_bool(0.7) { current } else { random.random_range(0..=current) };
        let domain = Domain::new(random.random_range(1..1 << 40), PrimaryAddress::from(random.random::<[u8; 20]>()));
        let count = if function == Function::RedeemBatch { random.random_range(1..=5) } else { 1 };
        let mut call = Statement {
            function,
            domain,
            epoch: Epoch(epoch as u64),
            redemptions: (0..count).map(|_| redemption(random)).collect(),
            guardian: PrimaryAddress::from(random.random::<[u8; 20]>()),
        };
        let mutation = Mutation::random(random, function);
        mutation.before_signing(random, &mut call);
        let signers = epochs[epoch].clone();
        let members = signers.some_quorum(random);
        let votes = mutation.vote(random, &mut call, &signers, members);
        let ordered = mutation != Mutation::NotOrdered;
        Self {
            since_rotation: *[0, VOTES_VALIDITY, VOTES_VALIDITY + 1, 3 * VOTES_VALIDITY].choose(random).unwrap(),
            epochs,
            call,
            votes,
            ordered,
            mutation,
        }
    }

    /// The counts of the summary.
    pub fn label(&self) -> String {
        format!("{:?} {:?}", self.call.function, self.mutation)
    }
}

/// Any redemption that may be ordered.
fn redemption(random: &mut StdRng) -> Redemption {
    let asset = if random.random() { Asset::ETHER } else { Asset(PrimaryAddress::from(random.random::<[u8; 20]>())) };
    // All of it has to fit into one contract, five times over: 2^88 of ETH, 2^127 of a token.
    let bits = random.random_range(1..=if asset == Asset::ETHER { 84 } else { 120 });
    let amount = 1 + random.random_range(0..1_u128 << bits);
    Redemption {
        sender: TestAccount::numbered(random.random_range(0..8)).id(),
        recipient: PrimaryAddress::from(random.random::<[u8; 20]>()),
        asset,
        amount: Amount(amount),
        fee: Amount(*[0, amount, random.random_range(0..=amount)].choose(random).unwrap()),
        sequence: SequenceNumber(random.random_range(0..u64::MAX)),
        memo: B256::from(random.random::<[u8; 32]>()),
    }
}
