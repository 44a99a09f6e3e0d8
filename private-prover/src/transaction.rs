//! Transactions as a wallet makes them: an order, what is certified, and what is in force become the public part, the
//! witness, and the account afterwards.

use std::collections::BTreeMap;

use fastpay_core::private::{Nullifier, OWN_NOTE_BYTES, PAYMENT_NOTE_BYTES, PrivateOrder, PrivateTransfer, notes_hash};
use fastpay_core::{AccountId, Amount, Digest, Memo, SequenceNumber};
use fastpay_private::parts::derive;
use fastpay_private::{
    Account, Asset, Coin, CommitteeSize, Credential, Domain, Fr, Limits, Owner, Public, PublicKey, Sanctions, Shape,
    Signature, SpendingKey, field_from_hash, field_from_u128, field_to_bytes, history_after,
};
use thiserror::Error;
use zeroize::Zeroizing;

use crate::check::broken_rules;
use crate::statement::{OutputValues, Rule, Witness};

/// What authorities put into the statement themselves, as certified.
pub struct InForce {
    /// The deployment.
    pub domain: Domain,
    /// The coin keys of the epoch, of all members.
    pub members: Vec<PublicKey>,
    /// The registrar's key.
    pub registrar: PublicKey,
    /// The sanctions list.
    pub sanctions: Sanctions,
    /// The period.
    pub period: u32,
}

impl InForce {
    /// The shape of the statement for this committee.
    ///
    /// # Errors
    /// [`CommitteeSize`] unless it has from 4 to 255 members.
    pub const fn shape(&self) -> Result<Shape, CommitteeSize> {
        Shape::of_committee(self.members.len())
    }
}

/// An object, and the signatures of its commitment by members of the committee, each verified when it was received: one
/// that is not valid may stand in the way of a transaction.
#[derive(Clone)]
pub struct Certified<T> {
    /// A coin or an account.
    pub object: T,
    /// By the member's place in the committee.
    pub signatures: BTreeMap<usize, Signature>,
}

/// What the owner wants.
#[derive(Clone)]
pub struct Order {
    /// The account, or none if this transaction opens it.
    pub account: Option<Certified<Account>>,
    /// The coin to claim. Once an order that claims it was sent, each other order of the same account must claim it, too:
    /// a transaction that claims it later shows the same nullifier, and with it which account was before.
    pub claim: Option<Certified<Coin>>,
    /// The asset.
    pub asset: Asset,
    /// Who is paid privately; oneself if nobody is.
    pub payee: Owner,
    /// What the payee gets, in the asset's smallest unit.
    pub amount: u128,
    /// What leaves the pool: 0 if somebody else is paid.
    pub withdrawn: u128,
    /// The credential and the registrar's signature, or none in an exit: then nothing is paid privately, and what is
    /// claimed leaves the pool.
    pub credential: Option<(Credential, Signature)>,
    /// A hash of all that is not said above: versions, recipient and memo of the withdrawal, memo of the payment. Two
    /// orders that differ share no randomness.
    pub rest: [u8; 32],
}

/// Why there is no transaction.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// The committee is too small or too large.
    #[error(transparent)]
    Committee(#[from] CommitteeSize),
    /// Fewer than f + 1 members signed both the account and the coin.
    #[error("not enough members of the committee signed both the account and the coin: wait for their signatures")]
    Signatures,
    /// The order pays somebody else and withdraws. The payee sees the transaction of its coin, and so would know by the
    /// withdrawal who paid: make two transactions of it.
    #[error("paying somebody and withdrawing at once shows the payee who pays: make two transactions of it")]
    PaysAndWithdraws,
    /// A counter of the account would pass 2^128.
    #[error("the account's counters cannot hold this amount")]
    Counter,
    /// The rules that stand in the way.
    #[error("the transaction breaks rules: {0:?}")]
    Rules(Vec<Rule>),
}

/// A transaction whose digest is still to be set.
pub struct Prepared {
    /// The public part. Its digest is 0 until [`Self::bind`].
    pub public: Public,
    /// The witness.
    pub witness: Witness,
    /// The account once the transaction is settled.
    pub account: Account,
    /// The coin that it makes.
    pub coin: Coin,
}

/// What a transfer says that the statement does not know, except by the digest.
pub struct Envelope {
    /// The version of the committee's coin keys.
    pub committee: u64,
    /// The version of the rules.
    pub rules: u64,
    /// The number of the account nullifier: 0, or the one after those that the contract voided.
    pub sequence: SequenceNumber,
    /// Who gets what leaves the pool; zero if nothing leaves.
    pub recipient: AccountId,
    /// A memo for the recipient; zero if nothing leaves.
    pub memo: Memo,
    /// The note to the payee, or [`crate::dummy_payment_note`].
    pub payment_note: [u8; PAYMENT_NOTE_BYTES],
    /// The note to oneself.
    pub own_note: [u8; OWN_NOTE_BYTES],
}

impl Envelope {
    /// The order of a transaction with this public part. [`Prepared::bind`] takes its transfer's digest.
    #[must_use]
    pub fn order(&self, public: &Public) -> PrivateOrder {
        let bytes = |element| field_to_bytes(element).into();
        let transfer = PrivateTransfer {
            committee: self.committee,
            rules: self.rules,
            asset: fastpay_core::Asset(public.asset.0.into()),
            account_spent: Nullifier(bytes(public.account_nullifier)),
            sequence: self.sequence,
            coin_spent: Nullifier(bytes(public.coin_nullifier)),
            account: bytes(public.account),
            coin: bytes(public.coin),
            amount_out: Amount(public.withdrawn),
            recipient: self.recipient,
            memo: self.memo,
            notes_hash: notes_hash(&self.payment_note, &self.own_note),
        };
        PrivateOrder { transfer, payment_note: self.payment_note, own_note: self.own_note }
    }
}

impl Prepared {
    /// Binds the proof to the whole transaction, by its digest.
    pub fn bind(&mut self, digest: Digest) {
        self.public.digest = field_from_hash(digest.0);
    }
}

/// Makes the transaction of an order. The seed is the owner's secret: with the order, it determines all randomness.
///
/// # Errors
/// [`Refusal`], if the order cannot be proved.
pub fn prepare(in_force: &InForce, key: &SpendingKey, seed: &[u8; 32], order: &Order) -> Result<Prepared, Refusal> {
    let shape = in_force.shape()?;
    let (owner, asset) = (key.owner(), order.asset);
    if order.withdrawn > 0 && order.payee != owner {
        return Err(Refusal::PaysAndWithdraws);
    }
    let first = order.account.is_none();
    let before = order.account.as_ref().map_or_else(|| Account::first(owner, asset, in_force.domain), |own| own.object);
    let random = Randomness::new(seed, order, &before, in_force);
    let claimed = order.claim.as_ref().map_or_else(
        || Coin { value: 0, asset, rho: random.element("dummy"), owner, r: Fr::from(0) },
        |claim| claim.object,
    );
    let signers = signers(shape, order)?;
    let signatures = |of: Option<&BTreeMap<usize, Signature>>| {
        let signature = |signer| of.and_then(|of| of.get(signer)).copied().unwrap_or(Signature::none());
        signers.iter().map(signature).collect::<Vec<Signature>>()
    };
    let (credential, credential_signature) =
        order.credential.unwrap_or_else(|| (exit(owner, asset), Signature::none()));

    let nullifier = key.account_nullifier(before.rho);
    let coin = Coin { value: order.amount, asset, rho: nullifier, owner: order.payee, r: random.element("coin") };
    let account = after(&before, &claimed, &coin, order, in_force.period, random.element("account"))?;
    let public = Public {
        domain: in_force.domain,
        asset,
        account_nullifier: nullifier,
        coin_nullifier: key.coin_nullifier(claimed.rho),
        account: account.commitment(),
        coin: coin.commitment(),
        withdrawn: order.withdrawn,
        digest: Fr::from(0),
        period: in_force.period,
        sanctions: in_force.sanctions.root(),
        registrar: in_force.registrar,
        members: in_force.members.clone(),
    };
    let witness = Witness {
        key: key.clone(),
        first,
        account: (&before).into(),
        account_signatures: signatures(order.account.as_ref().map(|own| &own.signatures)),
        dummy: order.claim.is_none(),
        claimed: (&claimed).into(),
        coin_signatures: signatures(order.claim.as_ref().map(|claim| &claim.signatures)),
        output: OutputValues { value: field_from_u128(coin.value), owner: coin.owner.0, r: coin.r },
        r: account.r,
        exit: order.credential.is_none(),
        credential: (&credential).into(),
        credential_signature,
        payer_gap: in_force.sanctions.path(owner.tag()),
        payee_gap: in_force.sanctions.path(order.payee.tag()),
        signers,
    };
    match broken_rules(shape, &public, &witness) {
        broken if broken.is_empty() => Ok(Prepared { public, witness, account, coin }),
        broken => Err(Refusal::Rules(broken)),
    }
}

/// The credential of an exit.
fn exit(owner: Owner, asset: Asset) -> Credential {
    Credential { owner, asset, limits: Limits::NONE, expiry: u32::MAX, attributes: Fr::from(0) }
}

/// The account after the transaction.
fn after(before: &Account, claimed: &Coin, coin: &Coin, order: &Order, period: u32, r: Fr) -> Result<Account, Refusal> {
    let broken = |rule| Refusal::Rules(vec![rule]);
    let kept = if coin.owner == before.owner { coin.value } else { 0 };
    let received = claimed.value.checked_sub(kept).ok_or_else(|| broken(Rule::Kept))?;
    let to_others = coin.value - kept;
    let given = to_others.checked_add(order.withdrawn).ok_or(Refusal::Counter)?;
    let held = before.balance.checked_add(received).ok_or(Refusal::Counter)?;
    let balance = held.checked_sub(given).ok_or_else(|| broken(Rule::Balance))?;
    let if_same = |amount| if before.period == period { amount } else { 0 };
    let count = |before: u128, more: u128| before.checked_add(more).ok_or(Refusal::Counter);
    Ok(Account {
        balance,
        spent: count(if_same(before.spent), given)?,
        total: count(before.total, given)?,
        period,
        received: count(if_same(before.received), received)?,
        history: history_after(before.history, coin.commitment(), order.withdrawn, period),
        rho: coin.rho,
        r,
        ..*before
    })
}

/// The first f + 1 members who signed all that needs signatures.
fn signers(shape: Shape, order: &Order) -> Result<Vec<usize>, Refusal> {
    let signed_account = |member: &usize| order.account.as_ref().is_none_or(|own| own.signatures.contains_key(member));
    let signed_coin = |member: &usize| order.claim.as_ref().is_none_or(|claim| claim.signatures.contains_key(member));
    let signers: Vec<usize> =
        (0..shape.members()).filter(signed_account).filter(signed_coin).take(shape.signers()).collect();
    if signers.len() == shape.signers() { Ok(signers) } else { Err(Refusal::Signatures) }
}

/// All randomness of a transaction: a hash of the seed and of every field of the order.
struct Randomness(Zeroizing<[u8; 32]>);

impl Randomness {
    fn new(seed: &[u8; 32], order: &Order, before: &Account, in_force: &InForce) -> Self {
        let claim = order.claim.as_ref().map_or([0; 32], |claim| field_to_bytes(claim.object.commitment()));
        let credential = order.credential.map_or([0; 32], |(credential, _)| field_to_bytes(credential.message()));
        let element = derive(
            "fastpay/private/order",
            &[
                seed,
                &field_to_bytes(in_force.domain.element()),
                &in_force.period.to_be_bytes(),
                &field_to_bytes(before.commitment()),
                &claim,
                &order.asset.0,
                &field_to_bytes(order.payee.0),
                &order.amount.to_be_bytes(),
                &order.withdrawn.to_be_bytes(),
                &credential,
                &order.rest,
            ],
        );
        Self(Zeroizing::new(field_to_bytes(element)))
    }

    fn element(&self, of: &str) -> Fr {
        derive("fastpay/private/randomness", &[&self.0[..], of.as_bytes()])
    }
}
