//! What is signed about private payments, as EIP-712 digests under the deployment's domain.
//!
//! Members vote for a transfer by its digest, as for any payment. A proof is bound to the same digest, so neither the
//! recipient of a withdrawal nor the notes can be altered.

use sha3::{Digest, Keccak256};

use crate::notes::{OWN_NOTE_BYTES, PAYMENT_NOTE_BYTES};

/// The separator of an EIP-712 domain.
pub type Separator = [u8; 32];

/// A transaction, without its proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrivateTransfer {
    /// The version of the committee's coin keys.
    pub committee: u64,
    /// The version of the rules.
    pub rules: u64,
    /// The asset.
    pub asset: [u8; 20],
    /// The nullifier of the account that is replaced.
    pub account_spent: [u8; 32],
    /// The nullifier of the coin that is claimed.
    pub coin_spent: [u8; 32],
    /// The commitment of the new account.
    pub account: [u8; 32],
    /// The commitment of the coin that is made.
    pub coin: [u8; 32],
    /// What leaves the pool, in the asset's smallest unit.
    pub amount_out: u128,
    /// Who gets it; zero if nothing leaves.
    pub recipient: [u8; 32],
    /// A memo for the recipient; zero if nothing leaves.
    pub memo: [u8; 32],
    /// The hash of the two notes: [`notes_hash`].
    pub notes_hash: [u8; 32],
}

/// The coin keys of a committee and the keys of its proofs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrivateCommittee {
    /// The version of these keys.
    pub version: u64,
    /// The committee's epoch.
    pub epoch: u64,
    /// A coin key for each member, in the members' order.
    pub coin_keys: Vec<[u8; 32]>,
    /// The hash of the verifying key.
    pub verifying_key_hash: [u8; 32],
    /// The hash of the proving key.
    pub proving_key_hash: [u8; 32],
}

/// The regulator's rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrivateRules {
    /// The version of these rules.
    pub version: u64,
    /// The registrar's key.
    pub registrar: [u8; 32],
    /// The root of the sanctions list.
    pub sanctions_root: [u8; 32],
    /// The hash of the list.
    pub list_hash: [u8; 32],
    /// The period.
    pub period: u32,
    /// The oldest version of the rules under which transfers are accepted.
    pub oldest_accepted: u64,
}

/// What a member says of a nullifier when it is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NullifierStatus {
    /// The member's epoch.
    pub epoch: u64,
    /// The nullifier.
    pub nullifier: [u8; 32],
    /// Unseen, locked or spent.
    pub status: Status,
    /// The digest of the transfer that locked or spent it; zero if unseen.
    pub digest: [u8; 32],
    /// Who asked and why, such as an auditor's challenge: the answer is for nothing else.
    pub context: [u8; 32],
}

/// Whether a nullifier was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// By no transfer.
    Unseen = 0,
    /// By a transfer for which the member voted.
    Locked = 1,
    /// By a certified transfer.
    Spent = 2,
}

impl PrivateTransfer {
    const TYPE: &str = "PrivateTransfer(uint64 committee,uint64 rules,address asset,bytes32 accountSpent,\
        bytes32 coinSpent,bytes32 account,bytes32 coin,uint128 amountOut,bytes32 recipient,bytes32 memo,bytes32 notesHash)";

    /// What members vote for.
    #[must_use]
    pub fn digest(&self, separator: &Separator) -> [u8; 32] {
        let mut asset = [0; 32];
        asset[12..].copy_from_slice(&self.asset);
        digest(
            separator,
            Self::TYPE,
            &[
                word(self.committee.into()),
                word(self.rules.into()),
                asset,
                self.account_spent,
                self.coin_spent,
                self.account,
                self.coin,
                word(self.amount_out),
                self.recipient,
                self.memo,
                self.notes_hash,
            ],
        )
    }
}

impl PrivateCommittee {
    const TYPE: &str = "PrivateCommittee(uint64 version,uint64 epoch,bytes32[] coinKeys,bytes32 verifyingKeyHash,\
        bytes32 provingKeyHash)";

    /// What members vote for.
    #[must_use]
    pub fn digest(&self, separator: &Separator) -> [u8; 32] {
        digest(
            separator,
            Self::TYPE,
            &[
                word(self.version.into()),
                word(self.epoch.into()),
                Keccak256::digest(self.coin_keys.concat()).into(),
                self.verifying_key_hash,
                self.proving_key_hash,
            ],
        )
    }
}

impl PrivateRules {
    const TYPE: &str = "PrivateRules(uint64 version,bytes32 registrar,bytes32 sanctionsRoot,bytes32 listHash,\
        uint32 period,uint64 oldestAccepted)";

    /// What members vote for.
    #[must_use]
    pub fn digest(&self, separator: &Separator) -> [u8; 32] {
        digest(
            separator,
            Self::TYPE,
            &[
                word(self.version.into()),
                self.registrar,
                self.sanctions_root,
                self.list_hash,
                word(self.period.into()),
                word(self.oldest_accepted.into()),
            ],
        )
    }
}

impl NullifierStatus {
    const TYPE: &str = "NullifierStatus(uint64 epoch,bytes32 nullifier,uint8 status,bytes32 digest,bytes32 context)";

    /// What a member signs.
    #[must_use]
    pub fn digest(&self, separator: &Separator) -> [u8; 32] {
        digest(
            separator,
            Self::TYPE,
            &[word(self.epoch.into()), self.nullifier, word(self.status as u128), self.digest, self.context],
        )
    }
}

/// The Keccak-256 hash of the two notes of a transaction, the payee's first. Each has one length.
#[must_use]
pub fn notes_hash(payment: &[u8; PAYMENT_NOTE_BYTES], own: &[u8; OWN_NOTE_BYTES]) -> [u8; 32] {
    Keccak256::new_with_prefix(payment).chain_update(own).finalize().into()
}

/// A number as 32 big-endian bytes.
fn word(number: u128) -> [u8; 32] {
    let mut word = [0; 32];
    word[16..].copy_from_slice(&number.to_be_bytes());
    word
}

fn digest(separator: &Separator, kind: &str, words: &[[u8; 32]]) -> [u8; 32] {
    let mut of_struct = Keccak256::new_with_prefix(Keccak256::digest(kind));
    words.iter().for_each(|word| of_struct.update(word));
    let mut all = Keccak256::new_with_prefix([0x19, 0x01]);
    all.update(separator);
    all.update(of_struct.finalize());
    all.finalize().into()
}
