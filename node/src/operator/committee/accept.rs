//! A new member's acceptance: it is ready to vote in the epoch that was announced.

use std::path::{Path, PathBuf};

use fastpay_core::{AuthorityKeys, CouncilStatement, Digest, Epoch};
use fastpay_ethereum::{Clock, Cursor};

use super::announcement::{announcement, check_members};
use super::checkpoint::check_checkpoint;
use super::council::Council;
use super::describe::describe;
use super::nodes::Heads;
use super::{Ballot, CommitteeError, State, VoteFile, check_begun, member, vote};
use crate::authority::config::Config;
use crate::authority::follower;

/// Signs this member's acceptance. First checks that the announcement in `file` has matured on the contract, the
/// members' `proofs`, and, unless it is a recovery, that this authority's node has followed the chain up to the named
/// block. All members must name the same block; by default it is the block in which the announcement matured.
///
/// # Errors
/// See [`CommitteeError`].
pub async fn accept(
    config: &Config,
    keys: &[AuthorityKeys],
    file: &Path,
    proofs: &[PathBuf],
    block: Option<u64>,
) -> Result<Ballot, CommitteeError> {
    let council = Council::connect(config).await?;
    let domain = council.domain();
    let announcement = announcement(file, &domain)?;
    let committees = council.committees().await?;
    check_members(&announcement, proofs, &domain, &committees)?;
    check_checkpoint(config, &domain, &committees, announcement.checkpoint)?;
    let (epoch, voter) = (announcement.committee.epoch(), member(keys, &announcement.committee)?);
    let id = council.check_digest(&CouncilStatement::Announcement(&announcement)).await?;
    let is_new = !committees.current().members().contains(&voter.public());
    let nodes = match &council {
        Council::Contract(nodes) => nodes,
        Council::Ledger(_) if block.is_some() => return Err(CommitteeError::NotOnLedger("--block")),
        Council::Ledger(ledger) => {
            let facts = ledger.facts(&announcement, &[]).await?;
            let clock = facts.clock.ok_or(CommitteeError::NotAnnounced(id))?;
            if facts.state == State::Lapsed {
                return Err(CommitteeError::Lapsed(clock.lapses_at));
            }
            let statement = ledger.acceptance(id).await?.ok_or(CommitteeError::NotMatured(clock.installable_at))?;
            if announcement.compromised_since == epoch && is_new && config.endpoints.is_none() {
                return Err(CommitteeError::NoEndpoints);
            }
            check_begun(config, &committees)?;
            ledger.await_follower(&config.data).await?;
            let vote = vote(voter, &domain, epoch, &statement);
            let terms = describe(&council, &announcement, &committees).await?;
            let text = format!("{terms}announcement {id} of epoch {epoch}\nsigned as authority {}", vote.authority);
            return Ok(Ballot { text, vote });
        }
    };
    let clock = nodes.clock_of(id).await?.ok_or(CommitteeError::NotAnnounced(id))?;
    let block = accepted_block(&clock, block, nodes.heads().await?)?;
    let block_hash = nodes.final_hash(block).await?;
    let joins = !clock.is_recovery && announcement.compromised_since == epoch;
    if joins && is_new && config.endpoints.is_none() {
        return Err(CommitteeError::NoEndpoints);
    }
    // After a recovery everybody begins anew, and a new operator's node runs only once it is a member.
    if !clock.is_recovery {
        check_begun(config, &committees)?;
        check_follower(follower::read_cursor(&config.data), block, block_hash)?;
    }
    let statement = CouncilStatement::Acceptance { epoch, announcement: id, block_hash };
    nodes.check_digest(&statement).await?;
    let vote = VoteFile { block: Some(block), ..vote(voter, &domain, epoch, &statement) };
    let terms = describe(&council, &announcement, &committees).await?;
    let text = terms + &text(&clock, epoch, id, block, &vote.authority.to_string());
    Ok(Ballot { text, vote })
}

/// The block to name: the requested one, or the one in which the announcement matured. The contract still knows its hash.
fn accepted_block(clock: &Clock, asked: Option<u64>, heads: Heads) -> Result<u64, CommitteeError> {
    if heads.earliest > clock.lapses_at {
        return Err(CommitteeError::Lapsed(clock.lapses_at));
    }
    let matured = clock.matured_block.ok_or(CommitteeError::NotMatured(clock.installable_at))?;
    match asked.unwrap_or(matured) {
        block if block < matured => Err(CommitteeError::BlockTooEarly { block, matured }),
        block if heads.forgot(block) => Err(CommitteeError::BlockForgotten(block)),
        block => Ok(block),
    }
}

/// Checks that this authority's own follower has read up to the block at least, and on the same chain.
fn check_follower(cursor: Option<Cursor>, block: u64, hash: Digest) -> Result<(), CommitteeError> {
    match cursor {
        Some(cursor) if cursor.block_number == block && cursor.block_hash != hash => {
            Err(CommitteeError::OtherChain(block))
        }
        Some(cursor) if cursor.block_number >= block => Ok(()),
        cursor => Err(CommitteeError::NotSynchronized { at: cursor.map(|cursor| cursor.block_number), block }),
    }
}

fn text(clock: &Clock, epoch: Epoch, id: Digest, block: u64, authority: &str) -> String {
    let kind = if clock.is_recovery { "recovery" } else { "announcement" };
    format!(
        "{kind} {id} of epoch {epoch}\naccepted with block {block}\nsigned as authority {authority} of epoch {epoch}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(matured_block: Option<u64>) -> Clock {
        Clock {
            epoch: Epoch(1),
            announced_at: 1,
            endorsed_at: None,
            installable_at: 100,
            lapses_at: 200,
            matured_block,
            is_recovery: false,
        }
    }

    #[test]
    fn the_block_is_one_in_which_the_announcement_had_matured() {
        let heads = |earliest, lowest| Heads { earliest, latest: 250, lowest, highest: 20_000 };
        assert_eq!(accepted_block(&clock(Some(7)), None, heads(150, 8_197)).unwrap(), 7);
        assert_eq!(accepted_block(&clock(Some(7)), Some(9), heads(200, 8_199)).unwrap(), 9);
        let old = accepted_block(&clock(Some(7)), None, heads(150, 8_198)).unwrap_err();
        assert!(matches!(old, CommitteeError::BlockForgotten(7)), "{old}");
        let early = accepted_block(&clock(Some(7)), Some(6), heads(150, 9)).unwrap_err();
        assert!(matches!(early, CommitteeError::BlockTooEarly { block: 6, matured: 7 }), "{early}");
        let unripe = accepted_block(&clock(None), Some(9), heads(150, 9)).unwrap_err();
        assert!(matches!(unripe, CommitteeError::NotMatured(100)), "{unripe}");
        let late = accepted_block(&clock(Some(7)), None, heads(201, 9)).unwrap_err();
        assert!(matches!(late, CommitteeError::Lapsed(200)), "{late}");
    }

    #[test]
    fn an_authority_accepts_only_what_its_own_node_has_followed() {
        let (hash, other) = (Digest::repeat_byte(1), Digest::repeat_byte(2));
        let cursor =
            |block_number, block_hash| Some(Cursor { block_number, block_hash, last_index: Default::default() });
        assert!(check_follower(cursor(7, hash), 7, hash).is_ok());
        assert!(check_follower(cursor(8, other), 7, hash).is_ok());
        let behind = check_follower(cursor(6, hash), 7, hash).unwrap_err();
        assert!(matches!(behind, CommitteeError::NotSynchronized { at: Some(6), block: 7 }), "{behind}");
        let never = check_follower(None, 7, hash).unwrap_err();
        assert!(matches!(never, CommitteeError::NotSynchronized { at: None, block: 7 }), "{never}");
        let elsewhere = check_follower(cursor(7, other), 7, hash).unwrap_err();
        assert!(matches!(elsewhere, CommitteeError::OtherChain(7)), "{elsewhere}");
    }
}
