//! The events of a committee on a ledger, as a segment holds them: from certified groups that f + 1 members hand over, as
//! the follower takes them.

use std::path::Path;

use fastpay_core::checkpoint::{InstalledCommittee, PrimaryEvent, PrimaryEventKind};
use fastpay_core::{Deposit, Domain, TransactionIndex};
use fastpay_ethereum::Cursor;
use fastpay_ledger_statement::{CommitteeEvent, EventKind};
use fastpay_program::Clock;

use super::{CheckpointError, Patience, Progress, StoredCursor, check_recent, of_deposit};
use crate::authority::funding::{LedgerDeployment, LedgerError, LedgerEvents, LedgerSource};
use crate::authority::shard::ChainTime;

/// Progress is told each time so many groups are read.
const TOLD_GROUPS: u64 = 10_000;

/// All certified events after an index, and the time of the newest group. Reads on from the group up to which an earlier
/// run needed no event any more, or from the first one.
pub(super) async fn read(
    ledger: &LedgerDeployment,
    after: TransactionIndex,
    cursor_file: &Path,
    clock: Clock,
    told: Progress<'_>,
) -> Result<(Vec<PrimaryEvent>, ChainTime), CheckpointError> {
    let domain = ledger.ledger().domain();
    let mut source = LedgerSource::new(ledger)?;
    let stored = StoredCursor::read(cursor_file).filter(|stored| stored.is_of(&domain, after));
    let (mut cursor, block_time) = stored.map_or((LedgerSource::start(), 0), |stored| (stored.cursor, stored.time));
    let mut time = ChainTime { block_time, ..ChainTime::default() };
    let (mut events, mut needless, mut told_at) = (Vec::new(), None, cursor.block_number);
    loop {
        let read = next(&mut source, &cursor, time, told).await?;
        let fresh = read.events.iter().filter(|event| event.index > after);
        events.extend(fresh.map(|event| convert(event, &domain)));
        (cursor, time) = (read.cursor, read.time);
        needless = if cursor.last_index <= after { Some((cursor, time.block_time)) } else { needless };
        if cursor.block_number.saturating_sub(told_at) >= TOLD_GROUPS {
            told_at = cursor.block_number;
            told(format!("read the ledger up to group {told_at}"));
        }
        if !read.has_more {
            check_recent(time, clock)?;
            if let Some((cursor, time)) = needless {
                StoredCursor::new(&domain, cursor, time).write(cursor_file);
            }
            return Ok((events, time));
        }
    }
}

async fn next(
    source: &mut LedgerSource,
    cursor: &Cursor,
    time: ChainTime,
    told: Progress<'_>,
) -> Result<LedgerEvents, LedgerError> {
    let mut patience = Patience::new();
    loop {
        match source.next_events(cursor, time).await {
            Err(error) if error.is_retryable() && patience.wait(&error, told).await => {}
            read => return read,
        }
    }
}

fn convert(event: &CommitteeEvent, domain: &Domain) -> PrimaryEvent {
    let index = event.index;
    let kind = match &event.kind {
        EventKind::Funded(funding) => {
            let (recipient, asset, amount) = (funding.account, funding.asset, funding.amount);
            return of_deposit(Deposit { index, recipient, asset, amount });
        }
        EventKind::Redeemed { redemption, .. } => {
            let digest = domain.transfer_digest(&redemption.clone().into());
            PrimaryEventKind::Redeemed { account: redemption.sender, sequence: redemption.sequence, digest }
        }
        // The ledger has checked that the account's owner signed it.
        EventKind::UnlockRequested { account, sequence, .. } => {
            PrimaryEventKind::UnlockRequested { account: *account, sequence: *sequence, is_authorized: true }
        }
        EventKind::Upheld { account, sequence, digest } => {
            PrimaryEventKind::Upheld { account: *account, sequence: *sequence, digest: *digest }
        }
        EventKind::Voided { account, sequence } => PrimaryEventKind::Voided { account: *account, sequence: *sequence },
        EventKind::Installed { committee, compromised_since, checkpoint, .. } => {
            let (compromised_since, checkpoint) = (*compromised_since, *checkpoint);
            PrimaryEventKind::Installed(InstalledCommittee {
                committee: committee.clone(),
                compromised_since,
                checkpoint,
            })
        }
    };
    PrimaryEvent { index, kind }
}
