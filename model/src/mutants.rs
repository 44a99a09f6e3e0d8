//! The protocol with a rule left out, and the setting in which that breaks a claim.

use crate::claims::Claim;
use crate::rules::{Rule, Rules};
use crate::setting::{
    CERTIFIED_ORDER, CERTIFIED_UNTIMED, CHECKPOINT, CHECKPOINT_JOINED, CHECKPOINT_LEAVER, CHECKPOINT_SAFETY,
    CHECKPOINT_SETTLED, CHECKPOINT_UNTIMED, FOUR, FOUR_UNTIMED, LEAVER, LEAVER_COMPROMISED, REKEYED, REKEYED_EXECUTED,
    RESTORED, SEVEN_FOUR, STOLEN, Setting, TWICE, TWO_NEW_ORDERS,
};

/// A mutant.
#[derive(Clone, Copy, Debug)]
pub struct Mutant {
    /// The rules that are left out.
    pub without: &'static [Rule],
    /// The setting of the counterexample.
    pub setting: Setting,
    /// The broken claim.
    pub breaks: Claim,
}

impl Mutant {
    /// The rules that it keeps.
    pub fn rules(&self) -> Rules {
        self.without.iter().fold(Rules::ALL, |rules, rule| rules.without(*rule))
    }

    /// Its name: those of the rules that it lacks.
    pub fn name(&self) -> String {
        self.without.iter().map(|rule| rule.name()).collect::<Vec<_>>().join(" and ")
    }
}

const fn mutant(without: &'static [Rule], setting: Setting, breaks: Claim) -> Mutant {
    Mutant { without, setting, breaks }
}

/// Mutants with a counterexample.
pub const MUTANTS: &[Mutant] = &[
    mutant(&[Rule::Freeze], FOUR, Claim::ExecutedNotVoided),
    mutant(&[Rule::SeenStored], FOUR_UNTIMED, Claim::Unlocked),
    mutant(&[Rule::ExecutedNoVoid], FOUR_UNTIMED, Claim::SettledNotVoided),
    mutant(&[Rule::Window], FOUR, Claim::ExecutedNotVoided),
    mutant(&[Rule::WindowLength], FOUR, Claim::ExecutedNotVoided),
    mutant(&[Rule::ReadTime], FOUR, Claim::ExecutedNotVoided),
    mutant(&[Rule::Lag], FOUR, Claim::ExecutedNotVoided),
    mutant(&[Rule::LagSeen], FOUR, Claim::ShownNotVoided),
    mutant(&[Rule::AnswersVoided], FOUR_UNTIMED, Claim::SettledNotVoided),
    mutant(&[Rule::RestoredNoVoid], RESTORED, Claim::SettledNotVoided),
    mutant(&[Rule::RestoredNoVote], RESTORED, Claim::OneCertificate),
    mutant(&[Rule::Attesters], STOLEN, Claim::UpheldIsCertified),
    mutant(&[Rule::UpheldNotVoided], FOUR, Claim::OneOutcome),
    mutant(&[Rule::VoidedNotUpheld], FOUR, Claim::OneOutcome),
    mutant(&[Rule::VoidNeedsBit], FOUR_UNTIMED, Claim::PaidNotVoided),
    mutant(&[Rule::VoidSetsBit], FOUR_UNTIMED, Claim::PaidNotVoided),
    mutant(&[Rule::Unanimous], FOUR, Claim::ExecutedNotVoided),
    mutant(&[Rule::AllMembers], FOUR, Claim::ExecutedNotVoided),
    mutant(&[Rule::PaidUpholds, Rule::UpholdPaid], FOUR_UNTIMED, Claim::Unlocked),
    mutant(&[Rule::VoidUnconfirmed], REKEYED_EXECUTED, Claim::SettledNotVoided),
    mutant(&[Rule::OneEpoch], CERTIFIED_UNTIMED, Claim::SettledNotVoided),
    mutant(&[Rule::CurrentEpoch], LEAVER, Claim::ExecutedNotVoided),
    mutant(&[Rule::AllAfterV], LEAVER, Claim::ExecutedNotVoided),
    mutant(&[Rule::AllWhateverEnded], LEAVER_COMPROMISED, Claim::ExecutedNotVoided),
    mutant(&[Rule::InOrder], CERTIFIED_ORDER, Claim::ExecutedNotVoided),
    mutant(&[Rule::Observer], CERTIFIED_ORDER, Claim::ExecutedNotVoided),
    mutant(&[Rule::Closed], TWO_NEW_ORDERS, Claim::OneCertificate),
    mutant(&[Rule::Join], TWO_NEW_ORDERS, Claim::OneCertificate),
    mutant(&[Rule::RekeyedJoins], REKEYED, Claim::OneCertificate),
    mutant(&[Rule::ResizedJoins], SEVEN_FOUR, Claim::OneCertificate),
    mutant(&[Rule::QuorumClosings], TWO_NEW_ORDERS, Claim::OneCertificate),
    mutant(&[Rule::Certificates], TWO_NEW_ORDERS, Claim::OneCertificate),
    mutant(&[Rule::FrozenJoin], CERTIFIED_ORDER, Claim::ExecutedNotVoided),
    mutant(&[Rule::Contested], TWO_NEW_ORDERS, Claim::OneCertificate),
    mutant(&[Rule::InheritedReported], TWICE, Claim::OneCertificate),
    mutant(&[Rule::Leave], LEAVER, Claim::ExecutedNotVoided),
    mutant(&[Rule::LeaveFirm], LEAVER, Claim::ExecutedNotVoided),
    mutant(&[Rule::OldCertificates], CHECKPOINT_SETTLED, Claim::OneExecution),
    mutant(&[Rule::OldVouched], CHECKPOINT_SETTLED, Claim::SettledForAll),
    mutant(&[Rule::OldSeen], CHECKPOINT_SETTLED, Claim::OneExecution),
    mutant(&[Rule::CutQuorum], CHECKPOINT_UNTIMED, Claim::SettledNotVoided),
    mutant(&[Rule::CutExecuted], CHECKPOINT, Claim::OneExecution),
    mutant(&[Rule::CutEpoch], CHECKPOINT_SETTLED, Claim::OneExecution),
    mutant(&[Rule::CutLag], CHECKPOINT_SETTLED, Claim::OneExecution),
    mutant(&[Rule::CutNamed], CHECKPOINT_SETTLED, Claim::SettledForAll),
    mutant(&[Rule::NameNewest], CHECKPOINT_SETTLED, Claim::SettledForAll),
    mutant(&[Rule::StateRequests], CHECKPOINT_SAFETY, Claim::ExecutedNotVoided),
    mutant(&[Rule::StateOutcomes], CHECKPOINT, Claim::Unlocked),
    mutant(&[Rule::PruneRebase], CHECKPOINT_SETTLED, Claim::SettledForAll),
    mutant(&[Rule::PrunedAttests], CHECKPOINT_SETTLED, Claim::SettledForAll),
    mutant(&[Rule::JoinCheckpoint], CHECKPOINT_SETTLED, Claim::OneCertificate),
    mutant(&[Rule::RebaseOwn], CHECKPOINT, Claim::OneCertificate),
    mutant(&[Rule::RebaseLock], CHECKPOINT, Claim::OneCertificate),
    mutant(&[Rule::RebaseSeen], CHECKPOINT, Claim::Unlocked),
    mutant(&[Rule::RebaseVoidVoted], CHECKPOINT_JOINED, Claim::ExecutedNotVoided),
    mutant(&[Rule::RebaseIndex], CHECKPOINT, Claim::ExecutedNotVoided),
];

/// Mutants without one: another rule covers what these rules prevent. The model shows that, too.
pub const COVERED: &[Mutant] = &[
    mutant(&[Rule::FrozenVote], FOUR, Claim::OneCertificate),
    mutant(&[Rule::VoidVoteBit], FOUR, Claim::PaidNotVoided),
    mutant(&[Rule::ContractWindow], FOUR, Claim::ExecutedNotVoided),
    mutant(&[Rule::SeenNoVoid], FOUR, Claim::ShownNotVoided),
    mutant(&[Rule::UpheldSeen], FOUR, Claim::Unlocked),
    mutant(&[Rule::PaidUpholds], FOUR_UNTIMED, Claim::Unlocked),
    mutant(&[Rule::UpholdPaid], FOUR_UNTIMED, Claim::Unlocked),
    mutant(&[Rule::ClosingIndex], LEAVER, Claim::ExecutedNotVoided),
    mutant(&[Rule::LeaveUpheld], LEAVER, Claim::Unlocked),
    mutant(&[Rule::CutFrozen], CHECKPOINT_LEAVER, Claim::ExecutedNotVoided),
    mutant(&[Rule::RebaseWindow], CHECKPOINT, Claim::ExecutedNotVoided),
];
