//! Finishes stored orders, and adopts what other copies of this wallet did: a copy of the folder, or an older backup of
//! it.
//!
//! ```text
//!  numbers that others used ─► store their certificates
//!  an order that authorities are locked on ─► adopt: store it as if it were ours, and finish it
//!  two orders for one number ─► OrderConflict ─► finish the one that still can be ─► the other is superseded
//!  a certificate that a recovery ended, or that outlived its epoch
//!                        ─► its order again, under the same number ─► certified, or what took the number
//! ```
//! Invariants: nothing is signed here, and everything that is sent was signed with this account's key, which is
//! verified. Our own order, or one adopted in its place, is on disk before it is sent; the certificate of a competing
//! order is on disk before it is settled.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use fastpay_core::{AccountId, SequenceNumber, Transfer, VerifiedCertificate, VerifiedOrder};
use fastpay_rpc::AccountState;
use fastpay_telemetry::{Attribute, Side, Span};
use tokio::time::Instant;

use crate::error::WalletError;
use crate::folder::{OrderEntry, OrderJournal, OrderState};
use crate::wallet::{CERTIFICATES_MAX, READ_PATIENCE, Receipt, Resumed, Wallet};
use fastpay_client::Answers;
use fastpay_client::{Backoff, OrderConflict, Progress, QuorumError};

/// The maximum number of newest certificates of another copy that are copied into this wallet at a time. Older ones
/// stay at the authorities until they are needed.
const LEARNED_MAX: usize = 256;

impl Wallet {
    /// Finishes a stored order. What had to be made again before it is added to `before`.
    ///
    /// If a recovery has ended the epoch of its certificate, or too few authorities attest the certificate of an ended epoch,
    /// the order of that certificate is certified again: it keeps its number, so it happens once. If the recovery included
    /// it, an archive proves it, something else has taken the number, or the contract voided it, that is the outcome.
    pub(crate) async fn finish(
        &self,
        journal: &OrderJournal,
        entry: OrderEntry,
        before: &mut Vec<Resumed>,
    ) -> Result<Resumed, WalletError> {
        let (account, sequence) = (journal.orders().account(), entry.sequence);
        let (mut to_certify, mut unsettled) = (entry.order.clone(), None);
        if let Some(stored) = entry.certificate {
            match self.network().verify_certificate(stored, account, sequence) {
                Ok(certificate) => {
                    let begun_at = self.client().tracer().now();
                    match self.settle(journal, certificate.clone(), begun_at, true).await {
                        Err(WalletError::Quorum(
                            error @ (QuorumError::EpochEnded(_)
                            | QuorumError::Outdated(_)
                            | QuorumError::Pruned { .. }
                            | QuorumError::Voided { .. }),
                        )) => {
                            tracing::warn!(%sequence, %error, "a stored certificate does not count");
                            // Not ours, if this one had superseded it: its owner may have ordered ours anew.
                            to_certify = Some(certificate.into_certificate().order);
                            unsettled = Some(error);
                        }
                        settled => return Ok(Resumed::of(entry.order.map(|order| order.transfer), settled?)),
                    }
                }
                Err(error) => tracing::warn!(%sequence, %error, "a stored certificate is not valid"),
            }
        }
        let Some(order) = to_certify else {
            let error = "its certificate is not of this committee, and there is no order";
            return Err(WalletError::Argument(format!("sequence number {sequence}: {error}")));
        };
        let ordered = entry.order.map_or_else(|| order.transfer.clone(), |order| order.transfer);
        let order = order.verify(self.network().domain())?;
        // Another copy may be ahead with another order. Then authorities without an order must get that one, not ours.
        let answers = self.network().account(account, Instant::now() + READ_PATIENCE).await;
        if let Some(resumed) = self.note_decided(journal, &ordered, &answers).await? {
            return Ok(resumed);
        }
        match unsettled {
            // Nothing is noted before the contract or an archive says so, too.
            Some(error @ (QuorumError::Voided { .. } | QuorumError::Pruned { .. })) => return Err(error.into()),
            Some(_) => self.client().report(Progress::Renewed(order.transfer().clone())),
            None => {}
        }
        // Nothing is certified under this number before those below it are executed.
        before.extend(Box::pin(self.renew(journal, sequence, &answers)).await?);
        let mut conflict = self.conflict(account, sequence, &answers);
        conflict.enter(&order);
        if conflict.contenders().len() > 1 {
            // One vote for the wrong order may lock the account for ever, so ask every authority first.
            conflict.merge(&self.read_conflict(account, sequence).await);
        }
        let first = conflict.leader().cloned().unwrap_or_else(|| order.clone());
        match self.bring_home(journal, &order, first, true).await {
            Err(WalletError::Quorum(error)) => {
                // Authorities step over a number that a recovery debited when they are asked for something about it. And a
                // liar may have shown a certificate of a void number.
                let answers = self.network().account(account, Instant::now() + READ_PATIENCE).await;
                // What a recovery debited is paid, although an archive proves it, too.
                let decided = match self.note_spent(journal, &ordered, &answers).await? {
                    None => self.note_decided(journal, &ordered, &answers).await?,
                    spent => spent,
                };
                decided.ok_or(WalletError::Quorum(error))
            }
            receipt => Ok(Resumed::of(Some(ordered), receipt?)),
        }
    }

    /// Finishes again what is certified here under numbers below `next`, and not executed by f + 1 of the authorities that
    /// answer. If it is settled, that can be only if a recovery left it out, or if authorities lie or are slow, and then it
    /// does no harm. Without it, nothing could be certified under a later number.
    pub(crate) async fn renew(
        &self,
        journal: &OrderJournal,
        next: SequenceNumber,
        answers: &Answers<AccountState>,
    ) -> Result<Vec<Resumed>, WalletError> {
        let mut renewed = Vec::new();
        for entry in self.left_out(journal, next, answers)? {
            let resumed = self.finish(journal, entry, &mut renewed).await?;
            renewed.push(resumed);
        }
        Ok(renewed)
    }

    /// What was certified under numbers below `next`, as a certificate here says or a checkpoint has proven of an order of
    /// this wallet, and is not executed by f + 1 of the authorities that answer, oldest first.
    pub(crate) fn left_out(
        &self,
        journal: &OrderJournal,
        mut next: SequenceNumber,
        answers: &Answers<AccountState>,
    ) -> Result<Vec<OrderEntry>, WalletError> {
        let mut open = Vec::new();
        while let Some(sequence) = next.0.checked_sub(1).map(SequenceNumber)
            && !self.is_stepped_over(sequence, answers)
        {
            let entry = journal.orders().entry(sequence)?;
            let was_certified = |entry: &OrderEntry| match entry.state {
                OrderState::Voided => false,
                OrderState::Settled => entry.certificate.is_some() || entry.order.is_some(),
                _ => entry.certificate.is_some(),
            };
            open.extend(entry.filter(was_certified));
            next = sequence;
        }
        open.reverse();
        Ok(open)
    }

    /// If the number of an order is void, spent, or used long ago, notes that: the order is not sent any more.
    async fn note_decided(
        &self,
        journal: &OrderJournal,
        ordered: &Transfer,
        answers: &Answers<AccountState>,
    ) -> Result<Option<Resumed>, WalletError> {
        // A checkpoint proves it, whatever the Ethereum node says.
        if let Some(archived) = self.note_archived(journal, ordered, answers).await? {
            return Ok(Some(archived));
        }
        if self.note_void(journal, ordered.sequence(), answers).await? {
            return Ok(Some(Resumed::Voided { order: Box::new(ordered.clone()) }));
        }
        self.note_spent(journal, ordered, answers).await
    }

    /// If the number of an order was used long ago, and no authority shows a certificate of it that is settled, notes what a
    /// checkpoint proves of it.
    async fn note_archived(
        &self,
        journal: &OrderJournal,
        ordered: &Transfer,
        answers: &Answers<AccountState>,
    ) -> Result<Option<Resumed>, WalletError> {
        let (account, sequence) = (ordered.sender(), ordered.sequence());
        // A certificate that is not settled may be of another order than was executed.
        if !self.is_stepped_over(sequence, answers)
            || matches!(self.find_examined(account, sequence).await, Some((_, true)))
        {
            return Ok(None);
        }
        let found = self.network().archived_number(account, sequence, Instant::now() + READ_PATIENCE).await;
        let Some(entry) = found else { return Ok(None) };
        journal.archive(&entry, self.network().domain())?;
        let order = Box::new(ordered.clone());
        Ok(Some(match entry.transfer {
            Some(settled) => Resumed::Archived { order, settled: Box::new(settled), checkpoint: entry.checkpoint },
            None => Resumed::Voided { order },
        }))
    }

    /// Has this order certified and settled, or the one that takes its number. It tries `first` first, which is this
    /// order or one that competes with it.
    pub(crate) async fn bring_home(
        &self,
        journal: &OrderJournal,
        order: &VerifiedOrder,
        first: VerifiedOrder,
        resumed: bool,
    ) -> Result<Receipt, WalletError> {
        let (start, begun_at) = (Instant::now(), self.client().tracer().now());
        let mut tried = 0..CERTIFICATES_MAX;
        loop {
            let certificate = self.certify_one(order, first.clone()).await?;
            let certified_after = start.elapsed();
            journal.certify(&certificate)?;
            match self.settle(journal, certificate, begun_at, resumed).await {
                // A liar showed what retired keys may have made. It is not taken from anybody again.
                Err(WalletError::Quorum(QuorumError::EpochEnded(_) | QuorumError::Outdated(_)))
                    if tried.next().is_some() => {}
                receipt => return Ok(Receipt { certified_after, ..receipt? }),
            }
        }
    }

    /// The certificate of the number of `order`: for this order, or for whichever competitor can still get one.
    pub(crate) async fn certify_one(
        &self,
        order: &VerifiedOrder,
        first: VerifiedOrder,
    ) -> Result<VerifiedCertificate, WalletError> {
        let (mut next, mut tried) = (first, BTreeSet::new());
        loop {
            tried.insert(next.digest());
            if next.digest() != order.digest() {
                self.client().report(Progress::Adopted(next.transfer().clone()));
            }
            let error = match self.certify(&next).await {
                Ok(certificate) => return Ok(certificate),
                Err(QuorumError::Superseded { certificate }) => return Ok(*certificate),
                Err(QuorumError::Conflict(mut conflict)) => {
                    // The attempt ended as soon as too many were locked. Ask the other authorities, too.
                    let transfer = order.transfer();
                    conflict.merge(&self.read_conflict(transfer.sender(), transfer.sequence()).await);
                    QuorumError::Conflict(conflict)
                }
                Err(error) => error,
            };
            let leader = match &error {
                QuorumError::Conflict(conflict) => conflict.leader(),
                _ => None,
            };
            next = match leader {
                Some(leader) if !tried.contains(&leader.digest()) => leader.clone(),
                // A competitor may be one that nobody can finish, returned by a liar. Try ours.
                _ if !tried.contains(&order.digest()) => order.clone(),
                _ => return Err(error.into()),
            };
        }
    }

    /// Has an order certified. If the committee changes meanwhile, the new keys vote for the order: the authorities'
    /// locks outlive a rotation, and so does the order.
    async fn certify(&self, order: &VerifiedOrder) -> Result<VerifiedCertificate, QuorumError> {
        self.through_epochs(|| self.client().certify(order)).await
    }

    /// Attempts under one committee, and again under the next one if it changes meanwhile: once f + 1 authorities vote in a
    /// newer epoch, or one does and the contract has it. The others may have answered before the change, and are not asked
    /// again. Also once again if too few authorities answer: the members may be others by now, where the endpoints file does
    /// not list them.
    pub(crate) async fn through_epochs<T, F: Future<Output = Result<T, QuorumError>>>(
        &self,
        attempt: impl Fn() -> F,
    ) -> Result<T, QuorumError> {
        let until = Instant::now() + self.client().options().deadline;
        let (mut backoff, mut is_sought) = (Backoff::new(*self.client().options()), false);
        loop {
            let outcome = tokio::select! {
                biased;
                outcome = attempt() => outcome,
                () = self.newer_committee() => continue,
            };
            match outcome {
                Err(QuorumError::NoQuorum { .. }) if !is_sought && self.seek_members().await => is_sought = true,
                Err(QuorumError::NewEpoch { epoch, .. }) if Instant::now() < until => {
                    if let Err(error) = self.follow().await {
                        tracing::warn!(%epoch, %error, "the committee has changed, and the Primary does not answer");
                    }
                    if self.network().committee().epoch() < epoch {
                        // The authorities have read the rotation in a final block; this wallet's node will do so soon.
                        backoff.wait().await;
                    }
                }
                outcome => return outcome,
            }
        }
    }

    /// Waits until an authority names a newer epoch, and the contract has it.
    async fn newer_committee(&self) {
        let (epoch, mut is_told) = (self.network().committee().epoch(), false);
        while self.network().committee().epoch() == epoch {
            // It may have read the rotation before this wallet's node, so the contract is read again after each pause.
            tokio::time::sleep(self.client().options().backoff_max).await;
            is_told |= self.network().hinted_epoch().is_some();
            if !is_told {
                continue;
            }
            // What one of several attempts learns, the others see: a liar costs one read a pause.
            let Ok(_one) = self.following.try_lock() else { continue };
            match self.follow().await {
                Ok(()) => self.network().drop_hint(),
                Err(error) => {
                    tracing::debug!(%error, "an authority names a newer epoch, and the Primary does not answer");
                }
            }
        }
    }

    /// Has a certificate settled. If traced, the time from `begun_at` on is the root of its trace.
    pub(crate) async fn settle(
        &self,
        journal: &OrderJournal,
        certificate: VerifiedCertificate,
        begun_at: Option<SystemTime>,
        resumed: bool,
    ) -> Result<Receipt, WalletError> {
        let (start, certified_at) = (Instant::now(), self.client().tracer().now());
        let settled = self.through_epochs(|| self.client().settle(&certificate)).await?;
        journal.settle(&certificate)?;
        let (certified_after, settled_after) = (Duration::ZERO, start.elapsed());
        if let (Some(begun_at), Some(certified_at)) = (begun_at, certified_at) {
            self.trace(&certificate, begun_at, certified_at, resumed);
        }
        Ok(Receipt { certificate, resumed, certified_after, settled_after, rest: settled.rest })
    }

    fn trace(&self, certificate: &VerifiedCertificate, begun_at: SystemTime, certified_at: SystemTime, resumed: bool) {
        let name = match certificate.transfer() {
            Transfer::Payment(_) => "fastpay.payment",
            Transfer::Redemption(_) => "fastpay.redemption",
            Transfer::Payout(_) => "fastpay.payout",
        };
        let tracer = self.client().tracer();
        let span = Span::new(name, Side::Inside, begun_at).with(Attribute::Resumed(resumed));
        let span = span.event("certified", certified_at);
        if let Some(settled_at) = tracer.now() {
            tracer.record_root(&certificate.digest(), span.ended(settled_at));
        }
    }

    /// The number after all used ones, some of which other copies may have used, or this wallet after the backup that
    /// this folder comes from. Stores their certificates in the folder, and notes which numbers are void.
    pub(crate) async fn catch_up(
        &self,
        journal: &OrderJournal,
        answers: &Answers<AccountState>,
    ) -> Result<SequenceNumber, WalletError> {
        let account = journal.orders().account();
        let known = journal.orders().next_sequence()?;
        let next = self.proven_next(account, known, answers).await;
        let first = known.0.max(next.0.saturating_sub(LEARNED_MAX as u64));
        let numbers: Vec<_> = (first..next.0).map(SequenceNumber).collect();
        self.learn_numbers(journal, &numbers, next, answers).await?;
        Ok(next)
    }

    /// Learns every number below `next` that this wallet has nothing of. Whoever takes a payment for unpaid because no
    /// known order made it calls this before it signs.
    ///
    /// # Errors
    /// [`WalletError::Unread`] if a used number can neither be read nor be proven void now. What was learned is stored.
    pub(crate) async fn learn_all(
        &self,
        journal: &OrderJournal,
        next: SequenceNumber,
        answers: &Answers<AccountState>,
    ) -> Result<(), WalletError> {
        let account = journal.orders().account();
        // If an honest authority is beyond `next`, that number is used, too, and nothing proves by what yet.
        if self.is_stepped_over(next, answers) {
            return Err(WalletError::Unread { account, sequence: next });
        }
        for numbers in journal.orders().unknown_below(next)?.rchunks(LEARNED_MAX) {
            self.learn_numbers(journal, numbers, next, answers).await?;
            let unknown = journal.orders().unknown_below(next)?;
            if let Some(sequence) = unknown.into_iter().find(|sequence| numbers.contains(sequence)) {
                return Err(WalletError::Unread { account, sequence });
            }
        }
        Ok(())
    }

    /// Stores what certificates, archives and the contract prove of these numbers below `next`, which are in order.
    async fn learn_numbers(
        &self,
        journal: &OrderJournal,
        numbers: &[SequenceNumber],
        next: SequenceNumber,
        answers: &Answers<AccountState>,
    ) -> Result<(), WalletError> {
        let account = journal.orders().account();
        let names: Vec<_> = numbers.iter().map(|sequence| (account, *sequence)).collect();
        let mut found = self.network().find_certificates(names, None, Instant::now() + READ_PATIENCE).await;
        // What the authorities have pruned is proven by their archives.
        let lowest = numbers.iter().find(|sequence| !found.contains_key(&(account, **sequence)));
        let until = numbers.last().and_then(|last| last.next());
        let archived = match (lowest, until) {
            (Some(lowest), Some(until)) => {
                self.network().archived_sent(account, *lowest, until, Instant::now() + READ_PATIENCE).await
            }
            _ => Vec::new(),
        };
        let mut unsettled = Vec::new();
        // The newest first: with it, the folder knows the next number even if this is interrupted.
        for sequence in numbers.iter().rev().copied() {
            let mut found = found.remove(&(account, sequence));
            if found.is_none() {
                if let Some(entry) = archived.iter().find(|entry| entry.sequence == sequence) {
                    journal.archive(entry, self.network().domain())?;
                    continue;
                }
                found = self.network().find_certificate(account, sequence).await;
            }
            let Some(certificate) = found else {
                if self.is_void(account, sequence, answers).await {
                    journal.void(sequence)?;
                    continue;
                }
                tracing::warn!(%account, %sequence, "a certificate of another copy of this wallet cannot be found");
                continue;
            };
            journal.certify(&certificate)?;
            // A later number proves nothing of this one: it may be void, and its certificate one that was kept hidden.
            if sequence.next() < Some(next) {
                unsettled.push(certificate);
            }
        }
        // What is not settled here stays open, and `finish` finds out what became of it.
        self.settle_many(unsettled, |certificate, settled| match settled {
            Ok(_) => journal.settle(&certificate),
            Err(error) => {
                tracing::warn!(digest = %certificate.digest(), %error, "a certificate of an earlier number is not settled");
                Ok(())
            }
        })
        .await?;
        Ok(())
    }

    /// Adopts an order of this account that this wallet did not store and that authorities are locked on. Returns false
    /// if there is none.
    pub(crate) fn adopt(
        &self,
        journal: &OrderJournal,
        next: SequenceNumber,
        answers: &Answers<AccountState>,
    ) -> Result<bool, WalletError> {
        let conflict = self.conflict(journal.orders().account(), next, answers);
        // If none can be finished any more, an attempt returns the error that explains it.
        let Some(order) = conflict.leader().or_else(|| conflict.any()) else { return Ok(false) };
        self.client().report(Progress::Adopted(order.transfer().clone()));
        journal.create(order)?;
        Ok(true)
    }

    async fn read_conflict(&self, account: AccountId, sequence: SequenceNumber) -> OrderConflict {
        let answers = self.network().account_everywhere(account, Instant::now() + READ_PATIENCE).await;
        self.conflict(account, sequence, &answers)
    }

    /// The orders of a number that authorities are locked on. An order that can keep another one from its quorum is
    /// held by more than the f authorities that a quorum of answers may lack, so it is among them. An order signed by
    /// the account's owner counts, whichever authority returns it.
    fn conflict(&self, account: AccountId, sequence: SequenceNumber, answers: &Answers<AccountState>) -> OrderConflict {
        let mut conflict = OrderConflict::new(&self.network().committee());
        for (name, answer) in answers {
            let Ok(AccountState { pending: Some(pending), .. }) = answer else { continue };
            if pending.transfer.sender() != account || pending.transfer.sequence() != sequence {
                continue;
            }
            match pending.clone().verify(self.network().domain()) {
                Ok(order) => conflict.hold(&order, *name),
                Err(error) => tracing::warn!(authority = %name, %error, "an authority shows an invalid pending order"),
            }
        }
        conflict
    }
}
