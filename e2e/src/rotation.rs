//! Changing the committee's keys as operators do: proofs, votes, the guardian's endorsement, a day's delay,
//! acceptances.

use std::path::{Path, PathBuf};

use alloy::primitives::{Address, B256, U64};
use alloy::sol_types::SolCall;
use fastpay_core::{Authority as Member, Epoch};
use fastpay_ethereum::{ICouncil, IFastPay};
use serde_json::{Value, json};

use crate::chain::{CHAIN_ID, Chain, DEPLOYER};
use crate::failure::{Failure, PATIENCE, wait_for};
use crate::network::Network;
use crate::process::Finished;

/// The council's short delay.
const DELAY_S: u64 = 86_400;

/// A committee that is being announced.
#[derive(Debug)]
pub struct Rotation {
    /// The announcement's file.
    pub announcement: PathBuf,
    /// The members' proofs.
    pub proofs: Vec<PathBuf>,
    epoch: Epoch,
    council: Address,
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
    /// Makes all members prove the keys that [`crate::Authority::add_keys`] put into `folder`, and writes the
    /// announcement of `epoch`. If `compromised_since` is an earlier epoch, keys were compromised since then. The
    /// deployer is the guardian and may recover.
    ///
    /// # Errors
    /// If a command fails.
    pub async fn propose(
        &self,
        folder: &str,
        members: &[Member],
        voters: &[usize],
        epochs: (u64, u64),
    ) -> Result<Rotation, Failure> {
        self.propose_naming(B256::ZERO, folder, members, voters, epochs).await
    }

    /// The same for an announcement that names a certified checkpoint.
    ///
    /// # Errors
    /// If a command fails.
    pub async fn propose_naming(
        &self,
        checkpoint: B256,
        folder: &str,
        members: &[Member],
        voters: &[usize],
        (epoch, compromised_since): (u64, u64),
    ) -> Result<Rotation, Failure> {
        let (place, chain, contract) = (self.place(), self.chain()?, self.contract()?);
        let mut proofs = Vec::new();
        for authority in &self.authorities {
            let proof = place.path(format!("proof-{epoch}-{}.json", authority.name()));
            authority.prove(folder, &proof)?.success()?;
            proofs.push(proof);
        }
        let list: Vec<_> =
            members.iter().map(|m| json!({"votingKey": m.name, "redemptionKey": m.redemption_key})).collect();
        let file = json!({
            "chainId": CHAIN_ID, "authorities": list, "guardian": DEPLOYER, "recovery": DEPLOYER, "epoch": epoch,
            "compromisedSince": compromised_since, "checkpoint": checkpoint,
            "deadline": chain.time_s().await? + DELAY_S,
        });
        let announcement = place.write(format!("announcement-{epoch}.json"), file.to_string())?;
        let council = view(chain, contract, &IFastPay::councilCall {}).await?;
        let (voters, acceptors) = (voters.to_vec(), voters.to_vec());
        Ok(Rotation { announcement, proofs, epoch: Epoch(epoch), council, voters, acceptors })
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

    /// Announces a committee, as anyone may, and endorses it, as the guardian may.
    ///
    /// # Errors
    /// If the contract refuses.
    pub async fn announce(&self, rotation: &Rotation) -> Result<(), Failure> {
        let contract = PathBuf::from(self.contract()?.to_string());
        let votes = self.vote_files(rotation, "sign", &rotation.voters);
        let proofs = joined(&rotation.proofs);
        let variables: [(&str, &Path); 4] =
            [("CONTRACT", &contract), ("ANNOUNCEMENT", &rotation.announcement), ("PROOFS", &proofs), ("VOTES", &votes)];
        self.chain()?.council(self.place(), "announce", &variables)?;
        self.chain()?.council(self.place(), "endorse", &variables[..2])
    }

    /// Announces a recovery, which replaces a silent committee.
    ///
    /// # Errors
    /// If the contract refuses.
    pub fn announce_recovery(&self, rotation: &Rotation) -> Result<(), Failure> {
        let (contract, proofs) = (PathBuf::from(self.contract()?.to_string()), joined(&rotation.proofs));
        let variables: [(&str, &Path); 3] =
            [("CONTRACT", &contract), ("ANNOUNCEMENT", &rotation.announcement), ("PROOFS", &proofs)];
        self.chain()?.council(self.place(), "announceRecovery", &variables)
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
    /// If a command or the contract refuses.
    pub async fn install(&self, rotation: &Rotation) -> Result<(), Failure> {
        let (chain, contract) = (self.chain()?, PathBuf::from(self.contract()?.to_string()));
        let variables: [(&str, &Path); 2] = [("CONTRACT", &contract), ("ANNOUNCEMENT", &rotation.announcement)];
        chain.council(self.place(), "mature", &variables)?;
        let matured = json!([{
            "address": rotation.council, "fromBlock": "0x0",
            "topics": [<ICouncil::Matured as alloy::sol_types::SolEvent>::SIGNATURE_HASH],
        }]);
        let logs: Vec<Value> = chain.request("eth_getLogs", matured).await?;
        let block = logs.last().and_then(|log| log.get("blockNumber")).cloned().unwrap_or_default();
        let block: U64 = serde_json::from_value(block).map_err(Failure::wrong)?;
        for voter in &rotation.acceptors {
            let (authority, out) = (self.member(*voter)?, self.vote_file(rotation.epoch.0, "accept", *voter));
            // Retry until the voter's own node has read the block.
            wait_for(PATIENCE, async || {
                let vote = authority.vote("accept", &rotation.announcement, &rotation.proofs, &out);
                vote.and_then(Finished::success).map_err(|error| error.to_string())
            })
            .await?;
        }
        let (votes, block) =
            (self.vote_files(rotation, "accept", &rotation.acceptors), PathBuf::from(block.to::<u64>().to_string()));
        let variables: [(&str, &Path); 4] =
            [("CONTRACT", &contract), ("ANNOUNCEMENT", &rotation.announcement), ("BLOCK", &block), ("VOTES", &votes)];
        chain.council(self.place(), "install", &variables)
    }

    /// Runs all steps, with a day between them.
    ///
    /// # Errors
    /// If a command or the contract refuses.
    pub async fn rotate(&self, folder: &str, members: &[Member], voters: &[usize]) -> Result<(), Failure> {
        let rotation = self.propose(folder, members, voters, (1, 1)).await?;
        self.sign(&rotation)?;
        self.announce(&rotation).await?;
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

    fn vote_files(&self, rotation: &Rotation, what: &str, voters: &[usize]) -> PathBuf {
        let file = |voter: &usize| self.vote_file(rotation.epoch.0, what, *voter);
        joined(&voters.iter().map(file).collect::<Vec<_>>())
    }
}

/// A list for a script.
fn joined(files: &[PathBuf]) -> PathBuf {
    files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(",").into()
}

async fn view<C: SolCall>(chain: &Chain, to: Address, call: &C) -> Result<C::Return, Failure> {
    let data = alloy::primitives::Bytes::from(call.abi_encode());
    let answer: alloy::primitives::Bytes =
        chain.request("eth_call", json!([{ "to": to, "data": data }, "latest"])).await?;
    C::abi_decode_returns_validate(&answer).map_err(Failure::wrong)
}
