//! The audit's events and sums where the Primary is a ledger: deposits and paid redemptions from the certified groups,
//! and the omnibus from a certified state.

use std::collections::{BTreeMap, BTreeSet};

use fastpay_core::{Asset, AuthorityName, Deposit, TransactionIndex};
use fastpay_ledger_client::{ClientError, CommitteeClient, GroupReader, oldest_state};
use fastpay_ledger_statement::{CommitteeEvent, Cursor, EventKind, Message, Receiver};

use super::books::Books;
use super::totals::{Ledger, Moved, Reading, Redemptions, Spending, SpendingState, Spendings};
use crate::error::WalletError;

/// The events of a committee on a ledger, as far as they were read.
pub(super) struct LedgerEvents {
    ledger: CommitteeClient,
    reader: GroupReader,
    due: Cursor,
    last: TransactionIndex,
    spendings: Spendings,
}

impl LedgerEvents {
    pub(super) fn new(ledger: CommitteeClient) -> Result<Self, WalletError> {
        let reader = GroupReader::new(ledger.client(), Receiver::Committee(ledger.number()))?;
        let (due, last, spendings) = (Cursor::default(), TransactionIndex(0), Spendings::new());
        Ok(Self { ledger, reader, due, last, spendings })
    }

    pub(super) fn spendings(&self) -> &Spendings {
        &self.spendings
    }

    /// Reads the new events, at least up to the newest one of now. More may come meanwhile, without an end.
    pub(super) async fn read(&mut self, books: &mut Books) -> Result<(), WalletError> {
        let newest = self.ledger.newest_event(oldest_state()).await?;
        loop {
            let groups = self.reader.next(self.due).await?;
            let Some(last) = groups.last() else { return Ok(()) };
            self.due = last.cursor();
            for message in groups.iter().flat_map(|group| &group.group().messages) {
                let Message::Event(event) = message else { return Err(ClientError::Malformed.into()) };
                if self.last.next() != Some(event.index) {
                    return Err(ClientError::Malformed.into());
                }
                self.last = event.index;
                self.take_note(event, books);
            }
            if self.last >= newest {
                return Ok(());
            }
        }
    }

    fn take_note(&mut self, event: &CommitteeEvent, books: &mut Books) {
        match &event.kind {
            EventKind::Funded(funding) => {
                let (index, recipient) = (event.index, funding.account);
                books.deposit(&Deposit { index, recipient, asset: funding.asset, amount: funding.amount });
            }
            EventKind::Redeemed { redemption, .. } => {
                let digest = self.ledger.domain().transfer_digest(&redemption.clone().into());
                let on = Moved { asset: redemption.asset, amount: redemption.amount, digest };
                let spending = Spending { on, state: SpendingState::Paid };
                self.spendings.insert((redemption.sender, redemption.sequence), spending);
            }
            EventKind::Voided { account, sequence } => books.void(*account, *sequence),
            EventKind::Installed { committee, compromised_since, .. } => {
                if *compromised_since < committee.epoch() {
                    books.recovered();
                }
            }
            EventKind::UnlockRequested { .. } | EventKind::Upheld { .. } => {}
        }
    }

    /// The omnibus, and the known redemptions that are paid. Also returns whether no event came meanwhile.
    pub(super) async fn totals(
        &self,
        assets: &BTreeSet<Asset>,
        readings: &BTreeMap<AuthorityName, Reading>,
    ) -> Result<(Ledger, Redemptions, bool), WalletError> {
        let (mut totals, backing) = (BTreeMap::new(), BTreeMap::new());
        for asset in assets {
            totals.insert(*asset, self.ledger.omnibus(*asset, oldest_state()).await?);
        }
        let mut redeemed = Redemptions::new();
        for (name, moved) in readings.values().flat_map(|reading| &reading.redemptions) {
            if self.spendings.get(name).is_some_and(|spending| spending.pays(moved)) {
                redeemed.insert(*name, *moved);
            }
        }
        let is_still = self.ledger.newest_event(oldest_state()).await? == self.last;
        Ok((Ledger { last_transaction_index: self.last, totals, backing }, redeemed, is_still))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use fastpay_core::{AccountId, AccountKey};
    use fastpay_ledger_client::scripted::{COMMITTEE, ScriptedLedger};
    use fastpay_ledger_statement::Time;
    use fastpay_testkit::TestCommittee;

    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn a_reading_ends_also_while_somebody_funds_at_every_height() {
        let (bank, committee) = (AccountKey::ed25519([1; 32]), TestCommittee::new(4).committee);
        let begin = Time(crate::folder::now_ms() - 60_000);
        let ledger = ScriptedLedger::start(&committee, &bank, begin).await;
        let folder = tempfile::tempdir().unwrap();
        let client = CommitteeClient::open(&ledger.write(folder.path()), COMMITTEE).unwrap();
        let (mut events, mut books) = (LedgerEvents::new(client).unwrap(), Books::new(Vec::new()));
        let fund = || ledger.history().fund(&bank, &[(AccountId::from_ed25519(&[7; 32]), 1)]);
        let funding = async {
            loop {
                fund();
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        };
        (0..100).for_each(|_| fund());
        tokio::select! {
            read = tokio::time::timeout(Duration::from_secs(30), events.read(&mut books)) => read.unwrap().unwrap(),
            () = funding => unreachable!("it has no end"),
        }
        assert!(events.last >= TransactionIndex(100), "{:?}", events.last);
    }
}
