//! A committee of keys, and payments for it.

use std::num::NonZeroU32;

use bytes::Bytes;
use fastpay_core::{AuthorityKeys, Committee, Committees, Domain, Epoch, PrimaryAddress, ShardLayout};
use fastpay_e2e::Failure;

use super::Extent;
use crate::draw;
use crate::workload::{self, Accounts, Prepared, Voters};

/// The committee and payments of both measurements.
pub struct Scene {
    pub domain: Domain,
    /// The key of the measured authority.
    pub keys: AuthorityKeys,
    pub committee: Committee,
    pub accounts: Accounts,
    /// The payments, in rounds of one for each account.
    pub payments: Vec<Prepared>,
}

impl Scene {
    pub fn new(authorities: usize, extent: Extent) -> Result<Self, Failure> {
        let keys: Result<Vec<_>, _> = (1..=authorities as u64).map(authority).collect();
        let mut keys = keys.map_err(Failure::wrong)?;
        let members = keys.iter().map(AuthorityKeys::public).collect();
        let committee = Committee::new(Epoch(0), members).map_err(Failure::wrong)?;
        let domain = Domain::new(0, PrimaryAddress::repeat_byte(0xFA));
        let accounts = Accounts::new(extent.people);
        let measured = keys.pop().ok_or_else(|| Failure::wrong("no authorities"))?;
        keys.truncate(committee.quorum());
        let pairs = draw::rounds(extent.accounts, extent.rounds + 1);
        let voters = Voters { domain: &domain, keys: &keys, batch: extent.vote_batch };
        let payments = workload::prepare_payouts(&pairs, &accounts, layout(), &voters, extent.outputs);
        Ok(Self { domain, keys: measured, committee, accounts, payments })
    }

    pub fn committees(&self) -> Result<Committees, Failure> {
        Committees::new(self.committee.clone()).map_err(Failure::wrong)
    }

    pub fn mean_bytes(&self, which: fn(&Prepared) -> &Bytes) -> usize {
        let sum: usize = self.payments.iter().map(|payment| which(payment).len()).sum();
        sum / self.payments.len().max(1)
    }
}

pub fn layout() -> ShardLayout {
    ShardLayout::new(NonZeroU32::MIN)
}

fn authority(number: u64) -> Result<AuthorityKeys, fastpay_core::InvalidKey> {
    let mut secret = [9; 32];
    if let Some(start) = secret.first_chunk_mut() {
        *start = number.to_le_bytes();
    }
    AuthorityKeys::from_secrets(secret, secret)
}
