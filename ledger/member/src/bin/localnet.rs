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

use fastpay_core::{
    AccountKey, Announcement, AuthorityKeys, Committee, CouncilStatement, Digest, Epoch, PrimaryAddress,
    sign_council_vote,
};
use fastpay_ledger_member::authorities::{Authorities, Wallet};
use fastpay_ledger_member::localnet::{Localnet, Shape};
use fastpay_ledger_statement::{Action, ClusterId, CommitteeNumber, Rotation};
use fastpay_program::Clock;
use serde_json::{Value, json};

const CLUSTER: u32 = 1;
const COMMITTEE: CommitteeNumber = CommitteeNumber(0);
/// A million of the native asset, which has 18 decimals.
const ISSUED: u128 = 10_u128.pow(24);
/// The bank's secret.
const BANK: [u8; 32] = [1; 32];
/// A rotation must be on the ledger within so many seconds.
const DEADLINE_S: u64 = 3_600;

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
        let next = Committee::new(epoch, self.authorities.public().to_vec())?;
        let (compromised_since, checkpoint) = (epoch, Digest::ZERO);
        let deadline = Clock::system().now_ms() / 1_000 + DEADLINE_S;
        let announcement = Announcement {
            committee: next.clone(),
            guardian: PrimaryAddress::ZERO,
            recovery: PrimaryAddress::ZERO,
            compromised_since,
            checkpoint,
            deadline,
        };
        let mut keys: Vec<AuthorityKeys> = self.authorities.keys()?;
        keys.sort_by_key(|keys| keys.public().name);
        keys.truncate(next.quorum());
        let vote = |statement: &CouncilStatement<'_>| {
            keys.iter().map(|keys| sign_council_vote(keys, &domain, statement)).collect()
        };
        let announced = CouncilStatement::Announcement(&announcement);
        let announcing = vote(&announced);
        let announcement = domain.council_digest(&announced);
        let accepting = vote(&CouncilStatement::Acceptance { epoch, announcement, block_hash: Digest::ZERO });
        let rotation =
            Rotation { committee: COMMITTEE, next, compromised_since, checkpoint, deadline, announcing, accepting };
        let action = Action::Rotate(Box::new(rotation));
        client.instruct(&AccountKey::ed25519(BANK), ClusterId(CLUSTER), None, &action).await?;
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
