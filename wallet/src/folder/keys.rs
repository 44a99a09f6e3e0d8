//! The wallet's secret keys, of both kinds of account: one file of Web3 secret storage for each, encrypted under a
//! passphrase. A key's kind and account are stored beside the ciphertext, so that listing needs no passphrase; on
//! unlocking, the account is checked against the key.

use std::path::{Path, PathBuf};

use fastpay_core::{AccountId, AccountKey};
use fastpay_program::files;
use fastpay_program::keystore::{self, KeystoreError, Secret};
use rand::RngExt;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use zeroize::Zeroizing;

/// The maximum length of a name, which becomes a file name.
const NAME_LENGTH_MAX: usize = 64;
/// The file beside the keys that names the default key. No key's file has this name.
const DEFAULT: &str = "default";
/// The member of the keystore file that holds this wallet's own data.
const METADATA: &str = "fastpay";

/// The kind of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KeyKind {
    /// Owns an Ed25519 account.
    Ed25519,
    /// Owns an Ethereum account, and can send transactions.
    Ethereum,
}

/// A key in the wallet, without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KeyEntry {
    /// The name that the owner gave the key.
    pub name: String,
    /// Its kind.
    pub kind: KeyKind,
    /// The account that it owns.
    pub account: AccountId,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Metadata {
    kind: KeyKind,
    account: AccountId,
}

/// Why a key cannot be used or created.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The name cannot be a file name.
    #[error("{0:?} is not a name for a key or a contact: use 1 to 64 of the letters a-z, digits, '-' and '_'")]
    Name(String),
    /// The name is taken.
    #[error("a key named {0} already exists; choose another name")]
    Exists(String),
    /// The name is that of a contact.
    #[error("{0} is the name of a contact; choose another name, or remove it with `fastpay contacts remove {0}`")]
    IsContact(String),
    /// No such key.
    #[error("there is no key named {0}; run `fastpay keys list`")]
    Unknown(String),
    /// The name is neither a key's nor a contact's.
    #[error("there is no key or contact named {0}; run `fastpay keys list` or `fastpay contacts list`")]
    UnknownName(String),
    /// The wallet has no key.
    #[error("this wallet has no {0}key yet; add one with `fastpay keys new` or `fastpay keys import`")]
    None(&'static str),
    /// The wallet has several keys, and none was selected.
    #[error(
        "this wallet has several keys ({names}); name one with {option}, or set a default with `fastpay keys use NAME`"
    )]
    Ambiguous {
        /// The names of the keys.
        names: String,
        /// The option that selects a key.
        option: &'static str,
    },
    /// The passphrase is wrong.
    #[error("wrong passphrase for key {0}; try again")]
    Passphrase(String),
    /// The file is not Web3 secret storage, or of an unknown kind.
    #[error("{path} is not a key file that this wallet can read: {reason}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The defect.
        reason: String,
    },
    /// The text is not 32 bytes of hexadecimal digits, or not a key.
    #[error("this is not a secret key; give 64 hexadecimal digits or a key file")]
    Secret,
    /// The key is of the wrong kind.
    #[error("key {0} is an Ed25519 key, which Ethereum does not support; give an Ethereum key")]
    NotEthereum(String),
    /// The file system failed.
    #[error("cannot use {path}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        error: std::io::Error,
    },
}

/// The folder of keys.
#[derive(Clone, Debug)]
pub struct Keys {
    folder: PathBuf,
}

impl Keys {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// All keys, by name.
    ///
    /// # Errors
    /// If the folder cannot be read, or a file is not a key.
    pub fn list(&self) -> Result<Vec<KeyEntry>, KeyError> {
        let names = files::names(&self.folder).map_err(|error| io(&self.folder, error))?;
        names.iter().filter_map(|name| name.strip_suffix(".json")).map(|name| self.entry(name)).collect()
    }

    /// One key.
    ///
    /// # Errors
    /// If there is no key of this name.
    pub fn entry(&self, name: &str) -> Result<KeyEntry, KeyError> {
        let path = self.path(name)?;
        let content = files::read(&path).map_err(|error| io(&path, error))?;
        let content = content.ok_or_else(|| KeyError::Unknown(name.into()))?;
        let malformed = |reason: String| KeyError::Malformed { path: path.clone(), reason };
        let mut file: Map<String, Value> =
            serde_json::from_slice(&content).map_err(|error| malformed(error.to_string()))?;
        let metadata = file.remove(METADATA).ok_or_else(|| malformed("it does not name its account".into()))?;
        let Metadata { kind, account } =
            serde_json::from_value(metadata).map_err(|error| malformed(error.to_string()))?;
        Ok(KeyEntry { name: name.into(), kind, account })
    }

    /// Whether there is a key of this name.
    ///
    /// # Errors
    /// If the name is not valid.
    pub fn has(&self, name: &str) -> Result<bool, KeyError> {
        Ok(self.path(name)?.exists())
    }

    /// The selected key: the named one; or else the default, or the only one, of this kind.
    ///
    /// # Errors
    /// If there is none, or more than one.
    pub fn choose(&self, name: Option<&str>, kind: Option<KeyKind>) -> Result<KeyEntry, KeyError> {
        if let Some(name) = name {
            let entry = self.entry(name)?;
            if kind == Some(KeyKind::Ethereum) && entry.kind != KeyKind::Ethereum {
                return Err(KeyError::NotEthereum(name.into()));
            }
            return Ok(entry);
        }
        let mut fitting = self.list()?;
        fitting.retain(|entry| kind.is_none_or(|kind| entry.kind == kind));
        if let Some(chosen) = self.default_name()?
            && let Some(entry) = fitting.iter().find(|entry| entry.name == chosen)
        {
            return Ok(entry.clone());
        }
        let names = fitting.iter().map(|entry| entry.name.as_str()).collect::<Vec<_>>().join(", ");
        match (fitting.pop(), fitting.is_empty()) {
            (Some(only), true) => Ok(only),
            (Some(_), false) => Err(KeyError::Ambiguous { names, option: "--from" }),
            (None, _) => Err(KeyError::None(if kind == Some(KeyKind::Ethereum) { "Ethereum " } else { "" })),
        }
    }

    /// The default key; `None` if the owner has not chosen one.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn default_name(&self) -> Result<Option<String>, KeyError> {
        let path = self.folder.join(DEFAULT);
        let content = files::read(&path).map_err(|error| io(&path, error))?;
        Ok(content.map(|content| String::from_utf8_lossy(&content).trim().to_owned()))
    }

    /// Makes a key the default.
    ///
    /// # Errors
    /// If there is no such key, or the file cannot be written.
    pub fn set_default(&self, name: &str) -> Result<KeyEntry, KeyError> {
        let entry = self.entry(name)?;
        let path = self.folder.join(DEFAULT);
        files::replace(&path, name.as_bytes()).map_err(|error| io(&path, error))?;
        Ok(entry)
    }

    /// Creates a new key.
    ///
    /// # Errors
    /// If the name is taken or not valid.
    pub fn create(&self, name: &str, kind: KeyKind, passphrase: &str) -> Result<KeyEntry, KeyError> {
        loop {
            let mut secret = Zeroizing::new([0_u8; 32]);
            rand::rng().fill(secret.as_mut_slice());
            // About one in 2^128 secrets is not a secp256k1 key.
            if account_key(kind, &secret).is_ok() {
                return self.import(name, kind, &secret, passphrase);
            }
        }
    }

    /// Stores a given secret.
    ///
    /// # Errors
    /// If it is not a key, or the name is taken or not valid.
    pub fn import(&self, name: &str, kind: KeyKind, secret: &[u8; 32], passphrase: &str) -> Result<KeyEntry, KeyError> {
        let path = self.path(name)?;
        if self.folder.with_file_name("contacts").join(name).exists() {
            return Err(KeyError::IsContact(name.into()));
        }
        files::create_folder(&self.folder).map_err(|error| io(&self.folder, error))?;
        let account = account_key(kind, secret)?.account();
        let content = encrypt(&path, secret, passphrase, &Metadata { kind, account })?;
        if !files::create(&path, &content).map_err(|error| io(&path, error))? {
            return Err(KeyError::Exists(name.into()));
        }
        Ok(KeyEntry { name: name.into(), kind, account })
    }

    /// Decrypts a key.
    ///
    /// # Errors
    /// [`KeyError::Passphrase`], or the file is damaged.
    pub fn unlock(&self, name: &str, passphrase: &str) -> Result<AccountKey, KeyError> {
        let entry = self.entry(name)?;
        let path = self.path(name)?;
        let secret = decrypt(&path, name, passphrase)?;
        let key = account_key(entry.kind, &secret)?;
        if key.account() != entry.account {
            return Err(KeyError::Malformed { path, reason: "it contains the key of another account".into() });
        }
        Ok(key)
    }

    /// The file of a key.
    ///
    /// # Errors
    /// If the name is not valid.
    pub fn path(&self, name: &str) -> Result<PathBuf, KeyError> {
        check_name(name)?;
        Ok(self.folder.join(format!("{name}.json")))
    }
}

/// Checks a name of a key or contact, which becomes a file name.
pub(crate) fn check_name(name: &str) -> Result<(), KeyError> {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    if name.is_empty() || name.len() > NAME_LENGTH_MAX || !name.chars().all(fits) {
        return Err(KeyError::Name(name.chars().take(NAME_LENGTH_MAX).collect()));
    }
    Ok(())
}

fn io(path: &Path, error: std::io::Error) -> KeyError {
    KeyError::Io { path: path.into(), error }
}

fn account_key(kind: KeyKind, secret: &[u8; 32]) -> Result<AccountKey, KeyError> {
    match kind {
        KeyKind::Ed25519 => Ok(AccountKey::ed25519(*secret)),
        KeyKind::Ethereum => AccountKey::ethereum(*secret).map_err(|_| KeyError::Secret),
    }
}

/// Parses a secret of 64 hexadecimal digits.
///
/// # Errors
/// If the text is malformed.
pub fn parse_secret(text: &str) -> Result<Secret, KeyError> {
    let mut secret = Zeroizing::new([0; 32]);
    let digits = text.trim();
    hex::decode_to_slice(digits.strip_prefix("0x").unwrap_or(digits), secret.as_mut_slice())
        .map_err(|_| KeyError::Secret)?;
    Ok(secret)
}

/// Reads the secret from a file of Web3 secret storage, of this wallet or of another program.
///
/// # Errors
/// [`KeyError::Passphrase`], or the file is not one.
pub fn read_keystore(path: &Path, passphrase: &str) -> Result<Secret, KeyError> {
    keystore::decrypt(path, passphrase).map_err(|error| match error {
        KeystoreError::Io { path, error } => KeyError::Io { path, error },
        error => refused(path, &path.display().to_string(), error),
    })
}

fn encrypt(path: &Path, secret: &[u8; 32], passphrase: &str, metadata: &Metadata) -> Result<Vec<u8>, KeyError> {
    let malformed = |error: serde_json::Error| KeyError::Malformed { path: path.into(), reason: error.to_string() };
    let content = keystore::encrypt(path, secret, passphrase).map_err(|error| refused(path, "", error))?;
    let mut file: Map<String, Value> = serde_json::from_slice(&content).map_err(malformed)?;
    if let Some(address) = metadata.account.ethereum_address() {
        // Other programs expect the address of an Ethereum key here.
        file.insert("address".into(), hex::encode(address).into());
    }
    file.insert(METADATA.into(), serde_json::to_value(metadata).map_err(malformed)?);
    serde_json::to_vec_pretty(&file).map_err(malformed)
}

fn decrypt(path: &Path, name: &str, passphrase: &str) -> Result<Secret, KeyError> {
    keystore::decrypt(path, passphrase).map_err(|error| refused(path, name, error))
}

fn refused(path: &Path, name: &str, error: KeystoreError) -> KeyError {
    match error {
        KeystoreError::WrongPassphrase(_) => KeyError::Passphrase(name.into()),
        KeystoreError::Io { error, .. } if error.kind() == std::io::ErrorKind::NotFound => {
            KeyError::Unknown(name.into())
        }
        KeystoreError::Io { path, error } => KeyError::Io { path, error },
        KeystoreError::Malformed { path, reason } => KeyError::Malformed { path, reason },
        error => KeyError::Malformed { path: path.into(), reason: error.to_string() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> (tempfile::TempDir, Keys) {
        let folder = tempfile::tempdir().unwrap();
        let keys = Keys::new(folder.path().join("keys"));
        (folder, keys)
    }

    #[test]
    fn keys_of_both_kinds_are_kept_under_their_passphrase() {
        let (_folder, keys) = keys();
        for (name, kind) in [("a", KeyKind::Ed25519), ("b", KeyKind::Ethereum)] {
            let entry = keys.create(name, kind, "secret").unwrap();
            assert_eq!(keys.entry(name).unwrap(), entry);
            assert_eq!(keys.unlock(name, "secret").unwrap().account(), entry.account);
            assert!(matches!(keys.unlock(name, "Secret"), Err(KeyError::Passphrase(_))));
            assert!(matches!(keys.create(name, kind, "secret"), Err(KeyError::Exists(_))));
        }
        assert_eq!(keys.list().unwrap().len(), 2);
        let names = std::fs::read_dir(&keys.folder).unwrap().count();
        assert_eq!(names, 2, "nothing else is left in the folder");
    }

    #[test]
    fn a_known_secret_gives_the_known_account_and_is_nowhere_in_the_file() {
        let (_folder, keys) = keys();
        let text = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";
        let secret = parse_secret(text).unwrap();
        let entry = keys.import("rich", KeyKind::Ethereum, &secret, "p").unwrap();
        assert_eq!(entry.account.to_string(), "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266");
        let file = std::fs::read_to_string(keys.path("rich").unwrap()).unwrap();
        assert!(!file.contains(&text[2..20]));
        assert!(file.contains("\"address\": \"f39fd6e51aad88f6f4ce6ab8827279cfffb92266\""), "{file}");
        for wrong in ["", "0x", "zz", &text[..60], "not a key"] {
            assert!(matches!(parse_secret(wrong), Err(KeyError::Secret)), "{wrong}");
        }
        let zero = keys.import("zero", KeyKind::Ethereum, &[0; 32], "p");
        assert!(matches!(zero, Err(KeyError::Secret)));
    }

    #[test]
    fn names_cannot_leave_the_folder() {
        let (_folder, keys) = keys();
        for wrong in ["", "../x", "a/b", "A", "a.b", &"a".repeat(65)] {
            assert!(matches!(keys.create(wrong, KeyKind::Ed25519, "p"), Err(KeyError::Name(_))), "{wrong}");
        }
        assert!(matches!(keys.unlock("nobody", "p"), Err(KeyError::Unknown(_))));
    }

    #[test]
    fn the_key_that_is_meant_is_chosen_or_asked_for() {
        let (_folder, keys) = keys();
        assert!(matches!(keys.choose(None, None), Err(KeyError::None(_))));
        keys.create("a", KeyKind::Ed25519, "p").unwrap();
        assert_eq!(keys.choose(None, None).unwrap().name, "a");
        assert!(matches!(keys.choose(None, Some(KeyKind::Ethereum)), Err(KeyError::None("Ethereum "))));
        assert!(matches!(keys.choose(Some("a"), Some(KeyKind::Ethereum)), Err(KeyError::NotEthereum(_))));
        keys.create("b", KeyKind::Ethereum, "p").unwrap();
        assert!(matches!(keys.choose(None, None), Err(KeyError::Ambiguous { .. })));
        assert_eq!(keys.choose(None, Some(KeyKind::Ethereum)).unwrap().name, "b");
    }

    /// The test vector of the Web3 secret storage definition.
    const FOREIGN: &str = r#"{"crypto": {"cipher": "aes-128-ctr",
        "cipherparams": {"iv": "6087dab2f9fdbbfaddc31a909735c1e6"},
        "ciphertext": "5318b4d5bcd28de64ee5559e671353e16f075ecae9f99c7a79a38af5f869aa46", "kdf": "pbkdf2",
        "kdfparams": {"c": 262144, "dklen": 32, "prf": "hmac-sha256",
            "salt": "ae3cd4e7013836a3df6bd7241b12db061dbe2c6785853cce422d148a624ce0bd"},
        "mac": "517ead924a9d0dc3124507e3393d175ce3ff7c1e96529c6c555ce9e51205e9b2"},
        "id": "3198bc9c-6672-5ab3-d995-4942343ae5b6", "version": 3}"#;

    #[test]
    fn key_files_of_other_programs_are_read_and_hostile_ones_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            read_keystore(&path, "testpassword")
        };
        let secret = read(FOREIGN).unwrap();
        assert_eq!(hex::encode(*secret), "7a28b5ba57c53603b0b07b56bba752f7784bf506fa95edc395f5cf6c7514fe9d");
        for (from, to) in [
            ("\"dklen\": 32", "\"dklen\": 8"),
            ("6087dab2f9fdbbfaddc31a909735c1e6", "60"),
            ("262144", "4000000000"),
            ("262144", "0"),
            ("aes-128-ctr", "rot13"),
            ("\"version\": 3", "\"version\": 4"),
            ("5318b4d5", ""),
            ("{\"crypto\"", "[\"crypto\""),
        ] {
            let refused = read(&FOREIGN.replace(from, to));
            assert!(matches!(refused, Err(KeyError::Malformed { .. } | KeyError::Passphrase(_))), "{to}: {refused:?}");
        }
        let scrypt = FOREIGN.replace("pbkdf2", "scrypt");
        let scrypt = |parameters: &str| {
            scrypt.replace(
                "\"c\": 262144, \"dklen\": 32, \"prf\": \"hmac-sha256\"",
                &format!("\"dklen\": 32, {parameters}"),
            )
        };
        for parameters in [
            "\"n\": 2147483648, \"p\": 1, \"r\": 8",
            "\"n\": 3, \"p\": 1, \"r\": 8",
            "\"n\": 4, \"p\": 0, \"r\": 8",
            "\"n\": 4, \"p\": 1, \"r\": 4294967295",
        ] {
            assert!(matches!(read(&scrypt(parameters)), Err(KeyError::Malformed { .. })), "{parameters}");
        }
    }
}
