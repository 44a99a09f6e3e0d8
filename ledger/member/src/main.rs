//! `fastpay-ledger`: makes keys, runs a member, and asks the ledger.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command as Process, ExitCode};

use clap::{Args, Parser, Subcommand};
use fastpay_core::{AccountId, AccountKey, Amount, Asset};
use fastpay_ledger_client::{Client, ClientError, Network, NetworkError};
use fastpay_ledger_member::End;
use fastpay_ledger_member::member::{MemberError, init, passphrase, run};
use fastpay_ledger_statement::{
    Action, ClusterId, CommitteeNumber, Condition, Entry, Get, Height, Key, MemberKeys, Namespace, Outcome, Rejection,
    Request, StateKey, Value, Version,
};
use fastpay_program::console::{LogFormat, LostAnswer, answer, end_at_arguments, fail, start_log};
use fastpay_program::keystore::{KeystoreError, Secret, read_secret, write_secret};
use fastpay_program::{ErrorKind, stop_signal};
use serde_json::{Value as Json, json};

/// A ledger of Byzantine fault tolerant clusters.
#[derive(Debug, Parser)]
#[command(name = "fastpay-ledger", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Makes a key, of a member or of an account, and prints its public side.
    Keygen {
        /// The new key file.
        file: PathBuf,
    },
    /// Makes the folder of a new member.
    Init {
        /// The new folder.
        folder: PathBuf,
        /// The ledger's file.
        #[arg(long)]
        ledger: PathBuf,
        /// The member's key file.
        #[arg(long)]
        key: PathBuf,
    },
    /// Runs a member until it is stopped.
    Run {
        /// The member's folder.
        folder: PathBuf,
    },
    /// Prints what the members have decided, proven.
    Status {
        /// The ledger's file.
        #[arg(long)]
        ledger: PathBuf,
    },
    /// Prints what a browser needs to read a FastPay committee by itself, for the `ledger` of a page's network.json.
    Describe {
        /// The ledger's file.
        #[arg(long)]
        ledger: PathBuf,
        /// The number of the committee.
        #[arg(long, default_value_t = 0)]
        committee: u32,
    },
    /// Reads a value with its proof.
    Get {
        /// The ledger's file.
        #[arg(long)]
        ledger: PathBuf,
        /// The namespace.
        namespace: String,
        /// The key.
        key: String,
        /// Sends the read through a round, so that nothing newer exists when it is answered.
        #[arg(long)]
        newest: bool,
        /// The coordinator to ask; without it the client finds the shard itself.
        #[arg(long, requires = "newest")]
        via: Option<u32>,
    },
    /// Writes a value.
    Put {
        #[command(flatten)]
        write: Write,
        /// The value.
        value: String,
    },
    /// Deletes a value.
    Delete {
        #[command(flatten)]
        write: Write,
    },
    /// Reserves.
    #[command(subcommand)]
    Reserve(Reserve),
    /// Checks that all clusters together hold what was issued.
    Audit {
        /// The ledger's file.
        #[arg(long)]
        ledger: PathBuf,
    },
}

#[derive(Debug, Args)]
struct Signer {
    /// The ledger's file.
    #[arg(long)]
    ledger: PathBuf,
    /// The key file of the account that signs.
    #[arg(long)]
    key: PathBuf,
    /// The coordinator to send it through; without it the client finds the shard itself.
    #[arg(long)]
    via: Option<u32>,
}

#[derive(Debug, Args)]
struct Write {
    #[command(flatten)]
    signer: Signer,
    /// The namespace, whose writer signs.
    namespace: String,
    /// The key of the value.
    #[arg(value_name = "KEY")]
    name: String,
    /// Only if the value has this version, as `get` prints it.
    #[arg(long, conflicts_with = "if_absent")]
    if_version: Option<String>,
    /// Only if there is no value.
    #[arg(long)]
    if_absent: bool,
}

#[derive(Debug, Subcommand)]
enum Reserve {
    /// Opens the signer's reserves.
    Open {
        #[command(flatten)]
        signer: Signer,
    },
    /// Moves an amount to another reserve.
    Transfer {
        #[command(flatten)]
        signer: Signer,
        /// The owner of the other reserve.
        to: AccountId,
        /// In the asset's smallest unit.
        amount: Amount,
        /// The asset.
        #[arg(long, value_parser = asset, default_value = NATIVE)]
        asset: Asset,
    },
    /// Moves an amount to an account of a FastPay committee.
    Fund {
        #[command(flatten)]
        signer: Signer,
        /// The FastPay account.
        account: AccountId,
        /// In the asset's smallest unit.
        amount: Amount,
        /// The asset.
        #[arg(long, value_parser = asset, default_value = NATIVE)]
        asset: Asset,
        /// The number of the committee.
        #[arg(long, default_value_t = 0)]
        committee: u32,
    },
    /// Prints what is in a reserve, proven.
    Show {
        /// The ledger's file.
        #[arg(long)]
        ledger: PathBuf,
        /// Its owner.
        owner: AccountId,
        /// The asset.
        #[arg(long, value_parser = asset, default_value = NATIVE)]
        asset: Asset,
    },
}

const NATIVE: &str = "0x0000000000000000000000000000000000000000";

fn asset(text: &str) -> Result<Asset, String> {
    serde_json::from_value(json!(text)).map_err(|error| error.to_string())
}

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Member(#[from] MemberError),
    #[error(transparent)]
    Network(#[from] NetworkError),
    #[error(transparent)]
    Key(#[from] KeystoreError),
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(transparent)]
    Answer(#[from] LostAnswer),
    #[error("{0}")]
    Argument(&'static str),
    #[error("the key has another version now: {0}")]
    Condition(String),
    #[error("the sums do not agree; stop, and find the cluster that made or lost money")]
    Audit,
    #[error("the system refuses: {0}")]
    System(#[from] std::io::Error),
}

impl Failure {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Member(MemberError::Key(_)) | Self::Key(_) => ErrorKind::Key,
            Self::Member(MemberError::Folder { .. } | MemberError::Host(_)) => ErrorKind::Storage,
            Self::Member(MemberError::EngineEnded | MemberError::Engine(_) | MemberError::Listen { .. }) => {
                ErrorKind::System
            }
            Self::Member(_) | Self::Network(_) => ErrorKind::Config,
            Self::Client(ClientError::NoAnswer { .. }) => ErrorKind::Unreachable,
            Self::Client(ClientError::Rejected(Rejection::ReserveTooLow(_))) => ErrorKind::Funds,
            Self::Client(ClientError::Rejected(_)) | Self::Condition(_) => ErrorKind::Conflict,
            Self::Client(_) => ErrorKind::Config,
            Self::Answer(_) => ErrorKind::Output,
            Self::Argument(_) => ErrorKind::Argument,
            Self::Audit => ErrorKind::Audit,
            Self::System(_) => ErrorKind::System,
        }
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return end_at_arguments(&error),
    };
    start_log(LogFormat::Text, "FASTPAY_LEDGER_LOG", "warn,fastpay_ledger_member=info");
    match carry_out(arguments.command).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => fail(failure.kind(), &failure, None),
    }
}

async fn carry_out(command: Command) -> Result<(), Failure> {
    match command {
        Command::Keygen { file } => {
            let secret = Secret::new(rand::random());
            write_secret(&file, &secret, None)?;
            let (member, account) = (MemberKeys::from_seed(*secret).public(), AccountKey::ed25519(*secret).account());
            say(json!({ "member": member.to_string(), "account": account }))
        }
        Command::Init { folder, ledger, key } => {
            let (cluster, member) = init(&folder, &ledger, &key)?;
            say(json!({ "cluster": cluster, "member": member.to_string() }))
        }
        Command::Run { folder } => {
            if run(&folder, stop_signal()?).await? == End::MayVote {
                tracing::info!("this member may vote again, and starts anew");
                return Err(Process::new(std::env::current_exe()?).args(std::env::args_os().skip(1)).exec().into());
            }
            Ok(())
        }
        Command::Status { ledger } => status(&Client::new(&Network::read(&ledger)?)?).await,
        Command::Describe { ledger, committee } => {
            let network = Network::read(&ledger)?;
            // A genesis that no member would run is not described.
            Client::new(&network)?;
            let description = network.describe(CommitteeNumber(committee));
            say(json!(description.ok_or(Failure::Argument("the ledger's file lists no such committee"))?))
        }
        Command::Get { ledger, namespace, key, newest, via } => {
            let client = Client::new(&Network::read(&ledger)?)?;
            get(&client, place(namespace, key)?, newest, via.map(ClusterId)).await
        }
        Command::Put { write, value } => {
            let value = Value::new(value.into_bytes()).ok_or(Failure::Argument("the value is longer than 16 KiB"))?;
            put(write, Some(value)).await
        }
        Command::Delete { write } => put(write, None).await,
        Command::Reserve(reserve) => carry_out_reserve(reserve).await,
        Command::Audit { ledger } => audit(&Client::new(&Network::read(&ledger)?)?).await,
    }
}

fn say(document: Json) -> Result<(), Failure> {
    Ok(answer(document)?)
}

fn place(namespace: String, key: String) -> Result<(Namespace, Key), Failure> {
    let namespace = Namespace::new(namespace).ok_or(Failure::Argument("a namespace is up to 64 of a-z, 0-9 and -"))?;
    let key = Key::new(key.into_bytes()).ok_or(Failure::Argument("a key has 1 to 256 bytes"))?;
    Ok((namespace, key))
}

fn written(version: Version) -> String {
    format!("{}-{}", version.height, version.position)
}

fn read_version(text: &str) -> Option<Version> {
    let (height, position) = text.split_once('-')?;
    Some(Version { height: Height(height.parse().ok()?), position: position.parse().ok()? })
}

async fn status(client: &Client) -> Result<(), Failure> {
    let mut clusters = Vec::new();
    for cluster in client.layout().genesis().clusters.keys() {
        let members: Vec<Json> = (client.status(*cluster).await?.into_iter())
            .map(|(key, status)| match status {
                Some(status) => json!({
                    "member": key.to_string(), "index": status.member, "height": status.height,
                    "leader": status.leader, "votes": status.votes,
                }),
                None => json!({ "member": key.to_string(), "answers": false }),
            })
            .collect();
        clusters.push(json!({ "cluster": cluster, "members": members }));
    }
    say(json!({ "deployment": client.layout().deployment(), "clusters": clusters }))
}

async fn get(
    client: &Client,
    (namespace, key): (Namespace, Key),
    newest: bool,
    via: Option<ClusterId>,
) -> Result<(), Failure> {
    let shard = client.partition().of_value(&namespace, &key);
    let (height, time, entry) = if newest {
        let request = Request::Get(Get { namespace, key, nonce: rand::random() });
        let proven = client.submit(via.unwrap_or(shard), &request).await?;
        let entry = match proven.result.map_err(ClientError::from)? {
            Outcome::Found { version, value } => Some(Entry { version, value }),
            _ => None,
        };
        (proven.height, proven.time, entry)
    } else {
        let reading = client.read(shard, &StateKey::Stored(namespace, key), Default::default()).await?;
        let entry = reading.value.map(|value| borsh::from_slice(&value).map_err(|_| ClientError::Malformed));
        (reading.height, reading.time, entry.transpose()?)
    };
    let entry = entry.map(|Entry { version, value }| {
        json!({ "version": written(version), "value": String::from_utf8_lossy(value.as_bytes()) })
    });
    say(json!({ "cluster": shard, "height": height, "timeMs": time, "entry": entry }))
}

/// A signer's client, key, and the coordinator that it goes through.
fn signer(signer: &Signer) -> Result<(Client, AccountKey, Option<ClusterId>), Failure> {
    let client = Client::new(&Network::read(&signer.ledger)?)?;
    let key = AccountKey::ed25519(*read_secret(&signer.key, &passphrase())?);
    Ok((client, key, signer.via.map(ClusterId)))
}

async fn put(write: Write, value: Option<Value>) -> Result<(), Failure> {
    let (client, key, via) = signer(&write.signer)?;
    let (namespace, name) = place(write.namespace, write.name)?;
    let condition = match (&write.if_version, write.if_absent) {
        (None, false) => Condition::Always,
        (None, true) => Condition::Absent,
        (Some(text), _) => {
            Condition::Version(read_version(text).ok_or(Failure::Argument("a version is as `get` prints it"))?)
        }
    };
    let shard = client.partition().of_value(&namespace, &name);
    let action = Action::Write { namespace, key: name, condition, value };
    match client.instruct(&key, shard, via, &action).await? {
        Outcome::Written(version) => say(json!({ "cluster": shard, "version": written(version) })),
        Outcome::ConditionFailed(now) => Err(Failure::Condition(now.map_or("none".to_owned(), written))),
        _ => Err(ClientError::Malformed.into()),
    }
}

async fn carry_out_reserve(reserve: Reserve) -> Result<(), Failure> {
    let (of, action) = match reserve {
        Reserve::Show { ledger, owner, asset } => {
            let client = Client::new(&Network::read(&ledger)?)?;
            let balance = client.reserve(owner, asset).await?;
            return say(json!({ "owner": owner, "asset": asset, "balance": balance }));
        }
        Reserve::Open { signer } => (signer, Action::Open),
        Reserve::Transfer { signer, to, amount, asset } => (signer, Action::Transfer { to, asset, amount }),
        Reserve::Fund { signer, account, amount, asset, committee } => {
            (signer, Action::Fund { committee: CommitteeNumber(committee), account, asset, amount })
        }
    };
    let (client, key, via) = signer(&of)?;
    let shard = client.partition().of_reserve(&key.account());
    let outcome = client.instruct(&key, shard, via, &action).await?;
    say(json!({ "cluster": shard, "outcome": format!("{outcome:?}") }))
}

async fn audit(client: &Client) -> Result<(), Failure> {
    let audit = fastpay_ledger_member::audit::audit(client).await?;
    let mut clusters = Vec::new();
    for (cluster, state) in &audit.states {
        for (asset, held) in state.holdings() {
            clusters.push(json!({
                "cluster": cluster, "asset": asset, "reserves": held.reserves, "omnibus": held.omnibus,
                "bonds": held.bonds, "sent": held.sent, "taken": held.taken,
            }));
        }
    }
    let differences: Vec<Json> = (audit.differences.iter())
        .map(|(asset, difference)| json!({ "asset": asset, "issued": client.layout().issued(*asset), "difference": difference }))
        .collect();
    let overdrafts: Vec<Json> = (audit.overdrafts.iter())
        .map(|found| json!({ "from": found.from, "to": found.to, "asset": found.asset, "excess": found.excess }))
        .collect();
    say(json!({ "holdings": clusters, "assets": differences, "overdrafts": overdrafts }))?;
    let agrees = audit.overdrafts.is_empty()
        && audit.differences.values().all(|difference| *difference == fastpay_core::Balance::ZERO);
    if agrees { Ok(()) } else { Err(Failure::Audit) }
}
