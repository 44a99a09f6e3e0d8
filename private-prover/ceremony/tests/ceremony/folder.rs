//! What a folder refuses, and what it leaves as it was.

use std::fs::{self, File};
use std::path::Path;

use fastpay_ceremony::{CeremonyError, Constraints, Flaw, Folder, POWERS_SIZE, Part, Phase};
use fastpay_private_prover::{Shape, Statement};

use super::silent;

/// Powers for four constraints.
const SIZE: u8 = 2;

fn four() -> Shape {
    Shape::of_committee(4).unwrap()
}

fn powers(path: &Path) -> Vec<u8> {
    fs::read(path.join("powers")).unwrap()
}

#[test]
fn a_contributor_finds_its_hash_in_the_transcript() {
    let path = tempfile::tempdir().unwrap();
    let folder = Folder::new(path.path().join("new/folder"), SIZE);
    folder.begin(Phase::Powers, &silent).unwrap();
    let mut expected = vec![];
    for name in ["alice", "bob", "carol"] {
        expected.push((name.to_owned(), folder.contribute(Phase::Powers, name, b"typed", &silent).unwrap()));
    }
    let verified = folder.verify(&silent).unwrap();
    let found: Vec<_> = verified[0].transcript.contributions().map(|(name, hash)| (name.to_owned(), hash)).collect();
    assert_eq!(found, expected);
    assert_eq!(verified.len(), 1);
}

#[test]
fn a_phase_begins_once() {
    let path = tempfile::tempdir().unwrap();
    let folder = Folder::new(path.path(), SIZE);
    assert!(matches!(folder.verify(&silent), Err(CeremonyError::Missing(_))));
    folder.begin(Phase::Powers, &silent).unwrap();
    folder.contribute(Phase::Powers, "alice", b"", &silent).unwrap();
    let before = powers(path.path());
    let again = folder.begin(Phase::Powers, &silent);
    assert!(matches!(again, Err(CeremonyError::Exists(file)) if file == path.path().join("powers")));
    assert_eq!(powers(path.path()), before);
}

#[test]
fn what_has_not_begun_is_missing() {
    let path = tempfile::tempdir().unwrap();
    let folder = Folder::new(path.path(), SIZE);
    let missing = |result: Result<(), CeremonyError>, name: &str| {
        assert!(matches!(result, Err(CeremonyError::Missing(file)) if file == path.path().join(name)), "{name}");
    };
    let contribute = |phase| folder.contribute(phase, "alice", b"", &silent).map(drop);
    missing(contribute(Phase::Powers), "powers");
    missing(folder.begin(Phase::Keys(four()), &silent), "powers");
    folder.begin(Phase::Powers, &silent).unwrap();
    missing(contribute(Phase::Keys(four())), "keys-4");
    missing(folder.finish(four(), &silent).map(drop), "keys-4");
    let nowhere = path.path().join("nowhere");
    let elsewhere = Folder::new(&nowhere, SIZE).contribute(Phase::Powers, "alice", b"", &silent);
    assert!(matches!(elsewhere, Err(CeremonyError::Missing(folder)) if folder == nowhere));
}

#[test]
fn one_command_at_a_time_changes_a_folder() {
    let path = tempfile::tempdir().unwrap();
    let folder = Folder::new(path.path(), SIZE);
    folder.begin(Phase::Powers, &silent).unwrap();
    let lock = File::open(path.path()).unwrap();
    lock.lock().unwrap();
    let busy = |result: Result<(), CeremonyError>| assert!(matches!(result, Err(CeremonyError::Busy(_))));
    busy(folder.begin(Phase::Powers, &silent));
    busy(folder.contribute(Phase::Powers, "alice", b"", &silent).map(drop));
    busy(folder.finish(four(), &silent).map(drop));
    assert!(folder.verify(&silent).is_ok(), "files are replaced at once, so they can be read at any time");
    drop(lock);
    folder.contribute(Phase::Powers, "alice", b"", &silent).unwrap();
}

#[test]
fn an_interrupted_command_is_given_again() {
    let path = tempfile::tempdir().unwrap();
    let folder = Folder::new(path.path(), SIZE);
    folder.begin(Phase::Powers, &silent).unwrap();
    let before = powers(path.path());
    // Killed while it wrote.
    fs::write(path.path().join(".powers.new"), &before[..before.len() / 2]).unwrap();
    folder.verify(&silent).unwrap();
    folder.contribute(Phase::Powers, "alice", b"", &silent).unwrap();
    let before = powers(path.path());
    // The disk refuses the write.
    fs::create_dir(path.path().join(".powers.new")).unwrap();
    let refused = folder.contribute(Phase::Powers, "bob", b"", &silent);
    assert!(matches!(refused, Err(CeremonyError::Io { .. })));
    assert_eq!(powers(path.path()), before);
    fs::remove_dir(path.path().join(".powers.new")).unwrap();
    folder.contribute(Phase::Powers, "bob", b"", &silent).unwrap();
    assert_eq!(folder.verify(&silent).unwrap()[0].transcript.contributions().count(), 2);
}

#[test]
fn powers_are_closed_once_keys_were_made_of_them() {
    let path = tempfile::tempdir().unwrap();
    let folder = Folder::new(path.path(), SIZE);
    folder.begin(Phase::Powers, &silent).unwrap();
    fs::write(path.path().join("keys-7"), b"begun").unwrap();
    let before = powers(path.path());
    let closed = folder.contribute(Phase::Powers, "alice", b"", &silent);
    assert!(matches!(closed, Err(CeremonyError::Closed(file)) if file == path.path().join("keys-7")));
    assert_eq!(powers(path.path()), before);
}

#[test]
fn a_key_of_no_ceremony_is_told() {
    let path = tempfile::tempdir().unwrap();
    let folder = Folder::new(path.path(), SIZE);
    folder.begin(Phase::Powers, &silent).unwrap();
    let key = path.path().join("verifying-7.key");
    fs::write(&key, b"of another ceremony").unwrap();
    let results = [folder.verify(&silent).map(drop), folder.contribute(Phase::Powers, "alice", b"", &silent).map(drop)];
    for result in results {
        assert!(matches!(result, Err(CeremonyError::OtherKey(file)) if file == key));
    }
}

#[test]
fn a_flaw_is_told_with_its_file_and_changes_nothing() {
    let path = tempfile::tempdir().unwrap();
    let folder = Folder::new(path.path(), SIZE);
    let refuse = |result: Result<(), CeremonyError>, expected: Flaw| {
        let Err(CeremonyError::Flaw { path: file, flaw }) = result else { panic!("not refused") };
        assert_eq!((file, flaw), (path.path().join("powers"), expected));
    };
    let decline = |result: Result<(), CeremonyError>, expected: Flaw| {
        assert!(matches!(result, Err(CeremonyError::Refused(flaw)) if flaw == expected));
    };
    folder.begin(Phase::Powers, &silent).unwrap();
    decline(folder.begin(Phase::Keys(four()), &silent), Flaw::Nobody);
    folder.contribute(Phase::Powers, "alice", b"", &silent).unwrap();
    let before = powers(path.path());
    let repeated = folder.contribute(Phase::Powers, "alice", b"", &silent).unwrap_err().to_string();
    assert_eq!(repeated, "contribution 2 (alice): alice contributed before, as contribution 1");
    decline(folder.contribute(Phase::Powers, "two words", b"", &silent).map(drop), Flaw::Name(2));
    assert!(matches!(
        folder.begin(Phase::Keys(four()), &silent),
        Err(CeremonyError::Refused(Flaw::TooLarge { powers: 4, .. }))
    ));
    assert_eq!(powers(path.path()), before);
    let cut = &before[..before.len() - 1];
    fs::write(path.path().join("powers"), cut).unwrap();
    refuse(folder.verify(&silent).map(drop), Flaw::CutOff);
    refuse(folder.contribute(Phase::Powers, "bob", b"", &silent).map(drop), Flaw::CutOff);
    refuse(folder.begin(Phase::Keys(four()), &silent), Flaw::CutOff);
    refuse(folder.finish(four(), &silent).map(drop), Flaw::CutOff);
    assert_eq!(powers(path.path()), cut);
}

/// Whoever passes the folder on altered a point into another one: no command goes on with it.
#[test]
fn no_command_goes_on_with_false_powers() {
    let path = tempfile::tempdir().unwrap();
    let folder = Folder::new(path.path(), SIZE);
    folder.begin(Phase::Powers, &silent).unwrap();
    folder.contribute(Phase::Powers, "alice", b"", &silent).unwrap();
    let mut bytes = powers(path.path());
    // The last α·τ^i in the place of the first β·τ^i.
    let beta = bytes.len() - 192 - 4 * 96;
    bytes.copy_within(beta - 96..beta, beta);
    fs::write(path.path().join("powers"), &bytes).unwrap();
    let results = [
        folder.verify(&silent).map(drop),
        folder.contribute(Phase::Powers, "bob", b"", &silent).map(drop),
        folder.begin(Phase::Keys(four()), &silent),
        folder.finish(four(), &silent).map(drop),
    ];
    for result in results {
        let expected = Flaw::Value { part: Part::BetaG1, index: 0 };
        assert!(matches!(result, Err(CeremonyError::Flaw { flaw, .. }) if flaw == expected));
    }
    assert_eq!(powers(path.path()), bytes);
}

#[test]
fn powers_suffice_for_27_members() {
    let fits = |members| {
        let circuit = Statement::blank(Shape::of_committee(members).unwrap());
        Constraints::of(circuit).unwrap().count() <= 1 << POWERS_SIZE
    };
    assert!(fits(27));
    assert!(!fits(28));
}
