//! An archive on the disk of the journals leaves their reserve to them, and goes on once there is room.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::certification::{certified, configure, is_certified, metric, start};
use crate::checkpoint::Scene;
use crate::scene::eventually_async;

const LACKING: &str = "fastpay_archive_room_lacking_bytes";

/// The names of an archive's files of checkpoints.
fn files(archive: &Path) -> Vec<String> {
    let names = fs::read_dir(archive).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with("000")).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_archived_into_the_reserve_and_the_node_goes_on_once_there_is_room() {
    let mut scene = Scene::of(None, &[1, 2, 3, 2]);
    configure(&mut scene, 0);
    // As on a disk that is full up to the reserve. One has only brought checkpoints, the other one could propose.
    let (mut links, elsewhere) = (Vec::new(), tempfile::tempdir_in("/dev/shm").unwrap());
    for member in &mut scene.members[2..] {
        member.config.limits.disk_reserve_bytes = u64::MAX;
        let folder = member.archive.with_extension("here");
        fs::create_dir(&folder).unwrap();
        symlink(&folder, &member.archive).unwrap();
        links.push(member.archive.clone());
    }
    for member in &mut scene.members {
        start(member).await;
    }
    scene.pay(&[0, 1, 2, 3], 0, 1, 0).await;
    for member in &scene.members[2..] {
        eventually_async("it has no room for a checkpoint", async || metric(member, LACKING).await >= 1.0).await;
    }
    // Two of four are no quorum; the two others confirm payments all the same.
    scene.pay(&[0, 1, 2, 3], 0, 1, 1).await;
    for member in &scene.members {
        assert!(!is_certified(member, 1));
    }
    for link in &links {
        assert_eq!(files(link), Vec::<String>::new());
    }
    assert_eq!(metric(&scene.members[0], LACKING).await, 0.0);

    // One gets a disk of its own for its archive: that makes a quorum. The last one still has no room.
    let (folder, link) = (elsewhere.path().join("archive"), links[0].with_extension("link"));
    fs::create_dir(&folder).unwrap();
    symlink(&folder, &link).unwrap();
    fs::rename(&link, &links[0]).unwrap();
    certified(&scene.members[..3], 1).await;
    eventually_async("it has room", async || metric(&scene.members[2], LACKING).await == 0.0).await;
    assert!(metric(&scene.members[3], LACKING).await >= 1.0);
    assert_eq!(files(&links[1]), Vec::<String>::new());
    scene.stop().await;
}
