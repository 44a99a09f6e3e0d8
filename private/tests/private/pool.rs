//! Core's rules with real proofs: what is proved is voted for, certified and executed, and nothing else.

use fastpay_core::private::*;
use fastpay_core::{
    AccountId, Amount, AuthorityKeys, Balance, Committee, Decision, Deposit, Digest, Domain as Deployment, Epoch,
    JournalPosition, PrimaryAddress, PrimaryView, PrivateDecision, Record, Shard, ShardId, ShardLayout, ShardLedger,
    Standing, SynchronizationOrder, TransactionIndex, VoteFloor, sign_payment_votes,
};
use fastpay_private::*;

use super::deployment;
use super::kept::{KEY, PROVED, orders};

/// The versions that the kept orders name.
const COMMITTEE: u64 = 1;
const RULES: u64 = 2;

/// What the kept orders are proved under.
fn certified() -> (PrivateCommittee, PrivateRules) {
    let Public { members, registrar, sanctions, period, .. } = PROVED[0].0.clone();
    let committee = PrivateCommittee {
        version: COMMITTEE,
        epoch: Epoch(0),
        coin_keys: members.iter().map(|key| key.to_bytes().into()).collect(),
        verifying_key_hash: KEY.hash().into(),
        proving_key_hash: [0; 32].into(),
    };
    let rules = PrivateRules {
        version: RULES,
        registrar: registrar.to_bytes().into(),
        sanctions_root: field_to_bytes(sanctions).into(),
        list_hash: [0; 32].into(),
        period,
        oldest_accepted: RULES,
    };
    (committee, rules)
}

/// A verifier of a deployment, under something else if it is altered.
fn verifier_of(
    deployment: &Deployment,
    alter: impl FnOnce(&mut PrivateCommittee, &mut PrivateRules),
) -> Result<ProofVerifier, NotInstalled> {
    let (mut committee, mut rules) = certified();
    alter(&mut committee, &mut rules);
    let mut verifier = ProofVerifier::new(deployment, &committee, KEY.to_bytes())?;
    verifier.install(&rules)?;
    Ok(verifier)
}

fn verifier() -> ProofVerifier {
    verifier_of(&deployment(), |_, _| ()).unwrap()
}

fn checked(orders: Vec<ProvenOrder>, deployment: &Deployment) -> Vec<CheckedPrivateOrder> {
    orders.into_iter().map(|order| order.check(deployment).unwrap()).collect()
}

fn errors(orders: Vec<ProvenOrder>, verifier: &ProofVerifier) -> Vec<Option<ProofError>> {
    verify_proofs(checked(orders, &deployment()), verifier).into_iter().map(Result::err).collect()
}

const BAD: Option<ProofError> = Some(ProofError::BadProof);
const UNKNOWN: Option<ProofError> = Some(ProofError::UnknownVersion);

#[test]
fn proved_orders_are_found_among_others() {
    assert_eq!(errors(orders().into(), &verifier()), [None, None, None]);
    let [payment, opening, exit] = orders();
    // No point, another point, another order's proof, and another recipient, which only the digest covers.
    let with = |alter: fn(&mut ProvenOrder)| {
        let mut order = payment.clone();
        alter(&mut order);
        order
    };
    let all = vec![
        opening.clone(),
        with(|order| order.proof[5] ^= 1),
        with(|order| order.proof = PROVED[1].1.to_bytes()),
        with(|order| order.order.transfer.recipient.0[0] ^= 1),
        exit,
        with(|order| order.order.transfer.rules += 1),
        with(|order| order.order.transfer.committee -= 1),
        opening,
    ];
    assert_eq!(errors(all, &verifier()), [None, BAD, BAD, BAD, None, UNKNOWN, UNKNOWN, None]);
}

/// What the authority puts in itself counts: nobody proves under other keys, rules or deployments.
#[test]
fn a_proof_is_for_what_this_authority_has_installed() {
    let order = || vec![orders()[0].clone()];
    let alterations: [fn(&mut PrivateCommittee, &mut PrivateRules); 5] = [
        |committee, _| committee.coin_keys.swap(0, 1),
        |committee, rules| committee.coin_keys[3] = rules.registrar,
        |committee, rules| rules.registrar = committee.coin_keys[0],
        |_, rules| rules.sanctions_root[31] ^= 1,
        |_, rules| rules.period += 1,
    ];
    for alter in alterations {
        assert_eq!(errors(order(), &verifier_of(&deployment(), alter).unwrap()), [BAD]);
    }
    let elsewhere = Deployment::new(31337, PrimaryAddress::repeat_byte(0xfb));
    let verifier = verifier_of(&elsewhere, |_, _| ()).unwrap();
    assert_eq!(errors(order(), &verifier), [BAD]);
    assert_eq!(verify_proofs(checked(order(), &elsewhere), &verifier)[0].as_ref().err(), BAD.as_ref());
}

#[test]
fn what_cannot_be_used_is_not_installed() {
    let refusal = |alter: fn(&mut PrivateCommittee, &mut PrivateRules)| verifier_of(&deployment(), alter).err();
    assert_eq!(refusal(|committee, _| committee.verifying_key_hash[0] ^= 1), Some(KeyError::Hash.into()));
    let members = Some(NotInstalled::Members { key: 4, committee: 3 });
    assert_eq!(refusal(|committee, _| committee.coin_keys.truncate(3)), members);
    // A point of small order has v = 0, and the neutral one v = 1.
    for v in [0, 1] {
        let weak = Digest::from_slice(&[&[v][..], &[0; 31]].concat());
        let (mut committee, mut rules) = certified();
        committee.coin_keys[2] = weak;
        let refused = ProofVerifier::new(&deployment(), &committee, KEY.to_bytes()).err();
        assert_eq!(refused, Some(InvalidKey.into()));
        rules.registrar = weak;
        assert_eq!(verifier().install(&rules), Err(InvalidKey.into()));
    }
    assert_eq!(refusal(|_, rules| rules.sanctions_root = [0xff; 32].into()), Some(NotCanonical.into()));
    // Development keys of a network where money is real.
    let mainnet = Deployment::new(1, PrimaryAddress::repeat_byte(0xfa));
    let development = KeyError::Development(DevelopmentKeysRefused(1));
    assert_eq!(verifier_of(&mainnet, |_, _| ()).err(), Some(development.into()));
}

/// A shard, which decides, and applies what it decides.
struct Pool(Shard, u64);

impl Pool {
    fn run(&mut self, decide: impl Fn(&Shard) -> PrivateDecision) -> PrivateDecision {
        loop {
            match decide(&self.0) {
                Decision::Load(accounts) => accounts.into_iter().for_each(|account| self.0.load(account, None)),
                Decision::Commit(record) => {
                    self.apply(&record);
                    return Decision::Commit(record);
                }
                decision => return decision,
            }
        }
    }

    fn apply(&mut self, record: &Record) {
        self.1 += 1;
        record.accounts().into_iter().for_each(|account| self.0.load(account, None));
        self.0.apply(record, JournalPosition(self.1));
    }
}

/// From bytes to a certificate, and out of the pool.
#[test]
fn a_proved_withdrawal_is_voted_for_certified_and_executed() {
    let keys: Vec<AuthorityKeys> =
        (1..=4).map(|number| AuthorityKeys::from_secrets([number; 32], [number; 32]).unwrap()).collect();
    let committee = Committee::new(Epoch(0), keys.iter().map(AuthorityKeys::public).collect()).unwrap();
    let order = verify_proofs(checked(vec![orders()[0].clone()], &deployment()), &verifier()).remove(0).unwrap();
    let versions = Versions { committee: COMMITTEE, oldest_rules: RULES, newest_rules: RULES };
    let layout = ShardLayout::new(1.try_into().unwrap());
    let mut pool = Pool(Shard::new(ShardId(0), layout, true, ShardLedger::default(), 100), 0);
    let PrivateTransfer { asset, amount_out: amount, recipient, .. } = *order.transfer();
    let deposit = Deposit { index: TransactionIndex(1), recipient: AccountId::PRIVATE_POOL, asset, amount };
    let (after, up_to) = (TransactionIndex(0), TransactionIndex(1));
    let step = SynchronizationOrder { after, up_to, deposit: Some(deposit) };
    pool.0.load(AccountId::PRIVATE_POOL, None);
    let Decision::Commit(deposited) = pool.0.synchronize(&step) else { panic!("a deposit") };
    pool.apply(&deposited);
    let (recent, floor) = (PrimaryView::Recent, VoteFloor::Zero);
    let lock = |shard: &Shard| shard.lock_private(&order, Epoch(0), floor, recent, &versions);
    assert!(matches!(pool.run(lock), Decision::Commit(_)));
    assert_eq!(pool.run(lock), Decision::Already);
    let votes = keys.iter().map(|keys| {
        let vote = sign_payment_votes(keys, &deployment(), Epoch(0), &[order.digest()]).unwrap().0.remove(0);
        order.verify_vote(vote, &deployment(), &committee).unwrap()
    });
    let certificate = PrivateCertificate::from_votes(&order, &committee, &votes.collect::<Vec<_>>()).unwrap();
    let bytes = borsh::to_vec(&**certificate.certificate()).unwrap();
    let read: PrivateCertificate = borsh::from_slice(&bytes).unwrap();
    let certificate = read.verify(&deployment(), &committee).unwrap();
    let confirm = |shard: &Shard| shard.confirm_private(&certificate, recent, Standing::Counts);
    assert!(matches!(pool.run(confirm), Decision::Commit(_)));
    let held = |account| pool.0.account(account).unwrap().balance(asset);
    assert_eq!([&AccountId::PRIVATE_POOL, &recipient].map(held), [Balance::ZERO, Balance::from(Amount(100))]);
    assert_eq!(pool.run(confirm), Decision::Already);
}

/// Which memos make coins, and which bytes are nullifiers, core says without the field's arithmetic.
#[test]
fn core_has_the_modulus_of_the_field() {
    let largest = field_to_bytes(-Fr::from(1));
    let mut modulus = largest;
    modulus[31] += 1;
    for bytes in [largest, modulus, [0; 32], [0xff; 32]] {
        assert_eq!(is_element(&bytes), field_from_bytes(&bytes).is_ok());
    }
}
