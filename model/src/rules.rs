//! The rules of the protocol, each with a name. A run keeps all of them or leaves some out.

/// Declares [`Rule`], with the place where the protocol states each rule and its wording in the code.
macro_rules! rules {
    ($($rule:ident $name:literal $place:literal $text:literal)*) => {
        /// A rule of the protocol. `model/src` asks for it where it acts, so a rule can be left out.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Rule { $(#[doc = $text] $rule),* }

        impl Rule {
            /// All rules, in the order of the protocol.
            pub const ALL: &[Rule] = &[$(Rule::$rule),*];

            /// The name on the command line.
            pub fn name(self) -> &'static str {
                match self { $(Rule::$rule => $name),* }
            }

            /// The section of LIFE, the draft of docs/PROTOCOL.md, that states it.
            pub fn place(self) -> &'static str {
                match self { $(Rule::$rule => $place),* }
            }

            /// Its text.
            pub fn text(self) -> &'static str {
                match self { $(Rule::$rule => $text),* }
            }
        }
    };
}

rules! {
    // Unlock: the authority.
    Freeze "freeze" "§1.1" "A frozen number's certificate is executed only if its digest is upheld."
    FrozenVote "frozen-vote" "§1.1" "A frozen number gets no vote."
    SeenStored "seen-stored" "§1.2" "A CertificateVote is signed only for a certificate that is executed or stored as Seen."
    ExecutedNoVoid "executed-no-void" "§1.3" "An authority that executed the number signs no VoidVote."
    SeenNoVoid "seen-no-void" "§1.3" "An authority that has Seen a certificate signs no VoidVote."
    Window "window" "§1.3" "A VoidVote for the quorum path is signed only once chain time is at least t_f + W."
    WindowLength "window-length" "§1.3" "W is longer than L plus the time in which a holder gets its certificate upheld."
    ReadTime "read-time" "§1.1" "t_f is the time of the newest final block when the request is read, not the request's own time."
    VoidVoteBit "void-vote-bit" "§1.3" "No VoidVote is signed where the redeem bit is set."
    UpheldSeen "upheld-seen" "§1.4" "`SequenceUpheld` executes a certificate that is stored as Seen."
    Lag "lag" "§1.5" "Nothing is executed or voted for while chain time is older than L."
    LagSeen "lag-seen" "§1.5" "A certificate refused by the lag rule is stored as Seen."
    AnswersVoided "answers-voided" "§1.6" "A certificate of a voided number is answered Voided, not Already."
    VoidUnconfirmed "void-unconfirmed" "not stated" "An authority confirms no number that the contract voided, also if it executed it."
    OneEpoch "one-epoch" "§1.7" "Clients count confirmations of one committee in one epoch."
    RestoredNoVoid "restored-no-void" "§1.3" "A restored authority, which is not full, signs no VoidVote."
    RestoredNoVote "restored-no-vote" "Notation" "A restored authority votes only above its floor."
    // Unlock: the contract.
    Attesters "attesters" "§1" "`upholdSequence` needs the CertificateVotes of a quorum."
    UpheldNotVoided "upheld-not-voided" "§1" "`voidSequence` refuses a number that is upheld."
    VoidedNotUpheld "voided-not-upheld" "§1" "`upholdSequence` refuses a number that is voided."
    VoidNeedsBit "void-needs-bit" "§1" "`voidSequence` refuses a number whose redeem bit is set."
    VoidSetsBit "void-sets-bit" "§1" "`voidSequence` sets the redeem bit."
    ContractWindow "contract-window" "§1" "`voidSequence` takes a quorum's votes only from `voidableFrom` on."
    Unanimous "unanimous" "§1" "A VoidVote with `unanimous` does not count in the quorum path."
    AllMembers "all-members" "§1" "The path without window needs all n votes."
    CurrentEpoch "current-epoch" "§1" "VoidVotes count in the current epoch only."
    AllAfterV "all-after-v" "§1" "After a rotation all n votes count only once V has passed since the installation."
    AllWhateverEnded "all-whatever-ended" "§1" "The same where `compromisedSince` ended the previous epoch at once."
    PaidUpholds "paid-upholds" "§2.5" "Spending in an epoch that is not compromised counts as `SequenceUpheld`."
    UpholdPaid "uphold-paid" "§1" "`upholdSequence` is allowed where the redeem bit is set."
    // Hand-over.
    InOrder "in-order" "§3" "An epoch is taken up only after all earlier events of the order."
    Observer "observer" "not stated" "A newcomer executes nothing before it has taken up the epoch."
    Closed "closed" "§3.1" "A member signs its Closing only after its last signature in that epoch."
    Join "join" "§3.2" "A new member votes only once it has joined."
    RekeyedJoins "rekeyed-joins" "§3.2" "A member with new keys that has its folder joins, too."
    ResizedJoins "resized-joins" "§3.2" "If the committee becomes much smaller, all its members join."
    QuorumClosings "quorum-closings" "§3.3" "A join takes the Closings of a quorum of the epoch that ended."
    ClosingIndex "closing-index" "§3.3" "A joiner has read the order as far as each Closing's author had."
    Certificates "closing-certificates" "§3.3" "A join takes over executed certificates, not just locks."
    FrozenJoin "frozen-join" "§3.3" "A certificate of a frozen number that a Closing brings is only Seen."
    Contested "contested" "§3.3" "A joiner that is told of two orders votes for neither."
    InheritedReported "inherited-reported" "§3.3" "A Closing also reports inherited locks."
    Leave "leave" "§3.4" "A leaver serves until q members of the next epoch acknowledge what it executed."
    LeaveFirm "leave-firm" "§3.4" "An acknowledgement does not count from one that signed a VoidVote in that epoch."
    LeaveUpheld "leave-upheld" "§3.4" "It serves on where what it executed is upheld."
    // Checkpoints.
    CutQuorum "cut-quorum" "§4" "A checkpoint needs the votes of a quorum."
    CutExecuted "cut-executed" "§4" "A checkpoint is signed only after all below V is executed."
    CutFrozen "cut-frozen" "§4" "V is not beyond a number that is frozen without outcome."
    CutEpoch "cut-epoch" "§4" "A checkpoint counts if the current or the closing epoch certified it."
    CutLag "cut-lag" "not stated" "No checkpoint is taken while chain time is older than L."
    CutNamed "cut-named" "§4" "The checkpoint that an installation names counts for ever."
    NameNewest "name-newest" "not stated" "A member announces no checkpoint older than its own."
    StateRequests "state-requests" "§4" "The state has the unlock requests up to D."
    StateOutcomes "state-outcomes" "§4" "The state has the outcomes up to D."
    PruneRebase "prune-rebase" "§4" "Without a pruned certificate, an authority takes a checkpoint's state."
    PrunedAttests "pruned-attests" "not stated" "An authority attests an order also without its certificate."
    RebaseOwn "rebase-own" "§4" "A rebase keeps the authority's executions beyond the cut."
    RebaseLock "rebase-lock" "§4" "A rebase keeps locks: a pending order, inherited, contested."
    RebaseSeen "rebase-seen" "§4" "A rebase keeps Seen."
    RebaseVoidVoted "rebase-void-voted" "§4" "A rebase keeps VoidVoted."
    RebaseWindow "rebase-window" "§1.1" "A rebase begins the windows of frozen numbers anew."
    RebaseIndex "rebase-index" "§4" "A rebase takes nobody back in the order, nor to a closed epoch."
    JoinCheckpoint "join-checkpoint" "§3.3" "A joiner begins from the newest checkpoint that its Closings name."
    OldCertificates "old-certificates" "§3.6" "An old epoch's certificate does not count by itself."
    OldSeen "old-seen" "§3.6" "What was stored on an old view is Seen only if it still counts later."
    OldVouched "old-vouched" "§3.6" "It counts with f+1 CertificateVotes of the current epoch, at any age."
}

/// The rules that a run keeps.
#[derive(Clone, Copy, Debug)]
pub struct Rules(u128);

impl Rules {
    /// The protocol.
    pub const ALL: Self = Self(u128::MAX);

    /// These rules but one.
    #[must_use]
    pub fn without(self, rule: Rule) -> Self {
        Self(self.0 & !(1 << rule as u64))
    }

    /// Whether the run keeps the rule.
    pub fn keep(self, rule: Rule) -> bool {
        self.0 & (1 << rule as u64) != 0
    }
}
