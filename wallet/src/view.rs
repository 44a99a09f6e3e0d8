//! Views of an account and of the committee.

use std::collections::BTreeMap;

use alloy::primitives::Address;
use fastpay_client::{Asked, AuthorityClient, ClientError};
use fastpay_core::{AccountId, Asset, AuthorityName, SequenceNumber, TransactionIndex};
use fastpay_rpc::{AccountState, ShardStatus};
use tokio::time::Instant;

use crate::error::WalletError;
use crate::folder::{Errand, TransactionEntry};
use crate::wallet::{READ_PATIENCE, Wallet};
use fastpay_client::{AgreedBalance, agreed_balances};
use fastpay_client::{GRACE, authority_status};

/// An account by the committee's answers.
#[derive(Clone, Debug)]
pub struct AccountView {
    /// The account.
    pub account: AccountId,
    /// The balance of each asset.
    pub balances: Vec<AgreedBalance>,
    /// The proven number of its next order.
    pub next_sequence: SequenceNumber,
    /// Each authority's answer.
    pub states: BTreeMap<AuthorityName, AccountState>,
    /// The authorities that did not answer, and why.
    pub silent: BTreeMap<AuthorityName, ClientError>,
    /// Whether an authority has more assets than it lists. The balances include those that this wallet knows.
    pub truncated: bool,
}

/// An authority as it describes itself.
#[derive(Clone, Debug)]
pub struct AuthorityView {
    /// The authority's name.
    pub name: AuthorityName,
    /// The status of its shards, or why it does not answer.
    pub status: Result<Vec<ShardStatus>, ClientError>,
    /// Whether its answer matches this wallet: its name, the committee, the chain and the contract.
    pub consistent: bool,
}

impl AuthorityView {
    /// The index up to which all its shards have followed the contract's events.
    #[must_use]
    pub fn synchronized(&self) -> Option<TransactionIndex> {
        self.status.as_ref().ok()?.iter().map(|shard| shard.synchronized).min()
    }
}

impl Wallet {
    /// Reads an account from all authorities.
    ///
    /// # Errors
    /// If fewer authorities than a quorum answer.
    pub async fn view(&self, account: AccountId) -> Result<AccountView, WalletError> {
        let answers = self.ask_account(account).await?;
        let known = self.folder().orders(account).next_sequence()?;
        let next_sequence = self.proven_next(account, known, &answers).await;
        let (mut states, mut silent) = (BTreeMap::new(), BTreeMap::new());
        for (name, answer) in answers {
            match answer {
                Ok(state) => drop(states.insert(name, state)),
                Err(error) => drop(silent.insert(name, error)),
            }
        }
        let committee = self.network().committee();
        for authority in committee.members() {
            if !states.contains_key(&authority.name) {
                // A quorum has answered, and this one did not within the grace period.
                silent.entry(authority.name).or_insert(ClientError::TimedOut(GRACE));
            }
        }
        let truncated = states.values().any(|state| state.truncated);
        if truncated {
            self.add_known_assets(account, &mut states).await?;
        }
        let listed: Vec<_> =
            states.iter().filter(|(name, _)| committee.member(name).is_some()).map(|(_, state)| state).collect();
        let balances = agreed_balances(&listed, self.network().trusted_count());
        Ok(AccountView { account, balances, next_sequence, states, silent, truncated })
    }

    /// Adds the known assets that incomplete lists lack.
    async fn add_known_assets(
        &self,
        account: AccountId,
        states: &mut BTreeMap<AuthorityName, AccountState>,
    ) -> Result<(), WalletError> {
        for asset in self.folder().known_assets()? {
            for (name, answer) in self.ask_account_asset(account, asset).await? {
                let (Some(state), Ok(answer)) = (states.get_mut(&name), answer) else { continue };
                if state.truncated && state.holdings.iter().all(|(listed, _)| *listed != asset) {
                    state.holdings.extend(answer.holdings);
                }
            }
        }
        Ok(())
    }

    /// The deposits that an Ethereum key of this wallet has sent and that are not known to be final.
    ///
    /// # Errors
    /// If the wallet's files cannot be read.
    pub fn pending_deposits(&self, owner: Address) -> Result<Vec<TransactionEntry>, WalletError> {
        let mut pending = self.folder().transactions(owner).pending()?;
        pending.retain(|entry| matches!(entry.errand, Errand::Deposit { .. }));
        Ok(pending)
    }

    /// Reads every authority's status. It waits for the slowest, up to the time-out of a request.
    pub async fn authorities(&self) -> Vec<AuthorityView> {
        let asked = self.network().authorities();
        let mut asking = Asked::each(asked.iter(), |authority| async move { authority_status(&authority).await });
        let (until, mut found) = (Instant::now() + READ_PATIENCE, BTreeMap::new());
        while let Some((name, status)) = asking.next(until).await {
            found.insert(name, status);
        }
        let committee = self.network().committee();
        let mut names: Vec<_> = asked.iter().map(AuthorityClient::name).collect();
        // Add members without an address. If some endpoints have old names, nobody can tell which members lack one.
        if names.iter().all(|name| committee.member(name).is_some()) {
            names.extend(committee.members().iter().map(|member| member.name));
        }
        names.sort_unstable();
        names.dedup();
        let view = |name| {
            let status = found.remove(&name).unwrap_or(Err(ClientError::TimedOut(READ_PATIENCE)));
            let consistent = status.as_ref().is_ok_and(|shards| self.is_consistent(name, shards));
            AuthorityView { name, status, consistent }
        };
        names.into_iter().map(view).collect()
    }

    fn is_consistent(&self, name: AuthorityName, shards: &[ShardStatus]) -> bool {
        let (domain, committees) = (self.network().domain(), self.network().committees());
        shards.iter().zip(0..).all(|(shard, number)| {
            shard.authority == name
                && shard.shard.0 == number
                && usize::try_from(shard.shard_count).is_ok_and(|count| count == shards.len())
                && (shard.chain_id, shard.contract) == (domain.chain_id(), domain.contract())
                // An authority that has not read the newest rotation yet is behind, but no liar.
                && committees.get(shard.epoch).is_some_and(|committee| shard.committee == committee.members())
        })
    }
}

/// The assets that an account may hold: those that authorities report, and ETH.
#[must_use]
pub fn assets_of(view: &AccountView) -> Vec<Asset> {
    let mut assets: Vec<_> = view.balances.iter().map(|balance| balance.asset).collect();
    assets.push(Asset::ETHER);
    assets.sort_unstable();
    assets.dedup();
    assets
}
