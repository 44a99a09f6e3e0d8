use super::identity::META_BYTES_MAX;
use super::*;

fn identity() -> FolderIdentity {
    FolderIdentity { names: vec!["aa".into()], shards: 2, chain_id: 31337, contract: "0x01".into() }
}

fn temporary() -> (tempfile::TempDir, PathBuf) {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("a/data");
    (parent, path)
}

#[test]
fn a_created_folder_opens_and_is_closed_to_others() {
    let (_parent, path) = temporary();
    drop(DataFolder::create(&path, &identity()).unwrap());
    let folder = DataFolder::open(&path, &identity()).unwrap();
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, OWNER_ONLY);
    assert_eq!(folder.shard(2), None);
    let shard = folder.shard(1).unwrap();
    let start = JournalPosition::default();
    Journal::open(&shard.journal, JournalOptions::default(), start).unwrap();
}

#[test]
fn a_folder_that_is_not_known_to_be_new_cannot_be_opened() {
    let (_parent, path) = temporary();
    // A folder at the marker file's path makes writing the marker fail.
    let unwritten = path.join(NEW_FILE);
    fs::create_dir_all(&unwritten).unwrap();
    DataFolder::create(&path, &identity()).unwrap_err();
    assert!(matches!(DataFolder::open(&path, &identity()), Err(StorageError::NotCreated { .. })));
    fs::remove_dir(&unwritten).unwrap();
    let folder = DataFolder::create(&path, &identity()).unwrap();
    assert!(folder.path().join(NEW_FILE).exists());
}

#[test]
fn permissions_that_were_opened_are_closed_again() {
    let (_parent, path) = temporary();
    drop(DataFolder::create(&path, &identity()).unwrap());
    fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    DataFolder::open(&path, &identity()).unwrap();
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, OWNER_ONLY);
}

#[test]
fn a_second_opener_is_refused_until_the_first_is_gone() {
    let (_parent, path) = temporary();
    let first = DataFolder::create(&path, &identity()).unwrap();
    let refused = DataFolder::open(&path, &identity()).unwrap_err();
    assert!(matches!(refused, StorageError::InUse { .. }), "{refused}");
    assert!(refused.to_string().contains("stop that one first"));
    drop(first);
    DataFolder::open(&path, &identity()).unwrap();
}

#[test]
fn each_mismatch_names_both_values() {
    let (_parent, path) = temporary();
    drop(DataFolder::create(&path, &identity()).unwrap());
    let mut others = [identity(), identity(), identity(), identity()];
    others[0].names = vec!["bb".into()];
    others[1].shards = 4;
    others[2].chain_id = 1;
    others[3].contract = "0x02".into();
    let expected = [
        ("authority", "aa", "bb"),
        ("number of shards", "2", "4"),
        ("chain id", "31337", "1"),
        ("contract", "0x01", "0x02"),
    ];
    for (other, expected) in others.iter().zip(expected) {
        let refused = DataFolder::open(&path, other).unwrap_err();
        let StorageError::Mismatch { what, stored, configured, .. } = &refused else {
            panic!("{refused}");
        };
        let found = (*what, stored.as_str(), configured.as_str());
        assert_eq!(found, expected);
    }
}

#[test]
fn a_name_that_was_added_opens_the_folder_without_the_first_one() {
    let (_parent, path) = temporary();
    let folder = DataFolder::create(&path, &identity()).unwrap();
    for _ in 0..2 {
        folder.add_name("bb").unwrap();
    }
    assert_eq!(folder.names().unwrap(), ["aa", "bb"]);
    drop(folder);
    let open = |names: &[&str]| {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        DataFolder::open(&path, &FolderIdentity { names, ..identity() })
    };
    for names in [&["bb"][..], &["aa"], &["cc", "bb"], &["aa", "bb"]] {
        drop(open(names).unwrap());
    }
    for names in [&["cc"][..], &[]] {
        let refused = open(names).unwrap_err();
        assert!(matches!(refused, StorageError::Mismatch { what: "authority", .. }), "{refused}");
    }
}

#[test]
fn a_folder_is_created_once_and_opened_only_after_that() {
    let (_parent, path) = temporary();
    let refused = DataFolder::open(&path, &identity()).unwrap_err();
    assert!(matches!(refused, StorageError::NotCreated { .. }));
    assert!(!path.exists());
    drop(DataFolder::create(&path, &identity()).unwrap());
    let refused = DataFolder::create(&path, &identity()).unwrap_err();
    assert!(matches!(refused, StorageError::AlreadyCreated { .. }));
}

#[test]
fn a_half_made_folder_is_completed_but_never_one_with_records() {
    let (_parent, path) = temporary();
    let folder = DataFolder::create(&path, &identity()).unwrap();
    let journal = folder.shard(1).unwrap().journal;
    drop(folder);
    fs::remove_file(path.join(META_FILE)).unwrap();
    drop(DataFolder::create(&path, &identity()).unwrap());

    let start = JournalPosition::default();
    let mut journal = Journal::open(&journal, JournalOptions::default(), start).unwrap();
    journal.append(b"a vote").unwrap();
    journal.commit().unwrap();
    fs::remove_file(path.join(META_FILE)).unwrap();
    let refused = DataFolder::create(&path, &identity()).unwrap_err();
    assert!(matches!(refused, StorageError::AlreadyCreated { .. }));
}

#[test]
fn a_folder_without_all_its_journals_is_none() {
    let (_parent, path) = temporary();
    let second = path.join("shard-001");
    fs::create_dir_all(&path).unwrap();
    fs::write(&second, b"in the way of a journal").unwrap();
    DataFolder::create(&path, &identity()).unwrap_err();
    let refused = DataFolder::open(&path, &identity()).unwrap_err();
    assert!(matches!(refused, StorageError::NotCreated { .. }), "{refused}");
    fs::remove_file(&second).unwrap();
    drop(DataFolder::create(&path, &identity()).unwrap());
    DataFolder::open(&path, &identity()).unwrap();
}

#[test]
fn a_damaged_or_newer_meta_file_is_refused() {
    let (_parent, path) = temporary();
    drop(DataFolder::create(&path, &identity()).unwrap());
    let meta = path.join(META_FILE);
    let good = fs::read_to_string(&meta).unwrap();
    let newer = good.replace("\"format_version\": 3", "\"format_version\": 4");
    fs::write(&meta, newer.replace("chain_id", "chain")).unwrap();
    let refused = DataFolder::open(&path, &identity()).unwrap_err();
    assert!(matches!(refused, StorageError::UnsupportedVersion { found: 4, .. }), "{refused}");
    let huge = good.clone() + &" ".repeat(META_BYTES_MAX as usize);
    for bad in [&good[..good.len() / 2], "", &good.replace("chain", "x"), &huge] {
        fs::write(&meta, bad).unwrap();
        let refused = DataFolder::open(&path, &identity()).unwrap_err();
        assert!(matches!(refused, StorageError::Malformed { .. }));
    }
}

#[test]
fn the_next_generation_counts_from_the_switch_on_and_older_ones_can_go_then() {
    let (_parent, path) = temporary();
    drop(DataFolder::create(&path, &identity()).unwrap());
    for other in ["shard-000/index", INDEX_FOLDER] {
        fs::create_dir(path.join(other)).unwrap();
    }
    fs::write(path.join(PEERS_FILE), b"").unwrap();
    let meta = path.join(META_FILE);
    let new = fs::read_to_string(&meta).unwrap();
    assert!(new.contains("\"format_version\": 3"), "earlier releases must not vote with it: {new}");
    let mut folder = DataFolder::open_of_deployment(&path, 31337, "0x01").unwrap();
    assert_eq!((folder.generation(), folder.shards()), (0, 2));
    // An attempt that did not get as far as the switch is begun anew.
    fs::create_dir_all(path.join("generation-0001/shard-000/journal/left")).unwrap();
    assert_eq!(folder.create_next(3).unwrap().len(), 3);
    assert_eq!(remove_older_generations(&path, 0).unwrap(), Vec::<PathBuf>::new());
    assert_eq!(shard_folders(&path).unwrap().1, 0);
    let switch = Switch { ends: vec![0; 3], from_generation: 0, from_ends: vec![0; 2] };
    assert_eq!(folder.adopted().unwrap(), None);
    let adopted = Some(Digest::repeat_byte(7));
    folder.switch(3, switch.clone(), adopted).unwrap();
    assert_eq!((folder.generation(), folder.shards()), (1, 3));
    folder.add_name("bb").unwrap();
    drop(folder);
    let fullness = Some(Fullness::default());
    assert_eq!(generation_in(&path).unwrap(), Generation { number: 1, switch: Some(switch), adopted, fullness });
    let (folders, generation) = shard_folders(&path).unwrap();
    assert_eq!((folders.len(), generation), (3, 1));
    assert!(folders.iter().all(|shard| shard.journal.starts_with(path.join("generation-0001"))));
    let refused = DataFolder::open(&path, &identity()).unwrap_err();
    assert!(matches!(refused, StorageError::Mismatch { what: "number of shards", .. }), "{refused}");
    DataFolder::open(&path, &FolderIdentity { shards: 3, ..identity() }).unwrap();
    let removed = remove_older_generations(&path, 1).unwrap();
    let names: Vec<_> = removed.iter().map(|old| old.file_name().unwrap().to_str().unwrap()).collect();
    assert_eq!(names, ["index", "peers.json", "shard-000", "shard-001"]);
    assert!(path.join("generation-0001").exists());
    let other = DataFolder::open_of_deployment(&path, 31337, "0x02").unwrap_err();
    assert!(matches!(other, StorageError::Mismatch { what: "contract", .. }), "{other}");
}

#[test]
fn what_is_no_folder_is_an_error_with_its_path() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("file");
    fs::write(&path, b"").unwrap();
    let refused = DataFolder::create(&path, &identity()).unwrap_err();
    assert!(matches!(refused, StorageError::Io { .. }), "{refused}");
    assert!(refused.to_string().contains("file"));
}
