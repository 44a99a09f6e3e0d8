//! Reserves: what a bank has on the ledger, by asset. The hash of its key is their owner's id.
//!
//! A reserve is never removed, and a credit to it cannot fail [LEDGER 8]. Before the owner's key has opened its
//! reserves it spends nothing from them; what is credited meanwhile is its claim.

use fastpay_core::{AccountId, Amount, Asset};
use fastpay_ledger_statement::{
    ClusterId, CommitteeNumber, Credit, Funding, Message, Outcome, Receiver, Rejection, StateKey,
};

use crate::draft::Draft;

impl Draft<'_> {
    pub(crate) fn open(&mut self, owner: AccountId) -> Result<Outcome, Rejection> {
        self.check_kept_here(&owner)?;
        if self.is_open(owner) {
            return Err(Rejection::AlreadyOpen);
        }
        self.state.put(StateKey::Opened(owner), &());
        Ok(Outcome::Opened)
    }

    /// Debits here. The credit is here too, or a numbered message to the shard of the other reserve.
    pub(crate) fn transfer(
        &mut self,
        from: AccountId,
        to: AccountId,
        asset: Asset,
        amount: Amount,
    ) -> Result<Outcome, Rejection> {
        self.check_debit(from, asset, amount)?;
        if to == AccountId::ZERO {
            return Err(Rejection::InvalidRecipient);
        }
        self.state.debit(StateKey::Reserve(from, asset), amount);
        self.pay(Credit { to, asset, amount });
        Ok(Outcome::Transferred)
    }

    /// Debits here. The settlement cluster credits the committee's accounts, and tells its authorities.
    pub(crate) fn fund(
        &mut self,
        payer: AccountId,
        committee: CommitteeNumber,
        account: AccountId,
        asset: Asset,
        amount: Amount,
    ) -> Result<Outcome, Rejection> {
        self.check_funded_account(committee, account)?;
        self.check_debit(payer, asset, amount)?;
        self.state.debit(StateKey::Reserve(payer, asset), amount);
        let funding = Funding { committee, account, asset, amount, payer };
        let settlement = self.layout.partition().settlement;
        if settlement == self.layout.us() {
            self.funded(&funding);
        } else {
            self.send_money(settlement, asset, amount, Message::Fund(funding));
        }
        Ok(Outcome::Funding)
    }

    /// Credits a reserve, here or elsewhere.
    pub(crate) fn pay(&mut self, credit: Credit) {
        let shard = self.layout.partition().of_reserve(&credit.to);
        if shard == self.layout.us() {
            self.credit(&credit);
        } else {
            self.send_money(shard, credit.asset, credit.amount, Message::Credit(credit));
        }
    }

    /// Credits a reserve that is kept here.
    pub(crate) fn credit(&mut self, credit: &Credit) {
        self.state.add(StateKey::Reserve(credit.to, credit.asset), credit.amount);
    }

    /// Checks that the accounts of a committee can be funded by this name. As the contract: neither zero nor itself.
    pub(crate) fn check_funded_account(&self, committee: CommitteeNumber, account: AccountId) -> Result<(), Rejection> {
        if !self.layout.genesis().committees.contains_key(&committee) {
            return Err(Rejection::UnknownCommittee(committee));
        }
        let contract = self.layout.deployment().domain(committee).contract();
        if [AccountId::ZERO, AccountId::from_ethereum(contract)].contains(&account) {
            return Err(Rejection::InvalidRecipient);
        }
        Ok(())
    }

    /// Sends a message that is worth an amount.
    pub(crate) fn send_money(&mut self, to: ClusterId, asset: Asset, amount: Amount, message: Message) {
        self.state.add(StateKey::SentTotal(to, asset), amount);
        self.push(Receiver::Cluster(to), message);
    }

    /// The most that can be paid from a balance at once. A faulty cluster can have made it more than was issued; no
    /// honest one sends more than that in a message.
    pub(crate) fn payable(&self, balance: &StateKey, asset: Asset) -> Amount {
        self.state.balance(balance).spendable().min(self.layout.issued(asset))
    }

    pub(crate) fn check_debit(&self, owner: AccountId, asset: Asset, amount: Amount) -> Result<(), Rejection> {
        self.check_kept_here(&owner)?;
        if !self.is_open(owner) {
            return Err(Rejection::NotOpen);
        }
        if amount == Amount::ZERO {
            return Err(Rejection::ZeroAmount);
        }
        let payable = self.payable(&StateKey::Reserve(owner, asset), asset);
        if amount > payable { Err(Rejection::ReserveTooLow(payable)) } else { Ok(()) }
    }

    fn check_kept_here(&self, owner: &AccountId) -> Result<(), Rejection> {
        let responsible = self.layout.partition().of_reserve(owner);
        if responsible == self.layout.us() { Ok(()) } else { Err(Rejection::OtherShard(responsible)) }
    }

    fn is_open(&self, owner: AccountId) -> bool {
        self.state.read(&StateKey::Opened(owner)).is_some()
    }
}
