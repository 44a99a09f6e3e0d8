//! A vote to release a redemption from the contract's queue: stolen keys voted for it, and no honest authority has
//! confirmed it.

use std::path::Path;

use fastpay_client::{ClientError, ClientOptions, ShardClient};
use fastpay_core::{
    AccountId, Asset, AuthorityKeys, Balance, CouncilStatement, Epoch, Memo, PrimaryAddress, Redemption,
    SequenceNumber, ShardLayout, Transfer,
};
use fastpay_rpc::json::Hex;
use serde::Deserialize;

use super::nodes::Nodes;
use super::{Ballot, CommitteeError, Number, member, read, vote};
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

/// Signs the release of the redemption in `file`, which waits with votes of a compromised epoch, if this authority's
/// running node has not confirmed it, or the account owes there.
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
    if is_due(config, &redemption, nodes.domain().transfer_digest(&redemption.clone().into())).await? {
        return Err(CommitteeError::Confirmed);
    }
    let committees = nodes.committees().await?;
    let (epoch, voter) = (committees.current().epoch(), member(keys, committees.current())?);
    let statement = CouncilStatement::Release { epoch, redemption: &redemption };
    nodes.check_digest(&statement).await?;
    let vote = vote(voter, &nodes.domain(), epoch, &statement);
    let text = format!(
        "release of order {sequence} of {sender}: {} of {} to {}, queued with votes of epoch {}\nnot confirmed here, \
         or not covered\n\
         signed as authority {} of epoch {epoch}",
        redemption.amount, redemption.asset, redemption.recipient, queued.epoch, vote.authority
    );
    Ok(Ballot { text, vote })
}

/// Whether the running node has executed this very order, and the account does not owe: then it votes for it again.
async fn is_due(
    config: &Config,
    redemption: &Redemption,
    digest: fastpay_core::Digest,
) -> Result<bool, CommitteeError> {
    let shard = ShardLayout::new(config.shards).shard_of(&redemption.sender);
    let addresses = config.shard_addresses()?;
    let address = addresses.get(shard.0 as usize).expect("there is an address for each shard");
    let scheme = if config.tls.is_some() { "https" } else { "http" };
    let tls_ca = config.tls.as_ref().and_then(|tls| std::fs::read_to_string(&tls.certificate).ok());
    let address = format!("{scheme}://{address}");
    let failed = |error| CommitteeError::Node { address: address.clone(), error };
    let client = ShardClient::new(&address, tls_ca.as_deref(), ClientOptions::default()).map_err(failed)?;
    match client.certificate(redemption.sender, redemption.sequence).await {
        Ok(certificate) => {
            let transfer: &Transfer = &certificate.order.transfer;
            let primary = config.primary.as_ref().ok_or(CommitteeError::NoPrimary)?;
            let domain = fastpay_core::Domain::new(primary.chain_id, primary.contract);
            if domain.transfer_digest(transfer) != digest {
                return Ok(false);
            }
            let account = client.account_asset(redemption.sender, redemption.asset).await.map_err(failed)?;
            Ok(account.balance(redemption.asset) >= Balance::ZERO)
        }
        Err(ClientError::NotFound) => Ok(false),
        Err(error) => Err(failed(error)),
    }
}
