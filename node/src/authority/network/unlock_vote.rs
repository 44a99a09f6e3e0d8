//! Signs this authority's vote about a number that its owner asked the contract to unlock. Before that, the shard has
//! written the certificate or the vote to void to disk.

use fastpay_core::{AccountId, Domain, SequenceNumber, UnlockVote};
use fastpay_rpc::{Refusal, UnlockAnswer};

use super::reads::{ReadError, Reads, ask};
use crate::authority::shard::{Command, UnlockKnowledge};
use crate::authority::voter_status::VoterStatus;

/// Why there is no vote.
#[derive(Debug)]
pub(crate) enum NoUnlockVote {
    /// As the rules say, or because this authority does not vote.
    Refused(Refusal),
    /// The executed certificate cannot be read.
    Unread(ReadError),
}

impl From<ReadError> for NoUnlockVote {
    fn from(error: ReadError) -> Self {
        Self::Unread(error)
    }
}

/// This authority's vote in the current epoch about a number of this shard: it attests a certificate that it knows, or
/// else votes to void the number; if `unanimous`, with a vote that counts only if all members vote so.
pub(crate) async fn vote_for_unlock(
    domain: &Domain,
    voter_status: &VoterStatus,
    reads: &Reads,
    account: AccountId,
    sequence: SequenceNumber,
    unanimous: bool,
) -> Result<UnlockAnswer, NoUnlockVote> {
    let epoch = voter_status.epoch();
    let keys = voter_status.votes().map_err(NoUnlockVote::Refused)?;
    let sign = |vote: UnlockVote| vote.sign(keys, domain, epoch, account, sequence);
    let known = ask(reads.handle(), |reply| Command::VoteUnlock { account, sequence, unanimous, reply })?.await?;
    let certificate = match known.map_err(NoUnlockVote::Refused)? {
        UnlockKnowledge::VoidVoted(voted) if voted == epoch => {
            return Ok(UnlockAnswer::Void { epoch, vote: sign(UnlockVote::Void { unanimous }) });
        }
        // The epoch has ended since this call began.
        UnlockKnowledge::VoidVoted(voted) => return Err(NoUnlockVote::Refused(Refusal::NotVoting(voted))),
        UnlockKnowledge::Seen(certificate) => certificate,
        UnlockKnowledge::Executed(sent) => {
            let executed = reads.certificate(account, sent, sequence).await?;
            executed.ok_or(NoUnlockVote::Unread(ReadError::Unreadable))?
        }
    };
    let vote = sign(UnlockVote::Certificate(domain.transfer_digest(&certificate.order.transfer)));
    Ok(UnlockAnswer::Certificate { certificate, epoch, vote })
}
