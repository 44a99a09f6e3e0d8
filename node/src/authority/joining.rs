//! What this authority waits for before it votes in an epoch that it joins, as it says to its operator.

use fastpay_core::Epoch;
use fastpay_rpc::Joining;

use super::metrics::HandoverMetrics;
use super::voter_status::VoterStatus;

/// What the authority waits for; `None` if it joins no epoch.
#[must_use]
pub fn joining(voter_status: &VoterStatus, metrics: &HandoverMetrics) -> Option<Joining> {
    let none_missing = |epoch: Epoch, waits_for: &str, reason: &str| Joining {
        epoch,
        waits_for: waits_for.into(),
        reason: reason.into(),
        closings_missing: 0,
        certificates_missing: 0,
    };
    if let Some(epoch) = voter_status.joins() {
        let Some((_, wait)) = metrics.join().filter(|(joins, _)| *joins == epoch) else {
            let reason = "it first follows the contract to the installation of this epoch";
            return Some(none_missing(epoch, "primary", reason));
        };
        let (closings, certificates_missing) = wait.missing();
        let closings_missing = u64::try_from(closings).unwrap_or(u64::MAX);
        let (waits_for, reason) = (wait.code().to_owned(), wait.to_string());
        return Some(Joining { epoch, waits_for, reason, closings_missing, certificates_missing });
    }
    let reason = "no committee lists the keys of this authority yet";
    Some(none_missing(voter_status.observes()?, "installation", reason))
}
