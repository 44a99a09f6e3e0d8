//! The Primary of a wallet, of either kind: a contract on Ethereum, or a committee on a ledger.

use fastpay_core::{AccountId, SequenceNumber, VerifiedCertificate};
use fastpay_ethereum::{Payout, Primary};
use fastpay_ledger_client::{ClientError, CommitteeClient, oldest_state};

use crate::error::WalletError;
use crate::spent::{RedemptionState, redemption_state};
use crate::wallet::Wallet;

/// A Primary.
#[derive(Debug)]
pub enum AnyPrimary {
    /// A contract on Ethereum.
    Contract(Box<Primary>),
    /// A committee on a ledger.
    Ledger(Box<CommitteeClient>),
}

impl Wallet {
    /// The Primary, after following the rotations of the committee.
    ///
    /// # Errors
    /// As [`Wallet::primary`] and [`Wallet::ledger`].
    pub async fn any_primary(&self) -> Result<AnyPrimary, WalletError> {
        Ok(match self.ledger().await? {
            Some(ledger) => AnyPrimary::Ledger(Box::new(ledger)),
            None => AnyPrimary::Contract(Box::new(self.primary().await?)),
        })
    }
}

impl AnyPrimary {
    /// How far a certificate's redemption is: by the contract's newest block, [`RedemptionState::Spent`] if it is spent and
    /// no node serves the log; or by the ledger's newest certified state that f + 1 members show.
    ///
    /// # Errors
    /// If the Primary does not answer.
    pub async fn redemption_state(&self, certificate: &VerifiedCertificate) -> Result<RedemptionState, WalletError> {
        match self {
            Self::Contract(primary) => redemption_state(primary, certificate).await,
            Self::Ledger(ledger) => {
                let (sender, sequence) = (certificate.transfer().sender(), certificate.transfer().sequence());
                let spent = ledger.spent(sender, sequence, oldest_state()).await?;
                Ok(RedemptionState::on_ledger(certificate.digest(), spent))
            }
        }
    }

    /// Whether a number is spent, or in a contract's queue. `None` if the Primary does not answer now.
    pub(crate) async fn is_spent(
        &self,
        sender: AccountId,
        sequence: SequenceNumber,
    ) -> Result<Option<bool>, WalletError> {
        match self {
            Self::Contract(primary) => match primary.payout(sender, sequence).await {
                Ok(payout) => Ok(Some(payout != Payout::Open)),
                Err(error) if error.is_retryable() => Ok(None),
                Err(error) => Err(error.into()),
            },
            Self::Ledger(ledger) => match ledger.spent(sender, sequence, oldest_state()).await {
                Ok(spent) => Ok(Some(spent.is_some())),
                Err(ClientError::NoAnswer { .. }) => Ok(None),
                Err(error) => Err(error.into()),
            },
        }
    }
}
