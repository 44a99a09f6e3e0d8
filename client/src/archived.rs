//! Reads of what authorities have pruned, from their archives. Nothing is believed: an answer is proven by a checkpoint
//! that a quorum of a committee that counts signed, and one that is not is left, and another authority asked.

use fastpay_core::checkpoint::{ArchiveCursor, ArchivedError, ArchivedList, ProvenEntry, VerifiedArchivedPage};
use fastpay_core::{AccountId, Committee, SequenceNumber};
use fastpay_rpc::{ArchivedRequest, PAGE_ENTRIES_MAX};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

use crate::{Asked, AuthorityClient, ClientError, Network};

/// If an authority has not shown everything within this time, the next one is asked, too.
const NEXT_AFTER: Duration = Duration::from_millis(500);

/// Why an authority's archive proves nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArchiveFault {
    /// It gave no answer, or has no archive.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// Its answer proves nothing. After a rotation, an archive lags until the new committee's first checkpoint, unless it is
    /// known that the keys of the committee before were not out.
    #[error("what the authority shows of its archive is not proven: {0}")]
    Unproven(#[from] ArchivedError),
}

/// Transfers that paid an account, as one authority's archive shows them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArchivedReceipts {
    /// The transfers. Each is proven; that none is missing is not.
    pub entries: Vec<ProvenEntry>,
    /// Where to go on.
    pub next: ArchiveCursor,
    /// Whether the list was read to its end.
    pub is_whole: bool,
}

impl Network {
    /// A verified page of one authority's archive.
    ///
    /// # Errors
    /// See [`ArchiveFault`].
    pub async fn archived_page(
        &self,
        authority: &AuthorityClient,
        account: AccountId,
        list: ArchivedList,
    ) -> Result<VerifiedArchivedPage, ArchiveFault> {
        let request = ArchivedRequest { account, list, limit: PAGE_ENTRIES_MAX, with_paid: true };
        let shard = authority.shards().first().ok_or(ClientError::NotFound)?;
        let page = shard.archived(request).await?;
        let certifying = self.certifying();
        let counting: Vec<&Committee> = certifying.iter().map(|committee| &**committee).collect();
        Ok(page.verify(self.domain(), &counting, account, list)?)
    }

    /// The numbers `from..until` that an account took, as far as an archive proves them until the deadline: without a
    /// gap, and fewer at the end if no authority shows all. Authorities are asked one after another.
    pub async fn archived_sent(
        &self,
        account: AccountId,
        from: SequenceNumber,
        until: SequenceNumber,
        deadline: Instant,
    ) -> Vec<ProvenEntry> {
        let authorities = self.authorities();
        let mut waiting = authorities.iter();
        let (mut asked, mut best) = (Asked::default(), Vec::new());
        loop {
            let next = waiting.next();
            if let Some(authority) = next {
                let network = self.clone();
                asked.and_each([authority], |authority| {
                    let network = network.clone();
                    async move { network.sent_at(&authority, account, from, until).await }
                });
            }
            let patience = next.map_or(deadline, |_| deadline.min(Instant::now() + NEXT_AFTER));
            match timeout_at(patience, asked.answer()).await {
                Ok(Some((_, entries))) if entries.len() > best.len() => best = entries,
                Ok(Some(_)) => {}
                Ok(None) if next.is_none() => return best,
                Err(_) if Instant::now() >= deadline => return best,
                Ok(None) | Err(_) => {}
            }
            if best.last().is_some_and(|last| last.sequence.next() >= Some(until)) {
                return best;
            }
        }
    }

    /// What an account did with a number, if an archive proves it.
    pub async fn archived_number(
        &self,
        account: AccountId,
        sequence: SequenceNumber,
        deadline: Instant,
    ) -> Option<ProvenEntry> {
        self.archived_sent(account, sequence, sequence.next()?, deadline).await.pop()
    }

    async fn sent_at(
        &self,
        authority: &AuthorityClient,
        account: AccountId,
        from: SequenceNumber,
        until: SequenceNumber,
    ) -> Vec<ProvenEntry> {
        let (mut entries, mut next) = (Vec::new(), from);
        while next < until {
            let page = match self.archived_page(authority, account, ArchivedList::Sent(next)).await {
                Ok(page) => page.into_entries(),
                Err(fault) => {
                    left(authority, &fault);
                    break;
                }
            };
            // An authority that shows nothing more has no more, or hides it.
            let Some(last) = page.last().map(|last| last.sequence) else { break };
            entries.extend(page);
            let Some(after) = last.next() else { break };
            next = after;
        }
        entries.retain(|entry: &ProvenEntry| entry.sequence < until);
        entries
    }

    /// The transfers that paid an account, from a place on, as one authority's archive shows them: up to `pages_max` pages
    /// of them, and none after the deadline.
    pub async fn archived_received(
        &self,
        authority: &AuthorityClient,
        account: AccountId,
        from: ArchiveCursor,
        pages_max: usize,
        deadline: Instant,
    ) -> ArchivedReceipts {
        let mut read = ArchivedReceipts { next: from, ..ArchivedReceipts::default() };
        for _ in 0..pages_max {
            let page = self.archived_page(authority, account, ArchivedList::Received(read.next));
            let page = match timeout_at(deadline, page).await {
                Ok(Ok(page)) => page,
                Ok(Err(fault)) => {
                    left(authority, &fault);
                    break;
                }
                Err(_) => break,
            };
            // The newest checkpoint can be replaced until it has a successor, so it is read again from its beginning.
            let end = ArchiveCursor { checkpoint: page.newest(), entry: 0 };
            let next = page.next();
            read.entries.extend(page.into_entries());
            match next {
                Some(next) => read.next = next,
                None => (read.next, read.is_whole) = (end, true),
            }
            if read.is_whole {
                break;
            }
        }
        read
    }
}

fn left(authority: &AuthorityClient, fault: &ArchiveFault) {
    match fault {
        ArchiveFault::Client(error) => {
            tracing::debug!(authority = %authority.name(), %error, "an archive cannot be read");
        }
        ArchiveFault::Unproven(error) => {
            tracing::warn!(authority = %authority.name(), %error, "what an authority shows of its archive is not proven");
        }
    }
}
