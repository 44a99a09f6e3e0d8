//! The address book: a file for each account that the owner gave a name. A name means one account: no contact has the
//! name of a key, and adding a contact again never changes it.

use std::path::PathBuf;

use fastpay_core::AccountId;
use fastpay_program::files;
use serde::Serialize;

use super::error::FolderError;
use super::keys::check_name;
use super::{Folder, KeyError};

/// An account with a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Contact {
    /// The name that the owner gave it.
    pub name: String,
    /// The account.
    pub account: AccountId,
}

/// Why the address book cannot do what is asked.
#[derive(Debug, thiserror::Error)]
pub enum ContactError {
    /// The name is that of another account.
    #[error("{name} is already the name of {account}; choose another name, or remove that contact first")]
    Exists {
        /// The name.
        name: String,
        /// The account.
        account: AccountId,
    },
    /// The name is that of a key.
    #[error("{0} is the name of a key of this wallet; choose another name")]
    IsKey(String),
    /// A key and a contact have the same name, because two commands created them at the same moment.
    #[error("{0} is the name of a key and of a contact; remove the contact with `fastpay contacts remove {0}`")]
    Ambiguous(String),
    /// No such contact.
    #[error("there is no contact named {0}; run `fastpay contacts list`")]
    Unknown(String),
    /// The name is not valid, or a key's file is malformed.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The files cannot be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
}

/// The address book.
#[derive(Clone, Debug)]
pub struct Contacts {
    folder: Folder,
}

impl Contacts {
    pub(crate) fn new(folder: Folder) -> Self {
        Self { folder }
    }

    /// Gives an account a name. Repeating this changes nothing.
    ///
    /// # Errors
    /// If the name is not valid or taken, or the file cannot be written.
    pub fn add(&self, name: &str, account: AccountId) -> Result<Contact, ContactError> {
        let path = self.path(name)?;
        if self.folder.keys().has(name)? {
            return Err(ContactError::IsKey(name.into()));
        }
        let io = |error| FolderError::io(&path, error);
        let folder = self.folder.home().join("contacts");
        files::create_folder(&folder).map_err(io)?;
        let is_new = files::create(&path, format!("{account}\n").as_bytes()).map_err(io)?;
        match self.find(name)? {
            Some(known) if is_new || known == account => Ok(Contact { name: name.into(), account }),
            Some(account) => Err(ContactError::Exists { name: name.into(), account }),
            None => Err(ContactError::Unknown(name.into())),
        }
    }

    /// Removes a name.
    ///
    /// # Errors
    /// If there is no such contact, or its file cannot be removed.
    pub fn remove(&self, name: &str) -> Result<Contact, ContactError> {
        let account = self.find(name)?.ok_or_else(|| ContactError::Unknown(name.into()))?;
        let path = self.path(name)?;
        files::remove(&path).map_err(|error| FolderError::io(&path, error))?;
        Ok(Contact { name: name.into(), account })
    }

    /// All contacts, by name.
    ///
    /// # Errors
    /// If a file is damaged.
    pub fn list(&self) -> Result<Vec<Contact>, ContactError> {
        let folder = self.folder.home().join("contacts");
        let names = files::names(&folder).map_err(|error| FolderError::io(&folder, error))?;
        let contact = |name: String| -> Result<_, ContactError> {
            Ok(self.find(&name)?.map(|account| Contact { name, account }))
        };
        names.into_iter().filter_map(|name| contact(name).transpose()).collect()
    }

    /// The account of a name, if it has one.
    ///
    /// # Errors
    /// If the name is not valid, or the file is damaged.
    pub fn find(&self, name: &str) -> Result<Option<AccountId>, ContactError> {
        let path = self.path(name)?;
        let Some(content) = files::read(&path).map_err(|error| FolderError::io(&path, error))? else {
            return Ok(None);
        };
        let text = String::from_utf8_lossy(&content);
        let account = text.trim_end().parse::<AccountId>().map_err(|error| FolderError::damaged(&path, error))?;
        Ok(Some(account))
    }

    fn path(&self, name: &str) -> Result<PathBuf, ContactError> {
        check_name(name)?;
        Ok(self.folder.home().join("contacts").join(name))
    }
}

impl Folder {
    /// The account of a name, which is that of a key or of a contact.
    ///
    /// # Errors
    /// If neither or both have the name.
    pub fn named(&self, name: &str) -> Result<AccountId, ContactError> {
        match (self.keys().has(name)?, self.contacts().find(name)?) {
            (true, Some(_)) => Err(ContactError::Ambiguous(name.into())),
            (false, Some(account)) => Ok(account),
            (true, None) => Ok(self.keys().entry(name)?.account),
            (false, None) => Err(KeyError::UnknownName(name.into()).into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folder::KeyKind;
    use fastpay_core::AccountKey;

    #[test]
    fn a_name_means_one_account() {
        let home = tempfile::tempdir().unwrap();
        let folder = Folder::new(home.path());
        let (carol, dave) = (AccountKey::ed25519([3; 32]).account(), AccountKey::ed25519([4; 32]).account());
        let contacts = folder.contacts();
        assert_eq!(contacts.list().unwrap(), []);
        let contact = contacts.add("carol", carol).unwrap();
        assert_eq!(contacts.add("carol", carol).unwrap(), contact);
        assert!(matches!(contacts.add("carol", dave), Err(ContactError::Exists { account, .. }) if account == carol));
        assert_eq!(folder.named("carol").unwrap(), carol);
        assert_eq!(contacts.list().unwrap(), std::slice::from_ref(&contact));

        folder.keys().import("own", KeyKind::Ed25519, &[5; 32], "passphrase").unwrap();
        assert!(matches!(contacts.add("own", dave), Err(ContactError::IsKey(_))));
        let taken = folder.keys().import("carol", KeyKind::Ed25519, &[6; 32], "passphrase");
        assert!(matches!(taken, Err(KeyError::IsContact(_))));
        assert_eq!(folder.named("own").unwrap(), AccountKey::ed25519([5; 32]).account());
        // Two commands at the same moment can leave this state.
        std::fs::write(home.path().join("contacts/own"), format!("{dave}\n")).unwrap();
        assert!(matches!(folder.named("own"), Err(ContactError::Ambiguous(_))));

        assert_eq!(contacts.remove("carol").unwrap(), contact);
        assert!(matches!(contacts.remove("carol"), Err(ContactError::Unknown(_))));
        assert!(matches!(folder.named("carol"), Err(ContactError::Key(KeyError::UnknownName(_)))));
    }

    #[test]
    fn names_that_are_no_file_names_and_damaged_files_are_refused() {
        let home = tempfile::tempdir().unwrap();
        let contacts = Folder::new(home.path()).contacts();
        let carol = AccountKey::ed25519([3; 32]).account();
        for name in ["", "../carol", "Carol", ".tmp-x", "a/b"] {
            assert!(matches!(contacts.add(name, carol), Err(ContactError::Key(KeyError::Name(_)))), "{name}");
        }
        contacts.add("carol", carol).unwrap();
        std::fs::write(home.path().join("contacts/carol"), "fp1nonsense").unwrap();
        assert!(matches!(contacts.find("carol"), Err(ContactError::Folder(FolderError::Damaged { .. }))));
        assert!(contacts.list().is_err());
    }
}
