//! Rebuilds the history before a recovery [LIFE §3.5, §5]: from a certified state, what the Primary said since, and
//! whatever certificates are still known, in any order. The committee is gone, or keys of more members than it tolerates
//! were out.
//!
//! ```text
//!  events, who executed what ─► which order of each number holds ─┐
//!  certificates ─► without gap from V ────────────────────────────┴─► while an account owes: without its last order
//!                                                                     ─► segment
//! ```
//! Thieves who have a quorum's keys certify two orders of one number. Then the one counts that more members executed: if
//! a quorum did, it is in more of the folders than any other one. So what was settled is not taken back for an order that
//! nobody had seen. Where no folder tells, the one counts that a later epoch certified: keys of a committee that was
//! replaced long ago may be out.
//!
//! What the Primary paid, or will pay because it queued it with votes of a sound epoch, is debited whether or not a
//! certificate of it is known, and also behind a gap. Of the orders, as many are taken as are covered. There is one
//! largest set of them: what covers one order covers it in a larger set, too. So the order of the inputs does not
//! matter, and another certificate removes no order of others.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::application::SegmentError;
use super::installations::InstalledCommittee;
use super::segment::{PrimaryEvent, PrimaryEventKind, Segment, SegmentEntry};
use super::state::{CheckpointState, NumberState};
use crate::Digest;
use crate::amount::{Amount, Asset, Balance, Epoch, SequenceNumber};
use crate::certificate::VerifiedCertificate;
use crate::identity::AccountId;
use crate::order::TransferOrder;
use crate::statement::Domain;
use crate::transfer::{Redemption, Transfer};

/// Why nothing can be rebuilt.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecoveryError {
    /// No installation made a recovery.
    #[error("the newest event is not the installation of a committee that ends earlier epochs at once")]
    NoRecovery,
    /// The events do not follow the state.
    #[error(transparent)]
    Events(#[from] SegmentError),
    /// The Primary paid a redemption, and says only its digest.
    #[error(
        "the Primary spent number {sequence} of account {account} on the redemption {digest}, of which not all fields are \
         known; give its certificate, or the redemption itself"
    )]
    UnknownRedemption {
        /// The account.
        account: AccountId,
        /// The number.
        sequence: SequenceNumber,
        /// The redemption's digest.
        digest: Digest,
    },
    /// It is not known with whose votes the Primary queued a redemption.
    #[error(
        "the Primary queued number {sequence} of account {account}, and the epoch of the votes is not known; run the recovery \
         again with other Ethereum nodes"
    )]
    UnknownVotes {
        /// The account.
        account: AccountId,
        /// The number.
        sequence: SequenceNumber,
    },
}

/// A certificate that is not in the rebuilt history.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LeftOut {
    /// The sender.
    pub account: AccountId,
    /// Its number.
    pub sequence: SequenceNumber,
    /// The order's digest.
    pub digest: Digest,
    /// Why.
    pub reason: LeftOutReason,
}

/// Why a certificate is not in the rebuilt history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum LeftOutReason {
    /// An earlier recovery adopted a checkpoint without it. Or the new committee made it, too early.
    #[error(
        "certificates of epoch {0} do not count: a later epoch adopted a checkpoint without it, or the epoch has not \
         adopted one"
    )]
    Epoch(Epoch),
    /// The Primary voided the number.
    #[error("the contract voided the number")]
    Voided,
    /// The Primary spent the number on another order, or upheld another one.
    #[error("the contract says that the order {0} holds")]
    Overruled(Digest),
    /// Two orders of one number are certified: more than f authorities were faulty.
    #[error("the order {0} of the same number is certified, too, and at least as many members executed it")]
    Rival(Digest),
    /// A certificate before it is missing.
    #[error("the certificate of number {0} is missing")]
    Gap(SequenceNumber),
    /// The account does not hold what the order, or one before, spends: certificates that paid it are missing.
    #[error("nothing that is known covers the order {0}; certificates that paid the account are missing")]
    NotCovered(SequenceNumber),
}

/// What is known beside certificates.
#[derive(Clone, Debug, Default)]
pub struct KnownFacts {
    /// By their digests, redemptions that the Primary paid or queued.
    pub redemptions: BTreeMap<Digest, Redemption>,
    /// For each redemption that the Primary queued before the recovery, also if it has paid it since: the epoch of the votes.
    /// By digest.
    pub queued_with: BTreeMap<Digest, Epoch>,
    /// By their digests, how many members executed orders, as their data folders say.
    pub executed_by: BTreeMap<Digest, usize>,
    /// The epochs that earlier recoveries installed and that adopted nothing: nobody began anew in them, so what was
    /// certified before them counts.
    pub without_checkpoint: BTreeSet<Epoch>,
}

/// A rebuilt history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// The segment, which [`CheckpointState::apply`] takes.
    pub segment: Segment,
    /// The redemptions that are debited because the Primary paid or queued them, without their owner's order.
    pub paid: Vec<Redemption>,
    /// The certificates that are not in it, but for those that the state includes.
    pub left_out: BTreeSet<LeftOut>,
    /// Numbers that the Primary queued on redemptions with keys that were out, and that are not debited: each with its
    /// digest.
    pub queued: Vec<(AccountId, SequenceNumber, Digest)>,
}

/// A number that an account takes.
enum Taken {
    Order { order: Box<TransferOrder>, digest: Digest, effect: Effect },
    Paid(Redemption),
    Void,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// The order moves value, and needs its cover.
    Moves,
    /// The Primary paid it.
    Paid,
    /// A redemption that the Primary never pays.
    None,
}

/// What an account takes.
#[derive(Default)]
struct Numbers {
    /// From V on, without gap.
    taken: Vec<Taken>,
    /// What the Primary paid behind the first gap.
    behind: BTreeMap<SequenceNumber, Redemption>,
}

/// The certified orders of each number, by digest, each with the newest epoch that certified it.
type Candidates = BTreeMap<(AccountId, SequenceNumber), BTreeMap<Digest, (Epoch, TransferOrder)>>;

struct Rebuild<'a> {
    /// The state after all events but the installation.
    followed: CheckpointState,
    candidates: Candidates,
    facts: &'a KnownFacts,
    /// The first epoch whose keys the installation names as out.
    since: Epoch,
    /// Redemptions of certificates that do not count: if the Primary paid one, they show it.
    shown: BTreeMap<Digest, Redemption>,
    balances: BTreeMap<(AccountId, Asset), Balance>,
    owing: BTreeSet<(AccountId, Asset)>,
    /// Those of which no order is left that could be left out.
    bare: BTreeSet<(AccountId, Asset)>,
    left_out: BTreeSet<LeftOut>,
}

impl CheckpointState {
    /// Rebuilds the history after this state. `events` are all that follow it up to the installation that made the
    /// recovery, and `certificates` those that are known.
    ///
    /// # Errors
    /// See [`RecoveryError`].
    pub fn recover(
        self,
        mut events: Vec<PrimaryEvent>,
        certificates: impl IntoIterator<Item = VerifiedCertificate>,
        facts: &KnownFacts,
        domain: &Domain,
    ) -> Result<Recovered, RecoveryError> {
        let installation = events.pop().ok_or(RecoveryError::NoRecovery)?;
        let since = match &installation.kind {
            PrimaryEventKind::Installed(installed) if installed.is_recovery() => installed.compromised_since,
            _ => return Err(RecoveryError::NoRecovery),
        };
        let mut followed = self;
        for event in &events {
            match followed.follow(event.clone(), domain) {
                // Stolen keys voided a number that was already used. It stays used, and the recovery goes on.
                Err(SegmentError::Voided { .. }) => {}
                outcome => outcome?,
            }
        }
        let is_unknown = |said: &NumberState| {
            let queued = said.paid().filter(|_| said.spent.is_some_and(|spent| !spent.is_paid));
            queued.is_some_and(|digest| !facts.queued_with.contains_key(&digest))
        };
        if let Some(((account, sequence), _)) = followed.numbers.iter().find(|(_, said)| is_unknown(said)) {
            return Err(RecoveryError::UnknownVotes { account: *account, sequence: *sequence });
        }
        let balances = followed.balances.clone();
        let owing = balances.iter().filter(|(_, held)| **held < Balance::ZERO).map(|(of, _)| *of).collect();
        let (candidates, shown, bare, left_out) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
        let mut rebuild = Rebuild { followed, candidates, facts, since, shown, balances, owing, bare, left_out };
        rebuild.consider_all(certificates);
        let mut accounts = rebuild.accounts()?;
        rebuild.cover(&mut accounts);
        Ok(rebuild.finish(accounts, events, installation))
    }
}

impl Rebuild<'_> {
    fn consider_all(&mut self, certificates: impl IntoIterator<Item = VerifiedCertificate>) {
        certificates.into_iter().for_each(|certificate| self.consider(certificate));
        // One order may be certified in several epochs.
        let candidates = &self.candidates;
        self.left_out.retain(|LeftOut { account, sequence, digest, .. }| {
            candidates.get(&(*account, *sequence)).is_none_or(|known| !known.contains_key(digest))
        });
    }

    /// Takes a certificate as a candidate, if certificates of its epoch count.
    fn consider(&mut self, certificate: VerifiedCertificate) {
        let (digest, epoch) = (certificate.digest(), certificate.certificate().epoch);
        let order = certificate.into_certificate().order;
        let slot @ (account, sequence) = (order.transfer.sender(), order.transfer.sequence());
        if sequence < self.followed.cut.next(&account) {
            return;
        }
        let installations = &self.followed.installations;
        let has_ended = |installed: &InstalledCommittee| {
            let began = installed.committee.epoch();
            installed.is_recovery() && epoch < began && !self.facts.without_checkpoint.contains(&began)
        };
        if epoch > installations.epoch() || installations.iter().any(has_ended) {
            if let Transfer::Redemption(redemption) = order.transfer {
                self.shown.insert(digest, redemption);
            }
            self.leave_out(slot, digest, LeftOutReason::Epoch(epoch));
            return;
        }
        let known = self.candidates.entry(slot).or_default().entry(digest).or_insert((epoch, order));
        known.0 = known.0.max(epoch);
    }

    fn leave_out(&mut self, (account, sequence): (AccountId, SequenceNumber), digest: Digest, reason: LeftOutReason) {
        self.left_out.insert(LeftOut { account, sequence, digest, reason });
    }

    /// What each account takes if all of it is covered.
    fn accounts(&mut self) -> Result<BTreeMap<AccountId, Numbers>, RecoveryError> {
        let of_numbers = self.followed.numbers.keys().filter(|(account, at)| *at >= self.followed.cut.next(account));
        let slots: BTreeSet<_> = of_numbers.chain(self.candidates.keys()).copied().collect();
        let mut accounts = BTreeMap::<AccountId, Numbers>::new();
        for slot @ (account, sequence) in slots {
            let numbers = accounts.entry(account).or_default();
            let next = after(self.followed.cut.next(&account), numbers.taken.len());
            let holder = if sequence == next { self.holder(slot)? } else { None };
            if let Some(taken) = holder {
                self.include(&taken);
                numbers.taken.push(taken);
            } else if let Some(paid) = self.paid(slot)? {
                self.include(&Taken::Paid(paid.clone()));
                self.reject(slot, LeftOutReason::Gap(next));
                numbers.behind.insert(sequence, paid);
            } else {
                self.reject(slot, LeftOutReason::Gap(next));
            }
        }
        Ok(accounts)
    }

    fn said(&self, slot: (AccountId, SequenceNumber)) -> NumberState {
        self.followed.numbers.get(&slot).copied().unwrap_or_default()
    }

    /// The redemption that the Primary has paid under a number, or pays whatever the new committee does: it queued it with
    /// votes of an epoch of which nobody says that keys were out.
    fn owed(&self, said: &NumberState) -> Option<Digest> {
        let (digest, spent) = (said.paid()?, said.spent?);
        let is_bound = || self.facts.queued_with.get(&digest).is_some_and(|epoch| !self.was_out(*epoch));
        (spent.is_paid || is_bound()).then_some(digest)
    }

    /// Whether an installation says that keys of this epoch were out.
    fn was_out(&self, epoch: Epoch) -> bool {
        let says = |installed: &InstalledCommittee| {
            (installed.compromised_since..installed.committee.epoch()).contains(&epoch)
        };
        epoch >= self.since || self.followed.installations.iter().any(says)
    }

    /// The only order that may be executed under a number; `None` if the Primary did not say.
    fn holds(&self, said: &NumberState) -> Option<Digest> {
        let upheld = said.upheld_in().filter(|(_, epoch)| *epoch < self.since).map(|(digest, _)| digest);
        self.owed(said).or(upheld)
    }

    /// What holds under a number; `None` if that is not known.
    fn holder(&mut self, slot: (AccountId, SequenceNumber)) -> Result<Option<Taken>, RecoveryError> {
        let said = self.said(slot);
        if said.is_voided() {
            self.reject(slot, LeftOutReason::Voided);
            return Ok(Some(Taken::Void));
        }
        let holds = self.holds(&said);
        let upheld = said.upheld_in().map(|(digest, _)| digest);
        let executed_by = |digest: &Digest| self.facts.executed_by.get(digest).copied().unwrap_or_default();
        let taken = self.candidates.get_mut(&slot).and_then(|known| {
            let rank = |(digest, (epoch, _)): &(&Digest, &(Epoch, TransferOrder))| {
                (executed_by(digest), upheld == Some(**digest), *epoch, Reverse(**digest))
            };
            let first = holds.or_else(|| known.iter().max_by_key(rank).map(|(digest, _)| *digest));
            known.remove_entry(&first?)
        });
        let Some((digest, (_, order))) = taken else {
            let paid = self.paid(slot)?.map(Taken::Paid);
            holds.into_iter().for_each(|holds| self.reject(slot, LeftOutReason::Overruled(holds)));
            return Ok(paid);
        };
        self.reject(slot, LeftOutReason::Rival(digest));
        let effect = match (said.spent, &order.transfer) {
            (Some(_), _) if self.owed(&said) == Some(digest) => Effect::Paid,
            (Some(spent), Transfer::Redemption(_)) if spent.digest != digest => Effect::None,
            _ => Effect::Moves,
        };
        Ok(Some(Taken::Order { order: Box::new(order), digest, effect }))
    }

    /// The redemption that the Primary has paid under a number, or pays whatever the new committee does.
    fn paid(
        &self,
        slot @ (account, sequence): (AccountId, SequenceNumber),
    ) -> Result<Option<Redemption>, RecoveryError> {
        let Some(digest) = self.owed(&self.said(slot)) else { return Ok(None) };
        let certified = self.candidates.get(&slot).and_then(|known| match &known.get(&digest)?.1.transfer {
            Transfer::Redemption(redemption) => Some(redemption),
            Transfer::Payment(_) | Transfer::Payout(_) => None,
        });
        let known =
            certified.or_else(|| self.facts.redemptions.get(&digest)).or_else(|| self.shown.get(&digest)).cloned();
        known.map(Some).ok_or(RecoveryError::UnknownRedemption { account, sequence, digest })
    }

    /// None of the number's candidates is taken. One that the Primary paid is debited all the same.
    fn reject(&mut self, slot: (AccountId, SequenceNumber), reason: LeftOutReason) {
        let said = self.said(slot);
        for digest in self.candidates.remove(&slot).unwrap_or_default().into_keys() {
            if self.owed(&said) != Some(digest) {
                let holds = self.holds(&said).map(LeftOutReason::Overruled);
                let reason = if said.is_voided() { LeftOutReason::Voided } else { holds.unwrap_or(reason) };
                self.leave_out(slot, digest, reason);
            }
        }
    }

    /// Leaves out the last order of each account that owes, until none does but for what the Primary paid.
    fn cover(&mut self, accounts: &mut BTreeMap<AccountId, Numbers>) {
        while let Some((account, asset)) = self.owing.first().copied() {
            let is_payer = |taken: &Taken| match taken {
                Taken::Order { order, effect: Effect::Moves, .. } => order.transfer.asset() == asset,
                _ => false,
            };
            let numbers = accounts.get_mut(&account);
            let last = numbers.and_then(|numbers| Some((numbers.taken.iter().rposition(is_payer)?, numbers)));
            let Some((at, numbers)) = last else {
                self.owing.remove(&(account, asset));
                self.bare.insert((account, asset));
                continue;
            };
            let first = self.followed.cut.next(&account);
            let sequence = after(first, at);
            for (offset, taken) in (at..).zip(numbers.taken.split_off(at)) {
                self.exclude(&taken);
                let behind = after(first, offset);
                if let Taken::Order { digest, effect: Effect::Moves | Effect::None, .. } = &taken {
                    self.leave_out((account, behind), *digest, LeftOutReason::NotCovered(sequence));
                }
                if let Some(paid) = taken.into_paid() {
                    self.include(&Taken::Paid(paid.clone()));
                    numbers.behind.insert(behind, paid);
                }
            }
        }
    }

    fn include(&mut self, taken: &Taken) {
        self.move_value(taken, Balance::debit, Balance::credit);
    }

    fn exclude(&mut self, taken: &Taken) {
        self.move_value(taken, Balance::credit, Balance::debit);
    }

    fn move_value(
        &mut self,
        taken: &Taken,
        of_sender: fn(Balance, Amount) -> Balance,
        of_recipient: fn(Balance, Amount) -> Balance,
    ) {
        match taken {
            Taken::Order { order, effect: Effect::Moves | Effect::Paid, .. } => {
                let (transfer, asset) = (&order.transfer, order.transfer.asset());
                for receipt in transfer.receipts() {
                    let amount = receipt.payment.amount;
                    self.change(receipt.payment.recipient, asset, |balance| of_recipient(balance, amount));
                }
                self.change(transfer.sender(), asset, |balance| of_sender(balance, transfer.amount()));
            }
            Taken::Paid(paid) => self.change(paid.sender, paid.asset, |balance| of_sender(balance, paid.amount)),
            Taken::Order { effect: Effect::None, .. } | Taken::Void => {}
        }
    }

    fn change(&mut self, account: AccountId, asset: Asset, change: impl FnOnce(Balance) -> Balance) {
        let balance = self.balances.entry((account, asset)).or_default();
        *balance = change(*balance);
        if *balance < Balance::ZERO && !self.bare.contains(&(account, asset)) {
            self.owing.insert((account, asset));
        } else {
            self.owing.remove(&(account, asset));
        }
    }

    fn finish(
        self,
        accounts: BTreeMap<AccountId, Numbers>,
        events: Vec<PrimaryEvent>,
        installation: PrimaryEvent,
    ) -> Recovered {
        let events = events.into_iter().map(SegmentEntry::Event);
        let mut entries: Vec<_> = std::iter::once(SegmentEntry::Recovery).chain(events).collect();
        let (mut paid, mut ordered) = (Vec::new(), BTreeSet::new());
        for (account, Numbers { taken, behind }) in accounts {
            let first = self.followed.cut.next(&account);
            for (offset, taken) in taken.into_iter().enumerate() {
                entries.push(match taken {
                    Taken::Order { order, digest, .. } => {
                        ordered.insert(digest);
                        SegmentEntry::Executed(*order)
                    }
                    Taken::Paid(redemption) => {
                        paid.push(redemption.clone());
                        SegmentEntry::Paid(redemption)
                    }
                    Taken::Void => SegmentEntry::Void { account, sequence: after(first, offset) },
                });
            }
            paid.extend(behind.values().cloned());
            entries.extend(behind.into_values().map(SegmentEntry::Paid));
        }
        entries.push(SegmentEntry::Event(installation));
        let is_open =
            |said: &NumberState| said.paid().filter(|digest| self.owed(said).is_none() && !ordered.contains(digest));
        let queued = self
            .followed
            .numbers
            .iter()
            .filter_map(|((account, sequence), said)| Some((*account, *sequence, is_open(said)?)));
        let queued = queued.collect();
        Recovered { segment: Segment { entries }, paid, left_out: self.left_out, queued }
    }
}

impl Taken {
    /// What the Primary paid under the number.
    fn into_paid(self) -> Option<Redemption> {
        match self {
            Self::Paid(redemption) => Some(redemption),
            Self::Order { order, effect: Effect::Paid, .. } => match order.transfer {
                Transfer::Redemption(redemption) => Some(redemption),
                Transfer::Payment(_) | Transfer::Payout(_) => None,
            },
            Self::Order { .. } | Self::Void => None,
        }
    }
}

/// The number so many after the first.
fn after(first: SequenceNumber, offset: usize) -> SequenceNumber {
    SequenceNumber(first.0.saturating_add(offset as u64))
}
