//! An authority with the real rules, which executes a history up to a cut in an order of its own.

use std::collections::BTreeMap;

use curve25519_dalek::edwards::EdwardsPoint;
use curve25519_dalek::scalar::{Scalar, clamp_integer};
use fastpay_core::checkpoint::{CheckpointState, Cut, NumberState, Outcome, PrimaryEventKind, Spent};
use fastpay_core::{
    AccountId, Balance, Deposit, Digest, Ed25519Signature, Epoch, ExecutedRedemption, Installation, PrimaryView,
    Record, SequenceNumber, SynchronizationOrder, TransactionIndex, Transfer, Unlock, UnlockEvent, UnlockEventKind,
    UnlockOutcome, VoteFloor,
};
use fastpay_testkit::{TestAuthority, TestCommittee, TestShard};
use rand::prelude::*;
use rand::rngs::StdRng;
use sha2::{Digest as _, Sha512};

use super::history::{History, Slot};

pub struct Authority {
    pub authority: TestAuthority,
    /// Per shard, the index up to which it has read the events.
    read: Vec<u64>,
}

impl Authority {
    pub fn new(committee: &TestCommittee, shards: u32) -> Self {
        let authority = TestAuthority::new(committee, 0, shards);
        Self { read: vec![0; authority.shards.len()], authority }
    }

    pub fn next(&self, account: &AccountId) -> u64 {
        self.authority.account(account).next_sequence().0
    }

    fn shard_of(&self, account: AccountId) -> usize {
        let shards = &self.authority.shards;
        shards.iter().position(|shard| shard.rules().check_owner(account).is_ok()).unwrap()
    }

    fn shard(&self, account: AccountId) -> &TestShard {
        &self.authority.shards[self.shard_of(account)]
    }

    /// Executes everything up to the cut, and no order beyond it.
    pub fn run_to(&mut self, history: &History, cut: &Cut, rng: &mut StdRng) {
        let owners: Vec<_> = history.owners.iter().map(|owner| owner.id()).collect();
        for _ in 0..rng.random_range(0..200) {
            match rng.random_range(0..10) {
                0..4 => {
                    let shard = rng.random_range(0..self.read.len());
                    if self.read[shard] < cut.up_to.0 {
                        self.follow(history, shard, Some(cut));
                    }
                }
                4..9 => {
                    let account = *owners.choose(rng).unwrap();
                    self.show_next(history, account, cut.next(&account).0);
                }
                _ => self.authority.deliver_all(),
            }
        }
        self.follow_to(history, cut.up_to, Some(cut));
        owners.iter().for_each(|account| self.show_up_to(history, *account, cut.next(account).0));
        self.authority.deliver_all();
    }

    pub fn follow_to(&mut self, history: &History, up_to: TransactionIndex, cut: Option<&Cut>) {
        for shard in 0..self.read.len() {
            while self.read[shard] < up_to.0 {
                self.follow(history, shard, cut);
            }
            let state = &mut self.authority.shards[shard];
            let after = state.ledger().synchronized;
            if after < up_to {
                state.synchronize(&SynchronizationOrder { after, up_to, deposit: None }).unwrap();
            }
        }
    }

    /// Reads events and takes no number, not even one that is void.
    pub fn follow_only(&mut self, history: &History, up_to: TransactionIndex) {
        self.follow_to(history, up_to, Some(&Cut::default()));
    }

    /// Shows the certificates of an account below a number, from its next one on, and steps over what is void.
    pub fn show_up_to(&mut self, history: &History, account: AccountId, end: u64) {
        while self.show_next(history, account, end) {}
    }

    /// Whether the account took a number.
    fn show_next(&mut self, history: &History, account: AccountId, end: u64) -> bool {
        let next = self.next(&account);
        if next >= end {
            return false;
        }
        // Whatever is asked about an account takes it over void numbers first.
        let number = (account, SequenceNumber(next));
        let _ = self.authority.shard(&account).void_vote(number, true, Epoch(0), VoteFloor::Unknown, 0);
        self.advance(history, account);
        if let Some(certificate) = history.certificates.get(&(account, next)).filter(|_| self.next(&account) == next) {
            let _ = self.authority.shard(&account).confirm(certificate);
        }
        self.next(&account) > next
    }

    fn advance(&mut self, history: &History, account: AccountId) {
        let (domain, committee) = (history.committee.domain, history.committee.committee.clone());
        let verify = |certificate: fastpay_core::Certificate| certificate.verify(&domain, &committee).unwrap();
        self.authority.shard(&account).advance(account, PrimaryView::Recent, verify);
    }

    /// A shard reads the next event, and then takes what it decides, if that is not beyond the cut.
    fn follow(&mut self, history: &History, shard: usize, cut: Option<&Cut>) {
        self.read[shard] += 1;
        let index = TransactionIndex(self.read[shard]);
        let after = self.authority.shards[shard].ledger().synchronized;
        // Each authority has windows of its own.
        let voidable_at = index.0 * self.read.len() as u64;
        let (slot, kind) = match history.event(index) {
            PrimaryEventKind::Deposit { recipient, asset, amount } => {
                if self.shard_of(*recipient) == shard {
                    let deposit = Deposit { index, recipient: *recipient, asset: *asset, amount: *amount };
                    let order = SynchronizationOrder { after, up_to: index, deposit: Some(deposit) };
                    self.authority.shards[shard].synchronize(&order).unwrap();
                }
                return;
            }
            PrimaryEventKind::Installed(installed) => {
                let (epoch, compromised_since) = (installed.committee.epoch(), installed.compromised_since);
                let installation = Installation { after, index, epoch, compromised_since, voidable_at };
                self.authority.shards[shard].follow_installation(&installation).unwrap();
                return;
            }
            PrimaryEventKind::UnlockRequested { is_authorized: false, .. } => return,
            PrimaryEventKind::UnlockRequested { account, sequence, is_authorized: true } => {
                ((*account, *sequence), UnlockEventKind::Requested(voidable_at))
            }
            PrimaryEventKind::Upheld { account, sequence, digest } => {
                ((*account, *sequence), UnlockEventKind::Upheld(*digest))
            }
            PrimaryEventKind::Voided { account, sequence } => ((*account, *sequence), UnlockEventKind::Voided),
            PrimaryEventKind::Redeemed { account, sequence, digest }
            | PrimaryEventKind::Queued { account, sequence, digest } => {
                ((*account, *sequence), UnlockEventKind::Spent(*digest))
            }
            PrimaryEventKind::Released { account, sequence, digest } => {
                ((*account, *sequence), UnlockEventKind::Released(*digest))
            }
        };
        let (account, sequence) = slot;
        if self.shard_of(account) != shard {
            return;
        }
        let Some(kind) = self.explained(history, (account, sequence.0), kind) else { return };
        let event = UnlockEvent { after, index, account, sequence, kind };
        self.authority.shards[shard].follow_unlock(&event).unwrap();
        if cut.is_none_or(|cut| self.next(&account) < cut.next(&account).0) {
            self.advance(history, account);
        }
    }

    /// As an authority's node says of an executed number what is executed there.
    fn explained(&self, history: &History, slot: Slot, kind: UnlockEventKind) -> Option<UnlockEventKind> {
        let is_about_redemption = matches!(kind, UnlockEventKind::Spent(_) | UnlockEventKind::Released(_));
        if !is_about_redemption || slot.1 >= self.next(&slot.0) || history.voids.contains(&slot) {
            return Some(kind);
        }
        let executed = &history.certificates[&slot];
        let Transfer::Redemption(redemption) = executed.transfer() else { return None };
        let (asset, amount) = (redemption.asset, redemption.amount);
        kind.after(ExecutedRedemption { digest: executed.digest(), asset, amount })
    }

    /// Whether a cut may include the number, by what this authority, which takes none, has read.
    pub fn may_include(&self, slot: Slot, history: &History) -> bool {
        let unlock = self.shard(slot.0).ledger().unlocks.get(slot.0, SequenceNumber(slot.1));
        let is_voided = unlock.is_some_and(Unlock::is_voided);
        match history.certificates.get(&slot) {
            Some(certificate) if !history.voids.contains(&slot) => {
                !is_voided
                    && unlock.is_none_or(|unlock| !unlock.is_frozen() || unlock.upheld() == Some(certificate.digest()))
            }
            _ => is_voided,
        }
    }

    /// The records of all its journals.
    pub fn records(&self) -> impl Iterator<Item = Record> {
        self.authority.shards.iter().flat_map(|shard| shard.journal().records().map(|(_, record)| record))
    }

    /// What the shards hold is what the state says.
    pub fn compare(&self, state: &CheckpointState, history: &History) {
        let cut = state.cut();
        let held = |(account, asset)| ((account, asset), self.authority.account(&account).balance(asset));
        let held: BTreeMap<_, _> =
            history.balance_keys().map(held).filter(|(_, balance)| *balance != Balance::ZERO).collect();
        assert_eq!(held, *state.balances());
        for owner in &history.owners {
            let (next, included) = (self.next(&owner.id()), cut.next(&owner.id()).0);
            // A void number that the cut does not include may have been stepped over with one that it does.
            let is_void =
                |number| state.numbers().get(&(owner.id(), SequenceNumber(number))).is_some_and(NumberState::is_voided);
            assert!(next >= included && (included..next).all(is_void), "{next} instead of {included}");
        }
        let mut numbers = BTreeMap::new();
        for shard in &self.authority.shards {
            assert_eq!(shard.ledger().synchronized, cut.up_to);
            assert_eq!(shard.ledger().unlocks.epoch(), state.installations().epoch());
            for (account, sequence, unlock) in shard.ledger().unlocks.iter() {
                let number = number_state(unlock);
                let counts = number.is_voided() || sequence >= cut.next(&account);
                if counts && number != NumberState::default() {
                    numbers.insert((account, sequence), number);
                }
            }
        }
        // Whether the contract has paid what it spent, shards do not know.
        let expected = state.numbers().iter().map(|(slot, number)| {
            let spent = number.spent.map(|spent| Spent { is_paid: false, ..spent });
            (*slot, NumberState { spent, ..*number })
        });
        assert_eq!(numbers, expected.collect());
    }
}

fn number_state(unlock: &Unlock) -> NumberState {
    let outcome = unlock.outcome.map(|outcome| match outcome {
        UnlockOutcome::Upheld(digest) => Outcome::Upheld { digest, epoch: unlock.upheld_in.unwrap() },
        UnlockOutcome::Voided => Outcome::Voided,
    });
    let spent = unlock.spent.map(|digest| Spent { digest, is_paid: false, epoch: unlock.spent_in });
    if outcome == Some(Outcome::Voided) {
        return NumberState { outcome, ..NumberState::default() };
    }
    NumberState { is_requested: unlock.is_frozen(), outcome, spent }
}

/// A signature by the Ed25519 key of this seed, and not the one that its owner's wallet makes.
pub fn another_signature(seed: &[u8; 32], digest: Digest) -> Ed25519Signature {
    let expanded: [u8; 64] = Sha512::digest(seed).into();
    let secret = Scalar::from_bytes_mod_order(clamp_integer(*expanded.first_chunk().unwrap()));
    let nonce = Scalar::from_bytes_mod_order_wide(&Sha512::digest(digest).into());
    let r = EdwardsPoint::mul_base(&nonce).compress();
    let key = EdwardsPoint::mul_base(&secret).compress();
    let hash = Sha512::new().chain_update(r.0).chain_update(key.0).chain_update(digest).finalize();
    let s = nonce + Scalar::from_bytes_mod_order_wide(&hash.into()) * secret;
    Ed25519Signature([r.0, s.to_bytes()].concat().try_into().unwrap())
}
