//! Forged witnesses: each breaks one rule, and the circuit refuses it by the constraints of that rule alone.

use std::collections::BTreeSet;

use fastpay_private_prover::*;
use ff::Field;

use super::scene::{ASSET, Claim, PERIOD, Scene, message_of};
use super::statement::{assert_true, number};

/// One of the elements of a part of the witness.
type Part<T> = fn(&mut T) -> &mut Fr;

/// A false witness, and the one rule that it breaks.
pub struct Forgery {
    pub rule: Rule,
    name: &'static str,
    pub claim: Claim,
}

/// Which true claim a forgery begins with.
#[derive(Clone, Copy)]
enum Base {
    Payment,
    Opening,
    Exit,
}

pub struct Forger {
    pub scene: Scene,
    pub made: Vec<Forgery>,
    from: [Claim; 3],
}

impl Forger {
    fn new(scene: Scene) -> Self {
        let from = scene.claims();
        Self { scene, made: vec![], from }
    }

    fn forge(&mut self, base: Base, rule: Rule, name: &'static str, alter: impl FnOnce(&Scene, &mut Claim)) {
        let mut claim = self.from[base as usize].clone();
        alter(&self.scene, &mut claim);
        self.made.push(Forgery { rule, name, claim });
    }

    /// A forgery that alters the witness, after which everything public follows from it.
    fn alter(&mut self, base: Base, rule: Rule, name: &'static str, alter: impl FnOnce(&mut Witness)) {
        self.forge(base, rule, name, |_, claim| {
            alter(&mut claim.witness);
            claim.redo();
        });
    }

    /// A forgery of the credential that the registrar signed so.
    fn limit(&mut self, rule: Rule, name: &'static str, alter: impl FnOnce(&mut CredentialValues)) {
        self.forge(Base::Payment, rule, name, |scene, claim| {
            alter(&mut claim.witness.credential);
            scene.sign_credential(claim, scene.alice.owner());
        });
    }
}

/// One account, coin or credential cannot be another: all ways to sign the wrong thing.
fn forge_signatures(forger: &mut Forger) {
    use Base::Payment;
    forger.alter(Payment, Rule::AccountSigned, "a balance that nobody signed", |w| w.account.balance += Fr::ONE);
    forger.alter(Payment, Rule::AccountSigned, "a count that nobody signed", |w| w.account.spent -= Fr::ONE);
    forger.alter(Payment, Rule::AccountSigned, "another randomness", |w| w.account.r += Fr::ONE);
    forger.alter(Payment, Rule::AccountSigned, "one signature twice", |w| {
        w.account_signatures[1] = w.account_signatures[0]
    });
    forger.alter(Payment, Rule::AccountSigned, "signatures swapped", |w| w.account_signatures.swap(0, 1));
    forger.alter(Payment, Rule::AccountSigned, "no signature", |w| w.account_signatures[1] = Signature::none());
    forger.alter(Payment, Rule::CoinSigned, "a value that nobody signed", |w| w.claimed.value += Fr::ONE);
    forger.alter(Payment, Rule::CoinSigned, "another coin", |w| w.claimed.rho += Fr::ONE);
    forger.alter(Payment, Rule::CoinSigned, "another randomness", |w| w.claimed.r += Fr::ONE);
    forger.alter(Payment, Rule::CoinSigned, "one signature twice", |w| w.coin_signatures[1] = w.coin_signatures[0]);
    forger.alter(Payment, Rule::CoinSigned, "no signature", |w| w.coin_signatures[0] = Signature::none());
    forger.forge(Payment, Rule::AccountSigned, "somebody else's account", |scene, claim| {
        scene.sign_account(claim, scene.bob);
    });
    forger.forge(Payment, Rule::CoinSigned, "somebody else's coin", |scene, claim| scene.sign_coin(claim, scene.bob));
    forger.forge(Payment, Rule::AccountSigned, "a coin's signature", |scene, claim| {
        let message = scene.account().commitment();
        claim.witness.account_signatures = scene.by_signers(claim, Kind::Coin, message);
    });
    forger.forge(Payment, Rule::AccountSigned, "a key outside of the committee", |scene, claim| {
        let stranger = SigningKey::from_seed([99; 32]);
        claim.witness.account_signatures[1] = scene.sign(&stranger, Kind::Account, scene.account().commitment());
    });
    forger.forge(Payment, Rule::CoinSigned, "an account's signature", |scene, claim| {
        let coin = claim.witness.claimed;
        let inner = h2([scene.alice.owner().0, coin.r]);
        let message = h4([coin.value, ASSET.element(), coin.rho, inner]);
        claim.witness.coin_signatures = scene.by_signers(claim, Kind::Account, message);
    });
    forger.forge(Payment, Rule::CredentialSigned, "raised limits", |_, claim| {
        claim.witness.credential.period += Fr::ONE;
    });
    forger.forge(Payment, Rule::CredentialSigned, "other attributes", |_, claim| {
        claim.witness.credential.attributes += Fr::ONE;
    });
    forger.forge(Payment, Rule::CredentialSigned, "a later expiry", |_, claim| {
        claim.witness.credential.expiry += Fr::ONE
    });
    forger.forge(Payment, Rule::CredentialSigned, "somebody else's credential", |scene, claim| {
        scene.sign_credential(claim, scene.bob);
    });
    forger.forge(Payment, Rule::CredentialSigned, "another registrar", |scene, claim| {
        let message = message_of(claim, scene.alice.owner());
        claim.witness.credential_signature = scene.sign(&scene.members[0], Kind::Credential, message);
    });
    forger.forge(Payment, Rule::CredentialSigned, "a coin's signature", |scene, claim| {
        let message = message_of(claim, scene.alice.owner());
        claim.witness.credential_signature = scene.sign(&scene.registrar, Kind::Coin, message);
    });
}

fn forge_objects(forger: &mut Forger) {
    use Base::{Opening, Payment};
    forger.forge(Payment, Rule::Signers, "one member twice", |scene, claim| {
        claim.witness.signers = vec![1, 1];
        scene.sign_account(claim, scene.alice.owner());
        scene.sign_coin(claim, scene.alice.owner());
    });
    forger.forge(Payment, Rule::Signers, "descending", |scene, claim| {
        claim.witness.signers = vec![1, 0];
        scene.sign_account(claim, scene.alice.owner());
        scene.sign_coin(claim, scene.alice.owner());
    });
    forger.alter(Opening, Rule::Signers, "nobody", |w| w.signers = vec![0, 9]);
    let fields: [(&'static str, Part<AccountValues>); 7] = [
        ("ρ", |account| &mut account.rho),
        ("balance", |account| &mut account.balance),
        ("spent", |account| &mut account.spent),
        ("total", |account| &mut account.total),
        ("period", |account| &mut account.period),
        ("received", |account| &mut account.received),
        ("history", |account| &mut account.history),
    ];
    for (name, field) in fields {
        forger.alter(Opening, Rule::FirstAccount, name, |w| *field(&mut w.account) += Fr::ONE);
    }
    forger.alter(Opening, Rule::AccountSigned, "a first account that nobody signed", |w| w.first = false);
    forger.alter(Opening, Rule::CoinSigned, "a dummy that nobody signed", |w| w.dummy = false);
    forger.alter(Payment, Rule::Dummy, "a dummy with a value", |w| w.dummy = true);
    forger.forge(Payment, Rule::AccountNullifier, "another nullifier", |_, claim| {
        claim.public.account_nullifier += Fr::ONE;
        claim.redo_outputs();
    });
    forger.forge(Payment, Rule::AccountNullifier, "the coin's kind of nullifier", |_, claim| {
        claim.public.account_nullifier = claim.witness.key.coin_nullifier(claim.witness.account.rho);
        claim.redo_outputs();
    });
    forger.forge(Payment, Rule::CoinNullifier, "another nullifier", |_, claim| claim.public.coin_nullifier += Fr::ONE);
    forger
        .forge(Opening, Rule::CoinNullifier, "a dummy's nullifier", |_, claim| claim.public.coin_nullifier += Fr::ONE);
    forger.alter(Payment, Rule::OutputValue, "less than nothing", |w| w.output.value = -Fr::from(5));
    forger.forge(Payment, Rule::OutputCommitment, "another coin", |_, claim| {
        claim.public.coin += Fr::ONE;
        claim.redo_account(|_| ());
    });
    forger.forge(Payment, Rule::OutputCommitment, "another ρ", |scene, claim| {
        let inner = h2([scene.bob.0, claim.witness.output.r]);
        claim.public.coin = h4([claim.witness.output.value, ASSET.element(), Fr::from(5), inner]);
        claim.redo_account(|_| ());
    });
    forger.forge(Payment, Rule::OutputCommitment, "another asset", |scene, claim| {
        let inner = h2([scene.bob.0, claim.witness.output.r]);
        let rho = claim.public.account_nullifier;
        claim.public.coin = h4([claim.witness.output.value, Fr::from(1), rho, inner]);
        claim.redo_account(|_| ());
    });
    for (at, name) in [
        (0, "of another owner"),
        (1, "of another asset"),
        (2, "with more money"),
        (3, "with less spent"),
        (4, "with less in total"),
        (6, "with another ρ"),
        (7, "with another randomness"),
        (8, "of another period"),
        (9, "with less received"),
        (10, "with another history"),
        (11, "with something in the spare place"),
    ] {
        forger.forge(Payment, Rule::AccountCommitment, name, |_, claim| claim.redo_account(|all| all[at] -= Fr::ONE));
    }
    forger.forge(Payment, Rule::AccountCommitment, "without this payment in its history", |_, claim| {
        let history = claim.witness.account.history;
        claim.redo_account(|all| all[10] = history);
    });
}

fn forge_amounts(forger: &mut Forger) {
    use Base::{Exit, Opening, Payment};
    forger.alter(Payment, Rule::Kept, "more to oneself than claimed", |w| {
        w.output.owner = w.key.owner().0;
        w.output.value = number(601);
        w.payee_gap = w.payer_gap.clone();
    });
    forger.forge(Payment, Rule::Balance, "more than there is", |scene, claim| {
        claim.witness.account.balance = Fr::ZERO;
        claim.witness.claimed.value = number(399);
        scene.sign_account(claim, scene.alice.owner());
        scene.sign_coin(claim, scene.alice.owner());
        claim.redo();
    });
    forger.forge(Exit, Rule::Balance, "more than there is", |_, claim| {
        claim.witness.dummy = true;
        claim.witness.claimed.value = Fr::ZERO;
        claim.public.withdrawn = 1001;
        claim.redo();
    });
    forger.limit(Rule::Transaction, "one too much", |limits| limits.transaction = number(399));
    forger.limit(Rule::Period, "one too much", |limits| limits.period = number(499));
    forger.limit(Rule::Total, "one too much", |limits| limits.total = number(599));
    forger.limit(Rule::Receive, "one too much", |limits| limits.receive = number(649));
    forger.limit(Rule::Hold, "one too much", |limits| limits.hold = number(1199));
    forger.limit(Rule::Expiry, "a period ago", |limits| limits.expiry = Fr::from(u64::from(PERIOD) - 1));
    forger.limit(Rule::Expiry, "no period", |limits| limits.expiry = Fr::from(u64::from(PERIOD) + (1 << 32)));
    forger.forge(Payment, Rule::Time, "back by one period", |scene, claim| {
        claim.witness.account.period += Fr::ONE;
        scene.sign_account(claim, scene.alice.owner());
        claim.redo();
    });
    forger.forge(Opening, Rule::Exit, "without an account", |_, claim| {
        claim.witness.exit = true;
        claim.witness.credential = without_limits();
    });
    forger.forge(Exit, Rule::Exit, "paying somebody", |scene, claim| {
        claim.witness.output.owner = scene.bob.0;
        claim.witness.output.value = Fr::ONE;
        claim.witness.payee_gap = scene.in_force.sanctions.path(scene.bob.tag());
        claim.redo();
    });
    forger.forge(Exit, Rule::Exit, "keeping what is claimed", |_, claim| {
        claim.public.withdrawn = 599;
        claim.redo();
    });
    let fields: [(&'static str, Part<CredentialValues>); 6] = [
        ("a limit of the transaction", |limits| &mut limits.transaction),
        ("a limit of the period", |limits| &mut limits.period),
        ("a limit in total", |limits| &mut limits.total),
        ("a limit held", |limits| &mut limits.hold),
        ("a limit received", |limits| &mut limits.receive),
        ("an expiry", |limits| &mut limits.expiry),
    ];
    for (name, field) in fields {
        forger.alter(Exit, Rule::Exit, name, |w| *field(&mut w.credential) -= Fr::ONE);
    }
    forger.alter(Exit, Rule::CredentialSigned, "no exit, and no credential", |w| w.exit = false);
}

pub fn without_limits() -> CredentialValues {
    let all = number(u128::MAX);
    let expiry = Fr::from(u64::from(u32::MAX));
    CredentialValues {
        transaction: all,
        period: all,
        total: all,
        hold: all,
        receive: all,
        expiry,
        attributes: Fr::ZERO,
    }
}

fn forge_lists(forger: &mut Forger) {
    use Base::Payment;
    let with_list = |listed: &[Owner], claim: &mut Claim| {
        let list = Sanctions::new(listed.iter().map(|owner| owner.tag())).unwrap();
        claim.witness.payer_gap = list.path(claim.witness.key.owner().tag());
        claim.witness.payee_gap = list.path(Owner(claim.witness.output.owner).tag());
        claim.public.sanctions = list.root();
    };
    let (alice, bob) = (forger.scene.alice.owner(), forger.scene.bob);
    forger.forge(Payment, Rule::PayerListed, "listed", |_, claim| with_list(&[alice], claim));
    forger.forge(Payment, Rule::PayeeListed, "listed", |_, claim| with_list(&[bob], claim));
    let beside = |owner: Owner, by: Fr| Owner(owner.0 + by);
    forger.forge(Payment, Rule::PayerListed, "listed among others", |_, claim| {
        with_list(&[beside(alice, -Fr::ONE), alice, beside(alice, Fr::ONE)], claim);
    });
    for (rule, gap) in [
        (Rule::PayerListed, (|w| &mut w.payer_gap) as fn(&mut Witness) -> &mut GapPath),
        (Rule::PayeeListed, |w| &mut w.payee_gap),
    ] {
        forger.forge(Payment, rule, "another gap", |scene, claim| {
            let owner = if rule == Rule::PayerListed { alice } else { bob };
            let elsewhere = (5..).map(|key| scene.in_force.sanctions.path(Owner(Fr::from(key)).tag()));
            let mine = scene.in_force.sanctions.path(owner.tag());
            *gap(&mut claim.witness) = elsewhere.into_iter().find(|other| other.low != mine.low).unwrap();
        });
        forger.forge(Payment, rule, "a wider gap", |_, claim| gap(&mut claim.witness).low -= Fr::ONE);
        for (name, level) in [("a leaf of another list", 0), ("a node of another list", 2), ("another root", 4)] {
            forger.forge(Payment, rule, name, |_, claim| {
                gap(&mut claim.witness).children[level].iter_mut().for_each(|child| *child += Fr::ONE);
            });
        }
    }
}

pub fn forgeries() -> Forger {
    let mut forger = Forger::new(Scene::new(4));
    forge_signatures(&mut forger);
    forge_objects(&mut forger);
    forge_amounts(&mut forger);
    forge_lists(&mut forger);
    forger
}

/// A forgery violates constraints of its rule, and no other: without them, the circuit would admit it. The same by the
/// statement as a program.
#[test]
fn each_forgery_breaks_its_rule_and_no_other() {
    let Forger { scene, made, from } = forgeries();
    for claim in &from {
        assert_true(&scene, claim);
    }
    for Forgery { rule, name, claim } in &made {
        assert_eq!(scene.record(claim).broken_rules(), [*rule], "{rule:?}: {name}");
        assert_eq!(scene.broken_rules(claim), [*rule], "{rule:?}: {name}");
    }
    let forged: BTreeSet<Rule> = made.iter().map(|forgery| forgery.rule).collect();
    assert_eq!(forged, BTreeSet::from(Rule::ALL), "each rule has a forgery");
    println!("{} forgeries of {} rules", made.len(), forged.len());
}
