//! The authority's two secret keys, in two files. Around a rotation of the committee, it has two such pairs.
//!
//! A file beside a new key pair shows that no data folder was made for the pair yet, so nobody can have voted with it.
//! The first `init` removes the file. A copy of the file is not valid, so a backup of the keys never looks unused.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use fastpay_core::AuthorityKeys;
use fastpay_program::files;
use fastpay_program::keystore::{self, KeystoreError, PassphraseSource};
use rand::RngExt;
use zeroize::Zeroizing;

/// The environment variable that may contain a passphrase.
const PASSPHRASE_VARIABLE: &str = "FASTPAY_PASSPHRASE";
/// The file beside a pair for which no data folder was made. It holds its own birth, which differs in every copy.
const UNUSED_FILE: &str = "unused";

/// The paths of an authority's two keys.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyFiles {
    /// The Ed25519 key.
    pub voting: PathBuf,
    /// The secp256k1 key.
    pub redemption: PathBuf,
}

impl KeyFiles {
    /// The files that [`generate`] makes in `folder`.
    #[must_use]
    pub fn in_folder(folder: &Path) -> Self {
        Self { voting: folder.join("voting.key"), redemption: folder.join("redemption.key") }
    }
}

/// The source of the passphrase of an authority's keys: this file, else `FASTPAY_PASSPHRASE`, else the terminal.
#[must_use]
pub fn passphrase_source(file: Option<PathBuf>) -> PassphraseSource {
    PassphraseSource { file, variable: PASSPHRASE_VARIABLE }
}

/// Makes two new keys in `folder`, encrypted if a passphrase is given.
///
/// # Errors
/// If a key exists already, or the system refuses.
pub fn generate(folder: &Path, passphrase: Option<&str>) -> Result<AuthorityKeys, KeystoreError> {
    let files = KeyFiles::in_folder(folder);
    std::fs::create_dir_all(folder).map_err(|error| KeystoreError::Io { path: folder.into(), error })?;
    if files.redemption.exists() {
        return Err(KeystoreError::Exists(files.redemption));
    }
    loop {
        let (voting, redemption) = (Zeroizing::new(rand::rng().random()), Zeroizing::new(rand::rng().random()));
        // One number in 2^128 is not a secp256k1 key.
        let Ok(keys) = AuthorityKeys::from_secrets(*voting, *redemption) else { continue };
        keystore::write_secret(&files.voting, &voting, passphrase)?;
        keystore::write_secret(&files.redemption, &redemption, passphrase)?;
        let unused = folder.join(UNUSED_FILE);
        note_unused(&unused).map_err(|error| KeystoreError::Io { path: unused, error })?;
        return Ok(keys);
    }
}

fn note_unused(path: &Path) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(files::birth(path)?.as_bytes())?;
    file.sync_all()
}

/// Whether these keys were made in this place and had no data folder before. Returns true at most once for a pair: if
/// the marker file cannot be removed durably, it returns false.
pub(crate) fn take_first_use(files: &KeyFiles) -> bool {
    let Some(folder) = files.voting.parent() else { return false };
    let path = folder.join(UNUSED_FILE);
    let Ok(born) = fs::read_to_string(&path) else { return false };
    // If the file system stores no creation times, a copy may look like the original.
    let is_original = fs::metadata(&path).is_ok_and(|metadata| metadata.created().is_ok())
        && files::birth(&path).is_ok_and(|birth| birth == born);
    fs::remove_file(&path).and_then(|()| files::sync_folder(folder)).is_ok() && is_original
}

/// Reads an authority's keys.
///
/// # Errors
/// See [`KeystoreError`].
pub fn read(files: &KeyFiles, passphrase: &PassphraseSource) -> Result<AuthorityKeys, KeystoreError> {
    let voting = keystore::read_secret(&files.voting, passphrase)?;
    let redemption = keystore::read_secret(&files.redemption, passphrase)?;
    AuthorityKeys::from_secrets(*voting, *redemption)
        .map_err(|error| KeystoreError::Malformed { path: files.redemption.clone(), reason: error.to_string() })
}

/// Reads all pairs that an authority has, in the order of the configuration.
///
/// # Errors
/// See [`KeystoreError`].
pub fn read_all(files: &[KeyFiles], passphrase: &PassphraseSource) -> Result<Vec<AuthorityKeys>, KeystoreError> {
    files.iter().map(|pair| read(pair, passphrase)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_keys_are_unused_once_and_a_copy_of_them_never_is() {
        let parent = tempfile::tempdir().unwrap();
        let (made, backup) = (parent.path().join("made"), parent.path().join("backup"));
        generate(&made, None).unwrap();
        fs::create_dir(&backup).unwrap();
        for file in fs::read_dir(&made).unwrap() {
            let file = file.unwrap();
            fs::copy(file.path(), backup.join(file.file_name())).unwrap();
        }
        let [made, backup] = [made, backup].map(|folder| KeyFiles::in_folder(&folder));
        assert!(!take_first_use(&backup));
        assert!(take_first_use(&made));
        assert!(!take_first_use(&made), "a folder was made for them");
    }

    #[test]
    fn keys_come_back_as_they_were_made_and_are_made_once() {
        let folder = tempfile::tempdir().unwrap();
        let passphrase = folder.path().join("passphrase");
        std::fs::write(&passphrase, "correct horse").unwrap();
        let source = passphrase_source(Some(passphrase));
        for (name, passphrase) in [("plain", None), ("encrypted", Some("correct horse"))] {
            let keys_folder = folder.path().join(name);
            let keys = generate(&keys_folder, passphrase).unwrap();
            let files = KeyFiles::in_folder(&keys_folder);
            assert_eq!(read(&files, &source).unwrap().public(), keys.public());
            assert!(matches!(generate(&keys_folder, passphrase), Err(KeystoreError::Exists(_))));
        }
    }
}
