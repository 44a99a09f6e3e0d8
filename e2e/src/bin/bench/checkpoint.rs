//! The committee's checkpoints and the rebase with millions of accounts: how long each takes, and its peak of memory.
//!
//! The archive's first checkpoint and the data folder are written as a rebase would leave them, and signed with the keys
//! of the whole committee. Then one authority does its work in this process: propose, sign, certify, rebase.

use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use fastpay_core::checkpoint::{Checkpoint, CheckpointState, Leaf, StateSummary};
use fastpay_core::{
    AccountId, Amount, Asset, AssetTotals, AuthorityKeys, Balance, Base, BaseAccount, BaseLedger, Certificate,
    Committee, Digest, Domain, Effect, Epoch, GenesisBalance, JournalPosition, Link, Record, SequenceNumber,
    TransactionIndex,
};
use fastpay_e2e::{Failure, Layout, Network, Place};
use fastpay_node::authority::certification::{
    Archive, CheckpointVoteFile, Inputs, ORDERS_MAX, ProposedCut, certify, propose, sign,
};
use fastpay_node::authority::config::Config;
use fastpay_node::authority::storage::{Journal, JournalError, JournalOptions, JournalWrite};
use fastpay_node::operator::rebase::rebase;
use fastpay_program::Clock;
use fastpay_rpc::json::Hex;
use fastpay_rpc::proto::SubmitRequest;
use fastpay_rpc::proto::submit_request::Request;
use prost::Message;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::draw;
use crate::meter::{forget_peak, peak_bytes};
use crate::recovery::bystander;
use crate::statistics::rounded;
use crate::workload::{self, Accounts, Voters};
use crate::{progress, runtime};

/// The magic of a stored state.
const MAGIC: &[u8; 8] = b"FPSTAT\0\x01";
/// What each account but the payers holds.
const HELD: Amount = Amount(1);

/// The figures, of an authority with one shard.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Checkpoints {
    pub accounts: usize,
    /// The orders since the checkpoint before, each of an account of its own.
    pub orders: usize,
    pub state_bytes: u64,
    pub propose: Cost,
    pub sign: Cost,
    pub certify: Cost,
    pub rebase: Cost,
}

/// What a step costs.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Cost {
    pub seconds: f64,
    /// The most memory that the process held meanwhile.
    pub peak_mib: f64,
}

/// A row of the first state.
struct Row {
    account: AccountId,
    next: SequenceNumber,
    balance: Balance,
}

pub fn measure(accounts: usize, orders: usize) -> Result<Checkpoints, Failure> {
    progress(&format!("checkpoint: a folder and an archive of {accounts} accounts"));
    let first = GenesisBalance { account: AccountId([1; 32]), asset: Asset::ETHER, amount: Amount(1) };
    let layout = Layout { shards: 1, ..Layout::default() };
    let mut network = Network::prepare_standalone(Place::fixed("bench-checkpoint")?, layout, vec![first])?;
    let keys = network.authorities.iter().map(|authority| authority.secret_keys()).collect::<Result<Vec<_>, _>>()?;
    let own = keys.first().ok_or_else(|| Failure::wrong("no authority"))?;
    let (domain, committee) = (*network.domain(), network.committee().clone());
    let config = Config::read(network.authority(0)?.config(), Default::default()).map_err(Failure::wrong)?;
    let folder = config.data.with_file_name("archive");
    let archive = Archive::new(&folder);

    let payers = Accounts::new(orders);
    let rows = rows(&payers, accounts);
    let state_bytes = write_state(&archive, &rows, &committee)?;
    let checkpoint = certify_first(&archive, &domain, &committee, &keys)?;
    let digest = domain.checkpoint_digest(&checkpoint);
    let voters = Voters { domain: &domain, keys: &keys, batch: 32 };
    write_journal(&config.data.join("shard-000/journal"), (&checkpoint, digest), &rows, &payers, &voters)?;
    drop((rows, payers));

    let inputs = Inputs { config: &config, archive: &folder, orders_max: ORDERS_MAX, clock: Clock::system() };
    let (runtime, mut told) = (runtime()?, |_: String| ());
    let (proposal, propose) = cost("propose", || runtime.block_on(propose(inputs, &mut told)).map_err(Failure::wrong))?;
    let (signed, sign) = cost("sign", || {
        let cut = ProposedCut::read(&proposal.cut).map_err(Failure::wrong)?;
        let signer = (Epoch(0), std::slice::from_ref(own));
        Ok((runtime.block_on(sign(inputs, signer, &cut, &mut told)).map_err(Failure::wrong)?, cut.checkpoint))
    })?;
    let (signed, checkpoint) = signed;
    let votes: Vec<_> = keys.iter().map(|keys| vote(&checkpoint, signed.vote.checkpoint, keys, &domain)).collect();
    let (_, certify) =
        cost("certify", || runtime.block_on(certify(inputs, &votes, &mut told)).map_err(Failure::wrong))?;
    let (rebased, rebase) =
        cost("rebase", || runtime.block_on(rebase(&config, &folder, None, None, &mut told)).map_err(Failure::wrong))?;
    let is_whole = (rebased.checkpoint, rebased.was_complete, rebased.accounts) == (2, true, accounts as u64);
    if !is_whole {
        return Err(Failure::wrong(format!("the folder was not rebased as a whole: {rebased:?}")));
    }
    Ok(Checkpoints { accounts, orders, state_bytes, propose, sign, certify, rebase })
}

fn cost<T>(what: &str, work: impl FnOnce() -> Result<T, Failure>) -> Result<(T, Cost), Failure> {
    progress(&format!("checkpoint: {what}"));
    forget_peak();
    let begun = Instant::now();
    let done = work()?;
    let peak_mib = rounded(peak_bytes() as f64 / f64::from(1 << 20), 0);
    Ok((done, Cost { seconds: rounded(begun.elapsed().as_secs_f64(), 1), peak_mib }))
}

/// The payers, and others that have made one payment each, in the order of accounts.
fn rows(payers: &Accounts, accounts: usize) -> Vec<Row> {
    let row = |next, account, amount| Row { account, next: SequenceNumber(next), balance: Balance::from(amount) };
    let paying = payers.balances().into_iter().map(|held| row(0, held.account, held.amount));
    let others = (0..accounts.saturating_sub(payers.ids().len()) as u64).map(bystander);
    let mut rows: Vec<_> = paying.chain(others.map(|held| row(1, held.account, HELD))).collect();
    rows.sort_unstable_by_key(|row| row.account);
    rows
}

fn write_state(archive: &Archive, rows: &[Row], committee: &Committee) -> Result<u64, Failure> {
    let path = archive.state_path(1);
    let failed = |error| Failure::Io { path: path.clone(), error };
    let write = || {
        let folder = path.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder)?;
        let mut file = BufWriter::new(File::create(&path)?);
        file.write_all(MAGIC)?;
        let taken = rows.iter().filter(|row| row.next != SequenceNumber(0));
        let next = taken.map(|row| Leaf::Next(row.account, row.next));
        let first = CheckpointState::new(committee.clone()).expect("the committee is of epoch 0");
        let committees = first.installations().iter().cloned().map(Leaf::Committee);
        let balances = rows.iter().map(|row| Leaf::Balance(row.account, Asset::ETHER, row.balance));
        for leaf in [Leaf::UpTo(TransactionIndex(1))].into_iter().chain(next).chain(committees).chain(balances) {
            let bytes = borsh::to_vec(&leaf)?;
            file.write_all(&(bytes.len() as u32).to_le_bytes())?;
            file.write_all(&bytes)?;
        }
        file.flush()?;
        Ok(path.metadata()?.len())
    };
    write().map_err(failed)
}

/// The first checkpoint, which the whole committee signs as if it had followed from a segment.
fn certify_first(
    archive: &Archive,
    domain: &Domain,
    committee: &Committee,
    keys: &[AuthorityKeys],
) -> Result<Checkpoint, Failure> {
    let path = archive.state_path(1);
    let failed = |error| Failure::Io { path: path.clone(), error };
    let state = File::open(&path).and_then(|file| StateSummary::read(&mut BufReader::new(file))).map_err(failed)?;
    let first = CheckpointState::new(committee.clone()).map_err(Failure::wrong)?;
    let next = Checkpoint::first(&first.summary()).next(domain, Epoch(0), &state, Digest::ZERO);
    let checkpoint = next.ok_or_else(|| Failure::wrong("no next number"))?;
    let Checkpoint { epoch, number, previous, up_to, cut, state, segment } = checkpoint;
    let mut votes: Vec<_> = keys.iter().map(|keys| checkpoint.sign(keys, domain)).collect();
    votes.sort_by_key(|vote| vote.authority);
    let votes = votes.iter().take(committee.quorum());
    let votes: Vec<_> =
        votes.map(|vote| json!({ "authority": vote.authority, "signature": Hex(vote.signature.0) })).collect();
    let fields = json!({
        "epoch": epoch, "number": number, "previous": previous, "upTo": up_to, "cut": cut, "state": state,
        "segment": segment,
    });
    let text = json!({ "checkpoint": fields, "votes": votes }).to_string();
    std::fs::write(archive.certificate_path(1), text).map_err(failed)?;
    Ok(checkpoint)
}

/// A journal that begins at the checkpoint, and the payers' payments.
fn write_journal(
    folder: &Path,
    (checkpoint, digest): (&Checkpoint, Digest),
    rows: &[Row],
    payers: &Accounts,
    voters: &Voters<'_>,
) -> Result<(), Failure> {
    let options = JournalOptions::default();
    let mut journal = Journal::open(folder, options, JournalPosition::default()).map_err(Failure::wrong)?;
    let mut append = |record: &Record| {
        let bytes = borsh::to_vec(record).map_err(Failure::wrong)?;
        match journal.append(&bytes) {
            Err(JournalError::BatchFull { .. }) => {
                journal.commit().map_err(Failure::wrong)?;
                journal.append(&bytes).map(drop).map_err(Failure::wrong)
            }
            appended => appended.map(drop).map_err(Failure::wrong),
        }
    };
    let mut base = |base| append(&Record::Base(Box::new(base)));
    base(Base::Checkpoint(BaseLedger {
        number: checkpoint.number,
        checkpoint: digest,
        generation: 0,
        synchronized: checkpoint.up_to,
        epoch: Epoch(0),
        compromised: Vec::new(),
        redemptions: 0,
    }))?;
    let held = rows.iter().fold(Balance::ZERO, |sum, row| sum.plus(row.balance));
    base(Base::Totals(vec![(
        Asset::ETHER,
        AssetTotals { accounts: held, deposited: held, ..AssetTotals::default() },
    )]))?;
    for row in rows {
        base(Base::Account(BaseAccount {
            account: row.account,
            checkpoint: checkpoint.number,
            next: row.next,
            received: 0,
            deposits: 0,
            balances: [(Asset::ETHER, row.balance)].into_iter().collect(),
        }))?;
    }
    let layout = fastpay_core::ShardLayout::new(std::num::NonZeroU32::MIN);
    let link = || Link { number: 0, previous: None, skip: None };
    for payment in workload::prepare(&draw::rounds(payers.ids().len(), 1), payers, layout, voters) {
        let certificate = match SubmitRequest::decode(payment.certificate).map_err(Failure::wrong)?.request {
            Some(Request::Certificate(certificate)) => Certificate::try_from(certificate).map_err(Failure::wrong)?,
            _ => return Err(Failure::wrong("not a certificate")),
        };
        let effect = Effect::Credited { received: link() };
        append(&Record::Confirmation { certificate: Arc::new(certificate), sent: link(), effect })?;
    }
    journal.commit().map_err(Failure::wrong)
}

fn vote(checkpoint: &Checkpoint, digest: Digest, keys: &AuthorityKeys, domain: &Domain) -> CheckpointVoteFile {
    let vote = checkpoint.sign(keys, domain);
    CheckpointVoteFile {
        number: checkpoint.number,
        checkpoint: digest,
        epoch: checkpoint.epoch,
        authority: vote.authority,
        signature: Hex(vote.signature.0),
    }
}
