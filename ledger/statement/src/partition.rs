//! Which cluster keeps what. The genesis fixes it, so a client can ask the right cluster itself and save two rounds.

use borsh::{BorshDeserialize, BorshSerialize};
use fastpay_core::{AccountId, ShardLayout};

use crate::entry::StateKey;
use crate::identity::ClusterId;
use crate::request::{Key, Namespace, Request};

/// The division of everything kept among clusters.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Partition {
    /// It alone keeps FastPay committees: what their accounts have, their events, what is redeemed, and their epochs.
    pub settlement: ClusterId,
    /// They keep reserves and stored values, by the hash that names each. The first cannot be left out.
    pub first_shard: ClusterId,
    /// The others, in order.
    pub other_shards: Vec<ClusterId>,
}

impl Partition {
    /// All shards, in order.
    pub fn shards(&self) -> impl Iterator<Item = ClusterId> {
        std::iter::once(self.first_shard).chain(self.other_shards.iter().copied())
    }

    /// The shard that keeps an owner's reserves.
    #[must_use]
    pub fn of_reserve(&self, owner: &AccountId) -> ClusterId {
        let count = u32::try_from(self.other_shards.len()).unwrap_or(u32::MAX).saturating_add(1);
        let layout = ShardLayout::new(count.try_into().unwrap_or(std::num::NonZeroU32::MIN));
        let place = usize::try_from(layout.shard_of(owner).0).unwrap_or(usize::MAX);
        place.checked_sub(1).and_then(|other| self.other_shards.get(other)).copied().unwrap_or(self.first_shard)
    }

    /// The shard that keeps a value.
    #[must_use]
    pub fn of_value(&self, namespace: &Namespace, key: &Key) -> ClusterId {
        self.of_reserve(&AccountId(StateKey::Stored(namespace.clone(), key.clone()).digest().0))
    }

    /// The cluster that keeps an entry; `None` for what each cluster keeps for itself.
    #[must_use]
    pub fn of_entry(&self, key: &StateKey) -> Option<ClusterId> {
        match key {
            StateKey::Stored(namespace, key) => Some(self.of_value(namespace, key)),
            StateKey::Opened(owner) | StateKey::Reserve(owner, _) => Some(self.of_reserve(owner)),
            StateKey::Omnibus(..)
            | StateKey::EventIndex(_)
            | StateKey::Spent(..)
            | StateKey::Committee(..)
            | StateKey::Epoch(_)
            | StateKey::Unlock(..)
            | StateKey::Bonds(..)
            | StateKey::Announcement(..)
            | StateKey::AnnouncementCount(_)
            | StateKey::AnnouncementId(..) => Some(self.settlement),
            StateKey::Sequence(_)
            | StateKey::Answered(..)
            | StateKey::Taken(_)
            | StateKey::Sent(_)
            | StateKey::SentTotal(..)
            | StateKey::TakenTotal(..)
            | StateKey::Pending(..)
            | StateKey::PendingCount(_)
            | StateKey::Queue(_)
            | StateKey::Queued(..) => None,
        }
    }

    /// Whether a client takes this cluster's word for the answer to a request: the cluster executes it, or is a
    /// coordinator, which keeps nothing and passes answers on.
    #[must_use]
    pub fn may_answer(&self, cluster: ClusterId, request: &Request) -> bool {
        let is_coordinator = cluster != self.settlement && self.shards().all(|shard| shard != cluster);
        is_coordinator || cluster == self.of_request(request)
    }

    /// The cluster to which a request goes: the one that keeps the value, or that the signer names.
    #[must_use]
    pub fn of_request(&self, request: &Request) -> ClusterId {
        match request {
            Request::Get(get) => self.of_value(&get.namespace, &get.key),
            Request::Instruct(signed) => signed.instruction.shard,
        }
    }
}
