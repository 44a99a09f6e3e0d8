//! Notes are opened by one key, for one transaction, and by nobody else; and they look alike.

use fastpay_core::private::PAYMENT_NOTE_BYTES;
use fastpay_private::*;
use ff::Field;
use rand::rngs::{OsRng, StdRng};
use rand::{Rng, SeedableRng};

use super::random;

fn key() -> NoteKey<Received> {
    NoteKey::from_seed(&[1; 32])
}

fn payment_note() -> PaymentNote {
    PaymentNote { value: u128::MAX - 5, r: -Fr::ONE, memo: [7; 32] }
}

#[test]
fn a_note_is_for_one_key_and_one_transaction() {
    let random = &mut random();
    let key = key();
    let nullifier = Fr::random(&mut *random);
    let note = payment_note().seal(&key.public(), nullifier, random).unwrap();
    let open = |key: &NoteKey<Received>, nullifier| PaymentNote::open(&note, key, nullifier);
    // Of 256 other keys, one has the same view tag on average. The same goes for nullifiers.
    let other_keys: Vec<_> = (0..512).map(|_| open(&NoteKey::from_seed(&random.r#gen()), nullifier)).collect();
    let other_nullifiers: Vec<_> = (0..512).map(|_| open(&key, Fr::random(&mut *random))).collect();
    for refused in [other_keys, other_nullifiers] {
        let by_tag = refused.iter().filter(|refused| **refused == Err(OpenNoteError::NotForThisKey)).count();
        assert!(refused.iter().all(Result::is_err));
        assert!(by_tag >= 490, "{by_tag}");
    }
}

#[test]
fn no_bit_of_a_note_can_be_altered() {
    let key = key();
    let note = payment_note().seal(&key.public(), Fr::ONE, &mut OsRng).unwrap();
    for bit in 0..8 * PAYMENT_NOTE_BYTES {
        let mut altered = note;
        altered[bit / 8] ^= 1 << (bit % 8);
        // X25519 ignores the highest bit of a key, and the key's bytes are part of what the cipher's key is made of.
        assert!(PaymentNote::open(&altered, &key, Fr::ONE).is_err(), "bit {bit}");
    }
}

/// To these keys everybody knows the shared secret, whatever the other key is.
#[test]
fn keys_of_small_order_are_refused() {
    let key = key();
    let mut one = [0; 32];
    one[0] = 1;
    for weak in [[0; 32], one] {
        assert_eq!(payment_note().seal(&weak, Fr::ONE, &mut OsRng), Err(WeakNoteKey));
        let mut note = payment_note().seal(&key.public(), Fr::ONE, &mut OsRng).unwrap();
        note[..32].copy_from_slice(&weak);
        assert_eq!(PaymentNote::open(&note, &key, Fr::ONE), Err(OpenNoteError::Altered));
    }
}

#[test]
fn notes_have_nothing_in_common() {
    let key = key();
    let notes = [
        payment_note().seal(&key.public(), Fr::ONE, &mut OsRng).unwrap(),
        payment_note().seal(&key.public(), Fr::ONE, &mut OsRng).unwrap(),
        dummy_payment_note(Fr::ONE, &mut OsRng),
    ];
    for (at, one) in notes.iter().enumerate() {
        for other in &notes[..at] {
            assert_ne!(one[..32], other[..32]);
            assert_ne!(one[33..], other[33..]);
        }
    }
    assert!(PaymentNote::open(&notes[2], &key, Fr::ONE).is_err());
    assert_eq!(format!("{key:?}"), "NoteKey");
}

/// With a common key, the sum of two ciphertexts would be the sum of the contents.
#[test]
fn a_broken_generator_gives_two_notes_no_common_key() {
    let key = key();
    let note = payment_note();
    let seal =
        |note: PaymentNote, nullifier| note.seal(&key.public(), nullifier, &mut StdRng::seed_from_u64(1)).unwrap();
    let one = seal(note, Fr::ONE);
    assert_eq!(one, seal(note, Fr::ONE), "the generator gives the same each time");
    for other in [seal(PaymentNote { value: 1, ..note }, Fr::ONE), seal(note, Fr::from(2))] {
        assert_ne!(one[..32], other[..32], "the note's own key");
        let memo = 33 + 16 + 32..33 + 16 + 32 + 32;
        assert_ne!(one[memo.clone()], other[memo], "the memo is the same in both");
    }
}
