//! Reads the redemption logs that the authorities publish, each shard on its own.
//!
//! An authority may be away, be slow, or lie. Every request has a time limit, a shard that fails is not asked for a
//! while, and an entry of a redemption log is a claim that is verified later.

use std::collections::HashMap;
use std::time::Duration;

use fastpay_client::{AuthorityClient, ClientError, ClientOptions};
use fastpay_core::{AuthorityName, Certificate, Pruned};
use fastpay_rpc::Page;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// The time limits for one shard's answer.
pub(crate) const OPTIONS: ClientOptions =
    ClientOptions { connect_timeout: Duration::from_secs(2), request_timeout: Duration::from_secs(3) };
/// The longest time for which a failing shard is left alone.
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// One shard of one authority.
pub(crate) type ShardKey = (AuthorityName, usize);

/// A page of one redemption log.
#[derive(Debug)]
pub(crate) struct RedemptionPage {
    pub(crate) shard: ShardKey,
    /// The number of the first entry.
    pub(crate) start: u64,
    pub(crate) page: Page<Certificate>,
}

/// Clients of all authorities.
#[derive(Debug)]
pub(crate) struct RedemptionLogs {
    authorities: Vec<AuthorityClient>,
    /// The shards that failed: how often in a row, and when to ask again.
    failing: HashMap<ShardKey, (u32, Instant)>,
}

impl RedemptionLogs {
    pub(crate) fn new(authorities: Vec<AuthorityClient>) -> Self {
        Self { authorities, failing: HashMap::new() }
    }

    /// Reads those of these authorities from now on.
    pub(crate) fn follow(&mut self, authorities: Vec<AuthorityClient>) {
        self.authorities = authorities;
    }

    /// Every authority with its number of shards.
    pub(crate) fn shards(&self) -> impl Iterator<Item = (AuthorityName, usize)> {
        self.authorities.iter().map(|authority| (authority.name(), authority.shards().len()))
    }

    /// Reads one page of every wanted redemption log, from `start` on. Also returns how many shards did not answer.
    pub(crate) async fn read(
        &mut self,
        is_wanted: impl Fn(&ShardKey) -> bool,
        start: impl Fn(&ShardKey) -> u64,
    ) -> (Vec<RedemptionPage>, usize) {
        let mut requests = JoinSet::new();
        let now = Instant::now();
        let mut silent = 0;
        for authority in &self.authorities {
            for (index, client) in authority.shards().iter().enumerate() {
                let shard = (authority.name(), index);
                if !is_wanted(&shard) {
                    continue;
                }
                if self.failing.get(&shard).is_some_and(|(_, until)| *until > now) {
                    silent += 1;
                    continue;
                }
                let (client, start) = (client.clone(), start(&shard));
                requests.spawn(async move {
                    match client.redemptions(start).await {
                        // The contract had paid what is pruned, and what it had not is in the log again.
                        Err(ClientError::Pruned(Pruned { first, .. })) if first > start => {
                            (shard, first, client.redemptions(first).await)
                        }
                        answer => (shard, start, answer),
                    }
                });
            }
        }
        let mut pages = Vec::new();
        while let Some(answer) = requests.join_next().await {
            let Ok((shard, start, answer)) = answer else { continue };
            match answer {
                Ok(page) => {
                    self.failing.remove(&shard);
                    pages.push(RedemptionPage { shard, start, page });
                }
                Err(error) => {
                    silent += 1;
                    self.note_failure(shard, &error);
                }
            }
        }
        pages.sort_by_key(|page| page.shard);
        (pages, silent)
    }

    fn note_failure(&mut self, shard: ShardKey, error: &ClientError) {
        let failures = self.failing.get(&shard).map_or(0, |(failures, _)| *failures);
        let pause = Duration::from_millis(500).saturating_mul(1 << failures.min(10)).min(PAUSE_MAX);
        self.failing.insert(shard, (failures.saturating_add(1), Instant::now() + pause));
        tracing::warn!(authority = %shard.0, shard = shard.1, %error, pause_ms = pause.as_millis(), "no answer");
    }
}
