//! A leader announces its cut before it computes it, so that all compute at the same time. What is announced is
//! computed and changes nothing else: whether the leader proposes the same, another one or nothing, the members sign as before.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fastpay_core::{Digest, Epoch};
use fastpay_node::authority::certification::member::MemberTimes;
use fastpay_node::authority::certification::{CheckpointError, Memory, ProposedCut, Signer, prepare, propose, sign};
use serde_json::{Value, json};

use crate::certification::{A_WEEK, TIMES, certified, configure, is_certified, metric, start, stop};
use crate::checkpoint::{Member, Scene, checkpoint_of, read};
use crate::scene::eventually_async;

/// An announcement is read within the pause between rounds.
const POLL: Duration = Duration::from_secs(3);

/// The cut of a proposal as it was announced.
fn announcement_of(proposed: &Value) -> Value {
    let mut announced = proposed.clone();
    for root in ["cut", "state", "segment"] {
        announced["checkpoint"][root] = json!(Digest::ZERO);
    }
    announced
}

/// Has a member serve this as its cut for number 2.
fn announce(member: &Member, what: &str) {
    let (path, other) = (member.archive().cut_path(2), member.archive.join("announced"));
    fs::write(&other, what).unwrap();
    fs::rename(other, path).unwrap();
}

/// Which file is the state of number 2.
fn state_file(member: &Member) -> Option<u64> {
    fs::metadata(member.archive().state_path(2)).ok().map(|file| file.ino())
}

fn has_signed(member: &Member) -> bool {
    member.archive().vote_path(2).exists()
}

fn signer(member: &Member) -> Signer<'_> {
    (Epoch(0), std::slice::from_ref(&member.keys))
}

/// Removes what an archive has of number 2.
fn forget(member: &Member) {
    for file in fs::read_dir(&member.archive).unwrap().map(|file| file.unwrap()) {
        if file.file_name().to_str().unwrap().starts_with("0000000002") {
            fs::remove_file(file.path()).unwrap();
        }
    }
}

/// Two cuts for number 2 that the third member proposes, whose turn it is, as files.
async fn proposals(scene: &Scene, all: &[usize]) -> [PathBuf; 2] {
    let mut paths = [scene.path("first.json"), scene.path("second.json")];
    for (sequence, path) in (4..).zip(&mut paths) {
        scene.pay(all, 0, 3, sequence).await;
        fs::copy(scene.members[2].propose().await.unwrap().cut, path).unwrap();
    }
    forget(&scene.members[2]);
    paths
}

/// The third member looks once, and then does what the test does; for the others number 2 is due.
fn let_third_lead(scene: &mut Scene) {
    configure(scene, 0);
    let times = MemberTimes { poll: POLL, takeover: Duration::from_secs(3_600), ..TIMES };
    for (index, member) in scene.members.iter_mut().enumerate() {
        let settings = member.config.archive.as_mut().unwrap();
        settings.times = times;
        if index == 2 {
            (settings.every_seconds, settings.times.poll) = (A_WEEK, Duration::from_secs(3_600));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_announced_cut_is_computed_and_not_signed_and_the_proposal_of_it_is_signed_at_once() {
    let mut scene = Scene::certified(4).await;
    scene.pay(&[0, 1, 2], 0, 3, 4).await;
    let [leader, member, other] = &scene.members[..] else { panic!("there are three") };
    let (path, archive) = (leader.archive().cut_path(2), member.archive());
    let mut announced = None;
    let mut told = |what: String| {
        if what.starts_with("announced") {
            assert!(!leader.archive().segment_path(2).exists(), "nothing is computed yet");
            announced = Some(ProposedCut::read(&path).unwrap());
        }
    };
    let proposal = propose(leader.inputs(), &mut Memory::default(), &mut told).await.unwrap();
    let (announced, cut) = (announced.unwrap(), ProposedCut::read(&proposal.cut).unwrap());
    let expected = serde_json::to_value(&cut).unwrap();
    assert_eq!(serde_json::to_value(&announced).unwrap(), announcement_of(&expected));

    let mut memory = Memory::default();
    // Nobody signs an announcement, whether or not it is computed.
    for is_prepared in [false, true] {
        if is_prepared {
            prepare(member.inputs(), signer(member), &announced, &mut memory, &mut |_| ()).await.unwrap();
        }
        let files = state_file(member);
        assert_eq!(files.is_some(), is_prepared);
        let error = sign(member.inputs(), signer(member), &announced, &mut memory, &mut |_| ()).await.unwrap_err();
        assert!(matches!(error, CheckpointError::Mismatch { .. }), "{error}");
        assert_eq!((state_file(member), has_signed(member)), (files, false));
    }
    let files = state_file(member);
    let signed = sign(member.inputs(), signer(member), &cut, &mut memory, &mut |_| ()).await.unwrap();
    assert_eq!((signed.vote.checkpoint, state_file(member)), (proposal.checkpoint, files), "what was computed");
    prepare(member.inputs(), signer(member), &cut, &mut memory, &mut |_| ()).await.unwrap();
    assert_eq!((state_file(member), has_signed(member)), (files, true), "it is there");

    // Another proposal than what was announced is computed. The vote goes before its files do.
    scene.pay(&[0, 1, 2], 0, 3, 5).await;
    prepare(member.inputs(), signer(member), &announced, &mut memory, &mut |_| ()).await.unwrap();
    assert!(!has_signed(member));
    let proposal = leader.propose().await.unwrap();
    let cut = ProposedCut::read(&proposal.cut).unwrap();
    let signed = sign(member.inputs(), signer(member), &cut, &mut memory, &mut |_| ()).await.unwrap();
    let anew = other.sign(&proposal.cut).await.unwrap();
    assert_eq!((signed.vote.checkpoint, anew.vote.checkpoint), (proposal.checkpoint, proposal.checkpoint));

    // What cannot be the next checkpoint is not computed, nor what is not executed here.
    let files = state_file(member);
    let with = |change: &dyn Fn(&mut ProposedCut)| {
        let mut changed = announced.clone();
        change(&mut changed);
        changed
    };
    scene.pay(&[0], 0, 3, 6).await;
    leader.propose().await.unwrap();
    for wrong in [
        with(&|cut| cut.checkpoint.number = 3),
        with(&|cut| cut.checkpoint.previous = Digest::ZERO),
        with(&|cut| cut.checkpoint.epoch = Epoch(1)),
        ProposedCut::read(&leader.archive().cut_path(2)).unwrap(),
    ] {
        let error = prepare(member.inputs(), signer(member), &wrong, &mut memory, &mut |_| ()).await.unwrap_err();
        let is_refused = matches!(
            error,
            CheckpointError::Mismatch { .. } | CheckpointError::EpochEnded { .. } | CheckpointError::NotExecuted { .. }
        );
        assert!(is_refused, "{error}");
        assert_eq!((state_file(member), has_signed(member)), (files, true));
    }
    assert!(archive.vote_path(2).exists());
    scene.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_compute_one_announcement_of_a_leader_and_sign_what_it_proposes() {
    let mut scene = Scene::certified(4).await;
    let [first, second] = proposals(&scene, &[0, 1, 2]).await;
    scene.stop().await;
    let_third_lead(&mut scene);
    let text = |path: &Path| announcement_of(&read(path)).to_string();
    let mut lacking = announcement_of(&read(&first));
    lacking["changed"].as_object_mut().unwrap().values_mut().for_each(|next| *next = json!(1_000));
    for (what, announced, proposed, is_computed) in [
        ("the same", text(&first), &first, true),
        ("another one", text(&first), &second, true),
        ("garbage", "{}".into(), &first, false),
        ("what is not executed", lacking.to_string(), &first, false),
    ] {
        scene.members.iter().for_each(forget);
        announce(&scene.members[2], &announced);
        for member in scene.members.iter_mut().rev() {
            start(member).await;
        }
        let [others @ .., leader] = &scene.members[..] else { panic!("there are three") };
        if is_computed {
            eventually_async(what, async || others.iter().all(|member| state_file(member).is_some())).await;
        } else {
            tokio::time::sleep(POLL).await;
        }
        // After one valid announcement a member looks at no other. Where none is valid, the flood has no valid one either.
        let files: Vec<_> = others.iter().map(state_file).collect();
        let good = [text(&second), "[".into(), text(&first), text(&second)];
        let bad = ["[".into(), lacking.to_string(), "{}".into(), "[".into()];
        for flood in if is_computed { good } else { bad } {
            announce(leader, &flood);
            tokio::time::sleep(POLL / 4).await;
        }
        assert!(!others.iter().any(has_signed), "{what}");
        assert_eq!(others.iter().map(state_file).collect::<Vec<_>>(), files, "{what}");
        leader.sign(proposed).await.unwrap();
        certified(others, 2).await;
        for (member, files) in others.iter().zip(files) {
            let certificate = member.archive().certificate_path(2);
            assert_eq!(checkpoint_of(&read(&certificate)), checkpoint_of(&read(proposed)), "{what}");
            assert_eq!(state_file(member) == files, what == "the same", "{what}");
            for wrong in ["fastpay_archive_peers_left_total", "fastpay_certified_checkpoint_failures_total"] {
                assert_eq!(metric(member, wrong).await, 0.0, "{what}: {wrong}");
            }
        }
        scene.stop().await;
        assert_eq!(scene.members[0].verify().await.unwrap().number, 2);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_member_leads_if_the_one_that_announced_is_away_and_one_that_was_killed_proposes_anew() {
    let mut scene = Scene::of(None, &[1, 2, 3, 1]);
    scene.start().await;
    let all = [0, 1, 2, 3];
    for sequence in 0..4 {
        scene.pay(&all, 0, 3, sequence).await;
    }
    fs::create_dir(&scene.members[3].archive).unwrap();
    scene.checkpoint().await;
    fs::remove_dir_all(&scene.members[3].archive).unwrap();
    crate::scene::copy_folder(&scene.members[0].archive, &scene.members[3].archive);
    let [first, _] = proposals(&scene, &all).await;

    // Killed after it announced, before it had all files.
    let leader = &scene.members[2];
    fs::create_dir(leader.archive().state_path(2)).unwrap();
    leader.propose().await.unwrap_err();
    let left = read(&leader.archive().cut_path(2));
    assert!(left == announcement_of(&left) && !has_signed(leader));
    fs::remove_dir(leader.archive().state_path(2)).unwrap();
    scene.stop().await;
    configure(&mut scene, 0);
    for member in &mut scene.members {
        start(member).await;
    }
    certified(&scene.members, 2).await;
    scene.stop().await;
    assert_eq!(scene.members[2].verify().await.unwrap().number, 2);

    // Away after it announced.
    let_third_lead(&mut scene);
    scene.members.iter().for_each(forget);
    for index in [2, 0, 1, 3] {
        start(&mut scene.members[index]).await;
    }
    announce(&scene.members[2], &announcement_of(&read(&first)).to_string());
    let others = |scene: &Scene| [0, 1, 3].map(|index| state_file(&scene.members[index]));
    eventually_async("the others have computed it", async || others(&scene).iter().all(Option::is_some)).await;
    assert!(!scene.members.iter().any(has_signed));
    stop(&mut scene.members[2]).await;
    eventually_async("it is passed over", async || {
        [0, 1, 3].iter().all(|index| is_certified(&scene.members[*index], 2))
    })
    .await;
    scene.stop().await;
    assert_eq!(scene.members[0].verify().await.unwrap().number, 2);
}
