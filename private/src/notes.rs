//! Notes: what a transaction tells its payee, and its payer's later self, encrypted for each alone.
//!
//! Every transaction has one note of each kind, each kind has one size, and a note that nobody needs is encrypted to
//! nobody. So notes do not tell transactions apart. A note is an X25519 key for this note alone, a view tag of one byte,
//! and a ciphertext of ChaCha20-Poly1305, bound to the transaction by its account nullifier, which is
//! hashed into the cipher's key, too.

use std::fmt;
use std::marker::PhantomData;

use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{ChaCha20Poly1305, KeyInit, Nonce};
use fastpay_core::private::{OWN_NOTE_BYTES, PAYMENT_NOTE_BYTES};
use rand_core::{CryptoRng, RngCore};
use sha2::{Digest, Sha512};
use thiserror::Error;
use x25519_dalek::{PublicKey, SharedSecret, StaticSecret};
use zeroize::{Zeroize, Zeroizing};

use crate::account::Account;
use crate::field::{Asset, Fr, field_from_bytes, field_to_bytes};
use crate::owner::Owner;

/// The key, the view tag and the tag of the cipher.
const OVERHEAD: usize = 32 + 1 + 16;
const PAYMENT_BYTES: usize = 16 + 32 + 32;
const OWN_BYTES: usize = 5 * 16 + 4 + 4 * 32;

const _: () = assert!(PAYMENT_NOTE_BYTES == PAYMENT_BYTES + OVERHEAD && OWN_NOTE_BYTES == OWN_BYTES + OVERHEAD);

/// Why a note was not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum OpenNoteError {
    /// The view tag is another key's: the note is for somebody else.
    #[error("this note is for another key")]
    NotForThisKey,
    /// The view tag is this key's, as one of 256 is by chance, and the rest is not, or was altered.
    #[error("this note is for another key, or was altered")]
    Altered,
    /// The sender encrypted what is no note.
    #[error("this note does not hold what it should")]
    Content,
}

/// For which kind of note a key is: [`Received`] or [`Own`]. The two keys of a seed have nothing in common for others, so
/// that the key for what one receives can be shown to an auditor without showing what one pays.
pub trait NotePurpose: Sealed {
    /// What separates hashes for this purpose from all others.
    const LABEL: &'static str;
}

/// Notes from payers: their key is in an address, and is the viewing key.
pub enum Received {}
/// Notes to oneself.
pub enum Own {}

impl NotePurpose for Received {
    const LABEL: &'static str = "fastpay/private/note-received";
}

impl NotePurpose for Own {
    const LABEL: &'static str = "fastpay/private/note-own";
}

/// There is no third purpose.
pub trait Sealed {}
impl Sealed for Received {}
impl Sealed for Own {}

/// A key that opens notes of one purpose. It is wiped when dropped.
pub struct NoteKey<P> {
    secret: StaticSecret,
    purpose: PhantomData<P>,
}

impl<P> fmt::Debug for NoteKey<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NoteKey")
    }
}

impl NoteKey<Received> {
    /// What payers encrypt notes to. A key for notes to oneself shows none, so that it gets into no address.
    #[must_use]
    pub fn public(&self) -> [u8; 32] {
        self.recipient()
    }
}

impl<P: NotePurpose> NoteKey<P> {
    /// The key of a seed.
    #[must_use]
    pub fn from_seed(seed: &[u8; 32]) -> Self {
        let mut hash: [u8; 64] = Sha512::new_with_prefix(P::LABEL).chain_update(seed).finalize().into();
        let secret = StaticSecret::from(*hash.first_chunk::<32>().expect("32 of 64 bytes"));
        hash.zeroize();
        Self { secret, purpose: PhantomData }
    }

    fn recipient(&self) -> [u8; 32] {
        PublicKey::from(&self.secret).to_bytes()
    }

    fn open<const N: usize>(&self, note: &[u8], nullifier: Fr) -> Result<Zeroizing<[u8; N]>, OpenNoteError> {
        let (ephemeral, rest) = note.split_first_chunk::<32>().ok_or(OpenNoteError::Altered)?;
        let ([view], ciphertext) = rest.split_first_chunk::<1>().ok_or(OpenNoteError::Altered)?;
        let shared = self.secret.diffie_hellman(&PublicKey::from(*ephemeral));
        let (key, tag) = derive::<P>(&shared, ephemeral, &self.recipient(), nullifier).ok_or(OpenNoteError::Altered)?;
        if tag != *view {
            return Err(OpenNoteError::NotForThisKey);
        }
        let payload = Payload { msg: ciphertext, aad: &field_to_bytes(nullifier) };
        let opened = cipher(&key).decrypt(&Nonce::default(), payload);
        let opened = Zeroizing::new(opened.map_err(|_| OpenNoteError::Altered)?);
        opened.as_slice().try_into().map(Zeroizing::new).map_err(|_| OpenNoteError::Content)
    }
}

/// The key and the view tag of a note. None: one of the keys is of small order, and everybody would know the secret.
fn derive<P: NotePurpose>(
    shared: &SharedSecret,
    ephemeral: &[u8; 32],
    to: &[u8; 32],
    nullifier: Fr,
) -> Option<(Zeroizing<[u8; 32]>, u8)> {
    if !shared.was_contributory() {
        return None;
    }
    let hash = Sha512::new_with_prefix("fastpay/private/note-key").chain_update(P::LABEL);
    let hash = hash.chain_update(shared.as_bytes()).chain_update(ephemeral).chain_update(to);
    let hash = hash.chain_update(field_to_bytes(nullifier)).finalize();
    let hash: Zeroizing<[u8; 64]> = Zeroizing::new(hash.into());
    let key = Zeroizing::new(*hash.first_chunk().expect("32 of 64 bytes"));
    Some((key, *hash.last().expect("64 bytes")))
}

fn cipher(key: &[u8; 32]) -> ChaCha20Poly1305 {
    ChaCha20Poly1305::new(key.into())
}

/// Encrypts a note. Its key has this note only, so the nonce is always zero: the key is a hash of content, recipient,
/// nullifier and fresh randomness, so that a broken generator gives two notes no common key.
fn seal<P: NotePurpose, const N: usize>(
    content: &[u8],
    to: &[u8; 32],
    nullifier: Fr,
    random: &mut (impl RngCore + CryptoRng),
) -> Option<[u8; N]> {
    let mut fresh = Zeroizing::new([0; 32]);
    random.fill_bytes(&mut fresh[..]);
    let hash = Sha512::new_with_prefix("fastpay/private/note-ephemeral").chain_update(P::LABEL);
    let hash = hash.chain_update(&fresh[..]).chain_update(to).chain_update(field_to_bytes(nullifier));
    let hash: Zeroizing<[u8; 64]> = Zeroizing::new(hash.chain_update(content).finalize().into());
    let secret = StaticSecret::from(*hash.first_chunk::<32>().expect("32 of 64 bytes"));
    let ephemeral = PublicKey::from(&secret).to_bytes();
    let (key, view) = derive::<P>(&secret.diffie_hellman(&PublicKey::from(*to)), &ephemeral, to, nullifier)?;
    let payload = Payload { msg: content, aad: &field_to_bytes(nullifier) };
    let sealed = cipher(&key).encrypt(&Nonce::default(), payload).ok()?;
    [&ephemeral[..], &[view], &sealed].concat().try_into().ok()
}

/// An X25519 key of small order: no note to it is secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("notes to this key could be read by everybody")]
pub struct WeakNoteKey;

/// What a payee must know of a coin. Asset and ρ are public in the transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PaymentNote {
    /// The coin's value, in the asset's smallest unit.
    pub value: u128,
    /// The coin's randomness.
    pub r: Fr,
    /// A message of the payer.
    pub memo: [u8; 32],
}

impl PaymentNote {
    /// Encrypts the note to the key in the payee's address. The randomness is the operating system's.
    ///
    /// # Errors
    /// [`WeakNoteKey`]
    pub fn seal(
        &self,
        to: &[u8; 32],
        nullifier: Fr,
        random: &mut (impl RngCore + CryptoRng),
    ) -> Result<[u8; PAYMENT_NOTE_BYTES], WeakNoteKey> {
        let content = Zeroizing::new([&self.value.to_be_bytes()[..], &field_to_bytes(self.r), &self.memo].concat());
        seal::<Received, _>(&content, to, nullifier, random).ok_or(WeakNoteKey)
    }

    /// Opens a note. Whether the coin is what it says, only its commitment shows.
    ///
    /// # Errors
    /// [`OpenNoteError`]
    pub fn open(
        note: &[u8; PAYMENT_NOTE_BYTES],
        key: &NoteKey<Received>,
        nullifier: Fr,
    ) -> Result<Self, OpenNoteError> {
        let content = key.open::<PAYMENT_BYTES>(note, nullifier)?;
        let mut reader = Reader(&content[..]);
        Ok(Self { value: u128::from_be_bytes(reader.take()?), r: reader.element()?, memo: reader.take()? })
    }
}

/// The note of a transaction that pays nobody: to a key that nobody has.
pub fn dummy_payment_note(nullifier: Fr, random: &mut (impl RngCore + CryptoRng)) -> [u8; PAYMENT_NOTE_BYTES] {
    let mut secret = Zeroizing::new([0; 32]);
    random.fill_bytes(&mut secret[..]);
    let nobody = PublicKey::from(&StaticSecret::from(*secret)).to_bytes();
    let note = PaymentNote { value: 0, r: Fr::from(0), memo: [0; 32] };
    note.seal(&nobody, nullifier, random).expect("a key made here is not weak")
}

/// What an owner must know after the loss of everything but the seed: the new account, and what was paid to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnNote {
    /// The account after the transaction.
    pub account: Account,
    /// Who was paid.
    pub payee: Owner,
    /// How much.
    pub value: u128,
    /// The randomness of the coin made.
    pub r: Fr,
}

impl OwnNote {
    /// Encrypts the note to oneself. The randomness is the operating system's.
    #[must_use]
    pub fn seal(&self, key: &NoteKey<Own>, random: &mut (impl RngCore + CryptoRng)) -> [u8; OWN_NOTE_BYTES] {
        let Account { balance, spent, total, period, received, history, rho, r, .. } = self.account;
        let amounts = [balance, spent, total, received, self.value].map(u128::to_be_bytes).concat();
        let elements = [history, r, self.payee.0, self.r].map(field_to_bytes).concat();
        let content = Zeroizing::new([&amounts[..], &period.to_be_bytes(), &elements].concat());
        seal::<Own, _>(&content, &key.recipient(), rho, random).expect("a key made of a seed is not weak")
    }

    /// Opens a note to oneself, of a transaction in this asset with this account nullifier.
    ///
    /// # Errors
    /// [`OpenNoteError`]
    pub fn open(
        note: &[u8; OWN_NOTE_BYTES],
        key: &NoteKey<Own>,
        owner: Owner,
        asset: Asset,
        nullifier: Fr,
    ) -> Result<Self, OpenNoteError> {
        let content = key.open::<OWN_BYTES>(note, nullifier)?;
        let mut reader = Reader(&content[..]);
        let mut amount = || reader.take().map(u128::from_be_bytes);
        let [balance, spent, total, received, value] = [amount()?, amount()?, amount()?, amount()?, amount()?];
        let period = u32::from_be_bytes(reader.take()?);
        let (history, r) = (reader.element()?, reader.element()?);
        let account = Account { owner, asset, balance, spent, total, period, received, history, rho: nullifier, r };
        Ok(Self { account, payee: Owner(reader.element()?), value, r: reader.element()? })
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], OpenNoteError> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or(OpenNoteError::Content)?;
        self.0 = rest;
        Ok(*bytes)
    }

    fn element(&mut self) -> Result<Fr, OpenNoteError> {
        field_from_bytes(&self.take()?).map_err(|_| OpenNoteError::Content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same seed, the same content, the same recipient: only the purpose differs, and nothing opens.
    #[test]
    fn a_key_of_one_purpose_opens_no_note_of_the_other() {
        let random = &mut rand::rngs::OsRng;
        let (received, own) = (NoteKey::<Received>::from_seed(&[1; 32]), NoteKey::<Own>::from_seed(&[1; 32]));
        assert_ne!(received.recipient(), own.recipient());
        let content = [7; PAYMENT_BYTES];
        let note: [u8; PAYMENT_NOTE_BYTES] = seal::<Own, _>(&content, &own.recipient(), Fr::from(1), random).unwrap();
        assert_eq!(own.open::<PAYMENT_BYTES>(&note, Fr::from(1)).map(|opened| *opened), Ok(content));
        assert!(received.open::<PAYMENT_BYTES>(&note, Fr::from(1)).is_err());
        let same_secret = NoteKey::<Received> { secret: own.secret.clone(), purpose: PhantomData };
        assert!(same_secret.open::<PAYMENT_BYTES>(&note, Fr::from(1)).is_err());
    }
}
