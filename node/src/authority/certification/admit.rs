//! Admits checkpoints that others certified and that this authority's archive lacks.
//!
//! ```text
//!  certificates, each after the one before ─► the newest must count now ─► for each: segment ─► same events as the own
//!  Ethereum nodes show? ─► computed ─► the certified one? ─► segment, state, cut, certificate on disk
//! ```
//! A checkpoint of an epoch that ended long ago proves nothing by itself: its keys may be out by now. It counts as what a
//! newer one was built on.
//!
//! Members may sign several correct cuts, so a quorum may certify two checkpoints of one number. Both are true, and the
//! next one is built on one of them: on that with a successor, or else on that with the lower digest. So an archive may
//! replace its newest checkpoint.

use std::collections::VecDeque;
use std::io::Read;

use fastpay_core::checkpoint::{
    Checkpoint, CheckpointCertificate, CheckpointError as NotCertified, Installations, PrimaryEvent, Segment,
    SegmentEntry,
};
use fastpay_core::{Committees, Domain, TransactionIndex};

use super::archive::Archive;
use super::base::Base;
use super::compute::{Computed, follow_segment, installations_after};
use super::{CheckpointError, Inputs, NotAdmitted, Progress, events};
use crate::authority::deployment;

/// The most bytes of a segment for each order in its weight, and for each event.
const ORDER_BYTES_MAX: u64 = 1_024;
const EVENT_BYTES_MAX: u64 = 512;
/// Committees are longer than other events.
const COMMITTEES_BYTES_MAX: u64 = 1 << 20;

/// Checkpoints that are being admitted, oldest first.
pub struct Admission {
    archive: Archive,
    domain: Domain,
    orders_max: usize,
    /// The final events after the archive's newest checkpoint.
    events: Vec<PrimaryEvent>,
    base: Base,
    rest: VecDeque<CheckpointCertificate>,
}

impl Admission {
    /// Begins with the certificates after `tip`, the archive's newest one, in order; or from that number on, if the
    /// first is a rival that is to replace `tip`. Those after the last that counts now are left out. A rival replaces
    /// `tip` if one that was built on it is left, or if it has the lower digest.
    ///
    /// # Errors
    /// See [`CheckpointError`]; [`CheckpointError::NotAdmitted`] if the certificates prove nothing.
    pub async fn begin(
        inputs: Inputs<'_>,
        tip: &Checkpoint,
        certificates: Vec<CheckpointCertificate>,
        told: Progress<'_>,
    ) -> Result<Self, CheckpointError> {
        let archive = Archive::create(inputs.archive)?.beside(inputs.config);
        let deployment = deployment::load(inputs.config).await?;
        let (domain, committees) = (deployment.domain(), deployment.committees()?);
        let base = Self::base(&archive, tip, &certificates, (&domain, &committees))?;
        let events = events::read(&deployment, base.state.up_to, inputs, told).await?;
        Self::over(archive, (domain, inputs.orders_max), base, (tip, certificates), events)
    }

    /// The first step of [`Self::begin`]: the archive's checkpoint on which the first of the certificates is built.
    ///
    /// # Errors
    /// As of [`Self::begin`].
    pub fn base(
        archive: &Archive,
        tip: &Checkpoint,
        certificates: &[CheckpointCertificate],
        (domain, committees): (&Domain, &Committees),
    ) -> Result<Base, CheckpointError> {
        let is_rival = certificates.first().is_some_and(|first| first.checkpoint.number == tip.number);
        let base = archive.base(tip.number.saturating_sub(u64::from(is_rival)), domain, committees)?;
        let mut previous = base.checkpoint;
        for CheckpointCertificate { checkpoint, .. } in certificates {
            let number = previous.number.saturating_add(1);
            if (checkpoint.number, checkpoint.previous) != (number, domain.checkpoint_digest(&previous)) {
                return Err(CheckpointError::NotAdmitted { number, reason: NotAdmitted::Chain });
            }
            previous = *checkpoint;
        }
        Ok(base)
    }

    /// The second step: `events` are the final ones after the base.
    ///
    /// # Errors
    /// As of [`Self::begin`].
    pub fn over(
        archive: Archive,
        (domain, orders_max): (Domain, usize),
        base: Base,
        (tip, certificates): (&Checkpoint, Vec<CheckpointCertificate>),
        events: Vec<PrimaryEvent>,
    ) -> Result<Self, CheckpointError> {
        let installations = installations_after(&base, &events)?;
        let mut rest = VecDeque::from(certificates);
        while let Some(newest) = rest.back() {
            match counts(newest, &domain, &installations) {
                Ok(()) => break,
                // An earlier one may be named by an installation.
                Err(NotCertified::EpochEnded(_) | NotCertified::EpochCompromised(_)) if rest.len() > 1 => {
                    drop(rest.pop_back());
                }
                Err(error) => return Err(not_certified(newest, error)),
            }
        }
        if !is_ahead(rest.make_contiguous(), tip, &domain) {
            return Err(CheckpointError::NotAdmitted { number: tip.number, reason: NotAdmitted::Rival });
        }
        Ok(Self { archive, domain, orders_max, events, base, rest })
    }

    /// The number whose segment is needed now, and the most bytes that it can have; `None` once all are admitted.
    pub fn next(&self) -> Option<(u64, u64)> {
        let checkpoint = self.rest.front()?.checkpoint;
        let events = self.events_up_to(checkpoint.up_to).len() as u64;
        let orders = u64::try_from(self.orders_max).unwrap_or(u64::MAX).saturating_mul(ORDER_BYTES_MAX);
        let bytes_max = events.saturating_mul(EVENT_BYTES_MAX).saturating_add(orders);
        Some((checkpoint.number, bytes_max.saturating_add(COMMITTEES_BYTES_MAX)))
    }

    /// Admits the next checkpoint if the archive's own proposal is that one. Returns whether it was.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn admit_own(&mut self, told: Progress<'_>) -> Result<bool, CheckpointError> {
        let Some(certificate) = self.rest.front() else { return Ok(false) };
        let recomputed = self.archive.recompute(&self.base, &self.domain, told);
        let is_own = |computed: &Computed| {
            computed.checkpoint == certificate.checkpoint && self.archive.check_files(computed).is_ok()
        };
        match recomputed.ok().filter(is_own) {
            Some(own) => self.complete(own).map(|()| true),
            None => Ok(false),
        }
    }

    /// Admits the next checkpoint with this segment.
    ///
    /// # Errors
    /// [`CheckpointError::NotAdmitted`] if it is not the certified segment; see [`CheckpointError`].
    pub fn admit(&mut self, segment: &mut impl Read, told: Progress<'_>) -> Result<(), CheckpointError> {
        let Some(certificate) = self.rest.front() else { return Ok(()) };
        let (certified, number) = (certificate.checkpoint, certificate.checkpoint.number);
        let refuse = |reason| CheckpointError::NotAdmitted { number, reason };
        let chain = self.events.last().map_or(self.base.state.up_to, |event| event.index);
        if chain < certified.up_to {
            return Err(CheckpointError::ChainBehind { chain, wanted: certified.up_to });
        }
        // A void number, the shortest entry, weighs as much as an order.
        let entries_max = self.orders_max.saturating_add(self.events_up_to(certified.up_to).len());
        let segment =
            Segment::read_at_most(segment, entries_max).map_err(|error| refuse(NotAdmitted::Damaged(error)))?;
        let shown = segment.entries.iter().filter_map(|entry| match entry {
            SegmentEntry::Event(event) => Some(event),
            SegmentEntry::Executed(_) | SegmentEntry::Void { .. } | SegmentEntry::Paid(_) | SegmentEntry::Recovery => {
                None
            }
        });
        if !shown.eq(self.events_up_to(certified.up_to)) {
            return Err(refuse(NotAdmitted::Events));
        }
        let computed = follow_segment(&self.base, segment, &self.domain, told)?
            .map_err(|error| refuse(NotAdmitted::Segment(error)))?;
        computed.checkpoint.check(&certified).map_err(|mismatch| refuse(NotAdmitted::Other(mismatch)))?;
        self.complete(computed)
    }

    /// Writes what the next certificate certifies, and the certificate last.
    fn complete(&mut self, computed: Computed) -> Result<(), CheckpointError> {
        let Some(certificate) = self.rest.pop_front() else { return Ok(()) };
        // As everybody who reads the archive will.
        let verified = certificate.clone().verify(&self.domain, &computed.state.installations);
        let verified = verified.map_err(|error| not_certified(&certificate, error))?;
        // Only now that all of the other one is verified.
        self.archive.withdraw(computed.checkpoint.number)?;
        self.archive.write(&self.base, &computed)?;
        let certificate = verified.into_certificate();
        self.archive.complete(&certificate)?;
        self.base = self.archive.built_on(computed, certificate);
        Ok(())
    }

    /// The events after the newest checkpoint, up to an index.
    fn events_up_to(&self, up_to: TransactionIndex) -> &[PrimaryEvent] {
        let first = self.events.partition_point(|event| event.index <= self.base.state.up_to);
        let end = self.events.partition_point(|event| event.index <= up_to);
        self.events.get(first..end).unwrap_or_default()
    }
}

/// Whether an archive with the checkpoint `tip` lacks what these certificates certify: there are some after it, or the
/// only one is a rival with the lower digest.
pub(super) fn is_ahead(certificates: &[CheckpointCertificate], tip: &Checkpoint, domain: &Domain) -> bool {
    match certificates {
        [] => false,
        [only] if only.checkpoint.number == tip.number => {
            domain.checkpoint_digest(&only.checkpoint) < domain.checkpoint_digest(tip)
        }
        _ => true,
    }
}

fn not_certified(certificate: &CheckpointCertificate, error: NotCertified) -> CheckpointError {
    CheckpointError::NotAdmitted { number: certificate.checkpoint.number, reason: NotAdmitted::Certificate(error) }
}

/// Whether a certificate counts now: by its votes, or because an installation names its checkpoint.
fn counts(
    certificate: &CheckpointCertificate,
    domain: &Domain,
    installations: &Installations,
) -> Result<(), NotCertified> {
    let digest = domain.checkpoint_digest(&certificate.checkpoint);
    if installations.iter().any(|installed| installed.checkpoint == digest) {
        return Ok(());
    }
    certificate.clone().verify(domain, installations).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpay_core::checkpoint::{Checkpoint, CheckpointState};
    use fastpay_core::{AccountId, Digest, Epoch, SequenceNumber};
    use fastpay_testkit::TestCommittee;

    #[test]
    fn a_rival_replaces_the_newest_checkpoint_by_its_digest_or_with_a_successor() {
        let committee = TestCommittee::new(4);
        let (domain, state) = (committee.domain, CheckpointState::new(committee.committee).unwrap().summary());
        let first = Checkpoint::first(&state);
        let next = |of: &Checkpoint, segment| {
            let checkpoint = of.next(&domain, Epoch(0), &state, Digest::repeat_byte(segment)).unwrap();
            CheckpointCertificate { checkpoint, votes: Vec::new() }
        };
        let mut two = [next(&first, 1), next(&first, 2)];
        two.sort_by_key(|certificate| domain.checkpoint_digest(&certificate.checkpoint));
        let [low, high] = two;
        let is_ahead =
            |certificates: &[_], tip: &CheckpointCertificate| is_ahead(certificates, &tip.checkpoint, &domain);
        assert!(!is_ahead(&[], &low));
        let with_successor = [high.clone(), next(&high.checkpoint, 3)];
        assert!(is_ahead(std::slice::from_ref(&low), &high) && !is_ahead(&with_successor[..1], &low));
        assert!(is_ahead(&with_successor, &low));
        assert!(is_ahead(&[next(&low.checkpoint, 3)], &low));
    }

    #[test]
    fn a_segment_of_more_entries_than_a_checkpoint_may_have_is_not_read() {
        let committee = TestCommittee::new(4);
        let (domain, committees) = (committee.domain, Committees::new(committee.committee).unwrap());
        let archive = Archive::new(std::path::Path::new("none"));
        let base = archive.base(0, &domain, &committees).unwrap();
        let checkpoint = base.checkpoint.next(&domain, Epoch(0), &base.state, Digest::ZERO).unwrap();
        let rest = VecDeque::from([CheckpointCertificate { checkpoint, votes: Vec::new() }]);
        let mut admission = Admission { archive, domain, orders_max: 2, events: Vec::new(), base, rest };
        let mut refusal = |count| {
            let entry = SegmentEntry::Void { account: AccountId([1; 32]), sequence: SequenceNumber(2) };
            let mut bytes = Vec::new();
            Segment { entries: vec![entry; count] }.write(&mut bytes).unwrap();
            match admission.admit(&mut bytes.as_slice(), &mut |_| ()).unwrap_err() {
                CheckpointError::NotAdmitted { number: 1, reason } => reason,
                other => panic!("{other}"),
            }
        };
        assert!(matches!(refusal(2), NotAdmitted::Segment(_)));
        assert!(matches!(refusal(3), NotAdmitted::Damaged(_)));
    }
}
