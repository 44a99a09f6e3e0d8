//! What a process remembers of its own checkpoints saves work, and changes nothing: it makes the same ones as a process
//! that remembers nothing, and what is not on disk as it was written is verified.

use std::fs;

use fastpay_node::authority::certification::{
    ArchiveError, CheckpointError, Defect, Memory, ProposedCut, certify, propose, sign,
};

use crate::checkpoint::{Member, Scene};

async fn signed(member: &Member, cut: &ProposedCut, memory: &mut Memory) -> (fastpay_core::Digest, u64) {
    let signer = (cut.checkpoint.epoch, std::slice::from_ref(&member.keys));
    let signed = sign(member.inputs(), signer, cut, memory, &mut |_| ()).await.unwrap();
    (signed.vote.checkpoint, signed.beyond)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_process_made_is_certified_without_reading_it_and_what_was_changed_since_is_verified() {
    let mut scene = Scene::certified(4).await;
    scene.pay(&[0, 1, 2], 0, 3, 4).await;
    let member = &scene.members[0];
    let (mut memory, archive) = (Memory::default(), member.archive());
    let proposal = propose(member.inputs(), &mut memory, &mut |_| ()).await.unwrap();
    let cut = ProposedCut::read(&proposal.cut).unwrap();
    let votes = scene.votes(&[0, 1, 2], &proposal.cut).await;

    // The last vote of this member replaced the files, so they are not what was remembered.
    let written_at = || fs::metadata(archive.state_path(2)).unwrap().modified().unwrap();
    let before = written_at();
    assert_eq!(signed(member, &cut, &mut memory).await, (proposal.checkpoint, 0));
    assert!(written_at() > before, "computed from the journals");
    let before = written_at();
    assert_eq!(signed(member, &cut, &mut memory).await, (proposal.checkpoint, 0));
    assert_eq!(written_at(), before, "remembered");

    for path in [archive.segment_path(2), archive.state_path(2), archive.cut_path(2)] {
        let whole = fs::read(&path).unwrap();
        let mut altered = whole.clone();
        *altered.last_mut().unwrap() ^= 1;
        fs::write(&path, altered).unwrap();
        let error = certify(member.inputs(), &votes, &memory, &mut |_| ()).await.unwrap_err();
        let is_wrong = matches!(error, CheckpointError::Archive(ArchiveError::Wrong { .. }));
        assert!(is_wrong, "{}: {error}", path.display());
        fs::remove_file(&path).unwrap();
        let error = certify(member.inputs(), &votes, &memory, &mut |_| ()).await.unwrap_err();
        assert!(
            matches!(&error, CheckpointError::Archive(ArchiveError::Missing(lacking)) if *lacking == path),
            "{error}"
        );
        fs::write(&path, whole).unwrap();
    }
    signed(member, &cut, &mut memory).await;
    let certified = certify(member.inputs(), &votes, &memory, &mut |_| ()).await.unwrap();
    assert_eq!((certified.number, certified.checkpoint), (2, proposal.checkpoint));

    // The state is the base of the next one: also there, what was changed is verified.
    let state = archive.state_path(2);
    let mut altered = fs::read(&state).unwrap();
    *altered.last_mut().unwrap() ^= 1;
    fs::write(&state, altered).unwrap();
    let error = propose(member.inputs(), &mut memory, &mut |_| ()).await.unwrap_err();
    let is_other = |defect: &Defect| matches!(defect, Defect::OtherCheckpoint | Defect::Damaged(_));
    let is_wrong = matches!(&error, CheckpointError::Archive(ArchiveError::Wrong { path, defect }) if *path == state && is_other(defect));
    assert!(is_wrong, "{error}");
    scene.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn journals_are_read_from_where_a_checkpoint_lacks_anything_and_from_the_start_if_it_goes() {
    let mut scene = Scene::certified(4).await;
    let mut memories: [Memory; 3] = Default::default();
    for sequence in 4..8 {
        scene.pay(&[0, 1, 2], 0, 3, sequence).await;
        scene.pay(&[0, 1, 2], 1, 2, sequence).await;
        // What one member alone executed is beyond the cut.
        scene.pay(&[2], 2, 0, sequence).await;
        let remembered = propose(scene.members[0].inputs(), &mut memories[0], &mut |_| ()).await.unwrap();
        let anew = scene.members[0].propose().await.unwrap();
        assert_eq!(remembered, anew);
        let cut = ProposedCut::read(&anew.cut).unwrap();
        for (member, memory) in scene.members.iter().zip(&mut memories) {
            let anew = signed(member, &cut, &mut Memory::default()).await;
            assert_eq!(signed(member, &cut, memory).await, anew);
            assert_eq!(anew.1, if member.archive == scene.members[2].archive { sequence - 3 } else { 0 });
        }
        scene.complete(&anew).await;
    }
    scene.pay(&[0, 1, 2], 0, 3, 8).await;
    propose(scene.members[0].inputs(), &mut memories[0], &mut |_| ()).await.unwrap();
    // The newest number is replaced by a rival, as if nobody had certified it.
    fs::remove_file(scene.members[0].archive().certificate_path(5)).unwrap();
    let remembered = propose(scene.members[0].inputs(), &mut memories[0], &mut |_| ()).await.unwrap();
    assert_eq!(remembered.number, 5);
    assert_eq!(remembered, scene.members[0].propose().await.unwrap());
    scene.stop().await;
}
