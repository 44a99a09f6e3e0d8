//! Reads the committees of all epochs in a final block, for an authority's follower.
//!
//! As with deposits, no result rests on a single node's answer if several are configured. An answer that delay cannot
//! explain is an [`Alarm`]; everything else is retryable. The contract keeps every committee that it ever installed and
//! never changes one, so a reader that was away for many epochs gets all of them from its views.

use fastpay_core::{Committee, Committees, Epoch};

use crate::contract::IFastPay;
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
        let block = self.common_final_block().await?;
        let mut agreed: Option<Committees> = None;
        for node in self.primary.endpoints() {
            let hash = block_hash(node, block).await?;
            let committees = self.read_at(node, known, At::Hash(hash), block).await?;
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

    async fn committee(&self, node: &Endpoint, epoch: Epoch, at: At) -> Result<Committee, PrimaryError> {
        let contract = self.primary.contract();
        let listed = node.view(contract, &IFastPay::committeeCall { epoch: epoch.0 }, at).await?;
        let quorum = node.view(contract, &IFastPay::quorumCall { epoch: epoch.0 }, at).await?;
        checked_committee(epoch, &listed, quorum)
    }
}
