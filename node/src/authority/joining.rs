//! What this authority waits for before it votes in the current epoch, as it says to its operator.

use fastpay_core::Epoch;
use fastpay_rpc::Joining;

use super::metrics::HandoverMetrics;
use super::voter_status::VoterStatus;

/// What the authority waits for; `None` if it votes, or will not vote in this epoch.
#[must_use]
pub fn joining(voter_status: &VoterStatus, metrics: &HandoverMetrics) -> Option<Joining> {
    let none_missing = |epoch: Epoch, waits_for: &str, reason: &str| Joining {
        epoch,
        waits_for: waits_for.into(),
        reason: reason.into(),
        closings_missing: 0,
        certificates_missing: 0,
    };
    let follows = |epoch: Epoch| {
        none_missing(epoch, "primary", "it first follows the contract to the installation of this epoch")
    };
    if let Some(epoch) = voter_status.awaited() {
        return Some(follows(epoch));
    }
    if let Some(epoch) = voter_status.joins() {
        let Some((_, wait)) = metrics.join().filter(|(joins, _)| *joins == epoch) else { return Some(follows(epoch)) };
        let (closings, certificates_missing) = wait.missing();
        let closings_missing = u64::try_from(closings).unwrap_or(u64::MAX);
        let (waits_for, reason) = (wait.code().to_owned(), wait.to_string());
        return Some(Joining { epoch, waits_for, reason, closings_missing, certificates_missing });
    }
    let reason = "no committee lists the keys of this authority yet";
    Some(none_missing(voter_status.observes()?, "installation", reason))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authority::handover::JoinWait;
    use crate::authority::metrics::Metrics;
    use fastpay_core::Committees;
    use fastpay_testkit::TestCommittee;
    use std::sync::Arc;

    #[test]
    fn a_member_says_that_it_follows_the_contract_first_also_if_it_need_not_join() {
        let (first, metrics) = (TestCommittee::new(4), Metrics::new(1));
        let (second, metrics) = (first.rotated(), &metrics.handover);
        let status = |committees: &Committees, of: &TestCommittee| {
            let names = [first.keys[0].public().name];
            VoterStatus::new(committees.clone(), vec![Arc::new(of.keys[0].clone())], &names.as_slice().into()).unwrap()
        };
        let waits_for =
            |status: VoterStatus| joining(&status, metrics).map(|joining| (joining.epoch, joining.waits_for));
        let follows = |epoch| Some((Epoch(epoch), "primary".to_owned()));
        let mut committees = Committees::new(first.committee.clone()).unwrap();
        assert_eq!(waits_for(status(&committees, &first)), None, "it votes");
        assert_eq!(waits_for(status(&committees, &first).ahead(true)), follows(0));
        committees.install(second.committee.clone()).unwrap();
        assert_eq!(waits_for(status(&committees, &first)), None, "it has left");
        assert_eq!(waits_for(status(&committees, &second)), follows(1));
        metrics.observe_join(Some((Epoch(1), JoinWait::Restored(Epoch(1)))));
        assert_eq!(waits_for(status(&committees, &second)), Some((Epoch(1), "restored".to_owned())));
    }
}
