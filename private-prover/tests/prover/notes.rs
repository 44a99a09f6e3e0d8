//! What a transaction's notes say.

use fastpay_private_prover::*;
use rand::rngs::OsRng;

use super::scene::Scene;

fn key() -> NoteKey<Received> {
    NoteKey::from_seed(&[1; 32])
}

#[test]
fn a_payee_learns_the_coin_from_its_note() {
    let scene = Scene::new(4);
    let paid = scene.prepare(&scene.payment()).unwrap();
    let key = key();
    let nullifier = paid.public.account_nullifier;
    let note = PaymentNote { value: paid.coin.value, r: paid.coin.r, memo: [7; 32] };
    let opened = PaymentNote::open(&note.seal(&key.public(), nullifier, &mut OsRng).unwrap(), &key, nullifier).unwrap();
    assert_eq!(opened, note);
    let Public { asset, coin, .. } = paid.public;
    let found = Coin { value: opened.value, asset, rho: nullifier, owner: scene.bob, r: opened.r };
    assert_eq!(found.commitment(), coin);
}

#[test]
fn an_owner_recovers_account_and_payment_from_a_note() {
    let scene = Scene::new(4);
    let Prepared { public, account, coin, .. } = scene.prepare(&scene.payment()).unwrap();
    let key = NoteKey::from_seed(&[1; 32]);
    let note = OwnNote { account, payee: coin.owner, value: coin.value, r: coin.r };
    let sealed = note.seal(&key, &mut OsRng);
    let opened = OwnNote::open(&sealed, &key, scene.alice.owner(), public.asset, public.account_nullifier).unwrap();
    assert_eq!(opened, note);
    assert_eq!(opened.account.commitment(), public.account);
}
