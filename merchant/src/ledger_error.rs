//! Errors of the ledger: of the shop's requests, of the database, and of its folder.

use fastpay_core::Amount;
use fastpay_wallet::folder::FolderError;

use crate::store::StoreError;

/// Why the ledger cannot serve a request.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Another service uses the folder, or the file system failed.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The request contradicts an earlier one, or names something that does not exist.
    #[error(transparent)]
    Request(#[from] RequestError),
}

impl From<rusqlite::Error> for LedgerError {
    fn from(error: rusqlite::Error) -> Self {
        StoreError::Database(error).into()
    }
}

/// Why a request of the shop is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The reference belongs to an invoice with other terms.
    #[error("reference {0:?} already belongs to an invoice with other terms; use another reference")]
    OtherTerms(String),
    /// The reference belongs to an invoice that an earlier program moved to archive/.
    #[error("reference {reference:?} belongs to the archived invoice {id}; use another reference")]
    Archived {
        /// The reference.
        reference: String,
        /// The invoice.
        id: String,
    },
    /// The memo belongs to another invoice.
    #[error("another invoice has this memo; omit the memo to have one assigned")]
    MemoTaken,
    /// The number of unpaid invoices has reached this limit.
    #[error("the limit of {0} open invoices is reached; wait until some are paid or expire")]
    TooManyOpen(usize),
    /// The reference belongs to a list with other lines.
    #[error("reference {0:?} already belongs to a list of other refunds; use another reference")]
    OtherRefunds(String),
    /// The reference belongs to a payout with other terms.
    #[error("reference {0:?} already belongs to a payout with other terms; use another reference")]
    OtherPayout(String),
    /// There is no such invoice.
    #[error("there is no invoice with the ID {0:?}")]
    UnknownInvoice(String),
    /// The requested amount is more than was received, or than is left.
    #[error("only {left} of the smallest unit of {invoice} can still be refunded")]
    NotSoMuch {
        /// The invoice.
        invoice: String,
        /// The amount that was paid for it and is on no list yet.
        left: Amount,
    },
    /// The list would be empty.
    #[error(
        "nothing is to be refunded: no invoice was overpaid, paid twice, late or underpaid at its end, or it is on a list already"
    )]
    NothingDue,
}
