//! Follows undecided numbers by the contract's events in final blocks. A request counts only with the owner's
//! signature, whoever sent it.

use fastpay_core::{AccountId, SequenceNumber, is_unlock_authorized};
use fastpay_ethereum::{DepositsError, OrderEvent};

use super::{Number, OpenUnlock};
use crate::relayer::{Relayer, RelayerError, wait_or_stop};
use crate::unlocks::Unlocks;

/// The maximum number of block ranges read in one round.
const RANGES_MAX: usize = 8;
/// The maximum number of undecided numbers that are followed. Each cost a bond. If there are more, the oldest that
/// others asked for is dropped.
const OPEN_MAX: usize = 2_000;
/// The maximum for one account, the lowest numbers: its next number is among them, and no other can be decided.
const OPEN_OF_ACCOUNT_MAX: usize = 4;
/// The cursor is written to disk after this many blocks without an event.
const QUIET_BLOCKS_MAX: u64 = 1_000;

impl Relayer {
    /// Reads new final events. Returns false if there are more, or if the nodes do not answer now.
    pub(super) async fn read_requests(&mut self) -> Result<bool, RelayerError> {
        for _ in 0..RANGES_MAX {
            match self.read_range().await {
                Ok(false) => {}
                Ok(true) => return Ok(true),
                // Work on known numbers continues.
                Err(DepositsError::Primary(error)) => {
                    wait_or_stop(error)?;
                    return Ok(false);
                }
                Err(DepositsError::Alarm(alarm)) => {
                    tracing::error!(%alarm, "the contract's events cannot be read; check the Ethereum nodes");
                    return Ok(false);
                }
                Err(error) => {
                    tracing::warn!(%error, "waiting");
                    return Ok(false);
                }
            }
        }
        Ok(false)
    }

    /// Reads the next range of blocks, and returns whether it was the last one.
    async fn read_range(&mut self) -> Result<bool, DepositsError> {
        let from = match self.state.unlock.cursor {
            Some(cursor) => cursor,
            None => self.unlocking.reader.start().await?,
        };
        let batch = self.unlocking.reader.next(&from).await?;
        batch.events.iter().for_each(|event| self.follow_event(event));
        self.changed |= !batch.events.is_empty();
        self.changed |= batch.cursor.block_number.saturating_sub(from.block_number) >= QUIET_BLOCKS_MAX;
        self.state.unlock.cursor = Some(batch.cursor);
        Ok(batch.cursor.block_number >= batch.final_block)
    }

    fn follow_event(&mut self, event: &OrderEvent) {
        match event {
            OrderEvent::UnlockRequested(request) => {
                let (account, sequence) = (AccountId(request.account.0), SequenceNumber(request.sequence));
                let domain = self.sender.primary().domain();
                if !is_unlock_authorized(&domain, account, sequence, &request.authorization) {
                    tracing::info!(%account, %sequence, "an account other than the owner requested an unlock");
                } else if self.state.unlock.position((account, sequence)).is_none() {
                    tracing::info!(%account, %sequence, "an owner requested an unlock");
                    self.state.unlock.follow(OpenUnlock {
                        account,
                        sequence,
                        voidable_from: request.voidableFrom.saturating_to(),
                        is_ours: false,
                        tries: 0,
                        next_at_ms: 0,
                        waits_for: "the authorities are asked".into(),
                    });
                }
            }
            OrderEvent::SequenceUpheld(upheld) => {
                self.close_unlock((AccountId(upheld.account.0), SequenceNumber(upheld.sequence)), "upheld");
            }
            OrderEvent::SequenceVoided(voided) => {
                self.close_unlock((AccountId(voided.account.0), SequenceNumber(voided.sequence)), "void");
            }
            _ => {}
        }
    }

    fn close_unlock(&mut self, number: Number, outcome: &str) {
        if let Some(position) = self.state.unlock.position(number) {
            tracing::info!(account = %number.0, sequence = %number.1, outcome, "a number is decided");
            self.state.unlock.open.remove(position);
        }
    }
}

impl Unlocks {
    /// Follows one more number, and drops one if there are too many. A number that returns this relayer's bond is never
    /// dropped.
    fn follow(&mut self, new: OpenUnlock) {
        let account = new.account;
        self.open.push(new);
        let others = || self.open.iter().enumerate().filter(|(_, open)| !open.is_ours);
        let of_account = others().filter(|(_, open)| open.account == account);
        let out = if of_account.clone().count() > OPEN_OF_ACCOUNT_MAX {
            of_account.max_by_key(|(_, open)| open.sequence)
        } else if self.open.len() > OPEN_MAX {
            others().min_by_key(|(_, open)| open.voidable_from)
        } else {
            None
        };
        if let Some(position) = out.map(|(position, _)| position) {
            let OpenUnlock { account, sequence, .. } = self.open.remove(position);
            tracing::info!(%account, %sequence, "too many numbers are undecided; this one is not followed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(account: u64, sequence: u64, voidable_from: u64) -> OpenUnlock {
        let mut name = [0; 32];
        name[..8].copy_from_slice(&account.to_be_bytes());
        OpenUnlock {
            account: AccountId(name),
            sequence: SequenceNumber(sequence),
            voidable_from,
            is_ours: false,
            tries: 0,
            next_at_ms: 0,
            waits_for: String::new(),
        }
    }

    fn sequences(unlocks: &Unlocks, account: u64) -> Vec<u64> {
        let name = open(account, 0, 0).account;
        let mut found: Vec<_> =
            unlocks.open.iter().filter(|open| open.account == name).map(|open| open.sequence.0).collect();
        found.sort_unstable();
        found
    }

    #[test]
    fn of_an_account_the_lowest_numbers_are_followed() {
        let mut unlocks = Unlocks::default();
        (5..1_005).rev().for_each(|sequence| unlocks.follow(open(1, sequence, 7)));
        assert_eq!(sequences(&unlocks, 1), [5, 6, 7, 8]);
        unlocks.follow(open(1, 9, 7));
        unlocks.follow(open(1, 2, 7));
        assert_eq!(sequences(&unlocks, 1), [2, 5, 6, 7]);
        unlocks.follow(open(2, 9, 7));
        assert_eq!(sequences(&unlocks, 2), [9]);
    }

    #[test]
    fn of_too_many_the_oldest_makes_way_and_ours_never() {
        let mut unlocks = Unlocks::default();
        unlocks.follow(OpenUnlock { is_ours: true, ..open(0, 3, 0) });
        (1..=OPEN_MAX as u64 + 50).for_each(|number| unlocks.follow(open(number, 3, number)));
        assert_eq!(unlocks.open.len(), OPEN_MAX);
        assert_eq!([0, 1, 51, 52].map(|account| sequences(&unlocks, account).len()), [1, 0, 0, 1]);
        // A flood of the account's own numbers does not displace the bond of its lowest one.
        (4..10).for_each(|sequence| unlocks.follow(open(0, sequence, u64::MAX)));
        assert_eq!(sequences(&unlocks, 0)[0], 3);
    }
}
