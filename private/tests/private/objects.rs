//! What the objects promise: each field counts, each encoding is the only one, and each signature is for one thing.

use fastpay_private::*;
use ff::Field;
use group::GroupEncoding;
use rand::rngs::StdRng;
use rand::{Rng, RngCore};

use super::random;

fn asset(random: &mut StdRng) -> Asset {
    Asset(random.r#gen())
}

fn some_coin(random: &mut StdRng) -> Coin {
    let (value, asset) = (random.r#gen(), asset(random));
    Coin { value, asset, rho: Fr::random(&mut *random), owner: Owner(Fr::random(&mut *random)), r: Fr::random(random) }
}

fn some_account(random: &mut StdRng) -> Account {
    Account {
        owner: Owner(Fr::random(&mut *random)),
        asset: asset(random),
        balance: random.r#gen(),
        spent: random.r#gen(),
        total: random.r#gen(),
        period: random.r#gen(),
        received: random.r#gen(),
        history: Fr::random(&mut *random),
        rho: Fr::random(&mut *random),
        r: Fr::random(random),
    }
}

fn some_credential(random: &mut StdRng) -> Credential {
    let mut amount = || random.r#gen();
    let limits = Limits { transaction: amount(), period: amount(), total: amount(), hold: amount(), receive: amount() };
    Credential {
        owner: Owner(Fr::random(&mut *random)),
        asset: asset(random),
        limits,
        expiry: random.r#gen(),
        attributes: Fr::random(random),
    }
}

/// Asserts that each change gives another element, and no two the same.
fn assert_each_counts<T: Clone>(object: &T, commit: impl Fn(&T) -> Fr, changes: &[fn(&mut T)]) {
    let mut seen = vec![commit(object)];
    for change in changes {
        let mut changed = object.clone();
        change(&mut changed);
        let commitment = commit(&changed);
        assert!(!seen.contains(&commitment), "change {} does not count", seen.len());
        seen.push(commitment);
    }
}

#[test]
fn each_field_of_an_object_counts() {
    let random = &mut random();
    assert_each_counts(
        &some_coin(random),
        Coin::commitment,
        &[
            |coin| coin.value ^= 1,
            |coin| coin.value ^= 1 << 127,
            |coin| coin.asset.0[0] ^= 0x80,
            |coin| coin.rho += Fr::ONE,
            |coin| coin.owner.0 += Fr::ONE,
            |coin| coin.r += Fr::ONE,
        ],
    );
    assert_each_counts(
        &some_account(random),
        Account::commitment,
        &[
            |account| account.owner.0 += Fr::ONE,
            |account| account.asset.0[19] ^= 1,
            |account| account.balance ^= 1,
            |account| account.spent ^= 1,
            |account| account.total ^= 1,
            |account| account.period ^= 1,
            |account| account.received ^= 1,
            |account| account.history += Fr::ONE,
            |account| account.rho += Fr::ONE,
            |account| account.r += Fr::ONE,
        ],
    );
    assert_each_counts(
        &some_credential(random),
        Credential::message,
        &[
            |credential| credential.owner.0 += Fr::ONE,
            |credential| credential.asset.0[19] ^= 1,
            |credential| credential.limits.transaction ^= 1,
            |credential| credential.limits.period ^= 1,
            |credential| credential.limits.total ^= 1,
            |credential| credential.limits.hold ^= 1,
            |credential| credential.limits.receive ^= 1,
            |credential| credential.expiry ^= 1,
            |credential| credential.attributes += Fr::ONE,
        ],
    );
}

#[test]
fn a_first_account_is_of_one_owner_asset_and_deployment() {
    let (owner, asset) = (Owner(Fr::from(1)), Asset([1; 20]));
    let first = |owner, asset, domain| Account::first(owner, asset, domain).rho;
    let here = first(owner, asset, Domain::new(&[1; 32]));
    assert_ne!(here, first(Owner(Fr::from(2)), asset, Domain::new(&[1; 32])));
    assert_ne!(here, first(owner, Asset([2; 20]), Domain::new(&[1; 32])));
    assert_ne!(here, first(owner, asset, Domain::new(&[2; 32])));
}

#[test]
fn a_history_depends_on_each_payment_and_on_their_order() {
    let (a, b) = (Fr::from(1), Fr::from(2));
    let of = |payments: &[(Fr, u128, u32)]| {
        payments.iter().fold(Fr::ZERO, |history, (coin, out, period)| history_after(history, *coin, *out, *period))
    };
    let all = of(&[(a, 0, 1), (b, 3, 1)]);
    for other in [&[(b, 3, 1), (a, 0, 1)][..], &[(a, 0, 1)], &[(a, 1, 1), (b, 3, 1)], &[(a, 0, 1), (b, 3, 2)]] {
        assert_ne!(all, of(other));
    }
}

#[test]
fn a_signature_is_for_one_key_element_kind_and_deployment() {
    let random = &mut random();
    let key = SigningKey::from_seed(random.r#gen());
    let other = SigningKey::from_seed(random.r#gen());
    let (here, there) = (Domain::new(&[1; 32]), Domain::new(&[2; 32]));
    let message = Fr::random(&mut *random);
    let signature = key.sign(here, Kind::Coin, message, random);
    let check = |key: &SigningKey, domain, kind, message| key.public().verify(domain, kind, message, &signature);
    assert_eq!(check(&key, here, Kind::Coin, message), Ok(()));
    assert_eq!(check(&other, here, Kind::Coin, message), Err(InvalidSignature));
    assert_eq!(check(&key, there, Kind::Coin, message), Err(InvalidSignature));
    assert_eq!(check(&key, here, Kind::Account, message), Err(InvalidSignature));
    assert_eq!(check(&key, here, Kind::Credential, message), Err(InvalidSignature));
    assert_eq!(check(&key, here, Kind::Coin, message + Fr::ONE), Err(InvalidSignature));
}

#[test]
fn every_bit_of_a_signature_counts() {
    let random = &mut random();
    let (key, domain) = (SigningKey::from_seed(random.r#gen()), Domain::new(&[1; 32]));
    let message = Fr::random(&mut *random);
    let bytes = key.sign(domain, Kind::Account, message, random).to_bytes();
    assert!(Signature::from_bytes(&bytes).is_ok_and(|read| read.to_bytes() == bytes));
    for bit in 0..8 * bytes.len() {
        let mut altered = bytes;
        altered[bit / 8] ^= 1 << (bit % 8);
        let valid = Signature::from_bytes(&altered)
            .and_then(|signature| key.public().verify(domain, Kind::Account, message, &signature));
        assert_eq!(valid, Err(InvalidSignature), "bit {bit}");
    }
}

#[test]
fn two_signatures_of_one_message_share_no_nonce() {
    let random = &mut random();
    let (key, domain) = (SigningKey::from_seed(random.r#gen()), Domain::new(&[1; 32]));
    let mut sign = |message| key.sign(domain, Kind::Coin, Fr::from(message), random).to_bytes();
    let (first, second) = (sign(1), sign(1));
    assert_ne!(first[..16], second[..16]);
    assert_ne!(first[16..], second[16..]);
}

/// The nonce depends on the message: a generator that repeats itself does not reveal the key.
#[test]
fn a_broken_generator_repeats_no_nonce() {
    struct Broken;
    impl RngCore for Broken {
        fn next_u32(&mut self) -> u32 {
            4
        }
        fn next_u64(&mut self) -> u64 {
            4
        }
        fn fill_bytes(&mut self, bytes: &mut [u8]) {
            bytes.fill(4);
        }
        fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), rand::Error> {
            self.fill_bytes(bytes);
            Ok(())
        }
    }
    impl rand::CryptoRng for Broken {}
    // With one nonce k, s − s' = (c − c')·key, and so the key's holder is whoever sees both.
    let (key, domain) = (SigningKey::from_seed([7; 32]), Domain::new(&[1; 32]));
    let nonce = |message| {
        let signature = key.sign(domain, Kind::Coin, Fr::from(message), &mut Broken);
        let bytes = signature.to_bytes();
        let number = |bytes: &[u8]| {
            let mut all = [0; 32];
            all[..bytes.len()].copy_from_slice(&bytes.iter().rev().copied().collect::<Vec<u8>>());
            jubjub::Fr::from_bytes(&all).unwrap()
        };
        let two = jubjub::Fr::from(2);
        let multiplier = number(&bytes[..16]) * two + jubjub::Fr::ONE - two.pow(&[128, 0, 0, 0]);
        let point = |bytes| jubjub::ExtendedPoint::from_bytes(&bytes).unwrap();
        let generator = point(generator());
        (generator * number(&bytes[16..]) - point(key.public().to_bytes()) * multiplier).to_bytes()
    };
    assert_ne!(nonce(1), nonce(2));
    assert_eq!(nonce(1), nonce(1));
}

#[test]
fn only_points_of_prime_order_are_keys() {
    let key = *SigningKey::from_seed([5; 32]).public();
    assert_eq!(PublicKey::from_bytes(&key.to_bytes()), Ok(key));
    let order_two = jubjub::AffinePoint::from_raw_unchecked(jubjub::Fq::zero(), -jubjub::Fq::one()).to_extended();
    let identity = jubjub::ExtendedPoint::identity();
    let mixed = jubjub::ExtendedPoint::from_bytes(&key.to_bytes()).unwrap() + order_two;
    for point in [identity, order_two, mixed] {
        assert_eq!(PublicKey::from_bytes(&point.to_bytes()), Err(InvalidKey));
    }
    // The identity with the sign of u set, a coordinate above the modulus, and a v without a point.
    let mut signed = identity.to_bytes();
    signed[31] |= 0x80;
    let off_curve = (2_u8..)
        .map(|v| [&[v][..], &[0; 31]].concat())
        .find(|bytes| bool::from(jubjub::ExtendedPoint::from_bytes(bytes[..].try_into().unwrap()).is_none()));
    for bytes in [signed, [0xff; 32], off_curve.unwrap().try_into().unwrap()] {
        assert_eq!(PublicKey::from_bytes(&bytes), Err(InvalidKey));
    }
}

#[test]
fn an_absent_member_has_a_key_of_its_own_in_each_epoch() {
    let (here, there) = (Domain::new(&[1; 32]), Domain::new(&[2; 32]));
    let keys = [absent_key(here, 1, 0), absent_key(here, 1, 1), absent_key(here, 2, 0), absent_key(there, 1, 0)];
    for (at, key) in keys.iter().enumerate() {
        assert_eq!(PublicKey::from_bytes(&key.to_bytes()), Ok(*key));
        assert!(!keys[..at].contains(key));
    }
}

#[test]
fn an_address_survives_its_text_and_no_altered_text_does() {
    let random = &mut random();
    let address = Address { owner: Owner(Fr::random(&mut *random)), notes: random.r#gen() };
    let text = address.to_string();
    assert!(text.starts_with("fpp1"), "{text}");
    assert_eq!(text.parse(), Ok(address));
    assert_eq!(text.to_uppercase().parse(), Ok(address));
    for at in 0..text.len() {
        let mut altered = text.clone().into_bytes();
        altered[at] = if altered[at] == b'q' { b'p' } else { b'q' };
        let altered = String::from_utf8(altered).unwrap();
        assert_eq!(altered.parse::<Address>(), Err(ParseAddressError::Text), "{altered}");
    }
}

#[test]
fn bytes_that_are_no_address_are_refused_by_reason() {
    let encode = |prefix: &str, bytes: &[u8]| {
        bech32::encode::<bech32::Bech32m>(bech32::Hrp::parse(prefix).unwrap(), bytes).unwrap()
    };
    let parse = |text: String| text.parse::<Address>().unwrap_err();
    assert_eq!(parse(encode("fp", &[0; 64])), ParseAddressError::Text);
    assert_eq!(
        parse(bech32::encode::<bech32::Bech32>(bech32::Hrp::parse("fpp").unwrap(), &[0; 64]).unwrap()),
        ParseAddressError::Text
    );
    assert_eq!(parse(encode("fpp", &[0; 63])), ParseAddressError::Length);
    assert_eq!(parse(encode("fpp", &[0; 65])), ParseAddressError::Length);
    assert_eq!(parse(encode("fpp", &[0xff; 64])), ParseAddressError::Owner);
}

/// The root that a path leads to.
fn root_of(path: &GapPath) -> Option<Fr> {
    let leaf = h2([path.low, path.high]);
    path.children.iter().try_fold(leaf, |node, children| children.contains(&node).then(|| h8(*children)))
}

#[test]
fn a_path_leads_from_the_gap_around_a_tag_to_the_root() {
    let random = &mut random();
    for count in [0, 1, 7, 8, 9, 63, 64, 65, 600] {
        let tags: Vec<Tag> = (0..count).map(|_| Owner(Fr::random(&mut *random)).tag()).collect();
        let list = Sanctions::new(tags.iter().copied()).unwrap();
        for tag in (0..20).map(|_| Owner(Fr::random(&mut *random)).tag()).filter(|tag| !tags.contains(tag)) {
            let path = list.path(tag);
            assert!(!list.lists(tag));
            assert_eq!(root_of(&path), Some(list.root()));
            let tag = field_from_u128(tag.number());
            assert!(path.low < tag && tag < path.high);
        }
        for tag in &tags {
            assert!(list.lists(*tag));
            let (path, tag) = (list.path(*tag), field_from_u128(tag.number()));
            assert!(path.low == tag || tag == path.high, "a listed tag lies in no gap");
        }
    }
}

#[test]
fn a_list_has_one_root_in_any_order_and_another_for_any_other_list() {
    let random = &mut random();
    let tags: Vec<Tag> = (0..20).map(|_| Owner(Fr::random(&mut *random)).tag()).collect();
    let root = |tags: &[Tag]| Sanctions::new(tags.iter().copied()).unwrap().root();
    let mut reversed = tags.clone();
    reversed.reverse();
    reversed.push(tags[3]);
    assert_eq!(root(&tags), root(&reversed));
    assert_ne!(root(&tags), root(&tags[1..]));
    assert_ne!(root(&[]), root(&tags[..1]));
}

#[test]
fn a_full_list_is_accepted_and_one_more_is_refused() {
    let tags = (1..).map(|number| Owner(Fr::from(number)).tag());
    assert!(Sanctions::new(tags.clone().take(LISTED_MAX)).is_ok());
    assert_eq!(Sanctions::new(tags.take(LISTED_MAX + 1)).err(), Some(TooManyListed(LISTED_MAX + 1)));
}
