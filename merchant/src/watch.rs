//! Looks for payments again and again, through the wallet library, which verifies every certificate.
//!
//! ```text
//!  authorities ─► collect ─► inbox (on disk) ─► what the book lacks ─► take_in
//! ```
//! What the book lacks is read from the inbox and not from `collect`: a crash may have come between, or `fastpay
//! receive` with the same folder.

use std::pin::pin;
use std::time::Duration;

use fastpay_wallet::folder::FolderError;
use fastpay_wallet::{Collected, Wallet, WalletError};
use tokio::select;
use tokio::task::block_in_place;
use tokio::time::sleep;

use crate::ledger::{Ledger, LedgerError, now_ms};

/// What came in is told of this much later at the latest, while the wallet still waits for authorities.
const TELL_AFTER: Duration = Duration::from_secs(1);

/// Why the service ends.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// The wallet's files.
    #[error(transparent)]
    Wallet(#[from] WalletError),
    /// The journal.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

/// Why a look may have missed something.
#[derive(Debug, thiserror::Error)]
pub enum Blindness {
    /// The wallet did not come to the end of the lists of a quorum.
    #[error("there are more payments than are read in one go, or some whose certificates cannot be had now")]
    Unproven,
    /// The authorities cannot be asked, or another command uses the wallet.
    #[error(transparent)]
    Wallet(WalletError),
}

/// Watches until something is wrong with the disk. Nothing expires, and nothing is late, because of a time in which
/// not everything was seen.
///
/// # Errors
/// Where files cannot be used.
pub async fn watch(wallet: Wallet, ledger: Ledger, pause: Duration) -> Result<(), WatchError> {
    let mut was_blind = false;
    loop {
        let blindness = look(&wallet, &ledger).await?;
        if let Some(error) = blindness.as_ref().filter(|_| !was_blind) {
            tracing::warn!(%error, "not all payments can be seen now; nothing expires meanwhile");
        }
        was_blind = blindness.is_some();
        sleep(pause).await;
    }
}

/// Looks once. Answers why it may have missed something, where it may.
///
/// # Errors
/// As [`watch`].
pub async fn look(wallet: &Wallet, ledger: &Ledger) -> Result<Option<Blindness>, WatchError> {
    let account = ledger.account();
    let began_at_ms = now_ms();
    let mut collecting = pin!(wallet.collect(account));
    let collected = loop {
        select! {
            collected = &mut collecting => break collected,
            () = sleep(TELL_AFTER) => take_in(wallet, ledger, 0)?,
        }
    };
    let (looked_at_ms, blindness) = match collected {
        Ok(Collected { is_whole: true, .. }) => (began_at_ms, None),
        Ok(Collected { is_whole: false, .. }) => (0, Some(Blindness::Unproven)),
        Err(error @ WalletError::Folder(FolderError::Busy { .. })) => (0, Some(Blindness::Wallet(error))),
        Err(error @ (WalletError::Folder(_) | WalletError::Config(_))) => return Err(error.into()),
        Err(error) => (0, Some(Blindness::Wallet(error))),
    };
    // Where nothing can be seen, too: a journal that is broken ends the service by this.
    take_in(wallet, ledger, looked_at_ms)?;
    Ok(blindness)
}

/// Takes in what the book lacks of the inbox.
fn take_in(wallet: &Wallet, ledger: &Ledger, looked_at_ms: u64) -> Result<(), WatchError> {
    let inbox = wallet.folder().inbox(ledger.account());
    let lacking = block_in_place(|| inbox.payments_beyond(|name| ledger.has(name)));
    Ok(ledger.take_in(&lacking.map_err(WalletError::from)?, looked_at_ms)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpay_client::{AuthorityEndpoints, Endpoints};
    use fastpay_client::{Network, QuorumOptions};
    use fastpay_core::{Asset, Committees};
    use fastpay_testkit::{TestAccount, TestCommittee};
    use fastpay_wallet::PaymentLink;
    use fastpay_wallet::folder::Folder;

    use crate::forms::LinkBase;

    #[tokio::test(flavor = "multi_thread")]
    async fn a_broken_journal_ends_the_service_while_the_authorities_are_away() {
        let folder = tempfile::tempdir().unwrap();
        let committee = TestCommittee::new(4);
        let shards = vec!["http://127.0.0.1:9".to_owned()];
        let members = committee.committee.members().iter();
        let away = members.map(|member| AuthorityEndpoints {
            name: member.name,
            shards: shards.clone(),
            http: None,
            tls_ca: None,
        });
        let endpoints = Endpoints { authorities: away.collect(), relayers: vec![] };
        let committees = Committees::new(committee.committee.clone()).unwrap();
        let network = Network::new(committee.domain, committees, &endpoints).unwrap();
        let wallet = Wallet::new(Folder::new(folder.path().join("wallet")), network, QuorumOptions::default());
        let link = PaymentLink::new(TestAccount::numbered(1).id(), &committee.domain, Asset::ETHER);
        let ledger = Ledger::open(folder.path(), LinkBase { link, page: None }, Duration::MAX, true).await.unwrap();
        let blindness = look(&wallet, &ledger).await.unwrap();
        assert!(matches!(blindness, Some(Blindness::Wallet(WalletError::TooFewAnswers { .. }))), "{blindness:?}");
        ledger.break_journal();
        assert!(matches!(look(&wallet, &ledger).await, Err(WatchError::Ledger(_))));
    }
}
