//! One vote for many redemptions that this authority has confirmed, at any of its shards. A read of what is
//! on disk and a signature: it changes nothing, so it can be asked for any number of times and under every
//! epoch anew.

use std::collections::BTreeMap;

use fastpay_core::{AccountId, History, Record, Redemption, SequenceNumber, ShardLayout, Transfer, sign_batch_vote};
use fastpay_rpc::proto::redemption_batch_response::Response;
use fastpay_rpc::proto::{MissingRedemptions, RedemptionBatchRequest};
use fastpay_rpc::{Malformed, Refusal};
use tonic::Status;

use super::reads::ask;
use super::service::ShardService;
use crate::shard::Command;

impl ShardService {
    /// The answer to a request for a batch vote.
    pub(super) async fn batch_vote(&self, request: RedemptionBatchRequest) -> Result<Response, Status> {
        let refuse = |refusal: Refusal| Ok(Response::Refused((&refusal).into()));
        let names: Vec<(AccountId, SequenceNumber)> = match request.try_into() {
            Ok(names) => names,
            Err(malformed) => return refuse(Refusal::Malformed(Malformed::to_string(&malformed))),
        };
        let standing = self.context.standing.borrow().clone();
        let Some(keys) = standing.voter() else { return refuse(Refusal::NotVoting(standing.epoch())) };
        let redemptions = self.confirmed_redemptions(&names).await?;
        let positions: Vec<u32> =
            (0..).zip(&redemptions).filter(|(_, found)| found.is_none()).map(|(position, _)| position).collect();
        if !positions.is_empty() {
            return Ok(Response::Missing(MissingRedemptions { positions }));
        }
        let redemptions: Vec<Redemption> = redemptions.into_iter().flatten().collect();
        let vote = sign_batch_vote(keys, &self.context.domain, standing.epoch(), &redemptions);
        Ok(Response::Vote((standing.epoch(), &vote).into()))
    }

    /// The redemptions of these names in their order; none where it is not confirmed here, or no redemption.
    async fn confirmed_redemptions(
        &self,
        names: &[(AccountId, SequenceNumber)],
    ) -> Result<Vec<Option<Redemption>>, Status> {
        let context = &self.context;
        let layout = ShardLayout::new(context.shard_count());
        // All are asked before the first is waited for: one batch of the shard answers them together.
        let mut asked = BTreeMap::new();
        for (account, _) in names {
            if let (false, Some((handle, history))) =
                (asked.contains_key(account), context.shards.get(layout.shard_of(account).0 as usize))
            {
                let answer = ask(handle, |reply| Command::ReadAccount(*account, reply))?;
                asked.insert(*account, (answer, history.clone()));
            }
        }
        let mut sent: BTreeMap<AccountId, (History, _)> = BTreeMap::new();
        for (account, (answer, reader)) in asked {
            sent.insert(account, (answer.await?.sent, reader));
        }
        let names = names.to_vec();
        let read = self.reads.blocking(move || {
            let find = |(account, sequence): &(AccountId, SequenceNumber)| {
                let Some((history, reader)) = sent.get(account) else { return Ok(None) };
                let entry = reader.entry(history, sequence.0, Record::sent_link)?;
                Ok(entry.and_then(|record| match record {
                    Record::Confirmation { certificate, .. } => match &certificate.order.transfer {
                        Transfer::Redemption(redemption) => Some(redemption.clone()),
                        Transfer::Payment(_) => None,
                    },
                    _ => None,
                }))
            };
            names.iter().map(find).collect()
        });
        Ok(read.await?)
    }
}
