//! An operator's vote for the next committee. It needs the configuration, the keys and the Primary, and nothing
//! of the running node: the contract counts these votes, not the authorities.

use std::fmt;
use std::path::{Path, PathBuf};

use fastpay_core::{
    Authority, AuthorityKeys, AuthorityName, Committee, CommitteeError, Domain, Epoch, PrimaryAddress,
    sign_committee_vote,
};
use fastpay_ethereum::{Primary, PrimaryConfig, PrimaryError};
use serde::{Deserialize, Serialize};

use crate::config::Config;

/// The file that all voters share, in the form of the one that the contract was deployed from.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct NextCommittee {
    authorities: Vec<Authority>,
    guardian: Option<PrimaryAddress>,
    epoch: Option<Epoch>,
    chain_id: Option<u64>,
}

/// What whoever submits the rotation collects from each authority.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CommitteeVote {
    /// The epoch that is voted for.
    pub epoch: Epoch,
    /// Who votes.
    pub authority: AuthorityName,
    /// 65 bytes r, s, v in hex.
    pub signature: String,
}

/// A vote, and what it says.
#[derive(Debug)]
pub struct Ballot {
    domain: Domain,
    now: Committee,
    next: Committee,
    guardian: PrimaryAddress,
    /// The vote itself.
    pub vote: CommitteeVote,
}

/// Why there is no vote.
#[derive(Debug, thiserror::Error)]
pub enum VoteCommitteeError {
    /// There is no contract to rotate.
    #[error("the configuration has no [primary]: a committee without a contract cannot be changed")]
    NoPrimary,
    /// The file cannot be read.
    #[error("cannot read the next committee {path}: {reason}")]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// What it lists is no committee.
    #[error(transparent)]
    Committee(#[from] CommitteeError),
    /// It is for another epoch than the next.
    #[error("the file is for epoch {found}; the contract is in epoch {current}, so only {} can be voted for", .current.0.saturating_add(1))]
    Epoch {
        /// The contract's.
        current: Epoch,
        /// The file's.
        found: Epoch,
    },
    /// It is for another chain.
    #[error("the file is for chain {found}, the configuration for {expected}")]
    Chain {
        /// The configuration's.
        expected: u64,
        /// The file's.
        found: u64,
    },
    /// The file and the flag disagree.
    #[error("the file names the guardian {file} and --guardian {flag}; all voters must sign the same one")]
    Guardian {
        /// In the file.
        file: PrimaryAddress,
        /// On the command line.
        flag: PrimaryAddress,
    },
    /// None of the keys can vote.
    #[error("none of the configured keys is a member of the committee of epoch {0}, which decides")]
    NotAMember(Epoch),
    /// The contract would check something else.
    #[error("the contract would check another digest than this program signs; is this the right contract?")]
    OtherDigest,
    /// Ethereum nodes tell different things of the contract: one lags, or lies.
    #[error(
        "the Ethereum nodes disagree on the contract's epoch, committee or guardian: {node} says something else than \
         the first one; nothing was signed. Try again in a minute, and find out which one is wrong if they still do"
    )]
    Disagreement {
        /// The one that differs from the first: its URL without the path, which may hold a key.
        node: String,
    },
    /// The contract cannot be asked.
    #[error(transparent)]
    Primary(#[from] PrimaryError),
}

/// What the contract decides with now.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Present {
    committee: Committee,
    guardian: PrimaryAddress,
}

impl Present {
    async fn at(primary: &Primary) -> Result<Self, PrimaryError> {
        let committee = primary.committee(primary.epoch().await?).await?;
        Ok(Self { committee, guardian: primary.guardian().await? })
    }
}

/// Checks the next committee against the contract, and signs it with the key that votes in the current epoch.
/// Without a guardian in the file or the flag, the present one stays. All configured Ethereum nodes must say the
/// same: a signature must not rest on one node's word.
///
/// # Errors
/// See [`VoteCommitteeError`].
pub async fn vote(
    config: &Config,
    keys: &[AuthorityKeys],
    file: &Path,
    guardian: Option<PrimaryAddress>,
) -> Result<Ballot, VoteCommitteeError> {
    let config = config.primary.as_ref().ok_or(VoteCommitteeError::NoPrimary)?;
    let file = read(file)?;
    let domain = Domain::new(config.chain_id, config.contract);
    if let Some(found) = file.chain_id.filter(|found| *found != config.chain_id) {
        return Err(VoteCommitteeError::Chain { expected: config.chain_id, found });
    }
    let (nodes, present) = agreed(config).await?;
    let Present { committee: now, guardian: guard } = present;
    let current = now.epoch();
    let epoch = Epoch(current.0.saturating_add(1));
    if let Some(found) = file.epoch.filter(|found| *found != epoch) {
        return Err(VoteCommitteeError::Epoch { current, found });
    }
    let next = Committee::new(epoch, file.authorities)?;
    let guardian = match (guardian, file.guardian) {
        (Some(flag), Some(file)) if flag != file => return Err(VoteCommitteeError::Guardian { file, flag }),
        (Some(guardian), _) | (None, Some(guardian)) => guardian,
        (None, None) => guard,
    };
    let voter = keys.iter().find(|keys| now.member(&keys.public().name).is_some_and(|(_, m)| *m == keys.public()));
    let voter = voter.ok_or(VoteCommitteeError::NotAMember(current))?;
    for node in &nodes {
        if node.committee_vote_digest(&next, guardian).await? != domain.committee_vote_digest(&next, guardian) {
            return Err(VoteCommitteeError::OtherDigest);
        }
    }
    let vote = sign_committee_vote(voter, &domain, &next, guardian);
    let signature = format!("0x{}", hex::encode(vote.signature.0));
    let vote = CommitteeVote { epoch, authority: vote.authority, signature };
    Ok(Ballot { domain, now, next, guardian, vote })
}

/// Each configured Ethereum node by itself, and what all of them say.
async fn agreed(config: &PrimaryConfig) -> Result<(Vec<Primary>, Present), VoteCommitteeError> {
    let mut nodes = Vec::new();
    let mut agreed = None;
    for url in &config.rpc_urls {
        let node = Primary::connect(PrimaryConfig { rpc_urls: vec![url.clone()], ..config.clone() }).await?;
        let present = Present::at(&node).await?;
        if agreed.get_or_insert_with(|| present.clone()) != &present {
            return Err(VoteCommitteeError::Disagreement { node: url.origin().ascii_serialization() });
        }
        nodes.push(node);
    }
    Ok((nodes, agreed.ok_or(PrimaryError::NoUrl)?))
}

fn read(path: &Path) -> Result<NextCommittee, VoteCommitteeError> {
    let wrong = |reason: String| VoteCommitteeError::File { path: path.into(), reason };
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))
}

/// What is signed, for the person who signs it.
impl fmt::Display for Ballot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (next, now) = (&self.next, &self.now);
        writeln!(f, "contract {} on chain {}", self.domain.contract(), self.domain.chain_id())?;
        writeln!(f, "epoch {} with {} authorities, quorum {}:", next.epoch(), next.members().len(), next.quorum())?;
        for member in next.members() {
            let known = if now.members().contains(member) { "as now" } else { "new keys" };
            writeln!(f, "  {}  {}  ({known})", member.name, member.redemption_key)?;
        }
        for member in now.members().iter().filter(|member| !next.members().contains(member)) {
            writeln!(f, "  {}  {}  (no longer)", member.name, member.redemption_key)?;
        }
        match self.guardian.is_zero() {
            true => writeln!(f, "guardian: nobody; nobody can pause")?,
            false => writeln!(f, "guardian: {}", self.guardian)?,
        }
        if next.members().len() != now.members().len() {
            writeln!(
                f,
                "warning: {} authorities now, {} then. Only keys of the same authorities can be rotated safely: an \
                 authority without the others' state knows nothing of their votes (docs/PROTOCOL.md, rotation)",
                now.members().len(),
                next.members().len()
            )?;
        }
        write!(f, "signed as authority {} of epoch {}", self.vote.authority, now.epoch())
    }
}
