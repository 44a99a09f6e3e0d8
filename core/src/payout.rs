//! Payouts: one order that pays many people. One signature, one lock and one certificate for up to
//! [`PAYOUT_OUTPUTS_MAX`] payments of one asset, executed entirely or not at all.

use std::ops::Deref;

use borsh::{BorshDeserialize, BorshSerialize};
use serde::{Deserialize, Serialize};

use crate::amount::{Amount, Asset, Memo, SequenceNumber};
use crate::identity::AccountId;
use crate::order::{InvalidTransfer, Payment};

/// At most so many outputs: the order, its certificate and its journal record stay far below the bounds of a message
/// and of a record.
pub const PAYOUT_OUTPUTS_MAX: usize = 256;

/// One payment of a payout.
#[derive(Clone, Debug, PartialEq, Eq, Hash, BorshSerialize, BorshDeserialize, Serialize, Deserialize)]
pub struct Output {
    /// Who is paid.
    pub recipient: AccountId,
    /// How much.
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
    /// Where there is no output, there are too many, or the sum has more than 128 bits.
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

/// As a list; the sum is not stored.
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
    /// Who pays.
    pub sender: AccountId,
    /// What is moved.
    pub asset: Asset,
    /// To whom, and how much.
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
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Receipt {
    /// What was paid, with the output's own memo where it is an output.
    pub payment: Payment,
    /// The output's number in its payout, from 0; none for a payment that is an order of its own.
    pub output: Option<u16>,
}
