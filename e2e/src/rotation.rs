//! Changing the committee's keys with the operators' commands: proofs, a proposal, signatures, the announcement, the
//! guardian's endorsement, a day's delay, acceptances, the installation.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use alloy::primitives::B256;
use fastpay_core::{Authority as Member, Epoch};
use serde_json::Value;

use crate::chain::{DEPLOYER_KEY, read};
use crate::failure::{Failure, PATIENCE, wait_for};
use crate::network::Network;
use crate::process::Finished;

/// The council's short delay.
const DELAY_S: u64 = 86_400;

/// An anvil account that nothing else uses: anyone may announce and install.
const ANYONES_KEY: &str = "8b3a350cf5c34c9194ca85829a2df0ec3153be0318b5e2d3348e872092edffba";

/// Who sends a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Anyone.
    Anyone,
    /// The guardian, who may also announce a recovery.
    Guardian,
}

/// A committee that is being announced.
#[derive(Debug)]
pub struct Rotation {
    /// The announcement's file.
    pub announcement: PathBuf,
    /// The members' proofs.
    pub proofs: Vec<PathBuf>,
    epoch: Epoch,
    voters: Vec<usize>,
    acceptors: Vec<usize>,
}

impl Rotation {
    /// The same, accepted by other members than those that sign it.
    #[must_use]
    pub fn accepted_by(self, members: &[usize]) -> Self {
        Self { acceptors: members.to_vec(), ..self }
    }
}

impl Network {
    /// Makes all members prove the keys that [`crate::Authority::add_keys`] put into `folder`, and the first voter propose
    /// the committee of `epoch`. If `compromised_since` is an earlier epoch, keys were compromised since then.
    ///
    /// # Errors
    /// If a command fails.
    pub fn propose(
        &self,
        folder: &str,
        members: &[Member],
        voters: &[usize],
        epochs: (u64, u64),
    ) -> Result<Rotation, Failure> {
        self.propose_naming(B256::ZERO, folder, members, voters, epochs)
    }

    /// The same for an announcement that names a certified checkpoint.
    ///
    /// # Errors
    /// If a command fails.
    pub fn propose_naming(
        &self,
        checkpoint: B256,
        folder: &str,
        members: &[Member],
        voters: &[usize],
        (epoch, compromised_since): (u64, u64),
    ) -> Result<Rotation, Failure> {
        let terms = if compromised_since < epoch {
            vec!["--compromised-since".to_owned(), compromised_since.to_string()]
        } else {
            Vec::new()
        };
        let checkpoint =
            if checkpoint.is_zero() { Vec::new() } else { vec!["--checkpoint".to_owned(), checkpoint.to_string()] };
        self.propose_with(folder, members, voters, epoch, &[terms, checkpoint].concat())
    }

    /// The same with these further arguments of the command.
    ///
    /// # Errors
    /// If a command fails.
    pub fn propose_with(
        &self,
        folder: &str,
        members: &[Member],
        voters: &[usize],
        epoch: u64,
        terms: &[String],
    ) -> Result<Rotation, Failure> {
        let mut proofs = Vec::new();
        for authority in &self.authorities {
            let proof = self.place().path(format!("proof-{epoch}-{}.json", authority.name()));
            authority.prove(folder, &proof)?.success()?;
            let proven: Value = read(&proof)?;
            let names = members.iter().map(|member| member.name.to_string());
            if names.into_iter().any(|name| proven.get("votingKey").and_then(Value::as_str) == Some(&name)) {
                proofs.push(proof);
            }
        }
        let announcement = self.place().path(format!("announcement-{epoch}.json"));
        let (voters, acceptors) = (voters.to_vec(), voters.to_vec());
        let rotation = Rotation { announcement, proofs, epoch: Epoch(epoch), voters, acceptors };
        let mut arguments: Vec<OsString> = ["committee", "propose", "--days", "1"].map(Into::into).to_vec();
        arguments.extend(["--out".into(), rotation.announcement.clone().into()]);
        arguments.extend(repeated("--proof", &rotation.proofs));
        arguments.extend(terms.iter().map(Into::into));
        self.member(rotation.voters.first().copied().unwrap_or_default())?.operate_with(arguments)?.success()?;
        Ok(rotation)
    }

    /// Makes the voters sign an announcement. Returns the output of their commands.
    ///
    /// # Errors
    /// If a command fails.
    pub fn sign(&self, rotation: &Rotation) -> Result<Vec<Finished>, Failure> {
        let mut signed = Vec::new();
        for voter in &rotation.voters {
            let (authority, out) = (self.member(*voter)?, self.vote_file(rotation.epoch.0, "sign", *voter));
            signed.push(authority.vote("sign", &rotation.announcement, &rotation.proofs, &out)?.success()?);
        }
        Ok(signed)
    }

    /// Announces a committee, and endorses it.
    ///
    /// # Errors
    /// If the commands refuse.
    pub fn announce(&self, rotation: &Rotation) -> Result<(), Failure> {
        let announced = self.announce_unendorsed(rotation)?.success()?;
        self.endorse(rotation, &announced)
    }

    /// Endorses what `announced` has announced.
    ///
    /// # Errors
    /// If the command refuses.
    pub fn endorse(&self, rotation: &Rotation, announced: &Finished) -> Result<(), Failure> {
        let said: Value = serde_json::from_str(&announced.out).map_err(|error| Failure::Wrong(error.to_string()))?;
        let id = said.get("id").and_then(Value::as_str).unwrap_or_default();
        self.send(By::Guardian, "endorse", rotation, vec!["--id".into(), id.into()])?.success().map(drop)
    }

    /// Announces a committee, as anyone may.
    ///
    /// # Errors
    /// If the command cannot be run.
    pub fn announce_unendorsed(&self, rotation: &Rotation) -> Result<Finished, Failure> {
        self.send(By::Anyone, "announce", rotation, self.announcing(rotation))
    }

    /// The files that `committee announce` takes.
    #[must_use]
    pub fn announcing(&self, rotation: &Rotation) -> Vec<OsString> {
        let votes = self.vote_files(rotation, "sign", &rotation.voters);
        [repeated("--proof", &rotation.proofs), repeated("--vote", &votes)].concat()
    }

    /// Announces a recovery, which replaces a silent committee.
    ///
    /// # Errors
    /// If the command refuses.
    pub fn announce_recovery(&self, rotation: &Rotation) -> Result<(), Failure> {
        let arguments = [repeated("--proof", &rotation.proofs), vec!["--recovery".into()]].concat();
        self.send(By::Guardian, "announce", rotation, arguments)?.success().map(drop)
    }

    /// Runs a command that sends a transaction for an announcement.
    ///
    /// # Errors
    /// If it cannot be run.
    pub fn send(
        &self,
        by: By,
        command: &str,
        rotation: &Rotation,
        arguments: Vec<OsString>,
    ) -> Result<Finished, Failure> {
        let arguments = [self.sending(by, command, rotation)?, arguments].concat();
        self.member(rotation.voters.first().copied().unwrap_or_default())?.operate_with(arguments)
    }

    /// The beginning of a command that sends a transaction.
    ///
    /// # Errors
    /// If the file of the key cannot be written.
    pub fn sending(&self, by: By, command: &str, rotation: &Rotation) -> Result<Vec<OsString>, Failure> {
        let (name, key) = match by {
            By::Anyone => ("anyone.key", ANYONES_KEY),
            By::Guardian => ("guardian.key", DEPLOYER_KEY),
        };
        let file = self.place().write(name, key)?;
        let owner = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(&file, owner).map_err(|error| Failure::Io { path: file.clone(), error })?;
        let mut arguments: Vec<OsString> = ["committee", command, "--json", "--key"].map(Into::into).to_vec();
        arguments.extend([file.into(), "--announcement".into(), rotation.announcement.clone().into()]);
        Ok(arguments)
    }

    /// Submits members' votes for a rebuilt checkpoint.
    ///
    /// # Errors
    /// If the contract refuses.
    pub fn adopt(&self, checkpoint: B256, votes: &[PathBuf]) -> Result<(), Failure> {
        let (contract, votes) = (PathBuf::from(self.contract()?.to_string()), joined(votes));
        let checkpoint = PathBuf::from(checkpoint.to_string());
        let variables: [(&str, &Path); 3] = [("CONTRACT", &contract), ("CHECKPOINT", &checkpoint), ("VOTES", &votes)];
        self.chain()?.council(self.place(), "adopt", &variables)
    }

    /// Submits members' votes to take a redemption out of the contract's queue.
    ///
    /// # Errors
    /// If the contract refuses.
    pub fn release(&self, redemption: &Path, votes: &[PathBuf]) -> Result<(), Failure> {
        let (contract, votes) = (PathBuf::from(self.contract()?.to_string()), joined(votes));
        let variables: [(&str, &Path); 3] = [("CONTRACT", &contract), ("REDEMPTION", redemption), ("VOTES", &votes)];
        self.chain()?.queue(self.place(), "release", &variables)
    }

    /// Matures an announced committee, makes the voters accept it, and installs it.
    ///
    /// # Errors
    /// If a command refuses.
    pub async fn install(&self, rotation: &Rotation) -> Result<(), Failure> {
        let matured = self.send(By::Anyone, "install", rotation, Vec::new())?;
        if matured.status.code() != Some(11) || !matured.out.contains("\"matured\"") {
            return Err(Failure::Wrong(format!("it has not matured: {}{}", matured.out, matured.err)));
        }
        for voter in &rotation.acceptors {
            let (authority, out) = (self.member(*voter)?, self.vote_file(rotation.epoch.0, "accept", *voter));
            // Retry until the voter's own node has read the block.
            wait_for(PATIENCE, async || {
                let vote = authority.vote("accept", &rotation.announcement, &rotation.proofs, &out);
                vote.and_then(Finished::success).map_err(|error| error.to_string())
            })
            .await?;
        }
        let votes = self.vote_files(rotation, "accept", &rotation.acceptors);
        self.send(By::Anyone, "install", rotation, repeated("--vote", &votes))?.success().map(drop)
    }

    /// Runs all steps that lead to this epoch, with a day between them.
    ///
    /// # Errors
    /// If a command or the contract refuses.
    pub async fn rotate(&self, folder: &str, members: &[Member], voters: &[usize], epoch: u64) -> Result<(), Failure> {
        let rotation = self.propose(folder, members, voters, (epoch, epoch))?;
        self.sign(&rotation)?;
        self.announce(&rotation)?;
        self.chain()?.pass(DELAY_S + 1).await?;
        self.install(&rotation).await
    }

    pub(crate) fn member(&self, number: usize) -> Result<&crate::Authority, Failure> {
        self.authorities.get(number).ok_or_else(|| Failure::Wrong(format!("there is no authority {number}")))
    }

    /// The file for a voter's signature.
    #[must_use]
    pub fn vote_file(&self, epoch: u64, what: &str, voter: usize) -> PathBuf {
        self.place().path(format!("{what}-{epoch}-{voter}.json"))
    }

    fn vote_files(&self, rotation: &Rotation, what: &str, voters: &[usize]) -> Vec<PathBuf> {
        voters.iter().map(|voter| self.vote_file(rotation.epoch.0, what, *voter)).collect()
    }
}

/// An option for each file.
fn repeated(option: &str, files: &[PathBuf]) -> Vec<OsString> {
    files.iter().flat_map(|file| [option.into(), file.clone().into()]).collect()
}

/// A list for a script.
fn joined(files: &[PathBuf]) -> PathBuf {
    files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(",").into()
}
