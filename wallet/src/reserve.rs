//! A reserve on a ledger: it funds FastPay accounts, and its key hands redemptions to the ledger. The part of
//! [`crate::ChainAccount`], where the Primary is a ledger. An instruction is on disk before it is sent, and its outcome is
//! known before another one is signed.

use fastpay_core::{
    AccountId, AccountKey, Amount, Asset, Certificate, Committees, ContractVote, SequenceNumber, TransactionIndex,
    Transfer, VerifiedCertificate, VoteSignature,
};
use fastpay_ledger_client::{Client, CommitteeClient};
use fastpay_ledger_statement::{Action, ClusterId, Instruction, Outcome, Rejection, Request, StateKey, Time};

use crate::error::WalletError;
use crate::folder::{Folder, InstructionErrand, InstructionJournal, Instructions, PendingInstruction, now_ms};
use crate::wallet::LOCK_PATIENCE;

/// A state of the ledger is this old at most, in milliseconds: it decides height after height, also without work.
const STATE_AGE_MS_MAX: u64 = 600_000;
/// A number that another instruction has used is replaced so often: other programs may use the same key.
const TRIES: usize = 5;

/// The oldest state of a ledger that is believed.
pub(crate) fn oldest_state() -> Time {
    Time(now_ms().saturating_sub(STATE_AGE_MS_MAX))
}

/// The reserve of a key.
pub struct Reserve {
    ledger: CommitteeClient,
    key: AccountKey,
    instructions: Instructions,
}

/// What the ledger has carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CarriedOut {
    /// For this purpose.
    pub errand: InstructionErrand,
    /// What came of it.
    pub outcome: Outcome,
    /// Whether an earlier command had begun it, and this one only finished it.
    pub resumed: bool,
}

impl Reserve {
    /// The reserve of this key, with its instructions in `folder`.
    #[must_use]
    pub fn new(folder: &Folder, ledger: CommitteeClient, key: AccountKey) -> Self {
        let instructions = folder.instructions(key.account());
        Self { ledger, key, instructions }
    }

    /// The ledger.
    #[must_use]
    pub fn ledger(&self) -> &CommitteeClient {
        &self.ledger
    }

    fn client(&self) -> &Client {
        self.ledger.client()
    }

    /// Funds a FastPay account from the reserve, which it opens if it is not open. If the same deposit is unfinished from
    /// before, it finishes that one and makes no second. Returns once the reserve is debited: the account is credited
    /// soon.
    ///
    /// # Errors
    /// See [`WalletError`]. Unless it is [`WalletError::Rejected`], the deposit may still happen: the same call again
    /// continues with it.
    pub async fn deposit(&self, recipient: AccountId, asset: Asset, amount: Amount) -> Result<CarriedOut, WalletError> {
        let owner = self.key.account();
        let shard = self.client().partition().of_reserve(&owner);
        let opened = self.client().read(shard, &StateKey::Opened(owner), oldest_state()).await?;
        if opened.value.is_none() {
            match self.run(shard, InstructionErrand::Open {}, &Action::Open).await {
                // The state that was read was older.
                Ok(_) | Err(WalletError::Rejected(Rejection::AlreadyOpen)) => {}
                Err(error) => return Err(error),
            }
        }
        let after = self.ledger.newest_event(oldest_state()).await?;
        let committee = self.ledger.number();
        let action = Action::Fund { committee, account: recipient, asset, amount };
        self.run(shard, InstructionErrand::Deposit { recipient, asset, amount, after }, &action).await
    }

    /// Hands a certified redemption to the ledger, which pays it to the reserve of the recipient. `committees` are those of
    /// its epoch and others. `None` if it has been paid already.
    ///
    /// # Errors
    /// See [`WalletError`].
    pub async fn redeem(
        &self,
        certificate: &VerifiedCertificate,
        committees: &Committees,
    ) -> Result<Option<TransactionIndex>, WalletError> {
        let payment = || WalletError::Argument("this is the certificate of a payment, not of a redemption".into());
        let Transfer::Redemption(redemption) = certificate.transfer() else { return Err(payment()) };
        let (sender, sequence) = (redemption.sender, redemption.sequence);
        let Certificate { epoch, votes, .. } = certificate.certificate();
        let votes = votes.iter().map(|vote| match vote.signature {
            VoteSignature::Redemption { signature } => Some(ContractVote { authority: vote.authority, signature }),
            _ => None,
        });
        let mut votes = votes.collect::<Option<Vec<_>>>().ok_or_else(payment)?;
        let voters = committees.get(*epoch).ok_or(WalletError::OtherCommittee)?;
        votes.sort_by_key(|vote| vote.authority);
        votes.truncate(voters.quorum());
        let (committee, redemption, epoch) = (self.ledger.number(), redemption.clone(), *epoch);
        let settlement = self.client().partition().settlement;
        let action = Action::Redeem { committee, redemption, epoch, votes };
        match self.run(settlement, InstructionErrand::Redeem { sender, sequence }, &action).await {
            Ok(CarriedOut { outcome: Outcome::Redeemed(index), .. }) => Ok(Some(index)),
            Ok(_) | Err(WalletError::Rejected(Rejection::AlreadyRedeemed)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Finishes what an earlier command has left unfinished at a cluster, and then has the action carried out.
    async fn run(
        &self,
        shard: ClusterId,
        errand: InstructionErrand,
        action: &Action,
    ) -> Result<CarriedOut, WalletError> {
        let journal = self.instructions.lock(shard, LOCK_PATIENCE).await?;
        let mut sequence = match self.finish(&journal, shard, &errand).await? {
            Finished::Same(carried_out) => return Ok(carried_out),
            Finished::Next(sequence) => sequence,
            Finished::Nothing => {
                let key = StateKey::Sequence(self.key.account());
                let read = self.client().read(shard, &key, oldest_state()).await?.value;
                let next = read.map(|value| borsh::from_slice(&value)).transpose();
                next.map_err(|_| fastpay_ledger_client::ClientError::Malformed)?.unwrap_or_default()
            }
        };
        let mut rejection = Rejection::Busy;
        for _ in 0..TRIES {
            let (deployment, signer) = (self.client().layout().deployment(), self.key.account());
            let instruction = Instruction { deployment, shard, signer, sequence, action: action.clone() };
            let request = Request::Instruct(Box::new(instruction.signed(&self.key)));
            let pending = PendingInstruction::new(errand.clone(), &request);
            journal.store(&pending)?;
            match self.client().submit(shard, &request).await?.result {
                Ok(outcome) => {
                    journal.finish()?;
                    return Ok(CarriedOut { errand, outcome, resumed: false });
                }
                // Another instruction has used the number, so this one is never carried out.
                Err(Rejection::SequenceConflict(next) | Rejection::SequenceForgotten(next)) => sequence = next,
                Err(rejected) => {
                    journal.store(&pending.rejected())?;
                    rejection = rejected;
                    break;
                }
            }
        }
        Err(WalletError::Rejected(rejection))
    }

    /// Sends an unfinished instruction again.
    async fn finish(
        &self,
        journal: &InstructionJournal,
        shard: ClusterId,
        errand: &InstructionErrand,
    ) -> Result<Finished, WalletError> {
        let Some(pending) = journal.pending()? else { return Ok(Finished::Nothing) };
        let request = pending.request().ok_or(WalletError::UnknownOutcome(shard))?;
        let Request::Instruct(signed) = &request else { return Err(WalletError::UnknownOutcome(shard)) };
        let sequence = signed.instruction.sequence;
        // The instruction that follows takes its number, so only one of both is carried out.
        if pending.is_rejected {
            return Ok(Finished::Next(sequence));
        }
        match self.client().submit(shard, &request).await?.result {
            Ok(outcome) => {
                journal.finish()?;
                let errand_of = pending.errand.clone();
                let same = CarriedOut { errand: pending.errand, outcome, resumed: true };
                Ok(if is_same(&errand_of, errand) { Finished::Same(same) } else { Finished::Nothing })
            }
            Err(Rejection::SequenceConflict(next)) => {
                journal.finish()?;
                Ok(Finished::Next(next))
            }
            // Whether it was this one that was carried out is no longer known there.
            Err(Rejection::SequenceForgotten(_)) => Err(WalletError::UnknownOutcome(shard)),
            Err(_) => Ok(Finished::Next(sequence)),
        }
    }
}

/// What became of an unfinished instruction.
enum Finished {
    /// It was carried out, and is what is asked for.
    Same(CarriedOut),
    /// It was not carried out, or another one was; this number is next.
    Next(SequenceNumber),
    /// There was none, or another one was carried out.
    Nothing,
}

/// Whether two errands are the same but for when they began.
fn is_same(one: &InstructionErrand, other: &InstructionErrand) -> bool {
    let begun_at_once = |errand: &InstructionErrand| match errand.clone() {
        InstructionErrand::Deposit { recipient, asset, amount, .. } => {
            InstructionErrand::Deposit { recipient, asset, amount, after: TransactionIndex(0) }
        }
        errand => errand,
    };
    begun_at_once(one) == begun_at_once(other)
}
