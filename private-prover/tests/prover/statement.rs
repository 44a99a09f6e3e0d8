//! What the statement admits, and that circuit and program agree on it.

use std::collections::BTreeSet;

use fastpay_private_prover::*;
use ff::Field;
use rand::Rng;

use super::forgeries::without_limits;
use super::random;
use super::recorder::{Recorder, rule_of};
use super::scene::{Claim, PERIOD, Scene};

pub fn number(amount: u128) -> Fr {
    field_from_u128(amount)
}

/// The goal for a committee of four.
const CONSTRAINTS_MAX: usize = 30_000;

#[test]
fn the_statement_is_no_larger_than_its_goal() {
    let scene = Scene::new(4);
    let recorder = scene.record(&scene.payment_and_withdrawal());
    println!("{} constraints, {} variables", recorder.constraints.len(), recorder.variables().count());
    assert!(recorder.constraints.len() <= CONSTRAINTS_MAX);
    assert_eq!(recorder.inputs, 1 + 12 + 2 * 4);
    let names: BTreeSet<&str> = recorder.constraints.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names.len(), recorder.constraints.len(), "each constraint has a name of its own");
    for rule in Rule::ALL {
        assert!(names.iter().any(|name| rule_of(name) == Some(rule)), "{rule:?}");
    }
}

/// The same constraints whatever is proved, or nobody could make keys.
#[test]
fn the_constraints_do_not_depend_on_the_transaction() {
    let scene = Scene::new(4);
    let [payment, opening, exit] = scene.claims().map(|claim| scene.record(&claim));
    for other in [opening, exit] {
        assert_eq!(payment.names, other.names);
        assert_eq!(payment.constraints.len(), other.constraints.len());
        for (one, other) in payment.constraints.iter().zip(&other.constraints) {
            assert_eq!((&one.name, &one.terms), (&other.name, &other.terms));
        }
    }
}

pub fn assert_true(scene: &Scene, claim: &Claim) {
    assert_eq!(scene.broken_rules(claim), []);
    assert_eq!(scene.record(claim).violated(), [""; 0]);
}

#[test]
fn an_account_is_opened_and_then_pays_claims_and_withdraws() {
    for members in [4, 7, 10] {
        let scene = Scene::new(members);
        let opened = scene.prepare(&scene.opening()).unwrap();
        assert_true(&scene, &Claim { public: opened.public, witness: opened.witness });
        let account = Some(scene.certified_account(opened.account));
        let paid = scene.prepare(&Order { account, ..scene.payment() }).unwrap();
        assert_true(&scene, &Claim { public: paid.public, witness: paid.witness });
        let Account { balance, spent, total, period, received, .. } = paid.account;
        assert_eq!((balance, spent, total, period, received), (300, 300, 300, PERIOD, 600));
    }
}

#[test]
fn any_f_plus_1_members_are_enough_and_fewer_are_not() {
    let scene = Scene::new(4);
    for signers in [[0, 1], [0, 3], [1, 2], [2, 3]] {
        let mut order = scene.payment();
        order.account.as_mut().unwrap().signatures.retain(|member, _| signers.contains(member));
        let claim = scene.claim(&order);
        assert_eq!(claim.witness.signers, signers);
        assert_true(&scene, &claim);
        order.claim.as_mut().unwrap().signatures.retain(|member, _| *member != signers[0]);
        assert_eq!(scene.prepare(&order).err(), Some(Refusal::Signatures));
    }
}

#[test]
fn a_new_period_begins_with_nothing_spent_or_received() {
    let mut scene = Scene::new(4);
    scene.in_force.period += 1;
    let prepared = scene.prepare(&scene.payment()).unwrap();
    assert_eq!((prepared.account.spent, prepared.account.received, prepared.account.total), (300, 600, 500));
    assert_true(&scene, &Claim { public: prepared.public, witness: prepared.witness });
}

/// A coin above the limit is claimed in slices: the rest is paid to oneself, and counts neither as given nor as received.
#[test]
fn a_coin_above_the_limits_is_claimed_in_slices() {
    let scene = Scene::new(4);
    let whole =
        Order { claim: Some(scene.deposit(50_000)), payee: scene.alice.owner(), amount: 49_900, ..scene.payment() };
    let prepared = scene.prepare(&whole).unwrap();
    let Account { balance, spent, total, received, .. } = prepared.account;
    assert_eq!((balance, spent, total, received), (1100, 100, 200, 150));
    let slice = Order {
        account: Some(scene.certified_account(prepared.account)),
        claim: Some(scene.certified_coin(prepared.coin)),
        amount: 49_000,
        ..whole
    };
    assert_true(&scene, &Claim { public: prepared.public, witness: prepared.witness });
    assert_true(&scene, &scene.claim(&slice));
}

/// With limits of zero: nothing is given or received, but an account is opened, and money leaves by an exit.
#[test]
fn no_limit_stops_what_uses_none_of_it() {
    let scene = Scene::new(4);
    let zero = Limits { transaction: 0, period: 0, total: 0, hold: 0, receive: 0 };
    let credential = scene.credential(scene.alice.owner(), zero);
    assert_true(&scene, &scene.claim(&Order { credential, ..scene.opening() }));
    let unused = Order { claim: None, payee: scene.alice.owner(), amount: 0, credential, ..scene.payment() };
    assert_true(&scene, &scene.claim(&unused));
    let claimed = Order { claim: Some(scene.deposit(1)), ..unused.clone() };
    assert_eq!(scene.prepare(&claimed).err(), Some(Refusal::Rules(vec![Rule::Hold, Rule::Receive])));
    let given = Order { withdrawn: 1, ..unused };
    let broken = vec![Rule::Transaction, Rule::Period, Rule::Total];
    assert_eq!(scene.prepare(&given).err(), Some(Refusal::Rules(broken)));
    assert_true(&scene, &scene.claim(&scene.exit()));
}

/// An exit needs no credential: neither expiry, nor a new registrar, nor a lost file keeps money in the pool.
#[test]
fn an_exit_takes_the_balance_and_any_coin_out() {
    let scene = Scene::new(4);
    let everything = Order { claim: Some(scene.deposit(1_000_000)), withdrawn: 1_001_000, ..scene.exit() };
    let prepared = scene.prepare(&everything).unwrap();
    assert_eq!((prepared.account.balance, prepared.account.total), (0, 1_001_200));
    assert_true(&scene, &Claim { public: prepared.public, witness: prepared.witness });
    assert_true(&scene, &scene.claim(&Order { claim: None, withdrawn: 1000, ..scene.exit() }));
    let part = Order { claim: Some(scene.deposit(1_000_000)), amount: 999_000, withdrawn: 1000, ..scene.exit() };
    assert_true(&scene, &scene.claim(&part));
}

#[test]
fn what_cannot_be_proved_is_refused_by_its_rule() {
    let scene = Scene::new(4);
    let refused = |order: Order, rules: &[Rule]| {
        assert_eq!(scene.prepare(&order).err(), Some(Refusal::Rules(rules.to_vec())));
    };
    let listed = SpendingKey::from_seed(&[0xf3; 32]).owner();
    refused(Order { amount: 1601, ..scene.payment() }, &[Rule::Balance]);
    refused(Order { amount: 501, ..scene.payment() }, &[Rule::Transaction]);
    refused(Order { payee: scene.alice.owner(), amount: 601, ..scene.payment() }, &[Rule::Kept]);
    refused(Order { payee: listed, ..scene.payment() }, &[Rule::PayeeListed]);
    refused(Order { withdrawn: 599, ..scene.exit() }, &[Rule::Exit]);
    refused(Order { account: None, withdrawn: 600, ..scene.exit() }, &[Rule::Exit]);
    let withdrawn = Order { payee: scene.alice.owner(), amount: 0, withdrawn: 1, ..scene.payment() };
    assert!(scene.prepare(&withdrawn).is_ok());
    for amount in [0, 1] {
        let both = Order { payee: scene.bob, amount, ..withdrawn.clone() };
        assert_eq!(scene.prepare(&both).err(), Some(Refusal::PaysAndWithdraws));
    }
    let large = scene.certified_account(Account { total: u128::MAX, ..scene.account() });
    assert_eq!(scene.prepare(&Order { account: Some(large), ..scene.exit() }).err(), Some(Refusal::Counter));
    let mut small = Scene::new(4);
    small.in_force.members.truncate(3);
    assert_eq!(small.prepare(&small.opening()).err(), Some(Refusal::Committee(CommitteeSize(3))));
}

/// Two attempts share nothing that authorities see, except the account nullifier, the coin nullifier if both claim the
/// same coin, and what is in force.
#[test]
fn two_orders_share_no_randomness() {
    let scene = Scene::new(4);
    let payment = scene.payment();
    let of = |order: &Order| scene.prepare(order).unwrap();
    let one = of(&payment);
    assert_eq!(one.public, of(&payment).public, "the same order is the same transaction");
    let changes: [fn(&mut Order); 5] = [
        |order| order.amount += 1,
        |order| (order.payee, order.withdrawn) = (SpendingKey::from_seed(&[1; 32]).owner(), 1),
        |order| order.payee = Owner(Fr::from(5)),
        |order| order.rest[31] ^= 1,
        |order| order.claim = None,
    ];
    for change in changes {
        let mut order = payment.clone();
        change(&mut order);
        let other = of(&order);
        assert_ne!(one.coin.r, other.coin.r);
        assert_ne!(one.account.r, other.account.r);
        assert_ne!(one.public.account, other.public.account);
        assert_ne!(one.public.coin, other.public.coin);
        assert_eq!(one.public.account_nullifier, other.public.account_nullifier);
        assert_eq!(one.public.coin_nullifier == other.public.coin_nullifier, order.claim.is_some());
    }
    let dummies = [[0; 32], [1; 32]].map(|rest| of(&Order { rest, ..scene.opening() }).public.coin_nullifier);
    assert_ne!(dummies[0], dummies[1]);
}

/// An attempt that claimed a coin and was abandoned shares a nullifier with the attempt that was settled instead, and
/// another with whatever claims the coin later: so [`Order::claim`] has a rule.
#[test]
fn an_abandoned_claim_links_the_transaction_that_claims_later() {
    let scene = Scene::new(4);
    let abandoned = scene.payment();
    let settled = scene.prepare(&Order { claim: None, ..abandoned.clone() }).unwrap();
    let account = Some(scene.certified_account(settled.account));
    let later = scene.prepare(&Order { account, ..abandoned.clone() }).unwrap().public;
    let abandoned = scene.prepare(&abandoned).unwrap().public;
    assert_eq!(abandoned.account_nullifier, settled.public.account_nullifier);
    assert_eq!(abandoned.coin_nullifier, later.coin_nullifier);
    assert_ne!(later.account_nullifier, settled.public.account_nullifier);
}

/// Objects of another deployment are worth nothing: every signature in the witness is of another context.
#[test]
fn nothing_of_another_deployment_counts() {
    let scene = Scene::new(4);
    let mut claim = scene.payment_and_withdrawal();
    claim.public.domain = Domain::new(&[0xd1; 32]);
    let expected = [Rule::AccountSigned, Rule::CoinSigned, Rule::CredentialSigned];
    assert_eq!(scene.broken_rules(&claim), expected);
    assert_eq!(scene.record(&claim).broken_rules(), expected);
    let mut opening = scene.claim(&scene.opening());
    opening.public.domain = Domain::new(&[0xd1; 32]);
    assert_eq!(scene.record(&opening).broken_rules(), [Rule::FirstAccount, Rule::CredentialSigned]);
}

/// Alters some fields of true claims at random, by small and by large steps. Circuit and program must agree on which
/// rules that breaks.
#[test]
fn circuit_and_program_agree_on_altered_claims() {
    let random = &mut random();
    let scene = Scene::new(4);
    let from = scene.claims();
    let mut broken = BTreeSet::new();
    for round in 0..120 {
        let mut claim = from[round % 3].clone();
        for _ in 0..random.gen_range(1..4) {
            alter_something(&mut claim, random);
        }
        if random.r#gen() {
            claim.redo();
        }
        let (circuit, program) = (scene.record(&claim).broken_rules(), scene.broken_rules(&claim));
        assert_eq!(circuit, program, "round {round}");
        broken.extend(program);
    }
    assert!(broken.len() > 15, "the alterations break most rules: {broken:?}");
}

fn alter_something(claim: &mut Claim, random: &mut impl Rng) {
    let step = match random.gen_range(0..4) {
        0 => Fr::ONE,
        1 => -Fr::ONE,
        2 => number(random.gen_range(0..2000)),
        _ => Fr::random(&mut *random),
    };
    let (public, w) = (&mut claim.public, &mut claim.witness);
    match random.gen_range(0..29) {
        0 => w.account.balance += step,
        1 => w.account.spent += step,
        2 => w.account.total += step,
        3 => w.account.period += step,
        4 => w.account.received += step,
        5 => w.account.history += step,
        6 => w.account.rho += step,
        7 => w.account.r += step,
        8 => w.claimed.value += step,
        9 => w.claimed.rho += step,
        10 => w.claimed.r += step,
        11 => w.output.value += step,
        12 => w.output.owner += step,
        13 => w.output.r += step,
        14 => w.r += step,
        15 => w.credential.transaction += step,
        16 => w.credential.period += step,
        17 => w.credential.total += step,
        18 => w.credential.hold += step,
        19 => w.credential.receive += step,
        20 => w.credential.expiry += step,
        21 => w.first ^= true,
        22 => w.dummy ^= true,
        23 => w.exit ^= true,
        24 => w.signers = vec![random.gen_range(0..5), random.gen_range(0..5)],
        25 => public.withdrawn = public.withdrawn.wrapping_add(random.gen_range(0..1000)),
        26 => public.period = public.period.wrapping_add_signed(random.gen_range(-2..100)),
        27 => w.payee_gap.low += step,
        _ => w.credential = without_limits(),
    }
}

#[test]
fn a_committee_has_four_members_at_least_and_255_at_most() {
    assert!(Shape::of_committee(3).is_err());
    assert!(Shape::of_committee(256).is_err());
    let signers = [4, 6, 7, 10, 255].map(|members| Shape::of_committee(members).unwrap().signers());
    assert_eq!(signers, [2, 2, 3, 4, 85]);
    let blank = std::panic::catch_unwind(|| Recorder::of(Statement::blank(Shape::of_committee(4).unwrap())));
    assert!(blank.is_err(), "a blank statement has no values");
}
