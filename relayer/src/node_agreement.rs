//! Agreement among the configured Ethereum nodes. A redemption ends only by agreement: a single node may lie, lag or
//! be on another chain.
//!
//! Nodes agree if all that answered within the last ten minutes give the same answer now, and these are more than half
//! of the configured nodes. A single configured node agrees with itself. A node whose newest block is ten minutes older
//! than another node's is stalled, and counts as not answering.

use std::time::Duration;

use fastpay_ethereum::PrimaryError;
use tokio::time::Instant;

/// Agreement waits for a node that answered within this time, and ignores a node that was silent for longer.
const MEMORY: Duration = Duration::from_secs(600);
/// A node that does not answer is not asked again for this time, so that it does not delay every request.
const PAUSE: Duration = Duration::from_secs(30);

/// The response of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer<T> {
    Says(T),
    /// No answer now, but one within [`MEMORY`].
    Silent,
    /// No answer for longer.
    Away,
}

/// The configured nodes, and when each last answered.
#[derive(Debug)]
pub(crate) struct NodeAgreement {
    nodes: Vec<Contact>,
    looked_at: Option<Instant>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Contact {
    answered_at: Option<Instant>,
    failed_at: Option<Instant>,
    /// The time of its newest block at the last reading, in seconds since 1970.
    head_s: u64,
}

impl NodeAgreement {
    pub(crate) fn new(nodes: usize) -> Self {
        Self { nodes: vec![Contact::default(); nodes], looked_at: None }
    }

    /// Asks every node, by its number. Returns the answer; `None` if they do not agree.
    ///
    /// # Errors
    /// If a node's answer requires an operator to act.
    pub(crate) async fn agree<T: PartialEq>(
        &mut self,
        mut ask: impl AsyncFnMut(usize) -> Result<T, PrimaryError>,
    ) -> Result<Option<T>, PrimaryError> {
        let mut answers = Vec::with_capacity(self.nodes.len());
        let newest_s = self.nodes.iter().map(|contact| contact.head_s).max().unwrap_or_default();
        for (node, contact) in self.nodes.iter_mut().enumerate() {
            if newest_s.saturating_sub(contact.head_s) > MEMORY.as_secs() {
                answers.push(Answer::Away);
                continue;
            }
            if contact.failed_at.is_some_and(|at| at.elapsed() < PAUSE) {
                answers.push(contact.without_answer());
                continue;
            }
            answers.push(match ask(node).await {
                Ok(answer) => {
                    (contact.answered_at, contact.failed_at) = (Some(Instant::now()), None);
                    Answer::Says(answer)
                }
                Err(error) if error.is_retryable() => {
                    tracing::debug!(node, %error, "an Ethereum node does not return a redemption's state");
                    contact.failed_at = Some(Instant::now());
                    contact.without_answer()
                }
                Err(error) => return Err(error),
            });
        }
        Ok(agreed(answers))
    }
}

impl NodeAgreement {
    /// Reads the newest block of every node, if the last reading is old. A node that does not answer keeps its last
    /// one.
    pub(crate) async fn refresh_heads(&mut self, mut ask: impl AsyncFnMut(usize) -> Result<u64, PrimaryError>) {
        if self.nodes.len() < 2 || self.looked_at.is_some_and(|at| at.elapsed() < PAUSE) {
            return;
        }
        self.looked_at = Some(Instant::now());
        for (node, contact) in self.nodes.iter_mut().enumerate() {
            match ask(node).await {
                Ok(head_s) => contact.head_s = head_s,
                Err(error) => tracing::debug!(node, %error, "an Ethereum node does not return its newest block"),
            }
        }
        let newest_s = self.nodes.iter().map(|contact| contact.head_s).max().unwrap_or_default();
        for (node, contact) in self.nodes.iter().enumerate() {
            let behind_s = newest_s.saturating_sub(contact.head_s);
            if behind_s > MEMORY.as_secs() {
                tracing::warn!(
                    node,
                    behind_s,
                    "an Ethereum node is stalled: its answers about redemptions are ignored"
                );
            }
        }
    }
}

impl Contact {
    fn without_answer<T>(&self) -> Answer<T> {
        match self.answered_at {
            Some(at) if at.elapsed() < MEMORY => Answer::Silent,
            _ => Answer::Away,
        }
    }
}

/// The answer on which the configured nodes agree.
fn agreed<T: PartialEq>(answers: Vec<Answer<T>>) -> Option<T> {
    let configured = answers.len();
    let mut first: Option<T> = None;
    let mut count = 0_usize;
    for answer in answers {
        match answer {
            Answer::Silent => return None,
            Answer::Away => {}
            Answer::Says(answer) => {
                if first.as_ref().is_some_and(|first| *first != answer) {
                    return None;
                }
                first = Some(answer);
                count = count.saturating_add(1);
            }
        }
    }
    first.filter(|_| count.saturating_mul(2) > configured)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Answer::{Away, Says, Silent};

    #[test]
    fn all_that_answer_and_a_majority_must_say_the_same() {
        let check = |answers: &[Answer<u8>], expected| assert_eq!(agreed(answers.to_vec()), expected, "{answers:?}");
        check(&[Says(1)], Some(1));
        check(&[Says(1), Says(1)], Some(1));
        check(&[Says(1), Away], None);
        check(&[Says(1), Says(1), Away], Some(1));
        check(&[Says(1), Away, Away], None);
        // A single node that disagrees, or may yet disagree, prevents agreement.
        check(&[Says(1), Says(1), Says(2)], None);
        check(&[Says(1), Says(1), Silent], None);
        check(&[Silent], None);
        check(&[], None);
    }

    fn away() -> PrimaryError {
        PrimaryError::Unreachable { node: "there".into(), reason: "away".into() }
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_that_was_there_is_waited_for_ten_minutes() {
        let mut agreement = NodeAgreement::new(3);
        assert_eq!(agreement.agree(async |_| Ok(7)).await.unwrap(), Some(7));
        let mut asked = 0;
        let mut ask = async |node| {
            asked += usize::from(node == 2);
            if node == 2 { Err(away()) } else { Ok(7) }
        };
        for _ in 0..19 {
            assert_eq!(agreement.agree(&mut ask).await.unwrap(), None);
            tokio::time::advance(PAUSE).await;
        }
        tokio::time::advance(PAUSE).await;
        assert_eq!(agreement.agree(&mut ask).await.unwrap(), Some(7));
        assert_eq!(agreement.agree(&mut ask).await.unwrap(), Some(7));
        assert_eq!(asked, 20, "a silent node is not asked each time");
        // The node answers again.
        tokio::time::advance(PAUSE).await;
        assert_eq!(agreement.agree(async |node| Ok(node == 2)).await.unwrap(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stalled_node_is_ignored_until_it_advances() {
        let mut agreement = NodeAgreement::new(3);
        // The last node never saw the redemption.
        let ask = async |node| Ok(node < 2);
        assert_eq!(agreement.agree(ask).await.unwrap(), None);
        agreement.refresh_heads(async |node| Ok(if node == 2 { 10_000 } else { 10_600 })).await;
        assert_eq!(agreement.agree(ask).await.unwrap(), None, "it may only be slow");
        tokio::time::advance(PAUSE).await;
        agreement.refresh_heads(async |node| Ok(if node == 2 { 10_000 } else { 10_601 })).await;
        assert_eq!(agreement.agree(ask).await.unwrap(), Some(true));
        tokio::time::advance(PAUSE).await;
        agreement.refresh_heads(async |_| Ok(10_700)).await;
        assert_eq!(agreement.agree(ask).await.unwrap(), None);
        // A node with a time in the future makes the others stalled, and alone it is no majority.
        tokio::time::advance(PAUSE).await;
        agreement.refresh_heads(async |node| Ok(if node == 2 { u64::MAX } else { 10_700 })).await;
        assert_eq!(agreement.agree(ask).await.unwrap(), None);
    }

    #[tokio::test]
    async fn what_only_a_person_can_mend_is_no_silence() {
        let error = NodeAgreement::new(1).agree(async |_| Err::<(), _>(PrimaryError::NoUrl)).await.unwrap_err();
        assert!(matches!(error, PrimaryError::NoUrl));
    }
}
