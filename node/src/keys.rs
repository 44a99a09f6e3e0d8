//! The authority's secret keys on disk: Web3 secret storage under a passphrase, or hexadecimal digits
//! in a file that its owner alone can read.

use std::fs;
use std::io::{IsTerminal, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use eth_keystore::KeystoreError;
use fastpay_core::AuthorityKeys;
use rand::RngExt;
use zeroize::Zeroizing;

/// The environment variable that a passphrase may come from.
pub const PASSPHRASE_VARIABLE: &str = "FASTPAY_PASSPHRASE";
/// A longer file is no key.
const FILE_BYTES_MAX: u64 = 1 << 16;

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
    pub fn in_folder(folder: &Path, encrypted: bool) -> Self {
        let extension = if encrypted { "json" } else { "key" };
        Self {
            voting: folder.join("voting").with_extension(extension),
            redemption: folder.join("redemption").with_extension(extension),
        }
    }

    /// The files in `folder`, of whichever sort they are.
    #[must_use]
    pub fn find(folder: &Path) -> Self {
        let encrypted = Self::in_folder(folder, true);
        if encrypted.voting.exists() { encrypted } else { Self::in_folder(folder, false) }
    }
}

/// Why a key cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The system refused.
    #[error("cannot use key file {path}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
    /// A key in the clear that others can read.
    #[error("key file {path} can be read by others; run: chmod 600 {path}")]
    Exposed {
        /// The file.
        path: PathBuf,
    },
    /// The wrong passphrase.
    #[error("wrong passphrase for key file {path}")]
    Passphrase {
        /// The file.
        path: PathBuf,
    },
    /// No way to get a passphrase.
    #[error("key file {path} is encrypted; set {PASSPHRASE_VARIABLE}, give --passphrase-file, or run in a terminal")]
    NoPassphrase {
        /// The file.
        path: PathBuf,
    },
    /// Not a key.
    #[error("{path} is not a key file: give Web3 secret storage or 64 hexadecimal digits")]
    Malformed {
        /// The file.
        path: PathBuf,
    },
    /// There is one already. Keys are never overwritten.
    #[error("{path} exists already; an authority's keys are never overwritten")]
    Exists {
        /// The file.
        path: PathBuf,
    },
}

fn io(path: &Path) -> impl FnOnce(std::io::Error) -> KeyError {
    let path = path.to_owned();
    move |error| KeyError::Io { path, error }
}

/// Where a passphrase comes from: a file, else the environment, else the terminal.
#[derive(Clone, Debug, Default)]
pub struct PassphraseSource {
    /// Its first line is the passphrase.
    pub file: Option<PathBuf>,
}

impl PassphraseSource {
    /// The passphrase for a key file.
    ///
    /// # Errors
    /// Where the file cannot be read, or there is no source at all.
    pub fn get(&self, key: &Path, confirm: bool) -> Result<Zeroizing<String>, KeyError> {
        if let Some(file) = &self.file {
            let text = Zeroizing::new(fs::read_to_string(file).map_err(io(file))?);
            return Ok(Zeroizing::new(text.lines().next().unwrap_or_default().to_owned()));
        }
        if let Ok(passphrase) = std::env::var(PASSPHRASE_VARIABLE) {
            return Ok(Zeroizing::new(passphrase));
        }
        if !std::io::stdin().is_terminal() {
            return Err(KeyError::NoPassphrase { path: key.into() });
        }
        let ask = |prompt: String| rpassword::prompt_password(prompt).map(Zeroizing::new).map_err(io(key));
        let passphrase = ask(format!("Passphrase for {}: ", key.display()))?;
        if confirm && ask("Once more: ".into())? != passphrase {
            return Err(KeyError::Passphrase { path: key.into() });
        }
        Ok(passphrase)
    }
}

/// Makes two new keys in `folder`, encrypted where there is a passphrase, and reads them back.
///
/// # Errors
/// Where a key exists already, or the system refuses.
pub fn generate(folder: &Path, passphrase: Option<&str>) -> Result<(KeyFiles, AuthorityKeys), KeyError> {
    let files = KeyFiles::in_folder(folder, passphrase.is_some());
    fs::create_dir_all(folder).map_err(io(folder))?;
    for path in [&files.voting, &files.redemption] {
        if path.exists() {
            return Err(KeyError::Exists { path: path.clone() });
        }
    }
    loop {
        let (voting, redemption) = (Zeroizing::new(rand::rng().random()), Zeroizing::new(rand::rng().random()));
        // One number in 2^128 is not a secp256k1 key.
        let Ok(keys) = AuthorityKeys::from_secrets(*voting, *redemption) else { continue };
        write(&files.voting, &voting, passphrase)?;
        write(&files.redemption, &redemption, passphrase)?;
        return Ok((files, keys));
    }
}

fn write(path: &Path, secret: &[u8; 32], passphrase: Option<&str>) -> Result<(), KeyError> {
    let content = match passphrase {
        None => Zeroizing::new(format!("{}\n", hex::encode(secret)).into_bytes()),
        Some(passphrase) => Zeroizing::new(encrypt(path, secret, passphrase)?),
    };
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(io(path))?;
    file.write_all(&content).and_then(|()| file.sync_all()).map_err(io(path))?;
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::File::open(folder).and_then(|folder| folder.sync_all()).map_err(io(folder))
}

/// The library writes to a file of its own choosing, world-readable; a folder that only we can enter
/// hides it.
fn encrypt(path: &Path, secret: &[u8; 32], passphrase: &str) -> Result<Vec<u8>, KeyError> {
    use std::os::unix::fs::DirBuilderExt;
    let folder = path.with_file_name(format!(".new-{:016x}", rand::random::<u64>()));
    fs::DirBuilder::new().mode(0o700).create(&folder).map_err(io(&folder))?;
    let mut rng = rand_keystore::rngs::OsRng;
    let written = eth_keystore::encrypt_key(&folder, &mut rng, secret, passphrase, Some("key"));
    let content = fs::read(folder.join("key"));
    fs::remove_dir_all(&folder).map_err(io(&folder))?;
    written.map_err(|_| KeyError::Malformed { path: path.into() })?;
    content.map_err(io(path))
}

/// Reads an authority's keys.
///
/// # Errors
/// See [`KeyError`].
pub fn read(files: &KeyFiles, passphrase: &PassphraseSource) -> Result<AuthorityKeys, KeyError> {
    let voting = read_secret(&files.voting, passphrase)?;
    let redemption = read_secret(&files.redemption, passphrase)?;
    AuthorityKeys::from_secrets(*voting, *redemption)
        .map_err(|_| KeyError::Malformed { path: files.redemption.clone() })
}

fn read_secret(path: &Path, passphrase: &PassphraseSource) -> Result<Zeroizing<[u8; 32]>, KeyError> {
    let malformed = || KeyError::Malformed { path: path.into() };
    let metadata = fs::metadata(path).map_err(io(path))?;
    if metadata.len() > FILE_BYTES_MAX {
        return Err(malformed());
    }
    let text = Zeroizing::new(fs::read_to_string(path).map_err(io(path))?);
    let secret = if text.trim_start().starts_with('{') {
        let passphrase = passphrase.get(path, false)?;
        eth_keystore::decrypt_key(path, passphrase.as_str()).map_err(|error| match error {
            KeystoreError::MacMismatch => KeyError::Passphrase { path: path.into() },
            _ => malformed(),
        })
    } else {
        if metadata.permissions().mode() & 0o077 != 0 {
            return Err(KeyError::Exposed { path: path.into() });
        }
        let digits = text.trim();
        hex::decode(digits.strip_prefix("0x").unwrap_or(digits)).map_err(|_| malformed())
    };
    let secret = Zeroizing::new(secret?);
    Ok(Zeroizing::new(secret.as_slice().try_into().map_err(|_| malformed())?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passphrase_file(folder: &Path, passphrase: &str) -> PassphraseSource {
        let file = folder.join("passphrase");
        fs::write(&file, format!("{passphrase}\n")).unwrap();
        PassphraseSource { file: Some(file) }
    }

    #[test]
    fn keys_come_back_as_they_were_made() {
        for passphrase in [None, Some("correct horse")] {
            let folder = tempfile::tempdir().unwrap();
            let keys_folder = folder.path().join("keys");
            let (files, keys) = generate(&keys_folder, passphrase).unwrap();
            assert_eq!(KeyFiles::find(&keys_folder), files);
            let source = passphrase_file(folder.path(), passphrase.unwrap_or("unused"));
            assert_eq!(read(&files, &source).unwrap().public(), keys.public());
            assert!(matches!(generate(&keys_folder, passphrase), Err(KeyError::Exists { .. })));
            assert_eq!(fs::read_dir(&keys_folder).unwrap().count(), 2, "nothing else is left behind");
        }
    }

    #[test]
    fn a_wrong_passphrase_and_an_exposed_key_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (files, _) = generate(&folder.path().join("a"), Some("right")).unwrap();
        let source = passphrase_file(folder.path(), "wrong");
        assert!(matches!(read(&files, &source), Err(KeyError::Passphrase { .. })));

        let (files, _) = generate(&folder.path().join("b"), None).unwrap();
        fs::set_permissions(&files.redemption, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(read(&files, &source), Err(KeyError::Exposed { .. })));

        fs::set_permissions(&files.redemption, fs::Permissions::from_mode(0o600)).unwrap();
        for wrong in ["", "12", "{}", "zz", &"0".repeat(64)] {
            fs::write(&files.redemption, wrong).unwrap();
            assert!(matches!(read(&files, &source), Err(KeyError::Malformed { .. })), "{wrong}");
        }
        fs::remove_file(&files.voting).unwrap();
        assert!(matches!(read(&files, &source), Err(KeyError::Io { .. })));
    }
}
