//! What a private transaction proves: the witness, and the rules between it and the public part.

use fastpay_private::{Account, Coin, Credential, Fr, GapPath, Signature, SpendingKey, field_from_u128};

/// A clause of the statement. Each has the name of its constraints, under which a circuit's refusal stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// Signers are f + 1 different members, in ascending order.
    Signers,
    /// A first account is empty, and its ρ is the one of this owner, asset and deployment.
    FirstAccount,
    /// Any other account is the owner's, and the signers signed it.
    AccountSigned,
    /// The account nullifier is the account's.
    AccountNullifier,
    /// A claimed coin that nobody signed is worth nothing.
    Dummy,
    /// Any other claimed coin is the owner's, and the signers signed it.
    CoinSigned,
    /// The coin nullifier is the claimed coin's.
    CoinNullifier,
    /// The amount paid is below 2^128.
    OutputValue,
    /// The coin made is of that amount, for the payee, and its ρ is the account nullifier.
    OutputCommitment,
    /// An exit has an account, pays nobody privately, keeps nothing that it claims, and has no limits.
    Exit,
    /// In all other transactions the registrar signed the credential.
    CredentialSigned,
    /// The credential has not expired.
    Expiry,
    /// What is paid to oneself is part of what is claimed.
    Kept,
    /// The balance covers what is paid and withdrawn.
    Balance,
    /// After a claim, the balance is at most the limit.
    Hold,
    /// Given away by this transaction.
    Transaction,
    /// The period is not before the account's.
    Time,
    /// Given away in the period.
    Period,
    /// Claimed in the period.
    Receive,
    /// Given away in total.
    Total,
    /// The new account follows from the old one and the payment.
    AccountCommitment,
    /// The payer is not on the list.
    PayerListed,
    /// The payee is not on the list.
    PayeeListed,
}

impl Rule {
    /// All rules.
    pub const ALL: [Self; 23] = [
        Self::Signers,
        Self::FirstAccount,
        Self::AccountSigned,
        Self::AccountNullifier,
        Self::Dummy,
        Self::CoinSigned,
        Self::CoinNullifier,
        Self::OutputValue,
        Self::OutputCommitment,
        Self::Exit,
        Self::CredentialSigned,
        Self::Expiry,
        Self::Kept,
        Self::Balance,
        Self::Hold,
        Self::Transaction,
        Self::Time,
        Self::Period,
        Self::Receive,
        Self::Total,
        Self::AccountCommitment,
        Self::PayerListed,
        Self::PayeeListed,
    ];

    /// The name of the rule's constraints.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Signers => "rule: signers",
            Self::FirstAccount => "rule: first account",
            Self::AccountSigned => "rule: account signed",
            Self::AccountNullifier => "rule: account nullifier",
            Self::Dummy => "rule: dummy",
            Self::CoinSigned => "rule: coin signed",
            Self::CoinNullifier => "rule: coin nullifier",
            Self::OutputValue => "rule: output value",
            Self::OutputCommitment => "rule: output commitment",
            Self::Exit => "rule: exit",
            Self::CredentialSigned => "rule: credential signed",
            Self::Expiry => "rule: expiry",
            Self::Kept => "rule: kept",
            Self::Balance => "rule: balance",
            Self::Hold => "rule: hold",
            Self::Transaction => "rule: transaction",
            Self::Time => "rule: time",
            Self::Period => "rule: period",
            Self::Receive => "rule: receive",
            Self::Total => "rule: total",
            Self::AccountCommitment => "rule: account commitment",
            Self::PayerListed => "rule: payer listed",
            Self::PayeeListed => "rule: payee listed",
        }
    }
}

/// An account as the circuit has it: elements, which no type keeps below 2^128.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are those of `Account`")]
pub struct AccountValues {
    pub balance: Fr,
    pub spent: Fr,
    pub total: Fr,
    pub period: Fr,
    pub received: Fr,
    pub history: Fr,
    pub rho: Fr,
    pub r: Fr,
}

impl From<&Account> for AccountValues {
    fn from(account: &Account) -> Self {
        Self {
            balance: field_from_u128(account.balance),
            spent: field_from_u128(account.spent),
            total: field_from_u128(account.total),
            period: Fr::from(u64::from(account.period)),
            received: field_from_u128(account.received),
            history: account.history,
            rho: account.rho,
            r: account.r,
        }
    }
}

/// A claimed coin as the circuit has it. Its owner is who spends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are those of `Coin`")]
pub struct CoinValues {
    pub value: Fr,
    pub rho: Fr,
    pub r: Fr,
}

impl From<&Coin> for CoinValues {
    fn from(coin: &Coin) -> Self {
        Self { value: field_from_u128(coin.value), rho: coin.rho, r: coin.r }
    }
}

/// The coin made, as the circuit has it. Its ρ is the account nullifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are those of `Coin`")]
pub struct OutputValues {
    pub value: Fr,
    pub owner: Fr,
    pub r: Fr,
}

/// A credential as the circuit has it. Its owner is who spends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are those of `Credential`")]
pub struct CredentialValues {
    pub transaction: Fr,
    pub period: Fr,
    pub total: Fr,
    pub hold: Fr,
    pub receive: Fr,
    pub expiry: Fr,
    pub attributes: Fr,
}

impl From<&Credential> for CredentialValues {
    fn from(credential: &Credential) -> Self {
        Self {
            transaction: field_from_u128(credential.limits.transaction),
            period: field_from_u128(credential.limits.period),
            total: field_from_u128(credential.limits.total),
            hold: field_from_u128(credential.limits.hold),
            receive: field_from_u128(credential.limits.receive),
            expiry: Fr::from(u64::from(credential.expiry)),
            attributes: credential.attributes,
        }
    }
}

/// What only the prover knows.
#[derive(Clone)]
pub struct Witness {
    /// The key that spends.
    pub key: SpendingKey,
    /// Which members' signatures are shown, ascending from 0.
    pub signers: Vec<usize>,
    /// Whether the account is the first, which needs no signatures.
    pub first: bool,
    /// The account that is replaced.
    pub account: AccountValues,
    /// Its signatures, in the order of the signers.
    pub account_signatures: Vec<Signature>,
    /// Whether nothing is claimed, and the coin needs no signatures.
    pub dummy: bool,
    /// The coin that is claimed.
    pub claimed: CoinValues,
    /// Its signatures, in the order of the signers.
    pub coin_signatures: Vec<Signature>,
    /// The coin that is made.
    pub output: OutputValues,
    /// The randomness of the new account.
    pub r: Fr,
    /// Whether this is an exit: money leaves the pool without a credential and without limits.
    pub exit: bool,
    /// The credential; in an exit, one without limits that needs no signature.
    pub credential: CredentialValues,
    /// The registrar's signature of it.
    pub credential_signature: Signature,
    /// The gap in which the payer lies.
    pub payer_gap: GapPath,
    /// The gap in which the payee lies.
    pub payee_gap: GapPath,
}
