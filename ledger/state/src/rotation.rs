//! The way from one committee to the next: announced by a quorum of the current one, open to the guardian's endorsement
//! for a while, and installed once a quorum of its own accepts. Announcements are a set, each with its own clock;
//! nothing supersedes or vetoes one.
//!
//! ```text
//!  announced ── delay, shorter once endorsed ──► matured: the group of that height ──► accepted, installed
//!      └──────────────────────── an epoch begins, or it lapses: ended ◄───────────────────────┘
//! ```

use fastpay_core::{AccountId, Committee, ContractVote, Digest, Epoch, PossessionProof};
use fastpay_ledger_statement::{
    Announced, Announcing, CommitteeNumber, CurrentEpoch, EventKind, Outcome, Possession, Rejection, SafetyParameters,
    StateKey, Time,
};

use crate::committees::{check_votes, count};
use crate::draft::Draft;

/// An announcement's deadline is at most so far ahead, in seconds: 30 days, as in the contract. A signed announcement
/// cannot be held back for longer.
pub const DEADLINE_MAX_S: u64 = 30 * 24 * 60 * 60;

impl Draft<'_> {
    /// Starts the clock of an announcement.
    pub(crate) fn announce(&mut self, announcing: &Announcing) -> Result<Outcome, Rejection> {
        let Announcing { committee: number, next, proofs, votes } = announcing;
        let current = self.current_epoch(*number)?;
        let epoch = next_of(&current);
        if next.committee.epoch() != epoch {
            return Err(Rejection::WrongNextEpoch(epoch));
        }
        if next.compromised_since > epoch {
            return Err(Rejection::InvalidCompromise);
        }
        // The ledger counts milliseconds, and announcements seconds, as the contract.
        let now = self.moment.time.0 / 1_000;
        let latest = now.saturating_add(DEADLINE_MAX_S);
        if next.deadline < now {
            return Err(Rejection::DeadlinePassed(next.deadline));
        }
        if next.deadline > latest {
            return Err(Rejection::DeadlineTooFar(latest));
        }
        let domain = self.layout.deployment().domain(*number);
        let id = next.id(&domain);
        let place = StateKey::Announcement(*number, id);
        if self.state.read(&place).is_some() {
            return Err(Rejection::AlreadyAnnounced);
        }
        let members = self.current_committee(*number, &current);
        check_votes(votes, &members, members.quorum(), id)?;
        self.check_possession(*number, &next.committee, proofs)?;

        let (announced_at, endorsed_at, matured) = (self.moment.time, None, None);
        self.state.put(place, &Announced { next: next.clone(), announced_at, endorsed_at, matured });
        let before: u64 = self.state.get(&StateKey::AnnouncementCount(*number)).unwrap_or_default();
        let after = before.checked_add(1).expect("fewer than 2^64 announcements");
        self.state.put(StateKey::AnnouncementId(*number, before), &id);
        self.state.put(StateKey::AnnouncementCount(*number), &after);
        Ok(Outcome::Announced(id))
    }

    /// Shortens the delay of an announcement.
    pub(crate) fn endorse(
        &mut self,
        signer: AccountId,
        number: CommitteeNumber,
        id: Digest,
    ) -> Result<Outcome, Rejection> {
        let current = self.current_epoch(number)?;
        if current.guardian.is_zero() || signer != AccountId::from_ethereum(current.guardian) {
            return Err(Rejection::NotGuardian(current.guardian));
        }
        let announced = self.announced(number, &current, id)?;
        if announced.endorsed_at.is_some() {
            return Err(Rejection::AlreadyEndorsed);
        }
        let endorsed_at = Some(self.moment.time);
        self.state.put(StateKey::Announcement(number, id), &Announced { endorsed_at, ..announced });
        Ok(Outcome::Endorsed)
    }

    /// Has acceptances name the committee's group of this height, which is sent for it.
    pub(crate) fn mature(&mut self, number: CommitteeNumber, id: Digest) -> Result<Outcome, Rejection> {
        let current = self.current_epoch(number)?;
        let announced = self.installable(number, &current, id)?;
        if announced.matured.is_some() || self.maturing.contains(&(number, id)) {
            return Err(Rejection::AlreadyMatured);
        }
        self.maturing.push((number, id));
        Ok(Outcome::Matured)
    }

    /// The group to a committee is known: what has matured at this height names it.
    pub(crate) fn note_matured(&mut self, number: CommitteeNumber, group: Digest) {
        let matured: Vec<Digest> =
            self.maturing.iter().filter(|(committee, _)| *committee == number).map(|(_, id)| *id).collect();
        for id in matured {
            let place = StateKey::Announcement(number, id);
            if let Some(announced) = self.state.get::<Announced>(&place) {
                self.state.put(place, &Announced { matured: Some(group), ..announced });
            }
        }
    }

    /// Whether an announcement of this committee has matured at this height.
    pub(crate) fn is_maturing(&self, number: CommitteeNumber) -> bool {
        self.maturing.iter().any(|(committee, _)| *committee == number)
    }

    /// Installs the next committee. Redemption votes of the one before count for a while, unless its keys were out.
    pub(crate) fn install(
        &mut self,
        number: CommitteeNumber,
        id: Digest,
        votes: &[ContractVote],
    ) -> Result<Outcome, Rejection> {
        let current = self.current_epoch(number)?;
        let announced = self.installable(number, &current, id)?;
        let acceptance = announced.acceptance(id).ok_or(Rejection::NotMatured)?;
        let next = announced.next;
        let digest = self.layout.deployment().domain(number).council_digest(&acceptance);
        check_votes(votes, &next.committee, next.committee.quorum(), digest)?;

        let (epoch, since) = (next.committee.epoch(), next.compromised_since);
        let validity = self.parameters(number)?.votes_validity_ms;
        let until = Time(self.moment.time.0.saturating_add(validity));
        let mut compromised = current.compromised;
        if since < epoch {
            compromised.retain(|(first, _)| *first < since);
            compromised.push((since, epoch));
        }
        let previous_counts_until = (since == epoch).then_some(until);
        let (began, guardian) = (self.moment.time, next.guardian);
        self.state.put(StateKey::Committee(number, epoch), &next.committee);
        let current = CurrentEpoch { epoch, began, previous_counts_until, guardian, compromised };
        self.state.put(StateKey::Epoch(number), &current);
        let kind = EventKind::Installed {
            committee: next.committee,
            guardian,
            previous_counts_until,
            compromised_since: since,
            checkpoint: next.checkpoint,
        };
        Ok(Outcome::Installed(epoch, self.tell(number, kind)))
    }

    /// What the genesis fixed for a committee.
    pub(crate) fn parameters(&self, number: CommitteeNumber) -> Result<SafetyParameters, Rejection> {
        let founded = self.layout.genesis().committees.get(&number);
        founded.map(|founded| founded.parameters).ok_or(Rejection::UnknownCommittee(number))
    }

    /// An announcement that can be installed now.
    fn installable(&self, number: CommitteeNumber, current: &CurrentEpoch, id: Digest) -> Result<Announced, Rejection> {
        let announced = self.announced(number, current, id)?;
        let at = announced.installable_at(&self.parameters(number)?);
        if self.moment.time < at { Err(Rejection::NotInstallable(at)) } else { Ok(announced) }
    }

    /// An announcement that has neither ended nor lapsed.
    fn announced(&self, number: CommitteeNumber, current: &CurrentEpoch, id: Digest) -> Result<Announced, Rejection> {
        let announced: Option<Announced> = self.state.get(&StateKey::Announcement(number, id));
        let announced = announced.ok_or(Rejection::NotAnnounced)?;
        let epoch = announced.next.committee.epoch();
        if epoch != next_of(current) {
            return Err(Rejection::AnnouncementEnded(epoch));
        }
        let lapses = announced.lapses_at(&self.parameters(number)?);
        if self.moment.time > lapses { Err(Rejection::AnnouncementLapsed(lapses)) } else { Ok(announced) }
    }

    /// Checks that each member has both of its keys.
    fn check_possession(
        &self,
        number: CommitteeNumber,
        committee: &Committee,
        proofs: &[Possession],
    ) -> Result<(), Rejection> {
        let members = committee.members();
        if proofs.len() != members.len() {
            return Err(Rejection::ProofCount { expected: count(members.len()), found: count(proofs.len()) });
        }
        let domain = self.layout.deployment().domain(number);
        members.iter().zip(proofs).try_for_each(|(authority, proof)| {
            let Possession { redemption_signature, voting_signature } = *proof;
            let proof = PossessionProof { authority: *authority, redemption_signature, voting_signature };
            proof.verify(&domain).map_err(|_| Rejection::NoPossession(authority.name))
        })
    }
}

fn next_of(current: &CurrentEpoch) -> Epoch {
    Epoch(current.epoch.0.saturating_add(1))
}
