//! Authorities that were away for long: they skip to the newest certified state, take part again, and complete their
//! archives afterwards.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use fastpay_core::SequenceNumber;
use fastpay_node::authority::certification::member::MemberTimes;
use fastpay_node::authority::certification::{ArchiveError, CheckpointError};
use fastpay_node::authority::pruning::{PruningReport, PruningTimes};
use fastpay_node::operator::rebase::rebase;
use fastpay_node::operator::status;
use fastpay_testkit::{TestAccount, payment, richer_state};

use crate::certification::{A_WEEK, configure, is_certified, metric, start, stop};
use crate::checkpoint::{Chain, Member, Scene};
use crate::rebase::{shard_of, states, sums};
use crate::scene::{copy_folder, eventually_async};

/// The last number that is skipped, and the newest one.
const LANDING: u64 = 7;
const NEWEST: u64 = 8;

/// What a liar shows in place of the landing's state.
type Lie<'a> = (&'static str, Box<dyn Fn(&Path) + 'a>);

fn archive_has(member: &Member, skipped: impl IntoIterator<Item = u64>) -> bool {
    member.archive().skipped().is_ok_and(|held| held == skipped.into_iter().collect::<BTreeSet<_>>())
}

/// Moves the segments of these numbers from one folder to another.
fn move_segments(from: &Path, to: &Path) {
    for number in 2..=LANDING {
        let name = format!("{number:010}.segment");
        fs::rename(from.join(&name), to.join(&name)).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_authority_that_was_away_skips_votes_again_and_completes_its_archive() {
    let chain = Chain::new().await;
    let mut scene = Scene::of(Some(chain.config()), &[1, 2, 3, 2]);
    let (domain, owners) = (scene.committee.domain, (0..8).map(TestAccount::numbered).collect::<Vec<_>>());
    scene.start().await;
    for owner in &owners {
        chain.deposit(owner.id(), 1_000).await;
    }
    chain.followed(&scene.members, 8).await;
    scene.pay(&[0, 1, 2, 3], 0, 1, 0).await;
    fs::create_dir(&scene.members[3].archive).unwrap();
    scene.checkpoint().await;
    fs::remove_dir_all(&scene.members[3].archive).unwrap();
    copy_folder(&scene.members[0].archive, &scene.members[3].archive);
    // One executes an order that no checkpoint includes, and votes for another one, and is away from then on.
    scene.pay(&[3], 4, 1, 0).await;
    let voted = owners[5].sign(&domain, payment(owners[5].id(), owners[6].id(), 7, 0));
    shard_of(&scene.members[3], &owners[5].id()).order(&voted).await.unwrap();
    let mut away = scene.members.pop().unwrap();
    stop(&mut away).await;
    for number in 2..=NEWEST {
        scene.pay(&[0, 1, 2], 0, 1, number - 1).await;
        scene.pay(&[0, 1, 2], 2, 3, number - 2).await;
        chain.deposit(owners[3].id(), 10).await;
        chain.followed(&scene.members, 7 + number).await;
        scene.checkpoint().await;
        if number == LANDING {
            // Nobody brings what was before.
            for member in &mut scene.members {
                stop(member).await;
                rebase(&member.config, &member.archive, None, None, &mut |_| ()).await.unwrap();
                start(member).await;
            }
        }
    }
    scene.stop().await;
    scene.members.push(away);
    configure(&mut scene, A_WEEK);
    let never = PruningTimes { settle: Duration::from_secs(86_400), ..PruningTimes::default() };
    for member in &mut scene.members {
        member.config.archive.as_mut().unwrap().pruning = never;
    }
    // Nobody has the segments that would be admitted one after another.
    let aside: Vec<_> = (0..3).map(|index| scene.path(&format!("aside-{index}"))).collect();
    for (member, aside) in scene.members[..3].iter_mut().zip(&aside) {
        fs::create_dir(aside).unwrap();
        move_segments(&member.archive, aside);
        start(member).await;
    }
    start(&mut scene.members[3]).await;
    eventually_async("it skips", async || is_certified(&scene.members[3], NEWEST)).await;
    // Stopped here and started again, it goes on, and ends its journals at the state.
    stop(&mut scene.members[3]).await;
    assert!(archive_has(&scene.members[3], 2..=LANDING));
    let turn = Duration::from_secs(2);
    let pruning = PruningTimes { settle: Duration::from_millis(200), turn, ..PruningTimes::polling_each(turn / 100) };
    scene.members[3].config.archive.as_mut().unwrap().pruning = pruning;
    start(&mut scene.members[3]).await;
    eventually_async("its journals begin at the state", async || {
        let report = PruningReport::read(&scene.members[3].config.data);
        report.checkpoint == LANDING && report.underway.is_none()
    })
    .await;

    let (back, all) = (&scene.members[3], &scene.members[0]);
    eventually_async("what is to be fetched is shown", async || {
        metric(back, "fastpay_archive_skipped_numbers").await == 6.0
    })
    .await;
    let error = back.verify().await.unwrap_err();
    let is_named =
        matches!(error, CheckpointError::Archive(ArchiveError::Skipped { first: 2, last: LANDING, count: 6 }));
    assert!(is_named, "{error}");
    let said = status::ask(&back.config).await.unwrap().to_string();
    assert!(said.contains("6 before it are still to be fetched"), "{said}");
    // It remembers its vote, and what it executed alone; and it takes part again.
    let state = async |account: &TestAccount| shard_of(back, &account.id()).account(account.id()).await.unwrap();
    assert_eq!(state(&owners[5]).await.pending.as_ref(), Some(&voted));
    assert_eq!(state(&owners[4]).await.next_sequence, SequenceNumber(1));
    let rival = owners[5].sign(&domain, payment(owners[5].id(), owners[7].id(), 7, 0));
    shard_of(back, &owners[5].id()).order(&rival).await.unwrap_err();
    eventually_async("peers bring what is beyond the state", async || {
        state(&owners[0]).await.next_sequence.0 == NEWEST && state(&owners[2]).await.next_sequence.0 == NEWEST - 1
    })
    .await;
    scene.pay(&[0, 1, 2], 4, 1, 0).await;
    scene.pay(&[0, 1, 2, 3], 2, 3, NEWEST - 1).await;
    let next = owners[0].sign(&domain, payment(owners[0].id(), owners[1].id(), 1, NEWEST));
    shard_of(back, &owners[0].id()).order(&next).await.unwrap();
    assert_eq!(sums(back).await, sums(all).await);
    for (one, other) in states(back).await.into_iter().zip(states(all).await) {
        assert_eq!((one.next_sequence, one.holdings), (other.next_sequence, other.holdings));
    }

    // It has a part of the next checkpoint by then.
    for (member, aside) in scene.members[..3].iter().zip(&aside) {
        move_segments(aside, &member.archive);
    }
    eventually_async("its archive is complete", async || archive_has(back, [])).await;
    eventually_async("that is shown", async || metric(back, "fastpay_archive_skipped_numbers").await == 0.0).await;
    scene.stop().await;
    let reports = [scene.members[0].verify().await.unwrap(), scene.members[3].verify().await.unwrap()];
    assert_eq!(reports[0], reports[1]);
    assert_eq!(reports[1].number, NEWEST);

    // The next checkpoint needs its vote: another member is away.
    scene.members.iter_mut().for_each(|member| member.config.archive.as_mut().unwrap().every_seconds = 0);
    for member in &mut scene.members[1..] {
        start(member).await;
    }
    eventually_async("it signs", async || scene.members[1..].iter().all(|member| is_certified(member, NEWEST + 1)))
        .await;
    scene.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_that_lies_about_a_state_is_left_and_another_one_is_asked() {
    let mut scene = Scene::certified(1).await;
    for sequence in 1..NEWEST {
        scene.pay(&[0, 1, 2], 0, 1, sequence).await;
        scene.checkpoint().await;
    }
    scene.stop().await;
    configure(&mut scene, A_WEEK);
    let whole = scene.path("whole");
    copy_folder(&scene.members[0].archive, &whole);
    let mut late = scene.members.pop().unwrap();
    for member in &mut scene.members {
        // They serve, and look at others' archives only once.
        let times = &mut member.config.archive.as_mut().unwrap().times;
        *times = MemberTimes { poll: Duration::from_secs(3_600), ..*times };
        start(member).await;
    }
    let good = fs::read(scene.members[1].archive().state_path(LANDING)).unwrap();
    let with = |bytes: Vec<u8>| move |state: &Path| fs::write(state, &bytes).unwrap();
    let earlier = fs::read(scene.members[1].archive().state_path(LANDING - 1)).unwrap();
    let cases: Vec<Lie<'_>> = vec![
        ("a balance", Box::new(with(richer_state(&good)))),
        ("another number's", Box::new(with(earlier))),
        ("garbage", Box::new(with(vec![7; 1_000]))),
        ("an end", Box::new(with(good[..good.len() - 1].to_vec()))),
        ("too long", Box::new(|state| fs::File::create(state).unwrap().set_len(1 << 40).unwrap())),
        ("nothing", Box::new(|state| fs::remove_file(state).unwrap())),
    ];
    for (what, lie) in &cases {
        for folder in [&late.archive, &scene.members[0].archive] {
            let _ = fs::remove_dir_all(folder);
        }
        copy_folder(&whole, &scene.members[0].archive);
        lie(&scene.members[0].archive().state_path(LANDING));
        start(&mut late).await;
        eventually_async(what, async || {
            is_certified(&late, NEWEST)
                && archive_has(&late, [])
                // Where there is no state, segments are taken.
                && (*what == "nothing" || metric(&late, "fastpay_archive_peers_left_total").await >= 1.0)
        })
        .await;
        stop(&mut late).await;
        assert_eq!(fs::read(late.archive().state_path(LANDING)).unwrap(), good, "{what}");
        assert_eq!(late.verify().await.unwrap().number, NEWEST, "{what}");
    }
    scene.stop().await;
}
