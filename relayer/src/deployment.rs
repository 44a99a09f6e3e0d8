//! The deployment to which the state belongs. Chain and contract are compared when the state is opened. That is not
//! enough: a test chain may restart under the same number with its contract at the same address. The state therefore
//! also contains the contract's first committee. Nothing stored is sent or followed before the contract has confirmed
//! that committee.

use fastpay_core::{Authority, Committees, Domain};

use crate::pending::PendingRedemption;
use crate::primary::PrimarySide;
use crate::relayer::{Relayer, RelayerError, wait_if_it_passes};
use crate::store::{State, StoreError};

/// How a state relates to a deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Binding {
    /// The state is of this deployment.
    Holds,
    /// The state had no deployment so far, and is bound to this one from now on.
    New,
    /// The state belongs to another deployment.
    Other,
}

impl<P: PrimarySide> Relayer<P> {
    /// Whether the contract is confirmed to be that of the state. False while no node answers.
    ///
    /// # Errors
    /// If the state belongs to another deployment.
    pub(crate) async fn is_identified(&mut self) -> Result<bool, RelayerError> {
        if self.committees.is_none()
            && let Err(error) = self.follow_committees().await
        {
            wait_if_it_passes(error)?;
        }
        let Some(committees) = &self.committees else { return Ok(false) };
        match self.state.bind(&self.domain, committees) {
            Binding::Holds => {}
            Binding::New => self.changed = true,
            Binding::Other => return Err(StoreError::OtherDeployment(self.config.data_dir.clone()).into()),
        }
        self.save()?;
        Ok(true)
    }
}

impl State {
    /// Compares the state with the committees of a contract. Binds a state that is not bound yet: a new one, or one of
    /// a release that stored no committee.
    fn bind(&mut self, domain: &Domain, committees: &Committees) -> Binding {
        let first: Option<Vec<Authority>> = committees.iter().next().map(|first| first.members().to_vec());
        if self.first_committee.is_some() {
            return if self.first_committee == first { Binding::Holds } else { Binding::Other };
        }
        // A redemption of an unknown committee cannot be judged yet.
        let is_foreign = |item: &&PendingRedemption| {
            let committee = committees.get(item.epoch);
            item.queued.is_none() && committee.is_some_and(|committee| !item.is_certified_by(domain, committee))
        };
        if self.items.iter().any(|item| is_foreign(&item)) {
            return Binding::Other;
        }
        // It is unknown which redemption logs the cursors are of, so read the logs again from their start. Follow only
        // sent transactions, which occupy a nonce, to their end.
        self.cursors.clear();
        let bundles = &self.bundles;
        self.items.retain(|item| bundles.iter().any(|bundle| bundle.items.contains(&item.id())));
        self.first_committee = first;
        Binding::New
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pending::RedemptionId;
    use crate::store::Bundle;
    use fastpay_core::{AuthorityName, Epoch};
    use fastpay_ethereum::{Call, Queued, Submission};
    use fastpay_testkit::{TestAccount, TestCommittee, redemption};

    fn item(committee: &TestCommittee, sequence: u64) -> PendingRedemption {
        let owner = TestAccount::ed25519(9);
        let order = redemption(owner.id(), [2; 20].into(), 10, sequence);
        let certificate = committee.certificate(&owner.sign(&committee.domain, order));
        let verified = certificate.verify(&committee.domain, &committee.committee).unwrap();
        PendingRedemption::new(&verified, &committee.committee, 1_000).unwrap()
    }

    fn under_way(id: RedemptionId) -> Bundle {
        let call =
            Call::claim([3; 20].into(), fastpay_core::Asset::ETHER, [5; 20].into(), alloy::primitives::U256::from(1));
        let from = [4; 20].into();
        let submission = Submission { call, from, nonce: 3, gas_limit: 1, attempts: Vec::new() };
        Bundle { submission, items: vec![id], unlock: None }
    }

    /// A state without a committee, of an earlier release: five entries read, one redemption under way, one waiting.
    fn of_before(committee: &TestCommittee) -> State {
        let mut state = State::new(committee.domain.chain_id(), committee.domain.contract());
        state.cursors.insert(AuthorityName([5; 32]), vec![5]);
        state.items = vec![item(committee, 0), item(committee, 1)];
        state.bundles = vec![under_way(state.items[0].id())];
        state.totals.redeemed = 7;
        state
    }

    #[test]
    fn a_state_is_of_the_deployment_that_it_was_first_used_with() {
        let (ours, other) = (TestCommittee::new(4), TestCommittee::new(7));
        let [known, elsewhere] = [&ours, &other].map(|these| Committees::new(these.committee.clone()).unwrap());
        let mut state = State::new(1, [3; 20].into());
        assert_eq!(state.bind(&ours.domain, &known), Binding::New);
        state.cursors.insert(AuthorityName([5; 32]), vec![5]);
        let before = state.clone();
        assert_eq!(state.bind(&ours.domain, &elsewhere), Binding::Other);
        // A rotation does not change that.
        let mut rotated = known.clone();
        rotated.install(TestCommittee::with(7, ours.domain, Epoch(1)).committee).unwrap();
        assert_eq!(state.bind(&ours.domain, &rotated), Binding::Holds);
        assert_eq!(state, before);
    }

    #[test]
    fn a_state_of_before_is_taken_over_where_its_certificates_are_of_these_committees() {
        let (ours, other) = (TestCommittee::new(4), TestCommittee::new(7));
        let [known, elsewhere] = [&ours, &other].map(|these| Committees::new(these.committee.clone()).unwrap());
        let mut state = of_before(&ours);
        let before = state.clone();
        assert_eq!(state.bind(&ours.domain, &elsewhere), Binding::Other);
        assert_eq!(state, before, "nothing is touched");
        // With one byte altered, one vote is missing to a quorum.
        let mut altered = state.clone();
        altered.items[1].redemption.amount.0 += 1;
        assert_eq!(altered.bind(&ours.domain, &known), Binding::Other);

        assert_eq!(state.bind(&ours.domain, &known), Binding::New);
        assert_eq!(state.items, before.items[..1], "what is under way is followed, the other one is read again");
        assert_eq!((state.cursors.len(), state.bundles.len(), state.totals.redeemed), (0, 1, 7));
        assert_eq!(state.bind(&ours.domain, &known), Binding::Holds);
    }

    #[test]
    fn what_proves_nothing_is_read_again() {
        let ours = TestCommittee::new(4);
        let known = Committees::new(ours.committee.clone()).unwrap();
        let mut state = of_before(&ours);
        // One in the contract's queue, without votes; and one of an unknown epoch.
        state.items[0].enqueue(Queued { executable_at: 1, relayer: [4; 20].into(), epoch: 0, needs_votes: false });
        state.items[1].epoch = Epoch(70);
        state.bundles.clear();
        assert_eq!(state.bind(&ours.domain, &known), Binding::New);
        assert_eq!(state.items, []);
    }
}
