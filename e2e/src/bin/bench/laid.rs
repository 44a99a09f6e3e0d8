//! An archive's first checkpoint, and a journal that begins there, with millions of accounts: written as a rebase would
//! leave them, and signed with the keys of the whole committee. A genesis file of so many would take longer to read than
//! the whole measurement.

use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use fastpay_core::checkpoint::{Checkpoint, CheckpointState, Leaf, StateSummary};
use fastpay_core::{
    AccountId, Amount, Asset, AssetTotals, AuthorityKeys, Balance, Base, BaseAccount, BaseLedger, Certificate,
    Committee, Digest, Domain, Effect, Epoch, GenesisBalance, JournalPosition, Link, Record, SequenceNumber,
    TransactionIndex,
};
use fastpay_e2e::Failure;
use fastpay_node::authority::certification::Archive;
use fastpay_node::authority::storage::{Journal, JournalError, JournalOptions, JournalWrite};
use fastpay_rpc::json::Hex;
use fastpay_rpc::proto::SubmitRequest;
use fastpay_rpc::proto::submit_request::Request;
use prost::Message;
use serde_json::json;

use crate::recovery::bystander;
use crate::workload::{Accounts, Prepared};

/// The magic of a stored state.
const MAGIC: &[u8; 8] = b"FPSTAT\0\x01";
/// A stored segment without entries, whose root is zero.
const NO_ENTRIES: &[u8; 8] = b"FPSEGM\0\x01";
/// What each account but the payers holds.
const HELD: Amount = Amount(1);

/// A row of the first state.
struct Row {
    account: AccountId,
    next: SequenceNumber,
    balance: Balance,
}

/// A committee with the keys of all members, and the accounts that pay.
pub struct Signers<'a> {
    pub domain: &'a Domain,
    pub committee: &'a Committee,
    pub keys: &'a [AuthorityKeys],
    pub payers: &'a Accounts,
}

/// The genesis of the network: its one balance, the Primary's one event, is all that is read from the file.
pub fn genesis() -> GenesisBalance {
    GenesisBalance { account: AccountId([1; 32]), asset: Asset::ETHER, amount: Amount(1) }
}

/// Writes an archive with one checkpoint of so many accounts, and a journal that begins there and then has these
/// payments, all within one shard. Returns the bytes of the state.
pub fn lay(
    (archive, journal): (&Archive, &Path),
    signers: &Signers<'_>,
    accounts: usize,
    payments: &[Prepared],
) -> Result<u64, Failure> {
    let rows = rows(signers.payers, accounts);
    let state_bytes = write_state(archive, &rows, signers.committee)?;
    let path = archive.segment_path(1);
    std::fs::write(&path, NO_ENTRIES).map_err(|error| Failure::Io { path, error })?;
    let checkpoint = certify_first(archive, signers)?;
    let digest = signers.domain.checkpoint_digest(&checkpoint);
    write_journal(journal, (&checkpoint, digest), &rows, payments)?;
    Ok(state_bytes)
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
fn certify_first(archive: &Archive, signers: &Signers<'_>) -> Result<Checkpoint, Failure> {
    let Signers { domain, committee, keys, .. } = *signers;
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

/// A journal that begins at the checkpoint, and then has these payments, all within one shard.
fn write_journal(
    folder: &Path,
    (checkpoint, digest): (&Checkpoint, Digest),
    rows: &[Row],
    payments: &[Prepared],
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
    let link = || Link { number: 0, previous: None, skip: None };
    for payment in payments {
        let certificate = match SubmitRequest::decode(payment.certificate.clone()).map_err(Failure::wrong)?.request {
            Some(Request::Certificate(certificate)) => Certificate::try_from(certificate).map_err(Failure::wrong)?,
            _ => return Err(Failure::wrong("not a certificate")),
        };
        let effect = Effect::Credited { received: link() };
        append(&Record::Confirmation { certificate: Arc::new(certificate), sent: link(), effect })?;
    }
    journal.commit().map_err(Failure::wrong)
}
