//! An honest authority of several shards. Messages between its shards wait until the test delivers them.

use fastpay_core::{
    Account, AccountId, Amount, AuthorityKeys, Balance, Base, BaseAccount, BaseLedger, Certificate, CertificateError,
    Committees, CrossShardCredit, Deposit, Digest, Domain, Epoch, OrderError, Recovery, Redemption, Rejection,
    SequenceNumber, ShardId, ShardLayout, SynchronizationOrder, TransactionIndex, TransferOrder, Unlock, UnlockOutcome,
    Vote, sign_vote,
};

use crate::{Outcome, TestCommittee, TestShard};

/// Why an authority refuses a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TestAuthorityError {
    /// The order itself is invalid.
    #[error(transparent)]
    Order(#[from] OrderError),
    /// The certificate itself is invalid.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// The certificate belongs to an epoch that the authority has not reached.
    #[error("epoch {0} is not known yet")]
    UnknownEpoch(Epoch),
    /// A recovery has installed this epoch, and the certificate is of an earlier one.
    #[error("certificates count since epoch {0}")]
    EpochEnded(Epoch),
    /// A rule of the protocol rejects the request.
    #[error(transparent)]
    Rejection(#[from] Rejection),
}

/// An authority: its keys and its shards.
#[derive(Clone, Debug)]
pub struct TestAuthority {
    domain: Domain,
    committees: Committees,
    keys: AuthorityKeys,
    layout: ShardLayout,
    /// Its shards, by number.
    pub shards: Vec<TestShard>,
}

impl TestAuthority {
    /// The member at `index` of a committee, with `shard_count` shards and a Primary.
    #[must_use]
    pub fn new(committee: &TestCommittee, index: usize, shard_count: u32) -> Self {
        let layout = ShardLayout::new(shard_count.try_into().expect("at least one shard"));
        Self {
            domain: committee.domain,
            committees: Committees::new(committee.committee.clone()).expect("test committees start at epoch 0"),
            keys: committee.keys[index].clone(),
            layout,
            shards: layout.shards().map(|id| TestShard::new(id, layout, true)).collect(),
        }
    }

    /// All members of a committee; `shard_counts` states how many shards each has.
    #[must_use]
    pub fn all(committee: &TestCommittee, shard_counts: &[u32]) -> Vec<Self> {
        let members = 0..committee.keys.len();
        members.map(|index| Self::new(committee, index, shard_counts[index % shard_counts.len()])).collect()
    }

    /// Follows the Primary to the next epoch, in which this authority is the member at `index`. Locks stay.
    pub fn rotate(&mut self, next: &TestCommittee, index: usize) {
        self.committees.install(next.committee.clone()).expect("epochs come one by one");
        self.keys = next.keys[index].clone();
    }

    /// Begins anew in the next epoch, which a recovery has installed, from an empty checkpoint that it has adopted. This
    /// authority is the member at `index`.
    pub fn recover(&mut self, next: &TestCommittee, index: usize) {
        self.rotate(next, index);
        let recovery = Recovery { epoch: next.committee.epoch(), adopted: Some(Digest::repeat_byte(1)) };
        self.committees.recover(recovery).expect("the epoch is the current one");
        self.shards = self.layout.shards().map(|id| TestShard::new(id, self.layout, true)).collect();
    }

    /// After a recovery, without anything executed yet: goes on from a checkpoint in which it has debited this redemption
    /// without its order. Its account goes on with a number, and has what is left.
    pub fn debit_paid(&mut self, epoch: Epoch, redemption: &Redemption, (number, left): (SequenceNumber, Amount)) {
        let account = redemption.sender;
        let shard = self.shard(&account);
        shard.begin(Base::Checkpoint(BaseLedger {
            number: 1,
            checkpoint: Digest::repeat_byte(1),
            generation: 1,
            synchronized: TransactionIndex(0),
            epoch,
            compromised: vec![(Epoch(0), epoch)],
            redemptions: 0,
        }));
        shard.begin(Base::Account(BaseAccount {
            account,
            checkpoint: 1,
            next: number,
            received: 0,
            deposits: 0,
            balances: [(redemption.asset, Balance::from(left))].into_iter().collect(),
        }));
        if number <= redemption.sequence {
            let unlock = Unlock { outcome: Some(UnlockOutcome::Voided), ..Unlock::default() };
            shard.begin(Base::Number { account, sequence: redemption.sequence, unlock });
        }
    }

    /// The epoch in which the authority votes.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.committees.current().epoch()
    }

    /// Goes on with other shards.
    #[cfg(feature = "rebase")]
    pub(crate) fn replace_shards(&mut self, layout: ShardLayout, shards: Vec<TestShard>) {
        (self.layout, self.shards) = (layout, shards);
    }

    /// The shard that owns an account.
    pub fn shard(&mut self, account: &AccountId) -> &mut TestShard {
        let shard = self.layout.shard_of(account);
        &mut self.shards[shard.0 as usize]
    }

    /// An account as this authority knows it.
    #[must_use]
    pub fn account(&self, account: &AccountId) -> Account {
        self.shards[self.layout.shard_of(account).0 as usize].account(account)
    }

    /// Votes for an order, or returns the vote again.
    ///
    /// # Errors
    /// If an honest authority refuses the order.
    pub fn order(&mut self, order: &TransferOrder) -> Result<Vote, TestAuthorityError> {
        let verified = order.clone().verify(&self.domain)?;
        self.shard(&verified.transfer().sender()).lock(&verified)?;
        Ok(sign_vote(&self.keys, &self.domain, self.epoch(), &order.transfer, verified.digest()))
    }

    /// Executes a certificate.
    ///
    /// # Errors
    /// If an honest authority refuses the certificate.
    pub fn confirm(&mut self, certificate: &Certificate) -> Result<Outcome, TestAuthorityError> {
        let since = self.committees.counting_since();
        if certificate.epoch < since {
            return Err(TestAuthorityError::EpochEnded(since));
        }
        let committee =
            self.committees.get(certificate.epoch).ok_or(TestAuthorityError::UnknownEpoch(certificate.epoch))?;
        let verified = certificate.clone().verify(&self.domain, committee)?;
        Ok(self.shard(&verified.transfer().sender()).confirm(&verified)?)
    }

    /// Follows the Primary to a deposit, on all shards. Deposits must be passed in their order.
    ///
    /// # Errors
    /// The rejection, if a rule refuses it.
    pub fn deposit(&mut self, deposit: &Deposit) -> Result<(), Rejection> {
        let owner = self.layout.shard_of(&deposit.recipient);
        for shard in &mut self.shards {
            let deposit_here = (shard.rules().id() == owner).then(|| deposit.clone());
            let after = shard.ledger().synchronized;
            shard.synchronize(&SynchronizationOrder { after, up_to: deposit.index, deposit: deposit_here })?;
        }
        Ok(())
    }

    /// The credits that wait, each with the shard that receives it.
    #[must_use]
    pub fn credits_waiting(&self) -> Vec<(ShardId, CrossShardCredit)> {
        let ledgers = self.shards.iter().map(TestShard::ledger);
        ledgers
            .flat_map(|ledger| &ledger.outboxes)
            .flat_map(|(to, outbox)| outbox.waiting.iter().map(|credit| (*to, credit.clone())))
            .collect()
    }

    /// Delivers a credit to its shard, and acknowledges it to the sending shard.
    ///
    /// # Errors
    /// The rejection, if it is not the credit's turn.
    pub fn deliver(&mut self, to: ShardId, credit: &CrossShardCredit) -> Result<Outcome, Rejection> {
        let outcome = self.shards[to.0 as usize].credit(credit)?;
        self.shards[credit.from.0 as usize].acknowledge(to, credit.number);
        Ok(outcome)
    }

    /// Delivers all waiting credits in order.
    pub fn deliver_all(&mut self) {
        for (to, credit) in self.credits_waiting() {
            self.deliver(to, &credit).expect("credits wait in the order of their numbers");
        }
    }

    /// The sum of all balances over all assets and all accounts of all shards.
    #[must_use]
    pub fn balances_total(&self) -> Balance {
        let accounts = self.shards.iter().flat_map(|shard| shard.accounts().into_values());
        let held = accounts.flat_map(|account| account.balances.iter().map(|(_, balance)| balance).collect::<Vec<_>>());
        held.fold(Balance::ZERO, Balance::plus)
    }
}
