//! Why a request got no answer: problem details (RFC 9457), with a code that is stable, what to do, and the facts.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::order::TransferOrder;
use super::text::{Bytes32, Decimal, Hex, Int256, Uint64};
use crate::Refusal;
use crate::http::{ProblemKind, Retry, TYPE_PREFIX};

crate::problem_kinds! {
    /// The kind of problem.
    ProblemCode
    /// The request cannot be read.
    Malformed "malformed" 400 Never "The request cannot be read",
        "Correct the request as the detail says.";
    /// An order or certificate is not valid, whatever the state.
    Invalid "invalid" 422 Never "The order or certificate is not valid",
        "Correct what the detail names, and sign again where that changes the transfer.";
    /// The account is locked on another order: `pending`.
    OrderPending "order-pending" 409 AfterChange "The account is locked on another order",
        "Finish the pending order first: gather votes for it and confirm its certificate.";
    /// Certificates from `expectedSequence` on are missing here.
    SequenceTooHigh "sequence-too-high" 409 AfterChange "The sequence number is too high",
        "Confirm the certificates from expectedSequence on here; the other authorities have them.";
    /// The number is used; the next one is `expectedSequence`.
    AlreadyConfirmed "already-confirmed" 409 Never "The sequence number is already confirmed",
        "Read the certificate of this number. To order something else, sign with expectedSequence.";
    /// The account holds `balance` here.
    InsufficientBalance "insufficient-balance" 409 AfterChange "The balance does not cover the amount",
        "Confirm here what the account received elsewhere, or order less.";
    /// The certificate of `expectedSequence` must come first.
    MissingCertificate "missing-certificate" 409 AfterChange "An earlier certificate is missing",
        "Confirm the certificates from expectedSequence on here first; the other authorities have them.";
    /// The redemptions at `positions` of the batch are not confirmed here.
    RedemptionsMissing "redemptions-missing" 409 AfterChange "Redemptions are not confirmed here",
        "Confirm the certificates of the redemptions at these positions here, then ask again.";
    /// Nothing can be redeemed.
    NoPrimary "no-primary" 409 Never "This committee runs without a Primary",
        "Pay to an account instead: nothing can be redeemed here.";
    /// Too much is queued.
    Busy "busy" 503 Later "The authority is busy",
        "Send the same again after retryAfterMs.";
    /// It shuts down.
    Stopping "stopping" 503 Later "The authority is stopping",
        "Send the same again when it is back; ask the others meanwhile.";
    /// It has no vote in `epoch`, the current one here.
    NotVoting "not-voting" 503 AfterChange "The authority does not vote in this epoch",
        "Ask the others for their votes. This one still confirms certificates.";
    /// It does not know the committee of `epoch` yet.
    UnknownEpoch "unknown-epoch" 503 Later "The epoch is not known here yet",
        "Send the same again when the authority has seen the rotation.";
    /// A recovery has ended the certificate's epoch; certificates count from `epoch` on.
    EpochEnded "epoch-ended" 409 Never "A recovery has ended the certificate's epoch",
        "Read the archive: it shows whether the order counts. If it does not, submit the order again.";
    /// The certificate's epoch, `epoch`, ended too long ago for it to count by itself.
    Unattested "unattested" 409 AfterChange "The certificate's epoch ended too long ago",
        "Submit it with the votes of f + 1 authorities that it exists. If fewer give one, submit its order again.";
    /// Restored from an older copy, it votes for the account from `expectedSequence` on, if it knows that already.
    CatchingUp "catching-up" 503 Later "The authority may have voted for another order of this number",
        "Ask the others for their votes; this one votes for the account again from expectedSequence on.";
    /// No new order is voted for, and certificates are confirmed.
    DiskLow "disk-low" 503 Later "The authority's disk is nearly full",
        "Ask the others for their votes; this one votes again when its operator has made room.";
    /// Its orders have filled their share of the disk.
    AccountBudget "account-budget" 429 Later "The account's payments have filled their share of the disk",
        "Send the same again after retryAfterMs, and order less often.";
    /// The orders from there have.
    AddressBudget "address-budget" 429 Later "Payments from this address have filled their share of the disk",
        "Send the same again after retryAfterMs. Operators can raise the share of an address.";
    /// The owner asked the contract to unlock the number.
    Frozen "frozen" 409 AfterChange "The sequence number is frozen",
        "Wait until the contract has decided what becomes of the number.";
    /// The contract decided for the order `upheld`.
    Overruled "overruled" 409 Never "The contract decided for another order",
        "Confirm the certificate of the order whose digest is upheld.";
    /// The contract voided the number; the next one is `expectedSequence`.
    Voided "voided" 409 Never "The contract voided the sequence number",
        "Nothing was paid with this number. Sign with expectedSequence.";
    /// No final block that was read here has a request to unlock the number.
    NotRequested "not-requested" 409 Later "No request to unlock the number is final here",
        "Send the request to the contract, and ask again once it is final.";
    /// Too early for a vote to void the number.
    WindowOpen "window-open" 409 Later "The unlock window is open",
        "Ask again at voidableAt, or ask all authorities for unanimous votes.";
    /// The newest final block that was read here is too old.
    PrimaryTooOld "primary-too-old" 503 Later "Ethereum is not followed here at the moment",
        "Send the same to the other authorities, and here again later.";
    /// There is none here.
    NotFound "not-found" 404 AfterChange "Not found here",
        "Check what was asked for. Another authority may have it already, or this one later.";
    /// The path exists, with other methods.
    MethodNotAllowed "method-not-allowed" 405 Never "The method is not allowed here",
        "Use a method that the Allow header names.";
    /// The body did not arrive in time.
    RequestTimeout "request-timeout" 408 Later "The body did not arrive in time",
        "Send the same again over a faster connection.";
    /// The body is longer than any that is taken here.
    TooLarge "too-large" 413 Never "The body is too long",
        "Send one order, one certificate, or a shorter batch.";
    /// The body is not JSON.
    UnsupportedMediaType "unsupported-media-type" 415 Never "The body is not JSON",
        "Send it with Content-Type: application/json.";
    /// The cursor is beyond the end of the account's lists here.
    CursorAhead "cursor-ahead" 409 AfterChange "The cursor is ahead of this authority",
        "Begin again with the cursor 0.0.0, and leave out what is known already.";
    /// Too many event streams are open.
    TooManyStreams "too-many-streams" 429 Later "Too many event streams are open",
        "Close streams that are not needed, or open this one at another authority.";
    /// The disk failed.
    HistoryUnreadable "history-unreadable" 500 Later "The authority cannot read its journal",
        "Ask another authority. The operator of this one is told in its log.";
    /// What comes before entry `first` is in the committee's archive, up to `checkpoint`.
    Pruned "pruned" 410 Never "The authority no longer keeps this",
        "Read from entry first on. What came before is in the committee's archive: read archived/sent or archived/received.";
    /// No archive here has what was asked for.
    NotArchived "not-archived" 404 AfterChange "This authority's archive does not have this",
        "Ask another authority. The detail says what its archive lacks.";
}

/// Why a request got no answer, and what to do about it.
///
/// An authority may lie: a pending order must be verified, and a sequence number proven by the certificate before it,
/// prior to acting on either.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Problem {
    /// `urn:fastpay:problem:` and the code.
    pub r#type: String,
    /// The same for all problems of the code.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// The details of this occurrence.
    pub detail: String,
    /// A stable code for programs.
    pub code: ProblemCode,
    /// The recommended action, for people.
    pub action: String,
    /// Whether the same request may be sent again.
    pub retry: Retry,
    /// The waiting time in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// The order that the account is locked on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<Box<TransferOrder>>,
    /// The number that the authority expects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_sequence: Option<Uint64>,
    /// The account's balance here of the order's asset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub balance: Option<Int256>,
    /// The digest of the order that has the number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upheld: Option<Bytes32>,
    /// The time in seconds since 1970, by the chain's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub voidable_at: Option<Uint64>,
    /// The number of the checkpoint up to which the committee's archive has what is pruned here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<Uint64>,
    /// The number of the first entry of the list that is not pruned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<Uint64>,
    /// The epoch that the problem is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<Uint64>,
    /// The positions, from 0, of the requested redemptions that are not confirmed here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub positions: Option<Vec<u32>>,
}

impl Problem {
    /// A problem of a kind, with what happened this time.
    #[must_use]
    pub fn new(code: ProblemCode, detail: impl Into<String>) -> Self {
        Self {
            r#type: format!("{TYPE_PREFIX}{}", code.as_str()),
            title: code.title().into(),
            status: code.status(),
            detail: detail.into(),
            code,
            action: code.action().into(),
            retry: code.retry(),
            retry_after_ms: None,
            pending: None,
            expected_sequence: None,
            balance: None,
            upheld: None,
            voidable_at: None,
            checkpoint: None,
            first: None,
            epoch: None,
            positions: None,
        }
    }

    /// Some redemptions of a batch, at these positions, are not confirmed.
    #[must_use]
    pub fn missing_redemptions(positions: &[usize]) -> Self {
        let detail = format!("{} of them are not confirmed here as redemptions; see positions", positions.len());
        Self::new(ProblemCode::RedemptionsMissing, detail).at(positions)
    }

    /// The accounts of some redemptions of a batch, at these positions, owe.
    #[must_use]
    pub fn uncovered_redemptions(positions: &[usize]) -> Self {
        let count = positions.len();
        let detail = format!("stolen keys may have certified {count} of them, whose accounts owe here; see positions");
        Self::new(ProblemCode::InsufficientBalance, detail).at(positions)
    }

    fn at(self, positions: &[usize]) -> Self {
        let positions = positions.iter().map(|position| u32::try_from(*position).unwrap_or(u32::MAX)).collect();
        Self { positions: Some(positions), ..self }
    }

    /// The same, with when to send the request again.
    #[must_use]
    pub fn retry_after(self, wait: Duration) -> Self {
        Self { retry_after_ms: Some(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)), ..self }
    }
}

impl From<&Refusal> for ProblemCode {
    fn from(refusal: &Refusal) -> Self {
        match refusal {
            Refusal::Malformed(_) => Self::Malformed,
            // Clients that route by account never get `WrongShard`.
            Refusal::Invalid(_) | Refusal::WrongShard(_) => Self::Invalid,
            Refusal::OrderPending(_) => Self::OrderPending,
            Refusal::SequenceTooHigh(_) => Self::SequenceTooHigh,
            Refusal::AlreadyConfirmed(_) => Self::AlreadyConfirmed,
            Refusal::InsufficientBalance(_) => Self::InsufficientBalance,
            Refusal::MissingCertificate(_) => Self::MissingCertificate,
            Refusal::NoPrimary => Self::NoPrimary,
            Refusal::Busy(_) => Self::Busy,
            Refusal::Stopping => Self::Stopping,
            Refusal::NotVoting(_) => Self::NotVoting,
            Refusal::CatchingUp(_) => Self::CatchingUp,
            Refusal::UnknownEpoch(_) => Self::UnknownEpoch,
            Refusal::EpochEnded(_) => Self::EpochEnded,
            Refusal::Unattested(_) => Self::Unattested,
            Refusal::DiskLow(_) => Self::DiskLow,
            Refusal::AccountBudget(_) => Self::AccountBudget,
            Refusal::AddressBudget(_) => Self::AddressBudget,
            Refusal::Frozen(_) => Self::Frozen,
            Refusal::Overruled(_) => Self::Overruled,
            Refusal::Voided(_) => Self::Voided,
            Refusal::NotRequested(_) => Self::NotRequested,
            Refusal::WindowOpen(_) => Self::WindowOpen,
            Refusal::PrimaryTooOld => Self::PrimaryTooOld,
        }
    }
}

impl From<&Refusal> for Problem {
    fn from(refusal: &Refusal) -> Self {
        let problem = Self::new(refusal.into(), refusal.to_string());
        let expecting = |sequence: u64| Some(Decimal(sequence));
        match refusal {
            Refusal::Malformed(reason) => Self { detail: reason.clone(), ..problem },
            Refusal::OrderPending(pending) => Self { pending: Some(Box::new(pending.as_ref().into())), ..problem },
            Refusal::SequenceTooHigh(expected)
            | Refusal::AlreadyConfirmed(expected)
            | Refusal::Frozen(expected)
            | Refusal::Voided(expected)
            | Refusal::NotRequested(expected)
            | Refusal::MissingCertificate(expected) => Self { expected_sequence: expecting(expected.0), ..problem },
            Refusal::InsufficientBalance(balance) => Self { balance: Some(Decimal(*balance)), ..problem },
            Refusal::Overruled(upheld) => Self { upheld: Some(Hex(upheld.0)), ..problem },
            Refusal::WindowOpen(voidable_at) => Self { voidable_at: Some(Decimal(*voidable_at)), ..problem },
            Refusal::Busy(wait)
            | Refusal::DiskLow(wait)
            | Refusal::AccountBudget(wait)
            | Refusal::AddressBudget(wait) => problem.retry_after(*wait),
            Refusal::NotVoting(epoch)
            | Refusal::UnknownEpoch(epoch)
            | Refusal::EpochEnded(epoch)
            | Refusal::Unattested(epoch) => Self { epoch: Some(Decimal(epoch.0)), ..problem },
            Refusal::CatchingUp(Some(from)) => {
                Self { retry: Retry::AfterChange, expected_sequence: expecting(from.0), ..problem }
            }
            Refusal::Invalid(_)
            | Refusal::WrongShard(_)
            | Refusal::NoPrimary
            | Refusal::PrimaryTooOld
            | Refusal::Stopping
            | Refusal::CatchingUp(None) => problem,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_written_as_its_name() {
        for code in ProblemCode::ALL {
            assert_eq!(serde_json::to_string(code).unwrap(), format!("\"{}\"", code.as_str()));
            let problem = Problem::new(*code, "what happened");
            assert_eq!(problem.r#type, format!("urn:fastpay:problem:{}", code.as_str()));
            assert_eq!(serde_json::from_str::<Problem>(&serde_json::to_string(&problem).unwrap()).unwrap(), problem);
        }
    }
}
