//! Follows undecided numbers by the contract's events in final blocks. A request counts only with the owner's
//! signature, whoever sent it.

use std::cmp::Reverse;

use fastpay_core::{AccountId, SequenceNumber, is_unlock_authorized};
use fastpay_ethereum::{DepositsError, OrderEvent};

use super::{Number, OpenUnlock};
use crate::relayer::{Relayer, RelayerError, wait_if_it_passes};
use crate::unlocks::Unlocks;

/// The maximum number of block ranges read in one round.
const RANGES_MAX: usize = 8;
/// The maximum number of undecided numbers that are followed. Each cost a bond. If there are more, one is dropped of
/// those that others paid for, once contract and authorities were asked about it.
const OPEN_MAX: usize = 2_000;
/// The maximum for one account, apart from those that may be its next one: that one is never dropped for its sake.
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
                    wait_if_it_passes(error.into())?;
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
            None => self.primary.unlocking.reader.start().await?,
        };
        let batch = self.primary.unlocking.reader.next(&from).await?;
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
                let domain = self.domain;
                if !is_unlock_authorized(&domain, account, sequence, &request.authorization) {
                    tracing::info!(%account, %sequence, "an account other than the owner requested an unlock");
                } else if self.state.unlock.position((account, sequence)).is_none() {
                    tracing::info!(%account, %sequence, "an owner requested an unlock");
                    self.state.unlock.follow(OpenUnlock {
                        account,
                        sequence,
                        voidable_from: request.voidableFrom.saturating_to(),
                        is_ours: false,
                        is_below: None,
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
    /// dropped, nor one that may do so or may be its account's next one, before that is known.
    fn follow(&mut self, new: OpenUnlock) {
        let account = new.account;
        self.open.push(new);
        while let Some(position) = self.too_many(account) {
            let OpenUnlock { account, sequence, .. } = self.open.remove(position);
            tracing::info!(%account, %sequence, "too many numbers are undecided; this one is not followed");
        }
    }

    /// One that makes way, if there are too many, or too many of this account.
    fn too_many(&self, account: AccountId) -> Option<usize> {
        let others = || self.open.iter().enumerate().filter(|(_, open)| !open.is_ours);
        let is_crowded = self.open.iter().filter(|open| open.account == account).count() > OPEN_OF_ACCOUNT_MAX;
        let below = others().filter(|(_, open)| open.account == account && open.is_below == Some(true));
        let out = below.filter(|_| is_crowded).min_by_key(|(_, open)| open.sequence).or_else(|| {
            let asked = others().filter(|(_, open)| self.open.len() > OPEN_MAX && open.is_below.is_some());
            asked.max_by_key(|(_, open)| (open.is_below, self.rank(open), Reverse(open.voidable_from)))
        });
        // While nobody answers, the oldest make way.
        let oldest = || {
            let others = others().filter(|_| self.open.len() > 2 * OPEN_MAX);
            others.min_by_key(|(_, open)| open.voidable_from)
        };
        out.or_else(oldest).map(|(position, _)| position)
    }

    /// How many lower numbers of its account are to be decided before a number.
    fn rank(&self, of: &OpenUnlock) -> usize {
        let is_before = |open: &&OpenUnlock| {
            open.account == of.account && open.sequence < of.sequence && open.is_below == Some(false)
        };
        self.open.iter().filter(is_before).count()
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
            is_below: None,
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

    /// As `open`, after the authorities were asked.
    fn asked(account: u64, sequence: u64, voidable_from: u64, is_below: bool) -> OpenUnlock {
        OpenUnlock { is_below: Some(is_below), ..open(account, sequence, voidable_from) }
    }

    #[test]
    fn no_other_numbers_of_its_account_displace_the_next_one() {
        const NEXT: u64 = 4;
        let mut unlocks = Unlocks::default();
        // Executed numbers can be asked for, too.
        (0..NEXT).for_each(|sequence| unlocks.follow(open(1, sequence, 7)));
        unlocks.follow(open(1, NEXT, 7));
        (NEXT + 1..=NEXT + 10).for_each(|sequence| unlocks.follow(open(1, sequence, 7)));
        assert_eq!(sequences(&unlocks, 1), Vec::from_iter(0..=NEXT + 10), "nobody has said which one it is");
        unlocks.open.iter_mut().for_each(|open| open.is_below = Some(open.sequence.0 < NEXT));
        // Those below it make way.
        (NEXT + 11..NEXT + 20).for_each(|sequence| unlocks.follow(open(1, sequence, 7)));
        assert_eq!(sequences(&unlocks, 1), Vec::from_iter(NEXT..NEXT + 20));
        // But not if this relayer paid for one of them.
        unlocks.follow(OpenUnlock { is_ours: true, ..asked(1, 0, 7, true) });
        unlocks.follow(asked(1, 1, 7, true));
        assert_eq!(sequences(&unlocks, 1), Vec::from_iter([0].into_iter().chain(NEXT..NEXT + 20)));
    }

    #[test]
    fn of_too_many_those_that_matter_least_make_way_and_ours_never() {
        let mut unlocks = Unlocks::default();
        unlocks.follow(OpenUnlock { is_ours: true, ..asked(0, 3, 0, false) });
        // Who paid for these is not known yet.
        (1..4).for_each(|account| unlocks.follow(open(account, 3, 0)));
        (2..20).for_each(|sequence| unlocks.follow(asked(4, sequence, 0, false)));
        // The order of this one's first number is executed.
        [true, false].into_iter().zip(0..).for_each(|(is_below, number)| unlocks.follow(asked(5, number, 0, is_below)));
        (6..OPEN_MAX as u64 - 18).for_each(|account| unlocks.follow(asked(account, 3, account, false)));
        assert_eq!(unlocks.open.len(), OPEN_MAX);
        let mut fill = |from: u64, count: u64| {
            (from..from + count).for_each(|account| unlocks.follow(asked(account, 3, account, false)));
            assert_eq!(unlocks.open.len(), OPEN_MAX);
            [4, 5].map(|account| sequences(&unlocks, account))
        };
        assert_eq!(fill(10_000, 1), [Vec::from_iter(2..20), vec![1]]);
        assert_eq!(fill(20_000, 17), [vec![2], vec![1]]);
        // Then the oldest ones.
        assert!(fill(30_000, 3).iter().all(Vec::is_empty));
        assert_eq!([0, 1, 2, 3, 6, 7].map(|account| sequences(&unlocks, account).len()), [1, 1, 1, 1, 0, 1]);
        // While nobody answers, there are twice as many.
        let unasked = 2 * OPEN_MAX as u64 + 50;
        (0..unasked).for_each(|account| unlocks.follow(open(40_000 + account, 3, 50_000 + account)));
        assert_eq!(unlocks.open.len(), 2 * OPEN_MAX);
        assert_eq!([0, 40_000, 40_000 + unasked - 1].map(|account| sequences(&unlocks, account).len()), [1, 0, 1]);
    }
}
