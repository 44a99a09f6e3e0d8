use super::*;
use crate::authority::storage::FolderIdentity;

struct Scene {
    parent: tempfile::TempDir,
}

impl Scene {
    fn new() -> Self {
        let parent = tempfile::tempdir().unwrap();
        let scene = Self { parent };
        let identity = FolderIdentity { names: vec!["aa".into()], shards: 2, chain_id: 1, contract: "0x01".into() };
        drop(DataFolder::create(&scene.data(), &identity).unwrap());
        HighWaterMark::create(&scene.data(), scene.high_water_mark()).unwrap();
        scene
    }

    fn data(&self) -> PathBuf {
        self.parent.path().join("data")
    }

    fn high_water_mark(&self) -> PathBuf {
        default_high_water_mark(&self.data())
    }

    /// Judges the folder as at a start with these journals.
    fn judge(&self, ends: [u64; 2]) -> Memory {
        let folder = DataFolder::hold(&self.data()).unwrap();
        HighWaterMark::of(&self.data(), self.high_water_mark())
            .unwrap()
            .judge(&folder, &ends.map(JournalPosition), None)
            .unwrap()
    }

    fn why(&self, ends: [u64; 2]) -> String {
        match self.judge(ends) {
            Memory::Older { why, .. } => why,
            Memory::Whole => panic!("nothing was noticed"),
        }
    }

    /// Copies without starting a process: a starting process holds the locks of other tests for a moment.
    fn copy(&self, from: &Path, to: &Path) {
        if from.is_file() {
            fs::copy(from, to).unwrap();
            return;
        }
        fs::create_dir(to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let name = entry.unwrap().file_name();
            self.copy(&from.join(&name), &to.join(&name));
        }
    }
}

#[test]
fn a_folder_that_goes_on_is_whole() {
    let scene = Scene::new();
    assert_eq!(scene.judge([0, 0]), Memory::Whole);
    let high_water_mark = HighWaterMark::of(&scene.data(), scene.high_water_mark()).unwrap();
    high_water_mark.note(&[JournalPosition(50), JournalPosition(60)]);
    // A high-water mark behind its journals is consistent with them.
    assert_eq!(scene.judge([50, 90]), Memory::Whole);
    assert_eq!(scene.judge([50, 90]), Memory::Whole);
    // A folder keeps its birth when it is moved.
    let elsewhere = scene.parent.path().join("elsewhere");
    fs::rename(scene.data(), &elsewhere).unwrap();
    fs::rename(&elsewhere, scene.data()).unwrap();
    assert_eq!(scene.judge([50, 90]), Memory::Whole);
}

#[test]
fn a_journal_that_lost_its_end_is_noticed_and_stays_noticed() {
    for (ends, shard) in [([99, 200], 0), ([100, 199], 1), ([0, 0], 0)] {
        let scene = Scene::new();
        assert_eq!(scene.judge([100, 200]), Memory::Whole);
        let why = scene.why(ends);
        assert!(why.contains(&format!("shard {shard} ")) && why.contains(&ends[shard].to_string()), "{why}");
        // The mark stays when the journals are longer again.
        assert_eq!(scene.why([500, 500]), why);
    }
}

#[test]
fn what_was_noted_with_a_switch_counts_until_the_first_start() {
    let switched = |scene: &Scene, ends: [u64; 2], next: [u64; 2]| {
        let mark = HighWaterMark::of(&scene.data(), scene.high_water_mark()).unwrap();
        let switch = mark.switch_to(&next.map(JournalPosition), &ends.map(JournalPosition));
        let mut folder = DataFolder::open_of_deployment(&scene.data(), 1, "0x01").unwrap();
        folder.switch(2, switch, None).unwrap();
    };
    let rebased = || {
        let scene = Scene::new();
        assert_eq!(scene.judge([100, 200]), Memory::Whole);
        switched(&scene, [150, 200], [30, 40]);
        scene
    };
    let meta = |scene: &Scene| scene.data().join("meta.json");
    // Its journals are compared with what was written.
    assert!(rebased().why([30, 39]).contains("shard 1 ends at 39, and had been committed up to 40"));
    let scene = rebased();
    assert_eq!(scene.judge([30, 40]), Memory::Whole);
    assert!(scene.why([30, 39]).contains("shard 1"), "the high-water mark has the ends from then on");
    // The old generation comes back before the new one was started, with a vote more, and goes again.
    for is_rebased_twice in [false, true] {
        let scene = Scene::new();
        let old = fs::read(meta(&scene)).unwrap();
        assert_eq!(scene.judge([100, 200]), Memory::Whole);
        switched(&scene, [150, 200], [30, 40]);
        if is_rebased_twice {
            switched(&scene, [30, 40], [500, 500]);
        }
        let new = fs::read(meta(&scene)).unwrap();
        fs::write(meta(&scene), old).unwrap();
        assert_eq!(scene.judge([151, 200]), Memory::Whole);
        fs::write(meta(&scene), &new).unwrap();
        assert!(scene.why([500, 500]).contains("generation 0 of its journals was used further"));
    }
    let scene = rebased();
    switched(&scene, [30, 40], [500, 500]);
    assert_eq!(scene.judge([500, 500]), Memory::Whole, "a generation without a start is replaced");
}

#[test]
fn a_copy_is_detected_even_with_its_high_water_mark_and_with_whole_journals() {
    let scene = Scene::new();
    assert_eq!(scene.judge([100, 200]), Memory::Whole);
    let (backup, kept) = (scene.parent.path().join("backup"), scene.parent.path().join("kept"));
    scene.copy(&scene.data(), &backup);
    scene.copy(&scene.high_water_mark(), &kept);
    fs::remove_dir_all(scene.data()).unwrap();
    fs::remove_file(scene.high_water_mark()).unwrap();
    scene.copy(&backup, &scene.data());
    scene.copy(&kept, &scene.high_water_mark());
    assert!(scene.why([100, 200]).contains("copy"));
    fs::remove_file(scene.data().join(MARK_FILE)).unwrap();
    fs::remove_file(scene.high_water_mark()).unwrap();
    assert!(scene.why([100, 200]).contains("missing"));
    fs::remove_file(scene.data().join(MARK_FILE)).unwrap();
    fs::write(scene.high_water_mark(), b"{").unwrap();
    assert!(scene.why([100, 200]).contains("cannot be read"));
    fs::write(scene.data().join(MARK_FILE), b"").unwrap();
    assert!(matches!(scene.judge([100, 200]), Memory::Older { since: 0, .. }), "a damaged mark is one, too");
}

#[test]
fn what_was_learned_before_a_copy_came_back_is_forgotten() {
    let scene = Scene::new();
    assert_eq!(scene.judge([100, 200]), Memory::Whole);
    let floors = scene.data().join(FLOORS_FILE);
    fs::write(&floors, b"learned").unwrap();
    scene.why([99, 200]);
    assert!(!floors.exists());
    // A start that detects nothing new keeps the floors.
    fs::write(&floors, b"learned").unwrap();
    scene.why([99, 200]);
    assert!(floors.exists());
    scene.why([98, 200]);
    assert!(!floors.exists());
}

#[test]
fn a_mark_that_cannot_be_written_leaves_the_folder_suspect() {
    let scene = Scene::new();
    assert_eq!(scene.judge([100, 200]), Memory::Whole);
    let (floors, unwritten) = (scene.data().join(FLOORS_FILE), scene.data().join(MARK_FILE));
    // A folder at the mark's path makes writing the mark fail.
    fs::create_dir(&unwritten).unwrap();
    let folder = DataFolder::hold(&scene.data()).unwrap();
    let high_water_mark = HighWaterMark::of(&scene.data(), scene.high_water_mark()).unwrap();
    high_water_mark.judge(&folder, &[99, 200].map(JournalPosition), None).unwrap_err();
    drop(folder);
    // The floors are removed before there is a mark that makes them count …
    fs::write(&floors, b"learned").unwrap();
    mark_stale(&scene.data()).unwrap_err();
    assert!(!floors.exists());
    fs::remove_dir(&unwritten).unwrap();
    // … and the high-water mark is rewritten only after the mark exists.
    assert!(scene.why([99, 200]).contains("shard 0"));
}

#[test]
fn a_new_folder_is_judged_once_by_whether_its_deployment_is_in_use() {
    let judge = |scene: &Scene, in_use| {
        let folder = DataFolder::hold(&scene.data()).unwrap();
        let memory =
            HighWaterMark::of(&scene.data(), scene.high_water_mark()).unwrap().judge(&folder, &[], in_use).unwrap();
        assert_eq!(age(&folder).unwrap(), Age::Judged);
        memory
    };
    let is_new_in = |scene: &Scene| age(&DataFolder::hold(&scene.data()).unwrap()).unwrap() == Age::New;
    let scene = Scene::new();
    assert!(is_new_in(&scene));
    assert_eq!(judge(&scene, None), Memory::Whole);
    for in_use in [
        StaleReason::LaterEpoch(Epoch(3)),
        StaleReason::Events(TransactionIndex(7)),
        StaleReason::Peer(AuthorityName([1; 32])),
    ] {
        let scene = Scene::new();
        let Memory::Older { why, .. } = judge(&scene, Some(in_use.clone())) else { panic!("{in_use}") };
        assert_eq!(why, in_use.to_string());
        assert!(matches!(judge(&scene, None), Memory::Older { .. }), "the verdict stays");
        // The operator's word changes nothing.
        let refused = trust_data(&scene.data(), scene.high_water_mark());
        assert!(matches!(refused, Err(DetectionError::Incomplete(said)) if said == why), "{in_use}");
        assert!(matches!(judge(&scene, None), Memory::Older { .. }));
    }
    let scene = Scene::new();
    let refused = trust_data(&scene.data(), scene.high_water_mark()).unwrap_err();
    assert!(refused.to_string().contains("its first start decides"), "{refused}");
    assert!(is_new_in(&scene));
}

#[test]
fn a_mark_says_once_up_to_which_epoch_votes_may_be_missing_and_a_later_one_says_nothing_of_it() {
    let scene = Scene::new();
    assert_eq!(scene.judge([100, 200]), Memory::Whole);
    note_up_to(&scene.data(), Epoch(3)).unwrap();
    assert_eq!(marked(&scene.data()).unwrap(), Memory::Whole, "there is no mark");
    let up_to = |scene: &Scene| match marked(&scene.data()).unwrap() {
        Memory::Older { up_to, .. } => up_to,
        Memory::Whole => panic!("there is no mark"),
    };
    mark_stale(&scene.data()).unwrap();
    assert_eq!(up_to(&scene), None);
    note_up_to(&scene.data(), Epoch(3)).unwrap();
    note_up_to(&scene.data(), Epoch(5)).unwrap();
    assert_eq!(up_to(&scene), Some(Epoch(3)));
    assert!(scene.why([100, 200]).contains("operator"), "a start changes nothing of it");
    assert_eq!(up_to(&scene), Some(Epoch(3)));
    // A copy of the marked folder, or a later loss: there may be votes of later epochs.
    assert!(scene.why([100, 100]).contains("shard 1"));
    assert_eq!(up_to(&scene), None);
    // A mark of an earlier release says nothing of epochs.
    fs::write(scene.data().join(MARK_FILE), br#"{"since":7,"why":"a reason"}"#).unwrap();
    let said = Memory::Older { since: 7, why: "a reason".into(), up_to: None };
    assert_eq!(marked(&scene.data()).unwrap(), said);
    fs::write(scene.data().join(FLOORS_FILE), b"learned").unwrap();
    unmark(&scene.data()).unwrap();
    assert_eq!(marked(&scene.data()).unwrap(), Memory::Whole);
    assert!(!scene.data().join(FLOORS_FILE).exists());
}

#[test]
fn a_verdict_on_a_new_folder_that_cannot_be_written_leaves_it_new() {
    let scene = Scene::new();
    let judge = || {
        let folder = DataFolder::hold(&scene.data()).unwrap();
        let in_use = Some(StaleReason::Events(TransactionIndex(7)));
        let judged = HighWaterMark::of(&scene.data(), scene.high_water_mark()).unwrap().judge(&folder, &[], in_use);
        (judged, age(&folder).unwrap() != Age::Judged)
    };
    // A folder stands at the path of the mark, then of the high-water mark.
    let aside = scene.parent.path().join("aside");
    for unwritten in [scene.data().join(MARK_FILE), scene.high_water_mark()] {
        let is_aside = fs::rename(&unwritten, &aside).is_ok();
        fs::create_dir(&unwritten).unwrap();
        assert!(matches!(judge(), (Err(_), true)), "{}", unwritten.display());
        fs::remove_dir(&unwritten).unwrap();
        assert!(!is_aside || fs::rename(&aside, &unwritten).is_ok());
    }
    assert!(matches!(judge(), (Ok(Memory::Older { .. }), false)));
}

#[test]
fn the_operators_word_counts_while_nothing_runs_and_for_a_folder_that_was_moved_alone() {
    let scene = Scene::new();
    assert_eq!(scene.judge([100, 200]), Memory::Whole);
    let running = DataFolder::hold(&scene.data()).unwrap();
    for refused in [mark_stale(&scene.data()), trust_data(&scene.data(), scene.high_water_mark())] {
        assert!(matches!(refused, Err(DetectionError::Storage(StorageError::InUse { .. }))), "{refused:?}");
    }
    drop(running);
    // Moved to another disk, with everything in it.
    let move_it = || {
        let backup = scene.parent.path().join("backup");
        scene.copy(&scene.data(), &backup);
        fs::remove_dir_all(scene.data()).unwrap();
        scene.copy(&backup, &scene.data());
        fs::remove_dir_all(&backup).unwrap();
    };
    move_it();
    trust_data(&scene.data(), scene.high_water_mark()).unwrap();
    assert_eq!(scene.judge([100, 200]), Memory::Whole);
    // An older copy is none that was moved: the high-water mark says how far the journals went.
    move_it();
    trust_data(&scene.data(), scene.high_water_mark()).unwrap();
    assert!(scene.why([100, 199]).contains("shard 1"));
    let trust = || trust_data(&scene.data(), scene.high_water_mark()).unwrap_err().to_string();
    assert!(trust().contains("shard 1") && trust().contains("joins the next epoch"), "{}", trust());
    unmark(&scene.data()).unwrap();
    // Nor is one without it, or one that the operator has marked.
    fs::remove_file(scene.high_water_mark()).unwrap();
    assert!(trust().contains("is missing"), "{}", trust());
    mark_stale(&scene.data()).unwrap();
    assert!(trust().contains("its operator says so"), "{}", trust());
    let nowhere = scene.parent.path().join("nowhere");
    for refused in [mark_stale(&nowhere), trust_data(&nowhere, scene.high_water_mark())] {
        assert!(matches!(refused, Err(DetectionError::Storage(StorageError::NotCreated { .. }))), "{refused:?}");
    }
}

#[test]
fn no_second_folder_is_made_beside_the_high_water_mark_of_the_first() {
    let scene = Scene::new();
    let refused = HighWaterMark::create(&scene.data(), scene.high_water_mark()).unwrap_err();
    assert!(
        matches!(&refused, DetectionError::HighWaterMarkExists(path) if *path == scene.high_water_mark()),
        "{refused}"
    );
    assert!(refused.to_string().contains("must not begin with an empty memory"));
}
