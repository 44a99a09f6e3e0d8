//! Reads what this member signed in the engine's log, before the engine opens it: the engine cuts a damaged log off and
//! goes on as if nothing were missing.
//!
//! The format is that of version 0.8.2, to which the engine is pinned: a version and the height, then entries of a flag,
//! a length, a checksum and the content. What a member signed is the content with tag 1.

use std::io;
use std::path::Path;

use fastpay_program::files;
use malachite::app::types::SignedConsensusMsg;
use malachite::app::types::codec::Codec;
use malachite::app::types::core::Proposal as _;

use super::codec::LedgerCodec;
use super::context::{Cluster, MemberAddress};
use crate::votes::Cast;

const HEAD_BYTES: usize = 12;
const TAG_SIGNED: u8 = 1;

/// The height that the log is of, and what `me` signed at it, as far as the log is whole. `None` without a log.
///
/// # Errors
/// Any of the file system.
pub fn own_casts(path: &Path, me: MemberAddress) -> io::Result<Option<(u64, Vec<Cast>)>> {
    let Some(content) = files::read(path)? else { return Ok(None) };
    let Some((head, mut rest)) = content.split_at_checked(HEAD_BYTES) else { return Ok(None) };
    let Some(height) = head.last_chunk().map(|bytes| u64::from_be_bytes(*bytes)) else { return Ok(None) };
    let mut casts = Vec::new();
    while let Some((entry, after)) = next_entry(rest) {
        casts.extend(own_cast(entry, me));
        rest = after;
    }
    Ok(Some((height, casts)))
}

/// The content of the next entry, and what comes after it. `None` at the end, and where the log is damaged.
fn next_entry(log: &[u8]) -> Option<(&[u8], &[u8])> {
    let (flag, rest) = log.split_first()?;
    let (length, rest) = rest.split_first_chunk()?;
    let (checksum, rest) = rest.split_first_chunk()?;
    let (content, after) = rest.split_at_checked(usize::try_from(u64::from_be_bytes(*length)).ok()?)?;
    let is_whole = *flag == 0 && crc32fast::hash(content) == u32::from_be_bytes(*checksum);
    is_whole.then_some((content, after))
}

fn own_cast(content: &[u8], me: MemberAddress) -> Option<Cast> {
    let (tag, rest) = content.split_first()?;
    let (_, signed) = rest.split_first_chunk::<8>()?;
    if *tag != TAG_SIGNED {
        return None;
    }
    let decoded: Result<SignedConsensusMsg<Cluster>, _> = LedgerCodec::default().decode(signed.to_vec().into());
    match decoded.ok()? {
        SignedConsensusMsg::Vote(vote) => (vote.message.voter == me).then(|| vote.message.cast()),
        SignedConsensusMsg::Proposal(proposal) => {
            (*proposal.message.validator_address() == me).then(|| proposal.message.cast())
        }
    }
}
