//! Delivers credits to the other shards of the authority, again and again until they acknowledge.
//!
//! Waiting credits are in the ledger and therefore in the journal; this module only remembers which of them were
//! handed over and when. A full queue or a lost message costs time, never a credit: the recipient applies each number
//! once, however often it arrives.

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
/// Without an acknowledgement for this long, credits under way are handed over again.
pub(super) const REDELIVERY_AFTER: Duration = Duration::from_secs(1);

/// How far the credits for one shard were handed over.
#[derive(Clone, Copy)]
struct Delivery {
    /// How many of the waiting credits, from the oldest, are under way.
    under_way: usize,
    /// The oldest waiting credit at the last check.
    oldest: u64,
    /// When anything was acknowledged, or the first of those under way was handed over.
    since: Instant,
}

impl Delivery {
    /// Notes acknowledgements since the last check. True if they have taken too long and all credits must be handed
    /// over again.
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

    /// Adds to `messages` what is new and what was not acknowledged in time. They are to be sent once the
    /// ledger is on disk as it is. Says whether anything still waits.
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

    /// The message to `to` that its credits up to `number` are on disk here. If it is lost, the credits arrive again,
    /// and it is sent again.
    pub(super) fn acknowledgement(&self, by: ShardId, to: ShardId, number: u64) -> Option<(ShardHandle, Command)> {
        let sibling = self.siblings.get(&to)?;
        Some((sibling.clone(), Command::Acknowledge { by, number }))
    }
}

/// Takes as much as there is, as the other shard's queue takes, and as may be under way.
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

    /// Delivers, and sends what is to be sent at once. Says whether anything waits.
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
        // Something was acknowledged: the time counts from then.
        deliver(&mut deliveries, &ledger(300..=700), soon);
        deliver(&mut deliveries, &ledger(300..=700), start + REDELIVERY_AFTER);
        assert!(received(&commands).is_empty());
        // Nothing for too long: all that wait come again, once, however steadily new ones come.
        let late = soon + REDELIVERY_AFTER;
        deliver(&mut deliveries, &ledger(300..=710), late);
        deliver(&mut deliveries, &ledger(300..=711), late);
        assert_eq!(received(&commands), range(300..=711));
        assert_eq!(deliveries.metrics.credit_redeliveries.get(), 1);
        assert!(!deliver(&mut deliveries, &ledger_of(Vec::new()), late));
        // After an empty outbox it begins anew.
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
        // One place is taken by another command again.
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
        // As many again are acknowledged as were under way, and more: of an earlier life.
        deliver(&mut deliveries, &ledger(25_000..=30_000), now);
        assert_eq!(received(&commands), range(25_000..=25_000 + bound - 1));
    }
}
