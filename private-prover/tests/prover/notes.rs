//! What a transaction's notes and its transfer say.

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

/// A transfer has all that the proof is of, and its digest, to which the proof is bound, all the rest.
#[test]
fn a_transfer_says_what_is_proved_and_binds_all_else() {
    let scene = Scene::new(4);
    let paid = scene.prepare(&scene.exit()).unwrap();
    let of = |alter: fn(&mut Envelope)| {
        let mut envelope = Envelope {
            committee: 1,
            rules: 2,
            recipient: [3; 32],
            memo: [4; 32],
            payment_note: [5; PAYMENT_NOTE_BYTES],
            own_note: [6; OWN_NOTE_BYTES],
        };
        alter(&mut envelope);
        paid.transfer(&envelope)
    };
    let transfer = of(|_| ());
    let Public { asset, account_nullifier, coin_nullifier, account, coin, withdrawn, .. } = paid.public.clone();
    let elements = [account_nullifier, coin_nullifier, account, coin].map(field_to_bytes);
    assert_eq!([transfer.account_spent, transfer.coin_spent, transfer.account, transfer.coin], elements);
    assert_eq!((transfer.asset, transfer.amount_out), (asset.0, withdrawn));
    assert_eq!((transfer.committee, transfer.rules), (1, 2));
    assert_eq!((transfer.recipient, transfer.memo), ([3; 32], [4; 32]));
    let others: [fn(&mut Envelope); 6] = [
        |envelope| envelope.committee += 1,
        |envelope| envelope.rules += 1,
        |envelope| envelope.recipient[0] ^= 1,
        |envelope| envelope.memo[31] ^= 1,
        |envelope| envelope.payment_note[PAYMENT_NOTE_BYTES - 1] ^= 1,
        |envelope| envelope.own_note[0] ^= 1,
    ];
    for (at, other) in others.into_iter().enumerate() {
        assert_ne!(of(other).digest(&[0xd0; 32]), transfer.digest(&[0xd0; 32]), "alteration {at}");
    }
}
