//! What a genesis must be.

use fastpay_core::{Amount, Asset};
use fastpay_ledger_statement::{
    ClusterId, CommitteeNumber, FoundedCommittee, Genesis, GenesisError, Issue, Layout, MembersError, SafetyParameters,
    UNLOCK_WINDOW_MS_MIN,
};

use crate::people::{client, committee};
use crate::world::{COMMITTEE, COORDINATOR, PARAMETERS, WINDOW_MS, founded, genesis};

fn refused(alter: impl FnOnce(&mut Genesis)) -> GenesisError {
    let mut genesis = genesis(2);
    alter(&mut genesis);
    Layout::new(genesis, COORDINATOR).unwrap_err()
}

#[test]
fn unfit_geneses_are_refused() {
    let unknown = ClusterId(9);
    assert_eq!(refused(|genesis| genesis.partition.settlement = unknown), GenesisError::UnknownCluster(unknown));
    assert_eq!(refused(|genesis| genesis.partition.other_shards.push(unknown)), GenesisError::UnknownCluster(unknown));
    assert_eq!(Layout::new(genesis(2), unknown).unwrap_err(), GenesisError::UnknownCluster(unknown));
    let repeated = refused(|genesis| genesis.partition.other_shards.push(ClusterId(1)));
    assert_eq!(repeated, GenesisError::RepeatedShard(ClusterId(1)));
    let late = refused(|genesis| {
        let founded = FoundedCommittee { first: committee(1), ..founded(PARAMETERS) };
        genesis.committees.insert(CommitteeNumber(3), founded);
    });
    assert_eq!(late, GenesisError::NotFirstEpoch(CommitteeNumber(3)));
    let crowd = refused(|genesis| {
        genesis.committees = (0..1_020).map(|number| (CommitteeNumber(number), founded(PARAMETERS))).collect();
    });
    assert_eq!(crowd, GenesisError::TooManyReceivers(1_025));
    let few = refused(|genesis| genesis.clusters.get_mut(&ClusterId(1)).unwrap().truncate(3));
    assert_eq!(few, GenesisError::Members { cluster: ClusterId(1), error: MembersError::Size(3) });
    for amount in [u128::MAX, (1 << 127) - 6_000] {
        let issue = Issue { owner: client(0).account(), asset: Asset::ETHER, amount: Amount(amount) };
        assert_eq!(refused(|genesis| genesis.issued.push(issue)), GenesisError::TooMuchIssued(Asset::ETHER));
    }
    let issue = Issue { owner: client(0).account(), asset: Asset::ETHER, amount: Amount((1 << 127) - 6_001) };
    let mut most = genesis(2);
    most.issued.push(issue);
    assert!(Layout::new(most, COORDINATOR).is_ok());
}

#[test]
fn parameters_with_which_a_committee_could_not_live_are_refused() {
    let answer = |alter: fn(&mut SafetyParameters)| {
        let mut genesis = genesis(2);
        alter(&mut genesis.committees.get_mut(&COMMITTEE).unwrap().parameters);
        Layout::new(genesis, COORDINATOR).map(drop)
    };
    let (window, validity) = (UNLOCK_WINDOW_MS_MIN - 1, 2 * WINDOW_MS - 1);
    assert_eq!(answer(|of| of.unlock_window_ms -= 1), Err(GenesisError::UnlockWindow(COMMITTEE, window)));
    assert_eq!(answer(|of| of.votes_validity_ms -= 1), Err(GenesisError::VotesValidity(COMMITTEE, validity)));
    let overflow = answer(|of| (of.unlock_window_ms, of.votes_validity_ms) = (u64::MAX / 2 + 1, u64::MAX - 1));
    assert_eq!(overflow, Err(GenesisError::VotesValidity(COMMITTEE, u64::MAX - 1)));
    assert_eq!(answer(|of| of.endorsed_delay_ms = of.announced_delay_ms), Ok(()));
    assert_eq!(answer(|of| of.endorsed_delay_ms = of.announced_delay_ms + 1), Err(GenesisError::Delays(COMMITTEE)));
    assert_eq!(answer(|of| of.lapse_ms = 0), Err(GenesisError::Lapse(COMMITTEE)));
    assert_eq!(answer(|of| of.unlock_bond.amount = Amount(0)), Err(GenesisError::Bond(COMMITTEE)));
    assert_eq!(answer(|of| of.unlock_bond.amount = Amount(6_000)), Ok(()));
    assert_eq!(answer(|of| of.unlock_bond.amount = Amount(6_001)), Err(GenesisError::Bond(COMMITTEE)));
    let unknown = |of: &mut SafetyParameters| of.unlock_bond.asset = Asset(alloy_primitives::Address::repeat_byte(9));
    assert_eq!(answer(unknown), Err(GenesisError::Bond(COMMITTEE)), "nobody has any");
}

#[test]
fn every_part_of_the_genesis_is_in_the_deployment() {
    fn parameters(genesis: &mut Genesis) -> &mut SafetyParameters {
        &mut genesis.committees.get_mut(&COMMITTEE).unwrap().parameters
    }
    let deployment = |alter: fn(&mut Genesis)| {
        let mut genesis = genesis(2);
        // Wider, so that a longer window is one too.
        parameters(&mut genesis).votes_validity_ms += 2;
        alter(&mut genesis);
        Layout::new(genesis, COORDINATOR).unwrap().deployment()
    };
    let mut all = [
        deployment(|_| ()),
        deployment(|genesis| drop(genesis.namespaces.pop_first())),
        deployment(|genesis| drop(genesis.committees.pop_first())),
        deployment(|genesis| genesis.issued.truncate(2)),
        deployment(|genesis| genesis.committees.get_mut(&COMMITTEE).unwrap().guardian = Default::default()),
        deployment(|genesis| parameters(genesis).votes_validity_ms += 1),
        deployment(|genesis| parameters(genesis).unlock_window_ms += 1),
        deployment(|genesis| parameters(genesis).endorsed_delay_ms += 1),
        deployment(|genesis| parameters(genesis).announced_delay_ms += 1),
        deployment(|genesis| parameters(genesis).lapse_ms += 1),
        deployment(|genesis| parameters(genesis).unlock_bond.amount.0 += 1),
        deployment(|genesis| genesis.partition.settlement = ClusterId(1)),
        deployment(|genesis| genesis.clusters.get_mut(&ClusterId(1)).unwrap().swap(0, 1)),
    ]
    .to_vec();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 13);
}
