//! `fastpay-ledger-localnet FOLDER`: a cluster of four that settles, and a FastPay committee of four on it, as processes,
//! for the tests of the SDK and of the web wallet. It writes `FOLDER/network.json`, and ends with its input.
//!
//! ```text
//!  fund ACCOUNT AMOUNT      a bank deposits into an account; answered when a quorum has credited it
//!  redeem AMOUNT ADDRESS    the bank redeems to an address' reserve; answered when the ledger has paid it
//!  rotate                   the same members begin the next epoch
//! ```
//! Each line of input is answered with a line of JSON.
#![allow(clippy::print_stdout)]

use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use fastpay_core::{
    AccountKey, AuthorityKeys, Committee, CouncilStatement, Digest, Epoch, PossessionProof, PrimaryAddress,
    sign_council_vote,
};
use fastpay_ledger_member::authorities::{Authorities, Wallet};
use fastpay_ledger_member::localnet::{Localnet, Shape};
use fastpay_ledger_statement::{Action, Announced, Announcing, ClusterId, CommitteeNumber, NextCommittee, StateKey};
use fastpay_program::Clock;
use serde_json::{Value, json};
use tokio::time::sleep;

const CLUSTER: u32 = 1;
const COMMITTEE: CommitteeNumber = CommitteeNumber(0);
/// A million of the native asset, which has 18 decimals.
const ISSUED: u128 = 10_u128.pow(24);
/// The bank's secret.
const BANK: [u8; 32] = [1; 32];
/// An announcement must be on the ledger within so many seconds.
const DEADLINE_S: u64 = 3_600;
/// An announcement matures within so many seconds.
const PATIENCE_S: u64 = 60;

type Failure = Box<dyn std::error::Error + Send + Sync>;

struct Running {
    net: Localnet,
    authorities: Authorities,
    bank: Wallet,
    epoch: Epoch,
}

impl Running {
    async fn start(folder: &Path) -> Result<Self, Failure> {
        let program = std::env::current_exe()?.with_file_name("fastpay-ledger");
        let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/debug");
        let mut authorities = Authorities::new(&programs, folder)?;
        let shape = Shape {
            shards: vec![CLUSTER],
            issued: vec![(AccountKey::ed25519(BANK).account(), ISSUED)],
            authorities: authorities.public().to_vec(),
            ..Shape::default()
        };
        let mut net = Localnet::new(&program, folder, &shape)?;
        net.start_and_wait().await?;
        let ledger = net.ledger();
        let endpoints = authorities.start(&ledger).await?;
        let bank = authorities.wallet("bank", BANK, &ledger)?;
        let description = net.network().describe(COMMITTEE);
        let file = json!({ "ledger": description, "authorities": endpoints, "relayers": [] });
        // A reader that waits for the file must not see half of it.
        let draft = folder.join("network.json.draft");
        std::fs::write(&draft, file.to_string())?;
        std::fs::rename(draft, folder.join("network.json"))?;
        Ok(Self { net, authorities, bank, epoch: Epoch(0) })
    }

    async fn obey(&mut self, line: &str) -> Result<Value, Failure> {
        match line.split_whitespace().collect::<Vec<_>>()[..] {
            ["fund", account, amount] => Ok(self.bank.run(&["deposit", amount, "--to", account, "--wait", "60"])?),
            ["redeem", amount, address] => Ok(self.bank.run(&["redeem", amount, "--to", address, "--self"])?),
            ["rotate"] => self.rotate().await,
            _ => Err("fund ACCOUNT AMOUNT, redeem AMOUNT ADDRESS or rotate".into()),
        }
    }

    async fn rotate(&mut self) -> Result<Value, Failure> {
        let client = self.net.client();
        let domain = client.layout().deployment().domain(COMMITTEE);
        let epoch = Epoch(self.epoch.0 + 1);
        let mut keys: Vec<AuthorityKeys> = self.authorities.keys()?;
        keys.sort_by_key(|keys| keys.public().name);
        let committee = Committee::new(epoch, self.authorities.public().to_vec())?;
        let quorum = committee.quorum();
        let deadline = Clock::system().now_ms() / 1_000 + DEADLINE_S;
        let (guardian, checkpoint) = (PrimaryAddress::ZERO, Digest::ZERO);
        let next = NextCommittee { committee, guardian, compromised_since: epoch, checkpoint, deadline };
        let (id, statement) = (next.id(&domain), next.announcement());
        let vote = |statement: &CouncilStatement<'_>| {
            keys.iter().take(quorum).map(|keys| sign_council_vote(keys, &domain, statement)).collect()
        };
        let votes = vote(&CouncilStatement::Announcement(&statement));
        let proofs = keys.iter().map(|keys| PossessionProof::new(keys, &domain).into()).collect();
        let act = async |action| client.instruct(&AccountKey::ed25519(BANK), ClusterId(CLUSTER), None, &action).await;
        act(Action::Announce(Box::new(Announcing { committee: COMMITTEE, next, proofs, votes }))).await?;
        // The delay passes by the ledger's time.
        for _ in 0..PATIENCE_S {
            sleep(Duration::from_secs(1)).await;
            if act(Action::Mature { committee: COMMITTEE, announcement: id }).await.is_ok() {
                break;
            }
        }
        let announced: Option<Announced> = client.entry(&StateKey::Announcement(COMMITTEE, id)).await?;
        let acceptance = announced.and_then(|announced| announced.acceptance(id)).ok_or("it has not matured")?;
        act(Action::Install { committee: COMMITTEE, announcement: id, votes: vote(&acceptance) }).await?;
        self.epoch = epoch;
        Ok(json!({ "epoch": epoch }))
    }
}

async fn run(folder: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(folder)?;
    let mut running = Running::start(&folder.canonicalize()?).await?;
    println!("{}", json!({ "ready": true }));
    for line in std::io::stdin().lock().lines() {
        let answer = running.obey(&line?).await.unwrap_or_else(|failure| json!({ "error": failure.to_string() }));
        println!("{answer}");
    }
    Ok(())
}

#[tokio::main]
async fn main() -> ExitCode {
    let Some(folder) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("give a folder");
        return ExitCode::FAILURE;
    };
    match run(&folder).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}
