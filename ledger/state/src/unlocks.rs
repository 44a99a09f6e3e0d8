//! Stuck numbers: an owner who signed two orders for one number requests to unlock it. Then a quorum upholds the order
//! that has a certificate, or voids the number, once its window has passed or all members agree. Each number has one
//! decision.
//!
//! The payer's shard takes the bond from the reserve of whoever brings the request, and sends both here. The bond goes
//! to whoever has an order upheld, and back where the number is voided or nothing is requested.

use fastpay_core::{AccountId, ContractVote, Digest, Epoch, SequenceNumber, UnlockVote};
use fastpay_ledger_statement::{
    Bond, CommitteeNumber, Credit, CurrentEpoch, EventKind, Message, Outcome, Rejection, SafetyParameters, SpentOn,
    StateKey, Time, UnlockDecision, UnlockEntry, UnlockRequest, Unlocking,
};

use crate::committees::check_votes;
use crate::draft::Draft;

impl Draft<'_> {
    /// Debits the bond here. The settlement cluster takes the request.
    pub(crate) fn request_unlock(&mut self, payer: AccountId, request: &UnlockRequest) -> Result<Outcome, Rejection> {
        let Bond { asset, amount } = self.check_request(request)?;
        self.check_debit(payer, asset, amount)?;
        self.state.debit(StateKey::Reserve(payer, asset), amount);
        let unlocking = Unlocking { request: *request, payer };
        let settlement = self.layout.partition().settlement;
        if settlement == self.layout.us() {
            self.unlocking(&unlocking);
        } else {
            self.send_money(settlement, asset, amount, Message::Unlock(unlocking));
        }
        Ok(Outcome::Unlocking)
    }

    /// Checks a request as far as every cluster can, and gives its bond.
    pub(crate) fn check_request(&self, request: &UnlockRequest) -> Result<Bond, Rejection> {
        let bond = self.parameters(request.committee)?.unlock_bond;
        let domain = self.layout.deployment().domain(request.committee);
        if request.is_authorized(&domain) { Ok(bond) } else { Err(Rejection::NotOwner(request.account)) }
    }

    /// Takes a request with its bond, which is given back where the number was requested before or has its decision.
    pub(crate) fn unlocking(&mut self, unlocking: &Unlocking) {
        let Unlocking { request, payer } = *unlocking;
        let UnlockRequest { committee, account, sequence, .. } = request;
        let parameters = self.parameters(committee).expect("the request was checked");
        let Bond { asset, amount } = parameters.unlock_bond;
        let place = StateKey::Unlock(committee, account, sequence);
        if self.state.read(&place).is_some() {
            self.pay(Credit { to: payer, asset, amount });
            return;
        }
        self.state.add(StateKey::Bonds(committee, asset), amount);
        let voidable_from = Time(self.moment.time.0.saturating_add(parameters.unlock_window_ms));
        self.state.put(place, &UnlockEntry { voidable_from, payer: Some(payer), decision: None });
        self.tell(committee, EventKind::UnlockRequested { account, sequence, voidable_from });
    }

    /// Upholds the one order of a number that has a certificate, also where the number is spent.
    pub(crate) fn uphold(
        &mut self,
        signer: AccountId,
        (committee, account, sequence): (CommitteeNumber, AccountId, SequenceNumber),
        digest: Digest,
        votes: &[ContractVote],
    ) -> Result<Outcome, Rejection> {
        let current = self.current_epoch(committee)?;
        let bond = self.parameters(committee)?.unlock_bond;
        let entry = self.undecided(&current, committee, account, sequence)?;
        self.check_unlock_votes(UnlockVote::Certificate(digest), &current, (committee, account, sequence), votes)?;
        let decision = Some((UnlockDecision::Upheld, current.epoch));
        let place = StateKey::Unlock(committee, account, sequence);
        self.state.put(place, &UnlockEntry { payer: None, decision, ..entry });
        let index = self.tell(committee, EventKind::Upheld { account, sequence, digest });
        self.pay_bond(committee, bond, entry.payer.map(|_| signer));
        Ok(Outcome::Upheld(index))
    }

    /// Voids a number, which is spent from then on.
    pub(crate) fn void(
        &mut self,
        (committee, account, sequence): (CommitteeNumber, AccountId, SequenceNumber),
        unanimous: bool,
        votes: &[ContractVote],
    ) -> Result<Outcome, Rejection> {
        let current = self.current_epoch(committee)?;
        let parameters = self.parameters(committee)?;
        let entry = self.undecided(&current, committee, account, sequence)?;
        let from = if unanimous { unanimous_from(&parameters, &current) } else { entry.voidable_from };
        if self.moment.time < from {
            return Err(Rejection::NotVoidable(from));
        }
        self.check_unlock_votes(UnlockVote::Void { unanimous }, &current, (committee, account, sequence), votes)?;
        if self.is_spent(committee, account, sequence) {
            return Err(Rejection::SequenceSpent);
        }
        self.state.put(StateKey::Spent(committee, account, sequence), &SpentOn::Void);
        let decision = Some((UnlockDecision::Voided, current.epoch));
        let place = StateKey::Unlock(committee, account, sequence);
        self.state.put(place, &UnlockEntry { payer: None, decision, ..entry });
        let index = self.tell(committee, EventKind::Voided { account, sequence });
        self.pay_bond(committee, parameters.unlock_bond, entry.payer);
        Ok(Outcome::Voided(index))
    }

    /// The entry of a number that was requested and has no decision that holds.
    fn undecided(
        &self,
        current: &CurrentEpoch,
        committee: CommitteeNumber,
        account: AccountId,
        sequence: SequenceNumber,
    ) -> Result<UnlockEntry, Rejection> {
        let entry: Option<UnlockEntry> = self.state.get(&StateKey::Unlock(committee, account, sequence));
        let entry = entry.ok_or(Rejection::NotRequested)?;
        if entry.decision(current).is_some() { Err(Rejection::AlreadyDecided) } else { Ok(entry) }
    }

    /// Checks the votes of the current committee about a number.
    fn check_unlock_votes(
        &self,
        vote: UnlockVote,
        current: &CurrentEpoch,
        (committee, account, sequence): (CommitteeNumber, AccountId, SequenceNumber),
        votes: &[ContractVote],
    ) -> Result<(), Rejection> {
        let members = self.current_committee(committee, current);
        let domain = self.layout.deployment().domain(committee);
        check_votes(votes, &members, vote.needed(&members), vote.digest(&domain, current.epoch, account, sequence))
    }

    /// Pays a number's bond out, if it is still held.
    fn pay_bond(&mut self, committee: CommitteeNumber, Bond { asset, amount }: Bond, to: Option<AccountId>) {
        if let Some(to) = to {
            self.state.debit(StateKey::Bonds(committee, asset), amount);
            self.pay(Credit { to, asset, amount });
        }
    }
}

/// From when on all members together void a number at once. In a later epoch this waits until members that left have
/// had time to hand over what they executed.
fn unanimous_from(parameters: &SafetyParameters, current: &CurrentEpoch) -> Time {
    let waits = Time(current.began.0.saturating_add(parameters.votes_validity_ms));
    if current.epoch == Epoch(0) { Time(0) } else { waits }
}
