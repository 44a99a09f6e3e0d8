//! The statement. Constraints that a false witness breaks are under the names of their rules; all others define a value.

use bellpepper_core::{Circuit, ConstraintSystem};
use fastpay_private::parts::{ACCOUNT_NULLIFIER, COIN_NULLIFIER, EIGHT, FOUR, OWNER, TWO};
use fastpay_private::{Fr, Kind, Public, Shape, field_from_u128};

use super::listing::require_unlisted;
use super::poseidon::hash;
use super::signature::{Key, choose};
use super::wire::{Made, Wire, is_zero, product, require, require_equal, require_range};
use crate::statement::{Rule, Witness};

/// Bits of an amount, and of a period.
const AMOUNT: usize = 128;
const PERIOD: usize = 32;

/// The statement of one transaction, or of none while keys are made.
#[derive(Clone)]
pub struct Statement {
    shape: Shape,
    transaction: Option<(Public, Witness)>,
}

impl Statement {
    /// The statement without a transaction: its constraints are what keys are made of.
    #[must_use]
    pub const fn blank(shape: Shape) -> Self {
        Self { shape, transaction: None }
    }

    /// That these public inputs have this witness. False ones are synthesized, too; no proof of them verifies.
    #[must_use]
    pub const fn new(shape: Shape, public: Public, witness: Witness) -> Self {
        Self { shape, transaction: Some((public, witness)) }
    }
}

/// The public inputs.
struct Inputs {
    domain: Wire,
    asset: Wire,
    account_nullifier: Wire,
    coin_nullifier: Wire,
    account: Wire,
    coin: Wire,
    withdrawn: Wire,
    digest: Wire,
    period: Wire,
    sanctions: Wire,
    registrar: [Wire; 2],
    members: Vec<[Wire; 2]>,
}

impl Inputs {
    fn allocate<CS: ConstraintSystem<Fr>>(cs: &mut CS, shape: Shape, public: Option<&Public>) -> Made<Self> {
        let values = public.map(Public::inputs);
        let mut at = 0;
        let mut next = |name: &str| {
            let value = values.as_ref().and_then(|values| values.get(at).copied());
            at += 1;
            Wire::input(cs, name, value)
        };
        Ok(Self {
            domain: next("domain")?,
            asset: next("asset")?,
            account_nullifier: next("account nullifier")?,
            coin_nullifier: next("coin nullifier")?,
            account: next("account")?,
            coin: next("coin")?,
            withdrawn: next("withdrawn")?,
            digest: next("digest")?,
            period: next("period")?,
            sanctions: next("sanctions")?,
            registrar: [next("registrar u")?, next("registrar v")?],
            members: (0..shape.members())
                .map(|member| Ok([next(&format!("member {member} u"))?, next(&format!("member {member} v"))?]))
                .collect::<Made<_>>()?,
        })
    }
}

/// The account before the transaction.
struct Before {
    balance: Wire,
    spent: Wire,
    total: Wire,
    period: Wire,
    received: Wire,
    history: Wire,
}

/// The limits that count: of the credential, or none in an exit.
struct Bounds {
    transaction: Wire,
    period: Wire,
    total: Wire,
    hold: Wire,
    receive: Wire,
    expiry: Wire,
}

/// What moves.
struct Moved {
    /// Claimed and not kept as a coin of one's own.
    received: Wire,
    /// Paid to others and withdrawn.
    given: Wire,
    /// Paid to others.
    to_others: Wire,
    /// The balance afterwards.
    balance: Wire,
}

impl Circuit<Fr> for Statement {
    fn synthesize<CS: ConstraintSystem<Fr>>(self, cs: &mut CS) -> Made<()> {
        let (public, witness) = self.transaction.as_ref().map(|(public, witness)| (public, witness)).unzip();
        let inputs = Inputs::allocate(cs, self.shape, public)?;
        // The digest has no other part in the statement.
        product(cs, "digest", &inputs.digest, &Wire::one())?;
        let chosen = witness.map(|witness| &witness.signers[..]);
        let signers = choose(cs, Rule::Signers.name(), &inputs.members, self.shape.signers(), chosen)?;
        let key = Wire::given(cs, "key", witness.map(|witness| witness.key.element()))?;
        let owner = hash(cs, "owner", &TWO, &[&key, &Wire::constant(Fr::from(OWNER))])?;

        let before = account_before(cs, &inputs, &signers, &key, &owner, witness)?;
        let claimed = coin_claimed(cs, &inputs, &signers, &key, &owner, witness)?;
        let (paid, payee) = coin_made(cs, &inputs, witness)?;
        let first = before.1;
        let before = before.0;

        let to_self = is_zero(cs, "to oneself", &(payee.clone() - &owner))?;
        let kept = product(cs, "kept", &paid, &to_self)?;
        let to_others = paid.clone() - &kept;
        let moved = Moved {
            received: claimed.clone() - &kept,
            given: to_others.clone() + &inputs.withdrawn,
            to_others,
            balance: before.balance.clone() + &claimed - &paid - &inputs.withdrawn,
        };
        let bounds = credential(cs, &inputs, &owner, &first, &moved, witness)?;
        account_after(cs, &inputs, &owner, &before, &moved, &bounds, witness)?;

        let cs = &mut cs.namespace(|| "lists");
        require_unlisted(
            &mut cs.namespace(|| Rule::PayerListed.name()),
            &owner,
            &inputs.sanctions,
            witness.map(|witness| &witness.payer_gap),
        )?;
        require_unlisted(
            &mut cs.namespace(|| Rule::PayeeListed.name()),
            &payee,
            &inputs.sanctions,
            witness.map(|witness| &witness.payee_gap),
        )
    }
}

/// The account that is replaced, and whether it is the first.
fn account_before<CS: ConstraintSystem<Fr>>(
    cs: &mut CS,
    inputs: &Inputs,
    signers: &[Key],
    key: &Wire,
    owner: &Wire,
    witness: Option<&Witness>,
) -> Made<(Before, Wire)> {
    let cs = &mut cs.namespace(|| "account before");
    let values = witness.map(|witness| &witness.account);
    let before = Before {
        balance: Wire::given(cs, "balance", values.map(|account| account.balance))?,
        spent: Wire::given(cs, "spent", values.map(|account| account.spent))?,
        total: Wire::given(cs, "total", values.map(|account| account.total))?,
        period: Wire::given(cs, "period", values.map(|account| account.period))?,
        received: Wire::given(cs, "received", values.map(|account| account.received))?,
        history: Wire::given(cs, "history", values.map(|account| account.history))?,
    };
    let rho = Wire::given(cs, "ρ", values.map(|account| account.rho))?;
    let r = Wire::given(cs, "r", values.map(|account| account.r))?;
    let first = Wire::given_bit(cs, "first", witness.map(|witness| witness.first))?;

    let first_rho = hash(cs, "first ρ", &FOUR, &[owner, &inputs.asset, &inputs.domain, &Wire::zero()])?;
    {
        let cs = &mut cs.namespace(|| Rule::FirstAccount.name());
        let mut none = |name: &str, wire: &Wire| require(cs, name, wire, &first, &Wire::zero());
        none("ρ", &(rho.clone() - &first_rho));
        none("balance", &before.balance);
        none("spent", &before.spent);
        none("total", &before.total);
        none("period", &before.period);
        none("received", &before.received);
        none("history", &before.history);
    }

    let more = hash(cs, "more", &FOUR, &[&before.period, &before.received, &before.history, &Wire::zero()])?;
    let commitment = hash(
        cs,
        "commitment",
        &EIGHT,
        &[owner, &inputs.asset, &before.balance, &before.spent, &before.total, &more, &rho, &r],
    )?;
    let context = inputs.domain.clone() + &Wire::constant(Kind::Account.number());
    for (at, signer) in signers.iter().enumerate() {
        let cs = &mut cs.namespace(|| format!("signature {at}"));
        let cs = &mut cs.namespace(|| Rule::AccountSigned.name());
        let signature = witness.and_then(|witness| witness.account_signatures.get(at));
        signer.require_signature(cs, &context, &commitment, signature, &first)?;
    }
    let nullifier =
        hash(cs, "nullifier", &TWO, &[&(key.clone() + &Wire::constant(Fr::from(ACCOUNT_NULLIFIER))), &rho])?;
    require_equal(&mut cs.namespace(|| Rule::AccountNullifier.name()), "is", &nullifier, &inputs.account_nullifier);
    Ok((before, first))
}

/// What the claimed coin is worth.
fn coin_claimed<CS: ConstraintSystem<Fr>>(
    cs: &mut CS,
    inputs: &Inputs,
    signers: &[Key],
    key: &Wire,
    owner: &Wire,
    witness: Option<&Witness>,
) -> Made<Wire> {
    let cs = &mut cs.namespace(|| "coin claimed");
    let values = witness.map(|witness| &witness.claimed);
    let value = Wire::given(cs, "value", values.map(|coin| coin.value))?;
    let rho = Wire::given(cs, "ρ", values.map(|coin| coin.rho))?;
    let r = Wire::given(cs, "r", values.map(|coin| coin.r))?;
    let dummy = Wire::given_bit(cs, "dummy", witness.map(|witness| witness.dummy))?;
    require(&mut cs.namespace(|| Rule::Dummy.name()), "value", &value, &dummy, &Wire::zero());
    let inner = hash(cs, "inner", &TWO, &[owner, &r])?;
    let commitment = hash(cs, "commitment", &FOUR, &[&value, &inputs.asset, &rho, &inner])?;
    let context = inputs.domain.clone() + &Wire::constant(Kind::Coin.number());
    for (at, signer) in signers.iter().enumerate() {
        let cs = &mut cs.namespace(|| format!("signature {at}"));
        let cs = &mut cs.namespace(|| Rule::CoinSigned.name());
        let signature = witness.and_then(|witness| witness.coin_signatures.get(at));
        signer.require_signature(cs, &context, &commitment, signature, &dummy)?;
    }
    let nullifier = hash(cs, "nullifier", &TWO, &[&(key.clone() + &Wire::constant(Fr::from(COIN_NULLIFIER))), &rho])?;
    require_equal(&mut cs.namespace(|| Rule::CoinNullifier.name()), "is", &nullifier, &inputs.coin_nullifier);
    Ok(value)
}

/// The value and the owner of the coin that is made.
fn coin_made<CS: ConstraintSystem<Fr>>(cs: &mut CS, inputs: &Inputs, witness: Option<&Witness>) -> Made<(Wire, Wire)> {
    let cs = &mut cs.namespace(|| "coin made");
    let values = witness.map(|witness| &witness.output);
    let value = Wire::given(cs, "value", values.map(|coin| coin.value))?;
    let owner = Wire::given(cs, "owner", values.map(|coin| coin.owner))?;
    let r = Wire::given(cs, "r", values.map(|coin| coin.r))?;
    require_range(cs, Rule::OutputValue.name(), &value, AMOUNT)?;
    let inner = hash(cs, "inner", &TWO, &[&owner, &r])?;
    let commitment = hash(cs, "commitment", &FOUR, &[&value, &inputs.asset, &inputs.account_nullifier, &inner])?;
    require_equal(&mut cs.namespace(|| Rule::OutputCommitment.name()), "is", &commitment, &inputs.coin);
    Ok((value, owner))
}

/// The limits of the registrar's credential, or of none in an exit.
fn credential<CS: ConstraintSystem<Fr>>(
    cs: &mut CS,
    inputs: &Inputs,
    owner: &Wire,
    first: &Wire,
    moved: &Moved,
    witness: Option<&Witness>,
) -> Made<Bounds> {
    let cs = &mut cs.namespace(|| "credential");
    let values = witness.map(|witness| &witness.credential);
    let bounds = Bounds {
        transaction: Wire::given(cs, "transaction", values.map(|credential| credential.transaction))?,
        period: Wire::given(cs, "period", values.map(|credential| credential.period))?,
        total: Wire::given(cs, "total", values.map(|credential| credential.total))?,
        hold: Wire::given(cs, "hold", values.map(|credential| credential.hold))?,
        receive: Wire::given(cs, "receive", values.map(|credential| credential.receive))?,
        expiry: Wire::given(cs, "expiry", values.map(|credential| credential.expiry))?,
    };
    let attributes = Wire::given(cs, "attributes", values.map(|credential| credential.attributes))?;
    let exit = Wire::given_bit(cs, "exit", witness.map(|witness| witness.exit))?;
    {
        let cs = &mut cs.namespace(|| Rule::Exit.name());
        let mut none = |name: &str, wire: &Wire| require(cs, name, wire, &exit, &Wire::zero());
        none("first account", first);
        none("paid to others", &moved.to_others);
        let largest = Wire::constant(field_from_u128(u128::MAX));
        none("limit of a transaction", &(bounds.transaction.clone() - &largest));
        none("limit of a period", &(bounds.period.clone() - &largest));
        none("limit in total", &(bounds.total.clone() - &largest));
        none("limit held", &(bounds.hold.clone() - &largest));
        none("limit received", &(bounds.receive.clone() - &largest));
        none("expiry", &(bounds.expiry.clone() - &Wire::constant(Fr::from(u64::from(u32::MAX)))));
        let leaves = product(cs, "withdrawn beyond claimed", &(inputs.withdrawn.clone() - &moved.received), &exit)?;
        require_range(cs, "what is claimed leaves", &leaves, AMOUNT)?;
    }
    let more = hash(cs, "more", &FOUR, &[&bounds.hold, &bounds.receive, &bounds.expiry, &attributes])?;
    let zero = Wire::zero();
    let message = hash(
        cs,
        "message",
        &EIGHT,
        &[owner, &inputs.asset, &bounds.transaction, &bounds.period, &bounds.total, &more, &zero, &zero],
    )?;
    let [u, v] = inputs.registrar.clone();
    let registrar = Key::new(&mut cs.namespace(|| "registrar"), u, v)?;
    let context = inputs.domain.clone() + &Wire::constant(Kind::Credential.number());
    let signature = witness.map(|witness| &witness.credential_signature);
    {
        let cs = &mut cs.namespace(|| Rule::CredentialSigned.name());
        registrar.require_signature(cs, &context, &message, signature, &exit)?;
    }
    require_range(cs, Rule::Expiry.name(), &(bounds.expiry.clone() - &inputs.period), PERIOD)?;
    Ok(bounds)
}

/// Requires the limits, and that the new account says what was used of them.
fn account_after<CS: ConstraintSystem<Fr>>(
    cs: &mut CS,
    inputs: &Inputs,
    owner: &Wire,
    before: &Before,
    moved: &Moved,
    bounds: &Bounds,
    witness: Option<&Witness>,
) -> Made<()> {
    let cs = &mut cs.namespace(|| "account after");
    let elapsed = inputs.period.clone() - &before.period;
    let same_period = is_zero(cs, "same period", &elapsed)?;
    let spent = product(cs, "spent before", &before.spent, &same_period)? + &moved.given;
    let received = product(cs, "received before", &before.received, &same_period)? + &moved.received;
    let total = before.total.clone() + &moved.given;
    // A limit counts in transactions that use more of it, so that a lowered one stops nothing else.
    let gives = is_zero(cs, "nothing given", &moved.given)?.not();
    let receives = is_zero(cs, "nothing received", &moved.received)?.not();
    let mut room =
        |name: &str, limit: &Wire, used: &Wire, counts: &Wire| product(cs, name, &(limit.clone() - used), counts);
    let room_of_period = room("room in the period", &bounds.period, &spent, &gives)?;
    let room_in_total = room("room in total", &bounds.total, &total, &gives)?;
    let room_to_receive = room("room to receive", &bounds.receive, &received, &receives)?;
    let room_to_hold = room("room to hold", &bounds.hold, &moved.balance, &receives)?;

    require_range(cs, Rule::Kept.name(), &moved.received, AMOUNT)?;
    require_range(cs, Rule::Balance.name(), &moved.balance, AMOUNT)?;
    require_range(cs, Rule::Transaction.name(), &(bounds.transaction.clone() - &moved.given), AMOUNT)?;
    require_range(cs, Rule::Time.name(), &elapsed, PERIOD)?;
    require_range(cs, Rule::Period.name(), &room_of_period, AMOUNT)?;
    require_range(cs, Rule::Total.name(), &room_in_total, AMOUNT)?;
    require_range(cs, Rule::Receive.name(), &room_to_receive, AMOUNT)?;
    require_range(cs, Rule::Hold.name(), &room_to_hold, AMOUNT)?;

    let history = hash(cs, "history", &FOUR, &[&before.history, &inputs.coin, &inputs.withdrawn, &inputs.period])?;
    let r = Wire::given(cs, "r", witness.map(|witness| witness.r))?;
    let more = hash(cs, "more", &FOUR, &[&inputs.period, &received, &history, &Wire::zero()])?;
    let commitment = hash(
        cs,
        "commitment",
        &EIGHT,
        &[owner, &inputs.asset, &moved.balance, &spent, &total, &more, &inputs.account_nullifier, &r],
    )?;
    require_equal(&mut cs.namespace(|| Rule::AccountCommitment.name()), "is", &commitment, &inputs.account);
    Ok(())
}
