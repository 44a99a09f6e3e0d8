//! Proofs of misbehaviour that an audit found, one file each, for anybody to verify.

use std::path::PathBuf;

use fastpay_program::files;

use super::Folder;
use super::error::FolderError;
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
        let content = serde_json::to_vec_pretty(proof).map_err(|error| FolderError::damaged(&path, error))?;
        files::create_folder(&folder)
            .and_then(|()| files::create(&path, &content))
            .map_err(|error| FolderError::io(&path, error))?;
        Ok(path)
    }
}
