//! A committee on a ledger, as the relayer's Primary. The fee of a redemption goes to the reserve of the relayer's key.
//!
//! ```text
//!  waiting redemptions ─► certificates whose votes count: one instruction each ──────┐
//!                      └► other epochs, or several: the committee's vote for many ───┤
//!                                                                                    ▼
//!   paid ◄─ the ledger's proof of what the number was redeemed for ◄─ sent ◄─ instruction on disk
//! ```
//! A number is redeemed once, whoever hands it over and however often, so an instruction that was sent twice pays once.

use fastpay_client::AuthorityClient;
use fastpay_core::{AccountId, AccountKey, Committees, Epoch, PrimaryAddress, Redemption};
use fastpay_ledger_client::{CommitteeClient, Instructions, Reserve, ReserveError, oldest_state, unpacked_votes};
use fastpay_ledger_statement::{CurrentEpoch, Rejection, SpentOn};
use fastpay_program::Clock;

use crate::config::{Config, LedgerSettings};
use crate::pending::{PendingRedemption, RedemptionId};
use crate::primary::{PrimarySide, Worth};
use crate::relayer::{Relayer, RelayerError, wait_if_it_passes};
use crate::store::Left;
use crate::votes::{Agreement, Asked};

/// The folder of the instructions, in that of the state.
const INSTRUCTIONS: &str = "ledger";
/// So many redemptions go under one vote: an instruction with the votes of the largest committee has room for them.
const BATCH_MAX: usize = 100;
/// Votes of an epoch that ends within this time, in milliseconds, are not used: an instruction may wait for its height.
const ENDING_MARGIN_MS: u64 = 60_000;
/// So many instructions are sent in a round, one after the other: the redemption logs are read again then.
const ROUND_MAX: usize = 32;

/// A committee on a ledger.
#[derive(Debug)]
pub struct OnLedger {
    reserve: Reserve,
    address: PrimaryAddress,
}

impl OnLedger {
    fn ledger(&self) -> &CommitteeClient {
        self.reserve.ledger()
    }
}

impl Relayer<OnLedger> {
    /// Opens the state; nothing is sent yet. `key` is that of the reserve, an Ethereum key. Must be called within a tokio
    /// runtime.
    ///
    /// # Errors
    /// If the state cannot be used.
    ///
    /// # Panics
    /// If the key is of another kind.
    pub fn on_ledger(
        config: Config<LedgerSettings>,
        ledger: CommitteeClient,
        key: AccountKey,
        authorities: Vec<AuthorityClient>,
        clock: Clock,
    ) -> Result<Self, RelayerError> {
        let address = key.account().ethereum_address().expect("the relayer's key is an Ethereum key");
        let (domain, instructions) =
            (ledger.domain(), Instructions::new(&config.data_dir.join(INSTRUCTIONS), key.account()));
        let primary = OnLedger { reserve: Reserve::new(instructions, ledger, key), address };
        Self::with(config, primary, (domain, address), authorities, clock)
    }

    /// The owner of the reserve that gets the fees.
    #[must_use]
    pub fn owner(&self) -> AccountId {
        self.primary.reserve.owner()
    }

    async fn spent(&self, id: &RedemptionId) -> Result<Option<SpentOn>, RelayerError> {
        Ok(self.primary.ledger().spent(id.sender, id.sequence, oldest_state()).await?)
    }

    async fn hand_over_all(&mut self, open: Vec<PendingRedemption>) -> Result<(), RelayerError> {
        self.follow_committees().await?;
        let Some(committees) = self.committees.clone() else { return Ok(()) };
        let current = self.primary.ledger().current_epoch(oldest_state()).await?;
        let (singly, together) = choose(open, &current, self.clock.now_ms());
        let mut left = singly;
        if !together.is_empty() {
            left.extend(self.hand_over_together(&committees, &current, together).await?);
            self.save()?;
        }
        for item in left.into_iter().take(ROUND_MAX) {
            if counts(&current, item.epoch, self.clock.now_ms()) {
                self.hand_over(&committees, &item).await?;
            } else {
                self.hand_over_together(&committees, &current, vec![item]).await?;
            }
            self.save()?;
        }
        Ok(())
    }

    /// Asks the current committee for one vote on the redemptions together, and hands them over. Gives those whose
    /// certificates count and that get no vote, or that share one with a redemption that the ledger refuses.
    async fn hand_over_together(
        &mut self,
        committees: &Committees,
        current: &CurrentEpoch,
        items: Vec<PendingRedemption>,
    ) -> Result<Vec<PendingRedemption>, RelayerError> {
        let Asked { agreement, refused, unknown } = self.voters.agree(&self.domain, committees, items).await;
        let (now, mut singly) = (self.clock.now_ms(), Vec::new());
        if let Some(Agreement { items, epoch, votes }) = agreement {
            let redemptions: Vec<_> = items.iter().map(|item| item.redemption.clone()).collect();
            let votes = unpacked_votes(&votes, committees.current());
            match self.primary.reserve.redeem_batch(&redemptions, epoch, votes).await {
                Ok(events) => {
                    for (item, event) in items.iter().zip(events) {
                        match event {
                            Some(_) => self.finish_by_us(item),
                            None => self.finish_as_spent(item).await?,
                        }
                    }
                }
                Err(ReserveError::Rejected(why)) if is_of_the_moment(&why) => {
                    tracing::warn!(%why, "waiting");
                }
                Err(ReserveError::Rejected(why)) => match &items[..] {
                    [item] => self.note_rejection(item.id(), why),
                    _ => {
                        items.iter().for_each(|item| self.set_alone(item.id()));
                        singly.extend(items.into_iter().filter(|item| counts(current, item.epoch, now)));
                    }
                },
                Err(error) => return Err(error.into()),
            }
        }
        let (live, ended): (Vec<_>, Vec<_>) = refused.into_iter().partition(|item| counts(current, item.epoch, now));
        for id in ended.iter().map(PendingRedemption::id) {
            if unknown.contains(&id) {
                self.refuse(id);
            } else {
                self.postpone(id, "its epoch has ended, and too few authorities certify it again".into());
            }
        }
        Ok([singly, live].concat())
    }

    /// Hands a redemption over by its certificate.
    async fn hand_over(&mut self, committees: &Committees, item: &PendingRedemption) -> Result<(), RelayerError> {
        let Some(committee) = committees.get(item.epoch) else { return Ok(()) };
        let votes = unpacked_votes(&item.votes, committee);
        let handed_over = self.primary.reserve.redeem_by_votes(&item.redemption, item.epoch, votes).await;
        match handed_over {
            Ok(Some(_)) => self.finish_by_us(item),
            Ok(None) => self.finish_as_spent(item).await?,
            Err(ReserveError::Rejected(why)) => self.note_rejection(item.id(), why),
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    fn note_rejection(&mut self, id: RedemptionId, why: Rejection) {
        if is_of_the_moment(&why) {
            self.postpone(id, why.to_string());
        } else {
            self.park(id, why.to_string());
        }
    }

    fn finish_by_us(&mut self, item: &PendingRedemption) {
        let id = item.id();
        tracing::info!(sender = %id.sender, sequence = %id.sequence, "redeemed");
        self.state.totals.redeemed = self.state.totals.redeemed.saturating_add(1);
        self.traces.ended(item, None, Ok("redeemed"));
        self.finish(id);
    }

    /// Removes a redemption whose number is spent, once the ledger has proven on what.
    async fn finish_as_spent(&mut self, item: &PendingRedemption) -> Result<(), RelayerError> {
        let id = item.id();
        let digest = self.domain.transfer_digest(&item.redemption.clone().into());
        match self.spent(&id).await? {
            // The members that answer may be behind: they are asked again.
            None => {}
            Some(SpentOn::Redeemed(redeemed)) if redeemed.digest != digest => {
                self.leave_unpaid(item, "its number was spent on another order: redemption keys are stolen");
            }
            Some(SpentOn::Redeemed(redeemed)) if redeemed.relayer == self.owner() => self.finish_by_us(item),
            Some(SpentOn::Redeemed(_)) => {
                tracing::info!(sender = %id.sender, sequence = %id.sequence, "redeemed by another account");
                self.state.totals.redeemed_by_others = self.state.totals.redeemed_by_others.saturating_add(1);
                self.traces.ended(item, None, Ok("by-others"));
                self.finish(id);
            }
            Some(SpentOn::Void) => self.leave_unpaid(item, "its number is void"),
        }
        Ok(())
    }

    /// Removes a redemption that is never paid.
    fn leave_unpaid(&mut self, item: &PendingRedemption, why: &str) {
        let id = item.id();
        tracing::error!(sender = %id.sender, sequence = %id.sequence, why, "a redemption cannot be paid any more");
        self.state.totals.displaced = self.state.totals.displaced.saturating_add(1);
        self.state.remember(Left { item: id, reason: why.into(), transaction: None });
        self.traces.ended(item, None, Err("displaced"));
        self.finish(id);
    }
}

/// Whether certificates of this epoch count at the ledger, and will for a while.
fn counts(current: &CurrentEpoch, epoch: Epoch, now_ms: u64) -> bool {
    let is_previous = epoch.0.checked_add(1) == Some(current.epoch.0);
    let until = current.previous_counts_until.filter(|_| is_previous);
    epoch == current.epoch || until.is_some_and(|until| until.0 >= now_ms.saturating_add(ENDING_MARGIN_MS))
}

/// Those that go by their certificates, and those that need, or save, a vote on them together.
fn choose(
    open: Vec<PendingRedemption>,
    current: &CurrentEpoch,
    now_ms: u64,
) -> (Vec<PendingRedemption>, Vec<PendingRedemption>) {
    let (singly, mut together): (Vec<_>, Vec<_>) = open.into_iter().partition(|item| item.alone);
    together.truncate(BATCH_MAX);
    match &together[..] {
        [item] if counts(current, item.epoch, now_ms) => ([singly, together].concat(), Vec::new()),
        _ => (singly, together),
    }
}

/// Whether a rejection is no fault of what was handed over.
fn is_of_the_moment(why: &Rejection) -> bool {
    matches!(
        why,
        Rejection::Busy
            | Rejection::EpochEnded(..)
            | Rejection::SequenceGap(_)
            | Rejection::SequenceConflict(_)
            | Rejection::SequenceForgotten(_)
    )
}

impl PrimarySide for OnLedger {
    type Settings = LedgerSettings;

    async fn read_committees(relayer: &Relayer<Self>) -> Result<Option<Committees>, RelayerError> {
        let ledger = relayer.primary.ledger();
        let first = || Committees::new(ledger.first().clone()).expect("the genesis begins in epoch 0");
        let known = relayer.committees.clone().unwrap_or_else(first);
        Ok(Some(ledger.committees(known, oldest_state()).await?))
    }

    async fn newest_epoch(relayer: &Relayer<Self>) -> Result<Epoch, RelayerError> {
        let committees = Self::read_committees(relayer).await?;
        Ok(committees.map_or(Epoch(0), |committees| committees.current().epoch()))
    }

    async fn begin_round(_: &mut Relayer<Self>) -> bool {
        true
    }

    fn worth(relayer: &Relayer<Self>, redemption: &Redemption) -> Worth {
        match relayer.config.fees.least(redemption.asset) {
            None => Worth::NotServed,
            Some(least) if redemption.fee < least => Worth::TooLittle,
            Some(_) => Worth::Enough,
        }
    }

    async fn is_to_do(relayer: &mut Relayer<Self>, item: &mut PendingRedemption) -> Result<bool, RelayerError> {
        Ok(relayer.spent(&item.id()).await?.is_none())
    }

    async fn appraise(_: &Relayer<Self>, _: &mut PendingRedemption) -> Result<(), RelayerError> {
        Ok(())
    }

    fn dust_to_make_way(_: &Relayer<Self>) -> Option<RedemptionId> {
        None
    }

    async fn submit(relayer: &mut Relayer<Self>, _: bool) -> Result<(), RelayerError> {
        relayer.leave_what_is_not_served();
        let open = relayer.open_items();
        if open.is_empty() {
            return Ok(());
        }
        relayer.hand_over_all(open).await.or_else(wait_if_it_passes)
    }

    async fn end_round(relayer: &mut Relayer<Self>) -> Result<(), RelayerError> {
        relayer.quotes.refresh_on_ledger(&relayer.domain, relayer.primary.address, &relayer.config.fees);
        Ok(())
    }
}
