//! Exactly once [LEDGER 7]: the sequence numbers of each signer at this cluster have no gaps, and a number is used once.

use fastpay_core::{Digest, SequenceNumber};
use fastpay_ledger_statement::{Instruction, Outcome, Rejection, StateKey};

use crate::draft::Draft;

/// The answers kept for each signer: as many instructions can be under way at once and be sent again.
pub const ANSWERS_KEPT: u64 = 16;

impl Draft<'_> {
    /// Carries out an instruction if its number is next. The same one again gets the stored answer.
    pub(crate) fn instruct(&mut self, instruction: &Instruction, digest: Digest) -> Result<Outcome, Rejection> {
        let Instruction { signer, sequence, .. } = *instruction;
        let next: SequenceNumber = self.state.get(&StateKey::Sequence(signer)).unwrap_or_default();
        if sequence > next {
            return Err(Rejection::SequenceGap(next));
        }
        if sequence < next {
            return match self.state.get::<(Digest, Outcome)>(&StateKey::Answered(signer, sequence)) {
                Some((answered, outcome)) if answered == digest => Ok(outcome),
                Some(_) => Err(Rejection::SequenceConflict(next)),
                None => Err(Rejection::SequenceForgotten(next)),
            };
        }
        let outcome = self.carry_out(instruction)?;
        let after = sequence.next().expect("nobody gives 2^64 instructions");
        self.state.put(StateKey::Sequence(signer), &after);
        self.state.put(StateKey::Answered(signer, sequence), &(digest, outcome.clone()));
        if let Some(old) = sequence.0.checked_sub(ANSWERS_KEPT) {
            self.state.tree.remove(&StateKey::Answered(signer, SequenceNumber(old)));
        }
        Ok(outcome)
    }
}
