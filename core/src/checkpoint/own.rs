//! The state of one authority: a certified state, and beyond its cut what the authority itself executed and followed.
//!
//! ```text
//!  S_k ──► events that it followed beyond D ──► numbers that it executed beyond V ──► its own state
//! ```
//! An authority executes certificates in any order, and does not wait for what covers them. So unlike in a segment that
//! a quorum certifies, an account may owe here, and a number may be frozen by a request that was read after it was
//! executed.

use std::collections::BTreeMap;

use super::application::SegmentError;
use super::segment::PrimaryEvent;
use super::state::{CheckpointState, NumberState};
use crate::Digest;
use crate::amount::{Balance, SequenceNumber};
use crate::identity::AccountId;
use crate::private::PrivateTransfer;
use crate::statement::Domain;
use crate::transfer::Transfer;

/// See the module header.
#[derive(Clone, Debug)]
pub struct OwnState {
    state: CheckpointState,
    displaced: BTreeMap<(AccountId, SequenceNumber), Digest>,
    domain: Domain,
}

impl OwnState {
    /// A certified state after the events behind its cut, which the authority has followed.
    ///
    /// # Errors
    /// [`SegmentError::EventGap`], [`SegmentError::Epochs`], [`SegmentError::Voided`].
    pub fn new(
        mut state: CheckpointState,
        events: impl IntoIterator<Item = PrimaryEvent>,
        domain: &Domain,
    ) -> Result<Self, SegmentError> {
        events.into_iter().try_for_each(|event| state.follow(event, domain))?;
        Ok(Self { state, displaced: BTreeMap::new(), domain: *domain })
    }

    /// The account took its next number: with this order, or because it is void.
    ///
    /// # Errors
    /// [`SegmentError::NumberGap`], [`SegmentError::NotVoided`], [`SegmentError::Voided`].
    pub fn take(
        &mut self,
        account: AccountId,
        sequence: SequenceNumber,
        transfer: Option<&Transfer>,
    ) -> Result<(), SegmentError> {
        let number = self.state.next(account, sequence)?;
        let Some(transfer) = transfer else { return self.state.step_over(account, sequence, &number) };
        let digest = self.domain.transfer_digest(transfer);
        if let (Some(spent), Transfer::Redemption(_)) = (number.spent, transfer)
            && spent.digest != digest
        {
            self.displaced.insert((account, sequence), spent.digest);
        }
        self.state.execute(transfer, digest, &number)
    }

    /// A private transfer took its numbers.
    ///
    /// # Errors
    /// [`SegmentError::NumberGap`], [`SegmentError::Voided`], [`SegmentError::Spent`].
    pub fn take_private(&mut self, transfer: &PrivateTransfer) -> Result<(), SegmentError> {
        let numbers @ [(account, sequence), (coin, only)] = transfer.taken();
        let (of_account, of_coin) = (self.state.next(account, sequence)?, self.state.next(coin, only)?);
        self.state.execute_private(transfer, numbers, [&of_account, &of_coin])
    }

    /// The authority's own state, whose cut is what it has executed and followed.
    #[must_use]
    pub fn finish(mut self) -> (CheckpointState, BTreeMap<(AccountId, SequenceNumber), Digest>) {
        self.state.balances.retain(|_, balance| *balance != Balance::ZERO);
        self.state.numbers.retain(|_, number| *number != NumberState::default());
        (self.state, self.displaced)
    }
}
