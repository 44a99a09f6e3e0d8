//! The real follower against nodes that lag, lie or disappear, and chains that reorganize.

use std::time::Duration;

use alloy::sol_types::SolEvent;
use fastpay_core::{Amount, Asset, Deposit, TransactionIndex};
use fastpay_ethereum::{Alarm, Cursor, DepositReader, DepositsError, EpochReader, IFastPay};
use fastpay_testkit::TestCommittee;
use fastpay_testkit::anvil::rich_key;
use fastpay_testkit::primary::{ChainConfig, Fate, LogLie, SLOT_S, SimulatedNode, Weather};

use super::scene::{ALICE, BOB, Scene};

async fn read(scene: &Scene, nodes: &[SimulatedNode]) -> Result<Vec<Deposit>, DepositsError> {
    let mut reader = DepositReader::new(scene.connect_through(nodes), 100);
    let start = reader.start().await?;
    Ok(reader.next(&start).await?.deposits)
}

/// Three deposits of ETH, final.
fn with_deposits() -> Scene {
    let scene = Scene::new(7);
    [100, 200, 300].into_iter().for_each(|wei| scene.deposit(wei));
    scene.primary.finalize();
    scene
}

fn alarm<T: std::fmt::Debug>(result: Result<T, DepositsError>) -> Alarm {
    match result {
        Err(DepositsError::Alarm(alarm)) => alarm,
        other => panic!("no alarm but {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn deposits_of_ether_and_tokens_are_read_when_they_are_final() {
    let scene = Scene::new(1);
    let token = scene.token();
    scene.contract.deposit_ether(&rich_key(1), ALICE, Amount(7));
    scene.contract.deposit_token(&rich_key(9), BOB, token, Amount(11));
    scene.primary.mine(1);
    assert_eq!(read(&scene, &scene.nodes).await.unwrap(), [], "nothing is final yet");
    scene.primary.finalize();
    let deposits = read(&scene, &scene.nodes).await.unwrap();
    let deposit = |index, recipient, asset, amount| Deposit {
        index: TransactionIndex(index),
        recipient,
        asset,
        amount: Amount(amount),
    };
    // The better tip is the earlier one where all tips are alike: by arrival.
    assert_eq!(deposits, [deposit(1, ALICE, Asset::ETHER, 7), deposit(2, BOB, token, 11)]);
    for asset in [Asset::ETHER, token] {
        assert_eq!(scene.contract.holds(asset), scene.contract.total_balance(asset));
    }
}

#[tokio::test(start_paused = true)]
async fn the_committee_is_read_as_it_was_deployed() {
    let scene = Scene::new(1);
    let committees = EpochReader::new(scene.connect()).read(None).await.unwrap();
    assert_eq!(**committees.current(), TestCommittee::new(4).committee);
}

#[tokio::test(start_paused = true)]
async fn every_lie_about_logs_stops_the_reader_if_another_node_is_honest() {
    // Before the three deposits there is the event of the deployment, which has no index and credits nobody.
    for position in 1..4 {
        for lie in LogLie::all(position).into_iter().chain([LogLie::Foreign(position)]) {
            let scene = with_deposits();
            scene.nodes[1].behave(|behaviour| behaviour.lies = vec![lie]);
            let found = alarm(read(&scene, &scene.nodes).await);
            // Lies that are plausible from one node alone can be contradicted only by another node.
            let is_plausible = matches!(lie, LogLie::Amount(_) | LogLie::Recipient(_));
            assert_eq!(matches!(found, Alarm::Disagreement { .. }), is_plausible, "{lie:?}: {found}");
            let alone = read(&scene, &scene.nodes[1..]).await;
            assert_eq!(alone.is_ok(), is_plausible, "{lie:?}");
            scene.nodes[1].recover();
            assert_eq!(read(&scene, &scene.nodes).await.unwrap().len(), 3, "{lie:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_that_lies_about_the_time_of_a_block_stops_the_reader_at_each_read() {
    for later_s in [1, -1, 8 * 86_400, -8 * 86_400] {
        // With each node asked first, at the head and before it, also if one lags.
        for (liar, lag, range) in [(0, 0, 100), (1, 0, 100), (0, 1, 100), (1, 1, 100), (0, 0, 2), (1, 0, 2)] {
            let scene = with_deposits();
            let nodes = &scene.nodes[..2];
            let mut reader = DepositReader::new(scene.connect_through(nodes), range);
            let mut cursor = reader.start().await.unwrap();
            nodes[liar].behave(|behaviour| (behaviour.later_s, behaviour.lag) = (later_s, lag));
            let found = alarm(reader.next(&cursor).await);
            assert!(matches!(found, Alarm::Disagreement { .. }), "{liar} {lag} {range}: {found}");
            nodes[liar].behave(|behaviour| behaviour.later_s = 0);
            let batch = loop {
                let batch = reader.next(&cursor).await.unwrap();
                assert_eq!(Some(batch.time), scene.primary.block_time(batch.cursor.block_number));
                assert_eq!(Some(batch.final_time), scene.primary.block_time(batch.final_block));
                cursor = batch.cursor;
                if cursor.block_number == batch.final_block {
                    break batch;
                }
            };
            // If nothing new is final, the time is that of the block read before.
            nodes[liar].behave(|behaviour| behaviour.later_s = later_s);
            let found = alarm(reader.next(&cursor).await);
            assert!(matches!(found, Alarm::Disagreement { .. }), "{liar} {lag} {range}: {found}");
            nodes[liar].behave(|behaviour| behaviour.later_s = 0);
            assert_eq!(reader.next(&cursor).await.unwrap().time, batch.time);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn nodes_that_lag_leave_fail_or_fall_silent_cost_only_time() {
    let scene = with_deposits();
    let expected = read(&scene, &scene.nodes).await.unwrap();
    let troubles: [fn(&SimulatedNode); 6] = [
        |node| node.behave(|behaviour| behaviour.lag = 4),
        |node| node.behave(|behaviour| behaviour.away = true),
        |node| node.behave(|behaviour| behaviour.silent = true),
        |node| node.behave(|behaviour| behaviour.errors_percent = 100),
        |node| node.behave(|behaviour| behaviour.delay_ms = 20_000..=30_000),
        |node| node.behave(|behaviour| behaviour.refuses = vec!["eth_getLogs"]),
    ];
    for (number, trouble) in troubles.iter().enumerate() {
        trouble(&scene.nodes[1]);
        match read(&scene, &scene.nodes).await {
            Err(error) => assert!(error.is_retryable(), "{number}: {error}"),
            Ok(deposits) => assert!(deposits.len() < 3, "{number}: only a lag leaves a part to be read"),
        }
        scene.nodes[1].recover();
        assert_eq!(read(&scene, &scene.nodes).await.unwrap(), expected, "{number}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_reorganisation_above_finality_is_harmless_and_below_it_raises_the_alarm() {
    let scene = with_deposits();
    let mut reader = DepositReader::new(scene.connect(), 100);
    let start = reader.start().await.unwrap();
    let first = reader.next(&start).await.unwrap();
    scene.deposit(400);
    scene.deposit(500);
    // Both blocks are replaced; one deposit is lost, the other is included in another block.
    let mut fates = [Fate::Later, Fate::Lost].into_iter();
    scene.primary.reorganise(2, |_| fates.next().unwrap());
    assert_eq!(reader.next(&first.cursor).await.unwrap().deposits, []);
    scene.primary.mine(1);
    assert_eq!(scene.funded(), [(1, 100), (2, 200), (3, 300)], "its nonce has a gap before it");
    scene.deposit(450);
    scene.primary.finalize();
    let second = reader.next(&first.cursor).await.unwrap();
    let read: Vec<_> = second.deposits.iter().map(|deposit| (deposit.index.0, deposit.amount.0)).collect();
    assert_eq!(read, [(4, 450), (5, 500)]);
    scene.primary.reorganise(3, |_| Fate::Again);
    let found = alarm(reader.next(&second.cursor).await);
    assert!(matches!(found, Alarm::Reorganised { .. }), "{found}");
}

#[tokio::test(start_paused = true)]
async fn a_node_on_an_abandoned_branch_disagrees_only_about_what_is_not_final() {
    let scene = with_deposits();
    scene.deposit(400);
    scene.nodes[1].get_stuck();
    scene.primary.reorganise(1, |_| Fate::Lost);
    assert_eq!(read(&scene, &scene.nodes).await.unwrap().len(), 3);
    scene.primary.mine(3);
    // It never returns the blocks that are final elsewhere, and never reports others as final.
    assert_eq!(read(&scene, &scene.nodes).await.unwrap().len(), 3);
}

/// Reads during all faults while deposits continue. Returns all that was read, and the digest of all requests and
/// answers.
async fn read_through_the_weather(seed: u64) -> (Vec<(u64, u128)>, Vec<(u64, u128)>, alloy::primitives::B256) {
    let scene = Scene::with(ChainConfig { finalized_depth: 6, ..ChainConfig::default() }, seed);
    let mut weather = Weather::new(scene.primary.clone(), scene.nodes.clone(), seed);
    let mut reader = DepositReader::new(scene.connect(), 3);
    let mut cursor: Option<Cursor> = None;
    let mut found = Vec::new();
    for slot in 0..60_u64 {
        let time_s = scene.primary.time_s() + SLOT_S;
        if slot % 3 == 0 && slot < 40 {
            scene.contract.deposit_ether(&rich_key((slot % 5) as u32), ALICE, Amount(1 + u128::from(slot)));
        }
        if slot < 45 {
            weather.slot(time_s)
        } else {
            weather.calm_slot(time_s)
        }
        for _ in 0..3 {
            tokio::time::sleep(Duration::from_secs(SLOT_S / 3)).await;
            let at = match cursor {
                Some(at) => Ok(at),
                None => reader.start().await,
            };
            let batch = match at {
                Ok(at) => reader.next(&at).await,
                Err(error) => Err(error),
            };
            match batch {
                Ok(batch) => {
                    found.extend(batch.deposits.iter().map(|deposit| (deposit.index.0, deposit.amount.0)));
                    cursor = Some(batch.cursor);
                }
                Err(error) => assert!(error.is_retryable(), "seed {seed}, slot {slot}: {error}"),
            }
        }
    }
    (found, scene.funded(), scene.primary.digest())
}

#[tokio::test(start_paused = true)]
async fn whatever_the_weather_all_deposits_are_read_once_and_a_seed_repeats_itself() {
    for seed in 0..12 {
        let (found, funded, digest) = read_through_the_weather(seed).await;
        assert_eq!(found, funded, "seed {seed}");
        assert!(!found.is_empty(), "seed {seed}");
        if seed < 3 {
            assert_eq!(read_through_the_weather(seed).await.2, digest, "seed {seed} repeats itself");
        }
    }
}

#[test]
fn the_event_is_the_one_that_is_lied_about() {
    assert_eq!(IFastPay::Funded::SIGNATURE, "Funded(uint64,bytes32,address,uint128,address)");
}
