//! A vote to release a redemption from the contract's queue: stolen keys voted for it, and no honest authority votes
//! for it again.

use std::path::Path;

use fastpay_client::ClientError;
use fastpay_core::{
    AccountId, Asset, AuthorityKeys, Balance, Committees, CouncilStatement, Epoch, Memo, PrimaryAddress, Redemption,
    SequenceNumber, Transfer,
};
use fastpay_rpc::BatchAnswer;
use fastpay_rpc::json::Hex;
use serde::Deserialize;

use super::nodes::Nodes;
use super::{Ballot, CommitteeError, Number, member, own_shard, read, vote};
use crate::authority::config::Config;

/// A redemption as the scripts read it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RedemptionFile {
    sender: Hex<32>,
    recipient: PrimaryAddress,
    asset: PrimaryAddress,
    amount: Number,
    fee: Number,
    sequence: u64,
    memo: Memo,
}

impl From<RedemptionFile> for Redemption {
    fn from(file: RedemptionFile) -> Self {
        Self {
            sender: AccountId(file.sender.0),
            recipient: file.recipient,
            asset: Asset(file.asset),
            amount: file.amount.into(),
            fee: file.fee.into(),
            sequence: SequenceNumber(file.sequence),
            memo: file.memo,
        }
    }
}

/// Signs the release of the redemption in `file`, queued with votes of a compromised epoch, if this authority's running
/// node does not vote for it: the node has not confirmed it, or stolen keys certified it and the account owes there.
///
/// # Errors
/// See [`CommitteeError`].
pub async fn release(config: &Config, keys: &[AuthorityKeys], file: &Path) -> Result<Ballot, CommitteeError> {
    let redemption = Redemption::from(read::<RedemptionFile>(file)?);
    let nodes = Nodes::connect(config).await?;
    let (sender, sequence) = (redemption.sender, redemption.sequence);
    let queued = nodes.agree(async |node| node.payout(sender, sequence).await).await?;
    let fastpay_ethereum::Payout::Queued(queued) = queued else { return Err(CommitteeError::NotQueued) };
    if !queued.needs_votes {
        return Err(CommitteeError::NotCompromised(Epoch(queued.epoch)));
    }
    let committees = nodes.committees().await?;
    let Some(reason) = why_not_due(config, &nodes, &committees, &redemption).await? else {
        return Err(CommitteeError::Confirmed);
    };
    let (epoch, voter) = (committees.current().epoch(), member(keys, committees.current())?);
    let statement = CouncilStatement::Release { epoch, redemption: &redemption };
    nodes.check_digest(&statement).await?;
    let vote = vote(voter, &nodes.domain(), epoch, &statement);
    let text = format!(
        "release of order {sequence} of {sender}: {} of {} to {}, queued with votes of epoch {}\n{reason}\nsigned as authority {} of epoch {epoch}",
        redemption.amount, redemption.asset, redemption.recipient, queued.epoch, vote.authority
    );
    Ok(Ballot { text, vote })
}

/// Why the running node does not vote for this redemption; `None` if it does (K17, R7a in docs/PROTOCOL.md).
async fn why_not_due(
    config: &Config,
    nodes: &Nodes,
    committees: &Committees,
    redemption: &Redemption,
) -> Result<Option<&'static str>, CommitteeError> {
    const UNCONFIRMED: Option<&str> = Some("not confirmed here");
    const UNCOVERED: Option<&str> = Some(
        "stolen keys may have certified it, and the account owes here: bring every certificate to this node first",
    );
    let (client, address) = own_shard(config, &redemption.sender)?;
    let failed = |error| CommitteeError::Node { address: address.clone(), error };
    let certificate = match client.certificate(redemption.sender, redemption.sequence).await {
        Ok(certificate) => certificate,
        Err(ClientError::NotFound) => return Ok(UNCONFIRMED),
        // The node may begin from a checkpoint that includes the redemption, unpaid, or another one of this number.
        Err(ClientError::Pruned(_)) => {
            let names = [(redemption.sender, redemption.sequence)];
            return Ok(match client.vote_redemption_batch(&names).await.map_err(failed)? {
                BatchAnswer::Missing(_) => UNCONFIRMED,
                BatchAnswer::Uncovered(_) => UNCOVERED,
                BatchAnswer::Vote { epoch, vote } => {
                    let digest = nodes.domain().redemption_batch_vote_digest(epoch, std::slice::from_ref(redemption));
                    let is_for_it = committees.get(epoch).is_none_or(|members| vote.verify(members, digest).is_ok());
                    if is_for_it { None } else { UNCONFIRMED }
                }
            });
        }
        Err(error) => return Err(failed(error)),
    };
    if certificate.order.transfer != Transfer::Redemption(redemption.clone()) {
        return Ok(UNCONFIRMED);
    }
    if !nodes.agree(async |node| node.is_compromised(certificate.epoch).await).await? {
        return Ok(None);
    }
    let account = client.account_asset(redemption.sender, redemption.asset).await.map_err(failed)?;
    let owes = account.balance(redemption.asset) < Balance::ZERO;
    Ok(UNCOVERED.filter(|_| owes))
}
