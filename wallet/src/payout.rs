//! How a redemption leaves the contract: by its certificate; if its epoch has ended, by new votes of the current
//! committee; and, above the outflow limit, through the contract's queue.

use alloy::primitives::{Address, Bytes, U256};
use fastpay_client::QuorumError;
use fastpay_core::{
    AccountId, Amount, Asset, Epoch, ParseIdentityError, Redemption, TransactionIndex, Transfer, VerifiedCertificate,
};
use fastpay_ethereum::{Call, Payout, Primary, Queued, certified_redemption};
use fastpay_ledger_client::{Reserve, ReserveError, unpacked_votes};
use fastpay_ledger_statement::Rejection;

use crate::error::WalletError;
use crate::spent::logged;
use crate::wallet::Wallet;

/// Votes of an epoch that ends within this many seconds are not used, because a transaction may wait for its block.
const ENDING_MARGIN_S: u64 = 120;

/// The number of the newest redemptions that are checked against the contract's queue.
const LOOKED_AT_MAX: usize = 100;

/// A redemption of this wallet that is in the contract's queue.
#[derive(Clone, Debug)]
pub struct QueuedRedemption {
    /// The redemption.
    pub redemption: Redemption,
    /// Its entry in the queue: who submitted it, and when it can be executed.
    pub queued: Queued,
    /// Whether it can be executed now, by the chain's clock.
    pub is_due: bool,
}

/// Refuses if the contract is paused, so that nothing is signed then.
///
/// # Errors
/// [`WalletError::Paused`], or the Primary does not answer.
pub async fn check_not_paused(primary: &Primary) -> Result<(), WalletError> {
    match primary.paused_until().await? {
        Some(until) => Err(WalletError::Paused { until }),
        None => Ok(()),
    }
}

/// Parses an Ethereum address, by the rules of an account's.
///
/// # Errors
/// If the text is not an address, or its capitals do not match: money paid to a mistyped address is lost.
pub fn parse_address(text: &str) -> Result<Address, String> {
    let wrong = || format!("{text:?} is not an Ethereum address: give 0x and 40 hexadecimal digits");
    match text.parse::<AccountId>() {
        Ok(account) => account.ethereum_address().ok_or_else(wrong),
        Err(error @ ParseIdentityError::Checksum(_)) => Err(error.to_string()),
        Err(_) => Err(wrong()),
    }
}

/// Refuses to pay FastPay's own contracts, because nobody could move the money.
///
/// # Errors
/// [`WalletError::RecipientIsFastPay`], or the Primary does not answer.
pub async fn check_recipient(primary: &Primary, recipient: Address) -> Result<(), WalletError> {
    if primary.is_fastpay(recipient).await? {
        return Err(WalletError::RecipientIsFastPay { recipient });
    }
    Ok(())
}

/// Refuses to fund the account of a contract, which can sign no order, so that nobody could spend the money.
///
/// # Errors
/// [`WalletError::AccountWithoutKey`], or the Primary does not answer.
pub async fn check_account(primary: &Primary, account: AccountId) -> Result<(), WalletError> {
    if let Some(address) = account.ethereum_address()
        && primary.is_contract(address).await?
    {
        return Err(WalletError::AccountWithoutKey { account });
    }
    Ok(())
}

/// A redemption with its entry in the contract's queue; `None` if it is not there, or another order used its number.
///
/// # Errors
/// If the Primary does not answer.
pub async fn queued_redemption(
    primary: &Primary,
    redemption: &Redemption,
) -> Result<Option<QueuedRedemption>, WalletError> {
    let (sender, sequence) = (redemption.sender, redemption.sequence);
    let Payout::Queued(queued) = primary.payout(sender, sequence).await? else { return Ok(None) };
    let digest = primary.domain().transfer_digest(&redemption.clone().into());
    if logged(primary, sender, [sequence].into()).await.get(&sequence).is_some_and(|logged| logged.digest != digest) {
        return Ok(None);
    }
    let is_due = queued.executable_at <= primary.latest_head().await?.timestamp();
    Ok(Some(QueuedRedemption { redemption: redemption.clone(), queued, is_due }))
}

/// Until when the contract would queue a redemption of this size now, in seconds since 1970; `None` if it would pay it
/// at once.
///
/// # Errors
/// If the Primary does not answer.
pub async fn would_queue(primary: &Primary, asset: Asset, amount: Amount) -> Result<Option<u64>, WalletError> {
    if U256::from(amount.0) <= primary.outflow_available(asset).await? {
        return Ok(None);
    }
    let now = primary.latest_head().await?.timestamp();
    Ok(Some(now.saturating_add(primary.outflow_delay().await?)))
}

impl Wallet {
    /// The call that redeems a certificate: with its own votes if the contract still accepts their epoch, otherwise
    /// with votes of the current committee for the same redemption.
    ///
    /// # Errors
    /// If it is the certificate of a payment, the Primary does not answer, or too few authorities vote.
    pub async fn redemption_call(
        &self,
        primary: &Primary,
        certificate: &VerifiedCertificate,
    ) -> Result<Call, WalletError> {
        let payment = || WalletError::Argument("this is the certificate of a payment, not of a redemption".into());
        let Transfer::Redemption(redemption) = certificate.transfer() else { return Err(payment()) };
        let certificate_of = certificate.certificate();
        let (epoch, committees) = (certificate_of.epoch, self.network().committees());
        let is_current = epoch == committees.current().epoch();
        let now = primary.latest_head().await?.timestamp();
        let is_taken = is_current || primary.epoch_valid_until(epoch).await? >= now.saturating_add(ENDING_MARGIN_S);
        if !is_taken {
            let (epoch, votes) = self.vote_again(certificate, redemption).await?;
            return Ok(Call::redeem_batch(primary.contract(), std::slice::from_ref(redemption), epoch, votes));
        }
        let committee = committees.get(epoch).ok_or(WalletError::OtherCommittee)?;
        let certified = certified_redemption(certificate_of, committee).ok_or_else(payment)?;
        Ok(Call::redeem(primary.contract(), certified))
    }

    /// Hands a certified redemption to the ledger: with its own votes if they count there, otherwise with votes of the
    /// current committee for the same redemption. Gives the event of its payment; `None` if its number was spent before.
    ///
    /// # Errors
    /// See [`WalletError`].
    pub async fn redeem_from(
        &self,
        reserve: &Reserve,
        certificate: &VerifiedCertificate,
    ) -> Result<Option<TransactionIndex>, WalletError> {
        match (reserve.redeem(certificate, &self.network().committees()).await, certificate.transfer()) {
            (Err(ReserveError::Rejected(Rejection::EpochEnded(..))), Transfer::Redemption(redemption)) => {
                let (epoch, votes) = self.vote_again(certificate, redemption).await?;
                let committees = self.network().committees();
                let voters = committees.get(epoch).ok_or(WalletError::OtherCommittee)?;
                let (one, votes) = (std::slice::from_ref(redemption), unpacked_votes(&votes, voters));
                Ok(reserve.redeem_batch(one, epoch, votes).await?.into_iter().flatten().next())
            }
            (outcome, _) => Ok(outcome?),
        }
    }

    /// The call that executes a queued redemption: without votes, or with votes of the current committee if the keys of
    /// the epoch that queued it were stolen.
    ///
    /// # Errors
    /// If no authority has its certificate, or too few vote.
    pub async fn execution_call(&self, primary: &Primary, item: &QueuedRedemption) -> Result<Call, WalletError> {
        let redemption = &item.redemption;
        let votes = if item.queued.needs_votes {
            let (sender, sequence) = (redemption.sender, redemption.sequence);
            let certificate = self.certificate(sender, sequence).await;
            let certificate = certificate.filter(|found| *found.transfer() == Transfer::Redemption(redemption.clone()));
            let certificate = certificate.ok_or(WalletError::NotCertified { account: sender, sequence })?;
            self.vote_again(&certificate, redemption).await?.1
        } else {
            Bytes::new()
        };
        Ok(Call::execute_queued(primary.contract(), redemption, votes))
    }

    /// Has the current committee vote for a redemption again, as for a batch of one.
    async fn vote_again(
        &self,
        certificate: &VerifiedCertificate,
        redemption: &Redemption,
    ) -> Result<(Epoch, Bytes), WalletError> {
        // Authorities vote for redemptions that they have confirmed, or that their checkpoint includes: then they have pruned
        // the certificate, and do not attest it.
        match self.through_epochs(|| self.client().settle(certificate)).await {
            Ok(_) | Err(QuorumError::EpochEnded(_) | QuorumError::Outdated(_) | QuorumError::Pruned { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        let redemptions = [redemption.clone()];
        let (epoch, votes) = self.through_epochs(|| self.client().vote_again(&redemptions)).await?;
        Ok((epoch, votes.into()))
    }

    /// The newest redemptions of an account, as far as this wallet has them, that are in the contract's queue.
    ///
    /// # Errors
    /// If the wallet's files cannot be read, or the Primary does not answer.
    pub async fn queued(&self, primary: &Primary, account: AccountId) -> Result<Vec<QueuedRedemption>, WalletError> {
        let entries = self.folder().orders(account).entries()?;
        let transfers = entries.iter().rev().filter_map(|entry| Some(&entry.certificate.as_ref()?.order.transfer));
        let redemptions = transfers.filter_map(|transfer| match transfer {
            Transfer::Redemption(redemption) => Some(redemption),
            Transfer::Payment(_) | Transfer::Payout(_) => None,
        });
        let mut found = Vec::new();
        for redemption in redemptions.take(LOOKED_AT_MAX) {
            found.extend(queued_redemption(primary, redemption).await?);
        }
        found.reverse();
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_address_is_no_address() {
        let good = "0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045";
        assert!(parse_address(good).is_ok() && parse_address(&good.to_lowercase()).is_ok());
        let one_digit_off = parse_address("0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96046").unwrap_err();
        assert!(one_digit_off.contains("invalid checksum"), "{one_digit_off}");
        for wrong in ["", "bob", "0x12", "fp1f4nyxqm66e32u9mzlszj7l0qchzyee5u7pwsdqhupftke2h700pq6ycndk"] {
            assert!(parse_address(wrong).unwrap_err().contains("is not an Ethereum address"), "{wrong}");
        }
    }
}
