//! The authority's two secret keys, in two files. Around a rotation of the committee it has two such pairs.

use std::path::{Path, PathBuf};

use fastpay_core::AuthorityKeys;
use fastpay_ethereum::keystore::{self, KeystoreError, PassphraseSource};
use rand::RngExt;
use zeroize::Zeroizing;

/// The environment variable that a passphrase may come from.
const PASSPHRASE_VARIABLE: &str = "FASTPAY_PASSPHRASE";

/// Where the two keys of an authority stand.
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

/// Where the passphrase of an authority's keys comes from: this file, else `FASTPAY_PASSPHRASE`, else the
/// terminal.
#[must_use]
pub fn passphrase_source(file: Option<PathBuf>) -> PassphraseSource {
    PassphraseSource { file, variable: PASSPHRASE_VARIABLE }
}

/// Makes two new keys in `folder`, encrypted where there is a passphrase.
///
/// # Errors
/// Where a key exists already, or the system refuses.
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
        return Ok(keys);
    }
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
