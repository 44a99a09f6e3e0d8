//! The conversation with one authority about one order: ask for its vote, do what its answer calls for, and ask again,
//! until the tally has decided.

use std::collections::HashSet;
use std::time::Duration;

use fastpay_core::AuthorityName;
use fastpay_telemetry::{Attribute, OpenSpan, Side};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::judge::{Help, Helped, Inquiry, Step};
use super::tally::PeerAnswer;
use super::{Backoff, CommitteeClient};
use crate::{AuthorityClient, ClientError};

fn conclude(span: &mut OpenSpan, answer: &PeerAnswer) {
    span.add(Attribute::Outcome(answer.kind()));
    if let PeerAnswer::Out(failure) = answer {
        span.fail(failure.kind());
    }
}

impl CommitteeClient {
    /// Ends when the tally no longer receives, or when this authority can contribute nothing more.
    pub(super) async fn ask(
        self,
        authority: AuthorityClient,
        inquiry: Inquiry,
        answers: mpsc::Sender<(AuthorityName, PeerAnswer)>,
    ) {
        let (name, order) = (authority.name(), inquiry.order.order());
        let shard = authority.shard_of(&order.transfer.sender());
        let mut backoff = Backoff::new(self.options);
        // When it first reported too low a balance, and which payments it is known to have: these are not sent again,
        // even if it lies.
        let (mut unfunded_since, mut known) = (None::<Instant>, HashSet::new());
        // The span ends with this conversation, also if it is cut off because a quorum has answered.
        let mut span = self.tracer.open(&inquiry.order.digest(), "fastpay.vote", Side::Client);
        span.add(Attribute::Authority(name));
        loop {
            let answer = shard.order(order).await;
            backoff.wait_at_least(answer.as_ref().err().map(ClientError::retry_after).unwrap_or_default());
            let unfunded_for = unfunded_since.map_or(Duration::ZERO, |since| since.elapsed());
            let is_patient = unfunded_for < self.options.funds_patience;
            let step = match inquiry.judge(name, answer, is_patient) {
                Step::Help(help) => {
                    if matches!(help, Help::Received(_)) {
                        unfunded_since.get_or_insert_with(Instant::now);
                    }
                    let came = self.help(&authority, &inquiry, &help, &mut known).await;
                    inquiry.helped(help, came)
                }
                step => Some(step),
            };
            match step {
                Some(Step::Count { answer, last: true }) => {
                    conclude(&mut span, &answer);
                    let _ = answers.send((name, answer)).await;
                    return;
                }
                Some(Step::Count { answer, last: false }) => {
                    span.event(answer.kind());
                    if answers.send((name, answer)).await.is_err() {
                        return;
                    }
                }
                Some(Step::Help(_)) | None => backoff.reset(),
            }
            // Wait after progress, too: an authority that lies about progress must not make this loop spin.
            backoff.wait().await;
        }
    }

    async fn help(
        &self,
        authority: &AuthorityClient,
        inquiry: &Inquiry,
        help: &Help,
        known: &mut HashSet<fastpay_rpc::TransferName>,
    ) -> Helped {
        let transfer = inquiry.order.transfer();
        let (sender, sequence) = (transfer.sender(), transfer.sequence());
        let brought = match help {
            Help::Sent(from) => self.push_sent(authority, sender, *from, sequence).await.map(|()| 1),
            Help::Received(_) => self.push_received(authority, sender, known).await,
            Help::Certificate => {
                let found = self.network.find_certificate(sender, sequence).await;
                return Helped::Found(found.map(Box::new));
            }
        };
        brought.map_or_else(Helped::Failed, Helped::Brought)
    }
}
