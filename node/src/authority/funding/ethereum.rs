//! The contract's events from finalized blocks, and its committees.

use std::collections::BTreeMap;

use fastpay_core::{Committees, Epoch, EpochEnd};
use fastpay_ethereum::{Cursor, DepositReader, DepositsError, EpochReader, OrderEvent, Primary, RANGE_BLOCKS_DEFAULT};

use super::Batch;
use crate::authority::deposit_sink::ShardEvent;
use crate::authority::rotation::{Rotation, RotationError};
use crate::authority::shard::ChainTime;

/// Reads one contract.
pub struct EthereumSource {
    primary: Primary,
    reader: DepositReader,
    epochs: EpochReader,
    /// The contract's unlock window in seconds, once read. It never changes.
    unlock_window: Option<u64>,
    /// The final block up to which the committees are known.
    committees_known_at: Option<u64>,
    /// The final block at which the committee's last sign of life was last read.
    life_known_at: Option<u64>,
    /// Until when certificates of epochs count, by the installations that were read since the committees were. The contract
    /// itself knows the last one alone. A restart on the way forgets them: such certificates then need votes (R9).
    ends: BTreeMap<Epoch, EpochEnd>,
}

impl EthereumSource {
    /// A source of this contract's events.
    #[must_use]
    pub fn new(primary: Primary) -> Self {
        let epochs = EpochReader::new(primary.clone());
        let reader = DepositReader::new(primary.clone(), RANGE_BLOCKS_DEFAULT);
        let (unlock_window, committees_known_at, life_known_at) = (None, None, None);
        Self { primary, reader, epochs, unlock_window, committees_known_at, life_known_at, ends: BTreeMap::new() }
    }

    pub(super) async fn start(&self) -> Result<Cursor, DepositsError> {
        self.reader.start().await
    }

    pub(super) async fn next(&mut self, cursor: &Cursor) -> Result<Batch, DepositsError> {
        let unlock_window = self.unlock_window().await?;
        let batch = self.reader.next(cursor).await?;
        self.note_ends(&batch.events, unlock_window);
        // The window of a request begins when this authority reads it, not when it was made. What was executed before
        // that, on a recent enough view, reaches the others in time.
        let voidable_at = batch.final_time.saturating_add(unlock_window);
        let domain = self.primary.domain();
        let events = batch.events.iter().filter_map(|event| ShardEvent::new(event, &domain, voidable_at));
        let (cursor, newest) = (batch.cursor, batch.final_block);
        let time = ChainTime { block_time: batch.time, unlock_window };
        Ok(Batch { events: events.collect(), cursor, newest, has_more: cursor.block_number < newest, time })
    }

    async fn unlock_window(&mut self) -> Result<u64, DepositsError> {
        match self.unlock_window {
            Some(window) => Ok(window),
            None => Ok(*self.unlock_window.insert(self.reader.unlock_window().await?)),
        }
    }

    /// Notes until when certificates of the epochs count that these events end. An installation that says that keys were
    /// out ends their epochs at once.
    fn note_ends(&mut self, events: &[OrderEvent], unlock_window: u64) {
        for event in events {
            let OrderEvent::CommitteeInstalled(installed) = event else { continue };
            let Some(ended) = installed.epoch.checked_sub(1) else { continue };
            let until = installed.previousEpochEnds.saturating_to();
            self.ends.insert(Epoch(ended), EpochEnd::new(until, unlock_window));
            let since = Epoch(installed.compromisedSince);
            let compromised = self.ends.iter_mut().filter(|(epoch, _)| **epoch >= since && epoch.0 < installed.epoch);
            compromised.for_each(|(_, end)| *end = EpochEnd::default());
        }
    }

    /// The committees in a block, with the ends that the contract has forgotten: those of epochs before the last one.
    pub(super) async fn committees(&self, rotation: &Rotation, block: u64) -> Result<Committees, RotationError> {
        let mut committees = rotation.read(&self.epochs, block).await?;
        for (epoch, end) in self.ends.range(..committees.current().epoch()) {
            if committees.known_end(*epoch).is_none() {
                committees.note_end(*epoch, *end);
            }
        }
        Ok(committees)
    }

    pub(super) fn committees_known_at(&self) -> Option<u64> {
        self.committees_known_at
    }

    pub(super) fn note_committees(&mut self, block: u64) {
        self.ends.clear();
        self.committees_known_at = Some(block);
    }

    /// After an error, asks at the next final block.
    pub(super) async fn sign_of_life(&mut self) -> Option<u64> {
        if self.life_known_at == self.committees_known_at {
            return None;
        }
        self.life_known_at = self.committees_known_at;
        match self.primary.last_sign_of_life().await {
            Ok(time) => Some(time),
            Err(error) => {
                tracing::warn!(%error, "the committee's last sign of life is unknown");
                None
            }
        }
    }
}
