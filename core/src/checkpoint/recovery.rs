//! The rules of a recovery [LIFE §3.5, §5]: the segment by which the committee of a recovery's installation begins. It is
//! made of what is known, not of what a committee agreed on, so some rules differ from those of other segments.
//!
//! ```text
//!  Recovery ─► events after D ─► numbers, with those that the Primary paid ─► the installation that made the recovery
//! ```
//! The installation comes last, because what the Primary upheld and spent says which order of a number holds until
//! then; the installation opens the rest again. What it names as out upheld nothing: thieves may have done that.
//!
//! Invariant: what the Primary paid, or will pay because it queued it with votes of a sound epoch, is debited, whether or
//! not a certificate is known. Only that may leave an account owing. What was queued with keys that were out is paid
//! only with votes of the new committee, so it binds nothing: as any order, it needs its certificate and its cover.
//! Otherwise whoever hides the certificates that he paid with would keep the money that others spend.
//!
//! Votes count for a while in the epoch after theirs, and a segment says only in which epoch a redemption was queued. So
//! what was queued in the first epoch whose keys were out may have sound votes. Whoever rebuilds knows it from the
//! Primary ([`super::KnownFacts`]); here both are valid.

use std::collections::BTreeSet;

use super::application::{Application, SegmentError};
use super::segment::{PrimaryEvent, PrimaryEventKind};
use super::state::{CheckpointState, NumberState, Outcome};
use crate::Digest;
use crate::amount::{Asset, Epoch, SequenceNumber};
use crate::identity::AccountId;
use crate::transfer::{Redemption, Transfer};
use crate::unlock::RELEASED;

/// A recovery that is being applied.
#[derive(Debug, Default)]
pub(super) struct Recovery {
    /// The account whose numbers come next are behind a gap, and the last of them.
    behind_gap: Option<(AccountId, SequenceNumber)>,
    /// Balances that were debited because the Primary paid.
    debited: BTreeSet<(AccountId, Asset)>,
    /// Balances that were debited by orders that the Primary has not paid.
    ordered: BTreeSet<(AccountId, Asset)>,
    /// Numbers that have another order than the one that the Primary upheld or queued, and the epoch in which it did.
    overruled: Vec<(SegmentError, Epoch)>,
    /// Numbers that are taken because the Primary queued them, without their owners' orders, and in which epoch.
    undue: Vec<(SegmentError, Epoch)>,
    /// Balances that were debited by orders that the Primary has queued, and in which epoch.
    queued: Vec<((AccountId, Asset), Epoch)>,
    /// The newest entry is an installation that may have made the recovery.
    is_over: bool,
}

impl PrimaryEventKind {
    /// Whether this is the installation of a recovery ([`super::InstalledCommittee::is_recovery`]).
    #[must_use]
    pub fn is_recovery(&self) -> bool {
        matches!(self, Self::Installed(installed) if installed.is_recovery())
    }
}

impl NumberState {
    /// The redemption that the Primary paid under this number, or queued.
    pub(super) fn paid(&self) -> Option<Digest> {
        self.spent.map(|spent| spent.digest).filter(|digest| *digest != RELEASED && !self.is_voided())
    }

    /// The same, if the Primary has paid it, or queued it in an epoch of which nothing says that keys were out.
    pub(super) fn is_owed(&self) -> bool {
        self.paid().is_some() && self.spent.is_some_and(|spent| spent.is_paid || spent.epoch.is_some())
    }

    /// The order that the Primary upheld, and in which epoch.
    pub(super) fn upheld_in(&self) -> Option<(Digest, Epoch)> {
        match self.outcome? {
            Outcome::Upheld { digest, epoch } => Some((digest, epoch)),
            Outcome::Voided => None,
        }
    }
}

impl Recovery {
    /// Whether the account's numbers that come next are behind a gap.
    pub(super) fn is_behind_gap(&self, account: AccountId) -> bool {
        self.behind_gap.is_some_and(|(behind, _)| behind == account)
    }

    /// Judges an order by what the Primary said of its number. A frozen one is executed: nobody else will decide, and
    /// what is left out now counts for nothing.
    pub(super) fn judge(
        &mut self,
        transfer: &Transfer,
        digest: Digest,
        number: &NumberState,
    ) -> Result<(), SegmentError> {
        let (account, sequence) = (transfer.sender(), transfer.sequence());
        let overruled = |upheld| SegmentError::Overruled { account, sequence, upheld };
        let (of, spent) = ((account, transfer.asset()), number.paid().and(number.spent));
        let is_displaced = matches!(transfer, Transfer::Redemption(_)) && number.spent.is_some();
        // The installation says later whether keys of an epoch were out.
        match spent {
            Some(spent) if spent.digest == digest => {
                self.debited.insert(of);
                self.queued.extend(spent.epoch.filter(|_| !spent.is_paid).map(|epoch| (of, epoch)));
                return Ok(());
            }
            Some(spent) if spent.is_paid => return Err(overruled(spent.digest)),
            Some(spent) => self.overruled.extend(spent.epoch.map(|epoch| (overruled(spent.digest), epoch))),
            None => {}
        }
        let upheld = number.upheld_in().filter(|(upheld, _)| *upheld != digest);
        self.overruled.extend(upheld.map(|(upheld, epoch)| (overruled(upheld), epoch)));
        if !is_displaced {
            self.ordered.insert(of);
        }
        Ok(())
    }

    /// Whether the account owes because of what the Primary paid, and of nothing else.
    pub(super) fn may_owe(&self, account: AccountId, asset: Asset) -> bool {
        self.debited.contains(&(account, asset)) && !self.ordered.contains(&(account, asset))
    }

    /// Checks that an installation made the recovery, and that it debits all that was paid.
    pub(super) fn finish(&self, state: &CheckpointState) -> Result<(), SegmentError> {
        if !self.is_over {
            return Err(SegmentError::NoRecovery);
        }
        // The installation has opened what was queued while keys were out.
        match state.numbers.iter().find(|(_, number)| number.is_owed()) {
            Some(((account, sequence), _)) => Err(SegmentError::NotDebited { account: *account, sequence: *sequence }),
            None => Ok(()),
        }
    }
}

impl Application {
    /// An entry comes: nothing does after the installation that made the recovery. Before all numbers, an installation
    /// may be of an earlier emergency.
    pub(super) fn go_on(&mut self) -> Result<(), SegmentError> {
        let Some(recovery) = &mut self.recovery else { return Ok(()) };
        let was_over = std::mem::take(&mut recovery.is_over);
        if was_over && self.account.is_some() { Err(SegmentError::AfterRecovery) } else { Ok(()) }
    }

    /// Whether the event is an installation that may have made the recovery, which then is over. What a sound epoch upheld
    /// holds.
    pub(super) fn ends_recovery(&mut self, event: &PrimaryEvent) -> Result<bool, SegmentError> {
        let Some(recovery) = &mut self.recovery else { return Ok(false) };
        let PrimaryEventKind::Installed(installed) = &event.kind else { return Ok(false) };
        recovery.is_over = installed.is_recovery();
        let is_sound = |epoch: Epoch| epoch < installed.compromised_since;
        // Votes of the epoch before count for a while. And where all epochs end, earlier releases debited what was queued,
        // and archives have their segments.
        let since = installed.compromised_since;
        let is_unbound = |epoch: Epoch| epoch > since && since > Epoch(0);
        let needing_cover = recovery.queued.iter().filter(|(_, epoch)| is_unbound(*epoch));
        recovery.ordered.extend(needing_cover.map(|(of, _)| *of));
        let overruled = recovery.overruled.iter().find(|(_, epoch)| is_sound(*epoch));
        match overruled.or_else(|| recovery.undue.iter().find(|(_, epoch)| is_unbound(*epoch))) {
            Some((error, _)) => Err(error.clone()),
            None => Ok(recovery.is_over),
        }
    }

    /// Debits what the Primary paid or queued. Behind a gap the number is void from then on, and is stepped over when it
    /// is reached.
    pub(super) fn debit_paid(&mut self, redemption: &Redemption) -> Result<(), SegmentError> {
        let Redemption { sender: account, sequence, asset, .. } = *redemption;
        if self.recovery.is_none() {
            return Err(SegmentError::OnlyInRecovery { account, sequence });
        }
        self.come_to(account)?;
        let transfer = Transfer::Redemption(redemption.clone());
        let digest = self.domain.transfer_digest(&transfer);
        let number = self.state.numbers.get(&(account, sequence)).copied().unwrap_or_default();
        let recovery = self.recovery.get_or_insert_default();
        let not_paid = SegmentError::NotPaid { account, sequence };
        match number.paid().and(number.spent) {
            Some(spent) if spent.digest == digest => {
                recovery.undue.extend(spent.epoch.filter(|_| !spent.is_paid).map(|epoch| (not_paid, epoch)));
            }
            _ => return Err(not_paid),
        }
        recovery.debited.insert((account, asset));
        let behind_gap = recovery.behind_gap.filter(|(behind, _)| *behind == account).map(|(_, last)| last);
        let next = self.state.cut.next(&account);
        match behind_gap {
            None if sequence == next => drop(self.state.next(account, sequence)?),
            last if sequence > last.unwrap_or(next) => {
                recovery.behind_gap = Some((account, sequence));
                self.state.numbers.insert((account, sequence), NumberState::VOIDED);
            }
            last => return Err(SegmentError::NumberGap { account, expected: last.unwrap_or(next), found: sequence }),
        }
        self.state.execute(&transfer, digest, &number)
    }
}
