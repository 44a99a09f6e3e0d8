//! Receives payments: reads every authority's list from the wallet's cursor, fetches each certificate, verifies it, has
//! it settled, and stores it. One honest answer is enough, and no number of liars can invent a payment.
//!
//! ```text
//!  lists ─► one task for each: what is unknown and no other task's ─► certificate ─► settled ─► inbox
//!        └► at the end, for each: how far is all of it in the inbox?  ─► cursor
//! ```
//! A payment that a quorum lists is settled. One that fewer list is only certified: its certificate is sent to all, and
//! it counts once a quorum has confirmed it, since the contract may still void its number (docs/PROTOCOL.md, K13).
//! The whole entries are compared, not only the names: a recovery may end a certificate, and another order take its
//! number.
//!
//! What an authority has pruned before the wallet read it is read from the authority's archive, where a checkpoint proves
//! each payment. Until that is done, the authority's cursor stays where it is.
//!
//! A task ends at the first entry that cannot be proven, so a list of inventions delays only itself. All tasks have the
//! same time; after that, the next call continues.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fastpay_client::{ArchivedReceipts, AuthorityClient, ClientError, Network, QuorumError, Settled, ShardClient};
use fastpay_core::checkpoint::{ArchiveCursor, ProvenEntry};
use fastpay_core::{AccountId, AuthorityName, Digest, Payment, Receipt, VerifiedCertificate};
use fastpay_rpc::{PAGE_ENTRIES_MAX, Page, PaymentName, Received};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use crate::error::WalletError;
use crate::folder::{Cursor, FolderError, Inbox, InboxJournal, ReceivedPayment};
use crate::wallet::{LOCK_PATIENCE, READ_PATIENCE, Wallet};
use fastpay_client::GRACE;

/// The maximum number of pages of one authority in one call. The next call continues.
const PAGES_MAX: usize = 20;
/// After the lists of a quorum are proven, the others get this much longer: an honest authority may be far away, and
/// know a payment that the others do not.
const PROOF_GRACE: Duration = Duration::from_secs(1);

/// The result of [`Wallet::collect`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// The payments that are new to this wallet, oldest first.
    pub new: Vec<ReceivedPayment>,
    /// Whether the lists of a quorum were read to their ends and every entry was proven: then no payment that was
    /// settled before the call is missing. A liar's list can neither cause nor prevent this.
    pub is_whole: bool,
}

/// An authority's entries beyond the wallet's cursor.
#[derive(Clone, Debug)]
struct List {
    /// The cursor at which it begins.
    start: Cursor,
    entries: Arc<[Received]>,
    /// Whether the list was read to its end.
    is_whole: bool,
    /// The number of entries, from the first, that are in the inbox.
    proven: usize,
    /// What was read of the archive, if entries beyond the cursor are pruned.
    archived: Option<ArchivedReceipts>,
    /// The cursor before, if not all that is pruned beyond it was read.
    held: Option<Cursor>,
}

impl List {
    /// Updates how far the list is in the inbox. Returns whether the rest is there, too, or is `explained`.
    fn is_proven(&mut self, inbox: &Inbox, explained: impl Fn(&Received) -> bool) -> bool {
        let rest = self.entries.get(self.proven..).unwrap_or_default().iter().map(Received::name);
        let known = rest.take_while(|name| inbox.has(name)).count();
        self.proven = self.proven.saturating_add(known);
        let mut rest = self.entries.get(self.proven..).unwrap_or_default().iter();
        self.is_whole && rest.all(|entry| inbox.has(&entry.name()) || explained(entry))
    }

    fn cursor(&self) -> Cursor {
        if let Some(held) = self.held {
            return held;
        }
        let Some(last) = self.proven.checked_sub(1).and_then(|last| self.entries.get(last)) else { return self.start };
        Cursor { next: last.number.saturating_add(1), last: Some(last.name()) }
    }
}

/// An entry of a list, wherever it stands in it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Listed {
    payment: Payment,
    output: Option<u16>,
    payout: Option<Digest>,
}

impl From<&Received> for Listed {
    fn from(Received { number: _, payment, output, payout }: &Received) -> Self {
        Self { payment: payment.clone(), output: *output, payout: *payout }
    }
}

/// The payments that are new to the wallet.
type Taken = HashMap<PaymentName, ReceivedPayment>;

/// One pass through the lists of all authorities.
struct Ingest {
    wallet: Wallet,
    journal: Arc<InboxJournal>,
    /// What a quorum lists. Two quorums share an honest member, so there is one entry of each name.
    settled: HashMap<PaymentName, Received>,
    /// What fewer authorities list, with the certificates.
    certified: Mutex<HashMap<Listed, VerifiedCertificate>>,
    /// What the tasks work on.
    begun: Mutex<HashSet<Listed>>,
    taken: Mutex<Taken>,
}

impl Ingest {
    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn certified(&self) -> MutexGuard<'_, HashMap<Listed, VerifiedCertificate>> {
        self.certified.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Claims an entry for this task. Returns false if another task has claimed it.
    fn sets_about(&self, entry: &Received) -> bool {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner).insert(Listed::from(entry))
    }

    /// Whether a quorum lists everything that the certificate would add to the inbox.
    fn is_settled(&self, certificate: &VerifiedCertificate) -> bool {
        let (inbox, transfer) = (self.journal.inbox(), certificate.transfer());
        let mut paid = transfer.receipts().filter(|receipt| receipt.payment.recipient == inbox.account());
        paid.all(|Receipt { payment, output }| {
            let name = PaymentName { sender: payment.sender, sequence: payment.sequence, output };
            let is_listed = |listed: &Received| listed.is_made_by(transfer, certificate.digest());
            inbox.has(&name) || self.settled.get(&name).is_some_and(is_listed)
        })
    }

    /// Processes the payments that `lister` lists and no other task has claimed, until one has no proof: it may be a
    /// lie, or its certificate is out of reach now.
    async fn take_in(self: Arc<Self>, lister: AuthorityName, entries: Arc<[Received]>) -> Result<(), FolderError> {
        let inbox = self.journal.inbox();
        for entry in entries.iter() {
            let name = entry.name();
            if inbox.has(&name) || !self.sets_about(entry) {
                continue;
            }
            let PaymentName { sender, sequence, .. } = name;
            let found = self.wallet.network().find_received(inbox.account(), lister, entry).await;
            let Some(certificate) = found else {
                // The list goes on with payments that the checkpoint includes, and their certificates are pruned.
                let until = Instant::now() + READ_PATIENCE;
                if let Some(proven) = self.wallet.network().archived_number(sender, sequence, until).await
                    && self.add_archived(&proven, &name)?
                {
                    continue;
                }
                tracing::warn!(
                    authority = %lister, %sender, %sequence,
                    "a payment is listed without a valid certificate; it is not counted"
                );
                return Ok(());
            };
            if self.is_settled(&certificate) {
                self.add(&certificate)?;
            } else {
                self.certified().insert(Listed::from(entry), certificate);
            }
        }
        Ok(())
    }

    /// Sends the certificates of payments that are not settled to all authorities, each once, and adds the payments
    /// that are settled then. Returns the digests of those that are proven not to be settled.
    async fn settle(&self) -> Result<HashSet<Digest>, FolderError> {
        let certified: HashMap<_, _> =
            self.certified().values().map(|certificate| (certificate.digest(), certificate.clone())).collect();
        let mut unsettled = HashSet::new();
        let note = |certificate: VerifiedCertificate, settled: Result<Settled, QuorumError>| match settled {
            Ok(_) => self.add(&certificate),
            Err(error) => {
                tracing::warn!(digest = %certificate.digest(), %error, "a listed payment is not settled yet");
                if error.is_unsettled(&self.wallet.network().committee()) {
                    unsettled.insert(certificate.digest());
                }
                Ok(())
            }
        };
        self.wallet.settle_many(certified.into_values(), note).await?;
        Ok(unsettled)
    }

    /// Adds the payments of a proven entry to the inbox. Returns whether this one is among them.
    fn add_archived(&self, entry: &ProvenEntry, name: &PaymentName) -> Result<bool, FolderError> {
        for received in self.journal.add_archived(entry, self.wallet.network().domain())? {
            self.taken().insert(received.name(), received);
        }
        Ok(self.journal.inbox().has(name))
    }

    /// Adds a certificate's payments to the account to the inbox.
    fn add(&self, certificate: &VerifiedCertificate) -> Result<(), FolderError> {
        for received in self.journal.add(certificate)? {
            self.taken().insert(received.name(), received);
        }
        Ok(())
    }
}

impl Wallet {
    /// Stores the settled payments to `account` that are new to this wallet, and returns them, oldest first. A payment
    /// that few authorities list is sent to all of them, and is stored once a quorum has confirmed it.
    ///
    /// It ends within half a minute, whatever the authorities do, not counting waits for the Primary and for another
    /// command that uses the inbox. The next call processes the remaining payments.
    ///
    /// # Errors
    /// If fewer authorities than a quorum answer, or the wallet's files cannot be used.
    pub async fn collect(&self, account: AccountId) -> Result<Collected, WalletError> {
        let journal = Arc::new(self.folder().inbox(account).lock(LOCK_PATIENCE).await?);
        let first = self.among_members(|| self.collect_once(&journal, GRACE)).await?;
        // An unproven payment may be of a committee that is not known here yet.
        let is_other_committee = self.follow_hint().await;
        if first.is_whole && !is_other_committee {
            return Ok(first);
        }
        // The fastest answers may be lies, so wait for the slowest honest one.
        match self.collect_once(&journal, READ_PATIENCE).await {
            Ok(Collected { new, is_whole }) => Ok(Collected { new: [first.new, new].concat(), is_whole }),
            Err(WalletError::TooFewAnswers { .. }) => Ok(Collected { is_whole: false, ..first }),
            Err(error) => Err(error),
        }
    }

    /// Reads all lists once, with this `grace` after a quorum has answered.
    async fn collect_once(&self, journal: &Arc<InboxJournal>, grace: Duration) -> Result<Collected, WalletError> {
        let account = journal.inbox().account();
        let (before, archived_before) = (journal.cursors()?, journal.archive_cursors()?);
        let (starts, archived_starts, network) = (before.clone(), archived_before.clone(), self.network().clone());
        let answers = self.network().ask_patiently(Instant::now() + READ_PATIENCE, grace, move |authority| {
            let start = starts.get(&authority.name()).copied().unwrap_or_default();
            let archived = archived_starts.get(&authority.name()).copied().unwrap_or_default();
            let network = network.clone();
            async move { read_from(&network, &authority, account, start, archived).await }
        });
        let answers = self.enough(answers.await)?.into_iter();
        let mut lists: Vec<(AuthorityName, List)> =
            answers.filter_map(|(name, answer)| Some((name, answer.ok()?))).collect();
        let mut new = Vec::new();
        let mut archived_cursors = archived_before.clone();
        for (name, ArchivedReceipts { entries, next, .. }) in
            lists.iter().filter_map(|(name, list)| Some((name, list.archived.as_ref()?)))
        {
            for entry in entries {
                new.extend(journal.add_archived(entry, self.network().domain())?);
            }
            archived_cursors.insert(*name, *next);
        }
        if archived_cursors != archived_before {
            journal.move_archive_cursors(&archived_cursors)?;
        }
        let (mut taken, is_whole) = self.take_in(journal, &mut lists).await?;
        let mut cursors = before.clone();
        cursors.extend(lists.iter().map(|(name, list)| (*name, list.cursor())));
        if cursors != before {
            journal.move_cursors(&cursors)?;
        }
        let listed = lists.iter().flat_map(|(_, list)| list.entries.iter().map(Received::name));
        new.extend(listed.filter_map(|name| taken.remove(&name)));
        Ok(Collected { new, is_whole })
    }

    /// Stores the listed payments, as far as they can be proven and settled in time. Returns whether those of a quorum
    /// are proven to their ends.
    async fn take_in(
        &self,
        journal: &Arc<InboxJournal>,
        lists: &mut [(AuthorityName, List)],
    ) -> Result<(Taken, bool), FolderError> {
        let (certified, begun, taken) = (Mutex::default(), Mutex::default(), Mutex::default());
        let (wallet, journal, settled) = (self.clone(), journal.clone(), self.listed_by_quorum(lists));
        let ingest = Arc::new(Ingest { wallet, journal, settled, certified, begun, taken });
        self.take_in_settled(&ingest).await?;
        let mut tasks = JoinSet::new();
        for (name, list) in lists.iter() {
            tasks.spawn(ingest.clone().take_in(*name, list.entries.clone()));
        }
        let mut until = Instant::now() + READ_PATIENCE;
        let mut is_whole = false;
        while Instant::now() < until {
            match timeout_at(until.min(Instant::now() + GRACE), tasks.join_next()).await {
                Ok(None) => break,
                Ok(Some(Ok(Err(error)))) => return Err(error),
                _ => {}
            }
            let is_certified = |entry: &Received| ingest.certified().contains_key(&Listed::from(entry));
            if !is_whole && self.is_quorum_proven(lists, ingest.journal.inbox(), is_certified) {
                is_whole = true;
                until = until.min(Instant::now() + PROOF_GRACE);
            }
        }
        // A write in progress completes first.
        tasks.shutdown().await;
        let unsettled = ingest.settle().await?;
        let certified = std::mem::take(&mut *ingest.certified());
        let is_unsettled = |entry: &Received| {
            certified.get(&Listed::from(entry)).is_some_and(|known| unsettled.contains(&known.digest()))
        };
        let is_whole = self.is_quorum_proven(lists, ingest.journal.inbox(), is_unsettled);
        let taken = std::mem::take(&mut *ingest.taken());
        Ok((taken, is_whole))
    }

    /// What a quorum of members lists, all of them the same.
    fn listed_by_quorum(&self, lists: &[(AuthorityName, List)]) -> HashMap<PaymentName, Received> {
        let committee = self.network().committee();
        let mut settled = HashMap::new();
        let mut listers: HashMap<Listed, HashSet<AuthorityName>> = HashMap::new();
        for (lister, list) in lists.iter().filter(|(lister, _)| committee.member(lister).is_some()) {
            for entry in list.entries.iter() {
                let listers = listers.entry(Listed::from(entry)).or_default();
                listers.insert(*lister);
                if listers.len() >= committee.quorum() {
                    settled.insert(entry.name(), entry.clone());
                }
            }
        }
        settled
    }

    /// Adds settled payments to the inbox, reading their certificates in pages from few authorities.
    async fn take_in_settled(&self, ingest: &Ingest) -> Result<(), FolderError> {
        let names: Vec<_> = ingest.settled.keys().filter(|name| !ingest.journal.inbox().has(name)).collect();
        let names = names.iter().map(|name| (name.sender, name.sequence));
        let found = self.network().find_certificates(names, None, Instant::now() + READ_PATIENCE / 2).await;
        // Another certificate than the listed one may be there: the tasks then look for that.
        for certificate in found.values().filter(|certificate| ingest.is_settled(certificate)) {
            ingest.add(certificate)?;
        }
        Ok(())
    }

    /// Whether the lists of a quorum of the current committee are proven to their ends. Former members no longer settle
    /// anything.
    fn is_quorum_proven(
        &self,
        lists: &mut [(AuthorityName, List)],
        inbox: &Inbox,
        explained: impl Fn(&Received) -> bool,
    ) -> bool {
        let committee = self.network().committee();
        let proven = lists.iter_mut().filter_map(|(name, list)| list.is_proven(inbox, &explained).then_some(name));
        proven.filter(|name| committee.member(name).is_some()).count() >= committee.quorum()
    }
}

/// Reads the list from the cursor on. It reads the entry before the cursor again: if that differs or is missing, the
/// authority was restored from an older copy, and its list is read from the beginning. If it is pruned, the list is read
/// from the first entry on that the authority keeps, and what comes before from its archive, where that was read up to
/// `archived`.
async fn read_from(
    network: &Network,
    authority: &AuthorityClient,
    account: AccountId,
    cursor: Cursor,
    archived: ArchiveCursor,
) -> Result<List, ClientError> {
    let shard = authority.shard_of(&account);
    // Stop early enough to return the entries read so far.
    let enough = Instant::now() + READ_PATIENCE / 2;
    let (mut start, mut receipts, mut held) = (cursor, None, None);
    let before = match read_page(shard, account, cursor.next.saturating_sub(1)).await {
        Err(ClientError::Pruned(pruned)) => {
            if pruned.first > cursor.next {
                let read = network.archived_received(authority, account, archived, PAGES_MAX, enough).await;
                // At its end, the place to go on is the newest checkpoint. An archive that lags behind what is pruned
                // has an end, too, and not all of it.
                let is_all = read.is_whole && read.next.checkpoint >= pruned.checkpoint;
                held = (!is_all).then_some(cursor);
                if held.is_some() {
                    tracing::warn!(authority = %authority.name(), %pruned, "not all pruned payments could be read from this authority's archive yet");
                }
                receipts = Some(read);
            }
            start = Cursor { next: cursor.next.max(pruned.first), last: None };
            None
        }
        page => Some(page?),
    };
    let is_kept = before.is_some();
    let mut page = match before {
        Some(page) => page,
        None => read_page(shard, account, start.next).await?,
    };
    if is_kept && cursor.next > 0 {
        let last = page.entries.first().map(Received::name);
        if last.is_some_and(|last| cursor.last.is_none_or(|expected| expected == last)) {
            start.last = last;
            page.entries.remove(0);
        } else {
            start = Cursor::default();
            page = read_page(shard, account, 0).await?;
        }
    }
    let Page { mut entries, mut total } = page;
    let mut pages = 0..PAGES_MAX;
    loop {
        let from = start.next.saturating_add(u64::try_from(entries.len()).unwrap_or(u64::MAX));
        let is_whole = from >= total;
        if is_whole || pages.next().is_none() || Instant::now() >= enough {
            let is_whole = is_whole && held.is_none();
            return Ok(List { start, entries: entries.into(), is_whole, proven: 0, archived: receipts, held });
        }
        page = read_page(shard, account, from).await?;
        total = if page.entries.is_empty() { from } else { page.total };
        entries.extend(page.entries);
    }
}

async fn read_page(shard: &ShardClient, account: AccountId, from: u64) -> Result<Page<Received>, ClientError> {
    let page = shard.received(account, from).await?;
    if page.entries.len() > PAGE_ENTRIES_MAX as usize {
        return Err(ClientError::Malformed("a page of more entries than it was asked for".into()));
    }
    if page.entries.iter().zip(from..).any(|(entry, number)| entry.number != number) {
        return Err(ClientError::Malformed("a page whose numbers do not follow".into()));
    }
    Ok(page)
}
