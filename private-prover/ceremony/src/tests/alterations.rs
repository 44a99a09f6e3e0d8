//! Files taken apart, altered and put together again.

use blstrs::{G1Affine, G2Affine};
use fastpay_private_prover::MalformedPoint;
use group::prime::PrimeCurveAffine;
use group::{Curve, Group};
use rand::rngs::{OsRng, StdRng};
use rand::{Rng, SeedableRng};

use super::outside;
use crate::group::Point;
use crate::{Flaw, Place, SecretName};

/// A step's points: product, factor in G1, factor in G2, proof.
const STEP: usize = 96 + 96 + 192 + 96;
const FACTOR_G1: usize = 96;
const FACTOR_G2: usize = 192;
const PROOF: usize = 384;

/// The bytes of a file.
#[derive(Clone)]
pub struct File {
    pub head: Vec<u8>,
    pub records: Vec<Vec<u8>>,
    pub points: Vec<u8>,
}

impl File {
    /// A file whose contributions, of so many steps, come after so many bytes.
    pub fn split(bytes: &[u8], head: usize, steps: usize) -> Self {
        let (head, rest) = bytes.split_at(head);
        let (count, mut rest) = rest.split_at(2);
        let mut records = vec![];
        for _ in 0..u16::from_be_bytes(count.try_into().unwrap()) {
            let (record, left) = rest.split_at(1 + usize::from(rest[0]) + steps * STEP);
            records.push(record.to_vec());
            rest = left;
        }
        Self { head: head.to_vec(), records, points: rest.to_vec() }
    }

    pub fn join(&self) -> Vec<u8> {
        let count = u16::try_from(self.records.len()).unwrap().to_be_bytes();
        [&self.head[..], &count[..], &self.records.concat()[..], &self.points[..]].concat()
    }

    /// With another name for a contribution.
    fn renamed(&self, at: usize, name: &str) -> Self {
        let mut file = self.clone();
        let record = &mut file.records[at];
        let old = 1 + usize::from(record[0]);
        record.splice(..old, [&[name.len() as u8], name.as_bytes()].concat());
        file
    }

    /// With another point at a place of a contribution's step.
    fn with(&self, at: usize, step: usize, offset: usize, point: &[u8]) -> Self {
        let mut file = self.clone();
        let record = &mut file.records[at];
        let start = 1 + usize::from(record[0]) + step * STEP + offset;
        record[start..start + point.len()].copy_from_slice(point);
        file
    }
}

fn place(number: usize, name: &str) -> Place {
    Place { number, name: name.to_owned() }
}

/// Every way to alter the contributions of a file is refused by its own error. `names` are those of the file's three
/// contributions, `other` has contributions of another ceremony by the same people, and `after_cut` is the flaw if the
/// last one is cut off.
pub fn refuse_altered_contributions(
    file: &File,
    other: &File,
    names: [&str; 3],
    secrets: &[SecretName],
    after_cut: Flaw,
    check: impl Fn(&[u8]) -> Result<(), Flaw>,
) {
    let flaw = |file: &File| check(&file.join()).unwrap_err();
    let edited = |edit: &dyn Fn(&mut Vec<Vec<u8>>)| {
        let mut file = file.clone();
        edit(&mut file.records);
        flaw(&file)
    };
    assert_eq!(check(&file.join()), Ok(()));
    let first = secrets[0];
    let order = |number: usize, name: &str| Flaw::Order { place: place(number, name), secret: first };
    // The order of contributions.
    assert_eq!(edited(&|records| records.swap(0, 1)), order(1, names[1]));
    assert_eq!(edited(&|records| records.swap(1, 2)), order(2, names[2]));
    assert_eq!(edited(&|records| drop(records.remove(0))), order(1, names[1]));
    assert_eq!(edited(&|records| drop(records.remove(1))), order(2, names[2]));
    assert_eq!(edited(&|records| drop(records.pop())), after_cut);
    assert_eq!(edited(&|records| records[1] = other.records[1].clone()), order(2, names[1]));
    let repeated = Flaw::Repeated { place: place(4, names[1]), first: 2 };
    assert_eq!(edited(&|records| records.push(records[1].clone())), repeated);
    // The names, to which proofs are bound.
    let proof = |number: usize, name: &str| Flaw::Proof { place: place(number, name), secret: first };
    assert_eq!(flaw(&file.renamed(1, "mallory")), proof(2, "mallory"));
    let shouted = names[0].to_uppercase();
    assert_eq!(flaw(&file.renamed(2, &shouted)), Flaw::Repeated { place: place(3, &shouted), first: 1 });
    for name in ["", "two words", "a\nb", "ä", &"a".repeat(65)] {
        assert_eq!(flaw(&file.renamed(1, name)), Flaw::Name(2), "{name:?}");
    }
    // The points.
    let (g1, g2) = (G1Affine::generator().to_uncompressed(), G2Affine::generator().to_uncompressed());
    let [outside_g1, outside_g2] = outside();
    for (step, &secret) in secrets.iter().enumerate() {
        let place = || place(2, names[1]);
        assert_eq!(flaw(&file.with(1, step, 0, &g1)), Flaw::Order { place: place(), secret });
        assert_eq!(flaw(&file.with(1, step, FACTOR_G1, &g1)), Flaw::Factor { place: place(), secret });
        assert_eq!(flaw(&file.with(1, step, FACTOR_G2, &g2)), Flaw::Factor { place: place(), secret });
        assert_eq!(flaw(&file.with(1, step, PROOF, &g1)), Flaw::Proof { place: place(), secret });
        // A factor of 1, for which anybody can make a proof, does not fit the product.
        let neutral = file.with(1, step, FACTOR_G1, &g1).with(1, step, FACTOR_G2, &g2);
        assert_eq!(flaw(&neutral), Flaw::Order { place: place(), secret });
        let malformed = |offset, point: &[u8], error| {
            let expected = Flaw::StepPoint { place: place(), secret, error };
            assert_eq!(flaw(&file.with(1, step, offset, point)), expected);
        };
        for offset in [0, FACTOR_G1, PROOF] {
            malformed(offset, &G1Affine::identity().to_uncompressed(), MalformedPoint::Flags);
            malformed(offset, &G1Affine::generator().to_compressed(), MalformedPoint::Flags);
            malformed(offset, &[0; 96], MalformedPoint::Curve);
            malformed(offset, &outside_g1, MalformedPoint::Group);
        }
        malformed(FACTOR_G2, &G2Affine::identity().to_uncompressed(), MalformedPoint::Flags);
        malformed(FACTOR_G2, &[0; 192], MalformedPoint::Curve);
        malformed(FACTOR_G2, &outside_g2, MalformedPoint::Group);
    }
    // The ends.
    let bytes = file.join();
    for end in [0, 15] {
        assert_eq!(check(&bytes[..end]), Err(Flaw::Format));
    }
    for end in [16, file.head.len(), file.head.len() + 1, file.head.len() + 500, bytes.len() - 1] {
        assert_eq!(check(&bytes[..end]), Err(Flaw::CutOff), "{end}");
    }
    assert_eq!(check(&[&bytes[..], &[0]].concat()), Err(Flaw::TrailingBytes(1)));
    assert_eq!(check(&[b"x", &bytes[1..]].concat()), Err(Flaw::Format));
    let mut many = file.clone();
    many.records = vec![vec![]; 1021];
    assert_eq!(check(&many.join()), Err(Flaw::Full(1020)));
}

/// No bit of a file can be altered.
pub fn refuse_altered_bits(bytes: &[u8], check: impl Fn(&[u8]) -> Result<(), Flaw>) {
    let seed = std::env::var("SEED").map_or_else(|_| rand::random(), |seed| seed.parse().unwrap());
    println!("SEED={seed}");
    let mut random = StdRng::seed_from_u64(seed);
    for _ in 0..60 {
        let (at, bit) = (random.gen_range(0..bytes.len()), random.gen_range(0..8));
        let mut altered = bytes.to_vec();
        altered[at] ^= 1 << bit;
        assert!(check(&altered).is_err(), "bit {bit} of byte {at}");
    }
}

/// Adds a point to the second of some, and subtracts it from the third: no sum over both changes.
pub fn shift<P: Point>(points: &mut [P]) {
    let by = P::Curve::random(OsRng);
    points[1] = (by + points[1]).to_affine();
    points[2] = (-by + points[2]).to_affine();
}

/// Bytes of a file with a point in the place of another, counted from the points' start.
pub fn with_point(file: &File, offset: usize, point: &[u8]) -> Vec<u8> {
    let mut file = file.clone();
    file.points[offset..offset + point.len()].copy_from_slice(point);
    file.join()
}
