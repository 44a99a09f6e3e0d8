//! A reserve on a ledger: it funds FastPay accounts, and its key hands redemptions to the ledger. Wallets and relayers
//! reach a ledger through it.
//!
//! An instruction is on disk before it is sent. What became of a deposit is proven and reported before another errand is
//! begun: the same errand continues it, and any other is refused. What opens or redeems is done once whoever sends it, so
//! any errand finishes it.

use std::path::PathBuf;
use std::time::Duration;

use fastpay_core::{
    AccountId, AccountKey, Amount, Asset, Certificate, Committee, Committees, ContractVote, EcdsaSignature, Epoch,
    Redemption, SequenceNumber, TransactionIndex, Transfer, VerifiedCertificate, VoteSignature,
};
use fastpay_ledger_statement::{Action, ClusterId, Instruction, Outcome, Rejection, SignedInstruction, StateKey};

use crate::client::{Client, ClientError};
use crate::committee::{CommitteeClient, oldest_state};
use crate::instructions::{InstructionErrand, InstructionJournal, Instructions, JournalError, StoredInstruction};

/// So long one program waits for another one that signs with the same key in the same folder.
const LOCK_PATIENCE: Duration = Duration::from_secs(10);
/// The bytes of a vote in a call of the contract: the member's index, and its signature.
const VOTE_BYTES: usize = 1 + 65;
/// An errand takes so many instructions at most: other programs may use the same key and its numbers.
const STEPS_MAX: usize = 8;
/// So often a member may answer with what was true before.
const OUTDATED_MAX: usize = 5;

/// The reserve of a key.
#[derive(Debug)]
pub struct Reserve {
    ledger: CommitteeClient,
    key: AccountKey,
    instructions: Instructions,
}

/// Votes in the form of the contract's calls, by their members. Those of nobody are left out.
#[must_use]
pub fn unpacked_votes(votes: &[u8], committee: &Committee) -> Vec<ContractVote> {
    let votes = votes.chunks(VOTE_BYTES).filter_map(|packed| {
        let (index, signature) = packed.split_first()?;
        let authority = committee.members().get(usize::from(*index))?.name;
        Some(ContractVote { authority, signature: EcdsaSignature(signature.try_into().ok()?) })
    });
    votes.collect()
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

/// Why a reserve's errand is not done.
#[derive(Debug, thiserror::Error)]
pub enum ReserveError {
    /// The instructions on disk cannot be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The ledger does not answer, or not with what can be proven.
    #[error(transparent)]
    Ledger(#[from] ClientError),
    /// The ledger refused. What was signed can still be carried out, until another instruction of the key takes its
    /// number.
    #[error("the ledger refused: {0}")]
    Rejected(#[from] Rejection),
    /// The ledger no longer knows what became of an instruction.
    #[error(
        "cluster {0} of the ledger no longer says what became of an instruction that was signed here; look whether it was \
         carried out, and remove {1}"
    )]
    UnknownOutcome(ClusterId, PathBuf),
    /// An earlier instruction of the key is unfinished, or was carried out and not reported yet. Nothing else was sent.
    #[error("{0} is unfinished, or not reported yet")]
    Unfinished(Box<InstructionErrand>),
    /// A certificate is not of a redemption.
    #[error("this is the certificate of a payment, not of a redemption")]
    NoRedemption,
    /// A certificate is of a committee that is not known.
    #[error("the committee of epoch {0} is not known")]
    UnknownEpoch(Epoch),
}

impl Reserve {
    /// The reserve of this key, with its instructions on disk.
    #[must_use]
    pub fn new(instructions: Instructions, ledger: CommitteeClient, key: AccountKey) -> Self {
        Self { ledger, key, instructions }
    }

    /// The owner of the reserve.
    #[must_use]
    pub fn owner(&self) -> AccountId {
        self.key.account()
    }

    /// The committee whose accounts it funds, and whose redemptions it hands over.
    #[must_use]
    pub fn ledger(&self) -> &CommitteeClient {
        &self.ledger
    }

    fn client(&self) -> &Client {
        self.ledger.client()
    }

    /// Funds a FastPay account from the reserve, which it opens if it is not open. A deposit that is unfinished, or not
    /// reported by [`Reserve::note_reported`], is continued by the same call and excludes any other. Returns once the
    /// reserve is debited: the account is credited soon.
    ///
    /// # Errors
    /// See [`ReserveError`]. The deposit may still happen: the same call again continues with it. Nothing was sent after
    /// [`ReserveError::Unfinished`].
    pub async fn deposit(
        &self,
        recipient: AccountId,
        asset: Asset,
        amount: Amount,
    ) -> Result<CarriedOut, ReserveError> {
        let after = self.ledger.newest_event(oldest_state()).await?;
        let committee = self.ledger.number();
        let action = Action::Fund { committee, account: recipient, asset, amount };
        let errand = InstructionErrand::Deposit { recipient, asset, amount, after };
        self.run(self.cluster(), &errand, &action).await
    }

    /// Notes that the user knows of a deposit: from now on, the same call makes another one.
    ///
    /// # Errors
    /// See [`ReserveError`].
    pub async fn note_reported(&self, deposit: &CarriedOut) -> Result<(), ReserveError> {
        let journal = self.instructions.lock(self.cluster(), LOCK_PATIENCE).await?;
        match journal.newest()? {
            Some(mut newest) if newest.is_carried_out && newest.errand == deposit.errand => {
                newest.is_reported = true;
                Ok(journal.store(&newest)?)
            }
            _ => Ok(()),
        }
    }

    /// The cluster that keeps the reserve.
    fn cluster(&self) -> ClusterId {
        self.client().partition().of_reserve(&self.key.account())
    }

    /// Hands a certified redemption to the ledger, which pays it to the reserve of the recipient, and the fee to this one.
    /// `committees` are those of its epoch and others. `None` if its number was redeemed already.
    ///
    /// # Errors
    /// See [`ReserveError`].
    pub async fn redeem(
        &self,
        certificate: &VerifiedCertificate,
        committees: &Committees,
    ) -> Result<Option<TransactionIndex>, ReserveError> {
        let Transfer::Redemption(redemption) = certificate.transfer() else { return Err(ReserveError::NoRedemption) };
        let Certificate { epoch, votes, .. } = certificate.certificate();
        let votes = votes.iter().map(|vote| match vote.signature {
            VoteSignature::Redemption { signature } => Some(ContractVote { authority: vote.authority, signature }),
            _ => None,
        });
        let mut votes = votes.collect::<Option<Vec<_>>>().ok_or(ReserveError::NoRedemption)?;
        let voters = committees.get(*epoch).ok_or(ReserveError::UnknownEpoch(*epoch))?;
        votes.sort_by_key(|vote| vote.authority);
        votes.truncate(voters.quorum());
        self.redeem_by_votes(redemption, *epoch, votes).await
    }

    /// As [`Reserve::redeem`], by exactly a quorum of the epoch's votes in the order of names.
    ///
    /// # Errors
    /// See [`ReserveError`].
    pub async fn redeem_by_votes(
        &self,
        redemption: &Redemption,
        epoch: Epoch,
        votes: Vec<ContractVote>,
    ) -> Result<Option<TransactionIndex>, ReserveError> {
        let Redemption { sender, sequence, .. } = *redemption;
        let (committee, redemption) = (self.ledger.number(), redemption.clone());
        let action = Action::Redeem { committee, redemption, epoch, votes };
        let settlement = self.client().partition().settlement;
        match self.run(settlement, &InstructionErrand::Redeem { sender, sequence }, &action).await {
            Ok(CarriedOut { outcome: Outcome::Redeemed(index), .. }) => Ok(Some(index)),
            Ok(_) | Err(ReserveError::Rejected(Rejection::AlreadyRedeemed)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Hands redemptions to the ledger that a quorum of the epoch voted for together: `votes` are exactly a quorum, in the
    /// order of names. Gives for each, in order, the event of its payment; `None` if its number was spent before. What one
    /// of them fails for, all do.
    ///
    /// # Errors
    /// See [`ReserveError`].
    pub async fn redeem_batch(
        &self,
        redemptions: &[Redemption],
        epoch: Epoch,
        votes: Vec<ContractVote>,
    ) -> Result<Vec<Option<TransactionIndex>>, ReserveError> {
        let (committee, redemptions) = (self.ledger.number(), redemptions.to_vec());
        let items = redemptions.iter().map(|redemption| (redemption.sender, redemption.sequence)).collect();
        let action = Action::RedeemBatch { committee, redemptions, epoch, votes };
        let settlement = self.client().partition().settlement;
        match self.run(settlement, &InstructionErrand::RedeemBatch { items }, &action).await?.outcome {
            Outcome::RedeemedBatch(events) => Ok(events),
            _ => Err(ClientError::Malformed.into()),
        }
    }

    /// Has the action carried out, after what an earlier command has left unfinished.
    async fn run(
        &self,
        shard: ClusterId,
        errand: &InstructionErrand,
        action: &Action,
    ) -> Result<CarriedOut, ReserveError> {
        let journal = self.instructions.lock(shard, LOCK_PATIENCE).await?;
        let opening = InstructionErrand::Open {};
        let (mut opens, mut resumed, mut told, mut last) = (false, true, None, Rejection::Busy);
        for _ in 0..STEPS_MAX {
            let (wanted, wanted_action) = if opens { (&opening, &Action::Open) } else { (errand, action) };
            let due = match told.take() {
                Some(number) => Due::SignNext(number),
                None => due(&journal, wanted)?,
            };
            let is_fresh = matches!(due, Due::SignNext(_));
            resumed = resumed && (opens || matches!(due, Due::Send(_)));
            let signed = |number, rejected| {
                StoredInstruction::new(wanted.clone(), self.sign(shard, number, wanted_action), rejected)
            };
            let instruction = match due {
                Due::Known(errand) => return Ok(CarriedOut { errand, outcome: Outcome::Funding, resumed: true }),
                Due::Send(instruction) => instruction,
                Due::SignNext(number) => signed(self.number(shard).await?.max(number), Vec::new()),
                Due::SignInPlace(number, rejected) => signed(number, rejected),
            };
            journal.store(&instruction)?;
            let is_wanted = instruction.errand.is_same(errand);
            let sent = instruction.errand.clone();
            match self.send(&journal, shard, instruction, is_fresh).await? {
                Sent::CarriedOut(outcome) if is_wanted => return Ok(CarriedOut { errand: sent, outcome, resumed }),
                Sent::CarriedOut(_) | Sent::OtherCarriedOut => opens = false,
                Sent::Used(next, why) => (told, last) = (Some(next), why),
                Sent::Rejected(Rejection::NotOpen) if is_wanted && !errand.is_idempotent() => opens = true,
                Sent::Rejected(why) if is_wanted => return Err(why.into()),
                // It was open before, or was redeemed before.
                Sent::Rejected(why) => (opens, last) = (false, why),
            }
        }
        Err(last.into())
    }

    /// The number that the ledger expects of the key, in the newest state of f + 1 members.
    async fn number(&self, shard: ClusterId) -> Result<SequenceNumber, ReserveError> {
        let key = StateKey::Sequence(self.key.account());
        Ok(self.client().entry_of(shard, &key, oldest_state()).await?.unwrap_or_default())
    }

    fn sign(&self, shard: ClusterId, sequence: SequenceNumber, action: &Action) -> SignedInstruction {
        let (deployment, signer) = (self.client().layout().deployment(), self.key.account());
        let instruction = Instruction { deployment, shard, signer, sequence, action: action.clone() };
        instruction.signed(&self.key)
    }

    /// Sends an instruction that is on disk, and stores what is proven of it.
    async fn send(
        &self,
        journal: &InstructionJournal,
        shard: ClusterId,
        mut instruction: StoredInstruction,
        is_fresh: bool,
    ) -> Result<Sent, ReserveError> {
        let result = self.client().submit(shard, &instruction.request()).await?.result;
        let sent = match result {
            Ok(outcome) => {
                // Nothing else is carried out under its number.
                instruction.rejected_before.clear();
                instruction.is_carried_out = true;
                Sent::CarriedOut(outcome)
            }
            Err(why @ Rejection::SequenceConflict(next)) => {
                if self.is_earlier_carried_out(journal, shard, &instruction.rejected_before).await? {
                    return Ok(Sent::OtherCarriedOut);
                }
                instruction.rejected_before.clear();
                instruction.is_rejected = true;
                Sent::Used(next, why)
            }
            Err(why @ Rejection::SequenceForgotten(next)) => {
                // Under a number that was read just now, nothing of this key was sent before.
                let is_idempotent = |one: &StoredInstruction| one.errand.is_idempotent();
                let are_idempotent =
                    is_idempotent(&instruction) && instruction.rejected_before.iter().all(is_idempotent);
                if !is_fresh && !are_idempotent {
                    return Err(unknown(shard, journal));
                }
                instruction.is_rejected = true;
                Sent::Used(next, why)
            }
            Err(why) => {
                instruction.is_rejected = true;
                Sent::Rejected(why)
            }
        };
        journal.store(&instruction)?;
        Ok(sent)
    }

    /// Whether the instruction that has used the number of these is one of them, which is then the newest on disk.
    async fn is_earlier_carried_out(
        &self,
        journal: &InstructionJournal,
        shard: ClusterId,
        rejected: &[StoredInstruction],
    ) -> Result<bool, ReserveError> {
        let unknown = || unknown(shard, journal);
        for earlier in rejected.iter().filter(|earlier| !earlier.errand.is_idempotent()) {
            let mut is_dead = false;
            for _ in 0..OUTDATED_MAX {
                match self.client().submit(shard, &earlier.request()).await?.result {
                    Ok(_) => {
                        let mut earlier = earlier.clone();
                        (earlier.is_rejected, earlier.is_carried_out) = (false, true);
                        journal.store(&earlier)?;
                        return Ok(true);
                    }
                    Err(Rejection::SequenceConflict(_)) => {
                        is_dead = true;
                        break;
                    }
                    Err(Rejection::SequenceForgotten(_)) => return Err(unknown()),
                    // An answer of before the number was used.
                    Err(_) => {}
                }
            }
            if !is_dead {
                return Err(unknown());
            }
        }
        Ok(false)
    }
}

/// What is to be done next for an errand.
enum Due {
    /// It was carried out before, and not reported.
    Known(InstructionErrand),
    /// This one is to be sent again.
    Send(StoredInstruction),
    /// One is to be signed under this number at least.
    SignNext(SequenceNumber),
    /// One is to be signed under the number of these, which were rejected.
    SignInPlace(SequenceNumber, Vec<StoredInstruction>),
}

/// What became of an instruction that was sent.
enum Sent {
    CarriedOut(Outcome),
    /// It never is: one that was rejected before was carried out under its number after all.
    OtherCarriedOut,
    /// It never is: its number was used by another program. The number is the next one.
    Used(SequenceNumber, Rejection),
    /// It may be carried out later.
    Rejected(Rejection),
}

fn unknown(shard: ClusterId, journal: &InstructionJournal) -> ReserveError {
    ReserveError::UnknownOutcome(shard, journal.path().to_owned())
}

/// What is due for an errand after the newest instruction.
fn due(journal: &InstructionJournal, errand: &InstructionErrand) -> Result<Due, ReserveError> {
    let Some(newest) = journal.newest()? else { return Ok(Due::SignNext(SequenceNumber(0))) };
    let number = newest.number();
    let is_reported = newest.is_reported || newest.errand.is_idempotent();
    let (is_same, unfinished) =
        (newest.errand.is_same(errand), || ReserveError::Unfinished(Box::new(newest.errand.clone())));
    match (newest.is_carried_out, newest.is_rejected) {
        (true, _) if is_reported => Ok(Due::SignNext(number.next().expect("nobody gives 2^64 instructions"))),
        (true, _) if is_same => Ok(Due::Known(newest.errand)),
        (false, false) if is_same || newest.errand.is_idempotent() => Ok(Due::Send(newest)),
        (true, _) | (false, false) => Err(unfinished()),
        (false, true) => {
            let mut rejected = newest.into_rejected();
            let Some(at) = rejected.iter().position(|one| one.errand.is_same(errand)) else {
                return Ok(Due::SignInPlace(number, rejected));
            };
            let mut again = rejected.remove(at);
            (again.is_rejected, again.rejected_before) = (false, rejected);
            Ok(Due::Send(again))
        }
    }
}
