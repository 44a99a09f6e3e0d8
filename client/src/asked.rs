//! Requests to several authorities at once, under one deadline.

use std::future::Future;

use fastpay_core::AuthorityName;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use crate::AuthorityClient;

/// Requests under way, one to each authority. Dropping it ends them.
#[derive(Debug)]
pub struct Asked<T> {
    requests: JoinSet<(AuthorityName, T)>,
}

impl<T> Default for Asked<T> {
    fn default() -> Self {
        Self { requests: JoinSet::new() }
    }
}

impl<T: Send + 'static> Asked<T> {
    /// Asks each of these authorities.
    pub fn each<'a, F, Fut>(authorities: impl IntoIterator<Item = &'a AuthorityClient>, ask: F) -> Self
    where
        F: Fn(AuthorityClient) -> Fut,
        Fut: Future<Output = T> + Send + 'static,
    {
        let mut asked = Self::default();
        asked.and_each(authorities, ask);
        asked
    }

    /// Asks each of these, too.
    pub fn and_each<'a, F, Fut>(&mut self, authorities: impl IntoIterator<Item = &'a AuthorityClient>, ask: F)
    where
        F: Fn(AuthorityClient) -> Fut,
        Fut: Future<Output = T> + Send + 'static,
    {
        for authority in authorities {
            let (name, answer) = (authority.name(), ask(authority.clone()));
            self.requests.spawn(async move { (name, answer.await) });
        }
    }

    /// The next answer, in the order in which they come. `None` at the deadline, or when all have answered.
    pub async fn next(&mut self, deadline: Instant) -> Option<(AuthorityName, T)> {
        timeout_at(deadline, self.answer()).await.ok().flatten()
    }

    /// The next answer, which each request's own time-out bounds. `None` when all have answered.
    pub async fn answer(&mut self) -> Option<(AuthorityName, T)> {
        loop {
            // A request that panicked has no answer.
            if let Ok(answer) = self.requests.join_next().await? {
                return Some(answer);
            }
        }
    }
}
