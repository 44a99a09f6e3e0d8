//! What the metrics say of how the journals end.

use fastpay_program::metrics;
use prometheus_client::metrics::gauge::Gauge;

use super::PruningReport;

metrics! {
    /// How the journals end.
    #[derive(Debug, Default)]
    pub struct PruningMetrics {
        base: Gauge = plain("pruned_checkpoint_number", "The checkpoint at which the journals begin"),
        due_timestamp: Gauge = seconds(
            "pruning_due_timestamp",
            "Since when the journals are to end at a later checkpoint; 0 where they are not"
        ),
        lacking: Gauge = bytes("pruning_room_lacking", "What is lacking on the disk for new journals that are due"),
        timestamp: Gauge =
            seconds("pruned_timestamp", "When the node last ended its journals by itself; 0 for never"),
        pause_ms: Gauge =
            plain("pruning_pause_milliseconds", "How long the node was away for that, in milliseconds"),
        failures: Gauge = plain("pruning_failures", "Failures to end the journals since the last success"),
    }
}

impl PruningMetrics {
    /// Sets the checkpoint at which the journals begin.
    pub(super) fn begins_at(&self, checkpoint: u64) {
        self.base.set(signed(checkpoint));
    }

    /// Sets since when the journals are to end, in seconds since 1970, and the bytes that are lacking for that.
    pub(super) fn due(&self, since: u64, lacking: u64) {
        self.due_timestamp.set(signed(since));
        self.lacking.set(signed(lacking));
    }

    /// Sets how the last attempts went.
    pub(super) fn observe(&self, report: &PruningReport) {
        self.timestamp.set(signed(report.at_ms / 1_000));
        self.pause_ms.set(signed(report.pause_ms));
        self.failures.set(report.failure.as_ref().map_or(0, |failure| i64::from(failure.count)));
    }
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
