//! Delivers credits to the other shards of the authority, and repeats them until they are acknowledged.
//!
//! Waiting credits are in the ledger and therefore in the journal. This module only remembers which of them were sent,
//! and when. A full queue or a lost message costs time, never a credit: the recipient applies each number once, however
//! often it arrives.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use fastpay_core::{CrossShardCredit, ShardId, ShardLedger};
use tokio::time::Instant;

use super::command::Command;
use super::queue::ShardHandle;
use crate::authority::metrics::ShardMetrics;

/// The maximum number of credits in one message.
const CREDITS_PER_MESSAGE_MAX: usize = 256;
/// The maximum number of unacknowledged credits to a shard. It bounds a slow shard's queue.
const CREDITS_UNDER_WAY_MAX: usize = 4_096;
/// Credits under way are sent again if nothing is acknowledged for this long.
pub(super) const REDELIVERY_AFTER: Duration = Duration::from_secs(1);

/// How many of the credits for one shard were sent.
#[derive(Clone, Copy)]
struct Delivery {
    /// How many of the waiting credits, from the oldest, are under way.
    under_way: usize,
    /// The oldest waiting credit at the last check.
    oldest: u64,
    /// When a credit was last acknowledged, or the first of those under way was sent.
    since: Instant,
}

impl Delivery {
    /// Notes acknowledgements since the last check. Returns true if they have taken too long, so that all credits must
    /// be sent again.
    fn observe(&mut self, oldest: u64, now: Instant) -> bool {
        let acknowledged = oldest.saturating_sub(self.oldest);
        if acknowledged > 0 {
            let acknowledged = usize::try_from(acknowledged).unwrap_or(usize::MAX);
            *self = Self { under_way: self.under_way.saturating_sub(acknowledged), oldest, since: now };
        }
        let again = now.duration_since(self.since) >= REDELIVERY_AFTER;
        if again {
            *self = Self { under_way: 0, oldest, since: now };
        }
        again
    }
}

/// The sending side of a shard's outboxes.
pub(super) struct Deliveries {
    siblings: BTreeMap<ShardId, ShardHandle>,
    deliveries: BTreeMap<ShardId, Delivery>,
    metrics: Arc<ShardMetrics>,
}

impl Deliveries {
    pub(super) fn new(siblings: BTreeMap<ShardId, ShardHandle>, metrics: Arc<ShardMetrics>) -> Self {
        Self { siblings, deliveries: BTreeMap::new(), metrics }
    }

    /// Adds to `messages` the new credits, and those that were not acknowledged in time. Send them only after the
    /// ledger is on disk as it is. Returns whether any credit still waits.
    pub(super) fn deliver(
        &mut self,
        ledger: &ShardLedger,
        now: Instant,
        messages: &mut Vec<(ShardHandle, Command)>,
    ) -> bool {
        let mut waiting = false;
        for (to, outbox) in &ledger.outboxes {
            let Some(first) = outbox.waiting.front() else {
                self.deliveries.remove(to);
                continue;
            };
            waiting = true;
            let fresh = Delivery { under_way: 0, oldest: first.number, since: now };
            let delivery = self.deliveries.entry(*to).or_insert(fresh);
            if delivery.observe(first.number, now) {
                self.metrics.credit_redeliveries.inc();
            }
            if let Some(sibling) = self.siblings.get(to) {
                hand_over(sibling, &outbox.waiting, delivery, now, messages);
            }
        }
        waiting
    }

    /// The message to `to` that its credits up to `number` are on disk here. If the message is lost, the credits arrive
    /// again, and it is repeated.
    pub(super) fn acknowledgement(&self, by: ShardId, to: ShardId, number: u64) -> Option<(ShardHandle, Command)> {
        let sibling = self.siblings.get(&to)?;
        Some((sibling.clone(), Command::Acknowledge { by, number }))
    }
}

/// Takes the waiting credits, as far as the other shard's queue and the bound of credits under way allow.
fn hand_over(
    sibling: &ShardHandle,
    waiting: &VecDeque<CrossShardCredit>,
    delivery: &mut Delivery,
    now: Instant,
    messages: &mut Vec<(ShardHandle, Command)>,
) {
    let end = waiting.len().min(CREDITS_UNDER_WAY_MAX);
    while delivery.under_way < end && sibling.has_room() {
        let until = delivery.under_way.saturating_add(CREDITS_PER_MESSAGE_MAX).min(end);
        let message = waiting.range(delivery.under_way..until).cloned().collect();
        messages.push((sibling.clone(), Command::Credit(message)));
        if delivery.under_way == 0 {
            delivery.since = now;
        }
        delivery.under_way = until;
    }
}

#[cfg(test)]
mod tests {
    use fastpay_core::{AccountId, Amount, Asset, Forwarded, Memo, Outbox, Payment, SequenceNumber};

    use super::*;
    use crate::authority::metrics::Metrics;
    use crate::authority::shard::{ShardLimits, ShardQueue};

    const TO: ShardId = ShardId(1);

    fn deliveries(queue_requests_max: usize) -> (Deliveries, ShardHandle, ShardQueue) {
        let limits = ShardLimits { queue_requests_max, ..ShardLimits::default() };
        let (handle, queue) = ShardHandle::new(&limits, Metrics::new(1).shards[0].clone());
        (Deliveries::new(BTreeMap::from([(TO, handle.clone())]), Metrics::new(1).shards[0].clone()), handle, queue)
    }

    /// Delivers, and sends the messages at once. Returns whether any credit waits.
    fn deliver(deliveries: &mut Deliveries, ledger: &ShardLedger, now: Instant) -> bool {
        let mut messages = Vec::new();
        let waiting = deliveries.deliver(ledger, now, &mut messages);
        for (shard, message) in messages {
            let _ = shard.try_send(message);
        }
        waiting
    }

    /// A ledger with the credits of these numbers waiting.
    fn ledger(numbers: std::ops::RangeInclusive<u64>) -> ShardLedger {
        ledger_of(numbers.collect())
    }

    fn ledger_of(numbers: Vec<u64>) -> ShardLedger {
        let issued = numbers.last().copied().unwrap_or_default();
        let payment = Payment {
            sender: AccountId([1; 32]),
            recipient: AccountId([2; 32]),
            asset: Asset::ETHER,
            amount: Amount(1),
            sequence: SequenceNumber(0),
            memo: Memo::ZERO,
        };
        let waiting = numbers.into_iter().map(|number| CrossShardCredit {
            from: ShardId(0),
            number,
            forwarded: Forwarded::Payment(payment.clone()),
        });
        let outbox = Outbox { issued, waiting: waiting.collect() };
        ShardLedger { outboxes: BTreeMap::from([(TO, outbox)]), ..ShardLedger::default() }
    }

    /// The numbers of all credits in the queue.
    fn received(commands: &ShardQueue) -> Vec<u64> {
        let mut numbers = Vec::new();
        while let Some(command) = commands.try_recv() {
            let Command::Credit(credits) = command else { panic!("{command:?}") };
            assert!((1..=CREDITS_PER_MESSAGE_MAX).contains(&credits.len()));
            numbers.extend(credits.iter().map(|credit| credit.number));
        }
        numbers
    }

    fn range(numbers: std::ops::RangeInclusive<u64>) -> Vec<u64> {
        numbers.collect()
    }

    #[test]
    fn each_credit_is_handed_over_once_until_it_has_taken_too_long() {
        let (mut deliveries, _, commands) = deliveries(100);
        let start = Instant::now();
        let soon = start + REDELIVERY_AFTER / 2;
        assert!(deliver(&mut deliveries, &ledger(1..=600), start));
        assert_eq!(received(&commands), range(1..=600));
        deliver(&mut deliveries, &ledger(1..=700), soon);
        assert_eq!(received(&commands), range(601..=700), "new ones only");
        // An acknowledgement restarts the time.
        deliver(&mut deliveries, &ledger(300..=700), soon);
        deliver(&mut deliveries, &ledger(300..=700), start + REDELIVERY_AFTER);
        assert!(received(&commands).is_empty());
        // After too long without one, all waiting credits are sent again, once, even if new ones keep coming.
        let late = soon + REDELIVERY_AFTER;
        deliver(&mut deliveries, &ledger(300..=710), late);
        deliver(&mut deliveries, &ledger(300..=711), late);
        assert_eq!(received(&commands), range(300..=711));
        assert_eq!(deliveries.metrics.credit_redeliveries.get(), 1);
        assert!(!deliver(&mut deliveries, &ledger_of(Vec::new()), late));
        // After an empty outbox, the time starts anew.
        deliver(&mut deliveries, &ledger(712..=713), late);
        assert_eq!(received(&commands), [712, 713]);
    }

    #[test]
    fn a_full_queue_costs_time_and_no_credit() {
        let (mut deliveries, handle, commands) = deliveries(0);
        let now = Instant::now();
        while handle.try_send(Command::Acknowledge { by: TO, number: 0 }).is_ok() {}
        assert!(deliver(&mut deliveries, &ledger(1..=300), now));
        while matches!(commands.try_recv(), Some(Command::Acknowledge { .. })) {
            if handle.try_send(Command::Stop).is_ok() {
                break;
            }
        }
        // Another command takes one place again.
        deliver(&mut deliveries, &ledger(1..=300), now);
        while !matches!(commands.try_recv(), Some(Command::Stop)) {}
        deliver(&mut deliveries, &ledger(1..=300), now);
        assert_eq!(received(&commands), range(1..=300));
    }

    #[test]
    fn a_shard_that_does_not_follow_is_not_buried() {
        let (mut deliveries, _, commands) = deliveries(1_000);
        let now = Instant::now();
        let bound = CREDITS_UNDER_WAY_MAX as u64;
        deliver(&mut deliveries, &ledger(1..=20_000), now);
        deliver(&mut deliveries, &ledger(1..=30_000), now);
        assert_eq!(received(&commands), range(1..=bound));
        deliver(&mut deliveries, &ledger(501..=30_000), now);
        assert_eq!(received(&commands), range(bound + 1..=bound + 500));
        // More are acknowledged than were under way: credits of an earlier run.
        deliver(&mut deliveries, &ledger(25_000..=30_000), now);
        assert_eq!(received(&commands), range(25_000..=25_000 + bound - 1));
    }
}
