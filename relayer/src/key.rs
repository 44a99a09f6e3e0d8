//! The gas key: a Web3 keystore, or hexadecimal digits in a file that only its owner can read.

use std::path::{Path, PathBuf};

use fastpay_ethereum::PrivateKeySigner;
use fastpay_program::keystore::{self, KeystoreError, PassphraseSource};
use zeroize::Zeroizing;

/// The environment variable with the passphrase.
const PASSPHRASE_VARIABLE: &str = "FASTPAY_RELAYER_PASSPHRASE";

fn source(passphrase_file: Option<&Path>) -> PassphraseSource {
    PassphraseSource { file: passphrase_file.map(PathBuf::from), variable: PASSPHRASE_VARIABLE }
}

/// Reads the gas key. A passphrase, if one is needed, comes from `passphrase_file`, the environment or
/// a prompt, in this order.
///
/// # Errors
/// See [`KeystoreError`].
pub fn read_key(path: &Path, passphrase_file: Option<&Path>) -> Result<PrivateKeySigner, KeystoreError> {
    let secret = keystore::read_secret(path, &source(passphrase_file))?;
    PrivateKeySigner::from_slice(secret.as_slice())
        .map_err(|_| KeystoreError::Malformed { path: path.to_owned(), reason: "it contains no secp256k1 key".into() })
}

/// Makes a new gas key in a new file, encrypted unless `unencrypted`.
///
/// # Errors
/// If the file exists or cannot be written, or there is no passphrase.
pub fn create_key(
    path: &Path,
    passphrase_file: Option<&Path>,
    unencrypted: bool,
) -> Result<PrivateKeySigner, KeystoreError> {
    let key = PrivateKeySigner::random();
    let passphrase = if unencrypted { None } else { Some(source(passphrase_file).get(path, true)?) };
    let secret = Zeroizing::new(key.to_bytes().0);
    keystore::write_secret(path, &secret, passphrase.as_ref().map(|passphrase| passphrase.as_str()))?;
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_key_is_read_again_and_a_zero_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gas.key");
        let made = create_key(&path, None, true).unwrap();
        assert_eq!(read_key(&path, None).unwrap().address(), made.address());
        std::fs::write(&path, "0".repeat(64)).unwrap();
        assert!(matches!(read_key(&path, None), Err(KeystoreError::Malformed { .. })));
    }
}
