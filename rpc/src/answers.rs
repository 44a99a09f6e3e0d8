//! An authority's answers in core's types, and their conversion to and from protobuf. `json` has their JSON form.
//!
//! An authority builds each answer once and encodes it for gRPC or HTTP. A client decodes it; the result is well-formed
//! and unverified.

use std::sync::Arc;

use bytes::Bytes;
use fastpay_core::{
    AccountId, Asset, AssetTotals, Authority, AuthorityName, Balance, Certificate, ContractVote, Deposit, Digest,
    Epoch, JournalPosition, Payment, PrimaryAddress, SequenceNumber, ShardId, TransactionIndex, Transfer,
    TransferOrder,
};
use serde::Serialize;

use crate::convert::{self, Malformed, TransferName, copy};
use crate::proto;
use crate::refusal::printable;

/// An account as one authority knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountState {
    /// The number of the next order.
    pub next_sequence: SequenceNumber,
    /// The order that the account is locked on.
    pub pending: Option<TransferOrder>,
    /// The balances, by asset.
    pub holdings: Vec<(Asset, Balance)>,
    /// The number of payments that the account has received.
    pub received: u64,
    /// The number of deposits that the account has received.
    pub deposits: u64,
    /// Whether the list of balances is incomplete. If so, the client must ask for a single asset.
    pub truncated: bool,
    /// Whether an absent pending order proves nothing: the authority was restored from an older copy and may have voted
    /// for an unknown order of this account, or has not joined the epoch of which it is a member.
    pub catching_up: bool,
}

impl AccountState {
    /// The balance of one asset.
    #[must_use]
    pub fn balance(&self, asset: Asset) -> Balance {
        self.holdings.iter().find(|(held, _)| *held == asset).map_or(Balance::ZERO, |(_, balance)| *balance)
    }
}

/// Names a received payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PaymentName {
    /// The account that paid.
    pub sender: AccountId,
    /// The number of the order among the sender's.
    pub sequence: SequenceNumber,
    /// The output's number, if it is an output of a payout.
    pub output: Option<u16>,
}

/// A payment that an account received, by its order of arrival at that authority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// The payment's number, counted from 0.
    pub number: u64,
    /// The payment. Its certificate is at the sender's shard.
    pub payment: Payment,
    /// The output's number, if it is an output of a payout.
    pub output: Option<u16>,
    /// The digest of that payout. Authorities of older releases do not send it over gRPC.
    pub payout: Option<Digest>,
}

impl Received {
    /// The payment's name.
    #[must_use]
    pub fn name(&self) -> PaymentName {
        PaymentName { sender: self.payment.sender, sequence: self.payment.sequence, output: self.output }
    }

    /// Whether this transfer, which has this digest, makes exactly this payment. Before a recovery, another order of the
    /// same name may have been certified.
    #[must_use]
    pub fn is_made_by(&self, transfer: &Transfer, digest: Digest) -> bool {
        self.payout.is_none_or(|payout| payout == digest)
            && transfer.payment(self.output).is_some_and(|payment| payment == self.payment)
    }
}

/// An authority's answer to a batch of redemptions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BatchAnswer {
    /// The authority's vote for all redemptions of the batch.
    Vote {
        /// The epoch that the authority names for the vote.
        epoch: Epoch,
        /// The vote, unverified.
        vote: ContractVote,
    },
    /// The authority has not confirmed the redemptions at these ascending positions. Confirm them there and ask again.
    Missing(Vec<usize>),
    /// The authority votes for none of the redemptions at these ascending positions: keys of their certificates' epochs
    /// are compromised, and their accounts have negative balances there. Credits to them may still be under way.
    Uncovered(Vec<usize>),
}

/// An authority's vote about a number that its owner asked the contract to unlock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnlockAnswer {
    /// The authority knows no certificate of the number and votes to void it.
    Void {
        /// The epoch that the authority names for the vote.
        epoch: Epoch,
        /// The vote, unverified.
        vote: ContractVote,
    },
    /// The authority knows the certificate of the number.
    Certificate {
        /// The certificate, unverified.
        certificate: Arc<Certificate>,
        /// The epoch that the authority names for the vote.
        epoch: Epoch,
        /// The authority's vote that the certificate exists, unverified.
        vote: ContractVote,
    },
}

/// The certificates that an authority returns for a list of transfer names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificates<C = Certificate> {
    /// The certificates in the order of the names, without those that the authority has not confirmed.
    pub found: Vec<C>,
    /// The number of names that the authority looked up, starting with the first.
    pub looked_up: usize,
}

/// A page of the names of all certificates that a shard confirmed, in its order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfirmedPage {
    /// The names. The list may be empty even if more pages follow.
    pub names: Vec<TransferName>,
    /// The cursor of the next page. It equals the cursor of this one if none follows.
    pub next: JournalPosition,
    /// The cursor at which the log ends now.
    pub end: JournalPosition,
}

/// A file of an archive of certified checkpoints that other authorities read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArchiveFile {
    /// A quorum's votes for the checkpoint.
    Certificate,
    /// The entries since the checkpoint before.
    Segment,
    /// What the checkpoint includes.
    Cut,
    /// The authority's own vote.
    Vote,
    /// The state that the segments lead to.
    State,
}

/// A part of a file of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchivePart {
    /// [`crate::ARCHIVE_PART_BYTES`] from the requested offset on; fewer if the file ends.
    pub bytes: Bytes,
    /// The length of the whole file.
    pub length: u64,
}

/// A part of a history, oldest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    /// The entries, starting at the requested number.
    pub entries: Vec<T>,
    /// The total number.
    pub total: u64,
}

/// The status of a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardStatus {
    /// The authority's name.
    pub authority: AuthorityName,
    /// The committee's epoch.
    pub epoch: Epoch,
    /// The chain id of the Primary; 0 without a Primary.
    pub chain_id: u64,
    /// The contract's address; zero without a Primary.
    pub contract: PrimaryAddress,
    /// This shard's number.
    pub shard: ShardId,
    /// The authority's number of shards.
    pub shard_count: u32,
    /// The shard has applied all its deposits up to this index.
    pub synchronized: TransactionIndex,
    /// The number of redemption certificates that the shard has confirmed.
    pub redemptions: u64,
    /// Sums per asset, for auditors.
    pub totals: Vec<(Asset, AssetTotals)>,
    /// The number of credits on their way to other shards.
    pub credits_in_flight: u64,
    /// The program's version.
    pub version: String,
    /// The committee as the authority knows it.
    pub committee: Vec<Authority>,
    /// Whether the list of sums is incomplete. If so, the client must ask for a single asset.
    pub truncated: bool,
    /// Whether it was restored from an older copy and votes only for numbers that it cannot have voted for before.
    pub restored: bool,
    /// Whether it votes for every order of its epoch; false from a release that does not say.
    pub votes: bool,
    /// What it waits for before it votes, if it joins an epoch.
    pub joining: Option<Joining>,
}

/// What an authority waits for that is to join an epoch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Joining {
    /// The epoch.
    pub epoch: Epoch,
    /// For programs; see docs/OPERATIONS.md, "Replacing an authority".
    pub waits_for: String,
    /// For people.
    pub reason: String,
    /// The number of Closings that are missing.
    pub closings_missing: u64,
    /// The number of certificates that are missing.
    pub certificates_missing: u64,
}

impl From<&Joining> for proto::Joining {
    fn from(joining: &Joining) -> Self {
        let Joining { epoch, waits_for, reason, closings_missing, certificates_missing } = joining.clone();
        Self { epoch: epoch.0, waits_for, reason, closings_missing, certificates_missing }
    }
}

impl From<proto::Joining> for Joining {
    fn from(joining: proto::Joining) -> Self {
        let proto::Joining { epoch, waits_for, reason, closings_missing, certificates_missing } = joining;
        let (waits_for, reason) = (printable(&waits_for), printable(&reason));
        Self { epoch: Epoch(epoch), waits_for, reason, closings_missing, certificates_missing }
    }
}

impl From<&AccountState> for proto::AccountResponse {
    fn from(state: &AccountState) -> Self {
        let holding = |(asset, balance): &(Asset, Balance)| proto::Holding {
            asset: copy(asset.0.as_slice()),
            balance: copy(&balance.to_be_bytes()),
        };
        Self {
            next_sequence: state.next_sequence.0,
            pending: state.pending.as_ref().map(Into::into),
            holdings: state.holdings.iter().map(holding).collect(),
            received: state.received,
            deposits: state.deposits,
            truncated: state.truncated,
            catching_up: state.catching_up,
        }
    }
}

impl TryFrom<proto::AccountResponse> for AccountState {
    type Error = Malformed;
    fn try_from(answer: proto::AccountResponse) -> Result<Self, Malformed> {
        let holding =
            |held: &proto::Holding| Ok((convert::asset(&held.asset)?, convert::balance("balance", &held.balance)?));
        Ok(Self {
            next_sequence: SequenceNumber(answer.next_sequence),
            pending: answer.pending.map(TryInto::try_into).transpose()?,
            holdings: answer.holdings.iter().map(holding).collect::<Result<_, Malformed>>()?,
            received: answer.received,
            deposits: answer.deposits,
            truncated: answer.truncated,
            catching_up: answer.catching_up,
        })
    }
}

impl From<&Page<Received>> for proto::ReceivedPage {
    fn from(page: &Page<Received>) -> Self {
        let payment = |received: &Received| proto::Received {
            number: received.number,
            payment: Some((&received.payment).into()),
            output: received.output.map(u32::from),
            payout: received.payout.map(|digest| copy(digest.as_slice())),
        };
        Self { payments: page.entries.iter().map(payment).collect(), total: page.total }
    }
}

impl TryFrom<proto::ReceivedPage> for Page<Received> {
    type Error = Malformed;
    fn try_from(page: proto::ReceivedPage) -> Result<Self, Malformed> {
        let entries = page.payments.into_iter().map(|entry| {
            let payment = entry.payment.ok_or(Malformed::Missing("payment"))?.try_into()?;
            let output = entry.output.map(u16::try_from).transpose().map_err(|_| Malformed::OutOfRange("output"))?;
            let payout = entry.payout.as_deref().map(|digest| convert::digest("payout", digest)).transpose()?;
            Ok(Received { number: entry.number, payment, output, payout })
        });
        Ok(Self { entries: entries.collect::<Result<_, Malformed>>()?, total: page.total })
    }
}

impl From<&Page<Deposit>> for proto::DepositPage {
    fn from(page: &Page<Deposit>) -> Self {
        Self { deposits: page.entries.iter().map(Into::into).collect(), total: page.total }
    }
}

impl TryFrom<proto::DepositPage> for Page<Deposit> {
    type Error = Malformed;
    fn try_from(page: proto::DepositPage) -> Result<Self, Malformed> {
        let entries = page.deposits.into_iter().map(TryInto::try_into).collect::<Result<_, Malformed>>()?;
        Ok(Self { entries, total: page.total })
    }
}

impl<C: AsRef<Certificate>> From<&Page<C>> for proto::CertificatePage {
    fn from(page: &Page<C>) -> Self {
        let certificates = page.entries.iter().map(|certificate| certificate.as_ref().into());
        Self { certificates: certificates.collect(), total: page.total }
    }
}

impl TryFrom<proto::CertificatePage> for Page<Certificate> {
    type Error = Malformed;
    fn try_from(page: proto::CertificatePage) -> Result<Self, Malformed> {
        let entries = page.certificates.into_iter().map(TryInto::try_into).collect::<Result<_, Malformed>>()?;
        Ok(Self { entries, total: page.total })
    }
}

impl<C: AsRef<Certificate>> From<&Certificates<C>> for proto::CertificatesResponse {
    fn from(answer: &Certificates<C>) -> Self {
        let certificates = answer.found.iter().map(|certificate| certificate.as_ref().into());
        let looked_up = u32::try_from(answer.looked_up).unwrap_or(u32::MAX);
        Self { certificates: certificates.collect(), looked_up }
    }
}

impl TryFrom<proto::CertificatesResponse> for Certificates {
    type Error = Malformed;
    fn try_from(answer: proto::CertificatesResponse) -> Result<Self, Malformed> {
        let found = answer.certificates.into_iter().map(TryInto::try_into).collect::<Result<Vec<_>, Malformed>>()?;
        Ok(Self { found, looked_up: answer.looked_up as usize })
    }
}

impl From<&BatchAnswer> for proto::redemption_batch_response::Response {
    fn from(answer: &BatchAnswer) -> Self {
        match answer {
            BatchAnswer::Vote { epoch, vote } => Self::Vote((*epoch, vote).into()),
            BatchAnswer::Missing(positions) => Self::Missing(positions.as_slice().into()),
            BatchAnswer::Uncovered(positions) => Self::Uncovered(positions.as_slice().into()),
        }
    }
}

impl From<&[usize]> for proto::MissingRedemptions {
    fn from(positions: &[usize]) -> Self {
        let positions = positions.iter().map(|position| u32::try_from(*position).unwrap_or(u32::MAX));
        Self { positions: positions.collect() }
    }
}

impl From<&UnlockAnswer> for proto::unlock_vote_response::Response {
    fn from(answer: &UnlockAnswer) -> Self {
        match answer {
            UnlockAnswer::Void { epoch, vote } => Self::Void((*epoch, vote).into()),
            UnlockAnswer::Certificate { certificate, epoch, vote } => Self::Certificate(proto::CertificateVote {
                certificate: Some(certificate.as_ref().into()),
                vote: Some((*epoch, vote).into()),
            }),
        }
    }
}

impl TryFrom<proto::CertificateVote> for UnlockAnswer {
    type Error = Malformed;
    fn try_from(answer: proto::CertificateVote) -> Result<Self, Malformed> {
        let certificate: Certificate = answer.certificate.ok_or(Malformed::Missing("certificate"))?.try_into()?;
        let (epoch, vote) = answer.vote.ok_or(Malformed::Missing("vote"))?.try_into()?;
        Ok(Self::Certificate { certificate: Arc::new(certificate), epoch, vote })
    }
}

impl From<&ShardStatus> for proto::StatusResponse {
    fn from(status: &ShardStatus) -> Self {
        let totals = |(asset, totals): &(Asset, AssetTotals)| proto::AssetTotals {
            asset: copy(asset.0.as_slice()),
            accounts: copy(&totals.accounts.to_be_bytes()),
            deposited: copy(&totals.deposited.to_be_bytes()),
            credited: copy(&totals.credited.to_be_bytes()),
            forwarded: copy(&totals.forwarded.to_be_bytes()),
            redeemed: copy(&totals.redeemed.to_be_bytes()),
        };
        let member = |member: &Authority| proto::CommitteeMember {
            voting_key: copy(&member.name.0),
            redemption_key: copy(member.redemption_key.as_slice()),
        };
        Self {
            authority: copy(&status.authority.0),
            epoch: status.epoch.0,
            chain_id: status.chain_id,
            contract: copy(status.contract.as_slice()),
            shard: status.shard.0,
            shard_count: status.shard_count,
            synchronized: status.synchronized.0,
            redemptions: status.redemptions,
            totals: status.totals.iter().map(totals).collect(),
            credits_in_flight: status.credits_in_flight,
            version: status.version.clone(),
            committee: status.committee.iter().map(member).collect(),
            truncated: status.truncated,
            restored: status.restored,
            votes: status.votes,
            joining: status.joining.as_ref().map(Into::into),
        }
    }
}

impl TryFrom<proto::StatusResponse> for ShardStatus {
    type Error = Malformed;
    fn try_from(answer: proto::StatusResponse) -> Result<Self, Malformed> {
        let totals = answer.totals.iter().map(|totals| {
            let balance = |bytes: &Bytes| convert::balance("totals", bytes);
            let sums = AssetTotals {
                accounts: balance(&totals.accounts)?,
                deposited: balance(&totals.deposited)?,
                credited: balance(&totals.credited)?,
                forwarded: balance(&totals.forwarded)?,
                redeemed: balance(&totals.redeemed)?,
            };
            Ok((convert::asset(&totals.asset)?, sums))
        });
        let committee = answer.committee.iter().map(|member| {
            Ok(Authority {
                name: convert::authority_name("voting_key", &member.voting_key)?,
                redemption_key: convert::primary_address("redemption_key", &member.redemption_key)?,
            })
        });
        Ok(Self {
            authority: convert::authority_name("authority", &answer.authority)?,
            epoch: Epoch(answer.epoch),
            chain_id: answer.chain_id,
            contract: convert::primary_address("contract", &answer.contract)?,
            shard: ShardId(answer.shard),
            shard_count: answer.shard_count,
            synchronized: TransactionIndex(answer.synchronized),
            redemptions: answer.redemptions,
            totals: totals.collect::<Result<_, Malformed>>()?,
            credits_in_flight: answer.credits_in_flight,
            version: printable(&answer.version),
            committee: committee.collect::<Result<_, Malformed>>()?,
            truncated: answer.truncated,
            restored: answer.restored,
            votes: answer.votes,
            joining: answer.joining.map(Into::into),
        })
    }
}
