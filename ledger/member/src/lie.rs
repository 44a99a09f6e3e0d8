//! What a lying member does, for tests and the demo. Only the feature `testing` compiles it in: without it, nothing lies.

use fastpay_ledger_statement::{Answers, MemberKeys};

#[cfg(feature = "testing")]
use crate::alteration::Alteration;
use crate::chain::Judged;
use crate::pool::{Inputs, Pool};
use crate::store::Proposed;

/// What this member lies about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lie {
    /// It is honest.
    Nothing,
    /// As a leader, it names other messages than come out.
    #[cfg(feature = "testing")]
    Outputs,
    /// As a leader, it proposes no client's request.
    #[cfg(feature = "testing")]
    Requests,
    /// It alters the groups that it hands over, in one way after the other.
    #[cfg(feature = "testing")]
    Groups,
    /// It alters the answers that it gives, in one way after the other.
    #[cfg(feature = "testing")]
    Answers,
    /// As a leader, it sends another payload than its header names.
    #[cfg(feature = "testing")]
    Torn,
    /// It hands over no group.
    #[cfg(feature = "testing")]
    Withholding,
}

#[cfg(not(feature = "testing"))]
impl Lie {
    pub(crate) fn of_environment() -> Self {
        Self::Nothing
    }

    pub(crate) fn has_work(self, pool: &Pool) -> bool {
        !pool.is_empty()
    }

    pub(crate) fn about_inputs(self, inputs: Inputs) -> Inputs {
        inputs
    }

    pub(crate) fn about_outputs(self, _: &MemberKeys, proposed: Proposed, judged: Judged) -> (Proposed, Judged) {
        (proposed, judged)
    }

    pub(crate) fn about_payload(self, payload: Vec<u8>) -> Vec<u8> {
        payload
    }

    pub(crate) fn about_groups(self, _: &MemberKeys, groups: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        groups
    }

    pub(crate) fn about_answers(self, _: &MemberKeys, answers: Answers) -> Answers {
        answers
    }
}

#[cfg(feature = "testing")]
impl Lie {
    /// As `FASTPAY_LEDGER_LIE` says: `outputs`, `requests`, `torn`, `groups`, `answers` or `withholding`.
    pub(crate) fn of_environment() -> Self {
        match std::env::var("FASTPAY_LEDGER_LIE").as_deref() {
            Ok("outputs") => Self::Outputs,
            Ok("requests") => Self::Requests,
            Ok("groups") => Self::Groups,
            Ok("answers") => Self::Answers,
            Ok("torn") => Self::Torn,
            Ok("withholding") => Self::Withholding,
            _ => Self::Nothing,
        }
    }

    /// Who leaves requests out proposes as if none waited. At full speed its 64 heights would be over before anybody has
    /// known a request for five seconds.
    pub(crate) fn has_work(self, pool: &Pool) -> bool {
        self != Self::Requests && !pool.is_empty()
    }

    pub(crate) fn about_inputs(self, inputs: Inputs) -> Inputs {
        if self == Self::Requests { Inputs { requests: Vec::new(), ..inputs } } else { inputs }
    }

    pub(crate) fn about_outputs(self, keys: &MemberKeys, proposed: Proposed, judged: Judged) -> (Proposed, Judged) {
        if self != Self::Outputs || judged.executed.outputs.groups().is_empty() {
            return (proposed, judged);
        }
        let mut header = *proposed.header();
        header.outputs = fastpay_core::Digest::repeat_byte(1);
        let header = header.signed(keys);
        let proposed = Proposed::new(header, proposed.payload().to_vec()).expect("the payload is the same");
        (proposed, Judged { header, ..judged })
    }

    pub(crate) fn about_payload(self, mut payload: Vec<u8>) -> Vec<u8> {
        if self == Self::Torn {
            payload.truncate(payload.len() / 2);
        }
        payload
    }

    pub(crate) fn about_groups(self, keys: &MemberKeys, groups: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        match self {
            Self::Groups if !groups.is_empty() => Alteration::next().of_groups(keys, groups),
            Self::Withholding => Vec::new(),
            _ => groups,
        }
    }

    pub(crate) fn about_answers(self, keys: &MemberKeys, answers: Answers) -> Answers {
        if self == Self::Answers { Alteration::next().of_answers(keys, answers) } else { answers }
    }
}
