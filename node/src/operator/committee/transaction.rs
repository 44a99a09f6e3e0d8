//! Sends an operator's transaction to the council, once.
//!
//! ```text
//!  resume: what an earlier command stored ─► sent again, followed until it is final ─► removed
//!  send:   done already? ─► nothing        else: simulated ─► stored ─► sent ─► followed until it is final ─► removed
//! ```
//! `next.json.transaction` is on disk, with its nonce, before the transaction is sent. So a command that was killed, and is
//! repeated, follows that transaction in place of sending another one. It follows only what this key has signed, and what
//! is a step of this command for this announcement: anything else in the file stops it. At most one command uses an
//! announcement at a time: it holds a lock on the announcement's file.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use fastpay_core::{Digest, PrimaryAddress};
use fastpay_ethereum::{
    Call, Inclusion, PrimaryError, PrivateKeySigner, Progress as Sending, Revert, SendError, Sender, SenderConfig,
    Step, Submission,
};
use fastpay_program::files;
use fastpay_program::keystore::{self, KeystoreError, PassphraseSource};

use super::CommitteeError;
use super::nodes::Nodes;

/// What is appended to the name of an announcement's file.
const SUFFIX: &str = ".transaction";
/// The interval between reads of the chain: somebody waits for the command.
const POLL_INTERVAL_MS: u64 = 1_000;

/// Shows how far a transaction is.
pub type Tell<'a> = &'a mut (dyn FnMut(String) + Send);

/// Who pays for a transaction.
#[derive(Clone, Debug)]
pub struct Payer {
    /// The Ethereum key.
    pub key: PrivateKeySigner,
    /// The highest total offer, in gwei per gas.
    pub max_fee_cap_gwei: u64,
}

/// Reads the Ethereum key that pays for transactions: a Web3 keystore, or hexadecimal digits in a file that only its owner
/// can read.
///
/// # Errors
/// See [`KeystoreError`].
pub fn read_key(path: &Path, passphrase: &PassphraseSource) -> Result<PrivateKeySigner, KeystoreError> {
    let secret = keystore::read_secret(path, passphrase)?;
    PrivateKeySigner::from_slice(secret.as_slice())
        .map_err(|_| KeystoreError::Malformed { path: path.to_owned(), reason: "it contains no secp256k1 key".into() })
}

/// The steps that a command may take for one announcement, of which `id` is the digest.
#[derive(Clone, Copy)]
pub(super) struct Steps<'a> {
    pub(super) announcement: &'a Path,
    pub(super) id: Digest,
    pub(super) allowed: &'a [Step],
}

/// The right to send transactions for one announcement.
pub(super) struct Courier<'a> {
    nodes: &'a Nodes,
    sender: Sender,
    council: PrimaryAddress,
    path: PathBuf,
    _lock: File,
}

impl<'a> Courier<'a> {
    /// Takes the right, and follows what an earlier command has stored.
    pub(super) async fn new(
        nodes: &'a Nodes,
        Payer { key, max_fee_cap_gwei }: Payer,
        steps: Steps<'_>,
        told: Tell<'_>,
    ) -> Result<Self, CommitteeError> {
        let announcement = steps.announcement;
        let mut name = announcement.as_os_str().to_owned();
        name.push(SUFFIX);
        let path = PathBuf::from(name);
        let unread = |error: io::Error| CommitteeError::File { path: announcement.into(), reason: error.to_string() };
        let lock = File::open(announcement).map_err(unread)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(CommitteeError::Busy(announcement.into())),
            Err(TryLockError::Error(error)) => return Err(unread(error)),
        }
        let settings = SenderConfig { max_fee_cap_gwei, poll_interval_ms: POLL_INTERVAL_MS, ..SenderConfig::default() };
        let sender = Sender::new(nodes.primary().await?, key, settings);
        let council = nodes.agree(async |node| node.council().await).await?;
        let courier = Self { nodes, sender, council, path, _lock: lock };
        courier.resume(steps, told).await?;
        Ok(courier)
    }

    /// The address that pays.
    pub(super) fn address(&self) -> PrimaryAddress {
        self.sender.address()
    }

    /// The council's address.
    pub(super) fn council(&self) -> PrimaryAddress {
        self.council
    }

    /// Sends the call unless `is_done` says that nothing is left to do, and waits until what was done is final.
    pub(super) async fn send(
        &self,
        call: Call,
        is_done: impl AsyncFn() -> Result<bool, CommitteeError>,
        told: Tell<'_>,
    ) -> Result<(), CommitteeError> {
        let mut block = None;
        if !is_done().await? {
            let sent = match self.sender.prepare(call).await {
                Ok(submission) => self.follow(submission, told).await,
                Err(error) => Err(error.into()),
            };
            match sent {
                // Somebody else may have been faster.
                Err(error) if !is_revert(&error) || !is_done().await? => return Err(error),
                Err(_) => {}
                Ok(inclusion) => block = Some(inclusion.block_number),
            }
        }
        self.nodes.settle(block, told).await?;
        is_done().await?.then_some(()).ok_or(CommitteeError::Undone)
    }

    async fn resume(&self, steps: Steps<'_>, told: Tell<'_>) -> Result<(), CommitteeError> {
        let Some(stored) = files::read(&self.path).map_err(|error| self.unusable(error))? else { return Ok(()) };
        let submission: Submission =
            serde_json::from_slice(&stored).map_err(|error| self.unusable(io::Error::other(error)))?;
        self.check(&submission, steps)?;
        told("following the transaction of an earlier command".into());
        match self.follow(submission, told).await {
            // What is to be done is sent anew.
            Err(CommitteeError::Send(error)) if will_never_happen(&error) => told(error.to_string()),
            outcome => drop(outcome?),
        }
        Ok(())
    }

    /// Checks that a stored transaction is one that this command may have sent.
    fn check(&self, submission: &Submission, Steps { id, allowed, .. }: Steps<'_>) -> Result<(), CommitteeError> {
        let other = |found: String| Err(CommitteeError::OtherTransaction { path: self.path.clone(), found });
        match self.sender.check_own(submission) {
            Ok(()) => {}
            Err(error @ SendError::OtherKey { .. }) => return Err(error.into()),
            Err(error) => return other(error.to_string()),
        }
        let Submission { call, nonce, .. } = submission;
        let is_councils = call.to == self.council && call.value.is_zero();
        let sent = format!("the transaction with nonce {nonce}");
        match call.step(&self.nodes.domain()).filter(|_| is_councils) {
            Some((step, of)) if of == id && allowed.contains(&step) => Ok(()),
            Some((step, of)) if of == id => other(format!("{sent} is another step of this announcement ({step:?})")),
            Some((step, of)) => other(format!("{sent} is a step ({step:?}) of another announcement, {of}")),
            None => other(format!("{sent} calls {} and is no step of an announcement", call.to)),
        }
    }

    /// Follows a stored transaction until its outcome is known, and then removes it.
    async fn follow(&self, submission: Submission, told: Tell<'_>) -> Result<Inclusion, CommitteeError> {
        let (mut last, nonce) = (String::new(), submission.nonce);
        let outcome = {
            let mut store = |submission: &Submission| self.write(submission);
            let mut progress = |progress: Sending| {
                let line = line(&progress);
                if std::mem::replace(&mut last, line.clone()) != line {
                    told(line);
                }
            };
            self.sender.confirm(submission, &mut store, &mut progress).await
        };
        let is_known = outcome.as_ref().map_or_else(will_never_happen, |_| true);
        if is_known {
            match files::remove(&self.path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(self.unusable(error)),
                _ => {}
            }
        }
        if matches!(outcome, Err(SendError::Unsendable { .. })) {
            // Otherwise the next transaction waits for this one, without end.
            self.sender.release(nonce);
        }
        Ok(outcome?)
    }

    fn write(&self, submission: &Submission) -> io::Result<()> {
        files::replace(&self.path, &serde_json::to_vec_pretty(submission)?)
    }

    fn unusable(&self, error: io::Error) -> CommitteeError {
        CommitteeError::Stored { path: self.path.clone(), error }
    }
}

/// Whether a stored transaction has no effect, now and later.
fn will_never_happen(error: &SendError) -> bool {
    matches!(error, SendError::RevertedOnChain { .. } | SendError::Superseded { .. } | SendError::Unsendable { .. })
}

/// Whether the contract refused the call, before it was sent or in its block.
fn is_revert(error: &CommitteeError) -> bool {
    let CommitteeError::Send(send) = error else { return false };
    matches!(**send, SendError::RevertedOnChain { .. }) || reverted(error).is_some()
}

/// The contract's reason to refuse a call that was not sent.
pub(super) fn reverted(error: &CommitteeError) -> Option<&Revert> {
    let CommitteeError::Send(error) = error else { return None };
    match &**error {
        SendError::Primary(PrimaryError::Reverted(revert)) => Some(revert),
        _ => None,
    }
}

fn line(progress: &Sending) -> String {
    match progress {
        Sending::Simulated { gas } => format!("the transaction would use about {gas} gas"),
        Sending::Submitted { hash } => format!("sent {hash}"),
        Sending::Included { block_number, .. } => format!("in block {block_number}, which is not final yet"),
        Sending::Waiting { reason } => format!("waiting: {reason}"),
        Sending::Final { block_number } => format!("final in block {block_number}"),
    }
}
