//! The transfers that an order can request: a payment, a redemption [FP §4.2], or a payout. A payout is one order that
//! pays many people: one signature, one lock and one certificate for up to [`PAYOUT_OUTPUTS_MAX`] payments of one
//! asset, executed entirely or not at all.

use std::ops::Deref;

use borsh::{BorshDeserialize, BorshSerialize};
use serde::{Deserialize, Serialize};

use crate::amount::{Amount, Asset, Memo, SequenceNumber};
use crate::identity::{AccountId, PrimaryAddress};
use crate::private::is_deposit_memo;

/// Moves `amount` to another FastPay account.
#[derive(Clone, Debug, PartialEq, Eq, Hash, BorshSerialize, BorshDeserialize, Serialize, Deserialize)]
pub struct Payment {
    /// The account that pays.
    pub sender: AccountId,
    /// The account that is paid.
    pub recipient: AccountId,
    /// The asset.
    pub asset: Asset,
    /// The amount, in the asset's smallest unit.
    pub amount: Amount,
    /// The sender's next number.
    pub sequence: SequenceNumber,
    /// Free for the user.
    pub memo: Memo,
}

impl Payment {
    /// Whether it pays the pool of private payments, and its memo makes no coin of it.
    #[must_use]
    pub fn is_lost_in_pool(&self) -> bool {
        self.recipient == AccountId::PRIVATE_POOL && !is_deposit_memo(&self.memo)
    }
}

/// Moves `amount` out, to the Primary: the recipient gets `amount − fee`, and the submitter of the certificate to the
/// contract gets `fee`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, BorshSerialize, BorshDeserialize, Serialize, Deserialize)]
pub struct Redemption {
    /// The account that redeems.
    pub sender: AccountId,
    /// The address that is paid on the Primary.
    pub recipient: PrimaryAddress,
    /// The asset.
    pub asset: Asset,
    /// The amount debited, in the asset's smallest unit.
    pub amount: Amount,
    /// The part of it that goes to the relayer.
    pub fee: Amount,
    /// The sender's next number.
    pub sequence: SequenceNumber,
    /// Free for the user.
    pub memo: Memo,
}

/// A transfer that an order requests.
#[derive(Clone, Debug, PartialEq, Eq, Hash, BorshSerialize, BorshDeserialize, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Transfer {
    /// To FastPay.
    Payment(Payment),
    /// To the Primary.
    Redemption(Redemption),
    /// To many accounts of FastPay.
    Payout(Payout),
}

impl Transfer {
    /// The account whose balance is debited.
    #[must_use]
    pub fn sender(&self) -> AccountId {
        match self {
            Self::Payment(payment) => payment.sender,
            Self::Redemption(redemption) => redemption.sender,
            Self::Payout(payout) => payout.sender,
        }
    }

    /// The asset.
    #[must_use]
    pub fn asset(&self) -> Asset {
        match self {
            Self::Payment(payment) => payment.asset,
            Self::Redemption(redemption) => redemption.asset,
            Self::Payout(payout) => payout.asset,
        }
    }

    /// The amount debited, in the asset's smallest unit.
    #[must_use]
    pub fn amount(&self) -> Amount {
        match self {
            Self::Payment(payment) => payment.amount,
            Self::Redemption(redemption) => redemption.amount,
            Self::Payout(payout) => payout.outputs.total(),
        }
    }

    /// Its number among the sender's.
    #[must_use]
    pub fn sequence(&self) -> SequenceNumber {
        match self {
            Self::Payment(payment) => payment.sequence,
            Self::Redemption(redemption) => redemption.sequence,
            Self::Payout(payout) => payout.sequence,
        }
    }

    /// The user's own bytes.
    #[must_use]
    pub fn memo(&self) -> Memo {
        match self {
            Self::Payment(payment) => payment.memo,
            Self::Redemption(redemption) => redemption.memo,
            Self::Payout(payout) => payout.memo,
        }
    }

    /// The payment that it makes to an account of FastPay under this name: itself, or one output of a payout.
    #[must_use]
    pub fn payment(&self, output: Option<u16>) -> Option<Payment> {
        match (self, output) {
            (Self::Payment(payment), None) => Some(payment.clone()),
            (Self::Payout(payout), Some(output)) => payout.payment(output),
            _ => None,
        }
    }

    /// All payments that it makes to accounts of FastPay, in order.
    pub fn receipts(&self) -> impl Iterator<Item = Receipt> + use<'_> {
        let (payment, payout) = match self {
            Self::Payment(payment) => (Some(payment), None),
            Self::Redemption(_) => (None, None),
            Self::Payout(payout) => (None, Some(payout)),
        };
        let payment = payment.map(|payment| Receipt { payment: payment.clone(), output: None });
        let outputs = payout.into_iter().flat_map(|payout| {
            let numbers = payout.outputs.numbered().map(|(number, _)| number);
            numbers.filter_map(|number| Some(Receipt { payment: payout.payment(number)?, output: Some(number) }))
        });
        payment.into_iter().chain(outputs)
    }
}

impl From<Payment> for Transfer {
    fn from(payment: Payment) -> Self {
        Self::Payment(payment)
    }
}

impl From<Redemption> for Transfer {
    fn from(redemption: Redemption) -> Self {
        Self::Redemption(redemption)
    }
}

impl From<Payout> for Transfer {
    fn from(payout: Payout) -> Self {
        Self::Payout(payout)
    }
}

/// At most so many outputs: the order, its certificate and its journal record stay far below the bounds of a message
/// and of a record.
pub const PAYOUT_OUTPUTS_MAX: usize = 256;

/// One payment of a payout.
#[derive(Clone, Debug, PartialEq, Eq, Hash, BorshSerialize, BorshDeserialize, Serialize, Deserialize)]
pub struct Output {
    /// The account that is paid.
    pub recipient: AccountId,
    /// The amount, in the asset's smallest unit.
    pub amount: Amount,
    /// Free for the user.
    pub memo: Memo,
}

/// The outputs of one payout: at least one, at most [`PAYOUT_OUTPUTS_MAX`], with a sum that is an amount.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Vec<Output>", into = "Vec<Output>")]
pub struct Outputs {
    outputs: Vec<Output>,
    /// Their sum, computed once.
    total: Amount,
}

impl Outputs {
    /// Checks the number of outputs and adds up their amounts.
    ///
    /// # Errors
    /// If there is no output, there are too many, or the sum has more than 128 bits.
    pub fn new(outputs: Vec<Output>) -> Result<Self, InvalidTransfer> {
        if outputs.is_empty() {
            return Err(InvalidTransfer::NoOutputs);
        }
        if outputs.len() > PAYOUT_OUTPUTS_MAX {
            return Err(InvalidTransfer::TooManyOutputs { found: outputs.len() });
        }
        let total = outputs.iter().try_fold(Amount::ZERO, |sum, output| sum.checked_add(output.amount));
        let total = total.ok_or(InvalidTransfer::SumTooLarge)?;
        Ok(Self { outputs, total })
    }

    /// The sum of all amounts.
    #[must_use]
    pub fn total(&self) -> Amount {
        self.total
    }

    /// The outputs, each with its number from 0.
    pub fn numbered(&self) -> impl Iterator<Item = (u16, &Output)> {
        (0..).zip(&self.outputs)
    }
}

impl Deref for Outputs {
    type Target = [Output];
    fn deref(&self) -> &[Output] {
        &self.outputs
    }
}

impl TryFrom<Vec<Output>> for Outputs {
    type Error = InvalidTransfer;
    fn try_from(outputs: Vec<Output>) -> Result<Self, InvalidTransfer> {
        Self::new(outputs)
    }
}

impl From<Outputs> for Vec<Output> {
    fn from(outputs: Outputs) -> Self {
        outputs.outputs
    }
}

/// Encoded as a list; the sum is not stored.
impl BorshSerialize for Outputs {
    fn serialize<W: std::io::Write>(&self, writer: &mut W) -> std::io::Result<()> {
        BorshSerialize::serialize(&self.outputs, writer)
    }
}

impl BorshDeserialize for Outputs {
    fn deserialize_reader<R: std::io::Read>(reader: &mut R) -> std::io::Result<Self> {
        let count = u32::deserialize_reader(reader)?;
        let invalid = |error: InvalidTransfer| std::io::Error::new(std::io::ErrorKind::InvalidData, error.to_string());
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        if count > PAYOUT_OUTPUTS_MAX {
            return Err(invalid(InvalidTransfer::TooManyOutputs { found: count }));
        }
        let outputs: std::io::Result<_> = (0..count).map(|_| Output::deserialize_reader(reader)).collect();
        Self::new(outputs?).map_err(invalid)
    }
}

/// Moves an amount of one asset to each of many FastPay accounts. A recipient may occur several times.
#[derive(Clone, Debug, PartialEq, Eq, Hash, BorshSerialize, BorshDeserialize, Serialize, Deserialize)]
pub struct Payout {
    /// The account that pays.
    pub sender: AccountId,
    /// The asset.
    pub asset: Asset,
    /// The recipients and their amounts.
    pub outputs: Outputs,
    /// The sender's next number.
    pub sequence: SequenceNumber,
    /// Free for the user.
    pub memo: Memo,
}

impl Payout {
    /// An output as the payment that its recipient sees.
    #[must_use]
    pub fn payment(&self, output: u16) -> Option<Payment> {
        let Output { recipient, amount, memo } = *self.outputs.get(usize::from(output))?;
        Some(Payment { sender: self.sender, recipient, asset: self.asset, amount, sequence: self.sequence, memo })
    }
}

/// A payment that an account received. Its name is (sender, sequence, output).
#[derive(Clone, Debug, PartialEq, Eq, Hash, BorshSerialize, BorshDeserialize)]
pub struct Receipt {
    /// The payment, with the output's own memo if it is an output.
    pub payment: Payment,
    /// The output's number in its payout, from 0; none for a payment that is an order of its own.
    pub output: Option<u16>,
}

/// Why nobody may order this transfer, with any signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTransfer {
    /// Nothing is moved.
    #[error("the amount is zero; order at least one of the asset's smallest unit")]
    ZeroAmount,
    /// The relayer would get more than is debited.
    #[error("the fee {fee} exceeds the amount {amount}; lower the fee")]
    FeeAboveAmount {
        /// The amount debited.
        amount: Amount,
        /// The relayer's fee.
        fee: Amount,
    },
    /// Nobody can hold the key of the zero address: the value would be lost.
    #[error("the recipient is the zero address, which nobody owns; give the recipient's account")]
    ZeroRecipient,
    /// The contract cannot sign, and cannot collect what it would be paid: the value would be lost.
    #[error("the recipient is the FastPay contract itself, which cannot spend; give the recipient's account")]
    ContractRecipient,
    /// No number could follow it.
    #[error("sequence number 2^64 - 1 cannot be used")]
    LastSequence,
    /// A payout without outputs.
    #[error("the payout has no output; give at least one")]
    NoOutputs,
    /// A payout of too many outputs.
    #[error("the payout has {found} outputs; at most {PAYOUT_OUTPUTS_MAX} fit into one order, so split it")]
    TooManyOutputs {
        /// The number of its outputs.
        found: usize,
    },
    /// The amounts of a payout do not add up to an amount.
    #[error("the sum of the outputs has more than 128 bits; split the payout")]
    SumTooLarge,
    /// An output moves nothing.
    #[error("the amount of output {output} is zero; order at least one of the asset's smallest unit")]
    ZeroOutput {
        /// Its number, from 0.
        output: u16,
    },
    /// An output pays the zero address, the contract or the pool of private payments. None can spend it: it would be lost.
    #[error("the recipient of output {output} cannot spend; give the recipient's account")]
    OutputRecipient {
        /// Its number, from 0.
        output: u16,
    },
}
