//! A contract on Ethereum, as the relayer's Primary: its gas, its committees, and what it has paid.

use std::collections::HashMap;
use std::time::Duration;

use fastpay_client::AuthorityClient;
use fastpay_core::{Asset, Committees, Epoch, PrimaryAddress, Redemption};
use fastpay_ethereum::{
    DepositsError, EpochReader, Payout, Primary, PrimaryConfig, PrimaryError, PrivateKeySigner, Queued, Sender, Token,
};
use fastpay_program::Clock;
use tokio::time::Instant;

use crate::config::Config;
use crate::gas::{Firsts, Payouts, Plan};
use crate::node_agreement::NodeAgreement;
use crate::pending::{PendingRedemption, RedemptionId};
use crate::policy::BelowCost;
use crate::primary::{PrimarySide, Worth};
use crate::relayer::{Relayer, RelayerError, authorities};
use crate::unlock::Unlocking;

/// The interval between reads of the gas key's balance.
const BALANCE_INTERVAL: Duration = Duration::from_secs(60);
/// A fee that covers less than this part of the share of a full transaction counts as hopeless: gas would have to
/// become eight times cheaper while the redemption waits.
const HOPELESS_DIVISOR: u64 = 8;
/// The gas price is read again after this time, about a block.
const GAS_PRICE_AGE_MAX: Duration = Duration::from_secs(12);

/// A contract on Ethereum.
#[derive(Debug)]
pub struct Ethereum {
    pub(crate) sender: Sender,
    pub(crate) agreement: NodeAgreement,
    pub(crate) epochs: EpochReader,
    /// When each transaction was last offered, by its nonce.
    pub(crate) offered_at: HashMap<u64, Instant>,
    /// When nodes began to refuse each transaction that no node knows, by its nonce.
    pub(crate) refused_since: HashMap<u64, Instant>,
    balance_asked_at: Option<Instant>,
    /// The gas price in wei, and when it was read.
    gas_price: Option<(u128, Instant)>,
    pub(crate) unlocking: Unlocking,
}

/// The state of a redemption on the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnChain {
    /// Not redeemed.
    Open,
    /// Redeemed or queued in a block that may still change, or by the answers of some nodes only.
    Settling,
    /// In the contract's queue, in a final block.
    Queued(Queued),
    /// Paid in a final block.
    Done,
}

impl Relayer {
    /// Opens the state and prepares all connections; nothing is sent yet. Must be called within a tokio
    /// runtime.
    ///
    /// # Errors
    /// If the endpoints, the state or the Primary cannot be used. An Ethereum node that does not answer is no error:
    /// the relayer waits for it.
    pub async fn open(config: Config, key: PrivateKeySigner) -> Result<Self, RelayerError> {
        let authorities = authorities(&config.endpoints)?;
        let primary = match Primary::connect(config.primary.clone()).await {
            Err(error) if error.is_retryable() => {
                tracing::warn!(%error, "starting without the Primary");
                Primary::connect_lazily(config.primary.clone())?
            }
            primary => primary?,
        };
        Self::over(config, key, primary, authorities, Clock::system())
    }

    /// As [`Relayer::open`], with these connections and this clock.
    ///
    /// # Errors
    /// If the state cannot be used.
    pub fn over(
        config: Config,
        key: PrivateKeySigner,
        primary: Primary,
        authorities: Vec<AuthorityClient>,
        clock: Clock,
    ) -> Result<Self, RelayerError> {
        let domain = primary.domain();
        let (address, sender_config) = (key.address(), config.sender.clone());
        let ethereum = Ethereum {
            agreement: NodeAgreement::new(primary.nodes()),
            epochs: EpochReader::new(primary.clone()),
            offered_at: HashMap::new(),
            refused_since: HashMap::new(),
            balance_asked_at: None,
            gas_price: None,
            unlocking: Unlocking::new(primary.clone()),
            sender: Sender::new(primary, key, sender_config),
        };
        let relayer = Self::with(config, ethereum, (domain, address), authorities, clock)?;
        let sender = &relayer.primary.sender;
        relayer.state.bundles.iter().for_each(|bundle| sender.adopt(&bundle.submission));
        relayer.state.free_nonces.iter().for_each(|nonce| sender.release(*nonce));
        Ok(relayer)
    }

    /// The address that pays for gas and receives the fees.
    #[must_use]
    pub fn address(&self) -> PrimaryAddress {
        self.primary.sender.address()
    }

    /// Reads the gas key's balance for the operator. If no node answers now, a later round reads it.
    async fn refresh_balance(&mut self) {
        if self.primary.balance_asked_at.is_some_and(|at| at.elapsed() < BALANCE_INTERVAL) {
            return;
        }
        self.primary.balance_asked_at = Some(Instant::now());
        match self.primary.sender.primary().ether_balance(self.address()).await {
            Ok(wei) => {
                if wei.is_zero() {
                    let key = self.address();
                    tracing::warn!(%key, "the gas key has no ETH, so nothing can be submitted; send it some");
                }
                self.metrics.observe_balance(wei);
            }
            Err(error) => tracing::debug!(%error, "the gas key's balance is unknown"),
        }
    }

    /// Whether a redemption would be the first of its word, or to its payee.
    async fn firsts(&self, redemption: &Redemption) -> Result<Firsts, PrimaryError> {
        let primary = self.primary.sender.primary();
        let order = primary.is_first_of_its_word(redemption.sender, redemption.sequence).await?;
        let Redemption { asset, recipient, .. } = *redemption;
        let payee = match asset {
            Asset::ETHER => primary.is_new_account(recipient).await?,
            Asset(token) => match Token::new(primary.clone(), token).balance_of(recipient).await {
                Ok(balance) => balance.is_zero(),
                Err(error @ PrimaryError::Unreachable { .. }) => return Err(error),
                // A token that reports no balance, or burns all gas instead, counts as the most expensive.
                Err(_) => true,
            },
        };
        Ok(Firsts { order, payee })
    }

    /// Whether a fee is too small to cover its share of the gas in any transaction. Without this check, anybody could
    /// fill all places with redemptions that cost nothing, and delay those of others.
    fn is_hopeless(&self, redemption: &Redemption) -> bool {
        !self.covers_part(redemption, HOPELESS_DIVISOR)
    }

    /// Whether a fee covers 1/`divisor` of its share of the gas of a full transaction, or need not cover it.
    fn covers_part(&self, redemption: &Redemption, divisor: u64) -> bool {
        let (Some((gas_price_wei, _)), Some(committees)) = (self.primary.gas_price, &self.committees) else {
            return true;
        };
        let bundle = &self.config.bundle;
        let share = Plan::Batch.gas_each(committees.current().quorum(), bundle.items_max);
        let gas = share.saturating_add(Payouts::of(redemption, Firsts::default()).gas()) / divisor.max(1);
        let worth = self.config.assets.worth(redemption.asset, redemption.fee).unwrap_or_default();
        bundle.below_cost == BelowCost::Pay || worth >= u128::from(gas).saturating_mul(gas_price_wei)
    }

    /// Reads the gas price if it is needed and the last reading is old. If no node answers, the old price stays.
    async fn refresh_gas_price(&mut self) {
        let is_fresh = self.primary.gas_price.is_some_and(|(_, at)| at.elapsed() < GAS_PRICE_AGE_MAX);
        if is_fresh || self.config.bundle.below_cost != BelowCost::Leave {
            return;
        }
        match self.primary.sender.current_offer().await {
            Ok(offer) => self.primary.gas_price = Some((offer.price(), Instant::now())),
            Err(error) => tracing::debug!(%error, "the gas price is unknown"),
        }
    }

    /// The state of a redemption on the chain. One node's answer suffices to continue with it, but never to end it.
    pub(crate) async fn on_chain(&mut self, id: &RedemptionId) -> Result<OnChain, PrimaryError> {
        if self.primary.sender.primary().payout(id.sender, id.sequence).await? == Payout::Open {
            return Ok(OnChain::Open);
        }
        Ok(match self.final_payout(id).await? {
            None | Some(Payout::Open) => OnChain::Settling,
            Some(Payout::Queued(queued)) => OnChain::Queued(queued),
            Some(Payout::Done) => OnChain::Done,
        })
    }

    /// The state of a redemption in final blocks; `None` if the nodes do not agree.
    pub(crate) async fn final_payout(&mut self, id: &RedemptionId) -> Result<Option<Payout>, PrimaryError> {
        let primary = self.primary.sender.primary();
        self.primary.agreement.agree(async |node| primary.final_payout_by(node, id.sender, id.sequence).await).await
    }
}

impl PrimarySide for Ethereum {
    type Settings = PrimaryConfig;

    /// Those that began in a final block.
    async fn read_committees(relayer: &Relayer<Self>) -> Result<Option<Committees>, RelayerError> {
        match relayer.primary.epochs.read(relayer.committees.as_ref()).await {
            Ok(committees) => return Ok(Some(committees)),
            Err(DepositsError::Alarm(alarm)) => {
                tracing::error!(%alarm, "the committees cannot be read; check the Ethereum nodes");
            }
            Err(DepositsError::Primary(error)) => return Err(error.into()),
            Err(error) => tracing::warn!(%error, "waiting"),
        }
        Ok(None)
    }

    async fn newest_epoch(relayer: &Relayer<Self>) -> Result<Epoch, RelayerError> {
        Ok(relayer.primary.sender.primary().epoch().await?)
    }

    async fn begin_round(relayer: &mut Relayer<Self>) -> bool {
        let primary = relayer.primary.sender.primary();
        relayer.primary.agreement.refresh_heads(async |node| primary.head_time_by(node).await).await;
        relayer.refresh_gas_price().await;
        if relayer.config.bundle.below_cost == BelowCost::Leave && relayer.primary.gas_price.is_none() {
            tracing::warn!("redemption logs are not read until the gas price is known");
            return false;
        }
        true
    }

    fn worth(relayer: &Relayer<Self>, redemption: &Redemption) -> Worth {
        if !relayer.config.assets.serves(redemption.asset) {
            return Worth::NotServed;
        }
        if relayer.is_hopeless(redemption) { Worth::TooLittle } else { Worth::Enough }
    }

    async fn is_to_do(relayer: &mut Relayer<Self>, item: &mut PendingRedemption) -> Result<bool, RelayerError> {
        let id = item.id();
        match relayer.on_chain(&id).await? {
            OnChain::Queued(queued) if relayer.is_ours(&queued) => {
                let spending = relayer.spending(&id).await;
                if spending.is_some_and(|spending| relayer.displaced(&item.redemption, &spending).is_some()) {
                    return Ok(false);
                }
                item.enqueue(queued);
                relayer.note_queued(id, &queued);
                Ok(true)
            }
            OnChain::Done | OnChain::Queued(_) => Ok(false),
            OnChain::Open | OnChain::Settling => Ok(true),
        }
    }

    async fn appraise(relayer: &Relayer<Self>, item: &mut PendingRedemption) -> Result<(), RelayerError> {
        item.firsts = relayer.firsts(&item.redemption).await?;
        Ok(())
    }

    fn dust_to_make_way(relayer: &Relayer<Self>) -> Option<RedemptionId> {
        let is_dust = |item: &&PendingRedemption| {
            relayer.may_make_way(item) && !item.alone && !relayer.covers_part(&item.redemption, 1)
        };
        relayer.state.items.iter().find(is_dust).map(PendingRedemption::id)
    }

    async fn submit(relayer: &mut Relayer<Self>, eager: bool) -> Result<(), RelayerError> {
        relayer.follow_bundles().await?;
        relayer.submit_bundles(eager).await
    }

    async fn end_round(relayer: &mut Relayer<Self>) -> Result<(), RelayerError> {
        relayer.unlock_round().await?;
        relayer.refresh_balance().await;
        if let Some(committees) = &relayer.committees {
            let quorum = committees.current().quorum();
            relayer.quotes.refresh(&relayer.config, &relayer.primary.sender, quorum).await;
        }
        Ok(())
    }
}
