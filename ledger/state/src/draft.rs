//! Executing one height: what other clusters sent comes first, then clients' requests, each in the order of the
//! proposal.

use std::collections::{BTreeMap, HashSet};

use fastpay_core::{Amount, Asset, Digest};
use fastpay_ledger_statement::{
    Action, Answer, Bond, ClusterId, CommitteeNumber, GROUP_MESSAGES_MAX, Height, Instruction, Layout, Message,
    Outcome, Outputs, Receiver, Rejection, Request, StateKey, Time, VerifiedGroup, VerifiedRequest,
};

use crate::outbox::{LOOK_UP_BYTES_MAX, Outgoing, WAITING_BYTES_MAX, WAITING_MESSAGES_MAX};
use crate::state::State;

/// So many requests can await answers from one cluster: those that it is sent in two groups. They stay in the state for
/// as long as it does not answer.
pub const PENDING_MAX: u64 = 2 * GROUP_MESSAGES_MAX as u64;

/// The height that is executed, as its header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The height.
    pub height: Height,
    /// Its time.
    pub time: Time,
}

/// What a height leads to.
#[derive(Debug)]
pub struct Executed {
    /// The state after it.
    pub state: State,
    /// The messages that it sends.
    pub outputs: Outputs,
}

impl State {
    /// Executes a height. `self` stays as it is.
    ///
    /// # Errors
    /// See [`FoldError`]: the proposal is to be voted against.
    pub fn execute(
        &self,
        layout: &Layout,
        moment: Moment,
        groups: &[VerifiedGroup],
        requests: &[VerifiedRequest],
    ) -> Result<Executed, FoldError> {
        let mut digests = HashSet::with_capacity(requests.len());
        if let Some(twice) = requests.iter().map(VerifiedRequest::digest).find(|digest| !digests.insert(*digest)) {
            return Err(FoldError::Repeated(twice));
        }
        let mut draft =
            Draft { layout, moment, state: self.clone(), writes: 0, maturing: Vec::new(), outbox: BTreeMap::new() };
        groups.iter().try_for_each(|group| draft.take(group))?;
        requests.iter().for_each(|request| draft.receive(request));
        let outputs = draft.send()?;
        Ok(Executed { state: draft.state, outputs })
    }
}

/// A height under execution.
pub(crate) struct Draft<'a> {
    pub(crate) layout: &'a Layout,
    pub(crate) moment: Moment,
    pub(crate) state: State,
    /// The number of writes to the store so far.
    pub(crate) writes: u32,
    /// Announcements that mature at this height. Their acceptances name the committee's group of it.
    pub(crate) maturing: Vec<(CommitteeNumber, Digest)>,
    /// What is to be sent, in order.
    pub(crate) outbox: BTreeMap<Receiver, Outgoing>,
}

impl Draft<'_> {
    /// Executes what another cluster sent.
    fn take(&mut self, group: &VerifiedGroup) -> Result<(), FoldError> {
        let (from, number) = (group.from(), group.group().number);
        let to = group.group().to;
        if group.deployment() != self.layout.deployment() || to != Receiver::Cluster(self.layout.us()) {
            return Err(FoldError::NotForUs { from, number, to });
        }
        let due = self.state.due_from(from);
        if (number, group.group().previous) != (due.next, due.previous) {
            return Err(FoldError::NotDue { from, number, due: due.next });
        }
        for message in &group.group().messages {
            self.take_message(from, message).ok_or(FoldError::Faulty { from, number })?;
        }
        self.state.put(StateKey::Taken(from), &group.cursor());
        Ok(())
    }

    /// `None` if no honest cluster would send this message here.
    fn take_message(&mut self, from: ClusterId, message: &Message) -> Option<()> {
        let partition = self.layout.partition();
        match message {
            Message::Request(request) => {
                if partition.of_request(request) != self.layout.us() {
                    return None;
                }
                let request = request.clone().verify(self.layout.deployment()).ok()?;
                self.execute(&request, Receiver::Cluster(from));
            }
            Message::Answer(answer) => self.pass_back(from, answer)?,
            Message::Credit(credit) => {
                if partition.of_reserve(&credit.to) != self.layout.us() {
                    return None;
                }
                self.count_taken(from, credit.asset, credit.amount)?;
                self.credit(credit);
            }
            Message::Fund(funding) => {
                if !self.layout.is_settlement() {
                    return None;
                }
                self.check_funded_account(funding.committee, funding.account).ok()?;
                self.count_taken(from, funding.asset, funding.amount)?;
                self.funded(funding);
            }
            Message::Unlock(unlocking) => {
                if !self.layout.is_settlement() {
                    return None;
                }
                let Bond { asset, amount } = self.check_request(&unlocking.request).ok()?;
                self.count_taken(from, asset, amount)?;
                self.unlocking(unlocking);
            }
            Message::Event(_) => return None,
        }
        Some(())
    }

    /// Counts an amount that another cluster sent. `None` if it is nothing, or more than was issued. The sum of several
    /// may be more: another cluster may have made that money, so this one is not refused for it. The audit tells which.
    fn count_taken(&mut self, from: ClusterId, asset: Asset, amount: Amount) -> Option<()> {
        if amount == Amount::ZERO || amount > self.layout.issued(asset) {
            return None;
        }
        self.state.add(StateKey::TakenTotal(from, asset), amount);
        Some(())
    }

    /// Executes a client's request, or passes it on.
    fn receive(&mut self, request: &VerifiedRequest) {
        let responsible = self.layout.partition().of_request(request.request());
        if responsible == self.layout.us() {
            self.execute(request, Receiver::Clients);
        } else if self.layout.members(responsible).is_some() {
            self.pass_on(responsible, request);
        } else {
            self.answer(request, Err(Rejection::UnknownCluster(responsible)), Receiver::Clients);
        }
    }

    /// Passes a request on to the cluster that executes it. While its answer is awaited, the same one is not passed on
    /// again: the one answer is for everybody who sent it.
    fn pass_on(&mut self, to: ClusterId, request: &VerifiedRequest) {
        let pending = StateKey::Pending(to, request.digest());
        if self.state.read(&pending).is_some() {
            return;
        }
        let count = self.pending_count(to);
        if count >= PENDING_MAX {
            self.answer(request, Err(Rejection::Busy), Receiver::Clients);
            return;
        }
        self.state.put(StateKey::PendingCount(to), &count.saturating_add(1));
        self.state.put(pending, &());
        self.push(Receiver::Cluster(to), Message::Request(request.request().clone()));
    }

    fn pending_count(&self, to: ClusterId) -> u64 {
        self.state.get(&StateKey::PendingCount(to)).unwrap_or_default()
    }

    /// Passes the answer to a request on to the clients. `None` if this cluster awaits no such answer from that one: it
    /// may answer for itself alone, and once.
    fn pass_back(&mut self, from: ClusterId, answer: &Answer) -> Option<()> {
        let pending = StateKey::Pending(from, answer.request);
        self.state.read(&pending)?;
        self.state.tree.remove(&pending);
        self.state.put(StateKey::PendingCount(from), &self.pending_count(from).saturating_sub(1));
        self.push(Receiver::Clients, Message::Answer(answer.clone()));
        Some(())
    }

    /// Executes a request, and answers it. A look-up needs no signature and its answer is long, so it is not carried
    /// out while much waits. All other answers are about as short as the requests.
    fn execute(&mut self, request: &VerifiedRequest, to: Receiver) {
        let result = match request.request() {
            Request::Get(_) if self.waiting_bytes(to) > LOOK_UP_BYTES_MAX => Err(Rejection::Busy),
            Request::Get(get) => self.look_up(&get.namespace, &get.key),
            Request::Instruct(signed) => self.instruct(&signed.instruction, request.digest()),
        };
        self.answer(request, result, to);
    }

    fn answer(&mut self, request: &VerifiedRequest, result: Result<Outcome, Rejection>, to: Receiver) {
        self.push(to, Message::Answer(Answer { request: request.digest(), result }));
    }

    /// Carries out an instruction whose turn it is. Every check comes before the first change.
    pub(crate) fn carry_out(&mut self, instruction: &Instruction) -> Result<Outcome, Rejection> {
        let signer = instruction.signer;
        match &instruction.action {
            Action::Write { namespace, key, condition, value } => {
                self.write(signer, namespace, key, *condition, value.as_ref())
            }
            Action::Open => self.open(signer),
            Action::Transfer { to, asset, amount } => self.transfer(signer, *to, *asset, *amount),
            Action::Fund { committee, account, asset, amount } => {
                self.fund(signer, *committee, *account, *asset, *amount)
            }
            Action::Redeem { committee, redemption, epoch, votes } => {
                self.redeem(signer, *committee, redemption, *epoch, votes)
            }
            Action::RedeemBatch { committee, redemptions, epoch, votes } => {
                self.redeem_batch(signer, *committee, redemptions, *epoch, votes)
            }
            Action::RequestUnlock(request) => self.request_unlock(signer, request),
            Action::Uphold { committee, account, sequence, digest, votes } => {
                self.uphold(signer, (*committee, *account, *sequence), *digest, votes)
            }
            Action::Void { committee, account, sequence, unanimous, votes } => {
                self.void((*committee, *account, *sequence), *unanimous, votes)
            }
            Action::Announce(announcing) => self.announce(announcing),
            Action::Endorse { committee, announcement } => self.endorse(signer, *committee, *announcement),
            Action::Mature { committee, announcement } => self.mature(*committee, *announcement),
            Action::Install { committee, announcement, votes } => self.install(*committee, *announcement, votes),
        }
    }
}

/// Why a proposal is not valid. Nothing of it is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FoldError {
    /// The leader left out a group, or repeats one.
    #[error("group {number} of cluster {from} is not due here; group {due} is")]
    NotDue {
        /// The sender.
        from: ClusterId,
        /// The group's number.
        number: u64,
        /// The number that is due.
        due: u64,
    },
    /// The leader took a group for somebody else, or of another ledger.
    #[error("group {number} of cluster {from} is for {to}, or of another deployment: it is not for this cluster")]
    NotForUs {
        /// The sender.
        from: ClusterId,
        /// The group's number.
        number: u64,
        /// Its receiver.
        to: Receiver,
    },
    /// The leader repeats a request.
    #[error("the request {0} is in the proposal twice; propose it once")]
    Repeated(Digest),
    /// More would wait for a receiver than this cluster keeps.
    #[error(
        "more than {WAITING_MESSAGES_MAX} messages or {WAITING_BYTES_MAX} bytes would wait for {0}; propose fewer requests \
         and groups"
    )]
    Overfull(Receiver),
    /// A quorum of another cluster certified what no honest one sends: a message for somebody else, an answer to
    /// nobody's request, an amount of zero, or more than was issued. Nothing more is taken from it.
    #[error("group {number} of cluster {from} has a message that no honest cluster sends; stop, and ask its operators")]
    Faulty {
        /// The sender.
        from: ClusterId,
        /// The group's number.
        number: u64,
    },
}
