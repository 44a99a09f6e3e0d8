//! A committee, all of whose keys the test has.

use fastpay_core::{
    AuthorityKeys, Certificate, Committee, Domain, Epoch, PrimaryAddress, TransferOrder, VerifiedCertificate,
    VerifiedOrder, Vote, sign_vote,
};

use crate::secret;

/// The domain of test committees: anvil's chain id and an invented contract.
#[must_use]
pub fn test_domain() -> Domain {
    Domain::new(31337, PrimaryAddress::repeat_byte(0xFA))
}

/// A committee and the keys of its members.
#[derive(Clone, Debug)]
pub struct TestCommittee {
    /// The deployment.
    pub domain: Domain,
    /// The members' public side.
    pub committee: Committee,
    /// The members' keys, in the committee's order.
    pub keys: Vec<AuthorityKeys>,
}

impl TestCommittee {
    /// `size` authorities of epoch 0 under [`test_domain`].
    #[must_use]
    pub fn new(size: usize) -> Self {
        Self::with(size, test_domain(), Epoch(0))
    }

    /// The same authorities in another deployment or epoch.
    #[must_use]
    pub fn with(size: usize, domain: Domain, epoch: Epoch) -> Self {
        Self::of((1..).take(size).map(authority_keys).collect(), domain, epoch)
    }

    /// The same authorities in the next epoch, each with new keys and at the same index.
    #[must_use]
    pub fn rotated(&self) -> Self {
        self.rotated_to(self.keys.len())
    }

    /// As [`TestCommittee::rotated`], but with more or fewer authorities.
    #[must_use]
    pub fn rotated_to(&self, size: usize) -> Self {
        let epoch = Epoch(self.committee.epoch().0 + 1);
        Self::of((epoch.0 * 1_000..).take(size).map(authority_keys).collect(), self.domain, epoch)
    }

    /// The holders of these keys.
    #[must_use]
    pub fn of(mut keys: Vec<AuthorityKeys>, domain: Domain, epoch: Epoch) -> Self {
        keys.sort_by_key(|keys| keys.public().name);
        let members = keys.iter().map(AuthorityKeys::public).collect();
        let committee = Committee::new(epoch, members).expect("test authorities are distinct");
        Self { domain, committee, keys }
    }

    /// The vote of the member at `index` for any order.
    #[must_use]
    pub fn vote(&self, index: usize, order: &TransferOrder) -> Vote {
        let digest = self.domain.transfer_digest(&order.transfer);
        sign_vote(&self.keys[index], &self.domain, self.committee.epoch(), &order.transfer, digest)
    }

    /// A certificate with the votes of the given members, whether or not they are a quorum.
    #[must_use]
    pub fn certificate_by(&self, order: &TransferOrder, members: &[usize]) -> Certificate {
        let votes = members.iter().map(|index| self.vote(*index, order)).collect();
        Certificate { order: order.clone(), epoch: self.committee.epoch(), votes }
    }

    /// A certificate with the votes of the first members that form a quorum.
    #[must_use]
    pub fn certificate(&self, order: &TransferOrder) -> Certificate {
        let members: Vec<usize> = (0..self.committee.quorum()).collect();
        self.certificate_by(order, &members)
    }

    /// Verifies the order, which must be valid.
    #[must_use]
    pub fn verified(&self, order: &TransferOrder) -> VerifiedOrder {
        order.clone().verify(&self.domain).expect("a good order")
    }

    /// A verified certificate of the order, which must be valid.
    #[must_use]
    pub fn certified(&self, order: &TransferOrder) -> VerifiedCertificate {
        self.certificate(order).verify(&self.domain, &self.committee).expect("a good order and a quorum")
    }
}

/// The keys of the authority with this number.
#[must_use]
pub fn authority_keys(number: u64) -> AuthorityKeys {
    AuthorityKeys::from_secrets(secret(3, number), secret(4, number)).expect("test secrets are valid keys")
}
