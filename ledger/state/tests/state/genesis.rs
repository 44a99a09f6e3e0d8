//! What a genesis must be.

use fastpay_core::{Amount, Asset};
use fastpay_ledger_statement::{ClusterId, CommitteeNumber, Genesis, GenesisError, Issue, Layout, MembersError};

use crate::people::{client, committee};
use crate::world::{COORDINATOR, genesis};

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
    let late = refused(|genesis| drop(genesis.committees.insert(CommitteeNumber(3), committee(1))));
    assert_eq!(late, GenesisError::NotFirstEpoch(CommitteeNumber(3)));
    let crowd = refused(|genesis| {
        genesis.committees = (0..1_020).map(|number| (CommitteeNumber(number), committee(0))).collect();
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
fn every_part_of_the_genesis_is_in_the_deployment() {
    let deployment = |alter: fn(&mut Genesis)| {
        let mut genesis = genesis(2);
        alter(&mut genesis);
        Layout::new(genesis, COORDINATOR).unwrap().deployment()
    };
    let mut all = [
        deployment(|_| ()),
        deployment(|genesis| drop(genesis.namespaces.pop_first())),
        deployment(|genesis| drop(genesis.committees.pop_first())),
        deployment(|genesis| genesis.issued.truncate(2)),
        deployment(|genesis| genesis.votes_validity_ms += 1),
        deployment(|genesis| genesis.partition.settlement = ClusterId(1)),
        deployment(|genesis| genesis.clusters.get_mut(&ClusterId(1)).unwrap().swap(0, 1)),
    ]
    .to_vec();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 7);
}
