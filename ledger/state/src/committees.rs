//! FastPay committees, at the settlement cluster: what their accounts have, the numbered events for their authorities,
//! and what is redeemed. The rules are the contract's, without its queue and limits.

use std::collections::{BTreeMap, HashSet};

use fastpay_core::{
    AccountId, Amount, Asset, Committee, ContractVote, Digest, Epoch, Redemption, SequenceNumber, TransactionIndex,
};
use fastpay_ledger_statement::{
    CommitteeEvent, CommitteeNumber, Credit, CurrentEpoch, EventKind, Funding, Message, Outcome, Receiver, Redeemed,
    Rejection, SpentOn, StateKey,
};

use crate::draft::Draft;

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
        if self.is_spent(committee, redemption.sender, redemption.sequence) {
            return Err(Rejection::AlreadyRedeemed);
        }
        let voters = self.voters(committee, &current, epoch)?;
        let domain = self.layout.deployment().domain(committee);
        check_votes(votes, &voters, voters.quorum(), domain.redemption_vote_digest(epoch, redemption))?;
        self.check_payable(committee, [redemption])?;
        Ok(Outcome::Redeemed(self.pay_redemption(relayer, committee, redemption)))
    }

    /// Pays redemptions that a quorum voted for together, without those whose numbers are spent. What one of them fails
    /// for, all do.
    pub(crate) fn redeem_batch(
        &mut self,
        relayer: AccountId,
        committee: CommitteeNumber,
        redemptions: &[Redemption],
        epoch: Epoch,
        votes: &[ContractVote],
    ) -> Result<Outcome, Rejection> {
        let current = self.current_epoch(committee)?;
        if redemptions.is_empty() {
            return Err(Rejection::EmptyBatch);
        }
        let voters = self.voters(committee, &current, epoch)?;
        let domain = self.layout.deployment().domain(committee);
        check_votes(votes, &voters, voters.quorum(), domain.redemption_batch_vote_digest(epoch, redemptions))?;
        // One that is repeated is spent by the time of its second turn.
        let mut spent = HashSet::with_capacity(redemptions.len());
        let is_due = |of: &Redemption| {
            spent.insert((of.sender, of.sequence)) && !self.is_spent(committee, of.sender, of.sequence)
        };
        let due: Vec<bool> = redemptions.iter().map(is_due).collect();
        let paid = || redemptions.iter().zip(&due).filter(|(_, is_due)| **is_due).map(|(redemption, _)| redemption);
        self.check_payable(committee, paid())?;
        let pay = |(redemption, is_due): (&Redemption, &bool)| {
            is_due.then(|| self.pay_redemption(relayer, committee, redemption))
        };
        Ok(Outcome::RedeemedBatch(redemptions.iter().zip(&due).map(pay).collect()))
    }

    /// Checks that the committee can pay all of these, one after the other.
    fn check_payable<'a>(
        &self,
        committee: CommitteeNumber,
        redemptions: impl IntoIterator<Item = &'a Redemption>,
    ) -> Result<(), Rejection> {
        let mut sums: BTreeMap<Asset, Amount> = BTreeMap::new();
        for Redemption { asset, amount, fee, .. } in redemptions {
            if *amount == Amount::ZERO {
                return Err(Rejection::ZeroAmount);
            }
            if fee > amount {
                return Err(Rejection::FeeAboveAmount);
            }
            let before = sums.entry(*asset).or_default();
            let omnibus = StateKey::Omnibus(committee, *asset);
            // After those before it. They fit, so the difference is not negative.
            let left = self.state.balance(&omnibus).debit(*before).spendable();
            let payable = left.min(self.layout.issued(*asset));
            if *amount > payable {
                return Err(Rejection::OmnibusTooLow(payable));
            }
            *before = before.checked_add(*amount).ok_or(Rejection::OmnibusTooLow(payable))?;
        }
        Ok(())
    }

    /// Pays a redemption that was checked, and gives the index of its event.
    fn pay_redemption(
        &mut self,
        relayer: AccountId,
        committee: CommitteeNumber,
        redemption: &Redemption,
    ) -> TransactionIndex {
        let Redemption { sender, recipient, asset, amount, fee, sequence, .. } = *redemption;
        self.state.debit(StateKey::Omnibus(committee, asset), amount);
        let index = self.tell(committee, EventKind::Redeemed { redemption: redemption.clone(), relayer });
        let digest = self.layout.deployment().domain(committee).transfer_digest(&redemption.clone().into());
        let on = SpentOn::Redeemed(Redeemed { digest, index, relayer });
        self.state.put(StateKey::Spent(committee, sender, sequence), &on);
        let paid = amount.checked_sub(fee).expect("the fee was checked");
        for (to, amount) in [(AccountId::from_ethereum(recipient), paid), (relayer, fee)] {
            if amount != Amount::ZERO {
                self.pay(Credit { to, asset, amount });
            }
        }
        index
    }

    /// Gives an event the next index, and sends it to the committee's authorities.
    pub(crate) fn tell(&mut self, committee: CommitteeNumber, kind: EventKind) -> TransactionIndex {
        let newest: TransactionIndex = self.state.get(&StateKey::EventIndex(committee)).unwrap_or_default();
        let index = newest.next().expect("fewer than 2^64 events");
        self.state.put(StateKey::EventIndex(committee), &index);
        self.push(Receiver::Committee(committee), Message::Event(CommitteeEvent { index, kind }));
        index
    }

    pub(crate) fn current_epoch(&self, committee: CommitteeNumber) -> Result<CurrentEpoch, Rejection> {
        if !self.layout.genesis().committees.contains_key(&committee) {
            return Err(Rejection::UnknownCommittee(committee));
        }
        let current = self.state.get(&StateKey::Epoch(committee));
        current.ok_or(Rejection::OtherShard(self.layout.partition().settlement))
    }

    /// The committee of the current epoch.
    pub(crate) fn current_committee(&self, committee: CommitteeNumber, current: &CurrentEpoch) -> Committee {
        let members = self.state.get(&StateKey::Committee(committee, current.epoch));
        members.expect("the committee of the current epoch is kept")
    }

    /// The committee of an epoch, if its redemption votes count now.
    fn voters(&self, committee: CommitteeNumber, current: &CurrentEpoch, epoch: Epoch) -> Result<Committee, Rejection> {
        if epoch != current.epoch {
            let is_previous = epoch.0.checked_add(1) == Some(current.epoch.0);
            let until = current.previous_counts_until.filter(|_| is_previous).unwrap_or_default();
            if epoch < current.epoch && self.moment.time > until {
                return Err(Rejection::EpochEnded(epoch, until));
            }
        }
        self.state.get(&StateKey::Committee(committee, epoch)).ok_or(Rejection::UnknownEpoch(epoch))
    }

    /// Whether an account's number is redeemed or void.
    pub(crate) fn is_spent(&self, committee: CommitteeNumber, account: AccountId, sequence: SequenceNumber) -> bool {
        self.state.read(&StateKey::Spent(committee, account, sequence)).is_some()
    }
}

/// Checks that the votes are by so many members, in order, each on `digest`.
pub(crate) fn check_votes(
    votes: &[ContractVote],
    committee: &Committee,
    needed: usize,
    digest: Digest,
) -> Result<(), Rejection> {
    if votes.len() != needed {
        return Err(Rejection::VoteCount { expected: count(needed), found: count(votes.len()) });
    }
    if let Some([_, vote]) = votes.array_windows().find(|[a, b]| a.authority >= b.authority) {
        return Err(Rejection::VotesUnsorted(vote.authority));
    }
    votes.iter().try_for_each(|vote| {
        let verified = vote.clone().verify(committee, digest);
        verified.map(drop).map_err(|_| Rejection::InvalidVote(vote.authority))
    })
}

pub(crate) fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}
