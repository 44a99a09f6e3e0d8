//! FastPay committees, at the settlement cluster: what their accounts have, the numbered events for their authorities, what
//! is redeemed, and their epochs. The rules are the contract's, without its delays, queue and limits.

use fastpay_core::{
    AccountId, Amount, Announcement, Committee, ContractVote, CouncilStatement, Digest, Epoch, PrimaryAddress,
    Redemption, TransactionIndex,
};
use fastpay_ledger_statement::{
    CommitteeEvent, CommitteeNumber, Credit, EventKind, Funding, Message, Outcome, Receiver, Redeemed, Rejection,
    Rotation, StateKey, Time,
};

use crate::draft::Draft;
use crate::state::CurrentEpoch;

/// An announcement's deadline is at most so far ahead, in seconds: 30 days, as in the contract. A signed rotation cannot be
/// held back for longer.
pub const DEADLINE_MAX_S: u64 = 30 * 24 * 60 * 60;

impl Draft<'_> {
    /// Credits the accounts of a committee.
    pub(crate) fn funded(&mut self, funding: &Funding) {
        self.state.add(StateKey::Omnibus(funding.committee, funding.asset), funding.amount);
        self.tell(funding.committee, EventKind::Funded(*funding));
    }

    /// Pays a redemption that a quorum voted for: once for each sender and number, in any order of numbers.
    pub(crate) fn redeem(
        &mut self,
        relayer: AccountId,
        committee: CommitteeNumber,
        redemption: &Redemption,
        epoch: Epoch,
        votes: &[ContractVote],
    ) -> Result<Outcome, Rejection> {
        let current = self.current_epoch(committee)?;
        let Redemption { sender, recipient, asset, amount, fee, sequence, .. } = *redemption;
        let redeemed = StateKey::Redeemed(committee, sender, sequence);
        if self.state.read(&redeemed).is_some() {
            return Err(Rejection::AlreadyRedeemed);
        }
        let voters = self.voters(committee, current, epoch)?;
        let domain = self.layout.deployment().domain(committee);
        check_votes(votes, &voters, domain.redemption_vote_digest(epoch, redemption))?;
        if amount == Amount::ZERO {
            return Err(Rejection::ZeroAmount);
        }
        let paid = amount.checked_sub(fee).ok_or(Rejection::FeeAboveAmount)?;
        let omnibus = StateKey::Omnibus(committee, asset);
        let payable = self.payable(&omnibus, asset);
        if amount > payable {
            return Err(Rejection::OmnibusTooLow(payable));
        }

        self.state.debit(omnibus, amount);
        let index = self.tell(committee, EventKind::Redeemed { redemption: redemption.clone(), relayer });
        let digest = domain.transfer_digest(&redemption.clone().into());
        self.state.put(redeemed, &Redeemed { digest, index, relayer });
        for (to, amount) in [(AccountId::from_ethereum(recipient), paid), (relayer, fee)] {
            if amount != Amount::ZERO {
                self.pay(Credit { to, asset, amount });
            }
        }
        Ok(Outcome::Redeemed(index))
    }

    /// Installs the next committee. Redemption votes of the one before count for a while, unless its keys were out.
    pub(crate) fn rotate(&mut self, rotation: &Rotation) -> Result<Outcome, Rejection> {
        let Rotation { committee: number, next, compromised_since, checkpoint, deadline, announcing, accepting } =
            rotation;
        let current = self.current_epoch(*number)?;
        let epoch = Epoch(current.epoch.0.saturating_add(1));
        if next.epoch() != epoch {
            return Err(Rejection::WrongNextEpoch(epoch));
        }
        if *compromised_since > epoch {
            return Err(Rejection::InvalidCompromise);
        }
        // The ledger counts milliseconds, and announcements seconds, as the contract.
        let now = self.moment.time.0 / 1_000;
        let latest = now.saturating_add(DEADLINE_MAX_S);
        if *deadline < now {
            return Err(Rejection::DeadlinePassed(*deadline));
        }
        if *deadline > latest {
            return Err(Rejection::DeadlineTooFar(latest));
        }
        let domain = self.layout.deployment().domain(*number);
        let announcement = Announcement {
            committee: next.clone(),
            guardian: PrimaryAddress::ZERO,
            recovery: PrimaryAddress::ZERO,
            compromised_since: *compromised_since,
            checkpoint: *checkpoint,
            deadline: *deadline,
        };
        let announced = domain.council_digest(&CouncilStatement::Announcement(&announcement));
        check_votes(announcing, &self.voters(*number, current, current.epoch)?, announced)?;
        let acceptance = CouncilStatement::Acceptance { epoch, announcement: announced, block_hash: Digest::ZERO };
        check_votes(accepting, next, domain.council_digest(&acceptance))?;

        let keys_were_out = *compromised_since < epoch;
        let validity = self.layout.genesis().votes_validity_ms;
        let until = (!keys_were_out).then(|| Time(self.moment.time.0.saturating_add(validity)));
        self.state.put(StateKey::Committee(*number, epoch), next);
        self.state.put(StateKey::Epoch(*number), &CurrentEpoch { epoch, previous_counts_until: until });
        let kind = EventKind::Rotated {
            committee: next.clone(),
            compromised_since: *compromised_since,
            checkpoint: *checkpoint,
        };
        Ok(Outcome::Rotated(epoch, self.tell(*number, kind)))
    }

    /// Gives an event the next index, and sends it to the committee's authorities.
    fn tell(&mut self, committee: CommitteeNumber, kind: EventKind) -> TransactionIndex {
        let newest: TransactionIndex = self.state.get(&StateKey::EventIndex(committee)).unwrap_or_default();
        let index = newest.next().expect("fewer than 2^64 events");
        self.state.put(StateKey::EventIndex(committee), &index);
        self.push(Receiver::Committee(committee), Message::Event(CommitteeEvent { index, kind }));
        index
    }

    fn current_epoch(&self, committee: CommitteeNumber) -> Result<CurrentEpoch, Rejection> {
        if !self.layout.genesis().committees.contains_key(&committee) {
            return Err(Rejection::UnknownCommittee(committee));
        }
        let current = self.state.get(&StateKey::Epoch(committee));
        current.ok_or(Rejection::OtherShard(self.layout.partition().settlement))
    }

    /// The committee of an epoch, if its votes count now.
    fn voters(&self, committee: CommitteeNumber, current: CurrentEpoch, epoch: Epoch) -> Result<Committee, Rejection> {
        if epoch != current.epoch {
            let is_previous = epoch.0.checked_add(1) == Some(current.epoch.0);
            let until = current.previous_counts_until.filter(|_| is_previous).unwrap_or_default();
            if epoch < current.epoch && self.moment.time > until {
                return Err(Rejection::EpochEnded(epoch, until));
            }
        }
        self.state.get(&StateKey::Committee(committee, epoch)).ok_or(Rejection::UnknownEpoch(epoch))
    }
}

/// Checks that the votes are by a quorum, in order, each on `digest`.
fn check_votes(votes: &[ContractVote], committee: &Committee, digest: Digest) -> Result<(), Rejection> {
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    if votes.len() != committee.quorum() {
        return Err(Rejection::VoteCount { expected: count(committee.quorum()), found: count(votes.len()) });
    }
    if let Some([_, vote]) = votes.array_windows().find(|[a, b]| a.authority >= b.authority) {
        return Err(Rejection::VotesUnsorted(vote.authority));
    }
    votes.iter().try_for_each(|vote| {
        let verified = vote.clone().verify(committee, digest);
        verified.map(drop).map_err(|_| Rejection::InvalidVote(vote.authority))
    })
}
