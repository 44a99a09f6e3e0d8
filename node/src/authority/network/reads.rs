//! Reads of one shard's state and history.

use std::sync::Arc;
use std::sync::mpsc::TrySendError;

use fastpay_core::{
    Account, AccountId, Asset, Certificate, Chain, History, JournalPosition, Pruned, Record, SequenceNumber,
    ShardLedger,
};
use fastpay_rpc::{CONFIRMED_PAGE_MAX, ConfirmedPage, MESSAGE_BYTES_MAX, PAGE_ENTRIES_MAX};
use tokio::sync::{Semaphore, oneshot};

use crate::authority::shard::{Command, HistoryError, HistoryReader, ShardHandle};
use crate::authority::storage::JournalError;

/// The maximum number of assets in one answer, ETH first. Anyone can deposit tokens of their own making, and a list
/// beyond the longest message would keep the rest of the answer from the client. An asset that is cut off can be
/// requested by name.
const ASSETS_LISTED_MAX: usize = 4_000;

/// The maximum number of records read for one page of confirmed certificates.
const RECORDS_PER_PAGE_MAX: usize = 4_096;

/// Why a read is not possible now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ReadError {
    /// The shard has too much to do.
    #[error("busy; ask again later")]
    Busy,
    /// The authority is stopping.
    #[error("the authority is stopping; ask again when it is back")]
    Stopping,
    /// The disk failed.
    #[error("this authority cannot read its journal; ask another one")]
    Unreadable,
    /// What was asked for is only in the committee's archive.
    #[error(transparent)]
    Pruned(#[from] Pruned),
}

/// Which entries of a list are asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range {
    /// The number of the first entry.
    pub(crate) start: u64,
    /// The maximum number of entries. 0 or a greater number means a whole page.
    pub(crate) limit: u32,
}

/// Reads one shard, with a bound on simultaneous reads of histories.
#[derive(Clone)]
pub(crate) struct Reads {
    handle: ShardHandle,
    history: HistoryReader,
    history_reads: Arc<Semaphore>,
}

impl Reads {
    /// Reads of a shard. `history_reads` has one permit for each simultaneous read of a history.
    pub(crate) fn new(handle: ShardHandle, history: HistoryReader, history_reads: Arc<Semaphore>) -> Self {
        Self { handle, history, history_reads }
    }

    /// The handle of the shard's queue.
    pub(crate) fn handle(&self) -> &ShardHandle {
        &self.handle
    }

    /// An account's state.
    pub(crate) async fn account(&self, id: AccountId) -> Result<Account, ReadError> {
        ask(&self.handle, |reply| Command::ReadAccount(id, reply))?.await
    }

    /// The certificate that an account sent under a number, if it is confirmed here.
    pub(crate) async fn sent_certificate(
        &self,
        id: AccountId,
        sequence: SequenceNumber,
    ) -> Result<Option<Arc<Certificate>>, ReadError> {
        let account = self.account(id).await?;
        self.certificate(id, account.sent, sequence).await
    }

    /// The journal's reader.
    pub(crate) fn history_reader(&self) -> &HistoryReader {
        &self.history
    }

    /// The shard's whole state but the accounts.
    pub(crate) async fn ledger(&self) -> Result<Arc<ShardLedger>, ReadError> {
        ask(&self.handle, Command::ReadLedger)?.await
    }

    /// The certificate of a number in an account's history of sent transfers.
    pub(crate) async fn certificate(
        &self,
        account: AccountId,
        sent: History,
        sequence: SequenceNumber,
    ) -> Result<Option<Arc<Certificate>>, ReadError> {
        self.history(move |reader| reader.certificate(account, &sent, sequence)).await
    }

    /// Entries of a history, oldest first.
    pub(crate) async fn page(
        &self,
        history: History,
        Range { start, limit }: Range,
        chain: Chain,
    ) -> Result<Vec<(u64, Record)>, ReadError> {
        let limit = if limit == 0 { PAGE_ENTRIES_MAX } else { limit.min(PAGE_ENTRIES_MAX) };
        self.history(move |reader| reader.page(&history, start, limit, chain)).await
    }

    /// Certificates of the redemption log, with at most `votes_max` votes each: as many as are sure to fit into one
    /// message.
    pub(crate) async fn redemption_certificates(
        &self,
        ledger: &ShardLedger,
        Range { start, limit }: Range,
        votes_max: usize,
    ) -> Result<Vec<Arc<Certificate>>, ReadError> {
        let bytes_each = 512_usize.saturating_add(votes_max.saturating_mul(128));
        let fit = u32::try_from(MESSAGE_BYTES_MAX / bytes_each).unwrap_or(PAGE_ENTRIES_MAX);
        let limit = if limit == 0 { fit } else { limit.min(fit) };
        let entries = self.page(ledger.redemptions.clone(), Range { start, limit }, Chain::Redemptions).await?;
        Ok(entries.iter().filter_map(|(_, record)| record.certificate().cloned()).collect())
    }

    /// The names of the certificates confirmed from a cursor on. `None` if this shard does not know the cursor.
    pub(crate) async fn confirmed(&self, cursor: JournalPosition) -> Result<Option<ConfirmedPage>, ReadError> {
        self.history(move |reader| match reader.confirmed(cursor, CONFIRMED_PAGE_MAX, RECORDS_PER_PAGE_MAX) {
            Ok((names, next)) => Ok(Some(ConfirmedPage { names, next, end: reader.cursor(reader.end()) })),
            // Clients may send any cursor.
            Err(HistoryError::Journal(JournalError::OutOfRange { .. } | JournalError::BadRecord { .. })) => Ok(None),
            Err(error) => Err(error),
        })
        .await
    }

    /// Reads the journal, on a blocking thread if its disk may be slow.
    async fn history<T: Send + 'static>(
        &self,
        read: impl FnOnce(&HistoryReader) -> Result<T, HistoryError> + Send + 'static,
    ) -> Result<T, ReadError> {
        let reader = self.history.clone();
        self.blocking(move || read(&reader)).await
    }

    /// As `history`, for any shard, or for another file on the disk.
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        read: impl FnOnce() -> Result<T, HistoryError> + Send + 'static,
    ) -> Result<T, ReadError> {
        let permit = self.history_reads.clone().acquire_owned().await.map_err(|_| ReadError::Stopping)?;
        let read = move || {
            let _permit = permit;
            read()
        };
        let outcome = if self.history.is_slow() { tokio::task::spawn_blocking(read).await } else { Ok(read()) };
        match outcome {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(HistoryError::Pruned(pruned))) => Err(pruned.into()),
            Ok(Err(error)) => {
                tracing::error!(%error, "the journal cannot be read");
                Err(ReadError::Unreadable)
            }
            Err(_) => Err(ReadError::Stopping),
        }
    }
}

/// Sends a command to a shard. The answer comes after earlier commands are on disk.
pub(crate) fn ask<T, C: FnOnce(oneshot::Sender<T>) -> Command>(
    shard: &ShardHandle,
    command: C,
) -> Result<impl Future<Output = Result<T, ReadError>> + use<T, C>, ReadError> {
    let (reply, answer) = oneshot::channel();
    shard.try_ask(command(reply)).map_err(|error| match error {
        TrySendError::Full(_) => ReadError::Busy,
        TrySendError::Disconnected(_) => ReadError::Stopping,
    })?;
    Ok(async { answer.await.map_err(|_| ReadError::Stopping) })
}

/// The selected entries, `asset` alone or as many as an answer may list, and whether there are more.
pub(crate) fn chosen<T>(
    mut entries: impl Iterator<Item = (Asset, T)>,
    asset: Option<Asset>,
) -> (Vec<(Asset, T)>, bool) {
    if let Some(asset) = asset {
        return (entries.find(|(held, _)| *held == asset).into_iter().collect(), false);
    }
    let listed = entries.by_ref().take(ASSETS_LISTED_MAX).collect();
    (listed, entries.next().is_some())
}
