//! The contracts that FastPay calls, as Solidity declares them, and the conversion of core's types to theirs.
//!
//! `IFastPay` and `ICouncil` are read from `contracts/interfaces/` (build.rs).

use fastpay_core::{Announcement, Authority, Certificate, Committee, Redemption, Transfer, encode_redemption_votes};

#[allow(missing_docs, clippy::too_many_arguments, clippy::indexing_slicing, clippy::unwrap_used)]
mod abi {
    include!(concat!(env!("OUT_DIR"), "/contracts.rs"));

    alloy::sol! {
        /// How a contract names itself and its EIP-712 domain.
        interface IERC5267 {
            function eip712Domain()
                external
                view
                returns (
                    bytes1 fields,
                    string memory name,
                    string memory version,
                    uint256 chainId,
                    address verifyingContract,
                    bytes32 salt,
                    uint256[] memory extensions
                );
        }

        /// The parts of ERC-20, its metadata, ERC-2612 permits and the errors of ERC-6093 that FastPay uses.
        #[derive(Debug, PartialEq, Eq)]
        interface IToken {
            error ERC20InsufficientBalance(address sender, uint256 balance, uint256 needed);
            error ERC20InsufficientAllowance(address spender, uint256 allowance, uint256 needed);
            error ERC2612ExpiredSignature(uint256 deadline);
            error ERC2612InvalidSigner(address signer, address owner);
            error SafeERC20FailedOperation(address token);

            function name() external view returns (string memory);
            function symbol() external view returns (string memory);
            function decimals() external view returns (uint8);
            function balanceOf(address account) external view returns (uint256);
            function allowance(address owner, address spender) external view returns (uint256);
            function approve(address spender, uint256 value) external returns (bool);
            function nonces(address owner) external view returns (uint256);
            function DOMAIN_SEPARATOR() external view returns (bytes32);
        }

        /// The statement that an ERC-2612 permit signs.
        struct Permit {
            address owner;
            address spender;
            uint256 value;
            uint256 nonce;
            uint256 deadline;
        }
    }
}

pub use abi::{
    Announcement as ContractAnnouncement, AssetCap, Authority as ContractAuthority, CapRaise, CertifiedRedemption,
    ICouncil, IFastPay, IToken, Outcome as UnlockOutcome, Redemption as ContractRedemption, SafetyParameters,
    Upholding,
};
pub(crate) use abi::{IERC5267, Permit};

impl From<&Redemption> for ContractRedemption {
    fn from(redemption: &Redemption) -> Self {
        Self {
            sender: redemption.sender.0.into(),
            recipient: redemption.recipient,
            asset: redemption.asset.0,
            amount: redemption.amount.0,
            fee: redemption.fee.0,
            sequence: redemption.sequence.0,
            memo: redemption.memo,
        }
    }
}

impl From<&Authority> for ContractAuthority {
    fn from(authority: &Authority) -> Self {
        Self { votingKey: authority.name.0.into(), redemptionKey: authority.redemption_key }
    }
}

impl From<&Announcement> for ContractAnnouncement {
    fn from(announcement: &Announcement) -> Self {
        Self {
            epoch: announcement.committee.epoch().0,
            authorities: announcement.committee.members().iter().map(Into::into).collect(),
            guardian: announcement.guardian,
            recovery: announcement.recovery,
            compromisedSince: announcement.compromised_since.0,
            checkpoint: announcement.checkpoint,
            deadline: announcement.deadline,
        }
    }
}

/// A redemption certificate in the contract's form; `committee` is the one that voted. `None` if the certificate is not
/// of a redemption, or a vote is not a member's for a redemption.
#[must_use]
pub fn certified_redemption(certificate: &Certificate, committee: &Committee) -> Option<CertifiedRedemption> {
    let Transfer::Redemption(redemption) = &certificate.order.transfer else { return None };
    let votes = encode_redemption_votes(committee, &certificate.votes)?;
    Some(CertifiedRedemption { redemption: redemption.into(), epoch: certificate.epoch.0, votes: votes.into() })
}
