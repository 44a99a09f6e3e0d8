//! A shard that owns the pool, and private transfers.

use fastpay_core::private::{
    CheckedPrivateOrder, PrivateCertificate, PrivateRejection, VerifiedPrivateCertificate, VerifiedPrivateOrder,
    Versions,
};
use fastpay_core::{AccountId, Decision, Epoch, PrimaryView, PrivateDecision, Standing, VoteFloor};

use super::{Outcome, TestShard};

impl TestShard {
    /// What is decided about a private order without its proof; none if the proof decides.
    pub fn precheck_private(
        &mut self,
        order: &CheckedPrivateOrder,
        (epoch, view): (Epoch, PrimaryView),
        versions: &Versions,
    ) -> Option<PrivateDecision> {
        loop {
            let decision = self.shard.precheck_private(order, epoch, VoteFloor::Zero, view, versions);
            self.shard.release();
            match decision {
                Some(Decision::Load(accounts)) => self.load(accounts, self.journal.end()),
                Some(Decision::CommitFirst(record)) => self.append(&record),
                decision => return decision,
            }
        }
    }

    /// Votes for a private order.
    ///
    /// # Errors
    /// The rejection, if a rule refuses it.
    pub fn lock_private(
        &mut self,
        order: &VerifiedPrivateOrder,
        (epoch, view): (Epoch, PrimaryView),
        floor: VoteFloor,
        versions: &Versions,
    ) -> Result<Outcome, PrivateRejection> {
        self.run(|shard| shard.lock_private(order, epoch, floor, view, versions))
    }

    /// Executes a private certificate.
    ///
    /// # Errors
    /// The rejection, if a rule refuses it.
    pub fn confirm_private(
        &mut self,
        certificate: &VerifiedPrivateCertificate,
        view: PrimaryView,
        standing: Standing,
    ) -> Result<Outcome, PrivateRejection> {
        self.run(|shard| shard.confirm_private(certificate, view, standing))
    }

    /// After an event about a number of a nullifier, passes over the numbers that the contract has voided and executes the
    /// upheld certificate that the shard keeps. `verify` verifies again what was verified before it was kept.
    pub fn advance_private(
        &mut self,
        account: AccountId,
        view: PrimaryView,
        verify: impl Fn(PrivateCertificate) -> VerifiedPrivateCertificate,
    ) {
        loop {
            if let Some(record) = self.shard.step_over(account) {
                self.append(&record);
                continue;
            }
            let Some(seen) = self.shard.executable_private(account) else { return };
            let certificate = verify(PrivateCertificate::clone(&seen.certificate));
            if self.confirm_private(&certificate, view, Standing::Counts).is_err() {
                return;
            }
        }
    }
}
