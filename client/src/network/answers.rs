//! Questions to all authorities at once.

use std::collections::BTreeMap;
use std::time::Duration;

use fastpay_core::{AccountId, Asset, AuthorityName};
use fastpay_rpc::{AccountState, ShardStatus};
use tokio::time::Instant;

use super::Network;
use super::names::NAMES;
use crate::{Asked, AuthorityClient, ClientError};

/// After a quorum has answered a read, the others get this much longer.
pub const GRACE: Duration = Duration::from_millis(100);
/// The answers of the authorities that gave any in time.
pub type Answers<T> = Vec<(AuthorityName, Result<T, ClientError>)>;

impl Network {
    /// The answers of current members that are no errors. An endpoint whose authority has left the committee has no voice.
    #[must_use]
    pub fn of_members<'a, T>(&self, answers: &'a Answers<T>) -> BTreeMap<AuthorityName, &'a T> {
        let committee = self.committee();
        let good = answers.iter().filter_map(|(name, answer)| Some((*name, answer.as_ref().ok()?)));
        good.filter(|(name, _)| committee.member(name).is_some()).collect()
    }

    /// Asks all authorities at once. Returns when all have answered, at the `deadline`, or shortly after a quorum of members
    /// has answered without an error. If there might be one with the endpoints that have no member's name, asks these for
    /// their names.
    pub async fn ask_all<T, F, Fut>(&self, deadline: Instant, ask: F) -> Answers<T>
    where
        T: Send + 'static,
        F: Fn(AuthorityClient) -> Fut,
        Fut: Future<Output = Result<T, ClientError>> + Send + 'static,
    {
        self.ask_patiently(deadline, GRACE, ask).await
    }

    /// As [`Network::ask_all`], with this `grace` after a quorum has answered without an error.
    pub async fn ask_patiently<T, F, Fut>(&self, deadline: Instant, grace: Duration, ask: F) -> Answers<T>
    where
        T: Send + 'static,
        F: Fn(AuthorityClient) -> Fut,
        Fut: Future<Output = Result<T, ClientError>> + Send + 'static,
    {
        let mut asked = Asked::each(self.authorities().iter(), ask);
        let (mut answers, mut until, mut is_named) = (Answers::new(), deadline, false);
        while let Some((name, answer)) = asked.next(until).await {
            answers.push((self.present_name(name), answer));
            let (good, quorum) =
                (answers.iter().filter(|(_, answer)| answer.is_ok()).count(), self.committee().quorum());
            if until < deadline || good < quorum {
                continue;
            }
            let is_short = self.of_members(&answers).len() < quorum && !self.is_all_found();
            if is_short && !std::mem::replace(&mut is_named, true) {
                self.learn_names(deadline.min(Instant::now() + NAMES)).await;
                answers.iter_mut().for_each(|(name, _)| *name = self.present_name(*name));
            }
            if self.of_members(&answers).len() >= quorum {
                until = deadline.min(Instant::now() + grace);
            }
        }
        answers
    }

    /// An account's state at each authority, from a quorum.
    pub async fn account(&self, account: AccountId, deadline: Instant) -> Answers<AccountState> {
        self.ask_all(deadline, move |authority| async move { authority.shard_of(&account).account(account).await })
            .await
    }

    /// As [`Network::account`], from every authority that answers before the deadline.
    pub async fn account_everywhere(&self, account: AccountId, deadline: Instant) -> Answers<AccountState> {
        let grace = deadline.saturating_duration_since(Instant::now());
        let ask = move |authority: AuthorityClient| async move { authority.shard_of(&account).account(account).await };
        self.ask_patiently(deadline, grace, ask).await
    }

    /// As [`Network::account`], with the balance of one asset.
    pub async fn account_asset(&self, account: AccountId, asset: Asset, deadline: Instant) -> Answers<AccountState> {
        self.ask_all(deadline, move |authority| async move {
            authority.shard_of(&account).account_asset(account, asset).await
        })
        .await
    }

    /// The state of all shards of each authority, from the first shard.
    pub async fn status(&self, deadline: Instant) -> Answers<Vec<ShardStatus>> {
        self.ask_all(deadline, |authority| async move { authority_status(&authority).await }).await
    }
}

/// The state of all shards of an authority, from the first.
///
/// # Errors
/// If a shard does not answer.
pub async fn authority_status(authority: &AuthorityClient) -> Result<Vec<ShardStatus>, ClientError> {
    let mut statuses = Vec::new();
    for shard in authority.shards() {
        statuses.push(shard.status().await?);
    }
    Ok(statuses)
}
