//! A redemption that stolen keys alone certified: everybody executes it, and its account owes from then on. Nobody votes
//! for it again in a later epoch.

use fastpay_core::{AccountId, Balance, PrimaryAddress, PrimaryView, VerifiedCertificate};
use fastpay_testkit::{TestAccount, redemption};

use super::world::{OWNERS, World};

impl World {
    /// The thief certifies a redemption of an account without money, and shows it to everybody.
    pub fn overdraw(&mut self) {
        let thief = TestAccount::numbered(OWNERS);
        let order = redemption(thief.id(), PrimaryAddress::repeat_byte(6), 1, 0);
        let certificate = self.committee.certified(&thief.sign(&self.committee.domain, order));
        for at in 0..self.nodes.len() {
            let shard = self.nodes[at].authority.shard(&thief.id());
            let executed = shard.confirm_with(PrimaryView::Recent, &certificate);
            assert!(executed.is_ok(), "authority {at} refuses a certificate: {executed:?}");
            self.observe(at);
        }
        self.overdrawn = Some(certificate);
    }

    /// The account that owes.
    pub fn debtor(&self) -> Option<AccountId> {
        self.overdrawn.as_ref().map(|certificate| certificate.transfer().sender())
    }

    /// Whatever an authority has applied of the newest installation, it does not vote for what is overdrawn.
    pub fn is_overdrawn_for_all(&self) {
        let Some(certificate) = &self.overdrawn else { return };
        for at in 0..self.nodes.len() {
            assert!(!self.votes_again(at, certificate), "authority {at} votes again for what stolen keys certified");
        }
    }

    /// What its node decides of a redemption that it has executed, when it votes in the contract's epoch.
    fn votes_again(&self, at: usize, certificate: &VerifiedCertificate) -> bool {
        let (account, authority) = (certificate.transfer().sender(), &self.nodes[at].authority);
        let unlocks = &authority.shards[self.shard_of(at, account)].ledger().unlocks;
        let owes = authority.account(&account).balance(certificate.transfer().asset()) < Balance::ZERO;
        !(owes && unlocks.is_suspect(certificate.certificate().epoch, self.contract.epoch))
    }
}
