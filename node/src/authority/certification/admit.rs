//! Admits checkpoints that others certified and that this authority's archive lacks.
//!
//! ```text
//!  certificates, each after the one before ─► the newest must count now ─► for each: segment ─► same events as the own
//!  Ethereum nodes show? ─► computed ─► the certified one? ─► segment, state, cut, certificate on disk
//! ```
//! If they are more than [`STEPS_MAX`], all but the newest two are skipped at first: the state of the last but one is
//! taken, and only the newest is computed. So an authority that was away for a day is up to date in minutes:
//!
//! ```text
//!  certificates ─► as above ─► state of the last but one ─► its roots are certified? the committees are those of the
//!  own Ethereum nodes? ─► on disk (`skipped`) ─► the newest as above ┄► later the skipped ones, oldest first, as above
//! ```
//! Where a number is computed later, its entries are compared with the certified root, and not with the chain: the
//! members who signed have done that, as they have for the state that is used by then.
//!
//! A checkpoint of an epoch that ended long ago proves nothing by itself: its keys may be out by now. It counts as what
//! a newer one was built on.
//!
//! Members may sign several correct cuts, so a quorum may certify two checkpoints of one number. Both are true, and the
//! next one is built on one of them: on that with a successor, or else on that with the lower digest. So an archive may
//! replace its newest checkpoint.

use std::collections::VecDeque;
use std::io::{BufReader, Read, Seek};

use fastpay_core::checkpoint::{
    Checkpoint, CheckpointCertificate, CheckpointError as NotCertified, Installations, PrimaryEvent, Segment,
    SegmentEntry, StateSummary,
};
use fastpay_core::{Committees, Domain, TransactionIndex};

use super::archive::{Archive, Defect, wrong};
use super::base::{Base, Stored};
use super::compute::{Computed, follow_segment, installations_after};
use super::memory::Memory;
use super::{CheckpointError, Inputs, NotAdmitted, Progress, events};
use crate::authority::deployment;

/// More certified numbers than these are not computed one after another before this authority takes part again. Each
/// may have a million orders.
pub const STEPS_MAX: usize = 4;
/// The most skipped numbers that are admitted in one go.
const REFILLED_MAX: usize = 64;
/// The most bytes of a segment for each order in its weight, and for each event. Neither adds more to a state.
const ORDER_BYTES_MAX: u64 = 1_024;
const EVENT_BYTES_MAX: u64 = 512;
/// Committees are longer than other events.
const COMMITTEES_BYTES_MAX: u64 = 1 << 20;

/// Checkpoints that are being admitted, oldest first.
pub struct Admission {
    archive: Archive,
    domain: Domain,
    orders_max: usize,
    /// The final events after the archive's newest checkpoint; None for numbers that were skipped.
    events: Option<Vec<PrimaryEvent>>,
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
        memory: &Memory,
        told: Progress<'_>,
    ) -> Result<Self, CheckpointError> {
        let archive = Archive::create(inputs.archive)?.beside(inputs.config);
        let deployment = deployment::load(inputs.config).await?;
        let (domain, committees) = (deployment.domain(), deployment.committees()?);
        let base = Self::base(&archive, tip, &certificates, memory, (&domain, &committees))?;
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
        memory: &Memory,
        (domain, committees): (&Domain, &Committees),
    ) -> Result<Base, CheckpointError> {
        let is_rival = certificates.first().is_some_and(|first| first.checkpoint.number == tip.number);
        let base = archive.base_by(tip.number.saturating_sub(u64::from(is_rival)), memory, (domain, committees))?;
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
        Ok(Self { archive, domain, orders_max, events: Some(events), base, rest })
    }

    /// Begins with numbers of the archive that were skipped; `None` if there are none. Their certificates were checked
    /// then.
    ///
    /// # Errors
    /// If the archive cannot be read.
    pub fn refill(
        archive: &Archive,
        orders_max: usize,
        (domain, committees): (&Domain, &Committees),
    ) -> Result<Option<Self>, CheckpointError> {
        let skipped = archive.skipped()?;
        let Some(first) = skipped.first() else { return Ok(None) };
        let base = archive.base(first.saturating_sub(1), domain, committees)?;
        let (mut rest, mut previous) = (VecDeque::new(), base.checkpoint);
        for (number, next) in skipped.iter().zip(*first..).take(REFILLED_MAX) {
            if *number != next {
                break;
            }
            let certificate = archive.skipped_certificate(next)?;
            if certificate.checkpoint.previous != domain.checkpoint_digest(&previous) {
                return Err(wrong(&archive.certificate_path(next), Defect::OtherCheckpoint).into());
            }
            previous = certificate.checkpoint;
            rest.push_back(certificate);
        }
        Ok(Some(Self { archive: archive.clone(), domain: *domain, orders_max, events: None, base, rest }))
    }

    /// The number whose segment is needed now, and the most bytes that it can have; `None` once all are admitted.
    pub fn next(&self) -> Option<(u64, u64)> {
        let checkpoint = self.rest.front()?.checkpoint;
        Some((checkpoint.number, self.bytes_max(&checkpoint)))
    }

    /// The most bytes that all segments up to a checkpoint can have.
    fn bytes_max(&self, last: &Checkpoint) -> u64 {
        let numbers = last.number.saturating_sub(self.base.checkpoint.number);
        let orders = u64::try_from(self.orders_max).unwrap_or(u64::MAX).saturating_mul(ORDER_BYTES_MAX);
        let of_numbers = numbers.saturating_mul(orders.saturating_add(COMMITTEES_BYTES_MAX));
        self.events_of(last).saturating_mul(EVENT_BYTES_MAX).saturating_add(of_numbers)
    }

    /// How many events a checkpoint includes that the base does not. They have no gap.
    fn events_of(&self, checkpoint: &Checkpoint) -> u64 {
        checkpoint.up_to.0.saturating_sub(self.base.state.up_to.0)
    }

    /// If more than `steps_max` numbers are to be admitted, the last but one, whose state is to be taken, and the most
    /// bytes that this can have. The newest is computed: a rival could still take its place.
    ///
    /// # Errors
    /// If the archive cannot be read.
    pub fn landing(&self, steps_max: usize) -> Result<Option<(u64, u64)>, CheckpointError> {
        match self.rest.iter().rev().nth(1) {
            Some(CheckpointCertificate { checkpoint, .. }) if self.rest.len() > steps_max => {
                Ok(Some((checkpoint.number, self.base.bytes()?.saturating_add(self.bytes_max(checkpoint)))))
            }
            _ => Ok(None),
        }
    }

    /// Skips all but the newest number, with the state of the last but one.
    ///
    /// # Errors
    /// [`CheckpointError::NotAdmitted`] if it is not the certified state; see [`CheckpointError`].
    pub fn skip(&mut self, stored: &mut (impl Read + Seek)) -> Result<(), CheckpointError> {
        let all: &[_] = self.rest.make_contiguous();
        let [skipped @ .., newest] = all else { return Ok(()) };
        let ([first, ..], [.., last]) = (skipped, skipped) else { return Ok(()) };
        let (certified, number) = (last.checkpoint, last.checkpoint.number);
        let refuse = |reason| CheckpointError::NotAdmitted { number, reason };
        let events = own_events(self.events.as_deref(), &self.base, &certified)?.unwrap_or_default();
        let installations = installations_after(&self.base, events)?;
        let state = StateSummary::read_up_to(installations.epoch(), &mut BufReader::new(&mut *stored));
        let state = state.map_err(|error| refuse(NotAdmitted::Damaged(error)))?;
        let StateSummary { up_to, cut, state: root, .. } = state;
        let shown = Checkpoint { epoch: state.installations.epoch(), up_to, cut, state: root, ..certified };
        shown.check(&certified).map_err(|mismatch| refuse(NotAdmitted::Other(mismatch)))?;
        if installations != state.installations {
            return Err(refuse(NotAdmitted::Events));
        }
        let verified = last.clone().verify(&self.domain, &state.installations);
        let certificate = Some(verified.map_err(|error| not_certified(last, error))?.into_certificate());
        stored.rewind().map_err(|error| refuse(NotAdmitted::Damaged(error)))?;
        // Only now that all of the state is verified: the first may be a rival of the newest one here.
        self.archive.withdraw(first.checkpoint.number)?;
        self.archive.skip(skipped, stored)?;
        let newest = newest.clone();
        let stored = Stored::File(self.archive.state_path(number));
        self.base = Base { checkpoint: certified, certificate, state, stored };
        self.rest = VecDeque::from([newest]);
        Ok(())
    }

    /// Admits the next checkpoint if the archive's own proposal is that one. Returns whether it was.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn admit_own(&mut self, memory: &Memory, told: Progress<'_>) -> Result<bool, CheckpointError> {
        let Some(certificate) = self.rest.front() else { return Ok(false) };
        let certified = certificate.checkpoint;
        let made = memory.made(&self.archive, certified.number).filter(|made| made.checkpoint == certified);
        if let Some(made) = made {
            return self.complete(certified, made.state.clone(), None).map(|()| true);
        }
        let recomputed = self.archive.recompute(&self.base, &self.domain, told);
        let is_own =
            |computed: &Computed| computed.checkpoint == certified && self.archive.check_files(computed).is_ok();
        match recomputed.ok().filter(is_own) {
            Some(own) => self.complete(certified, own.state.clone(), Some(&own)).map(|()| true),
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
        let events = own_events(self.events.as_deref(), &self.base, &certified)?;
        // A void number, the shortest entry, weighs as much as an order.
        let entries_max =
            self.orders_max.saturating_add(usize::try_from(self.events_of(&certified)).unwrap_or(usize::MAX));
        let segment =
            Segment::read_at_most(segment, entries_max).map_err(|error| refuse(NotAdmitted::Damaged(error)))?;
        let shown = segment.entries.iter().filter_map(|entry| match entry {
            SegmentEntry::Event(event) => Some(event),
            _ => None,
        });
        if events.is_some_and(|events| !shown.eq(events)) {
            return Err(refuse(NotAdmitted::Events));
        }
        let computed = follow_segment(&self.base, segment, &self.domain, told)?
            .map_err(|error| refuse(NotAdmitted::Segment(error)))?;
        computed.checkpoint.check(&certified).map_err(|mismatch| refuse(NotAdmitted::Other(mismatch)))?;
        self.complete(computed.checkpoint, computed.state.clone(), Some(&computed))
    }

    /// Writes what the next certificate certifies, unless that is in the archive, and the certificate last.
    fn complete(
        &mut self,
        checkpoint: Checkpoint,
        state: StateSummary,
        missing: Option<&Computed>,
    ) -> Result<(), CheckpointError> {
        let Some(certificate) = self.rest.pop_front() else { return Ok(()) };
        // As everybody who reads the archive will.
        let verified = certificate.clone().verify(&self.domain, &state.installations);
        let verified = verified.map_err(|error| not_certified(&certificate, error))?;
        // A number that was skipped may have its certificate already.
        if self.archive.certificate(checkpoint.number).is_ok_and(|held| held.checkpoint != checkpoint) {
            // Only now that all of the other one is verified.
            self.archive.withdraw(checkpoint.number)?;
        }
        if let Some(computed) = missing {
            self.archive.write(&self.base, computed)?;
        }
        let certificate = verified.into_certificate();
        self.archive.complete(&certificate)?;
        self.base = self.archive.built_on(checkpoint, state, certificate);
        Ok(())
    }
}

/// Of the own events those that a checkpoint includes and its base does not; `None` if they are not compared.
fn own_events<'a>(
    events: Option<&'a [PrimaryEvent]>,
    base: &Base,
    certified: &Checkpoint,
) -> Result<Option<&'a [PrimaryEvent]>, CheckpointError> {
    let Some(events) = events else { return Ok(None) };
    let chain = events.last().map_or(base.state.up_to, |event| event.index);
    if chain < certified.up_to {
        return Err(CheckpointError::ChainBehind { chain, wanted: certified.up_to });
    }
    let up_to = |index: TransactionIndex| events.partition_point(|event| event.index <= index);
    Ok(Some(events.get(up_to(base.state.up_to)..up_to(certified.up_to)).unwrap_or_default()))
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
mod tests;
