//! The contract's errors, with texts that tell the user what to do.

use std::fmt;

use alloy::primitives::{B256, Bytes, U256};
use alloy::sol_types::{Panic, Revert as ReasonString, SolError, SolInterface};
use fastpay_core::AccountId;

use crate::contract::{ICouncil::ICouncilErrors, IFastPay::IFastPayErrors, IToken::ITokenErrors};
use crate::utc::utc;

/// The data that a reverted call returned.
#[derive(Debug, PartialEq, Eq)]
pub enum Revert {
    /// An error of the FastPay contract.
    FastPay(IFastPayErrors),
    /// An error of its council.
    Council(ICouncilErrors),
    /// An error of a token.
    Token(ITokenErrors),
    /// A text, as most older contracts return.
    Reason(String),
    /// A failed assertion of the compiler, with its code.
    Panic(U256),
    /// Other data; empty if the call ran out of gas or the callee has no such function.
    Unknown(Bytes),
}

impl Revert {
    /// Decodes the data of a revert.
    #[must_use]
    pub fn decode(data: Bytes) -> Self {
        if let Ok(error) = IFastPayErrors::abi_decode(&data) {
            return Self::FastPay(error);
        }
        if let Ok(error) = ICouncilErrors::abi_decode(&data) {
            return Self::Council(error);
        }
        if let Ok(error) = ITokenErrors::abi_decode(&data) {
            return Self::Token(error);
        }
        if let Ok(error) = ReasonString::abi_decode(&data) {
            return Self::Reason(error.reason.chars().take(200).collect());
        }
        match Panic::abi_decode(&data) {
            Ok(error) => Self::Panic(error.code),
            Err(_) => Self::Unknown(data),
        }
    }

    /// The position of the failed item of a bundle, if the contract names it.
    #[must_use]
    pub fn item(&self) -> Option<usize> {
        use IFastPayErrors as E;
        let Self::FastPay(error) = self else { return None };
        let item = match error {
            E::ZeroRedemption(e) => e.item,
            E::FeeAboveAmount(e) => e.item,
            E::BalanceTooLow(e) => e.item,
            E::WrongVotesLength(e) => e.item,
            E::VotesNotAscending(e) => e.item,
            E::UnknownMember(e) => e.item,
            E::MalleableVote(e) => e.item,
            E::InvalidRecoveryId(e) => e.item,
            E::WrongSigner(e) => e.item,
            _ => return None,
        };
        usize::try_from(item).ok()
    }

    /// If the contract is paused: until when, in seconds since 1970.
    #[must_use]
    pub fn paused_until(&self) -> Option<u64> {
        match self {
            Self::FastPay(IFastPayErrors::PausedUntil(error)) => Some(error.until.saturating_to()),
            _ => None,
        }
    }

    /// Whether the same call might have succeeded with more gas.
    #[must_use]
    pub fn is_lack_of_gas(&self) -> bool {
        match self {
            Self::FastPay(IFastPayErrors::InsufficientGas(_)) => true,
            Self::Unknown(data) => data.is_empty(),
            _ => false,
        }
    }

    /// Whether the cause is temporary, and the submitted data is not at fault: the same call succeeds at another time,
    /// or with the votes of another epoch.
    #[must_use]
    pub fn is_of_the_moment(&self) -> bool {
        use IFastPayErrors as E;
        matches!(
            self,
            Self::FastPay(
                E::PausedUntil(_) | E::EpochEnded(_) | E::EpochCompromised(_) | E::TooEarly(_) | E::AlreadyRedeemed(_)
            )
        )
    }

    /// Whether nothing is left to do, because somebody else has done it.
    #[must_use]
    pub fn is_already_redeemed(&self) -> bool {
        matches!(self, Self::FastPay(IFastPayErrors::AlreadyRedeemed(_)))
    }
}

impl fmt::Display for Revert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FastPay(error) => describe(error, f),
            Self::Council(error) => describe_council(error, f),
            Self::Token(error) => describe_token(error, f),
            Self::Reason(reason) => write!(f, "the contract says {reason:?}"),
            Self::Panic(code) => write!(f, "an assertion in the contract failed (panic code {code})"),
            Self::Unknown(data) if data.is_empty() => {
                f.write_str("the contract gave no reason: too little gas, or it has no such function")
            }
            Self::Unknown(data) => {
                let start = data.get(..data.len().min(36)).unwrap_or_default();
                write!(f, "the contract gave an unknown reason, which starts with 0x{}", alloy::hex::encode(start))
            }
        }
    }
}

fn describe(error: &IFastPayErrors, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    use IFastPayErrors as E;
    match error {
        E::ZeroRecipient(_) => f.write_str("the recipient is zero; give an account that somebody owns"),
        E::RecipientIsContract(_) => {
            f.write_str("the recipient is the FastPay contract itself; give an account that somebody owns")
        }
        E::SenderWithoutKey(e) => write!(
            f,
            "plain ETH would fund the account of {}, which may have no key; deposit with depositEther for an account \
             that somebody owns",
            e.sender
        ),
        E::ZeroAsset(_) => f.write_str("ETH is deposited by depositEther, not as a token"),
        E::AssetWithoutCode(e) => write!(f, "there is no token at {}; check the address and the chain", e.asset),
        E::NothingReceived(e) => write!(f, "nothing of {} arrived; deposit more than zero", e.asset),
        E::AssetCapExceeded(e) => write!(
            f,
            "the contract holds {} of {} and can take no {} more (cap {}); deposit less",
            e.held, e.asset, e.received, e.cap
        ),
        E::PermitRefused(e) => write!(
            f,
            "{} refused the permit, and its allowance {} is below {}; sign a new permit or approve first",
            e.asset, e.allowance, e.amount
        ),
        E::AlreadyRedeemed(e) => {
            write!(f, "order {} of {} is already redeemed; nothing is left to do", e.sequence, e.sender)
        }
        E::ZeroRedemption(e) => write!(f, "item {} redeems nothing", e.item),
        E::FeeAboveAmount(e) => write!(f, "item {}: the fee {} is above the amount {}", e.item, e.fee, e.amount),
        E::BalanceTooLow(e) => write!(
            f,
            "item {}: the contract holds {} of {}, less than the {} to redeem; audit the committee",
            e.item, e.balance, e.asset, e.amount
        ),
        E::UnknownEpoch(e) => write!(f, "the contract knows no committee of epoch {}", e.epoch),
        E::EpochEnded(e) => write!(
            f,
            "votes of epoch {} have expired; have the current committee certify the same redemption again",
            e.epoch
        ),
        E::EmptyBatch(_) => f.write_str("the batch is empty"),
        E::NotQueued(e) => {
            write!(f, "order {} of {} is not in the queue; it may be paid already", e.sequence, e.sender)
        }
        E::TooEarly(e) => write!(f, "it is queued until {}; try again then", moment(e.executableAt)),
        E::PausedUntil(e) => {
            write!(f, "the contract is paused until {}; nothing is lost, try again then", moment(e.until))
        }
        E::NotGuardian(e) => write!(f, "{} is not the guardian", e.caller),
        E::PauseTooEarly(e) => write!(f, "the next pause can begin at {}", moment(e.nextPauseAt)),
        E::NotPaused(_) => f.write_str("the contract is not paused"),
        E::NothingToClaim(e) => write!(f, "{} has nothing of {} to claim", e.owner, e.asset),
        E::ClaimRefused(e) => {
            write!(f, "{} refused {} of {}; claim to another address", e.to, e.amount, e.asset)
        }
        E::InsufficientGas(e) => {
            write!(f, "too little gas: {} are left and {} needed; send again with more", e.available, e.required)
        }
        E::AssetUnderCollateralized(e) => write!(
            f,
            "the contract holds {} of {} and would owe {} with this deposit; the token takes fees, so do not deposit \
             it",
            e.held, e.asset, e.owed
        ),
        E::EpochCompromised(e) => write!(
            f,
            "it was queued with votes of epoch {}, whose keys were compromised; have the current committee certify it \
             again",
            e.epoch
        ),
        E::EpochNotCompromised(e) => {
            write!(f, "it was queued with votes of epoch {}, which is not compromised; it cannot be released", e.epoch)
        }
        E::SequenceSpent(e) => write!(f, "order {} of {} is spent; it cannot be voided", e.sequence, e.account),
        E::InvalidClaimAmount(e) => {
            write!(f, "{} can claim {} of {}, not {}", e.owner, e.claimed, e.asset, e.amount)
        }
        E::PostponedTooLong(e) => {
            write!(f, "epoch {} would be postponed by {} s in all, and {} s are allowed", e.epoch, e.total, e.max)
        }
        E::NotCouncil(e) => write!(f, "only the council may call this, and {} is not it", e.caller),
        E::InvalidCap(e) => {
            write!(f, "the deposit cap of {} cannot become {}; it is {} now", e.asset, e.cap, e.current)
        }
        E::InvalidSafetyParameter(e) => {
            write!(f, "{} is {}; it has to be {} to {}", e.name, e.value, e.min, e.max)
        }
        E::CouncilOfAnother(e) => write!(f, "the council {} was deployed for another contract", e.council),
        E::CouncilTooOld(e) => {
            write!(f, "the council {} was deployed more than a day before; deploy another", e.council)
        }
        E::InvalidCommitteeSize(e) => write!(f, "a committee has 4 to 255 members, not {}", e.size),
        E::ZeroKey(e) => write!(f, "the authority at {} has a zero key", e.index),
        E::VotingKeysNotAscending(e) => write!(f, "the voting key at {} is not above the one before it", e.index),
        E::RepeatedRedemptionKey(e) => {
            write!(f, "the authorities at {} and {} have the same redemption key", e.first, e.second)
        }
        E::WrongVotesLength(_)
        | E::VotesNotAscending(_)
        | E::UnknownMember(_)
        | E::MalleableVote(_)
        | E::InvalidRecoveryId(_)
        | E::WrongSigner(_) => describe_votes(error, f),
    }
}

fn moment(seconds: U256) -> String {
    utc(seconds.saturating_to())
}

fn describe_votes(error: &IFastPayErrors, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    use IFastPayErrors as E;
    match error {
        E::WrongVotesLength(e) => {
            write!(f, "item {}: {} bytes of votes where a quorum has {}", e.item, e.length, e.expected)
        }
        E::VotesNotAscending(e) => {
            write!(f, "item {}: the vote at {} of member {} is out of order or repeated", e.item, e.position, e.member)
        }
        E::UnknownMember(e) => {
            write!(f, "item {}: the vote at {} names member {}, who does not exist", e.item, e.position, e.member)
        }
        E::MalleableVote(e) => write!(f, "item {}: the vote at {} is malleable (high s)", e.item, e.position),
        E::InvalidRecoveryId(e) => {
            write!(f, "item {}: the vote at {} has recovery id {} instead of 27 or 28", e.item, e.position, e.v)
        }
        E::WrongSigner(e) => write!(
            f,
            "item {}: the vote at {} was signed by {}, not by member {}; is the certificate of this chain and contract?",
            e.item, e.position, e.recovered, e.member
        ),
        _ => f.write_str("the votes are not valid"),
    }
}

fn describe_council(error: &ICouncilErrors, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    use ICouncilErrors as E;
    match error {
        E::WrongEpoch(e) => write!(f, "it is for epoch {}, and only epoch {} counts now", e.epoch, e.expected),
        E::InvalidCompromisedSince(e) => {
            write!(
                f,
                "keys cannot be compromised since epoch {}: it is after the next epoch, or this is a recovery",
                e.compromisedSince
            )
        }
        E::InvalidDeadline(e) => write!(
            f,
            "the deadline {} has passed, or is after {}; announce with another one",
            utc(e.deadline),
            moment(e.latest)
        ),
        E::WrongProofsLength(e) => {
            write!(f, "{} bytes of proofs of possession where the members have {}", e.length, e.expected)
        }
        E::NoPossession(e) => write!(f, "the member at {} did not prove that it has its redemption key", e.member),
        E::AlreadyAnnounced(e) => write!(f, "{} is already announced; change the deadline to announce it again", e.id),
        E::NotAnnounced(e) => write!(f, "nothing was announced as {}", e.id),
        E::AnnouncementEnded(e) => write!(f, "announcement {} has ended; announce it again", e.id),
        E::AnnouncementLapsed(e) => {
            write!(f, "announcement {} lapsed at {}; announce it again", e.id, moment(e.lapsedAt))
        }
        E::AlreadyEndorsed(e) => write!(f, "{} is endorsed already", e.id),
        E::RecoveryNotEndorsable(e) => write!(f, "{} is a recovery: an endorsement does not shorten it", e.id),
        E::NotInstallable(e) => {
            write!(f, "announcement {} can be installed at {}; try again then", e.id, moment(e.installableAt))
        }
        E::AlreadyMatured(e) => write!(f, "announcement {} has matured already", e.id),
        E::NotMatured(e) => write!(f, "announcement {} has not matured; call `mature` first", e.id),
        E::AcceptedTooEarly(e) => {
            write!(f, "the acceptance names block {}, before block {}", e.blockNumber, e.maturedBlock)
        }
        E::UnknownBlock(e) => {
            write!(f, "the contract does not know the hash of block {}; sign with a newer block", e.blockNumber)
        }
        E::NotRecovery(e) => write!(f, "{} may not announce a recovery", e.caller),
        E::CommitteeAlive(e) => write!(f, "the committee counts as alive until {}", moment(e.silentAt)),
        E::NothingToAdopt(e) => write!(f, "epoch {} has no checkpoint to adopt", e.epoch),
        E::ZeroCheckpoint(_) => f.write_str("the checkpoint is zero"),
        E::AlreadyDecided(_)
        | E::AlreadyRequested(_)
        | E::NotRequested(_)
        | E::NotOwner(_)
        | E::AuthorizationTooLong(_)
        | E::WrongBond(_)
        | E::NotVoidable(_)
        | E::NoBond(_)
        | E::BondRefused(_) => describe_unlock(error, f),
    }
}

fn describe_unlock(error: &ICouncilErrors, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    use ICouncilErrors as E;
    match error {
        E::AlreadyDecided(e) => write!(f, "{} is already decided", number(e.account, e.sequence)),
        E::AlreadyRequested(e) => write!(f, "the unlock of {} is already requested", number(e.account, e.sequence)),
        E::NotRequested(e) => {
            write!(f, "nobody has requested the unlock of {}; request it first", number(e.account, e.sequence))
        }
        E::NotOwner(e) => {
            write!(
                f,
                "the caller is not the owner of {}, and the authorization is not the owner's signature",
                AccountId(e.account.0)
            )
        }
        E::AuthorizationTooLong(e) => {
            write!(f, "an authorization of {} bytes; at most {} are taken", e.length, e.max)
        }
        E::WrongBond(e) => write!(f, "{} wei were sent; send a bond of {}", e.sent, e.expected),
        E::NotVoidable(e) => {
            let (number, from) = (number(e.account, e.sequence), moment(e.voidableFrom));
            write!(f, "{number} can be voided so from {from} on; try again then")
        }
        E::NoBond(e) => write!(f, "there is no bond to return of {}", number(e.account, e.sequence)),
        E::BondRefused(e) => write!(f, "{} rejected the bond; call from an account that accepts ETH", e.to),
        _ => f.write_str("the council refused it"),
    }
}

fn number(account: B256, sequence: u64) -> String {
    format!("number {sequence} of {}", AccountId(account.0))
}

fn describe_token(error: &ITokenErrors, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    use ITokenErrors as E;
    match error {
        E::ERC20InsufficientBalance(e) => {
            write!(f, "{} holds {} of the token, and {} are needed", e.sender, e.balance, e.needed)
        }
        E::ERC20InsufficientAllowance(e) => {
            write!(f, "the allowance of {} is {}, and {} are needed; approve first", e.spender, e.allowance, e.needed)
        }
        E::ERC2612ExpiredSignature(e) => write!(f, "the permit expired at {}; sign a new one", e.deadline),
        E::ERC2612InvalidSigner(e) => write!(f, "the permit was signed by {}, not by {}", e.signer, e.owner),
        E::SafeERC20FailedOperation(e) => write!(f, "the token {} refused the transfer", e.token),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy::primitives::Address;

    use crate::contract::{ICouncil, IFastPay};

    #[test]
    fn every_kind_of_revert_is_read_and_says_what_happened() {
        let wrong_signer = IFastPay::WrongSigner {
            item: U256::from(3),
            position: U256::from(1),
            member: 2,
            recovered: Address::repeat_byte(7),
        };
        let revert = Revert::decode(wrong_signer.abi_encode().into());
        assert_eq!(revert.item(), Some(3));
        assert!(revert.to_string().contains("not by member 2"), "{revert}");

        let again = IFastPay::AlreadyRedeemed { sender: B256::ZERO, sequence: 5 };
        assert!(Revert::decode(again.abi_encode().into()).is_already_redeemed());

        let reason = ReasonString { reason: "paused".into() };
        assert_eq!(Revert::decode(reason.abi_encode().into()), Revert::Reason("paused".into()));
        assert_eq!(Revert::decode(Panic { code: U256::from(17) }.abi_encode().into()), Revert::Panic(U256::from(17)));
        assert!(Revert::decode(Bytes::new()).to_string().contains("too little gas"));
        assert!(matches!(Revert::decode(vec![1, 2, 3].into()), Revert::Unknown(_)));

        let early = ICouncil::NotInstallable { id: B256::ZERO, installableAt: U256::from(60) };
        let early = Revert::decode(early.abi_encode().into());
        assert!(early.to_string().contains("at 1970-01-01T00:01:00Z"), "{early}");

        let early = ICouncil::NotVoidable { account: B256::ZERO, sequence: 7, voidableFrom: U256::from(60) };
        let early = Revert::decode(early.abi_encode().into()).to_string();
        assert!(early.starts_with("number 7 of ") && early.contains("from 1970-01-01T00:01:00Z"), "{early}");
        let bond = ICouncil::WrongBond { sent: U256::ZERO, expected: U256::from(5) };
        let bond = Revert::decode(bond.abi_encode().into()).to_string();
        assert_eq!(bond, "0 wei were sent; send a bond of 5");
    }

    #[test]
    fn a_temporary_refusal_says_when_and_how_to_retry() {
        let paused = Revert::decode(IFastPay::PausedUntil { until: U256::from(1_795_289_465) }.abi_encode().into());
        assert_eq!(paused.paused_until(), Some(1_795_289_465));
        assert!(paused.to_string().contains("until 2026-11-21T19:31:05Z"), "{paused}");
        let ended = IFastPay::EpochEnded { epoch: 3, endedAt: U256::ZERO };
        let ended = Revert::decode(ended.abi_encode().into());
        assert_eq!(ended.paused_until(), None);
        assert!(ended.to_string().contains("certify the same redemption again"), "{ended}");
        let early = Revert::decode(IFastPay::TooEarly { executableAt: U256::from(60) }.abi_encode().into());
        assert!(early.to_string().contains("1970-01-01T00:01:00Z"), "{early}");
    }

    #[test]
    fn an_item_number_that_no_bundle_can_have_is_none() {
        let zero = IFastPay::ZeroRedemption { item: U256::MAX };
        assert_eq!(Revert::decode(zero.abi_encode().into()).item(), None);
    }
}
