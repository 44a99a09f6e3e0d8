//! Proofs of misbehaviour that an audit found, one file each, for anybody to verify.

use std::path::PathBuf;

use fastpay_program::files;

use super::Folder;
use super::error::FolderError;
use super::json;
use crate::audit::Proof;

impl Folder {
    /// Stores a proof, unless it is stored already. Returns its file.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn keep_proof(&self, proof: &Proof) -> Result<PathBuf, FolderError> {
        let folder = self.home.join("proofs");
        let (authority, account) = (hex::encode(proof.authority.0), hex::encode(proof.account.0));
        let path = folder.join(format!("{authority}-{account}-{}.json", proof.sequence));
        files::create_folder(&folder).map_err(|error| FolderError::io(&folder, error))?;
        json::create(&path, proof).map(|_| path)
    }
}
