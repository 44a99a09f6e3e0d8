//! A chain, the authorities of a committee with 1, 2 or 3 shards each, and a few owners, some of whom sign conflicting
//! orders. All authorities change their keys from time to time, and hear of it at different times. Nothing happens but
//! what a step says.
//!
//! f members are faulty, any of them: in some epochs, the keys of some of them are out, and a thief votes for everything
//! with them. Each epoch has its own choice among these f, and no more may be faulty in all epochs together. Their own
//! nodes never lie: they know nothing of the thief and go on as honest ones, in epochs where their keys are out and in
//! all others. Nodes that lie are the simulator's.
//!
//! The keys of a committee that was replaced are guarded until its certificates count no longer by themselves. After
//! that, a thief has all of them, and certifies what an account without money orders.

use std::collections::{BTreeMap, HashMap};

use fastpay_core::{
    Account, AccountId, Amount, Asset, AttestedCertificate, Balance, Certificate, Chain, CrossShardCredit, Deposit,
    Digest, Epoch, Find, History, Moment, Payment, Payout, PrimaryAddress, Receipt, Redemption, Rejection,
    SequenceNumber, ShardId, ShardLedger, SynchronizationOrder, TransactionIndex, Transfer, TransferOrder,
    VerifiedVote, Vote,
};
use fastpay_testkit::{
    Outcome, TestAccount, TestAuthority, TestAuthorityError, TestCommittee, TestShard, payment, payout, redemption,
};
use proptest::prelude::*;
use proptest::sample::Index;

/// Shards of the authorities, in turn.
const SHARD_COUNTS: [u32; 3] = [1, 2, 3];
const OWNERS: u64 = 5;
/// Of unlocking. Certificates of an ended epoch are executed for so long, and kept for as long after that.
pub const WINDOW: u64 = 100;
pub const ASSETS: [Asset; 2] = [Asset::ETHER, Asset(PrimaryAddress::repeat_byte(0x70))];

/// One thing that happens. Indices pick among what there is at that time; masks pick authorities.
#[derive(Clone, Debug)]
pub enum Step {
    /// Somebody funds an account on the Primary.
    Deposit { owner: Index, asset: Index, amount: u8 },
    /// An authority's shard sees the next deposit, or one that it has seen.
    Follow { authority: Index, shard: Index, again: bool },
    /// All shards of authorities see the next deposit.
    FollowAll { mask: u8 },
    /// An owner signs an order: with the next number (or goes on with the order that has it), or in
    /// conflict with that order, or with a number too high, or one used before.
    Sign { owner: Index, to: Index, asset: Index, amount: u8, number: u8, redeems: bool, others: Vec<(Index, u8)> },
    /// A recent order is sent to authorities.
    Submit { order: Index, mask: u8 },
    /// A recent certificate is sent to authorities.
    Confirm { certificate: Index, mask: u8 },
    /// An authority's credit goes to its shard; perhaps one that has been there, perhaps the
    /// acknowledgement is lost.
    Deliver { authority: Index, credit: Index, acknowledge: bool },
    /// A credit that was delivered long ago comes again.
    DeliverAgain { authority: Index, credit: Index },
    /// The contract installs the next committee: the same authorities with new keys, of which those of these faulty
    /// members are out.
    Rotate { out: u8 },
    /// Authorities hear of the next committee that they do not know.
    FollowRotation { mask: u8 },
    /// Time passes.
    Pass { time: u8 },
    /// A thief with all keys of a committee that was replaced long ago certifies an order of an account without money, and
    /// sends it to authorities.
    Forge { epoch: Index, amount: u8, redeems: bool, mask: u8 },
    /// A shard takes its accounts out of memory.
    Evict { authority: Index, shard: Index },
    /// A shard takes the next part of a checkpoint, of so many accounts.
    Checkpoint { authority: Index, shard: Index, accounts: usize },
    /// A shard crashes, and starts from its checkpoint and the journal's tail, or the journal alone.
    Crash { authority: Index, shard: Index, from_checkpoint: bool },
}

/// Further recipients and amounts, with which a payment is a payout; often none.
fn others() -> impl Strategy<Value = Vec<(Index, u8)>> {
    prop_oneof![2 => Just(Vec::new()), 1 => prop::collection::vec((any::<Index>(), 1..20_u8), 1..8)]
}

/// Some authorities, often all.
fn mask() -> impl Strategy<Value = u8> {
    prop_oneof![Just(u8::MAX), any::<u8>()]
}

/// Any step.
pub fn step() -> impl Strategy<Value = Step> {
    let index = any::<Index>;
    prop_oneof![
        2 => (index(), index(), 1..100_u8).prop_map(|(owner, asset, amount)| Step::Deposit { owner, asset, amount }),
        3 => (index(), index(), prop::bool::weighted(0.2))
            .prop_map(|(authority, shard, again)| Step::Follow { authority, shard, again }),
        4 => (index(), index(), index(), 1..60_u8, any::<u8>(), prop::bool::weighted(0.3), others()).prop_map(
            |(owner, to, asset, amount, number, redeems, others)| {
                Step::Sign { owner, to, asset, amount, number, redeems, others }
            }
        ),
        3 => mask().prop_map(|mask| Step::FollowAll { mask }),
        8 => (index(), mask()).prop_map(|(order, mask)| Step::Submit { order, mask }),
        5 => (index(), mask()).prop_map(|(certificate, mask)| Step::Confirm { certificate, mask }),
        3 => (index(), index(), any::<bool>())
            .prop_map(|(authority, credit, acknowledge)| Step::Deliver { authority, credit, acknowledge }),
        1 => (index(), index()).prop_map(|(authority, credit)| Step::DeliverAgain { authority, credit }),
        1 => any::<u8>().prop_map(|out| Step::Rotate { out }),
        2 => any::<u8>().prop_map(|mask| Step::FollowRotation { mask }),
        4 => (1..80_u8).prop_map(|time| Step::Pass { time }),
        1 => (index(), 1..60_u8, any::<bool>(), mask())
            .prop_map(|(epoch, amount, redeems, mask)| Step::Forge { epoch, amount, redeems, mask }),
        1 => (index(), index()).prop_map(|(authority, shard)| Step::Evict { authority, shard }),
        4 => (index(), index(), 1..4_usize)
            .prop_map(|(authority, shard, accounts)| Step::Checkpoint { authority, shard, accounts }),
        2 => (index(), index(), any::<bool>())
            .prop_map(|(authority, shard, from_checkpoint)| Step::Crash { authority, shard, from_checkpoint }),
    ]
}

/// Everything that there is, and everything that was ever said.
pub struct World {
    /// By epoch.
    pub committees: Vec<TestCommittee>,
    /// The members that are faulty in some epoch.
    faulty: Vec<usize>,
    /// By epoch, those of them with whose keys a thief votes.
    pub out: Vec<Vec<usize>>,
    pub authorities: Vec<TestAuthority>,
    pub owners: Vec<TestAccount>,
    deposits: Vec<Deposit>,
    pub orders: Vec<(TransferOrder, Vec<VerifiedVote>)>,
    pub certificates: Vec<Certificate>,
    /// Which transfer has the certificate of a number.
    pub certified: HashMap<(AccountId, SequenceNumber), Digest>,
    /// Per authority, what its node voted for.
    voted: Vec<HashMap<(AccountId, SequenceNumber), Digest>>,
    /// Per authority, the credits that reached their shards.
    delivered: Vec<Vec<(ShardId, CrossShardCredit)>>,
    pub now: u64,
    /// By epoch, for those that have ended: when they did.
    pub ended: Vec<u64>,
    /// Has no money.
    pub thief: TestAccount,
    /// How many certificates authorities executed because members attest them, and how many forged ones they refused.
    pub attested: usize,
    pub refused: usize,
}

impl World {
    /// With a committee of this size. The f members from `first_faulty` on are faulty, and the keys of these of them are out
    /// in the first epoch.
    pub fn new(size: usize, first_faulty: usize, out: u8) -> Self {
        let committee = TestCommittee::new(size);
        let faulty: Vec<_> = (0..(size - 1) / 3).map(|at| (first_faulty + at) % size).collect();
        Self {
            authorities: TestAuthority::all(&committee, &SHARD_COUNTS),
            out: vec![picked(&faulty, out)],
            faulty,
            committees: vec![committee],
            owners: (0..OWNERS).map(TestAccount::numbered).collect(),
            deposits: Vec::new(),
            orders: Vec::new(),
            certificates: Vec::new(),
            certified: HashMap::new(),
            voted: vec![HashMap::new(); size],
            delivered: vec![Vec::new(); size],
            now: 1_000,
            ended: Vec::new(),
            thief: TestAccount::numbered(OWNERS),
            attested: 0,
            refused: 0,
        }
    }

    fn size(&self) -> usize {
        self.authorities.len()
    }

    /// The authorities of a mask.
    pub fn chosen(&self, mask: u8) -> impl Iterator<Item = usize> + use<> {
        (0..self.size()).filter(move |at| mask >> at & 1 == 1)
    }

    /// Executes a step, and checks the invariants that it may affect.
    pub fn take(&mut self, step: &Step) {
        match step {
            Step::Deposit { owner, asset, amount } => {
                let index = TransactionIndex(self.deposits.len() as u64 + 1);
                let recipient = owner.get(&self.owners).id();
                let (asset, amount) = (*asset.get(&ASSETS), Amount(u128::from(*amount)));
                self.deposits.push(Deposit { index, recipient, asset, amount });
            }
            Step::Follow { authority, shard, again } => {
                let at = authority.index(self.size());
                let shard = shard.index(self.authorities[at].shards.len());
                self.follow(at, shard, *again);
            }
            Step::FollowAll { mask } => {
                for at in self.chosen(*mask) {
                    (0..self.authorities[at].shards.len()).for_each(|shard| self.follow(at, shard, false));
                }
            }
            Step::Sign { owner, to, asset, amount, number, redeems, others } => {
                let paid: Vec<_> =
                    std::iter::once((to, amount)).chain(others.iter().map(|(to, amount)| (to, amount))).collect();
                self.sign(owner.index(self.owners.len()), &paid, *asset.get(&ASSETS), *number, *redeems);
            }
            Step::Submit { order, mask } => {
                if let Some(order) = recent(order, self.orders.len()) {
                    self.chosen(*mask).for_each(|at| self.submit(order, at));
                }
            }
            Step::Confirm { certificate, mask } => {
                if let Some(certificate) = recent(certificate, self.certificates.len()) {
                    self.chosen(*mask).for_each(|at| self.confirm(certificate, at));
                }
            }
            Step::Deliver { authority, credit, acknowledge } => {
                let at = authority.index(self.size());
                let waiting = self.authorities[at].credits_waiting();
                if !waiting.is_empty() {
                    self.deliver(at, credit.get(&waiting), *acknowledge);
                }
            }
            Step::DeliverAgain { authority, credit } => {
                let at = authority.index(self.size());
                if !self.delivered[at].is_empty() {
                    let (to, credit) = credit.get(&self.delivered[at]).clone();
                    assert_eq!(self.authorities[at].deliver(to, &credit), Ok(Outcome::Already));
                }
            }
            Step::Rotate { out } => self.rotate(*out),
            Step::FollowRotation { mask } => self.chosen(*mask).for_each(|at| self.follow_rotation(at)),
            Step::Pass { time } => self.pass(u64::from(*time)),
            Step::Forge { epoch, amount, redeems, mask } => {
                let retired = (0..self.ended.len()).filter(|epoch| self.now >= self.end(*epoch).kept_until);
                let retired: Vec<_> = retired.collect();
                if !retired.is_empty() {
                    self.forge(*epoch.get(&retired), (*amount).into(), *redeems, *mask);
                }
            }
            Step::Evict { authority, shard } => self.shard(authority, shard).evict(),
            Step::Checkpoint { authority, shard, accounts } => {
                self.shard(authority, shard).take_part_of_checkpoint(*accounts);
            }
            Step::Crash { authority, shard, from_checkpoint } => {
                crash(self.shard(authority, shard), *from_checkpoint);
                self.check_locks(authority.index(self.size()));
            }
        }
        self.authorities.iter().flat_map(|authority| &authority.shards).for_each(check_totals);
        self.authorities.iter().for_each(check_credits);
    }

    fn shard(&mut self, authority: &Index, shard: &Index) -> &mut TestShard {
        let at = authority.index(self.size());
        let shards = &mut self.authorities[at].shards;
        let shard = shard.index(shards.len());
        &mut shards[shard]
    }

    fn follow(&mut self, at: usize, shard: usize, again: bool) {
        let layout = fastpay_core::ShardLayout::new(SHARD_COUNTS[at % SHARD_COUNTS.len()].try_into().unwrap());
        let shard = &mut self.authorities[at].shards[shard];
        let synchronized = shard.ledger().synchronized;
        let up_to = TransactionIndex(if again { synchronized.0 } else { synchronized.0 + 1 });
        let Some(deposit) = up_to.0.checked_sub(1).and_then(|at| self.deposits.get(usize::try_from(at).unwrap()))
        else {
            return;
        };
        let mine = layout.shard_of(&deposit.recipient) == shard.rules().id();
        let after = TransactionIndex(up_to.0 - 1);
        let order = SynchronizationOrder { after, up_to, deposit: mine.then(|| deposit.clone()) };
        let expected = if again { Outcome::Already } else { Outcome::Committed };
        assert_eq!(shard.synchronize(&order), Ok(expected));
        // A step over deposits that the shard has not seen.
        let synchronized = shard.ledger().synchronized;
        let [after, up_to] = [1, 2].map(|ahead| TransactionIndex(synchronized.0 + ahead));
        let skipping = SynchronizationOrder { after, up_to, deposit: None };
        assert_eq!(shard.synchronize(&skipping), Err(Rejection::SynchronizationGap { synchronized }));
    }

    fn sign(&mut self, owner: usize, paid: &[(&Index, &u8)], asset: Asset, number: u8, redeems: bool) {
        let owner = &self.owners[owner];
        let next = self.certified.keys().filter(|(account, _)| *account == owner.id()).count() as u64;
        let sequence = match number {
            0..=10 => next + 1,
            11..=20 => next.saturating_sub(1),
            _ => next,
        };
        let same_number =
            |order: &TransferOrder| (order.transfer.sender(), order.transfer.sequence().0) == (owner.id(), sequence);
        if number > 40
            && let Some(begun) = self.orders.iter().position(|(order, _)| same_number(order))
        {
            let begun = self.orders.remove(begun);
            self.orders.push(begun);
            return;
        }
        let paid: Vec<_> = paid.iter().map(|(to, amount)| (to.get(&self.owners).id(), u128::from(**amount))).collect();
        let transfer: Transfer = match &paid[..] {
            [(_, amount), ..] if redeems => {
                let recipient = PrimaryAddress::repeat_byte(number | 1);
                Redemption { asset, ..redemption(owner.id(), recipient, *amount, sequence) }.into()
            }
            [(to, amount)] => Payment { asset, ..payment(owner.id(), *to, *amount, sequence) }.into(),
            outputs => Payout { asset, ..payout(owner.id(), outputs, sequence) }.into(),
        };
        let order = owner.sign(&self.committees[0].domain, transfer);
        let votes = self.committees.iter().zip(&self.out).flat_map(|(committee, out)| stolen(committee, out, &order));
        let votes = votes.collect();
        self.orders.push((order, votes));
    }

    /// The thief votes at once, in the new epoch, for every order that there ever was.
    fn rotate(&mut self, out: u8) {
        let (next, out) = (self.committees[self.committees.len() - 1].rotated(), picked(&self.faulty, out));
        for (order, votes) in &mut self.orders {
            votes.extend(stolen(&next, &out, order));
        }
        self.committees.push(next);
        self.out.push(out);
        self.ended.push(self.now);
    }

    pub fn follow_rotation(&mut self, at: usize) {
        let epoch = usize::try_from(self.authorities[at].epoch().0).unwrap();
        if let Some(committee) = self.committees.get(epoch + 1) {
            let end = self.end(epoch);
            self.authorities[at].rotate_until(committee, at, end);
            self.check_locks(at);
        }
    }

    fn committee(&self, epoch: Epoch) -> &TestCommittee {
        &self.committees[usize::try_from(epoch.0).unwrap()]
    }

    /// Asks an authority's node for its vote, and makes a certificate once there is a quorum.
    pub fn submit(&mut self, order: usize, at: usize) {
        let committee = self.committee(self.authorities[at].epoch()).clone();
        let (order, votes) = &mut self.orders[order];
        let vote = match self.authorities[at].order(order) {
            Ok(vote) => vote,
            Err(TestAuthorityError::Rejection(Rejection::OrderPending { pending })) => {
                assert_ne!(pending.transfer, order.transfer, "refused for itself");
                assert_eq!(pending.transfer.sender(), order.transfer.sender());
                return;
            }
            Err(TestAuthorityError::Rejection(
                Rejection::SequenceTooHigh { .. }
                | Rejection::AlreadyConfirmed { .. }
                | Rejection::InsufficientBalance { .. },
            )) => return,
            Err(refusal) => panic!("{refusal}"),
        };
        let digest = committee.domain.transfer_digest(&order.transfer);
        let number = (order.transfer.sender(), order.transfer.sequence());
        assert_eq!(*self.voted[at].entry(number).or_insert(digest), digest, "authority {at} voted for two orders");
        let verified = committee.verified(order);
        if votes.iter().all(|known| known.vote().authority != vote.authority) {
            votes.push(check(&committee, vote, order));
        }
        if let Some(certificate) = Certificate::from_votes(&verified, &committee.committee, votes) {
            let first = *self.certified.entry(number).or_insert(digest);
            assert_eq!(first, digest, "two certificates for one number, whatever their epochs");
            self.certificates.push(certificate.into_certificate());
        }
        self.check_locks(at);
    }

    /// Sends an authority a certificate, with the votes of members that it exists if it does not count by itself.
    pub fn confirm(&mut self, certificate: usize, at: usize) {
        let certificate = self.certificates[certificate].clone();
        let sequence = certificate.order.transfer.sequence();
        self.authorities[at].moment = Some(Moment { now: self.now, followed: self.now, unlock_window: WINDOW });
        let mut answer = self.authorities[at].confirm(&certificate);
        if let Err(TestAuthorityError::Rejection(Rejection::Unattested { epoch })) = &answer {
            let end = self.end(usize::try_from(epoch.0).unwrap());
            assert!(self.now >= end.executed_until, "a certificate that counts is refused");
            let Some(attestation) = self.attestation(&certificate, at) else { return };
            let attested = AttestedCertificate { certificate: certificate.clone(), attestation };
            answer = self.authorities[at].confirm_attested(&attested);
            self.attested += usize::from(answer == Ok(Outcome::Committed));
        }
        match answer {
            Ok(Outcome::Committed) => {
                assert_eq!(self.authorities[at].confirm(&certificate), Ok(Outcome::Already), "confirmed twice");
            }
            Ok(Outcome::Already) => {}
            Err(TestAuthorityError::Rejection(Rejection::MissingCertificate { missing })) => {
                assert!(missing < sequence)
            }
            Err(TestAuthorityError::UnknownEpoch(epoch)) => assert!(epoch > self.authorities[at].epoch()),
            Err(refusal) => panic!("a certificate is refused: {refusal}"),
        }
    }

    fn deliver(&mut self, at: usize, (to, credit): &(ShardId, CrossShardCredit), acknowledge: bool) {
        let authority = &mut self.authorities[at];
        let answer =
            if acknowledge { authority.deliver(*to, credit) } else { authority.shards[to.0 as usize].credit(credit) };
        match answer {
            Ok(Outcome::Committed) => self.delivered[at].push((*to, credit.clone())),
            Ok(Outcome::Already) => assert!(self.delivered[at].contains(&(*to, credit.clone()))),
            Err(Rejection::CreditGap { expected }) => assert!(expected < credit.number),
            Err(rejection) => panic!("{rejection}"),
        }
    }

    /// An authority stays locked on the order that it voted for, until a certificate of that number arrives.
    fn check_locks(&self, at: usize) {
        for ((account, sequence), digest) in &self.voted[at] {
            let state = self.authorities[at].account(account);
            if state.next_sequence() <= *sequence {
                assert_eq!(state.next_sequence(), *sequence, "voted ahead");
                let pending = state.pending.expect("a vote is forgotten");
                assert_eq!(pending.digest, *digest, "locked on another order");
            }
        }
    }

    /// Everything that is under way arrives everywhere; then all authorities must agree, and
    /// nothing may be lost, made or owed.
    pub fn settle(&mut self) {
        for at in 0..self.size() {
            (0..self.committees.len()).for_each(|_| self.follow_rotation(at));
            for shard in 0..self.authorities[at].shards.len() {
                (0..self.deposits.len()).for_each(|_| self.follow(at, shard, false));
            }
        }
        self.exchange();
        self.authorities.iter_mut().for_each(TestAuthority::deliver_all);
        self.certify_anew();
        for at in 0..self.size() {
            assert_eq!(self.authorities[at].credits_waiting(), []);
            self.check_locks(at);
            self.authorities[at].shards.iter().for_each(check_totals);
            self.check_value(at);
            self.check_receipts(at);
        }
        let views: Vec<_> = self.authorities.iter().map(|authority| self.view(authority)).collect();
        assert!(views.iter().all(|view| *view == views[0]), "authorities differ: {views:?}");
        for (account, sequence) in self.certified.keys() {
            let is_settled = self.authorities[0].account(account).next_sequence() > *sequence;
            // Where owners signed two orders, those who voted for the other one may keep the number stuck.
            assert!(is_settled || self.is_disputed(*account, *sequence), "a certificate is not settled");
        }
        assert_eq!(self.authorities[0].account(&self.thief.id()), Account::default(), "the thief got something done");
    }

    /// For each asset, deposits = balances + redemptions, and no balance is negative.
    fn check_value(&self, at: usize) {
        for asset in ASSETS {
            let of_asset = self.deposits.iter().filter(|deposit| deposit.asset == asset);
            let deposited = of_asset.fold(Balance::ZERO, |sum, deposit| sum.credit(deposit.amount));
            let redeemed = self.certificates_once().filter(|certificate| {
                certificate.order.transfer.asset() == asset
                    && matches!(certificate.order.transfer, Transfer::Redemption(_))
            });
            let redeemed =
                redeemed.fold(Balance::ZERO, |sum, certificate| sum.credit(certificate.order.transfer.amount()));
            let balances = self.owners.iter().map(|owner| self.authorities[at].account(&owner.id()).balance(asset));
            let balances: Vec<Balance> = balances.collect();
            assert!(balances.iter().all(|balance| *balance >= Balance::ZERO), "an account owes: {balances:?}");
            assert_eq!(balances.into_iter().fold(redeemed, Balance::plus), deposited, "{asset}");
        }
    }

    /// Each account received every payment of every certificate once, whole payouts, and its history leads to each.
    fn check_receipts(&self, at: usize) {
        let mut expected: BTreeMap<AccountId, Vec<Receipt>> = BTreeMap::new();
        for receipt in self.certificates_once().flat_map(|certificate| certificate.order.transfer.receipts()) {
            expected.entry(receipt.payment.recipient).or_default().push(receipt);
        }
        let name = |receipt: &Receipt| (receipt.payment.sender, receipt.payment.sequence, receipt.output);
        for owner in &self.owners {
            let id = owner.id();
            let shard = self.authorities[at].shards.iter().find(|shard| shard.rules().check_owner(id).is_ok()).unwrap();
            let history = shard.account(&id).received;
            let mut received: Vec<_> = (0..history.count()).map(|number| entry(shard, &history, id, number)).collect();
            let mut expected = expected.remove(&id).unwrap_or_default();
            received.sort_by_key(name);
            expected.sort_by_key(name);
            assert_eq!(received, expected);
        }
    }

    /// One certificate for each executed transfer.
    fn certificates_once(&self) -> impl Iterator<Item = &Certificate> {
        let executed = self.certificates.iter().filter(|certificate| self.is_executed(0, certificate));
        let by_number = executed.map(|certificate| {
            let transfer = &certificate.order.transfer;
            ((transfer.sender(), transfer.sequence()), certificate)
        });
        by_number.collect::<BTreeMap<_, _>>().into_values()
    }

    /// The state that must be the same at every authority.
    fn view(&self, authority: &TestAuthority) -> Vec<(SequenceNumber, u64, u64, Vec<Balance>)> {
        let accounts = self.owners.iter().map(|owner| authority.account(&owner.id()));
        accounts
            .map(|account| {
                let balances = ASSETS.map(|asset| account.balance(asset)).to_vec();
                (account.next_sequence(), account.received.count(), account.deposits.count(), balances)
            })
            .collect()
    }
}

/// What stands under a number in what an account received, along the links of the journal.
fn entry(shard: &TestShard, history: &History, account: AccountId, number: u64) -> Receipt {
    let mut step = history.find(number);
    loop {
        match step {
            Find::Found(position) => return shard.journal().read(position).received_by(account, number).unwrap(),
            Find::Read(position, entry) => {
                let record = shard.journal().read(position);
                step = record.link(Chain::Received(account), entry, position).unwrap().find(number);
            }
            Find::Absent => panic!("entry {number} of {account} is lost"),
        }
    }
}

fn check(committee: &TestCommittee, vote: Vote, order: &TransferOrder) -> VerifiedVote {
    let verified = committee.verified(order);
    vote.verify(&committee.domain, &committee.committee, &verified).expect("a member's vote is valid")
}

/// Those that a mask picks.
fn picked(members: &[usize], mask: u8) -> Vec<usize> {
    members.iter().enumerate().filter(|(at, _)| mask >> at & 1 == 1).map(|(_, member)| *member).collect()
}

/// A thief's votes for an order, with the keys of these members.
fn stolen(committee: &TestCommittee, out: &[usize], order: &TransferOrder) -> Vec<VerifiedVote> {
    out.iter().map(|at| check(committee, committee.vote(*at, order), order)).collect()
}

/// One of the newest few of `count`.
fn recent(pick: &Index, count: usize) -> Option<usize> {
    (count > 0).then(|| count - 1 - pick.index(count.min(6)))
}

/// What a shard knows after a crash is what it knew, but for what was acknowledged in the meantime,
/// which only spares it repeating itself (see [`check_credits`]).
pub fn crash(shard: &mut TestShard, from_checkpoint: bool) {
    let (accounts, ledger) = (shard.accounts(), shard.ledger().clone());
    if from_checkpoint {
        shard.restart();
    } else {
        shard.restart_from_journal();
    }
    assert_eq!(shard.accounts(), accounts);
    let without_waiting = |ledger: &ShardLedger| {
        let mut ledger = ledger.clone();
        ledger.outboxes.values_mut().for_each(|outbox| outbox.waiting.clear());
        ledger
    };
    assert_eq!(without_waiting(shard.ledger()), without_waiting(&ledger));
}

/// Every credit that its shard has not applied waits in the outbox, whatever was acknowledged or
/// forgotten of the others.
fn check_credits(authority: &TestAuthority) {
    for shard in &authority.shards {
        for (to, outbox) in &shard.ledger().outboxes {
            let waiting = outbox.waiting.len() as u64;
            let numbers = outbox.waiting.iter().map(|credit| credit.number);
            assert!(numbers.eq(outbox.issued - waiting + 1..=outbox.issued), "a gap in the outbox");
            let applied = authority.shards[to.0 as usize].ledger().inbox(shard.rules().id());
            assert!(applied <= outbox.issued, "a credit from nowhere");
            assert!(outbox.issued - applied <= waiting, "a credit is forgotten");
        }
    }
}

/// Per asset: accounts = deposited + credited − forwarded − redeemed, and the total is that of the
/// accounts themselves.
fn check_totals(shard: &TestShard) {
    let accounts = shard.accounts();
    for (asset, totals) in &shard.ledger().totals {
        let held = accounts.values().fold(Balance::ZERO, |sum, account| sum.plus(account.balance(*asset)));
        assert_eq!(totals.accounts, held, "{asset}");
        let came = totals.deposited.plus(totals.credited);
        let went = totals.forwarded.plus(totals.redeemed);
        assert_eq!(totals.accounts, came.plus(went.negated()), "{asset}");
    }
    let mut listed = accounts.values().flat_map(|account| account.balances.iter());
    assert!(listed.all(|(asset, _)| shard.ledger().totals.contains_key(&asset)));
}
