//! Converts core's types to and from protobuf. Encoding never fails; decoding checks lengths and presence, and nothing
//! else.

use bytes::Bytes;
use fastpay_core::{
    AccountId, Amount, Asset, Attestation, AttestedCertificate, AuthorityName, Authorization, Balance, Certificate,
    ContractVote, Deposit, Digest, EcdsaSignature, Ed25519Signature, Epoch, InvalidTransfer, JournalPosition,
    MERKLE_PATH_LENGTH_MAX, MerklePath, Output, Outputs, Payment, Payout, PrimaryAddress, Redemption, SequenceNumber,
    TransactionIndex, Transfer, TransferOrder, Vote, VoteSignature,
};

use crate::answers::{ArchiveFile, ArchivePart, ConfirmedPage};
use crate::{ARCHIVE_PART_BYTES, CONFIRMED_PAGE_MAX, PAGE_ENTRIES_MAX, REDEMPTION_BATCH_MAX, proto};

/// A transfer by its sender and number.
pub type TransferName = (AccountId, SequenceNumber);

/// A message that does not follow the schema and its comments.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// A field has the wrong number of bytes.
    #[error("field {field} has {found} bytes, not {expected}")]
    Length {
        /// The field's name in the schema.
        field: &'static str,
        /// The required number of bytes.
        expected: usize,
        /// The number of bytes found.
        found: usize,
    },
    /// A required field is missing.
    #[error("field {0} is missing")]
    Missing(&'static str),
    /// A number or a list exceeds its bound.
    #[error("field {0} is out of range")]
    OutOfRange(&'static str),
    /// The outputs do not form a valid payout.
    #[error(transparent)]
    Outputs(#[from] InvalidTransfer),
}

pub(crate) fn array<const N: usize>(field: &'static str, bytes: &[u8]) -> Result<[u8; N], Malformed> {
    bytes.try_into().map_err(|_| Malformed::Length { field, expected: N, found: bytes.len() })
}

pub(crate) fn copy(bytes: &[u8]) -> Bytes {
    Bytes::copy_from_slice(bytes)
}

pub(crate) fn account(field: &'static str, bytes: &[u8]) -> Result<AccountId, Malformed> {
    array(field, bytes).map(AccountId)
}

pub(crate) fn authority_name(field: &'static str, bytes: &[u8]) -> Result<AuthorityName, Malformed> {
    array(field, bytes).map(AuthorityName)
}

pub(crate) fn primary_address(field: &'static str, bytes: &[u8]) -> Result<PrimaryAddress, Malformed> {
    array(field, bytes).map(PrimaryAddress::new)
}

pub(crate) fn digest(field: &'static str, bytes: &[u8]) -> Result<Digest, Malformed> {
    array(field, bytes).map(Digest::from)
}

pub(crate) fn asset(bytes: &[u8]) -> Result<Asset, Malformed> {
    primary_address("asset", bytes).map(Asset)
}

fn amount(field: &'static str, bytes: &[u8]) -> Result<Amount, Malformed> {
    array(field, bytes).map(u128::from_be_bytes).map(Amount)
}

pub(crate) fn balance(field: &'static str, bytes: &[u8]) -> Result<Balance, Malformed> {
    array(field, bytes).map(Balance::from_be_bytes)
}

impl From<&Payment> for proto::Payment {
    fn from(payment: &Payment) -> Self {
        Self {
            sender: copy(&payment.sender.0),
            recipient: copy(&payment.recipient.0),
            asset: copy(payment.asset.0.as_slice()),
            amount: copy(&payment.amount.0.to_be_bytes()),
            sequence: payment.sequence.0,
            memo: copy(payment.memo.as_slice()),
        }
    }
}

impl TryFrom<proto::Payment> for Payment {
    type Error = Malformed;
    fn try_from(payment: proto::Payment) -> Result<Self, Malformed> {
        Ok(Self {
            sender: account("sender", &payment.sender)?,
            recipient: account("recipient", &payment.recipient)?,
            asset: asset(&payment.asset)?,
            amount: amount("amount", &payment.amount)?,
            sequence: SequenceNumber(payment.sequence),
            memo: array("memo", &payment.memo)?.into(),
        })
    }
}

impl From<&Redemption> for proto::Redemption {
    fn from(redemption: &Redemption) -> Self {
        Self {
            sender: copy(&redemption.sender.0),
            recipient: copy(redemption.recipient.as_slice()),
            asset: copy(redemption.asset.0.as_slice()),
            amount: copy(&redemption.amount.0.to_be_bytes()),
            fee: copy(&redemption.fee.0.to_be_bytes()),
            sequence: redemption.sequence.0,
            memo: copy(redemption.memo.as_slice()),
        }
    }
}

impl TryFrom<proto::Redemption> for Redemption {
    type Error = Malformed;
    fn try_from(redemption: proto::Redemption) -> Result<Self, Malformed> {
        Ok(Self {
            sender: account("sender", &redemption.sender)?,
            recipient: primary_address("recipient", &redemption.recipient)?,
            asset: asset(&redemption.asset)?,
            amount: amount("amount", &redemption.amount)?,
            fee: amount("fee", &redemption.fee)?,
            sequence: SequenceNumber(redemption.sequence),
            memo: array("memo", &redemption.memo)?.into(),
        })
    }
}

impl From<&Payout> for proto::Payout {
    fn from(payout: &Payout) -> Self {
        let outputs = payout.outputs.iter().map(|output| proto::Output {
            recipient: copy(&output.recipient.0),
            amount: copy(&output.amount.0.to_be_bytes()),
            memo: copy(output.memo.as_slice()),
        });
        Self {
            sender: copy(&payout.sender.0),
            asset: copy(payout.asset.0.as_slice()),
            outputs: outputs.collect(),
            sequence: payout.sequence.0,
            memo: copy(payout.memo.as_slice()),
        }
    }
}

impl TryFrom<proto::Payout> for Payout {
    type Error = Malformed;
    fn try_from(payout: proto::Payout) -> Result<Self, Malformed> {
        let outputs = payout.outputs.into_iter().map(|output| {
            Ok(Output {
                recipient: account("recipient", &output.recipient)?,
                amount: amount("amount", &output.amount)?,
                memo: array("memo", &output.memo)?.into(),
            })
        });
        Ok(Self {
            sender: account("sender", &payout.sender)?,
            asset: asset(&payout.asset)?,
            outputs: Outputs::new(outputs.collect::<Result<_, Malformed>>()?)?,
            sequence: SequenceNumber(payout.sequence),
            memo: array("memo", &payout.memo)?.into(),
        })
    }
}

impl From<&TransferOrder> for proto::TransferOrder {
    fn from(order: &TransferOrder) -> Self {
        use proto::transfer_order::{Authorization as WireAuthorization, Transfer as WireTransfer};
        let transfer = match &order.transfer {
            Transfer::Payment(payment) => WireTransfer::Payment(payment.into()),
            Transfer::Redemption(redemption) => WireTransfer::Redemption(redemption.into()),
            Transfer::Payout(payout) => WireTransfer::Payout(payout.into()),
        };
        let authorization = match &order.authorization {
            Authorization::Ed25519 { key, signature } => WireAuthorization::Ed25519(proto::Ed25519Authorization {
                key: copy(key),
                signature: copy(&signature.0),
            }),
            Authorization::Ethereum { signature } => WireAuthorization::Ethereum(copy(&signature.0)),
        };
        Self { transfer: Some(transfer), authorization: Some(authorization) }
    }
}

impl TryFrom<proto::TransferOrder> for TransferOrder {
    type Error = Malformed;
    fn try_from(order: proto::TransferOrder) -> Result<Self, Malformed> {
        use proto::transfer_order::{Authorization as WireAuthorization, Transfer as WireTransfer};
        let transfer = match order.transfer.ok_or(Malformed::Missing("transfer"))? {
            WireTransfer::Payment(payment) => Transfer::Payment(payment.try_into()?),
            WireTransfer::Redemption(redemption) => Transfer::Redemption(redemption.try_into()?),
            WireTransfer::Payout(payout) => Transfer::Payout(payout.try_into()?),
        };
        let authorization = match order.authorization.ok_or(Malformed::Missing("authorization"))? {
            WireAuthorization::Ed25519(by) => Authorization::Ed25519 {
                key: array("key", &by.key)?,
                signature: Ed25519Signature(array("signature", &by.signature)?),
            },
            WireAuthorization::Ethereum(signature) => {
                Authorization::Ethereum { signature: EcdsaSignature(array("ethereum", &signature)?) }
            }
        };
        Ok(Self { transfer, authorization })
    }
}

impl From<&Vote> for proto::Vote {
    fn from(vote: &Vote) -> Self {
        use proto::vote::Signature;
        let signature = match &vote.signature {
            VoteSignature::Payment { signature, path } => Signature::Payment(proto::PaymentVote {
                signature: copy(&signature.0),
                directions: path.directions.into(),
                siblings: path.siblings.iter().flatten().copied().collect(),
            }),
            VoteSignature::Redemption { signature } => Signature::Redemption(copy(&signature.0)),
        };
        Self { authority: copy(&vote.authority.0), signature: Some(signature), epoch: 0 }
    }
}

/// The vote with which an authority answers an order.
impl From<(Epoch, &Vote)> for proto::Vote {
    fn from((epoch, vote): (Epoch, &Vote)) -> Self {
        Self { epoch: epoch.0, ..vote.into() }
    }
}

impl TryFrom<proto::Vote> for Vote {
    type Error = Malformed;
    fn try_from(vote: proto::Vote) -> Result<Self, Malformed> {
        use proto::vote::Signature;
        let signature = match vote.signature.ok_or(Malformed::Missing("vote.signature"))? {
            Signature::Payment(payment) => {
                let (siblings, rest) = payment.siblings.as_chunks::<32>();
                if !rest.is_empty() || siblings.len() > MERKLE_PATH_LENGTH_MAX {
                    return Err(Malformed::OutOfRange("siblings"));
                }
                let directions = u16::try_from(payment.directions).map_err(|_| Malformed::OutOfRange("directions"))?;
                let siblings = siblings.iter().map(|hash| (*hash).into()).collect();
                VoteSignature::Payment {
                    signature: Ed25519Signature(array("vote.signature", &payment.signature)?),
                    path: MerklePath { directions, siblings },
                }
            }
            Signature::Redemption(signature) => {
                VoteSignature::Redemption { signature: EcdsaSignature(array("vote.redemption", &signature)?) }
            }
        };
        Ok(Self { authority: authority_name("authority", &vote.authority)?, signature })
    }
}

impl From<&Certificate> for proto::Certificate {
    fn from(certificate: &Certificate) -> Self {
        Self {
            order: Some((&certificate.order).into()),
            epoch: certificate.epoch.0,
            votes: certificate.votes.iter().map(Into::into).collect(),
        }
    }
}

impl TryFrom<proto::Certificate> for Certificate {
    type Error = Malformed;
    fn try_from(certificate: proto::Certificate) -> Result<Self, Malformed> {
        if certificate.votes.len() > fastpay_core::COMMITTEE_SIZE_MAX {
            return Err(Malformed::OutOfRange("votes"));
        }
        Ok(Self {
            order: certificate.order.ok_or(Malformed::Missing("order"))?.try_into()?,
            epoch: Epoch(certificate.epoch),
            votes: certificate.votes.into_iter().map(TryInto::try_into).collect::<Result<_, _>>()?,
        })
    }
}

impl From<&AttestedCertificate> for proto::AttestedCertificate {
    fn from(attested: &AttestedCertificate) -> Self {
        let Attestation { epoch, votes } = &attested.attestation;
        Self {
            certificate: Some((&attested.certificate).into()),
            votes: votes.iter().map(|vote| (*epoch, vote).into()).collect(),
        }
    }
}

impl TryFrom<proto::AttestedCertificate> for AttestedCertificate {
    type Error = Malformed;
    fn try_from(attested: proto::AttestedCertificate) -> Result<Self, Malformed> {
        let certificate = attested.certificate.ok_or(Malformed::Missing("certificate"))?.try_into()?;
        if attested.votes.len() > fastpay_core::COMMITTEE_SIZE_MAX {
            return Err(Malformed::OutOfRange("votes"));
        }
        let votes = attested.votes.into_iter().map(TryInto::try_into).collect::<Result<Vec<_>, _>>()?;
        Ok(Self { certificate, attestation: attestation_of(votes)? })
    }
}

/// Votes that all name one epoch.
pub(crate) fn attestation_of(votes: Vec<(Epoch, ContractVote)>) -> Result<Attestation, Malformed> {
    let epoch = votes.first().map(|(epoch, _)| *epoch).ok_or(Malformed::Missing("votes"))?;
    if votes.iter().any(|(of, _)| *of != epoch) {
        return Err(Malformed::OutOfRange("epoch"));
    }
    Ok(Attestation { epoch, votes: votes.into_iter().map(|(_, vote)| vote).collect() })
}

impl From<&Deposit> for proto::Deposit {
    fn from(deposit: &Deposit) -> Self {
        Self {
            index: deposit.index.0,
            recipient: copy(&deposit.recipient.0),
            asset: copy(deposit.asset.0.as_slice()),
            amount: copy(&deposit.amount.0.to_be_bytes()),
        }
    }
}

impl TryFrom<proto::Deposit> for Deposit {
    type Error = Malformed;
    fn try_from(deposit: proto::Deposit) -> Result<Self, Malformed> {
        Ok(Self {
            index: TransactionIndex(deposit.index),
            recipient: account("recipient", &deposit.recipient)?,
            asset: asset(&deposit.asset)?,
            amount: amount("amount", &deposit.amount)?,
        })
    }
}

impl From<(Epoch, &ContractVote)> for proto::ContractVote {
    fn from((epoch, vote): (Epoch, &ContractVote)) -> Self {
        Self { epoch: epoch.0, authority: copy(&vote.authority.0), signature: copy(&vote.signature.0) }
    }
}

impl TryFrom<proto::ContractVote> for (Epoch, ContractVote) {
    type Error = Malformed;
    fn try_from(vote: proto::ContractVote) -> Result<Self, Malformed> {
        let authority = authority_name("authority", &vote.authority)?;
        let signature = EcdsaSignature(array("signature", &vote.signature)?);
        Ok((Epoch(vote.epoch), ContractVote { authority, signature }))
    }
}

fn names(names: &[TransferName]) -> Vec<proto::TransferName> {
    let name =
        |(sender, sequence): &TransferName| proto::TransferName { sender: copy(&sender.0), sequence: sequence.0 };
    names.iter().map(name).collect()
}

/// From 1 to `max` names.
fn into_names(field: &'static str, names: &[proto::TransferName], max: usize) -> Result<Vec<TransferName>, Malformed> {
    if !(1..=max).contains(&names.len()) {
        return Err(Malformed::OutOfRange(field));
    }
    transfer_names(names)
}

fn transfer_names(names: &[proto::TransferName]) -> Result<Vec<TransferName>, Malformed> {
    names.iter().map(|name| Ok((account("sender", &name.sender)?, SequenceNumber(name.sequence)))).collect()
}

impl From<&ConfirmedPage> for proto::ConfirmedPage {
    fn from(page: &ConfirmedPage) -> Self {
        Self { names: names(&page.names), next: page.next.0, end: page.end.0 }
    }
}

impl TryFrom<proto::ConfirmedPage> for ConfirmedPage {
    type Error = Malformed;
    fn try_from(page: proto::ConfirmedPage) -> Result<Self, Malformed> {
        if page.names.len() > CONFIRMED_PAGE_MAX {
            return Err(Malformed::OutOfRange("names"));
        }
        let (next, end) = (JournalPosition(page.next), JournalPosition(page.end));
        Ok(Self { names: transfer_names(&page.names)?, next, end })
    }
}

impl From<ArchiveFile> for proto::archive_request::File {
    fn from(file: ArchiveFile) -> Self {
        match file {
            ArchiveFile::Certificate => Self::Certificate,
            ArchiveFile::Segment => Self::Segment,
            ArchiveFile::Cut => Self::Cut,
            ArchiveFile::Vote => Self::Vote,
            ArchiveFile::State => Self::State,
        }
    }
}

impl TryFrom<proto::archive_request::File> for ArchiveFile {
    type Error = Malformed;
    fn try_from(file: proto::archive_request::File) -> Result<Self, Malformed> {
        match file {
            proto::archive_request::File::Certificate => Ok(Self::Certificate),
            proto::archive_request::File::Segment => Ok(Self::Segment),
            proto::archive_request::File::Cut => Ok(Self::Cut),
            proto::archive_request::File::Vote => Ok(Self::Vote),
            proto::archive_request::File::State => Ok(Self::State),
            proto::archive_request::File::Unspecified => Err(Malformed::Missing("file")),
        }
    }
}

impl From<ArchivePart> for proto::ArchivePart {
    fn from(part: ArchivePart) -> Self {
        Self { bytes: part.bytes, length: part.length }
    }
}

impl TryFrom<proto::ArchivePart> for ArchivePart {
    type Error = Malformed;
    fn try_from(part: proto::ArchivePart) -> Result<Self, Malformed> {
        if part.bytes.len() > ARCHIVE_PART_BYTES {
            return Err(Malformed::OutOfRange("bytes"));
        }
        Ok(Self { bytes: part.bytes, length: part.length })
    }
}

impl From<&[TransferName]> for proto::RedemptionBatchRequest {
    fn from(redemptions: &[TransferName]) -> Self {
        Self { redemptions: names(redemptions) }
    }
}

impl TryFrom<proto::RedemptionBatchRequest> for Vec<TransferName> {
    type Error = Malformed;
    fn try_from(request: proto::RedemptionBatchRequest) -> Result<Self, Malformed> {
        into_names("redemptions", &request.redemptions, REDEMPTION_BATCH_MAX)
    }
}

impl From<&[TransferName]> for proto::CertificatesRequest {
    fn from(of: &[TransferName]) -> Self {
        Self { names: names(of) }
    }
}

impl TryFrom<proto::CertificatesRequest> for Vec<TransferName> {
    type Error = Malformed;
    fn try_from(request: proto::CertificatesRequest) -> Result<Self, Malformed> {
        into_names("names", &request.names, PAGE_ENTRIES_MAX as usize)
    }
}
