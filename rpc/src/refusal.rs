//! The reasons for which an authority refuses a vote or a confirmation.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fastpay_core::{Balance, Digest, Epoch, Rejection, SequenceNumber, ShardId, TransferOrder};

use crate::convert::{self, Malformed};
use crate::proto;
use crate::proto::refused::Code;

/// The maximum number of characters kept of an authority's text.
const MESSAGE_CHARS_MAX: usize = 300;

/// Why an authority refused a request, and what to do about it.
///
/// An authority may lie: a pending order must be verified, and a sequence number proven by the
/// certificate before it, prior to acting on either.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The authority could not decode the message.
    #[error("the authority could not read the request: {0}")]
    Malformed(String),
    /// The order or certificate is invalid in any state of the account.
    #[error("{0}")]
    Invalid(String),
    /// Another shard owns the account.
    #[error("the account belongs to shard {0} of this authority; send it there")]
    WrongShard(ShardId),
    /// The account is locked on another order.
    #[error(
        "the account is locked on another order of sequence number {}; finish that one first",
        .0.transfer.sequence()
    )]
    OrderPending(Box<TransferOrder>),
    /// The authority lacks the certificates from this number on.
    #[error("the authority expects sequence number {0}; first confirm the certificates from there on")]
    SequenceTooHigh(SequenceNumber),
    /// The number is already confirmed; the value is the account's next number.
    #[error("this sequence number is already confirmed; the next one is {0}")]
    AlreadyConfirmed(SequenceNumber),
    /// The account's balance at the authority, which is too small.
    #[error("the balance at the authority is {0}; confirm there what the account received, or order less")]
    InsufficientBalance(Balance),
    /// The sequence number of the first certificate that the authority lacks.
    #[error("confirm the certificate of sequence number {0} at the authority first")]
    MissingCertificate(SequenceNumber),
    /// The committee runs without a Primary, so it redeems nothing.
    #[error("this committee runs without a Primary: nothing can be redeemed")]
    NoPrimary,
    /// The authority's queue is full. Retry after this delay, in whole milliseconds; zero if the authority names none.
    #[error("the authority is busy; send the same again after {} ms", .0.as_millis())]
    Busy(Duration),
    /// The authority is shutting down.
    #[error("the authority is stopping; send the same again when it is back")]
    Stopping,
    /// The authority does not vote in this epoch, its current one; it still confirms certificates.
    #[error("the authority does not vote in epoch {0}; ask the others")]
    NotVoting(Epoch),
    /// The authority was restored from an older copy and may have voted for another order of this number. It votes for
    /// the account again from the given number on, if it knows that number already.
    #[error(
        "the authority was restored from an older copy and may have voted for another order with this number; {}",
        match .0 {
            Some(from) => format!("it votes for the account from number {from} on; ask the others"),
            None => "it is recovering its votes from the others; ask them, or ask it again later".to_owned(),
        }
    )]
    CatchingUp(Option<SequenceNumber>),
    /// The authority's disk is nearly full until its operator makes room. It still confirms. Retry after this delay.
    #[error(
        "the authority's disk is nearly full: it votes for no new order, and confirms certificates; ask the others, or it again after {} s",
        .0.as_secs()
    )]
    DiskLow(Duration),
    /// The account's orders have filled their share of the authority's disk. Retry after this delay.
    #[error(
        "this account has used up its share of the authority's disk; send the same again after {} ms",
        .0.as_millis()
    )]
    AccountBudget(Duration),
    /// The orders from the client's address have filled their share of the authority's disk. Retry after this delay.
    #[error(
        "this network address has used up its share of the authority's disk; send the same again after {} ms",
        .0.as_millis()
    )]
    AddressBudget(Duration),
    /// The owner has requested the contract to unlock this number.
    #[error(
        "the owner asked to unlock sequence number {0}: no order of it is voted for or executed until the contract has \
         decided; see `fastpay unlock`"
    )]
    Frozen(SequenceNumber),
    /// The contract has decided for the order with this digest.
    #[error("the contract decided that the order with the digest {0} has this sequence number")]
    Overruled(Digest),
    /// The contract has voided the number; the value is the account's next number.
    #[error(
        "the contract voided this sequence number, so nothing was paid with it; the next one is {0}. Run `fastpay \
         unlock` to record it"
    )]
    Voided(SequenceNumber),
    /// The authority has read no final block that contains a request to unlock this number.
    #[error("the authority knows of no final request to unlock sequence number {0}; ask again when it is final")]
    NotRequested(SequenceNumber),
    /// The authority votes to void the number from this chain time on, in seconds since 1970.
    #[error("the authority votes to void the number from chain time {0} on (Unix seconds)")]
    WindowOpen(u64),
    /// The newest final block of Ethereum that the authority has read is too old.
    #[error("the newest final block that the authority has read is too old; ask the others, or send the same again")]
    PrimaryTooOld,
    /// The authority does not know the committee of the certificate's epoch yet, or has closed the epoch before and does
    /// not vote in this one yet.
    #[error("the authority has not taken up epoch {0} yet; send the same again later")]
    UnknownEpoch(Epoch),
    /// A recovery has ended the certificate's epoch; the value is the first epoch whose certificates count.
    #[error(
        "certificates from before epoch {0} count for nothing since a recovery: the archive shows which orders do, and \
         others can be submitted again"
    )]
    EpochEnded(Epoch),
    /// The certificate's epoch, the value, ended too long ago for it to count by itself.
    #[error(
        "certificates of epoch {0} do not count by themselves any more: send it with the votes of f + 1 members that it \
         exists; if they are fewer, send its order again, to be voted for anew"
    )]
    Unattested(Epoch),
}

impl Refusal {
    /// The delay before the same request should be sent again, if the authority named one.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Busy(wait) | Self::DiskLow(wait) | Self::AccountBudget(wait) | Self::AddressBudget(wait) => {
                Some(*wait)
            }
            _ => None,
        }
    }

    /// Whether the authority may accept the same request later although the client does nothing in between.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(
            self,
            Self::Busy(_)
                | Self::Stopping
                | Self::UnknownEpoch(_)
                | Self::CatchingUp(None)
                | Self::NotRequested(_)
                | Self::PrimaryTooOld
                | Self::DiskLow(_)
                | Self::AccountBudget(_)
                | Self::AddressBudget(_)
        )
    }
}

impl From<Rejection> for Refusal {
    fn from(rejection: Rejection) -> Self {
        match rejection {
            Rejection::WrongShard { shard, .. } => Self::WrongShard(shard),
            Rejection::OrderPending { pending } => Self::OrderPending(Box::new(Arc::unwrap_or_clone(pending))),
            Rejection::SequenceTooHigh { expected } => Self::SequenceTooHigh(expected),
            Rejection::AlreadyConfirmed { expected } => Self::AlreadyConfirmed(expected),
            Rejection::InsufficientBalance { balance, .. } => Self::InsufficientBalance(balance),
            Rejection::MissingCertificate { missing } => Self::MissingCertificate(missing),
            Rejection::VotesForgotten { floor } => Self::CatchingUp(floor),
            Rejection::EpochClosed { epoch } => Self::UnknownEpoch(Epoch(epoch.0.saturating_add(1))),
            Rejection::NoPrimary => Self::NoPrimary,
            Rejection::Frozen { sequence } => Self::Frozen(sequence),
            Rejection::Overruled { upheld } => Self::Overruled(upheld),
            Rejection::Voided { expected } => Self::Voided(expected),
            Rejection::NotRequested { sequence } => Self::NotRequested(sequence),
            Rejection::WindowOpen { voidable_at } => Self::WindowOpen(voidable_at),
            Rejection::PrimaryTooOld => Self::PrimaryTooOld,
            Rejection::Unattested { epoch } => Self::Unattested(epoch),
            Rejection::NoDepositMemo => Self::Invalid(rejection.to_string()),
            // No authority sends these three to a client.
            Rejection::SynchronizationGap { .. } | Rejection::CreditGap { .. } | Rejection::CertificateKnown { .. } => {
                Self::Invalid(rejection.to_string())
            }
        }
    }
}

impl From<&Refusal> for proto::Refused {
    fn from(refusal: &Refusal) -> Self {
        let mut refused = Self { message: refusal.to_string(), ..Self::default() };
        let code = match refusal {
            Refusal::Malformed(message) => {
                refused.message.clone_from(message);
                Code::Malformed
            }
            Refusal::Invalid(_) => Code::Invalid,
            Refusal::WrongShard(shard) => {
                refused.shard = shard.0;
                Code::WrongShard
            }
            Refusal::OrderPending(pending) => {
                refused.pending = Some(pending.as_ref().into());
                Code::OrderPending
            }
            Refusal::SequenceTooHigh(expected) => {
                refused.expected_sequence = expected.0;
                Code::SequenceTooHigh
            }
            Refusal::AlreadyConfirmed(expected) => {
                refused.expected_sequence = expected.0;
                Code::AlreadyConfirmed
            }
            Refusal::InsufficientBalance(balance) => {
                refused.balance = Bytes::copy_from_slice(&balance.to_be_bytes());
                Code::InsufficientBalance
            }
            Refusal::MissingCertificate(missing) => {
                refused.expected_sequence = missing.0;
                Code::MissingCertificate
            }
            Refusal::NoPrimary => Code::NoPrimary,
            Refusal::Busy(_) => Code::Busy,
            Refusal::DiskLow(_) => Code::DiskLow,
            Refusal::AccountBudget(_) => Code::AccountBudget,
            Refusal::AddressBudget(_) => Code::AddressBudget,
            Refusal::Stopping => Code::Stopping,
            Refusal::NotVoting(epoch) => {
                refused.epoch = epoch.0;
                Code::NotVoting
            }
            Refusal::CatchingUp(from) => {
                // An authority never names 0 here.
                refused.expected_sequence = from.map_or(0, |from| from.0);
                Code::CatchingUp
            }
            Refusal::UnknownEpoch(epoch) => {
                refused.epoch = epoch.0;
                Code::UnknownEpoch
            }
            Refusal::EpochEnded(since) => {
                refused.epoch = since.0;
                Code::EpochEnded
            }
            Refusal::Unattested(epoch) => {
                refused.epoch = epoch.0;
                Code::Unattested
            }
            Refusal::Frozen(sequence) => {
                refused.expected_sequence = sequence.0;
                Code::Frozen
            }
            Refusal::Overruled(upheld) => {
                refused.upheld = Bytes::copy_from_slice(upheld.as_slice());
                Code::Overruled
            }
            Refusal::Voided(expected) => {
                refused.expected_sequence = expected.0;
                Code::Voided
            }
            Refusal::NotRequested(sequence) => {
                refused.expected_sequence = sequence.0;
                Code::NotRequested
            }
            Refusal::WindowOpen(voidable_at) => {
                refused.voidable_at = *voidable_at;
                Code::WindowOpen
            }
            Refusal::PrimaryTooOld => Code::PrimaryTooOld,
        };
        if let Some(wait) = refusal.retry_after() {
            refused.retry_after_ms = u32::try_from(wait.as_millis()).unwrap_or(u32::MAX);
        }
        refused.set_code(code);
        refused
    }
}

impl TryFrom<proto::Refused> for Refusal {
    type Error = Malformed;
    fn try_from(refused: proto::Refused) -> Result<Self, Malformed> {
        let expected = SequenceNumber(refused.expected_sequence);
        let retry_after = Duration::from_millis(refused.retry_after_ms.into());
        Ok(match refused.code() {
            Code::Unspecified => return Err(Malformed::Missing("refused.code")),
            Code::Malformed => Self::Malformed(printable(&refused.message)),
            Code::Invalid => Self::Invalid(printable(&refused.message)),
            Code::WrongShard => Self::WrongShard(ShardId(refused.shard)),
            Code::OrderPending => {
                let pending = refused.pending.ok_or(Malformed::Missing("refused.pending"))?;
                Self::OrderPending(Box::new(pending.try_into()?))
            }
            Code::SequenceTooHigh => Self::SequenceTooHigh(expected),
            Code::AlreadyConfirmed => Self::AlreadyConfirmed(expected),
            Code::InsufficientBalance => {
                Self::InsufficientBalance(convert::balance("refused.balance", &refused.balance)?)
            }
            Code::MissingCertificate => Self::MissingCertificate(expected),
            Code::NoPrimary => Self::NoPrimary,
            Code::Busy => Self::Busy(retry_after),
            Code::DiskLow => Self::DiskLow(retry_after),
            Code::AccountBudget => Self::AccountBudget(retry_after),
            Code::AddressBudget => Self::AddressBudget(retry_after),
            Code::Stopping => Self::Stopping,
            Code::NotVoting => Self::NotVoting(Epoch(refused.epoch)),
            Code::CatchingUp => Self::CatchingUp((expected.0 > 0).then_some(expected)),
            Code::UnknownEpoch => Self::UnknownEpoch(Epoch(refused.epoch)),
            Code::EpochEnded => Self::EpochEnded(Epoch(refused.epoch)),
            Code::Unattested => Self::Unattested(Epoch(refused.epoch)),
            Code::Frozen => Self::Frozen(expected),
            Code::Overruled => Self::Overruled(convert::digest("refused.upheld", &refused.upheld)?),
            Code::Voided => Self::Voided(expected),
            Code::NotRequested => Self::NotRequested(expected),
            Code::WindowOpen => Self::WindowOpen(refused.voidable_at),
            Code::PrimaryTooOld => Self::PrimaryTooOld,
        })
    }
}

/// A peer's text without control characters and cut to 300 characters, safe to print on a terminal.
#[must_use]
pub fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(MESSAGE_CHARS_MAX).collect()
}
