//! Incoming payments: read every authority's list from where the wallet left it, fetch each certificate,
//! verify it, keep it. One honest answer is enough, and no number of liars can make a payment up.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fastpay_core::{AccountId, AuthorityName, SequenceNumber, VerifiedCertificate};
use fastpay_rpc::{AuthorityClient, ClientError, Received};
use tokio::time::Instant;

use crate::error::WalletError;
use crate::folder::{InboxJournal, ReceivedPayment};
use crate::network::GRACE;
use crate::wallet::{LOCK_PATIENCE, READ_PATIENCE, Wallet};

/// At most so many pages of one authority in one go; the next call reads on.
const PAGES_MAX: usize = 20;

/// What [`Wallet::collect`] took in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// The payments that are new to this wallet, oldest first.
    pub new: Vec<ReceivedPayment>,
    /// True where the lists of a quorum were read to their ends and every entry was proven: then no payment that was
    /// settled before the call is missing. A liar's list can neither bring that about nor prevent it.
    pub is_whole: bool,
}

/// What an authority lists beyond the wallet's cursor.
#[derive(Debug)]
struct List {
    entries: Vec<Received>,
    /// False where more may follow.
    is_whole: bool,
}

impl Wallet {
    /// Takes in the payments to `account` that are new to this wallet, oldest first. A payment that few
    /// authorities list is brought to all of them, so that it can be spent.
    ///
    /// # Errors
    /// Where fewer authorities than a quorum answer, or the wallet's files cannot be used.
    pub async fn collect(&self, account: AccountId) -> Result<Collected, WalletError> {
        let journal = self.folder().inbox(account).lock(LOCK_PATIENCE).await?;
        let first = self.collect_once(&journal, GRACE).await?;
        if first.is_whole {
            return Ok(first);
        }
        // The fastest answers may be lies. Then the slowest honest one is waited for.
        match self.collect_once(&journal, READ_PATIENCE).await {
            Ok(Collected { new, is_whole }) => Ok(Collected { new: [first.new, new].concat(), is_whole }),
            Err(WalletError::TooFewAnswers { .. }) => Ok(first),
            Err(error) => Err(error),
        }
    }

    /// One reading of all lists, with so much `grace` after a quorum has answered.
    async fn collect_once(&self, journal: &InboxJournal, grace: Duration) -> Result<Collected, WalletError> {
        let account = journal.inbox().account();
        let mut cursors = journal.cursors()?;
        let starts = cursors.clone();
        let answers = self.network().ask_patiently(Instant::now() + READ_PATIENCE, grace, move |authority| {
            let start = starts.get(&authority.name()).copied().unwrap_or(0);
            async move { read_from(&authority, account, start).await }
        });
        let answers = answers.await;
        let answered = answers.iter().filter(|(_, answer)| answer.is_ok()).count();
        let quorum = self.network().committee().quorum();
        if answered < quorum {
            return Err(WalletError::TooFewAnswers { answered, quorum });
        }
        let mut listed: BTreeMap<(AccountId, SequenceNumber), usize> = BTreeMap::new();
        for received in answers.iter().filter_map(|(_, answer)| answer.as_ref().ok()).flat_map(|list| &list.entries) {
            let count = listed.entry((received.payment.sender, received.payment.sequence)).or_default();
            *count = count.saturating_add(1);
        }
        let (mut new, mut whole) = (Vec::new(), BTreeSet::new());
        for (name, answer) in answers {
            let Ok(List { entries, mut is_whole }) = answer else { continue };
            let mut cursor = cursors.get(&name).copied().unwrap_or(0);
            for entry in entries {
                let count = listed.get(&(entry.payment.sender, entry.payment.sequence)).copied().unwrap_or(0);
                let known = journal.inbox().has(entry.payment.sender, entry.payment.sequence);
                if !known {
                    // Without a proof it stays unread: it may be a lie, or its certificate out of reach now.
                    let Some(received) = self.take_in(journal, account, name, &entry, count < quorum).await? else {
                        is_whole = false;
                        break;
                    };
                    new.extend(received);
                }
                cursor = cursor.max(entry.number.saturating_add(1));
            }
            cursors.insert(name, cursor);
            if is_whole {
                whole.insert(name);
            }
        }
        journal.move_cursors(&cursors)?;
        // Of the committee as it is known now: who has left it settles nothing any more.
        let committee = self.network().committee();
        let is_whole = whole.iter().filter(|name| committee.member(name).is_some()).count() >= committee.quorum();
        Ok(Collected { new, is_whole })
    }

    async fn take_in(
        &self,
        journal: &InboxJournal,
        account: AccountId,
        lister: AuthorityName,
        entry: &Received,
        spread: bool,
    ) -> Result<Option<Option<ReceivedPayment>>, WalletError> {
        let (sender, sequence) = (entry.payment.sender, entry.payment.sequence);
        let mut found = self.network().find_received(account, lister, sender, sequence).await;
        if found.is_none() && self.follow_hint().await {
            found = self.network().find_received(account, lister, sender, sequence).await;
        }
        let Some(certificate) = found else {
            tracing::warn!(%sender, %sequence, "a payment is listed without a valid certificate; it is not counted");
            return Ok(None);
        };
        let received = journal.add(&certificate)?;
        if spread {
            self.spread(&certificate).await;
        }
        Ok(Some(received))
    }

    async fn spread(&self, certificate: &VerifiedCertificate) {
        if let Err(error) = self.driver().settle(certificate).await {
            tracing::warn!(%error, "a received payment is final, but not confirmed everywhere yet");
        }
    }
}

async fn read_from(authority: &AuthorityClient, account: AccountId, start: u64) -> Result<List, ClientError> {
    let shard = authority.shard_of(&account);
    let mut entries: Vec<Received> = Vec::new();
    for _ in 0..PAGES_MAX {
        let from = start.saturating_add(u64::try_from(entries.len()).unwrap_or(u64::MAX));
        let page = shard.received(account, from).await?;
        if page.entries.iter().zip(from..).any(|(entry, number)| entry.number != number) {
            return Err(ClientError::Malformed("a page whose numbers do not follow".into()));
        }
        if page.entries.is_empty() {
            return Ok(List { entries, is_whole: true });
        }
        entries.extend(page.entries);
    }
    Ok(List { entries, is_whole: false })
}
