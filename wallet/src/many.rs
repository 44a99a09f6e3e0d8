//! Pays a list of recipients, split into orders of up to [`PAYOUT_OUTPUTS_MAX`] outputs, which are sent in sequence.
//!
//! ```text
//!  job on disk ─► finish what is unfinished ─► which pages have an order? ─► do funds cover the others?
//!    ─► page by page: sign ─► store ─► certify ─► store ─┬─► settle, while the next page is certified
//! ```
//! Invariants: a page's order carries the page's name as its memo, so an order on disk, or its certificate, proves that
//! the page is paid, whatever else is lost. No page is signed again while an order with its name may still be executed,
//! or while it is unknown what the account ordered under an earlier number.
//! A job that is repeated, after a crash or by mistake, therefore pays nobody twice.

use std::collections::BTreeMap;
use std::sync::Arc;

use alloy::primitives::keccak256;
use fastpay_core::{
    AccountId, AccountKey, Amount, Asset, Digest, Memo, Outputs, PAYOUT_OUTPUTS_MAX, Payout, SequenceNumber, Transfer,
};
use tokio::task::JoinSet;

use crate::error::WalletError;
use crate::folder::{Job, OrderEntry, OrderJournal, OrderState};
use crate::wallet::{ADOPTIONS_MAX, Intent, LOCK_PATIENCE, Wallet};

/// The maximum number of pages that are certified and not settled yet.
const PAGES_UNDER_WAY_MAX: usize = 8;

/// One order of a job: payments in one asset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PayoutPage {
    /// The asset that is paid.
    pub asset: Asset,
    /// The recipients and their amounts.
    pub outputs: Outputs,
}

/// The state of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageState {
    /// The number of its order among the sender's.
    pub sequence: SequenceNumber,
    /// The digest of its order.
    pub digest: Digest,
    /// The state of its order, which is never superseded.
    pub state: OrderState,
}

/// The states of a job's pages, in their order; `None` if a page has no order yet.
pub type PageStates = Vec<Option<PageState>>;

/// The name of a page, which is its order's memo.
fn name_of(job: Digest, page: usize) -> Memo {
    let page = u64::try_from(page).unwrap_or(u64::MAX);
    keccak256([b"fastpay/payout".as_slice(), job.as_slice(), page.to_be_bytes().as_slice()].concat())
}

impl PayoutPage {
    fn transfer(&self, sender: AccountId, sequence: SequenceNumber, memo: Memo) -> Transfer {
        Payout { sender, asset: self.asset, outputs: self.outputs.clone(), sequence, memo }.into()
    }
}

impl Wallet {
    /// Begins a job or continues it: `account` pays, with at most `outputs_max` outputs in one order. Another command
    /// may have begun it since its file was read, with another account or other pages: then both would pay everybody.
    ///
    /// # Errors
    /// [`WalletError::OtherJob`] if it was begun differently; if the wallet's files cannot be used.
    pub fn begin_job(&self, name: Digest, account: AccountId, outputs_max: usize) -> Result<(), WalletError> {
        let wanted = Job { account, outputs_max: outputs_max.clamp(1, PAYOUT_OUTPUTS_MAX) };
        let begun = self.folder().jobs().begin(name, wanted)?;
        if begun != wanted {
            return Err(WalletError::OtherJob { account: begun.account, outputs_max: begun.outputs_max });
        }
        Ok(())
    }

    /// The states of a job's pages, by this wallet's files.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn page_states(
        &self,
        name: Digest,
        account: AccountId,
        pages: &[PayoutPage],
    ) -> Result<PageStates, WalletError> {
        let places: BTreeMap<Memo, usize> = (0..pages.len()).map(|page| (name_of(name, page), page)).collect();
        let mut states = vec![None; pages.len()];
        for entry in self.folder().orders(account).entries()? {
            // A number that the contract voided paid nothing, so its page gets another one.
            if entry.state == OrderState::Voided {
                continue;
            }
            let Some(Transfer::Payout(payout)) = entry.transfer() else { continue };
            let Some((place, page)) = places.get(&payout.memo).and_then(|at| Some((*at, pages.get(*at)?))) else {
                continue;
            };
            if payout.asset != page.asset || payout.outputs != page.outputs {
                continue;
            }
            if let Some(place) = states.get_mut(place) {
                *place = Some(self.state_of(&entry));
            }
        }
        Ok(states)
    }

    /// The state of an entry that has a transfer. A certified transfer counts, whichever copy ordered it.
    fn state_of(&self, entry: &OrderEntry) -> PageState {
        let digest = entry.transfer().map(|transfer| self.network().domain().transfer_digest(transfer));
        let state = match entry.state {
            // Another copy of this wallet has the certificate of the same page.
            OrderState::Superseded => OrderState::Certified,
            state => state,
        };
        PageState { sequence: entry.sequence, digest: digest.unwrap_or_default(), state }
    }

    /// Pays all unpaid pages of a job, and returns when all are settled. Calls `told` with the states after every
    /// change.
    ///
    /// # Errors
    /// As [`Wallet::send`], and [`WalletError::Unread`] while an earlier order of the account, which may have paid a
    /// page, cannot be read. Some pages may be paid then; the same call again pays the others.
    pub async fn pay_many(
        &self,
        key: &AccountKey,
        name: Digest,
        pages: &[PayoutPage],
        told: impl Fn(&PageStates),
    ) -> Result<PageStates, WalletError> {
        let account = key.account();
        let journal = Arc::new(self.folder().orders(account).lock(LOCK_PATIENCE).await?);
        for _ in 0..ADOPTIONS_MAX {
            for entry in journal.orders().unfinished()? {
                self.finish(&journal, entry, &mut Vec::new()).await?;
            }
            let states = self.page_states(name, account, pages)?;
            told(&states);
            let Some(sequence) = self.check_funds(&journal, pages, &states).await? else { continue };
            // Orders of another copy of this wallet may have become known.
            if states != self.page_states(name, account, pages)? {
                continue;
            }
            let states = self.pay_pages(key, &journal, name, pages, states, sequence, &told).await?;
            if states.iter().all(Option::is_some) {
                return Ok(states);
            }
        }
        Err(WalletError::OtherCopy { account })
    }

    /// The number of the next order, if every number before it is known and the account's funds cover all pages without
    /// an order together.
    async fn check_funds(
        &self,
        journal: &OrderJournal,
        pages: &[PayoutPage],
        states: &PageStates,
    ) -> Result<Option<SequenceNumber>, WalletError> {
        let recipient = journal.orders().account();
        let mut needed = BTreeMap::<Asset, Amount>::new();
        for (page, _) in pages.iter().zip(states).filter(|(_, state)| state.is_none()) {
            let sum = needed.entry(page.asset).or_default();
            let too_much = || WalletError::Argument("the sum of all payments has more than 128 bits".into());
            *sum = sum.checked_add(page.outputs.total()).ok_or_else(too_much)?;
        }
        let mut next = Some(SequenceNumber(0));
        for (asset, amount) in needed {
            let all = Intent::Pay { recipient, asset, amount, memo: Memo::ZERO };
            let answers = self.ask_account_asset(recipient, asset).await?;
            let sequence = self.catch_up(journal, &answers).await?;
            // An order that is not known may have paid a page.
            self.learn_all(journal, sequence, &answers).await?;
            next = self.check_covered(journal, &all, sequence, &answers).await?;
            if next.is_none() {
                break;
            }
        }
        Ok(next)
    }

    #[expect(clippy::too_many_arguments, reason = "one step of one function")]
    async fn pay_pages(
        &self,
        key: &AccountKey,
        journal: &Arc<OrderJournal>,
        name: Digest,
        pages: &[PayoutPage],
        mut states: PageStates,
        mut sequence: SequenceNumber,
        told: &impl Fn(&PageStates),
    ) -> Result<PageStates, WalletError> {
        let account = key.account();
        let mut settling = JoinSet::new();
        for (number, page) in pages.iter().enumerate() {
            if states.get(number).is_none_or(Option::is_some) {
                continue;
            }
            let order = key.order(self.network().domain(), page.transfer(account, sequence, name_of(name, number)));
            let order = order.verify(self.network().domain())?;
            journal.create(&order)?;
            // If another copy used the number, it is of that one's order, and this page gets another number.
            let certificate = self.certify_one(&order, order.clone()).await?;
            journal.certify(&certificate)?;
            let is_ours = certificate.digest() == order.digest();
            if is_ours && let Some(state) = states.get_mut(number) {
                *state = Some(PageState { sequence, digest: order.digest(), state: OrderState::Certified });
                told(&states);
            }
            let (wallet, journal) = (self.clone(), journal.clone());
            settling.spawn(async move {
                let settled = wallet.settle(&journal, certificate, None, false).await;
                settled.map(|receipt| (is_ours.then_some(number), receipt))
            });
            if !is_ours {
                break;
            }
            while settling.len() >= PAGES_UNDER_WAY_MAX {
                settle_next(&mut settling, &mut states, told).await?;
            }
            let next = sequence.next().ok_or_else(|| WalletError::Argument("the account has no number left".into()))?;
            sequence = next;
        }
        while !settling.is_empty() {
            settle_next(&mut settling, &mut states, told).await?;
        }
        Ok(states)
    }
}

type Settling = JoinSet<Result<(Option<usize>, crate::wallet::Receipt), WalletError>>;

async fn settle_next(
    settling: &mut Settling,
    states: &mut PageStates,
    told: &impl Fn(&PageStates),
) -> Result<(), WalletError> {
    let Some(settled) = settling.join_next().await else { return Ok(()) };
    let (number, _) = settled.map_err(|error| WalletError::Argument(format!("a page was not settled: {error}")))??;
    if let Some(Some(state)) = number.and_then(|number| states.get_mut(number)) {
        state.state = OrderState::Settled;
        told(states);
    }
    Ok(())
}
