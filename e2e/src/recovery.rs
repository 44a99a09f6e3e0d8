//! How a committee begins anew, as its operators do it (docs/OPERATIONS.md): rebuild a checkpoint, adopt it, certify it,
//! and begin from it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use alloy::primitives::B256;
use serde_json::Value;

use crate::failure::{Failure, PATIENCE, wait_for};
use crate::network::Network;
use crate::process::Finished;

/// The members that sign the adoption.
const SIGNERS: [usize; 3] = [0, 1, 2];
/// The members that write the adopted checkpoint into their archives. The others' nodes bring it.
const WRITERS: [usize; 3] = [0, 1, 3];

/// From what a checkpoint is rebuilt, beside a member's archive.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// Files of certificates.
    pub certificates: Vec<PathBuf>,
    /// Data folders of members.
    pub journals: Vec<PathBuf>,
}

impl Network {
    /// Runs a command of a member's operator with these sources.
    ///
    /// # Errors
    /// If it cannot be run.
    pub fn rebuild(&self, member: usize, command: &[&str], sources: &Sources) -> Result<Finished, Failure> {
        let mut arguments: Vec<OsString> = command.iter().map(Into::into).collect();
        let mut add = |option: &str, path: &Path| arguments.extend([option.into(), path.as_os_str().to_owned()]);
        add("--archive", &self.member(member)?.archive());
        sources.certificates.iter().for_each(|path| add("--certificates", path));
        sources.journals.iter().for_each(|path| add("--journals", path));
        self.member(member)?.operate_with(arguments)
    }

    /// The report of what two members rebuild alike, once the installation of this epoch is final.
    ///
    /// # Errors
    /// If a command fails, or the reports differ.
    pub async fn rebuilt(&self, epoch: u64, sources: &Sources) -> Result<Value, Failure> {
        let recover = ["recover", "--json"];
        wait_for(PATIENCE, async || {
            let rebuilt = self.rebuild(0, &recover, sources).map_err(|error| error.to_string())?;
            let report = serde_json::from_str::<Value>(&rebuilt.out).unwrap_or_default();
            let is_of_epoch = report.get("epoch").and_then(Value::as_u64) == Some(epoch);
            if is_of_epoch { Ok(()) } else { Err(rebuilt.out + &rebuilt.err) }
        })
        .await?;
        let out = self.place().path("rebuilt");
        let folder = out.display().to_string();
        let written = [&recover[..], &["--out", &folder]].concat();
        let read = |said: Finished| serde_json::from_str::<Value>(&said.success()?.out).map_err(Failure::wrong);
        let first = read(self.rebuild(0, &written, sources)?)?;
        let again = read(self.rebuild(1, &recover, sources)?)?;
        let path = out.join("report.json");
        let bytes = std::fs::read(&path).map_err(|error| Failure::Io { path, error })?;
        let written: Value = serde_json::from_slice(&bytes).map_err(Failure::wrong)?;
        let are_equal = first == again && first == written;
        if are_equal { Ok(first) } else { Err(Failure::Wrong(format!("{first} {again} {written}"))) }
    }

    /// The report of somebody who has no authority: who knows the contract and an Ethereum node, and has a copy of an archive
    /// and files of certificates.
    ///
    /// # Errors
    /// If the command fails.
    pub fn rebuilt_by_anybody(&self, archive: &Path, certificates: &[&Path]) -> Result<Value, Failure> {
        let mut command = std::process::Command::new(crate::place::program("fastpay-node")?);
        command.args(["recover", "--json", "--archive"]).arg(archive);
        for path in certificates {
            command.arg("--certificates").arg(path);
        }
        let (url, id) = (self.chain()?.url().to_owned(), crate::chain::CHAIN_ID.to_string());
        command.args(["--rpc-url", &url, "--chain-id", &id, "--contract", &self.contract()?.to_string()]);
        let said = crate::process::run(command.current_dir(self.place().folder()))?.success()?;
        serde_json::from_str(&said.out).map_err(Failure::wrong)
    }

    /// The contract adopts the checkpoint of this report, and four members begin from it and run.
    ///
    /// # Errors
    /// If a command or the contract refuses.
    pub async fn begin_anew(&mut self, report: &Value, sources: &Sources) -> Result<(), Failure> {
        let wrong = || Failure::Wrong(format!("no report: {report}"));
        let asked = report.get("checkpoint").and_then(Value::as_str).ok_or_else(wrong)?;
        let number = report.get("number").and_then(Value::as_u64).ok_or_else(wrong)?;
        let agreed: B256 = asked.parse().map_err(Failure::wrong)?;
        let mut votes = Vec::new();
        for member in SIGNERS {
            let out = self.place().path(format!("adopt-{asked}-{member}.json"));
            let file = out.display().to_string();
            let command = ["committee", "adopt", "--checkpoint", asked, "--out", &file];
            self.rebuild(member, &command, sources)?.success()?;
            votes.push(out);
        }
        self.adopt(agreed, &votes)?;
        wait_for(PATIENCE, async || {
            let said = self.rebuild(0, &["recover"], sources).map_err(|error| error.to_string())?;
            if said.out.contains("the contract has adopted it") { Ok(()) } else { Err(said.out + &said.err) }
        })
        .await?;
        for member in WRITERS {
            let out = self.member(member)?.archive().display().to_string();
            self.rebuild(member, &["recover", "--out", &out], sources)?.success()?;
        }
        self.certified(number).await?;
        for member in 0..4 {
            self.authority(member)?.stop()?;
            let archive = self.member(member)?.archive().into_os_string();
            self.member(member)?.operate_with(["rebase".into(), "--archive".into(), archive])?.success()?;
        }
        (0..4).try_for_each(|member| self.authority(member)?.start())
    }

    /// Waits until the archives of four members have the certificate of a checkpoint.
    ///
    /// # Errors
    /// If that takes too long.
    pub async fn certified(&self, number: u64) -> Result<(), Failure> {
        wait_for(PATIENCE, async || {
            for authority in self.authorities.iter().take(4) {
                let path = authority.archive().join(format!("{number:010}.certificate.json"));
                if !path.exists() {
                    return Err(format!("{} is not there", path.display()));
                }
            }
            Ok(())
        })
        .await
    }

    /// What a member's archive has, as `fastpay-node archive verify` says.
    ///
    /// # Errors
    /// If the archive is wrong.
    pub fn archived(&self, member: usize) -> Result<Value, Failure> {
        let authority = self.member(member)?;
        let verify = ["archive".into(), "verify".into(), authority.archive().into_os_string(), "--json".into()];
        serde_json::from_str(&authority.operate_with(verify)?.success()?.out).map_err(Failure::wrong)
    }

    /// Copies a member's data folder, while its node does not run.
    ///
    /// # Errors
    /// If it cannot be copied.
    pub fn copy_data(&self, member: usize, name: &str) -> Result<PathBuf, Failure> {
        let to = self.place().path(name);
        let mut copy = std::process::Command::new("cp");
        crate::process::run(copy.arg("-a").args([self.member(member)?.data(), to.clone()]))?.success()?;
        Ok(to)
    }
}
