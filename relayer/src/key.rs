//! The gas key: a Web3 keystore, or hexadecimal digits in a file that only its owner can read.

use std::io::{IsTerminal, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use eth_keystore::{EthKeystore, KdfparamsType, KeystoreError};
use fastpay_ethereum::PrivateKeySigner;
use zeroize::Zeroizing;

/// The environment variable with the passphrase.
const PASSPHRASE_VARIABLE: &str = "FASTPAY_RELAYER_PASSPHRASE";
/// Costs of a keystore's key derivation that are not refused: a file from outside must not fill the memory.
const SCRYPT_BYTES_MAX: u64 = 1 << 30;
const PBKDF2_ROUNDS_MAX: u32 = 10_000_000;

/// Why there is no gas key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file is missing or cannot be read or written.
    #[error("cannot use the key file {path}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
    /// Others can read an unencrypted key.
    #[error("the key file {0} can be read by others; run `chmod 600` on it, and consider its key known")]
    Exposed(PathBuf),
    /// Neither a keystore nor a key.
    #[error("{path} is neither a keystore nor a key of 64 hexadecimal digits: {reason}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The passphrase does not open the keystore.
    #[error("wrong passphrase for the keystore {0}; try again")]
    WrongPassphrase(PathBuf),
    /// A keystore, and nobody to ask.
    #[error(
        "the keystore {0} needs a passphrase: set {PASSPHRASE_VARIABLE}, give --passphrase-file, or run in a terminal"
    )]
    NoPassphrase(PathBuf),
}

/// Reads the gas key. A passphrase, where one is needed, comes from `passphrase_file`, the environment or
/// a prompt, in this order.
///
/// # Errors
/// See [`KeyError`].
pub fn read_key(path: &Path, passphrase_file: Option<&Path>) -> Result<PrivateKeySigner, KeyError> {
    let io = |error| KeyError::Io { path: path.to_owned(), error };
    let malformed = |reason: String| KeyError::Malformed { path: path.to_owned(), reason };
    let text = Zeroizing::new(std::fs::read_to_string(path).map_err(io)?);
    if !text.trim_start().starts_with('{') {
        if std::fs::metadata(path).map_err(io)?.permissions().mode() & 0o077 != 0 {
            return Err(KeyError::Exposed(path.to_owned()));
        }
        return text.trim().parse().map_err(|_| malformed("it has other content".into()));
    }
    let keystore: EthKeystore = serde_json::from_str(&text).map_err(|error| malformed(error.to_string()))?;
    check_parameters(&keystore).map_err(|reason| malformed(reason.into()))?;
    let passphrase =
        passphrase(path, passphrase_file, false)?.ok_or_else(|| KeyError::NoPassphrase(path.to_owned()))?;
    let secret = eth_keystore::decrypt_key(path, &*passphrase).map(Zeroizing::new).map_err(|error| match error {
        KeystoreError::MacMismatch => KeyError::WrongPassphrase(path.to_owned()),
        error => malformed(error.to_string()),
    })?;
    PrivateKeySigner::from_slice(&secret).map_err(|_| malformed("it holds no secp256k1 key".into()))
}

/// Makes a new gas key in a new file, encrypted unless `unencrypted`.
///
/// # Errors
/// Where the file exists or cannot be written, or there is no passphrase.
pub fn create_key(
    path: &Path,
    passphrase_file: Option<&Path>,
    unencrypted: bool,
) -> Result<PrivateKeySigner, KeyError> {
    let io = |error| KeyError::Io { path: path.to_owned(), error };
    let key = PrivateKeySigner::random();
    let secret = Zeroizing::new(key.to_bytes().0);
    let content = if unencrypted {
        Zeroizing::new(format!("{}\n", alloy::hex::encode(*secret)))
    } else {
        let passphrase =
            passphrase(path, passphrase_file, true)?.ok_or_else(|| KeyError::NoPassphrase(path.to_owned()))?;
        Zeroizing::new(encrypt(path, &secret, &passphrase)?)
    };
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(io)?;
    file.write_all(content.as_bytes()).and_then(|()| file.sync_all()).map_err(io)?;
    Ok(key)
}

fn encrypt(path: &Path, secret: &[u8; 32], passphrase: &str) -> Result<String, KeyError> {
    let io = |error| KeyError::Io { path: path.to_owned(), error };
    // The library writes a file of its own; what it writes is ciphertext.
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = format!(".new-key-{}", std::process::id());
    let mut rng = rand_keystore::rngs::OsRng;
    let written = eth_keystore::encrypt_key(folder, &mut rng, secret, passphrase, Some(&name));
    let content = std::fs::read_to_string(folder.join(&name)).map_err(io);
    let removed = std::fs::remove_file(folder.join(&name));
    written.map_err(|error| KeyError::Malformed { path: path.to_owned(), reason: error.to_string() })?;
    removed.map_err(io)?;
    content
}

fn passphrase(path: &Path, file: Option<&Path>, new: bool) -> Result<Option<Zeroizing<String>>, KeyError> {
    if let Some(file) = file {
        let io = |error| KeyError::Io { path: file.to_owned(), error };
        let text = Zeroizing::new(std::fs::read_to_string(file).map_err(io)?);
        return Ok(Some(Zeroizing::new(text.lines().next().unwrap_or_default().to_owned())));
    }
    if let Ok(passphrase) = std::env::var(PASSPHRASE_VARIABLE) {
        return Ok(Some(Zeroizing::new(passphrase)));
    }
    if !std::io::stdin().is_terminal() {
        return Ok(None);
    }
    let io = |error| KeyError::Io { path: path.to_owned(), error };
    let what = if new { "New passphrase" } else { "Passphrase" };
    let passphrase = rpassword::prompt_password(format!("{what} for {}: ", path.display())).map_err(io)?;
    Ok(Some(Zeroizing::new(passphrase)))
}

/// The library slices by these lengths and allocates by these costs, so they are bounded first.
fn check_parameters(keystore: &EthKeystore) -> Result<(), &'static str> {
    let crypto = &keystore.crypto;
    if keystore.version != 3 || crypto.cipher != "aes-128-ctr" {
        return Err("only version 3 with aes-128-ctr is known");
    }
    if crypto.cipherparams.iv.len() != 16 || crypto.mac.len() != 32 || crypto.ciphertext.len() != 32 {
        return Err("one of its fields has a wrong length");
    }
    let (dklen, bounded) = match &crypto.kdfparams {
        KdfparamsType::Pbkdf2 { c, dklen, .. } => (*dklen, (1..=PBKDF2_ROUNDS_MAX).contains(c)),
        KdfparamsType::Scrypt { dklen, n, p, r, .. } => {
            let bytes = u64::from(*n).saturating_mul(u64::from(*r)).saturating_mul(128);
            (*dklen, n.is_power_of_two() && *n > 1 && *r > 0 && (1..=16).contains(p) && bytes <= SCRYPT_BYTES_MAX)
        }
    };
    if dklen == 32 && bounded { Ok(()) } else { Err("its key derivation is out of bounds") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_key_is_read_again_in_both_forms() {
        let folder = tempfile::tempdir().unwrap();
        let passphrase = folder.path().join("passphrase");
        std::fs::write(&passphrase, "correct horse\n").unwrap();
        for (name, unencrypted) in [("plain", true), ("encrypted", false)] {
            let path = folder.path().join(name);
            let made = create_key(&path, Some(&passphrase), unencrypted).unwrap();
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
            assert_eq!(read_key(&path, Some(&passphrase)).unwrap().address(), made.address());
            assert!(matches!(create_key(&path, Some(&passphrase), unencrypted), Err(KeyError::Io { .. })));
        }
        std::fs::write(&passphrase, "wrong").unwrap();
        let encrypted = folder.path().join("encrypted");
        let error = read_key(&encrypted, Some(&passphrase)).unwrap_err();
        assert!(matches!(error, KeyError::WrongPassphrase(_)), "{error}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3, "nothing else is left behind");
    }

    #[test]
    fn bad_key_files_get_a_clear_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        assert!(matches!(read_key(&path, None), Err(KeyError::Io { .. })));
        std::fs::write(&path, "0".repeat(63)).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
        assert!(matches!(read_key(&path, None), Err(KeyError::Exposed(_))));
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        assert!(matches!(read_key(&path, None), Err(KeyError::Malformed { .. })));
        std::fs::write(&path, "{}").unwrap();
        assert!(matches!(read_key(&path, None), Err(KeyError::Malformed { .. })));
    }
}
