//! The bounded queue in front of a shard, and each client's share of it.
//!
//! A client's stream may have as many requests waiting as there is room left. A stream that takes all it can get
//! therefore leaves half of the queue to the others, two such streams leave a third, and so on. A modest client finds
//! room however greedy the others are, and waits behind a bounded number of requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use fastpay_core::AccountId;
use tokio::sync::Notify;

use super::command::{ClientStream, Command, Submission};
use super::settings::ShardLimits;
use super::subscriptions::{Subscription, Subscriptions};
use crate::authority::metrics::ShardMetrics;

/// Room in the queue that clients cannot take: for credits and acknowledgements of the other shards, the follower, and
/// the stop command. Without it a flood of requests could block all of these.
const QUEUE_RESERVE: usize = 256;

/// Bounds of the wait that a busy refusal asks for.
const RETRY_AFTER_MIN: Duration = Duration::from_millis(5);
const RETRY_AFTER_MAX: Duration = Duration::from_secs(1);

/// The sender of a shard's queue. Cheap to clone.
#[derive(Clone)]
pub struct ShardHandle {
    queue: SyncSender<Command>,
    load: Arc<Load>,
    metrics: Arc<ShardMetrics>,
    subscriptions: Arc<Subscriptions>,
}

/// How full the queue is, and how fast it empties.
struct Load {
    /// The number of waiting requests, and of this authority's own commands.
    waiting: AtomicUsize,
    waiting_max: usize,
    /// The shard's recent time per request, in nanoseconds.
    pace: AtomicU64,
    /// Notified of each command, for a shard without a thread to wait in the queue.
    arrivals: Option<Arc<Notify>>,
}

/// The queue of a shard that is still to be started: shards need each other's handles.
pub struct ShardQueue {
    commands: Receiver<Command>,
    load: Arc<Load>,
    metrics: Arc<ShardMetrics>,
    subscriptions: Arc<Subscriptions>,
}

impl ShardHandle {
    /// A handle and the queue behind it.
    #[must_use]
    pub fn new(limits: &ShardLimits, metrics: Arc<ShardMetrics>) -> (Self, ShardQueue) {
        Self::with_arrivals(limits, metrics, None)
    }

    /// As [`ShardHandle::new`], but it notifies `arrivals` of each command: for an [`super::Actor`] without a thread to
    /// wait in the queue.
    #[must_use]
    pub fn notifying(limits: &ShardLimits, metrics: Arc<ShardMetrics>, arrivals: Arc<Notify>) -> (Self, ShardQueue) {
        Self::with_arrivals(limits, metrics, Some(arrivals))
    }

    fn with_arrivals(
        limits: &ShardLimits,
        metrics: Arc<ShardMetrics>,
        arrivals: Option<Arc<Notify>>,
    ) -> (Self, ShardQueue) {
        let (queue, commands) = sync_channel(limits.queue_requests_max.saturating_add(QUEUE_RESERVE));
        let (waiting, pace) = (AtomicUsize::new(0), AtomicU64::new(0));
        let load = Arc::new(Load { waiting, waiting_max: limits.queue_requests_max, pace, arrivals });
        let subscriptions = Arc::new(Subscriptions::default());
        let queue_end =
            ShardQueue { commands, load: load.clone(), metrics: metrics.clone(), subscriptions: subscriptions.clone() };
        (Self { queue, load, metrics, subscriptions }, queue_end)
    }

    /// Queues a command of this authority's own. Returns it if the queue is full or the shard has ended.
    ///
    /// # Errors
    /// The command.
    pub fn try_send(&self, command: Command) -> Result<(), TrySendError<Command>> {
        // Count it first, so that the shard never takes a command that is not counted yet.
        let requests = command.requests();
        self.load.waiting.fetch_add(requests, Ordering::Relaxed);
        self.send_counted(command, requests)
    }

    /// Queues a client's read, leaving room for the authority's own commands.
    ///
    /// # Errors
    /// The command.
    pub fn try_ask(&self, command: Command) -> Result<(), TrySendError<Command>> {
        if self.load.waiting.load(Ordering::Relaxed) >= self.load.waiting_max {
            return Err(TrySendError::Full(command));
        }
        self.try_send(command)
    }

    /// Reserves room for up to `wanted` requests of a stream and returns for how many: fewer if the queue is too full,
    /// or the peer is on probation. The caller must return the room with [`ShardHandle::submit`].
    #[must_use]
    pub fn admit(&self, stream: &ClientStream, wanted: usize) -> usize {
        let (own, room) = (stream.waiting(), stream.peer().room());
        let mut admitted = 0;
        let _ = self.load.waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |waiting| {
            // Each admitted request makes the stream's share larger by one and the room smaller by one.
            let above = self.load.waiting_max.saturating_sub(waiting).saturating_sub(own);
            admitted = wanted.min(above.div_ceil(2)).min(room);
            Some(waiting.saturating_add(admitted))
        });
        stream.queued(admitted);
        admitted
    }

    /// Queues requests of a stream for which `admitted` were reserved. There may be fewer, because some were malformed,
    /// or more, because the last one is a payout that takes more room than was left.
    ///
    /// # Errors
    /// The client's numbers of the requests, if the shard has ended.
    pub fn submit(&self, submission: Submission, admitted: usize) -> Result<(), Vec<u64>> {
        let requests = submission.weight();
        let (given_back, owed) = (admitted.saturating_sub(requests), requests.saturating_sub(admitted));
        self.load.waiting.fetch_sub(given_back, Ordering::Relaxed);
        self.load.waiting.fetch_add(owed, Ordering::Relaxed);
        submission.stream.taken(given_back);
        submission.stream.queued(owed);
        if submission.ids.is_empty() {
            return Ok(());
        }
        let queued_at = self.metrics.tracer.now();
        let Err(TrySendError::Full(command) | TrySendError::Disconnected(command)) =
            self.send_counted(Command::Submit(submission, queued_at), requests)
        else {
            return Ok(());
        };
        let Command::Submit(submission, _) = command else { return Ok(()) };
        submission.stream.taken(requests);
        Err(submission.ids)
    }

    fn send_counted(&self, command: Command, requests: usize) -> Result<(), TrySendError<Command>> {
        self.metrics.queued.inc_by(signed(requests));
        self.queue.try_send(command).inspect_err(|_| {
            self.load.waiting.fetch_sub(requests, Ordering::Relaxed);
            self.metrics.queued.dec_by(signed(requests));
        })?;
        if let Some(arrivals) = &self.load.arrivals {
            arrivals.notify_one();
        }
        Ok(())
    }

    /// Waits for changes of an account of this shard.
    #[must_use]
    pub fn subscribe(&self, account: AccountId) -> Subscription {
        self.subscriptions.subscribe(account)
    }

    /// Whether the queue has room for a command of this authority's own now.
    pub(super) fn has_room(&self) -> bool {
        self.load.waiting.load(Ordering::Relaxed) < self.load.waiting_max.saturating_add(QUEUE_RESERVE)
    }

    /// How long a client that was refused as busy should wait: until the present queue is served.
    #[must_use]
    pub fn retry_after(&self) -> Duration {
        let waiting = self.load.waiting.load(Ordering::Relaxed) as u64;
        let pace = self.load.pace.load(Ordering::Relaxed);
        Duration::from_nanos(waiting.saturating_mul(pace)).clamp(RETRY_AFTER_MIN, RETRY_AFTER_MAX)
    }
}

impl ShardQueue {
    /// Waits for a command.
    ///
    /// # Errors
    /// If no command comes in time, or every sender is gone.
    pub(super) fn recv_timeout(&self, patience: Duration) -> Result<Command, RecvTimeoutError> {
        self.commands.recv_timeout(patience).inspect(|command| self.taken(command))
    }

    /// The next command, if there is one already.
    pub fn try_recv(&self) -> Option<Command> {
        self.commands.try_recv().ok().inspect(|command| self.taken(command))
    }

    fn taken(&self, command: &Command) {
        let requests = command.requests();
        self.load.waiting.fetch_sub(requests, Ordering::Relaxed);
        self.metrics.queued.dec_by(signed(requests));
        if let Command::Submit(submission, _) = command {
            submission.stream.taken(requests);
        }
    }

    /// Records how long a number of requests took.
    pub(super) fn observe_pace(&self, requests: usize, took: Duration) {
        let each = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX) / requests.max(1) as u64;
        let pace = self.load.pace.load(Ordering::Relaxed);
        // The new value counts for one eighth, which smooths over a few batches.
        let smooth = pace.saturating_sub(pace / 8).saturating_add(each / 8);
        self.load.pace.store(smooth, Ordering::Relaxed);
    }

    pub(super) fn metrics(&self) -> &Arc<ShardMetrics> {
        &self.metrics
    }

    pub(super) fn subscriptions(&self) -> &Subscriptions {
        &self.subscriptions
    }
}

fn signed(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::client_reputation::ClientReputation;
    use super::*;
    use crate::authority::metrics::Metrics;

    fn queue(queue_requests_max: usize) -> (ShardHandle, ShardQueue) {
        let limits = ShardLimits { queue_requests_max, ..ShardLimits::default() };
        ShardHandle::new(&limits, Metrics::new(1).shards[0].clone())
    }

    fn stream() -> Arc<ClientStream> {
        ClientStream::new(1).0
    }

    #[test]
    fn greedy_streams_leave_room_for_one_that_asks_for_little() {
        let (handle, _queue) = queue(1_000);
        let greedy: Vec<_> = (0..9).map(|_| stream()).collect();
        // All streams ask in turn, again and again, for as much as they get.
        let taken: usize = (0..500).map(|round| handle.admit(&greedy[round % 9], 64)).sum();
        assert_eq!(taken, greedy.iter().map(|stream| stream.waiting()).sum::<usize>());
        assert!((800..=950).contains(&taken), "{taken}");
        for stream in &greedy {
            assert!(stream.waiting() <= 600);
            assert_eq!(handle.admit(stream, 64), 0, "no more for those that have their share");
        }
        let modest = stream();
        assert_eq!(handle.admit(&modest, 10), 10);
    }

    #[test]
    fn whoever_is_on_probation_leaves_nine_tenths_of_a_batch_to_others() {
        let (handle, _queue) = queue(1_000);
        let bad = Arc::new(ClientReputation::default());
        (0..5_000).for_each(|_| bad.judge(1, true));
        let streams: Vec<_> = (0..500).map(|_| ClientStream::of(bad.clone(), 1).0).collect();
        let flood: usize = streams.iter().map(|stream| handle.admit(stream, 256)).sum();
        let honest = stream();
        let served = handle.admit(&honest, 400);
        assert_eq!(served, 400);
        assert!(flood * 10 < served, "{flood} of {}", flood + served);
        // It is still served, and better once it has sent useful requests.
        assert!(flood > 0);
        (0..250).for_each(|_| bad.judge(1, false));
        assert_eq!(handle.admit(&streams[0], 100), 100);
    }

    #[test]
    fn room_comes_back_with_what_is_taken_and_with_what_was_none() {
        let (handle, queue) = queue(100);
        let stream = stream();
        assert_eq!(handle.admit(&stream, 1_000), 50);
        assert_eq!(handle.admit(&stream, 1), 0);
        handle.submit(Submission { stream: stream.clone(), ids: Vec::new(), requests: Vec::new() }, 50).unwrap();
        assert_eq!((stream.waiting(), handle.admit(&stream, 1_000)), (0, 50));
        handle.submit(Submission { stream: stream.clone(), ids: Vec::new(), requests: Vec::new() }, 50).unwrap();
        drop(queue);
        assert_eq!(handle.admit(&stream, 2), 2);
        let requests = vec![some_request()];
        assert!(handle.submit(Submission { stream: stream.clone(), ids: vec![1], requests }, 2).is_err());
        assert_eq!((stream.waiting(), handle.admit(&stream, 1_000)), (0, 50), "nothing is owed to a shard that ended");
    }

    #[test]
    fn what_is_queued_is_counted_until_it_is_taken() {
        let (handle, queue) = queue(100);
        let stream = stream();
        let requests = vec![some_request(), some_request()];
        let admitted = handle.admit(&stream, 2);
        handle.submit(Submission { stream: stream.clone(), ids: vec![1, 2], requests }, admitted).unwrap();
        handle.try_send(Command::Stop).unwrap();
        assert_eq!((stream.waiting(), handle.metrics.queued.get()), (2, 3));
        while queue.try_recv().is_some() {}
        assert_eq!((stream.waiting(), handle.metrics.queued.get()), (0, 0));
        assert_eq!(handle.load.waiting.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn the_time_to_wait_follows_the_queue_and_the_pace() {
        let (handle, queue) = queue(10_000);
        assert_eq!(handle.retry_after(), RETRY_AFTER_MIN);
        for _ in 0..100 {
            queue.observe_pace(10, Duration::from_micros(200));
        }
        assert_eq!(handle.admit(&stream(), 5_000), 5_000);
        let wait = handle.retry_after();
        assert!((Duration::from_millis(90)..=Duration::from_millis(100)).contains(&wait), "{wait:?}");
        queue.observe_pace(1, Duration::from_secs(60));
        assert_eq!(handle.retry_after(), RETRY_AFTER_MAX);
    }

    #[test]
    fn a_payout_takes_as_much_room_as_it_costs() {
        let (handle, queue) = queue(100);
        let stream = stream();
        let send = |outputs: usize, admitted: usize| {
            let requests = vec![payout_request(outputs)];
            handle.submit(Submission { stream: stream.clone(), ids: vec![1], requests }, admitted).unwrap();
        };
        assert_eq!(handle.admit(&stream, 1), 1);
        send(256, 1);
        assert_eq!(
            (stream.waiting(), handle.load.waiting.load(Ordering::Relaxed)),
            (33, 33),
            "more than it was let in for"
        );
        assert_eq!(handle.admit(&stream, 100), 17, "less is left for its sender");
        send(256, 17);
        assert_eq!((stream.waiting(), handle.admit(&stream, 100)), (66, 0), "and then nothing");
        assert!(handle.admit(&self::stream(), 100) > 0, "others find room");
        while queue.try_recv().is_some() {}
        assert_eq!(stream.waiting(), 0);
    }

    fn payout_request(outputs: usize) -> fastpay_core::Request {
        let key = fastpay_core::AccountKey::ed25519([1; 32]);
        let output = fastpay_core::Output {
            recipient: key.account(),
            amount: fastpay_core::Amount(1),
            memo: fastpay_core::Memo::ZERO,
        };
        let payout = fastpay_core::Payout {
            sender: key.account(),
            asset: fastpay_core::Asset::ETHER,
            outputs: fastpay_core::Outputs::new(vec![output; outputs]).unwrap(),
            sequence: fastpay_core::SequenceNumber(0),
            memo: fastpay_core::Memo::ZERO,
        };
        let domain = fastpay_core::Domain::new(1, fastpay_core::PrimaryAddress::ZERO);
        fastpay_core::Request::Order(key.order(&domain, payout.into()))
    }

    fn some_request() -> fastpay_core::Request {
        let key = fastpay_core::AccountKey::ed25519([1; 32]);
        let payment = fastpay_core::Payment {
            sender: key.account(),
            recipient: key.account(),
            asset: fastpay_core::Asset::ETHER,
            amount: fastpay_core::Amount(1),
            sequence: fastpay_core::SequenceNumber(0),
            memo: fastpay_core::Memo::ZERO,
        };
        let domain = fastpay_core::Domain::new(1, fastpay_core::PrimaryAddress::ZERO);
        fastpay_core::Request::Order(key.order(&domain, payment.into()))
    }
}
