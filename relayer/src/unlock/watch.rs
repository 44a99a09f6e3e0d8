//! Undecided numbers, from the contract's events in final blocks. A request counts only with the owner's signature,
//! whoever sent it.

use fastpay_core::{AccountId, SequenceNumber, is_unlock_authorized};
use fastpay_ethereum::{DepositsError, OrderEvent};

use super::{Number, OpenUnlock};
use crate::relayer::{Relayer, RelayerError, wait_or_stop};

/// The maximum number of block ranges read in one round.
const RANGES_MAX: usize = 8;
/// The maximum number of undecided numbers. No more events are read until some are decided. Each cost a bond.
const OPEN_MAX: usize = 1_000;
/// The cursor is written to disk after this many blocks without an event.
const QUIET_BLOCKS_MAX: u64 = 1_000;

impl Relayer {
    /// Reads new final events. False if there are more, or the nodes do not answer now.
    pub(super) async fn read_requests(&mut self) -> Result<bool, RelayerError> {
        for _ in 0..RANGES_MAX {
            if self.state.unlock.open.len() >= OPEN_MAX {
                tracing::warn!(open = OPEN_MAX, "no more requests to unlock are followed until some are decided");
                return Ok(false);
            }
            match self.read_range().await {
                Ok(false) => {}
                Ok(true) => return Ok(true),
                // Work on known numbers continues.
                Err(DepositsError::Primary(error)) => {
                    wait_or_stop(error)?;
                    return Ok(false);
                }
                Err(DepositsError::Alarm(alarm)) => {
                    tracing::error!(%alarm, "the contract's order cannot be followed; look at the Ethereum nodes");
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

    /// Reads the next range of blocks, and says whether it was the last one.
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
                    tracing::info!(%account, %sequence, "a stranger asked to unlock a number");
                } else if self.state.unlock.position((account, sequence)).is_none() {
                    tracing::info!(%account, %sequence, "an owner asked to unlock a number");
                    self.state.unlock.open.push(OpenUnlock {
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
