//! Delivers credits to the other shards of the authority, again and again until they acknowledge.
//!
//! What waits is in the ledger and so in the journal; here is only how much of it was handed over
//! since when. A full queue or a lost message costs time, never a credit: the recipient applies each
//! number once, whatever arrives how often.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use fastpay_core::{CrossShardCredit, ShardId, ShardLedger};

use super::actor::ShardHandle;
use super::command::Command;

/// At most so many credits in one message.
const CREDITS_PER_MESSAGE_MAX: usize = 256;
/// At most so many credits handed over and not acknowledged: bounds what a slow shard has in its queue.
const CREDITS_UNDER_WAY_MAX: usize = 4_096;
/// Where nothing was acknowledged for this long, what is under way is handed over again.
pub(super) const REDELIVERY_AFTER: Duration = Duration::from_secs(1);

/// How far the credits for one shard were handed over.
#[derive(Clone, Copy)]
struct Delivery {
    /// How many of the waiting credits, from the oldest, are under way.
    under_way: usize,
    /// The oldest waiting credit when last looked at.
    oldest: u64,
    /// When anything was acknowledged, or the first of those under way was handed over.
    since: Instant,
}

impl Delivery {
    /// Takes in what was acknowledged since it was last looked at, and whether it has taken too long.
    fn observe(&mut self, oldest: u64, now: Instant) {
        let acknowledged = oldest.saturating_sub(self.oldest);
        if acknowledged > 0 {
            let acknowledged = usize::try_from(acknowledged).unwrap_or(usize::MAX);
            *self = Self { under_way: self.under_way.saturating_sub(acknowledged), oldest, since: now };
        }
        if now.duration_since(self.since) >= REDELIVERY_AFTER {
            *self = Self { under_way: 0, oldest, since: now };
        }
    }
}

/// The sending side of a shard's outboxes.
pub(super) struct Deliveries {
    siblings: BTreeMap<ShardId, ShardHandle>,
    deliveries: BTreeMap<ShardId, Delivery>,
}

impl Deliveries {
    pub(super) fn new(siblings: BTreeMap<ShardId, ShardHandle>) -> Self {
        Self { siblings, deliveries: BTreeMap::new() }
    }

    /// Hands over what is new and what was not acknowledged in time. Only for what is on disk. Says
    /// whether anything still waits.
    pub(super) fn deliver(&mut self, ledger: &ShardLedger, now: Instant) -> bool {
        let mut waiting = false;
        for (to, outbox) in &ledger.outboxes {
            let Some(first) = outbox.waiting.front() else {
                self.deliveries.remove(to);
                continue;
            };
            waiting = true;
            let fresh = Delivery { under_way: 0, oldest: first.number, since: now };
            let delivery = self.deliveries.entry(*to).or_insert(fresh);
            delivery.observe(first.number, now);
            if let Some(sibling) = self.siblings.get(to) {
                hand_over(sibling, &outbox.waiting, delivery, now);
            }
        }
        waiting
    }

    /// Tells `to` that its credits up to `number` are on disk here. Where the message is lost, the
    /// credits come again and so does the acknowledgement.
    pub(super) fn acknowledge(&self, by: ShardId, to: ShardId, number: u64) {
        if let Some(sibling) = self.siblings.get(&to) {
            let _ = sibling.try_send(Command::Acknowledge { by, number });
        }
    }
}

/// Sends as much as there is, as the other shard's queue takes, and as may be under way.
fn hand_over(sibling: &ShardHandle, waiting: &VecDeque<CrossShardCredit>, delivery: &mut Delivery, now: Instant) {
    let end = waiting.len().min(CREDITS_UNDER_WAY_MAX);
    while delivery.under_way < end {
        let until = delivery.under_way.saturating_add(CREDITS_PER_MESSAGE_MAX).min(end);
        let message = waiting.range(delivery.under_way..until).cloned().collect();
        if sibling.try_send(Command::Credit(message)).is_err() {
            return;
        }
        if delivery.under_way == 0 {
            delivery.since = now;
        }
        delivery.under_way = until;
    }
}
