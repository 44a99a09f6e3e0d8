//! Nodes that end their own journals: in turn, under load, and only while the others make a quorum; and what they do if
//! that fails.

use std::fs;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use fastpay_client::ClientError;
use fastpay_core::{Amount, Balance};
use fastpay_node::authority::AuthorityError;
use fastpay_node::authority::pruning::{Attempt, PruningReport, PruningTimes};
use fastpay_node::operator::rebase::rebase;
use fastpay_node::operator::status;
use fastpay_program::Clock;
use fastpay_testkit::{TestAccount, payment};
use serde_json::Value;

use crate::certification::{A_WEEK, configure, metric, start, stop};
use crate::checkpoint::{Member, Scene, read};
use crate::rebase::{shard_of, states, sums};
use crate::scene::{copy_folder, eventually_async};

/// Short; but a turn is longer than a node takes to stop on a busy machine, or two might be away together.
pub const TIMES: PruningTimes = PruningTimes {
    poll: Duration::from_millis(20),
    settle: Duration::from_millis(200),
    turn: Duration::from_secs(4),
    call: Duration::from_secs(2),
    retry: Duration::from_secs(3),
    retry_max: Duration::from_secs(3),
};
/// A member whose journals do not end.
pub const NEVER: PruningTimes = PruningTimes { settle: Duration::from_secs(86_400), ..TIMES };

fn now_ms() -> u64 {
    Clock::system().now_ms()
}

pub fn set_times(scene: &mut Scene, times: PruningTimes) {
    scene.members.iter_mut().for_each(|member| set(member, times));
}

fn set(member: &mut Member, times: PruningTimes) {
    member.config.archive.as_mut().unwrap().pruning = times;
}

/// Four members, each with an archive of two checkpoints: their journals end at the first, which has a successor.
async fn four() -> Scene {
    let mut scene = Scene::of(None, &[1, 2, 3, 2]);
    scene.start().await;
    fs::create_dir(&scene.members[3].archive).unwrap();
    for sequence in 0..2 {
        pay(&scene, &[0, 1, 2, 3], 3, sequence).await;
        scene.checkpoint().await;
    }
    scene.stop().await;
    fs::remove_dir_all(&scene.members[3].archive).unwrap();
    copy_folder(&scene.members[0].archive, &scene.members[3].archive);
    configure(&mut scene, A_WEEK);
    scene
}

fn generation(data: &Path) -> u64 {
    read(&data.join("meta.json"))["generation"].as_u64().unwrap_or(0)
}

pub fn report(member: &Member) -> PruningReport {
    PruningReport::read(&member.config.data)
}

/// A payment of one unit, brought to these members until all have confirmed it: one may be away.
pub async fn pay(scene: &Scene, members: &[usize], owner: u64, sequence: u64) {
    let (from, to) = (TestAccount::numbered(owner), TestAccount::numbered(owner + 1));
    let order = from.sign(&scene.committee.domain, payment(from.id(), to.id(), 1, sequence));
    let certificate = scene.committee.certificate(&order);
    for member in members {
        let shard = shard_of(&scene.members[*member], &from.id());
        eventually_async("the payment is confirmed", async || shard.confirm(&certificate).await.is_ok()).await;
    }
}

async fn pruned(member: &Member, checkpoint: u64) {
    eventually_async("the journals end and the node serves again", async || {
        let report = report(member);
        report.checkpoint == checkpoint && report.underway.is_none()
    })
    .await;
    // Then the old ones are removed.
    let before = |number: u64| match number {
        0 => member.config.data.join("shard-000"),
        number => member.config.data.join(format!("generation-{number:04}")),
    };
    let old = before(generation(&member.config.data) - 1);
    eventually_async("the old journals are removed", async || !old.exists()).await;
}

/// A member answers a moment before it notes that it is back, and then the next one may leave.
const NOTED_WITHIN_MS: u64 = 1_000;

fn assert_one_at_a_time(members: &[Member]) {
    let mut away: Vec<_> = members.iter().map(report).map(|done| (done.at_ms - done.pause_ms, done.at_ms)).collect();
    away.sort_unstable();
    assert!(away.windows(2).all(|pair| pair[0].1 <= pair[1].0 + NOTED_WITHIN_MS), "{away:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_end_their_journals_in_turn_under_load_and_go_on() {
    let mut scene = four().await;
    set_times(&mut scene, TIMES);
    for member in &mut scene.members {
        start(member).await;
    }
    let mut sequence = 0;
    while scene.members.iter().any(|member| report(member).checkpoint == 0) {
        for owner in 0..3 {
            pay(&scene, &[0, 1, 2, 3], owner, sequence).await;
        }
        sequence += 1;
    }
    for member in &scene.members {
        pruned(member, 1).await;
    }
    for owner in 0..3 {
        pay(&scene, &[0, 1, 2, 3], owner, sequence).await;
    }
    assert_one_at_a_time(&scene.members);

    let (all, held) = (states(&scene.members[0]).await, sums(&scene.members[0]).await);
    assert_eq!(held[0], Balance::from(Amount(20_000)));
    for member in &scene.members {
        assert_eq!(sums(member).await, held);
        for (one, other) in states(member).await.into_iter().zip(&all) {
            assert_eq!((one.next_sequence, &one.holdings), (other.next_sequence, &other.holdings));
        }
        let first = TestAccount::numbered(0).id();
        // The deposits of the genesis are below every checkpoint.
        let answer = shard_of(member, &first).deposits(first, 0).await;
        assert!(matches!(answer, Err(ClientError::Pruned(pruned)) if pruned.checkpoint == 1), "{answer:?}");
        assert_eq!(generation(&member.config.data), 1, "once is enough");
        let names = ["pruned_checkpoint_number", "pruning_failures", "pruning_due_timestamp_seconds"];
        let shown = names.map(|name| format!("fastpay_{name}"));
        let shown = [metric(member, &shown[0]).await, metric(member, &shown[1]).await, metric(member, &shown[2]).await];
        assert_eq!(shown, [1.0, 0.0, 0.0]);
        assert!(metric(member, "fastpay_pruning_pause_milliseconds").await > 0.0);
        assert!(metric(member, "fastpay_pruned_timestamp_seconds").await > 1e9);
        let said = serde_json::to_value(status::ask(&member.config).await.unwrap()).unwrap();
        assert!(said["pruning"]["checkpoint"] == 1 && said["pruning"]["failure"] == Value::Null, "{said}");
        let said = status::ask(&member.config).await.unwrap().to_string();
        assert!(said.contains("ended its journals at checkpoint 1") && said.contains("was away for that"), "{said}");
    }
    scene.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_member_leaves_while_the_others_make_no_quorum() {
    let mut scene = four().await;
    set_times(&mut scene, TIMES);
    // A folder that is first used beside a deployment in use would count as an older copy.
    set(&mut scene.members[3], NEVER);
    start(&mut scene.members[3]).await;
    stop(&mut scene.members[3]).await;
    for member in &mut scene.members[..3] {
        start(member).await;
    }
    pay(&scene, &[0, 1, 2], 0, 0).await;
    for member in &scene.members[..3] {
        eventually_async("it is to end its journals", async || {
            metric(member, "fastpay_pruning_due_timestamp_seconds").await > 1e9
        })
        .await;
    }
    // By then each of them has had a turn.
    let (until, mut sequence) = (now_ms() + 5 * 4_000, 1);
    while now_ms() < until {
        pay(&scene, &[0, 1, 2], 0, sequence).await;
        sequence += 1;
    }
    for member in &scene.members {
        assert!(generation(&member.config.data) == 0 && report(member) == PruningReport::default());
    }
    start(&mut scene.members[3]).await;
    for member in &scene.members[..3] {
        pruned(member, 1).await;
    }
    scene.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_a_member_down_the_others_leave_one_at_a_time_once_their_disks_are_about_to_end_voting() {
    let mut scene = four().await;
    set_times(&mut scene, TIMES);
    for member in &mut scene.members {
        // As on a disk that is full up to the reserve, with journals most of which are older than the checkpoint.
        member.config.limits.disk_reserve_bytes = u64::MAX;
        let cut = fs::File::options().write(true).open(member.archive().state_path(1)).unwrap();
        cut.set_modified(UNIX_EPOCH + Duration::from_millis(now_ms() + 3_600_000)).unwrap();
    }
    for member in &mut scene.members[..3] {
        start(member).await;
    }
    // Until the old journals are longer than the new ones can be.
    for sequence in 0..40 {
        pay(&scene, &[0, 1, 2], 0, sequence).await;
    }
    for member in &scene.members[..3] {
        pruned(member, 1).await;
    }
    assert_one_at_a_time(&scene.members[..3]);
    assert!(report(&scene.members[3]) == PruningReport::default());
    // What is certified is confirmed, also without room for new locks.
    pay(&scene, &[0, 1, 2], 0, 40).await;
    scene.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_attempt_is_told_and_the_old_journals_go_on_until_a_later_one() {
    let mut scene = four().await;
    set_times(&mut scene, NEVER);
    set(&mut scene.members[0], TIMES);
    // Its process ended in the middle of an attempt.
    let data = scene.members[0].config.data.clone();
    let attempt = Attempt { checkpoint: 1, generation: 0, at_ms: now_ms() - 5_000 };
    PruningReport { underway: Some(attempt), ..PruningReport::default() }.write(&data).unwrap();
    for member in &mut scene.members {
        start(member).await;
    }
    eventually_async("the attempt counts as failed", async || report(&scene.members[0]).failure.is_some()).await;
    let first = report(&scene.members[0]);
    let failure = first.failure.clone().unwrap();
    assert!(first.underway.is_none() && first.pause_ms >= 5_000 && failure.count == 1, "{first:?}");
    assert!(failure.error.contains("the process ended"), "{failure:?}");

    // Where the new journals would be, there is no room for a folder.
    let blocked = data.join("generation-0001");
    fs::write(&blocked, "").unwrap();
    pay(&scene, &[0, 1, 2, 3], 0, 0).await;
    let failures = async |count: u32| {
        eventually_async("it fails", async || {
            report(&scene.members[0]).failure.is_some_and(|failure| failure.count == count)
        })
        .await;
        report(&scene.members[0])
    };
    let failed = failures(2).await;
    let failure = failed.failure.clone().unwrap();
    assert!(failure.at_ms >= first.failure.unwrap().retry_at_ms, "not before");
    assert!(failure.error.contains("generation-0001"), "{failure:?}");
    // It goes on with the old ones, and does not try again at once.
    let mut sequence = 1;
    loop {
        pay(&scene, &[0, 1, 2, 3], 0, sequence).await;
        sequence += 1;
        let now = report(&scene.members[0]).failure.unwrap();
        if now_ms() >= failure.retry_at_ms {
            break;
        }
        assert_eq!(now.count, 2);
    }
    assert!(generation(&data) == 0 && data.join("shard-000").exists());
    assert!(metric(&scene.members[0], "fastpay_pruning_failures").await >= 2.0);
    let said = status::ask(&scene.members[0].config).await.unwrap().to_string();
    assert!(said.contains("failed to end its journals at checkpoint 1"), "{said}");
    fs::remove_file(&blocked).unwrap();
    pruned(&scene.members[0], 1).await;
    assert_eq!((report(&scene.members[0]).failure, generation(&data)), (None, 1));
    assert_eq!(metric(&scene.members[0], "fastpay_pruning_failures").await, 0.0);
    pay(&scene, &[0, 1, 2, 3], 0, sequence).await;
    scene.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_old_journals_stay_until_a_node_runs_on_the_new_ones() {
    let mut scene = four().await;
    set_times(&mut scene, NEVER);
    set(&mut scene.members[0], TIMES);
    for member in &mut scene.members {
        start(member).await;
    }
    // The node cannot start again: another program takes its port meanwhile.
    let (data, http) = (scene.members[0].config.data.clone(), scene.members[0].config.http);
    let taken = loop {
        match std::net::TcpListener::bind(http) {
            Ok(taken) => break taken,
            Err(_) => {
                assert_eq!(report(&scene.members[0]).checkpoint, 0, "it was back before its port was taken");
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
    };
    let ended = scene.members[0].running.take().unwrap().ended().await.unwrap_err();
    assert!(matches!(ended, AuthorityError::Listen { address, .. } if address == http), "{ended}");
    assert_eq!(generation(&data), 1);
    assert!(data.join("shard-000/journal").exists() && data.join("generation-0001/shard-000/journal").exists());
    drop(taken);
    start(&mut scene.members[0]).await;
    pruned(&scene.members[0], 1).await;
    pay(&scene, &[0, 1, 2, 3], 0, 0).await;
    scene.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_lacks_what_the_others_have_pruned_takes_it_from_the_checkpoint() {
    let mut scene = Scene::of(None, &[1, 2, 3, 2]);
    let rebase_by_hand =
        async |member: &Member| rebase(&member.config, &member.archive, None, None, &mut |_| ()).await.unwrap();
    scene.start().await;
    for owner in 0..3 {
        pay(&scene, &[0, 1, 2, 3], owner, 0).await;
    }
    fs::create_dir(&scene.members[3].archive).unwrap();
    scene.checkpoint().await;
    fs::remove_dir_all(&scene.members[3].archive).unwrap();
    copy_folder(&scene.members[0].archive, &scene.members[3].archive);
    scene.stop().await;
    for member in &scene.members {
        assert_eq!(rebase_by_hand(member).await.checkpoint, 1);
    }
    // The last one misses a payment, which the others prune.
    for member in &mut scene.members[..3] {
        start(member).await;
    }
    pay(&scene, &[0, 1, 2], 0, 1).await;
    scene.checkpoint().await;
    for member in &mut scene.members[..3] {
        stop(member).await;
        assert_eq!(rebase_by_hand(member).await.checkpoint, 2);
        start(member).await;
    }
    pay(&scene, &[0, 1, 2], 1, 1).await;
    scene.checkpoint().await;
    for member in &mut scene.members[..3] {
        stop(member).await;
    }
    for number in [2, 3] {
        fs::remove_file(scene.members[3].archive().certificate_path(number)).unwrap();
    }
    configure(&mut scene, A_WEEK);
    set_times(&mut scene, NEVER);
    set(&mut scene.members[3], TIMES);
    for member in &mut scene.members {
        start(member).await;
    }
    pruned(&scene.members[3], 2).await;
    let (all, held) = (states(&scene.members[0]).await, sums(&scene.members[0]).await);
    assert_eq!(sums(&scene.members[3]).await, held);
    for (one, other) in states(&scene.members[3]).await.into_iter().zip(&all) {
        assert_eq!((one.next_sequence, &one.holdings), (other.next_sequence, &other.holdings));
    }
    pay(&scene, &[0, 1, 2, 3], 0, 2).await;
    scene.stop().await;
}
