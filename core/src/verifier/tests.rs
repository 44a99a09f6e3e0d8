//! How much work the verifier's tables have with what an attacker sends: keys compared, not time.

use rand::SeedableRng;
use rand::rngs::StdRng;

use super::batch_round::BatchRound;
use super::recent::Recent;
use super::{Verifier, work};
use crate::MERKLE_LEAVES_MAX;
use crate::amount::{Amount, Asset, Epoch, SequenceNumber};
use crate::certificate::Certificate;
use crate::committee::Committee;
use crate::epochs::Committees;
use crate::identity::{AccountId, AuthorityName, PrimaryAddress};
use crate::keys::{AccountKey, AuthorityKeys};
use crate::order::TransferOrder;
use crate::request::Request;
use crate::signature::{EcdsaSignature, Ed25519Signature};
use crate::signature_check::Authorization;
use crate::signature_check::SignatureCheck;
use crate::statement::Domain;
use crate::transfer::Payment;
use crate::vote::sign_payment_votes;

/// Encodings of points of order 1, 2, 4 and 4. With s = 0 and any of them as R, each signs everything.
const SMALL_ORDER: [[u8; 32]; 4] = {
    let mut points = [[0; 32]; 4];
    points[0][0] = 1;
    points[1] = [0xFF; 32];
    points[1][0] = 0xEC;
    points[1][31] = 0x7F;
    points[3][31] = 0x80;
    points
};

fn domain() -> Domain {
    Domain::new(1, PrimaryAddress::repeat_byte(7))
}

fn committees(keys: &[AuthorityKeys]) -> Committees {
    let members = keys.iter().map(AuthorityKeys::public).collect();
    Committees::new(Committee::new(Epoch(0), members).unwrap()).unwrap()
}

fn authorities(count: u8) -> Vec<AuthorityKeys> {
    let mut keys: Vec<_> =
        (1..=count).map(|number| AuthorityKeys::from_secrets([number; 32], [number; 32]).unwrap()).collect();
    keys.sort_by_key(|keys| keys.public().name);
    keys
}

/// Signed by nobody, and valid: its key and its R are of small order, and s is 0.
fn free_order(key: [u8; 32], r: [u8; 32], change: impl FnOnce(&mut Payment)) -> Request {
    let mut payment = Payment {
        sender: AccountId::from_ed25519(&key),
        recipient: AccountId([9; 32]),
        asset: Asset::ETHER,
        amount: Amount(1),
        sequence: SequenceNumber(0),
        memo: [0; 32].into(),
    };
    change(&mut payment);
    let mut signature = [0; 64];
    signature[..32].copy_from_slice(&r);
    let authorization = Authorization::Ed25519 { key, signature: Ed25519Signature(signature) };
    Request::Order(TransferOrder { transfer: payment.into(), authorization })
}

fn numbered(number: usize) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes[24..].copy_from_slice(&(number as u64 + 1).to_be_bytes());
    bytes
}

/// Verifies `count` orders in batches, each order twice, and says how many keys were compared.
fn work_of_orders(verifier: &mut Verifier, count: usize, order: impl Fn(usize) -> Request) -> usize {
    let (committees, mut rng) = (committees(&authorities(4)), StdRng::seed_from_u64(0));
    work::of(|| {
        for first in (0..count).step_by(512) {
            for _ in 0..2 {
                let batch: Vec<_> = (first..count.min(first + 512)).map(&order).collect();
                assert!(verifier.verify(batch, &committees, &mut rng).iter().all(Result::is_ok));
            }
        }
    })
}

#[test]
fn orders_that_share_a_signature_cost_as_much_as_any_others() {
    const COUNT: usize = 6_000;
    let one = SMALL_ORDER[0];
    let variants: [(&str, &dyn Fn(usize) -> Request); 6] = [
        ("memo", &|number| free_order(one, one, |payment| payment.memo = numbered(number).into())),
        ("amount", &|number| free_order(one, one, |payment| payment.amount = Amount(number as u128 + 1))),
        ("sequence", &|number| free_order(one, one, |payment| payment.sequence = SequenceNumber(number as u64))),
        ("recipient", &|number| free_order(one, one, |payment| payment.recipient = AccountId(numbered(number)))),
        ("asset", &|number| {
            let address = PrimaryAddress::left_padding_from(&(number as u64).to_be_bytes());
            free_order(one, one, |payment| payment.asset = Asset(address))
        }),
        ("key and R", &|number| {
            let (key, r) = (SMALL_ORDER[number % 4], SMALL_ORDER[number / 4 % 4]);
            free_order(key, r, |payment| payment.memo = numbered(number / 16).into())
        }),
    ];
    for (what, order) in variants {
        // An order is compared where it is found, and so is its key; of all others, one in some hundred by chance.
        let work = work_of_orders(&mut Verifier::new(domain()), COUNT, order);
        assert!((COUNT..3 * COUNT).contains(&work), "{what}: {work} comparisons for {COUNT} orders");
        // The same where generation after generation is forgotten.
        let work = work_of_orders(&mut Verifier::with_memory(domain(), 700, 700), COUNT, order);
        assert!((COUNT..3 * COUNT).contains(&work), "{what}: {work} comparisons for {COUNT} orders, most forgotten");
    }
}

/// The check of a member's vote on a root.
type MakeCheck<'a> = &'a dyn Fn(u8, usize) -> SignatureCheck;

#[test]
fn votes_that_share_a_signature_cost_as_much_as_any_others() {
    const MEMBERS: u8 = 100;
    const ROOTS: usize = 60;
    let one = SMALL_ORDER[0];
    let mut bytes = [0; 64];
    bytes[..32].copy_from_slice(&one);
    let signature = Ed25519Signature(bytes);
    let payment = |member: u8, root: usize| {
        let authority = AuthorityName(if member < 4 { SMALL_ORDER[usize::from(member)] } else { [member; 32] });
        SignatureCheck::PaymentVote { authority, epoch: Epoch(0), root: numbered(root).into(), signature }
    };
    let redemption = |member: u8, root: usize| SignatureCheck::RedemptionVote {
        authority: AuthorityName([member; 32]),
        redemption_key: PrimaryAddress::repeat_byte(member),
        digest: numbered(root).into(),
        signature: EcdsaSignature([1; 65]),
    };
    let variants: [(&str, MakeCheck<'_>); 5] = [
        ("members and roots", &payment),
        ("members under one root", &|member, _| payment(member, 0)),
        ("roots of one member", &|_, root| payment(0, root)),
        ("epochs", &|member, root| {
            let SignatureCheck::PaymentVote { authority, root: same, signature, .. } = payment(member, 0) else {
                panic!()
            };
            SignatureCheck::PaymentVote { authority, epoch: Epoch(root as u64), root: same, signature }
        }),
        ("redemptions", &redemption),
    ];
    for (what, check) in variants {
        let (mut round, mut keys, mut rng) = (BatchRound::default(), Recent::new(1_000), StdRng::seed_from_u64(0));
        let mut votes: Recent<SignatureCheck, ()> = Recent::new(100_000);
        let count = usize::from(MEMBERS) * ROOTS;
        let work = work::of(|| {
            for root in 0..ROOTS {
                for member in 0..MEMBERS {
                    let check = check(member, root);
                    let hash = votes.hash(&check);
                    assert!(votes.get(hash, &check).is_none());
                    round.place(check, Some(hash), &domain(), &mut keys);
                }
            }
            round.judge(&mut keys, &mut rng);
            for root in 0..ROOTS {
                for member in 0..MEMBERS {
                    let check = check(member, root);
                    votes.insert(votes.hash(&check), check, ());
                }
            }
        });
        // Each is compared at most where it is found: in the round, among the keys, among the votes.
        assert!(work < 4 * count, "{what}: {work} comparisons for {count} votes");
    }
}

#[test]
fn certificates_of_a_large_committee_cost_what_their_number_of_votes_says() {
    const CERTIFICATES: usize = 64;
    let keys = authorities(100);
    let (committees, mut rng) = (committees(&keys), StdRng::seed_from_u64(0));
    let quorum = committees.current().quorum();
    let owner = AccountKey::ed25519([77; 32]);
    let orders: Vec<_> = (0..CERTIFICATES)
        .map(|number| {
            let sequence = SequenceNumber(number as u64);
            let (sender, recipient, memo) = (owner.account(), AccountId([9; 32]), [0; 32].into());
            let payment = Payment { sender, recipient, asset: Asset::ETHER, amount: Amount(1), sequence, memo };
            owner.order(&domain(), payment.into())
        })
        .collect();
    let digests: Vec<_> = orders.iter().map(|order| domain().transfer_digest(&order.transfer)).collect();
    // As many to a root: all certificates share all their votes' roots, or none does.
    for batch in [MERKLE_LEAVES_MAX, 1] {
        let mut votes: Vec<Vec<_>> = vec![Vec::new(); CERTIFICATES];
        for authority in keys.iter().take(quorum) {
            let signed =
                digests.chunks(batch).map(|digests| sign_payment_votes(authority, &domain(), Epoch(0), digests));
            let signed = signed.flat_map(|signed| signed.unwrap().0);
            votes.iter_mut().zip(signed).for_each(|(votes, vote)| votes.push(vote));
        }
        let certificates: Vec<_> = orders
            .iter()
            .zip(votes)
            .map(|(order, votes)| Request::Certificate(Certificate { order: order.clone(), epoch: Epoch(0), votes }))
            .collect();
        let mut verifier = Verifier::new(domain());
        let work = work::of(|| {
            for _ in 0..2 {
                let verdicts = verifier.verify(certificates.clone(), &committees, &mut rng);
                assert!(verdicts.iter().all(Result::is_ok));
            }
        });
        let votes = 2 * CERTIFICATES * quorum;
        assert!(work < 2 * votes, "{batch} to a root: {work} comparisons for {votes} votes");
    }
}
