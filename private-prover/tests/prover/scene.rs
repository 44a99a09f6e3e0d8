//! A committee, a registrar, a list, and two people who pay each other.

use std::collections::BTreeMap;

use fastpay_private_prover::*;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::recorder::Recorder;

pub const PERIOD: u32 = 12;
/// The EIP-712 separator of a deployment on a local network.
pub const SEPARATOR: [u8; 32] = [
    0x67, 0x50, 0x64, 0x27, 0x35, 0xda, 0xd8, 0x41, 0x54, 0x27, 0x44, 0xfd, 0x14, 0x7e, 0xf7, 0x17, 0xbe, 0xae, 0x8b,
    0x38, 0x6f, 0x19, 0x7b, 0x45, 0x23, 0x22, 0xcc, 0xf7, 0x30, 0xa9, 0x3c, 0x01,
];
pub const ASSET: Asset = Asset([0xa5; 20]);
pub const LIMITS: Limits = Limits { transaction: 500, period: 1000, total: 5000, hold: 2000, receive: 1500 };

pub struct Scene {
    pub members: Vec<SigningKey>,
    pub registrar: SigningKey,
    pub in_force: InForce,
    pub alice: SpendingKey,
    pub bob: Owner,
    random: std::cell::RefCell<StdRng>,
}

/// A public part and a witness, true or false.
#[derive(Clone)]
pub struct Claim {
    pub public: Public,
    pub witness: Witness,
}

impl Scene {
    pub fn new(members: usize) -> Self {
        let mut random = StdRng::seed_from_u64(7);
        let domain = Domain::new(&SEPARATOR);
        let keys: Vec<SigningKey> = (0..members).map(|_| SigningKey::from_seed(random.r#gen())).collect();
        let registrar = SigningKey::from_seed(random.r#gen());
        let listed = (0..10_u8).map(|seed| SpendingKey::from_seed(&[0xf0 + seed; 32]).owner().tag());
        Self {
            in_force: InForce {
                domain,
                members: keys.iter().map(|key| *key.public()).collect(),
                registrar: *registrar.public(),
                sanctions: Sanctions::new(listed).unwrap(),
                period: PERIOD,
            },
            members: keys,
            registrar,
            alice: SpendingKey::from_seed(&[1; 32]),
            bob: SpendingKey::from_seed(&[2; 32]).owner(),
            random: random.into(),
        }
    }

    pub fn sign(&self, key: &SigningKey, kind: Kind, message: Fr) -> Signature {
        key.sign(self.in_force.domain, kind, message, &mut *self.random.borrow_mut())
    }

    /// Signatures of all members.
    fn by_all(&self, kind: Kind, message: Fr) -> BTreeMap<usize, Signature> {
        self.members.iter().map(|key| self.sign(key, kind, message)).enumerate().collect()
    }

    pub fn certified_coin(&self, coin: Coin) -> Certified<Coin> {
        Certified { object: coin, signatures: self.by_all(Kind::Coin, coin.commitment()) }
    }

    pub fn certified_account(&self, account: Account) -> Certified<Account> {
        Certified { object: account, signatures: self.by_all(Kind::Account, account.commitment()) }
    }

    /// What a deposit of Alice's becomes.
    pub fn deposit(&self, value: u128) -> Certified<Coin> {
        let (rho, r) = self.random.borrow_mut().r#gen::<([u8; 32], u64)>();
        self.certified_coin(Coin {
            value,
            asset: ASSET,
            rho: deposit_rho(&rho),
            owner: self.alice.owner(),
            r: r.into(),
        })
    }

    pub fn credential(&self, owner: Owner, limits: Limits) -> Option<(Credential, Signature)> {
        let credential = Credential { owner, asset: ASSET, limits, expiry: 99, attributes: Fr::from(3) };
        Some((credential, self.sign(&self.registrar, Kind::Credential, credential.message())))
    }

    /// An account of Alice's that holds 1,000 and has used some of each limit.
    pub fn account(&self) -> Account {
        let first = Account::first(self.alice.owner(), ASSET, self.in_force.domain);
        let (rho, r) = (self.alice.account_nullifier(first.rho), Fr::from(8));
        let history = Fr::from(9);
        Account { balance: 1000, spent: 100, total: 200, period: PERIOD, received: 50, history, rho, r, ..first }
    }

    /// Claims 600 and pays 300 to Bob.
    pub fn payment(&self) -> Order {
        Order {
            account: Some(self.certified_account(self.account())),
            claim: Some(self.deposit(600)),
            asset: ASSET,
            payee: self.bob,
            amount: 300,
            withdrawn: 0,
            credential: self.credential(self.alice.owner(), LIMITS),
            rest: [0; 32],
        }
    }

    /// Opens the account, and does nothing else.
    pub fn opening(&self) -> Order {
        let payee = self.alice.owner();
        Order { account: None, claim: None, payee, amount: 0, ..self.payment() }
    }

    /// Claims 600 and withdraws 700 without a credential.
    pub fn exit(&self) -> Order {
        Order { payee: self.alice.owner(), amount: 0, withdrawn: 700, credential: None, ..self.payment() }
    }

    pub fn prepare(&self, order: &Order) -> Result<Prepared, Refusal> {
        let mut prepared = prepare(&self.in_force, &self.alice, &[3; 32], order)?;
        prepared.public.digest = field_from_hash([0xee; 32]);
        Ok(prepared)
    }

    pub fn claim(&self, order: &Order) -> Claim {
        let Prepared { public, witness, .. } = self.prepare(order).unwrap();
        Claim { public, witness }
    }

    /// A payment that withdraws 100 as well. The statement admits it, although [`prepare`] refuses it.
    pub fn payment_and_withdrawal(&self) -> Claim {
        let mut claim = self.claim(&self.payment());
        claim.public.withdrawn = 100;
        claim.redo();
        claim
    }

    /// What uses most of the statement, an opening, and an exit.
    pub fn claims(&self) -> [Claim; 3] {
        [self.payment_and_withdrawal(), self.claim(&self.opening()), self.claim(&self.exit())]
    }

    pub fn statement(&self, claim: &Claim) -> Statement {
        Statement::new(self.in_force.shape().unwrap(), claim.public.clone(), claim.witness.clone())
    }

    pub fn record(&self, claim: &Claim) -> Recorder {
        Recorder::of(self.statement(claim))
    }

    pub fn broken_rules(&self, claim: &Claim) -> Vec<Rule> {
        broken_rules(self.in_force.shape().unwrap(), &claim.public, &claim.witness)
    }

    /// Has the witness's signers sign what its account is now, for this owner.
    pub fn sign_account(&self, claim: &mut Claim, owner: Owner) {
        let a = claim.witness.account;
        let more = h4([a.period, a.received, a.history, Fr::from(0)]);
        let message = h8([owner.0, ASSET.element(), a.balance, a.spent, a.total, more, a.rho, a.r]);
        claim.witness.account_signatures = self.by_signers(claim, Kind::Account, message);
    }

    /// Has the witness's signers sign what its claimed coin is now, for this owner.
    pub fn sign_coin(&self, claim: &mut Claim, owner: Owner) {
        let coin = claim.witness.claimed;
        let message = h4([coin.value, ASSET.element(), coin.rho, h2([owner.0, coin.r])]);
        claim.witness.coin_signatures = self.by_signers(claim, Kind::Coin, message);
    }

    pub fn by_signers(&self, claim: &Claim, kind: Kind, message: Fr) -> Vec<Signature> {
        claim.witness.signers.iter().map(|signer| self.sign(&self.members[*signer], kind, message)).collect()
    }

    /// Has the registrar sign what the credential is now, for this owner.
    pub fn sign_credential(&self, claim: &mut Claim, owner: Owner) {
        claim.witness.credential_signature = self.sign(&self.registrar, Kind::Credential, message_of(claim, owner));
    }
}

/// What the registrar signs of the credential as it is now.
pub fn message_of(claim: &Claim, owner: Owner) -> Fr {
    let c = claim.witness.credential;
    let more = h4([c.hold, c.receive, c.expiry, c.attributes]);
    h8([owner.0, ASSET.element(), c.transaction, c.period, c.total, more, Fr::from(0), Fr::from(0)])
}

impl Claim {
    /// Makes the public part follow from the witness.
    pub fn redo(&mut self) {
        let witness = &self.witness;
        self.public.account_nullifier = witness.key.account_nullifier(witness.account.rho);
        self.public.coin_nullifier = witness.key.coin_nullifier(witness.claimed.rho);
        self.redo_outputs();
    }

    /// The same without the nullifiers.
    pub fn redo_outputs(&mut self) {
        let output = self.witness.output;
        let inner = h2([output.owner, output.r]);
        self.public.coin = h4([output.value, self.public.asset.element(), self.public.account_nullifier, inner]);
        self.redo_account(|_| ());
    }

    /// The new account, with an alteration of its commitment's twelve inputs: the eight, and the four of the fifth.
    pub fn redo_account(&mut self, alter: impl Fn(&mut [Fr; 12])) {
        let (public, witness) = (&self.public, &self.witness);
        let (before, output) = (witness.account, witness.output);
        let owner = witness.key.owner().0;
        let (period, withdrawn) = (Fr::from(u64::from(public.period)), field_from_u128(public.withdrawn));
        let kept = if output.owner == owner { output.value } else { Fr::from(0) };
        let if_same = |value| if before.period == period { value } else { Fr::from(0) };
        let given = output.value - kept + withdrawn;
        let balance = before.balance + witness.claimed.value - output.value - withdrawn;
        let received = if_same(before.received) + witness.claimed.value - kept;
        let history = h4([before.history, public.coin, withdrawn, period]);
        let mut all = [
            owner,
            public.asset.element(),
            balance,
            if_same(before.spent) + given,
            before.total + given,
            Fr::from(0),
            public.account_nullifier,
            witness.r,
            period,
            received,
            history,
            Fr::from(0),
        ];
        alter(&mut all);
        let [a, b, c, d, e, _, g, h, more @ ..] = all;
        self.public.account = h8([a, b, c, d, e, h4(more), g, h]);
    }
}
