//! What the records of a shard's journal mean for a checkpoint. Votes and locks mean nothing there, and to decode them would
//! take most of the time.

use std::io::Result;

use borsh::BorshDeserialize;

use super::segment::SegmentEntry;
use crate::amount::SequenceNumber;
use crate::order::TransferOrder;
use crate::record::Record;

/// The kind bytes of [`Record::Lock`], [`Record::Confirmation`] and [`Record::Credit`].
const LOCK: u8 = 0;
const CONFIRMATION: u8 = 1;
const CREDIT: u8 = 2;

/// A record of a journal, without what means nothing for a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outline {
    /// An account took a number.
    Taken(SegmentEntry),
    /// Another record.
    Other(Record),
}

impl Outline {
    /// Decodes a record as the journal has it; `None` of one that means nothing for a checkpoint. The journal has checked
    /// that the bytes are those that were written, so what is left out is not decoded.
    ///
    /// # Errors
    /// If the bytes are no record.
    pub fn decode(record: &[u8]) -> Result<Option<Self>> {
        Ok(match record.split_first() {
            Some((&(LOCK | CREDIT), _)) => None,
            // It begins with the certificate, which begins with the order.
            Some((&CONFIRMATION, mut rest)) => {
                Some(Self::Taken(SegmentEntry::Executed(TransferOrder::deserialize(&mut rest)?)))
            }
            _ => Some(match Record::try_from_slice(record)? {
                Record::Void { account, sent } => {
                    Self::Taken(SegmentEntry::Void { account, sequence: SequenceNumber(sent.number) })
                }
                Record::PrivateConfirmation(confirmation) => Self::Taken(SegmentEntry::private(&confirmation)),
                Record::PrivateLock(_) => return Ok(None),
                other => Self::Other(other),
            }),
        })
    }
}
