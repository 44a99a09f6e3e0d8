//! A vote of the current committee for a higher deposit cap.

use std::path::Path;

use fastpay_core::{Amount, Asset, AuthorityKeys, CouncilStatement, Epoch, PrimaryAddress};
use fastpay_ethereum::utc;
use serde::Deserialize;

use super::nodes::Nodes;
use super::{Ballot, CommitteeError, Number, member, read, vote};
use crate::authority::config::Config;

/// A raise as the scripts read it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RaiseFile {
    epoch: Epoch,
    asset: PrimaryAddress,
    cap: Number,
    deadline: u64,
}

/// Signs the raise of a deposit cap in `file`. A raise takes as long as the installation of a committee.
///
/// # Errors
/// See [`CommitteeError`].
pub async fn raise_cap(config: &Config, keys: &[AuthorityKeys], file: &Path) -> Result<Ballot, CommitteeError> {
    let RaiseFile { epoch, asset, cap, deadline } = read(file)?;
    let (asset, cap) = (Asset(asset), Amount::from(cap));
    let nodes = Nodes::connect(config).await?;
    let committees = nodes.committees().await?;
    let (current, voter) = (committees.current().epoch(), member(keys, committees.current())?);
    if epoch != current {
        return Err(CommitteeError::RaiseEpoch { current, found: epoch });
    }
    let now = nodes.agree(async |node| node.deposit_cap(asset).await).await?;
    let kept = as_kept(cap);
    if kept <= now {
        return Err(CommitteeError::CapNotRaised { now: now.into(), found: cap.into(), kept: kept.into() });
    }
    nodes.check_deadline(deadline).await?;
    let statement = CouncilStatement::CapRaise { epoch, asset, cap, deadline };
    let id = nodes.check_digest(&statement).await?;
    let vote = vote(voter, &nodes.domain(), epoch, &statement);
    let text = format!(
        "deposit cap of {asset}: {kept} (now {now}), in its smallest unit\nto be announced by {}\nraise {id}\nsigned as \
         authority {} of epoch {epoch}",
        utc(deadline),
        vote.authority
    );
    Ok(Ballot { text, vote })
}

/// The cap as the contract stores it: its nine highest bits (`contracts/libraries/Caps.sol`).
fn as_kept(cap: Amount) -> Amount {
    let dropped = (u128::BITS - cap.0.leading_zeros()).saturating_sub(9);
    Amount(cap.0 >> dropped << dropped)
}
