//! Secret keys on disk: 32 bytes for any use, as Web3 secret storage under a passphrase, or as hexadecimal digits in a
//! file that only its owner can read.
//!
//! Invariants: a key file is never overwritten; a secret is never written where others can read it; a file from outside
//! can make the key derivation neither panic nor exhaust the memory.

use std::fs;
use std::io::IsTerminal;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use eth_keystore::{EthKeystore, KdfparamsType, KeystoreError as LibraryError};
use zeroize::Zeroizing;

use crate::files;

/// The maximum length of a key file, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 16;
/// The maximum memory that a file may make scrypt use: 128 · n · r bytes.
const SCRYPT_BYTES_MAX: u64 = 1 << 30;
const SCRYPT_PARALLELISM_MAX: u32 = 16;
const PBKDF2_ROUNDS_MAX: u32 = 10_000_000;

/// A secret of 32 bytes, wiped when it is dropped.
pub type Secret = Zeroizing<[u8; 32]>;

/// Why a key file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeystoreError {
    /// The file is missing or cannot be read or written.
    #[error("cannot use the key file {path}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        error: std::io::Error,
    },
    /// Others can read an unencrypted key.
    #[error("the key file {0} is readable by others; run `chmod 600` on it, and consider its key compromised")]
    Exposed(PathBuf),
    /// The file is neither a keystore nor a key.
    #[error("{path} is neither a keystore (Web3 secret storage) nor a key of 64 hexadecimal digits: {reason}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The defect.
        reason: String,
    },
    /// The passphrase does not open the keystore.
    #[error("wrong passphrase for the keystore {0}; try again")]
    WrongPassphrase(PathBuf),
    /// The two passphrases that were typed differ.
    #[error("the two passphrases differ; try again")]
    PassphrasesDiffer,
    /// The keystore is encrypted, but there is neither a passphrase nor a terminal to ask for one.
    #[error("the keystore {path} needs a passphrase: set {variable}, give --passphrase-file, or run in a terminal")]
    NoPassphrase {
        /// The keystore.
        path: PathBuf,
        /// The environment variable for the passphrase.
        variable: &'static str,
    },
    /// The passphrase is empty.
    #[error("the passphrase for the new key {0} is empty; choose one")]
    EmptyPassphrase(PathBuf),
    /// The passphrase file cannot be read.
    #[error("cannot read the passphrase file {path}: {error}")]
    PassphraseFile {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        error: std::io::Error,
    },
    /// The operation would overwrite a key.
    #[error("{0} already exists; keys are never overwritten")]
    Exists(PathBuf),
}

impl KeystoreError {
    /// Whether another passphrase, or a source of one, resolves the error.
    #[must_use]
    pub fn is_of_passphrase(&self) -> bool {
        match self {
            Self::WrongPassphrase(_)
            | Self::PassphrasesDiffer
            | Self::NoPassphrase { .. }
            | Self::EmptyPassphrase(_)
            | Self::PassphraseFile { .. } => true,
            Self::Io { .. } | Self::Exposed(_) | Self::Malformed { .. } | Self::Exists(_) => false,
        }
    }
}

fn io(path: &Path) -> impl FnOnce(std::io::Error) -> KeystoreError {
    let path = path.to_owned();
    move |error| KeystoreError::Io { path, error }
}

fn malformed(path: &Path) -> impl Fn(&str) -> KeystoreError {
    let path = path.to_owned();
    move |reason| KeystoreError::Malformed { path: path.clone(), reason: reason.to_owned() }
}

/// The source of a passphrase: the first line of a file, else the environment, else the terminal.
#[derive(Clone, Debug)]
pub struct PassphraseSource {
    /// The file, if there is one.
    pub file: Option<PathBuf>,
    /// The environment variable.
    pub variable: &'static str,
}

impl PassphraseSource {
    /// Asks for the passphrase of `path`, twice if it is `new`.
    ///
    /// # Errors
    /// If the file cannot be read, there is no source of a passphrase, or a new passphrase is empty.
    pub fn get(&self, path: &Path, new: bool) -> Result<Zeroizing<String>, KeystoreError> {
        let passphrase = self.find(path, new)?;
        if new && passphrase.is_empty() {
            return Err(KeystoreError::EmptyPassphrase(path.to_owned()));
        }
        Ok(passphrase)
    }

    fn find(&self, path: &Path, new: bool) -> Result<Zeroizing<String>, KeystoreError> {
        if let Some(file) = &self.file {
            let unreadable = |error| KeystoreError::PassphraseFile { path: file.clone(), error };
            let text = Zeroizing::new(fs::read_to_string(file).map_err(unreadable)?);
            return Ok(Zeroizing::new(text.lines().next().unwrap_or_default().to_owned()));
        }
        if let Ok(passphrase) = std::env::var(self.variable) {
            return Ok(Zeroizing::new(passphrase));
        }
        if !std::io::stdin().is_terminal() {
            return Err(KeystoreError::NoPassphrase { path: path.to_owned(), variable: self.variable });
        }
        let ask = |prompt: String| rpassword::prompt_password(prompt).map(Zeroizing::new).map_err(io(path));
        let what = if new { "New passphrase" } else { "Passphrase" };
        let passphrase = ask(format!("{what} for {}: ", path.display()))?;
        if new && ask("Once more: ".into())? != passphrase {
            return Err(KeystoreError::PassphrasesDiffer);
        }
        Ok(passphrase)
    }
}

/// Reads a secret in either form. Asks for a passphrase only if the file needs one.
///
/// # Errors
/// See [`KeystoreError`].
pub fn read_secret(path: &Path, passphrase: &PassphraseSource) -> Result<Secret, KeystoreError> {
    let text = read_text(path)?;
    if text.trim_start().starts_with('{') {
        check_parameters(path, &text)?;
        return decrypt(path, &passphrase.get(path, false)?);
    }
    if fs::metadata(path).map_err(io(path))?.permissions().mode() & 0o077 != 0 {
        return Err(KeystoreError::Exposed(path.to_owned()));
    }
    let mut secret = Zeroizing::new([0; 32]);
    let digits = text.trim();
    let digits = digits.strip_prefix("0x").unwrap_or(digits);
    hex::decode_to_slice(digits, secret.as_mut_slice()).map_err(|_| malformed(path)("it has other content"))?;
    Ok(secret)
}

/// Opens Web3 secret storage.
///
/// # Errors
/// [`KeystoreError::WrongPassphrase`], or the file is no Web3 secret storage of 32 bytes.
pub fn decrypt(path: &Path, passphrase: &str) -> Result<Secret, KeystoreError> {
    check_parameters(path, &read_text(path)?)?;
    let secret = eth_keystore::decrypt_key(path, passphrase).map(Zeroizing::new).map_err(|error| match error {
        LibraryError::MacMismatch => KeystoreError::WrongPassphrase(path.to_owned()),
        error => malformed(path)(&error.to_string()),
    })?;
    let secret: [u8; 32] = secret.as_slice().try_into().map_err(|_| malformed(path)("its secret is not 32 bytes"))?;
    Ok(Zeroizing::new(secret))
}

/// Writes a secret to a new file, as Web3 secret storage if there is a passphrase. The file is durable when this
/// returns.
///
/// # Errors
/// [`KeystoreError::Exists`], or an error of the file system.
pub fn write_secret(path: &Path, secret: &Secret, passphrase: Option<&str>) -> Result<(), KeystoreError> {
    let content = match passphrase {
        None => Zeroizing::new(format!("{}\n", hex::encode(**secret)).into_bytes()),
        Some(passphrase) => Zeroizing::new(encrypt(path, secret, passphrase)?),
    };
    let is_new = files::create(path, &content).map_err(io(path))?;
    if is_new { Ok(()) } else { Err(KeystoreError::Exists(path.to_owned())) }
}

/// Encodes a secret as Web3 secret storage, for a file in the folder of `path`.
///
/// # Errors
/// If the folder cannot be written to.
pub fn encrypt(path: &Path, secret: &[u8; 32], passphrase: &str) -> Result<Vec<u8>, KeystoreError> {
    // The library writes a file of its own, so it gets its own folder, which only ever contains ciphertext.
    let folder = folder_of(path).join(format!(".new-{}", hex::encode(rand_keystore::random::<[u8; 8]>())));
    fs::DirBuilder::new().mode(0o700).create(&folder).map_err(io(&folder))?;
    let mut rng = rand_keystore::rngs::OsRng;
    let written = eth_keystore::encrypt_key(&folder, &mut rng, secret, passphrase, Some("key"));
    let content = fs::read(folder.join("key"));
    fs::remove_dir_all(&folder).map_err(io(&folder))?;
    written.map_err(|error| malformed(path)(&error.to_string()))?;
    content.map_err(io(path))
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn read_text(path: &Path) -> Result<Zeroizing<String>, KeystoreError> {
    if fs::metadata(path).map_err(io(path))?.len() > FILE_BYTES_MAX {
        return Err(malformed(path)("it is too long"));
    }
    fs::read_to_string(path).map(Zeroizing::new).map_err(io(path))
}

/// Bounds the lengths at which the library slices and the costs by which it allocates, before it runs.
fn check_parameters(path: &Path, text: &str) -> Result<(), KeystoreError> {
    let wrong = malformed(path);
    let keystore: EthKeystore = serde_json::from_str(text).map_err(|error| wrong(&error.to_string()))?;
    let crypto = &keystore.crypto;
    if keystore.version != 3 || crypto.cipher != "aes-128-ctr" {
        return Err(wrong("only version 3 with aes-128-ctr is known"));
    }
    if crypto.cipherparams.iv.len() != 16 || crypto.mac.len() != 32 || crypto.ciphertext.len() != 32 {
        return Err(wrong("one of its fields has a wrong length"));
    }
    let (dklen, bounded) = match &crypto.kdfparams {
        KdfparamsType::Pbkdf2 { c, dklen, .. } => (*dklen, (1..=PBKDF2_ROUNDS_MAX).contains(c)),
        KdfparamsType::Scrypt { dklen, n, p, r, .. } => {
            let bytes = u64::from(*n).saturating_mul(u64::from(*r)).saturating_mul(128);
            let fits = n.is_power_of_two() && *n > 1 && *r > 0 && (1..=SCRYPT_PARALLELISM_MAX).contains(p);
            (*dklen, fits && bytes <= SCRYPT_BYTES_MAX)
        }
    };
    if dklen == 32 && bounded { Ok(()) } else { Err(wrong("its key derivation is out of bounds")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(folder: &Path, passphrase: &str) -> PassphraseSource {
        let file = folder.join("passphrase");
        fs::write(&file, format!("{passphrase}\nsecond line")).unwrap();
        PassphraseSource { file: Some(file), variable: "FASTPAY_TEST_UNSET" }
    }

    #[test]
    fn a_secret_comes_back_in_both_forms() {
        let folder = tempfile::tempdir().unwrap();
        let secret = Zeroizing::new([7; 32]);
        for (name, passphrase) in [("plain", None), ("encrypted", Some("correct horse"))] {
            let path = folder.path().join(name);
            write_secret(&path, &secret, passphrase).unwrap();
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
            assert_eq!(read_secret(&path, &source(folder.path(), "correct horse")).unwrap(), secret);
            assert!(matches!(write_secret(&path, &secret, passphrase), Err(KeystoreError::Exists(_))));
        }
        let plain = folder.path().join("plain");
        fs::write(&plain, format!("0x{}\n", "07".repeat(32))).unwrap();
        assert_eq!(read_secret(&plain, &source(folder.path(), "")).unwrap(), secret, "as other programs write it");
        let encrypted = folder.path().join("encrypted");
        let error = read_secret(&encrypted, &source(folder.path(), "wrong")).unwrap_err();
        assert!(matches!(error, KeystoreError::WrongPassphrase(_)), "{error}");
        let nobody = PassphraseSource { file: None, variable: "FASTPAY_TEST_UNSET" };
        let error = read_secret(&encrypted, &nobody).unwrap_err();
        assert!(matches!(error, KeystoreError::NoPassphrase { .. }), "{error}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3, "nothing else is left behind");
    }

    #[test]
    fn a_new_passphrase_is_not_empty_and_its_file_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let key = folder.path().join("key");
        let empty = source(folder.path(), "");
        assert!(matches!(empty.get(&key, true), Err(KeystoreError::EmptyPassphrase(_))));
        assert!(empty.get(&key, false).unwrap().is_empty(), "a key of another program may have such a one");
        assert_eq!(*source(folder.path(), "p").get(&key, true).unwrap(), "p");
        let missing = PassphraseSource { file: Some(folder.path().join("none")), variable: "FASTPAY_TEST_UNSET" };
        let error = missing.get(&key, true).unwrap_err();
        assert!(error.to_string().contains("cannot read the passphrase file"), "{error}");
    }

    #[test]
    fn bad_key_files_get_a_clear_error() {
        let folder = tempfile::tempdir().unwrap();
        let (path, source) = (folder.path().join("key"), source(folder.path(), "any"));
        assert!(matches!(read_secret(&path, &source), Err(KeystoreError::Io { .. })));
        fs::write(&path, "0".repeat(64)).unwrap();
        fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
        assert!(matches!(read_secret(&path, &source), Err(KeystoreError::Exposed(_))));
        fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        for wrong in ["", "12", "{}", "zz", &"0".repeat(63), &"0".repeat(1 << 17)] {
            fs::write(&path, wrong).unwrap();
            assert!(matches!(read_secret(&path, &source), Err(KeystoreError::Malformed { .. })), "{wrong:.70}");
        }
    }

    #[test]
    fn a_keystore_cannot_ask_for_too_much() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        write_secret(&path, &Zeroizing::new([7; 32]), Some("p")).unwrap();
        let good: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        let check = |change: fn(&mut serde_json::Value)| {
            let mut changed = good.clone();
            change(&mut changed);
            fs::write(&path, changed.to_string()).unwrap();
            assert!(matches!(decrypt(&path, "p"), Err(KeystoreError::Malformed { .. })), "{changed}");
        };
        check(|k| k["crypto"]["kdfparams"]["n"] = (1_u32 << 31).into());
        check(|k| k["crypto"]["kdfparams"]["n"] = 1000.into());
        check(|k| k["crypto"]["kdfparams"]["r"] = 0.into());
        check(|k| k["crypto"]["kdfparams"]["p"] = 1000.into());
        check(|k| k["crypto"]["kdfparams"]["dklen"] = 8.into());
        check(|k| k["crypto"]["cipherparams"]["iv"] = "00".into());
        check(|k| k["crypto"]["mac"] = "00".into());
        check(|k| k["crypto"]["ciphertext"] = "00".into());
        check(|k| k["version"] = 1.into());
    }
}
