//! Reads the committees of all epochs in a final block, for an authority's follower.
//!
//! As with deposits, no result rests on a single node's answer if several are configured. An answer that delay cannot
//! explain is an [`Alarm`]; everything else is retryable. The contract keeps every committee that it ever installed and
//! never changes one, so a reader that was away for many epochs gets all of them from its views.

use fastpay_core::{Committee, Committees, Digest, Epoch, EpochEnd, Recovery};

use crate::contract::{ICouncil, IFastPay};
use crate::deposits::{DepositsError, block_hash};
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
        self.agreed(known, None, u64::MAX).await
    }

    /// As [`EpochReader::read`], with the newest recovery, what it has adopted in that block, and until when votes of the
    /// epoch before the newest one count there. Of the epochs in `known` it is known which were installed by a recovery.
    /// For an authority.
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
        self.agreed(known, Some(examined), block).await
    }

    /// What an epoch has adopted in the newest block that is final at every node.
    ///
    /// # Errors
    /// As [`EpochReader::read`].
    pub async fn adopted(&self, epoch: Epoch) -> Result<Option<Digest>, DepositsError> {
        let block = self.common_final_block().await?;
        let mut agreed = None;
        for node in self.primary.endpoints() {
            let adopted = self.adopted_at(node, epoch, At::Hash(block_hash(node, block).await?)).await?;
            if *agreed.get_or_insert(adopted) != adopted {
                return Err(Alarm::Disagreement { block, node: node.label().into() }.into());
            }
        }
        agreed.ok_or(DepositsError::Primary(PrimaryError::NoUrl))
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

    /// The committees; with the newest recovery if those after the epoch `examined` are to be looked at.
    async fn agreed(
        &self,
        known: Option<&Committees>,
        examined: Option<Epoch>,
        up_to: u64,
    ) -> Result<Committees, DepositsError> {
        let block = self.common_final_block().await?.min(up_to);
        let mut agreed: Option<Committees> = None;
        for node in self.primary.endpoints() {
            let hash = block_hash(node, block).await?;
            let mut committees = self.read_at(node, known, At::Hash(hash), block).await?;
            if let Some(examined) = examined {
                self.read_end(node, &mut committees, At::Hash(hash)).await?;
                self.read_recovery(node, &mut committees, examined, At::Hash(hash)).await?;
            }
            match &agreed {
                None => agreed = Some(committees),
                Some(first) if *first == committees => {}
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

    /// Notes the newest recovery, of those after the epoch `examined` and the one that is known, and what it has adopted.
    /// Of the committees that follow each other without a later recovery, an epoch counts as one whose keys were out only
    /// if the installation of the next one said so.
    async fn read_recovery(
        &self,
        node: &Endpoint,
        committees: &mut Committees,
        examined: Epoch,
        at: At,
    ) -> Result<(), PrimaryError> {
        let contract = self.primary.contract();
        let (mut newest, mut epoch) = (committees.recovery(), committees.current().epoch());
        while epoch > examined {
            let before = epoch.0.saturating_sub(1);
            if node.view(contract, &IFastPay::compromisedCall { epoch: before }, at).await? {
                newest = Some(Recovery { epoch, adopted: None });
                break;
            }
            epoch = Epoch(before);
        }
        let Some(Recovery { epoch, mut adopted }) = newest else { return Ok(()) };
        if adopted.is_none() {
            adopted = self.adopted_at(node, epoch, at).await?;
        }
        committees
            .recover(Recovery { epoch, adopted })
            .expect("it is the recovery of a committee of the list, after the first");
        Ok(())
    }

    async fn adopted_at(&self, node: &Endpoint, epoch: Epoch, at: At) -> Result<Option<Digest>, PrimaryError> {
        let council = node.view(self.primary.contract(), &IFastPay::councilCall {}, at).await?;
        let adopted = node.view(council, &ICouncil::adoptedCall { epoch: epoch.0 }, at).await?;
        Ok(Some(adopted).filter(|adopted| !adopted.is_zero()))
    }

    async fn committee(&self, node: &Endpoint, epoch: Epoch, at: At) -> Result<Committee, PrimaryError> {
        let contract = self.primary.contract();
        let listed = node.view(contract, &IFastPay::committeeCall { epoch: epoch.0 }, at).await?;
        let quorum = node.view(contract, &IFastPay::quorumCall { epoch: epoch.0 }, at).await?;
        checked_committee(epoch, &listed, quorum)
    }
}
