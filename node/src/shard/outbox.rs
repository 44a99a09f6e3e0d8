//! Delivers credits to the other shards of the authority, again and again until they acknowledge.
//!
//! What waits is in the ledger and so in the journal; here is only how much of it was handed over
//! since when. A full queue or a lost message costs time, never a credit: the recipient applies each
//! number once, whatever arrives how often.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use fastpay_core::{ShardId, ShardLedger};

use super::actor::ShardHandle;
use super::command::Command;

/// At most so many credits in one message.
const CREDITS_PER_MESSAGE_MAX: usize = 256;
/// What was handed over and not acknowledged for this long is handed over again.
pub(super) const REDELIVERY_AFTER: Duration = Duration::from_secs(1);

/// How far the credits for one shard were handed over.
#[derive(Clone, Copy)]
struct Delivery {
    /// The newest credit handed over.
    up_to: u64,
    since: Instant,
}

/// The sending side of a shard's outboxes.
pub(super) struct Deliveries {
    siblings: BTreeMap<ShardId, ShardHandle>,
    under_way: BTreeMap<ShardId, Delivery>,
}

impl Deliveries {
    pub(super) fn new(siblings: BTreeMap<ShardId, ShardHandle>) -> Self {
        Self { siblings, under_way: BTreeMap::new() }
    }

    /// Hands over what is new and what was not acknowledged in time. Only for what is on disk. Says
    /// whether anything still waits.
    pub(super) fn deliver(&mut self, ledger: &ShardLedger, now: Instant) -> bool {
        let mut waiting = false;
        for (to, outbox) in &ledger.outboxes {
            let Some(first) = outbox.waiting.front() else {
                self.under_way.remove(to);
                continue;
            };
            waiting = true;
            let before_first = first.number.saturating_sub(1);
            let mut delivery = *self.under_way.entry(*to).or_insert(Delivery { up_to: before_first, since: now });
            if now.duration_since(delivery.since) >= REDELIVERY_AFTER {
                delivery = Delivery { up_to: before_first, since: now };
            }
            self.hand_over(*to, outbox.waiting.iter(), &mut delivery, now);
            self.under_way.insert(*to, delivery);
        }
        waiting
    }

    fn hand_over<'a>(
        &self,
        to: ShardId,
        credits: impl Iterator<Item = &'a fastpay_core::CrossShardCredit>,
        delivery: &mut Delivery,
        now: Instant,
    ) {
        let Some(sibling) = self.siblings.get(&to) else { return };
        let fresh: Vec<_> = credits.filter(|credit| credit.number > delivery.up_to).cloned().collect();
        for message in fresh.chunks(CREDITS_PER_MESSAGE_MAX) {
            let Some(last) = message.last() else { return };
            if sibling.try_send(Command::Credit(message.to_vec())).is_err() {
                return;
            }
            *delivery = Delivery { up_to: last.number, since: now };
        }
    }

    /// Tells `to` that its credits up to `number` are on disk here. Where the message is lost, the
    /// credits come again and so does the acknowledgement.
    pub(super) fn acknowledge(&self, by: ShardId, to: ShardId, number: u64) {
        if let Some(sibling) = self.siblings.get(&to) {
            let _ = sibling.try_send(Command::Acknowledge { by, number });
        }
    }
}
