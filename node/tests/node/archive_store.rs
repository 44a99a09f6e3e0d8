//! The archive in an object store: a real S3 server over HTTP, with a folder behind it that tests alter, and nodes at
//! work. What the folder loses is in the store first, and what the store returns is believed by nobody.

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use fastpay_core::checkpoint::{Checkpoint, Segment, SegmentEntry};
use fastpay_core::{Digest, Epoch, TransactionIndex};
use fastpay_node::authority::certification::{
    Archive, ArchiveError, CheckpointError, Defect, Store, StoreError, Uploads, verify,
};
use fastpay_node::authority::config::{ArchiveSettings, Config};
use fastpay_node::authority::metrics::CertificationMetrics;
use fastpay_node::authority::pruning::PruningTimes;
use fastpay_node::operator::rebase::rebase;
use fastpay_testkit::{TestAccount, payment, test_domain};
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use object_store::RetryConfig;
use object_store::aws::AmazonS3Builder;
use s3s::auth::SimpleAuth;
use s3s::service::S3ServiceBuilder;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use url::Url;

use crate::authority::free_ports;
use crate::certification::{TIMES, certified, configure, is_certified, metric, start, stop};
use crate::checkpoint::Scene;
use crate::process::node;
use crate::scene::{copy_folder, eventually_async};

const KEYS: (&str, &str) = ("an-access-key", "a-secret-key");
const BUCKET: &str = "archives";
const KINDS: [&str; 4] = ["segment", "state", "cut.json", "certificate.json"];

/// An S3 server whose buckets are folders. It checks signatures.
struct S3 {
    folder: tempfile::TempDir,
    address: SocketAddr,
    connections: Option<JoinSet<()>>,
}

impl S3 {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join(BUCKET)).unwrap();
        // It comes back on the same port after it was away.
        let mut s3 = Self { folder, address: free_ports(0).1, connections: None };
        s3.serve().await;
        s3
    }

    async fn serve(&mut self) {
        let mut service = S3ServiceBuilder::new(s3s_fs::FileSystem::new(self.folder.path()).unwrap());
        service.set_auth(SimpleAuth::from_single(KEYS.0, KEYS.1));
        let service = service.build();
        let listener = TcpListener::bind(self.address).await.unwrap();
        self.address = listener.local_addr().unwrap();
        let mut connections = JoinSet::new();
        connections.spawn(async move {
            let mut served = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let service = service.clone();
                served.spawn(async move {
                    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        self.connections = Some(connections);
    }

    /// It is away, with all its connections.
    async fn go_away(&mut self) {
        self.connections.take().unwrap().shutdown().await;
    }

    fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    fn store(&self, prefix: &str) -> Store {
        let s3 = AmazonS3Builder::new().with_bucket_name(BUCKET).with_endpoint(self.endpoint()).with_allow_http(true);
        let s3 = s3.with_access_key_id(KEYS.0).with_secret_access_key(KEYS.1).with_region("local");
        let s3 = s3.with_retry(RetryConfig { max_retries: 0, ..Default::default() }).build().unwrap();
        Store::over(Arc::new(s3), prefix.into(), format!("s3://{BUCKET}/{prefix}"))
    }

    /// The file in which the server keeps an object.
    fn object(&self, prefix: &str, name: &str) -> PathBuf {
        self.folder.path().join(BUCKET).join(prefix).join(name)
    }

    /// The settings of a program that uses it.
    fn environment(&self, command: &mut Command) {
        command.env("AWS_ENDPOINT_URL", self.endpoint()).env("AWS_ALLOW_HTTP", "true").env("AWS_REGION", "local");
        command.env("AWS_ACCESS_KEY_ID", KEYS.0).env("AWS_SECRET_ACCESS_KEY", KEYS.1);
    }
}

/// The numbers of which a folder has files, each with how many, besides what stays for clients' reads.
pub fn held(folder: &Path) -> Vec<(u64, usize)> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let names = names.filter(|name| !name.ends_with(".index") && !name.ends_with(".stored.json"));
    let numbers: Vec<u64> = names.filter_map(|name| name.split('.').next()?.parse().ok()).collect();
    let distinct: BTreeSet<_> = numbers.iter().copied().collect();
    distinct.into_iter().map(|number| (number, numbers.iter().filter(|of| **of == number).count())).collect()
}

/// A folder with files that no node made: of states and cuts, uploads do not look into them.
struct Folder(tempfile::TempDir);

/// A segment with one payment, in each number.
fn segment() -> Segment {
    let payer = TestAccount::numbered(0);
    let order = payment(payer.id(), TestAccount::numbered(1).id(), 1, 0);
    Segment { entries: vec![SegmentEntry::Executed(payer.sign(&test_domain(), order))] }
}

/// Each number's, linked to the one before.
fn checkpoint(number: u64) -> Checkpoint {
    let (segment, none) = (segment(), Digest::ZERO);
    let leaf = segment.entries[0].leaf();
    let root = leaf.root(&segment.path(&leaf).unwrap()).unwrap();
    let link = |previous, number| Checkpoint {
        epoch: Epoch(0),
        number,
        previous,
        up_to: TransactionIndex(0),
        cut: none,
        state: none,
        segment: root,
    };
    (2..=number).fold(link(none, 1), |before, number| link(test_domain().checkpoint_digest(&before), number))
}

impl Folder {
    fn with(numbers: std::ops::RangeInclusive<u64>) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        numbers.for_each(|number| folder.complete(number));
        folder
    }

    fn path(&self, number: u64, kind: &str) -> PathBuf {
        self.0.path().join(format!("{number:010}.{kind}"))
    }

    fn complete(&self, number: u64) {
        KINDS.iter().for_each(|kind| fs::write(self.path(number, kind), format!("{kind} of {number}")).unwrap());
        segment().write(&mut fs::File::create(self.path(number, "segment")).unwrap()).unwrap();
        let Checkpoint { epoch, number, previous, up_to, cut, state, segment } = checkpoint(number);
        let checkpoint = json!({
            "epoch": epoch, "number": number, "previous": previous, "upTo": up_to, "cut": cut, "state": state,
            "segment": segment,
        });
        let certificate = json!({ "checkpoint": checkpoint, "votes": [] });
        fs::write(self.path(number, "certificate.json"), certificate.to_string()).unwrap();
    }

    /// Whether what clients' reads need of a number in the store is there.
    fn is_readable(&self, number: u64) -> (bool, bool) {
        (self.path(number, "stored.json").exists(), self.path(number, "index").exists())
    }

    fn uploads(&self, store: Store) -> Uploads {
        Uploads::new(
            Archive::new(self.0.path()),
            store,
            test_domain(),
            &TIMES,
            Arc::new(CertificationMetrics::default()),
        )
    }
}

#[tokio::test]
async fn numbers_are_uploaded_and_all_but_the_newest_leave_the_folder() {
    let s3 = S3::start().await;
    let folder = Folder::with(1..=5);
    // Of several parts, the last one short; and one that ends with a part.
    let long: Vec<u8> = (0..20_000_000_u32).map(|at| at.to_le_bytes()[at as usize % 4]).collect();
    fs::write(folder.path(1, "state"), &long).unwrap();
    fs::write(folder.path(2, "state"), &long[..16 << 20]).unwrap();
    // A vote is of no use any more; a proposal is no certified number.
    fs::write(folder.path(1, "vote.json"), "own").unwrap();
    fs::write(folder.path(6, "segment"), "proposed").unwrap();
    let mut uploads = folder.uploads(s3.store("alice"));
    uploads.pass().await.unwrap();
    assert_eq!(held(folder.0.path()), [(3, 4), (4, 4), (5, 4), (6, 1)]);
    assert_eq!(held(&s3.object("alice", "")), [(1, 4), (2, 4), (3, 4), (4, 4), (5, 4)]);
    assert_eq!(fs::read(s3.object("alice", "0000000001.state")).unwrap(), long);
    assert_eq!(fs::read(s3.object("alice", "0000000002.state")).unwrap(), &long[..16 << 20]);
    assert_eq!(fs::read(s3.object("alice", "0000000004.cut.json")).unwrap(), b"cut.json of 4");

    // Another process of the same authority goes on with the next number; another authority has its own prefix.
    folder.complete(6);
    folder.uploads(s3.store("alice")).pass().await.unwrap();
    assert_eq!(held(folder.0.path()), [(4, 4), (5, 4), (6, 4)]);
    Folder::with(1..=1).uploads(s3.store("bob")).pass().await.unwrap();
    assert_eq!(held(&s3.object("alice", "")).len(), 6);
    assert_eq!(held(&s3.object("bob", "")), [(1, 4)]);
}

#[tokio::test]
async fn an_outage_delays_uploads_and_nothing_leaves_the_folder_meanwhile() {
    let mut s3 = S3::start().await;
    let folder = Folder::with(1..=4);
    let mut uploads = folder.uploads(s3.store("alice"));
    s3.go_away().await;
    let failed = uploads.pass().await.unwrap_err();
    assert!(matches!(failed, ArchiveError::Store(StoreError::Access { .. })), "{failed}");
    assert_eq!(held(folder.0.path()), [(1, 4), (2, 4), (3, 4), (4, 4)]);
    s3.serve().await;
    uploads.pass().await.unwrap();
    assert_eq!(held(folder.0.path()), [(2, 4), (3, 4), (4, 4)]);
    // Wrong credentials are told from what is missing.
    let stranger = AmazonS3Builder::new().with_bucket_name(BUCKET).with_endpoint(s3.endpoint()).with_allow_http(true);
    let stranger = stranger.with_access_key_id("a-stranger").with_secret_access_key("none").with_region("local");
    let store = Store::over(Arc::new(stranger.build().unwrap()), "alice".into(), "s3://archives/alice".into());
    let refused = Folder::with(1..=3).uploads(store).pass().await.unwrap_err();
    assert!(matches!(refused, ArchiveError::Store(StoreError::Access { .. })), "{refused}");
}

#[tokio::test]
async fn a_number_leaves_the_folder_only_after_it_was_read_back() {
    let s3 = S3::start().await;
    for kind in KINDS {
        let folder = Folder::with(1..=3);
        let prefix = format!("alice-{}", kind.split('.').next().unwrap());
        let mut uploads = folder.uploads(s3.store(&prefix));
        uploads.pass().await.unwrap();
        // The store acknowledged it, and lost some of it.
        let object = s3.object(&prefix, &format!("0000000001.{kind}"));
        let whole = fs::read(&object).unwrap();
        fs::write(&object, &whole[1..]).unwrap();
        folder.complete(4);
        uploads.pass().await.unwrap();
        assert_eq!(held(folder.0.path()), [(1, 4), (2, 4), (3, 4), (4, 4)], "{kind}");
        assert!(!s3.object(&prefix, "0000000001.certificate.json").exists(), "the number is not in the store");
        uploads.pass().await.unwrap();
        assert_eq!(fs::read(&object).unwrap(), whole, "it is uploaded again");
        assert_eq!(held(folder.0.path()), [(2, 4), (3, 4), (4, 4)]);
    }

    // Killed while it removed: the rest goes once it is compared, too.
    let folder = Folder::with(1..=4);
    fs::rename(folder.path(1, "certificate.json"), folder.path(1, "stored.json")).unwrap();
    let mut uploads = folder.uploads(s3.store("alice-state"));
    let state = s3.object("alice-state", "0000000001.state");
    let whole = fs::read(&state).unwrap();
    fs::write(&state, "another").unwrap();
    let altered = uploads.pass().await.unwrap_err();
    assert!(
        matches!(&altered, ArchiveError::Store(StoreError::Altered(object)) if object.ends_with("1.state")),
        "{altered}"
    );
    assert_eq!(held(folder.0.path()), [(1, 3), (2, 4), (3, 4), (4, 4)]);
    fs::write(&state, whole).unwrap();
    uploads.pass().await.unwrap();
    assert_eq!(held(folder.0.path()), [(2, 4), (3, 4), (4, 4)]);
    assert_eq!(folder.is_readable(1), (true, true));
}

#[tokio::test]
async fn a_number_leaves_its_header_and_index_which_are_made_anew_from_the_store() {
    let s3 = S3::start().await;
    let folder = Folder::with(1..=6);
    let certificate = fs::read(folder.path(1, "certificate.json")).unwrap();
    let mut uploads = folder.uploads(s3.store("alice"));
    // What cannot be indexed does not leave.
    let segment = fs::read(folder.path(1, "segment")).unwrap();
    fs::write(folder.path(1, "segment"), &segment[1..]).unwrap();
    let wrong = uploads.pass().await.unwrap_err();
    assert!(matches!(&wrong, ArchiveError::Wrong { path, .. } if *path == folder.path(1, "segment")), "{wrong}");
    assert_eq!((held(folder.0.path())[0], folder.is_readable(1)), ((1, 4), (false, false)));
    fs::write(folder.path(1, "segment"), &segment).unwrap();
    fs::remove_file(s3.object("alice", "0000000001.certificate.json")).unwrap();
    let mut uploads = folder.uploads(s3.store("alice"));
    uploads.pass().await.unwrap();
    assert_eq!(held(folder.0.path()), [(4, 4), (5, 4), (6, 4)]);
    let index = fs::read(folder.path(1, "index")).unwrap();
    assert_eq!(fs::read(folder.path(1, "stored.json")).unwrap(), certificate);

    // A folder that was restored.
    let lose = || {
        for number in 1..=3 {
            for kind in ["stored.json", "index"] {
                fs::remove_file(folder.path(number, kind)).unwrap();
            }
        }
    };
    lose();
    uploads.pass().await.unwrap();
    let made = ["stored.json", "index"].map(|kind| fs::read(folder.path(1, kind)).unwrap());
    assert_eq!(made, [certificate, index]);
    // An altered segment of the store is not indexed, and its neighbours are.
    lose();
    let altered = s3.object("alice", "0000000002.segment");
    let whole = fs::read(&altered).unwrap();
    fs::write(&altered, &whole[..whole.len() - 1]).unwrap();
    let wrong = uploads.pass().await.unwrap_err();
    assert!(
        matches!(&wrong, ArchiveError::WrongInStore { object, defect: Defect::Damaged(_) } if object.ends_with("2.segment")),
        "{wrong}"
    );
    assert_eq!([1, 2, 3].map(|number| folder.is_readable(number)), [(true, true), (true, false), (true, true)]);
    fs::write(&altered, whole).unwrap();
    uploads.pass().await.unwrap();
    assert_eq!(folder.is_readable(2), (true, true));
    // A certificate of another checkpoint is no header.
    lose();
    let altered = s3.object("alice", "0000000003.certificate.json");
    fs::copy(s3.object("alice", "0000000002.certificate.json"), &altered).unwrap();
    let wrong = uploads.pass().await.unwrap_err();
    assert!(
        matches!(&wrong, ArchiveError::WrongInStore { object, .. } if object.ends_with("3.certificate.json")),
        "{wrong}"
    );
    assert_eq!([1, 2, 3].map(|number| folder.is_readable(number)), [(false, false); 3]);
}

#[tokio::test]
async fn only_the_newest_number_of_a_store_is_replaced_by_another_checkpoint() {
    let s3 = S3::start().await;
    let (one, other) = (Folder::with(1..=1), Folder::with(1..=1));
    for kind in KINDS {
        fs::write(other.path(1, kind), format!("another {kind}")).unwrap();
    }
    one.uploads(s3.store("alice")).pass().await.unwrap();
    let mut uploads = other.uploads(s3.store("alice"));
    uploads.pass().await.unwrap();
    let stored = || KINDS.map(|kind| fs::read_to_string(s3.object("alice", &format!("0000000001.{kind}"))).unwrap());
    assert_eq!(stored(), KINDS.map(|kind| format!("another {kind}")));
    // With a successor it stays, whatever another authority has.
    other.complete(2);
    uploads.pass().await.unwrap();
    let refused = one.uploads(s3.store("alice")).pass().await.unwrap_err();
    assert!(matches!(refused, ArchiveError::Store(StoreError::OtherArchive(_))), "{refused}");
    assert_eq!(stored(), KINDS.map(|kind| format!("another {kind}")));
    assert_eq!(held(one.0.path()), [(1, 4)]);
}

#[tokio::test]
async fn no_number_leaves_for_a_store_that_lacks_one_before_it() {
    let s3 = S3::start().await;
    let folder = Folder::with(1..=4);
    folder.uploads(s3.store("alice")).pass().await.unwrap();
    folder.complete(5);
    // Another bucket, or a mount that is missing: the first number went elsewhere.
    let lacking = folder.uploads(s3.store("new")).pass().await.unwrap_err();
    assert!(
        matches!(&lacking, ArchiveError::Store(StoreError::Missing(object)) if object.ends_with("new/0000000001.certificate.json")),
        "{lacking}"
    );
    assert_eq!(held(folder.0.path()), [(2, 4), (3, 4), (4, 4), (5, 4)]);
    folder.uploads(s3.store("alice")).pass().await.unwrap();
    assert_eq!(held(folder.0.path()), [(3, 4), (4, 4), (5, 4)]);
}

#[tokio::test]
async fn a_certificate_of_the_store_that_is_too_long_is_not_read_into_memory() {
    let s3 = S3::start().await;
    let folder = Folder::with(1..=1);
    folder.uploads(s3.store("alice")).pass().await.unwrap();
    let certificate = s3.object("alice", "0000000001.certificate.json");
    fs::File::options().write(true).open(&certificate).unwrap().set_len(1 << 40).unwrap();
    let altered = folder.uploads(s3.store("alice")).pass().await.unwrap_err();
    assert!(
        matches!(&altered, ArchiveError::Store(StoreError::Altered(object)) if object.ends_with("1.certificate.json")),
        "{altered}"
    );
}

/// The configuration of the first member with its archive.
fn with_archive(scene: &Scene, store: &str) -> PathBuf {
    let (path, text) = (scene.path("with-archive.toml"), fs::read_to_string(scene.path("authority.toml")).unwrap());
    let folder = scene.members[0].archive.display();
    let archive = format!("[archive]\nfolder = \"{folder}\"\nstore = \"{store}\"\n");
    fs::write(&path, format!("endpoints = \"endpoints.json\"\n{text}\n{archive}")).unwrap();
    path
}

/// Three authorities with an archive of four numbers.
pub async fn four_numbers() -> Scene {
    let scene = Scene::certified(1).await;
    for sequence in 1..4 {
        scene.pay(&[0, 1, 2], 0, 1, sequence).await;
        scene.checkpoint().await;
    }
    scene
}

pub fn archive_settings(folder: &Path, store: Url) -> ArchiveSettings {
    ArchiveSettings {
        folder: folder.to_owned(),
        store: Some(store),
        every_seconds: 604_800,
        idle: false,
        orders_max: 10_000,
        times: TIMES,
        pruning: PruningTimes::default(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_archive_in_a_bucket_is_verified_and_rebased_from_and_what_it_altered_is_named() {
    let mut s3 = S3::start().await;
    let mut scene = four_numbers().await;
    scene.stop().await;
    let member = &scene.members[0];
    let archive = member.archive();
    Uploads::new(archive, s3.store("alice"), scene.committee.domain, &TIMES, Arc::default()).pass().await.unwrap();
    assert!(!is_certified(member, 1) && is_certified(member, 2));
    let place = format!("s3://{BUCKET}/alice");
    let (config, data) = (with_archive(&scene, &place), member.config.data.clone());
    let command = |arguments: &[&str]| {
        let mut command = node(arguments);
        command.args(["--config", config.to_str().unwrap(), "--data", data.to_str().unwrap()]);
        s3.environment(&mut command);
        command
    };
    let output = command(&["config", "check"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("ok       archive    checkpoint 4, archived"), "{said}");
    assert!(said.contains("; s3://archives/alice has all up to 4"), "{said}");
    let verified = || command(&["archive", "verify", &place]).output().unwrap();
    let output = verified();
    assert!(String::from_utf8_lossy(&output.stdout).contains("checkpoints 1 to 4 are verified"), "{output:?}");

    let object = s3.object("alice", "0000000002.segment");
    let whole = fs::read(&object).unwrap();
    let mut altered = whole.clone();
    *altered.last_mut().unwrap() ^= 1;
    fs::write(&object, altered).unwrap();
    let output = verified();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains(&format!("{place}/0000000002.segment")), "{said}");
    assert!(said.contains("an earlier version of the object"), "{said}");
    fs::remove_file(&object).unwrap();
    let said = String::from_utf8_lossy(&verified().stderr).into_owned();
    assert!(said.contains("0000000002.segment is missing from the archive's store"), "{said}");

    fs::write(&object, whole).unwrap();
    let output = command(&["rebase", "--archive", &place]).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("\"checkpoint\":4,"), "{output:?}");

    let mut unreachable = ["archive verify", "rebase --archive"].map(|what| {
        let words: Vec<_> = what.split(' ').chain([place.as_str()]).collect();
        command(&words)
    });
    s3.go_away().await;
    for command in &mut unreachable {
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(&format!("did not serve {place}: ")), "{said}");
        assert!(said.contains("Check that it can be reached and that the AWS_… credentials may list"), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_keep_the_newest_numbers_and_serve_and_read_the_others_from_their_stores() {
    let mut scene = four_numbers().await;
    scene.stop().await;
    configure(&mut scene, 604_800);
    let mut late = scene.members.pop().unwrap();
    fs::remove_dir_all(&late.archive).unwrap();
    for (at, member) in scene.members.iter_mut().enumerate() {
        let store = member.archive.with_file_name(format!("store-{at}"));
        fs::create_dir(&store).unwrap();
        member.config.archive = Some(archive_settings(&member.archive, Url::from_file_path(store).unwrap()));
        start(member).await;
    }
    for member in &scene.members {
        let numbers = || held(&member.archive).into_iter().map(|(number, _)| number).collect::<Vec<_>>();
        eventually_async("the older numbers are in the store alone", async || numbers() == [2, 3, 4]).await;
        eventually_async("the store's number is shown", async || {
            metric(member, "fastpay_archive_store_number").await == 4.0
        })
        .await;
        assert_eq!(metric(member, "fastpay_archive_store_failures").await, 0.0);
    }
    let first = &scene.members[0];
    let config = with_archive(&scene, "file:///elsewhere");
    let arguments = ["status", "--config", config.to_str().unwrap(), "--listen", &first.config.listen.to_string()];
    let output = node(&arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        said.contains("archive: checkpoint 4, archived 20") && said.contains("; older ones in file:///"),
        "{output:?}"
    );
    // A member that was away gets all of them from the others.
    start(&mut late).await;
    certified(std::slice::from_ref(&late), 4).await;
    stop(&mut late).await;
    assert_eq!(late.verify().await.unwrap().number, 4);
    scene.stop().await;

    let member = &mut scene.members[0];
    let Config { data, .. } = member.config.clone();
    let report = member.verify().await.unwrap();
    assert_eq!(report, late.verify().await.unwrap(), "folder and store are one archive");
    // An outage, or what is not the store of this folder.
    let store = member.archive.with_file_name("store-0");
    let aside = member.archive.with_file_name("aside");
    copy_folder(&store, &aside);
    for (what, object) in [("segment", "0000000001.segment"), ("certificate", "0000000001.certificate.json")] {
        fs::write(store.join(object), [7; 100]).unwrap();
        let wrong = member.verify().await.unwrap_err();
        let is_named = |named: &str, defect: &Defect| named.ends_with(object) && matches!(defect, Defect::Damaged(_));
        assert!(
            matches!(&wrong, CheckpointError::Archive(ArchiveError::WrongInStore { object, defect }) if is_named(object, defect)),
            "{what}: {wrong}"
        );
        fs::copy(aside.join(object), store.join(object)).unwrap();
    }
    let place: PathBuf = format!("file://{}", store.display()).into();
    assert_eq!(verify(&member.config, &place, &mut |_| ()).await.unwrap(), report);
    let rebased = rebase(&member.config, &member.archive, None, None, &mut |_| ()).await.unwrap();
    assert_eq!(rebased.checkpoint, 4);
    assert!(data.join("generation-0001").exists());
    fs::remove_dir_all(&store).unwrap();
    let gone = member.verify().await.unwrap_err();
    assert!(matches!(&gone, CheckpointError::Archive(ArchiveError::Store(StoreError::Settings { .. }))), "{gone}");
}
