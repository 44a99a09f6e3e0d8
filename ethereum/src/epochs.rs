//! Reads the committees of all epochs in a final block, for an authority's follower.
//!
//! As with deposits, no result rests on a single node's answer if several are configured. An answer that delay cannot
//! explain is an [`Alarm`]; everything else is retryable. The contract keeps every committee that it ever installed and
//! never changes one, so a reader that was away for many epochs gets all of them from its views.

use std::collections::BTreeSet;

use alloy::primitives::U256;
use alloy::sol_types::SolEvent;
use fastpay_core::{Committee, Committees, Epoch, EpochEnd, Recovery};

use crate::contract::{ICouncil, IFastPay};
use crate::deposits::{DepositsError, RANGE_BLOCKS_DEFAULT, block_hash};
use crate::endpoint::{At, Endpoint};
use crate::error::PrimaryError;
use crate::events::Alarm;
use crate::primary::{Primary, checked_committee};

/// The maximum number of epochs read at a time, so that a node that claims many does not delay its reader.
const EPOCHS_AT_ONCE_MAX: u64 = 64;

/// Reads committees. It has no state of its own.
#[derive(Debug)]
pub struct EpochReader {
    primary: Primary,
}

impl EpochReader {
    /// A reader of this contract.
    #[must_use]
    pub fn new(primary: Primary) -> Self {
        Self { primary }
    }

    /// `known` with the committees that follow it, up to the newest block that is final at every node; all committees
    /// if none are known.
    ///
    /// # Errors
    /// See [`DepositsError::is_retryable`]. [`DepositsError::Lagging`] if the deployment is not final yet.
    pub async fn read(&self, known: Option<&Committees>) -> Result<Committees, DepositsError> {
        Ok(self.agreed(known, None, u64::MAX).await?.0)
    }

    /// As [`EpochReader::read`], with the newest recovery, what it has adopted in that block, and until when votes of the
    /// epoch before the newest one count there. Of the epochs in `known` it is known which were installed by a recovery.
    /// For an authority: of a new epoch that ended all before it, the announcements are read, from the deployment on.
    ///
    /// # Errors
    /// As [`EpochReader::read`].
    pub async fn read_with_recovery(&self, known: Option<&Committees>) -> Result<Committees, DepositsError> {
        self.read_with_recovery_in(u64::MAX, known).await
    }

    /// As [`EpochReader::read_with_recovery`], in this block if it is older than the newest one that is final at every
    /// node: for an authority that has followed the contract's events so far.
    ///
    /// # Errors
    /// As [`EpochReader::read`].
    pub async fn read_with_recovery_in(
        &self,
        block: u64,
        known: Option<&Committees>,
    ) -> Result<Committees, DepositsError> {
        let examined = known.map_or(Epoch(0), |known| known.current().epoch());
        Ok(self.agreed(known, Some(examined), block).await?.0)
    }

    /// Every recovery that installed one of these committees, in their order, with what it has adopted in the newest
    /// block that is final at every node.
    ///
    /// # Errors
    /// As [`EpochReader::read`].
    pub async fn recoveries(&self, committees: &Committees) -> Result<Vec<Recovery>, DepositsError> {
        let mut recoveries = self.agreed(Some(committees), Some(Epoch(0)), u64::MAX).await?.1;
        recoveries.retain(|recovery| recovery.epoch <= committees.current().epoch());
        Ok(recoveries)
    }

    /// The epoch before the current one of `committees`, if its committee's checkpoints still count: no node says, in the
    /// newest block that is final at every node, that its keys were out.
    ///
    /// # Errors
    /// As [`EpochReader::read`].
    pub async fn closing(&self, committees: &Committees) -> Result<Option<Epoch>, DepositsError> {
        let Some(before) = committees.current().epoch().0.checked_sub(1) else { return Ok(None) };
        let block = self.common_final_block().await?;
        for node in self.primary.endpoints() {
            let at = At::Hash(block_hash(node, block).await?);
            if node.view(self.primary.contract(), &IFastPay::compromisedCall { epoch: before }, at).await? {
                return Ok(None);
            }
        }
        Ok(Some(Epoch(before)))
    }

    /// The committees, and the recoveries after the epoch `examined` beside the newest one that is known.
    async fn agreed(
        &self,
        known: Option<&Committees>,
        examined: Option<Epoch>,
        up_to: u64,
    ) -> Result<(Committees, Vec<Recovery>), DepositsError> {
        let block = self.common_final_block().await?.min(up_to);
        let mut agreed: Option<(Committees, Vec<Recovery>)> = None;
        for node in self.primary.endpoints() {
            let hash = block_hash(node, block).await?;
            let mut committees = self.read_at(node, known, At::Hash(hash), block).await?;
            let recoveries = match examined {
                Some(examined) => {
                    self.read_end(node, &mut committees, At::Hash(hash)).await?;
                    self.read_recoveries(node, &mut committees, examined, (At::Hash(hash), block)).await?
                }
                None => Vec::new(),
            };
            let read = (committees, recoveries);
            match &agreed {
                None => agreed = Some(read),
                Some(first) if *first == read => {}
                Some(_) => return Err(Alarm::Disagreement { block, node: node.label().into() }.into()),
            }
        }
        agreed.ok_or(DepositsError::Primary(PrimaryError::NoUrl))
    }

    /// The newest block that is final at every node, which must not be before the deployment.
    async fn common_final_block(&self) -> Result<u64, DepositsError> {
        let deployment = self.primary.deployment_block().await?;
        let mut common = u64::MAX;
        for node in self.primary.endpoints() {
            let head = node.final_head(self.primary.finality()).await?.number();
            if head < deployment {
                return Err(DepositsError::Lagging { node: node.label().into(), head, cursor: deployment });
            }
            common = common.min(head);
        }
        Ok(common)
    }

    async fn read_at(
        &self,
        node: &Endpoint,
        known: Option<&Committees>,
        at: At,
        block: u64,
    ) -> Result<Committees, DepositsError> {
        let epoch = node.view(self.primary.contract(), &IFastPay::epochCall {}, at).await?;
        if let Some(known) = known.map(|known| known.current().epoch()).filter(|known| epoch < known.0) {
            return Err(Alarm::EpochLost { node: node.label().into(), block, known, found: Epoch(epoch) }.into());
        }
        let mut committees = match known {
            Some(known) => known.clone(),
            None => {
                let first = self.committee(node, Epoch(0), at).await?;
                Committees::new(first).expect("the committee is of the epoch that was asked for")
            }
        };
        let last = epoch.min(committees.current().epoch().0.saturating_add(EPOCHS_AT_ONCE_MAX));
        while committees.current().epoch().0 < last {
            let next = self.committee(node, committees.next_epoch(), at).await?;
            committees.install(next).expect("the committee is of the epoch that was asked for");
        }
        Ok(committees)
    }

    /// Notes until when votes of the epoch before the newest one count, and which of the epochs before ended at once. The
    /// contract forgets the former with the next installation.
    async fn read_end(&self, node: &Endpoint, committees: &mut Committees, at: At) -> Result<(), PrimaryError> {
        let Some(ended) = committees.current().epoch().0.checked_sub(1).map(Epoch) else { return Ok(()) };
        if committees.known_end(ended).is_none() {
            let contract = self.primary.contract();
            let until = node.view(contract, &IFastPay::epochValidUntilCall { epoch: ended.0 }, at).await?;
            let window = node.view(contract, &IFastPay::safetyParametersCall {}, at).await?.unlockWindow;
            committees.note_end(ended, EpochEnd::new(until.saturating_to(), window.into()));
            // Keys of earlier epochs may have been out, too, as any installation since the last reading may say.
            let counted = |epoch: &Epoch| committees.end(*epoch) != EpochEnd::default();
            for earlier in committees.ended().filter(counted).collect::<Vec<_>>() {
                if node.view(contract, &IFastPay::compromisedCall { epoch: earlier.0 }, at).await? {
                    committees.note_end(earlier, EpochEnd::default());
                }
            }
        }
        Ok(())
    }

    /// The recoveries after the epoch `examined`, beside the newest one that is known. Notes the newest of all.
    async fn read_recoveries(
        &self,
        node: &Endpoint,
        committees: &mut Committees,
        examined: Epoch,
        (at, block): (At, u64),
    ) -> Result<Vec<Recovery>, PrimaryError> {
        let contract = self.primary.contract();
        let mut ended_all = Vec::new();
        for committee in committees.iter().filter(|committee| committee.epoch() > examined) {
            // A recovery ends all epochs before it. Later installations may end those before an ordinary rotation.
            let before = committee.epoch().0.saturating_sub(1);
            let ends = async |epoch| node.view(contract, &IFastPay::compromisedCall { epoch }, at).await;
            if ends(before).await? && ends(0).await? {
                ended_all.push(&**committee);
            }
        }
        let found = self.installed_by_recovery(node, &ended_all, (at, block)).await?;
        let known = committees.recovery().filter(|known| !found.contains(&known.epoch));
        let found = found.into_iter().map(|epoch| Recovery { epoch, adopted: None });
        let mut recoveries: Vec<Recovery> = known.into_iter().chain(found).collect();
        for recovery in recoveries.iter_mut().filter(|recovery| recovery.adopted.is_none()) {
            let council = node.view(contract, &IFastPay::councilCall {}, at).await?;
            let adopted = node.view(council, &ICouncil::adoptedCall { epoch: recovery.epoch.0 }, at).await?;
            recovery.adopted = Some(adopted).filter(|adopted| !adopted.is_zero());
        }
        recoveries.sort_by_key(|recovery| recovery.epoch);
        if let Some(newest) = recoveries.last() {
            committees.recover(*newest).expect("it is the recovery of a committee of the list, after the first");
        }
        Ok(recoveries)
    }

    /// Those of the committees that ended all epochs before them, and that a recovery announced, as the node's events
    /// from the deployment on say.
    async fn installed_by_recovery(
        &self,
        node: &Endpoint,
        candidates: &[&Committee],
        (at, block): (At, u64),
    ) -> Result<BTreeSet<Epoch>, PrimaryError> {
        let (mut ended_all, mut announced) = (BTreeSet::new(), BTreeSet::new());
        if candidates.is_empty() {
            return Ok(announced);
        }
        let contract = self.primary.contract();
        let council = node.view(contract, &IFastPay::councilCall {}, at).await?;
        let mut first = self.primary.deployment_block().await?;
        while first <= block {
            let last = first.saturating_add(RANGE_BLOCKS_DEFAULT.saturating_sub(1)).min(block);
            for log in node.logs_of(contract, &[IFastPay::CommitteeInstalled::SIGNATURE_HASH], first, last).await? {
                match IFastPay::CommitteeInstalled::decode_log_data(log.data()) {
                    Ok(installed) if installed.compromisedSince == 0 => {
                        ended_all.insert(Epoch(installed.epoch));
                    }
                    _ => {}
                }
            }
            for log in node.logs_of(council, &[ICouncil::CommitteeAnnounced::SIGNATURE_HASH], first, last).await? {
                let Ok(ICouncil::CommitteeAnnounced { id, announcement, .. }) =
                    ICouncil::CommitteeAnnounced::decode_log_data(log.data())
                else {
                    continue;
                };
                let epoch = Epoch(announcement.epoch);
                let Some(committee) = candidates.iter().find(|committee| committee.epoch() == epoch) else { continue };
                let is_same = checked_committee(epoch, &announcement.authorities, quorum_of(committee));
                if announcement.compromisedSince != 0 || is_same.ok().as_ref() != Some(*committee) {
                    continue;
                }
                // Two announcements may name the same members, and of those that have matured any may be the one.
                let clock = node.view(council, &ICouncil::clockOfCall { id }, at).await?;
                if clock.isRecovery && !clock.maturedBlock.is_zero() {
                    announced.insert(epoch);
                }
            }
            first = last.saturating_add(1);
        }
        announced.retain(|epoch| ended_all.contains(epoch));
        Ok(announced)
    }

    async fn committee(&self, node: &Endpoint, epoch: Epoch, at: At) -> Result<Committee, PrimaryError> {
        let contract = self.primary.contract();
        let listed = node.view(contract, &IFastPay::committeeCall { epoch: epoch.0 }, at).await?;
        let quorum = node.view(contract, &IFastPay::quorumCall { epoch: epoch.0 }, at).await?;
        checked_committee(epoch, &listed, quorum)
    }
}

fn quorum_of(committee: &Committee) -> U256 {
    U256::from(committee.quorum())
}
