//! Nodes that make checkpoints of the committee by themselves: under load, without the member whose turn it is, across
//! rotations, after an absence, and among peers whose archives are wrong. Each has its own archive, which `verify` reads.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use fastpay_client::{AuthorityEndpoints, Endpoints};
use fastpay_core::checkpoint::{Checkpoint, CheckpointState, PrimaryEvent, PrimaryEventKind, Segment, SegmentEntry};
use fastpay_core::{Amount, Asset, Domain, Epoch, PrimaryAddress, TransactionIndex};
use fastpay_node::authority::certification::member::MemberTimes;
use fastpay_node::authority::certification::{CheckpointVoteFile, ORDERS_MIN};
use fastpay_node::authority::config::ArchiveSettings;
use fastpay_node::authority::pruning::PruningTimes;
use fastpay_node::authority::rollback::mark_stale;
use fastpay_rpc::json::Hex;
use fastpay_rpc::proto::shard_client::ShardClient as Grpc;
use fastpay_rpc::{ARCHIVE_PART_BYTES, ArchiveFile, proto};
use fastpay_testkit::anvil::{CHAIN_ID, Rotation};
use fastpay_testkit::{TestAccount, TestCommittee, payment};
use serde_json::json;
use tonic::Code;

use crate::authority::{self, Running, get};
use crate::checkpoint::{Chain, Member, Scene, checkpoint_of, read, signers};
use crate::scene::eventually_async;

pub const A_WEEK: u64 = 604_800;

/// What is wrong with an archive, and what makes it so.
type Lie<'a> = (&'static str, Box<dyn Fn() + 'a>);
/// Short, as the peers are on loopback; but a leader has the time to compute, with the lowest priority on a busy machine.
pub const TIMES: MemberTimes = MemberTimes {
    poll: Duration::from_millis(20),
    takeover: Duration::from_secs(15),
    call: Duration::from_secs(2),
    file: Duration::from_secs(60),
    certificates: Duration::from_secs(60),
    left: Duration::from_millis(500),
    left_max: Duration::from_secs(2),
};

fn endpoints_of(member: &Member) -> AuthorityEndpoints {
    let shards = member.config.shard_addresses().unwrap();
    AuthorityEndpoints {
        name: member.keys.public().name,
        shards: shards.iter().map(|address| format!("http://{address}")).collect(),
        http: None,
        tls_ca: None,
        label: None,
    }
}

fn write_endpoints(path: &Path, authorities: Vec<AuthorityEndpoints>) {
    let endpoints = Endpoints { authorities, ..Endpoints::default() };
    fs::write(path, serde_json::to_vec(&endpoints).unwrap()).unwrap();
}

/// Configures an archive for each member, and that all know each other.
pub fn configure(scene: &mut Scene, every_seconds: u64) {
    let path = scene.path("endpoints.json");
    write_endpoints(&path, scene.members.iter().map(endpoints_of).collect());
    for member in &mut scene.members {
        let folder = member.archive.clone();
        member.config.endpoints = Some(path.clone());
        // No node runs long enough to end its journals.
        let pruning = PruningTimes::default();
        let settings = ArchiveSettings {
            folder,
            store: None,
            every_seconds,
            orders_max: ORDERS_MIN,
            idle: false,
            times: TIMES,
            pruning,
        };
        member.config.archive = Some(settings);
    }
}

pub async fn start(member: &mut Member) {
    member.running = Some(Running::ready(member.config.clone(), member.keys.clone()).await);
}

pub async fn stop(member: &mut Member) {
    member.running.take().unwrap().stop().await.unwrap();
}

async fn is_left(member: &Member) {
    let left = async || metric(member, "fastpay_archive_peers_left_total").await >= 1.0;
    eventually_async("the peer is left", left).await;
}

pub fn is_certified(member: &Member, number: u64) -> bool {
    member.archive().certificate_path(number).exists()
}

pub async fn certified(members: &[Member], number: u64) {
    eventually_async(&format!("checkpoint {number} is certified"), async || {
        members.iter().all(|member| is_certified(member, number))
    })
    .await;
}

pub async fn metric(member: &Member, name: &str) -> f64 {
    let (_, text) = get(member.config.http, "/metrics").await.unwrap();
    let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name} in {text}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_certify_under_load_and_one_that_was_away_brings_what_it_lacks() {
    let chain = Chain::new().await;
    let mut scene = Scene::of(Some(chain.config()), &[1, 2, 3, 2]);
    configure(&mut scene, 0);
    for member in &mut scene.members {
        start(member).await;
    }
    stop(&mut scene.members[3]).await;
    let owners: Vec<_> = (0..4).map(TestAccount::numbered).collect();
    for owner in &owners {
        chain.deposit(owner.id(), 1_000).await;
    }
    // Each deposit may have made a checkpoint of its own by now.
    chain.followed(&scene.members[..3], 4).await;
    let last = 3 + (1..).take_while(|number| is_certified(&scene.members[0], *number)).count() as u64;
    let (stop_load, rounds) = (AtomicBool::new(false), AtomicU64::new(0));
    let load = async {
        while !stop_load.load(Ordering::Relaxed) {
            let sequence = rounds.load(Ordering::Relaxed);
            for owner in 0..4 {
                // One of them hears nothing of the last account's payments but from the others.
                let members: &[usize] = if owner == 3 { &[0, 1] } else { &[0, 1, 2] };
                scene.pay(members, owner, (owner + 1) % 4, sequence).await;
            }
            rounds.store(sequence + 1, Ordering::Relaxed);
        }
    };
    let watch = async {
        certified(&scene.members[..3], last).await;
        stop_load.store(true, Ordering::Relaxed);
    };
    tokio::join!(load, watch);

    start(&mut scene.members[3]).await;
    certified(&scene.members[3..], last).await;
    eventually_async("the number is shown", async || {
        metric(&scene.members[3], "fastpay_certified_checkpoint_number").await >= last as f64
    })
    .await;
    assert!(metric(&scene.members[3], "fastpay_certified_checkpoint_timestamp_seconds").await > 1e9);
    scene.stop().await;
    let digest = |member: &Member| checkpoint_of(&read(&member.archive().certificate_path(last)));
    for member in &scene.members {
        let report = member.verify().await.unwrap();
        assert!(report.number >= last && report.up_to == 4 && report.entries > 4, "{report}");
        assert_eq!(digest(member), digest(&scene.members[0]), "all certify the same");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_member_leads_if_the_one_whose_turn_it_is_is_away_and_nothing_is_said_that_is_not_on_disk() {
    let mut scene = Scene::of(None, &[1, 1, 1, 1]);
    // Executed before there is an archive: whoever proposes first, all propose the same, and no vote is replaced.
    scene.start().await;
    scene.pay(&[0, 2, 3], 0, 1, 0).await;
    scene.stop().await;
    configure(&mut scene, A_WEEK);
    // It does not answer, and nobody waits for it. Turns of number 1 are counted from 1970 on, and this one still lasts.
    for member in &mut scene.members {
        member.config.archive.as_mut().unwrap().times.takeover = Duration::from_secs(u32::MAX.into());
    }
    // The turn of number 1 is that of the second by name.
    let mut away = scene.members.remove(1);
    // One of three cannot write the state that it would sign.
    let blocked = scene.members[2].archive().state_path(1);
    fs::create_dir_all(&blocked).unwrap();
    for member in &mut scene.members {
        start(member).await;
    }
    let others = || scene.members[..2].iter();
    eventually_async("two have signed, and the third cannot", async || {
        others().all(|member| member.archive().vote_path(1).is_file())
            && metric(&scene.members[2], "fastpay_certified_checkpoint_failures_total").await >= 1.0
    })
    .await;
    // It has computed the checkpoint, and its vote would complete the quorum.
    assert!(!scene.members[2].archive().vote_path(1).exists());
    assert!(!scene.members.iter().any(|member| is_certified(member, 1)));
    let votes = others().map(|member| read(&member.archive().vote_path(1))["signature"].clone()).collect::<Vec<_>>();

    // Killed and started again, the others' votes count as they are on disk.
    for member in &mut scene.members {
        stop(member).await;
    }
    fs::remove_dir(&blocked).unwrap();
    for member in &mut scene.members {
        start(member).await;
    }
    certified(&scene.members, 1).await;
    let [one, two] = [&scene.members[0], &scene.members[1]];
    let certificate = read(&one.archive().certificate_path(1));
    let counted: Vec<_> =
        certificate["votes"].as_array().unwrap().iter().map(|vote| vote["signature"].clone()).collect();
    let is_same = read(&one.archive().vote_path(1))["checkpoint"] == read(&two.archive().vote_path(1))["checkpoint"];
    assert!(is_same && votes.iter().all(|vote| counted.contains(vote)), "{certificate}");

    // Its turn or not, the member that was away gets it from the others. A week is not over: no other one is made.
    start(&mut away).await;
    certified(std::slice::from_ref(&away), 1).await;
    scene.pay(&[0, 1, 2], 0, 1, 1).await;
    assert!(metric(&scene.members[0], "fastpay_certified_checkpoint_due_timestamp_seconds").await > 1e9);
    stop(&mut away).await;
    scene.stop().await;
    assert_eq!(away.verify().await.unwrap().number, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_whose_archive_is_wrong_is_left_and_another_one_is_asked() {
    let mut scene = Scene::certified(4).await;
    scene.pay(&[0, 1, 2], 0, 3, 4).await;
    scene.checkpoint().await;
    scene.stop().await;
    configure(&mut scene, A_WEEK);
    let whole = scene.path("whole");
    crate::scene::copy_folder(&scene.members[0].archive, &whole);
    let elsewhere = Domain::new(CHAIN_ID, PrimaryAddress::repeat_byte(3));
    let committee = scene.committee.clone();
    let stalled = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let stalled_at = format!("http://{}", stalled.local_addr().unwrap());

    // The first two serve, and look at others' archives only once; the third has lost its own, and asks the liar first.
    let mut late = scene.members.pop().unwrap();
    for member in &mut scene.members {
        member.config.archive.as_mut().unwrap().times.poll = Duration::from_secs(3_600);
        start(member).await;
    }
    let liar = scene.members[0].archive();
    let segment = scene.members[1].segment(1);
    let with = |change: &dyn Fn(&mut Segment)| {
        let mut segment = Segment { entries: segment.entries.clone() };
        change(&mut segment);
        let path = liar.segment_path(1);
        move || segment.write(&mut fs::File::create(&path).unwrap()).unwrap()
    };
    let owner = TestAccount::numbered(0);
    let forged = owner.sign(&elsewhere, payment(owner.id(), TestAccount::numbered(1).id(), 1, 0));
    let deposit = PrimaryEventKind::Deposit { recipient: owner.id(), asset: Asset::ETHER, amount: Amount(1) };
    let deposit = SegmentEntry::Event(PrimaryEvent { index: TransactionIndex(20), kind: deposit });
    let write_certificate = |number: u64, change: &dyn Fn(&mut serde_json::Value)| {
        let path = liar.certificate_path(number);
        let mut certificate = read(&whole.join(path.file_name().unwrap()));
        change(&mut certificate);
        move || fs::write(&path, certificate.to_string()).unwrap()
    };
    let foreign = |certificate: &mut serde_json::Value| {
        let checkpoint = checkpoint_of(certificate);
        for (vote, keys) in certificate["votes"].as_array_mut().unwrap().iter_mut().zip(&committee.keys) {
            vote["signature"] = json!(format!("0x{}", hex::encode(checkpoint.sign(keys, &elsewhere).signature.0)));
        }
    };
    let vote = read(&scene.members[1].archive().vote_path(2));
    let stranger = TestCommittee::with(4, committee.domain, Epoch(0)).rotated();
    let write_vote = |field: &str, value: serde_json::Value| {
        let (path, mut vote) = (liar.vote_path(3), vote.clone());
        vote["number"] = json!(3);
        vote[field] = value;
        move || fs::write(&path, vote.to_string()).unwrap()
    };
    let cases: Vec<Lie<'_>> = vec![
        (
            "an order that is not signed",
            Box::new(with(&|segment| {
                *segment.entries.iter_mut().find(|entry| matches!(entry, SegmentEntry::Executed(_))).unwrap() =
                    SegmentEntry::Executed(forged.clone());
            })),
        ),
        ("an entry less", Box::new(with(&|segment| drop(segment.entries.pop())))),
        ("another deposit", Box::new(with(&|segment| segment.entries[19] = deposit.clone()))),
        ("garbage", Box::new(|| fs::write(liar.segment_path(1), [7; 1_000]).unwrap())),
        ("no segment", Box::new(|| fs::remove_file(liar.segment_path(1)).unwrap())),
        ("too long", Box::new(|| fs::File::create(liar.segment_path(1)).unwrap().set_len(1 << 40).unwrap())),
        ("no certificate", Box::new(|| fs::write(liar.certificate_path(1), "{}").unwrap())),
        ("too long a certificate", Box::new(|| fs::write(liar.certificate_path(1), vec![b' '; 2 << 20]).unwrap())),
        ("another deployment's", Box::new(write_certificate(2, &foreign))),
        ("an inner certificate of another deployment", Box::new(write_certificate(1, &foreign))),
        (
            "another number's",
            Box::new(|| {
                fs::copy(liar.certificate_path(2), liar.certificate_path(1)).unwrap();
            }),
        ),
        ("no vote", Box::new(|| fs::write(liar.vote_path(3), "[]").unwrap())),
        ("a stranger's vote", Box::new(write_vote("authority", json!(stranger.keys[0].public().name)))),
        ("a vote that is not signed", Box::new(write_vote("checkpoint", json!(fastpay_core::Digest::ZERO)))),
        ("a vote for another number", Box::new(write_vote("number", json!(2)))),
    ];
    for (what, lie) in &cases {
        for member in [&late.archive, &scene.members[0].archive] {
            let _ = fs::remove_dir_all(member);
        }
        crate::scene::copy_folder(&whole, &scene.members[0].archive);
        lie();
        start(&mut late).await;
        eventually_async(what, async || {
            is_certified(&late, 2) && metric(&late, "fastpay_archive_peers_left_total").await >= 1.0
        })
        .await;
        stop(&mut late).await;
        assert_eq!(late.verify().await.unwrap().number, 2, "{what}");
    }

    // One that takes longer for its certificates than a round has for them.
    for member in [&late.archive, &scene.members[0].archive] {
        fs::remove_dir_all(member).unwrap();
    }
    // Nothing else is wrong with any archive.
    crate::scene::copy_folder(&whole, &scene.members[0].archive);
    late.config.archive.as_mut().unwrap().times = MemberTimes { certificates: Duration::ZERO, ..TIMES };
    start(&mut late).await;
    is_left(&late).await;
    stop(&mut late).await;
    late.config.archive.as_mut().unwrap().times = TIMES;

    // One that takes calls and answers none costs only time.
    let mut silent = endpoints_of(&scene.members[0]);
    silent.shards = vec![stalled_at];
    let path = scene.path("stalled.json");
    write_endpoints(&path, vec![silent, endpoints_of(&scene.members[1])]);
    late.config.endpoints = Some(path);
    let _ = fs::remove_dir_all(&late.archive);
    start(&mut late).await;
    certified(std::slice::from_ref(&late), 2).await;
    stop(&mut late).await;
    scene.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_epoch_certifies_a_checkpoint_and_one_of_an_ended_epoch_counts_only_with_those_that_follow_it() {
    let chain = Chain::new().await;
    let mut scene = Scene::of(Some(chain.config()), &[1, 2, 1, 1]);
    configure(&mut scene, A_WEEK);
    let committees = [scene.committee.clone(), scene.committee.rotated(), scene.committee.rotated().rotated()];
    let keys = |member: usize| committees.iter().map(|committee| committee.keys[member].clone()).collect::<Vec<_>>();
    for (index, member) in scene.members.iter_mut().enumerate() {
        member.running = Some(Running::ready_with(member.config.clone(), keys(index)).await);
    }
    stop(&mut scene.members[3]).await;
    chain.deposit(TestAccount::numbered(0).id(), 100).await;
    certified(&scene.members[..3], 1).await;
    for (number, pair) in (2..).zip(committees.windows(2)) {
        let deadline = chain.anvil.time_s().await + 86_400;
        let rotation = Rotation::new(chain.contract, signers(&pair[0]), signers(&pair[1]), deadline);
        chain.anvil.install(&rotation).await;
        chain.anvil.mine(2).await;
        certified(&scene.members[..3], number).await;
        let checkpoint = checkpoint_of(&read(&scene.members[0].archive().certificate_path(number)));
        assert_eq!(checkpoint.epoch, pair[1].committee.epoch());
    }
    assert!(!is_certified(&scene.members[3], 1));

    // A peer that has nothing but the first one, of an epoch that ended two rotations ago: keys of it may be out.
    let (aside, path) = (scene.path("aside"), scene.path("one.json"));
    write_endpoints(&path, vec![endpoints_of(&scene.members[0])]);
    for member in [1, 2] {
        stop(&mut scene.members[member]).await;
    }
    fs::create_dir(&aside).unwrap();
    let archive = scene.members[0].archive.clone();
    let later: Vec<_> = fs::read_dir(&archive).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    let later: Vec<_> = later.iter().filter(|name| !name.to_str().unwrap().starts_with("0000000001")).collect();
    later.iter().for_each(|name| fs::rename(archive.join(name), aside.join(name)).unwrap());
    scene.members[3].config.endpoints = Some(path);
    let config = scene.members[3].config.clone();
    scene.members[3].running = Some(Running::ready_with(config, keys(3)).await);
    let away = &scene.members[3];
    is_left(away).await;
    assert!(!is_certified(away, 1));
    later.iter().for_each(|name| fs::rename(aside.join(name), archive.join(name)).unwrap());
    certified(&scene.members[3..], 3).await;
    scene.stop().await;
    assert_eq!(scene.members[3].verify().await.unwrap().number, 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_leader_proposes_is_signed_only_if_each_member_computes_the_same() {
    let mut scene = Scene::certified(4).await;
    scene.pay(&[0, 1, 2], 0, 3, 4).await;
    scene.stop().await;
    configure(&mut scene, A_WEEK);
    // The turn of number 2 is that of the third by name. It looks once, and then does what this test does.
    scene.members[2].config.archive.as_mut().unwrap().times.poll = Duration::from_secs(3_600);
    // For the second the checkpoint is due, and for the first it is not.
    let due = scene.members[1].config.archive.as_mut().unwrap();
    (due.every_seconds, due.times.takeover) = (0, Duration::from_secs(3_600));
    for member in &mut scene.members {
        start(member).await;
    }
    let leader = &scene.members[2];
    let cut = leader.propose().await.unwrap().cut;
    let (honest, domain) = (read(&cut), scene.committee.domain);
    let mut forged = honest.clone();
    forged["checkpoint"]["state"] = json!(fastpay_core::Digest::repeat_byte(9));
    let checkpoint = checkpoint_of(&forged);
    let vote = checkpoint.sign(&leader.keys, &domain);
    let vote = CheckpointVoteFile {
        number: 2,
        checkpoint: domain.checkpoint_digest(&checkpoint),
        epoch: Epoch(0),
        authority: vote.authority,
        signature: Hex(vote.signature.0),
    };
    fs::write(&cut, forged.to_string()).unwrap();
    fs::write(leader.archive().vote_path(2), serde_json::to_vec(&vote).unwrap()).unwrap();
    let (early, other) = (&scene.members[0], &scene.members[1]);
    let failures = async |member| metric(member, "fastpay_certified_checkpoint_failures_total").await;
    eventually_async("another state is refused", async || failures(other).await >= 1.0).await;
    assert!(!other.archive().vote_path(2).exists(), "nothing was signed");
    // A cut that is not the one that it signed.
    fs::write(&cut, honest.to_string()).unwrap();
    is_left(other).await;
    assert!(!other.archive().vote_path(2).exists(), "nothing was signed");
    // What nobody but the leader signed before it is due is not even computed.
    assert_eq!((failures(early).await, metric(early, "fastpay_archive_peers_left_total").await), (0.0, 0.0));
    leader.sign(&cut).await.unwrap();
    certified(&scene.members[..2], 2).await;
    scene.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_are_served_and_read_part_by_part_and_nothing_is_without_an_archive() {
    let mut scene = Scene::at(authority::Scene::with_accounts(8_000), None, &[1, 2, 1, 1]);
    // Without archives until all have applied the whole genesis.
    for member in &mut scene.members {
        start(member).await;
        stop(member).await;
    }
    configure(&mut scene, A_WEEK);
    let mut without = scene.members.pop().unwrap();
    let settings = without.config.archive.take();
    for member in scene.members.iter_mut().chain([&mut without]) {
        start(member).await;
    }
    certified(&scene.members, 1).await;
    let segment = fs::read(scene.members[1].archive().segment_path(1)).unwrap();
    assert!(segment.len() > ARCHIVE_PART_BYTES, "{} bytes", segment.len());
    let client = |member: &Member, shard: usize| member.running.as_ref().unwrap().client.shards()[shard].clone();
    let shards = [client(&scene.members[1], 0), client(&scene.members[1], 1)];
    for (shard, offset) in shards.iter().zip([0, ARCHIVE_PART_BYTES]) {
        let part = shard.archive_part(1, ArchiveFile::Segment, offset as u64).await.unwrap().unwrap();
        let end = segment.len().min(offset + ARCHIVE_PART_BYTES);
        assert!(part.bytes == segment[offset..end] && part.length == segment.len() as u64);
    }
    let beyond = shards[0].archive_part(1, ArchiveFile::Segment, u64::MAX / 4).await.unwrap().unwrap();
    assert!(beyond.bytes.is_empty() && beyond.length == segment.len() as u64);
    for (number, file) in [(2, ArchiveFile::Certificate), (2, ArchiveFile::Segment), (u64::MAX, ArchiveFile::Vote)] {
        assert_eq!(shards[0].archive_part(number, file, 0).await, Ok(None));
    }
    assert_eq!(client(&without, 0).archive_part(1, ArchiveFile::Certificate, 0).await, Ok(None));
    let mut grpc = Grpc::connect(endpoints_of(&scene.members[0]).shards[0].clone()).await.unwrap();
    let unspecified = grpc.read_archive(proto::ArchiveRequest { number: 1, ..Default::default() }).await.unwrap_err();
    assert_eq!(unspecified.code(), Code::InvalidArgument);

    // With an archive it reads the same.
    stop(&mut without).await;
    without.config.archive = settings;
    start(&mut without).await;
    certified(std::slice::from_ref(&without), 1).await;
    assert_eq!(fs::read(without.archive().segment_path(1)).unwrap(), segment);
    stop(&mut without).await;
    scene.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_authority_restored_from_an_older_copy_signs_none_and_archives_those_of_others() {
    let mut scene = Scene::of(None, &[1, 1, 1, 1]);
    configure(&mut scene, A_WEEK);
    for member in &mut scene.members {
        start(member).await;
        stop(member).await;
        let _ = fs::remove_dir_all(&member.archive);
    }
    mark_stale(&scene.members[2].config.data).unwrap();
    let mut last = scene.members.pop().unwrap();
    for member in &mut scene.members {
        start(member).await;
    }
    eventually_async("two have signed", async || {
        scene.members[..2].iter().all(|member| member.archive().vote_path(1).exists())
    })
    .await;
    assert!(!scene.members.iter().any(|member| is_certified(member, 1)), "the third would complete the quorum");
    start(&mut last).await;
    certified(&scene.members, 1).await;
    assert!(!scene.members[2].archive().vote_path(1).exists());
    assert_eq!(metric(&scene.members[2], "fastpay_restored").await, 1.0);
    stop(&mut last).await;
    scene.stop().await;
    assert_eq!(scene.members[2].verify().await.unwrap().number, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_quorum_certifies_against_the_own_chain_is_not_archived() {
    let mut scene = Scene::certified(1).await;
    scene.stop().await;
    configure(&mut scene, A_WEEK);
    let (committee, domain) = (&scene.committee, &scene.committee.domain);
    // A deposit that nobody made, certified by all keys.
    let mut segment = scene.members[0].segment(1);
    let SegmentEntry::Event(event) = &mut segment.entries[19] else { panic!("the genesis has 20 deposits") };
    let PrimaryEventKind::Deposit { amount, .. } = &mut event.kind else { panic!("it is a deposit") };
    amount.0 += 1_000_000;
    let first = CheckpointState::new(committee.committee.clone()).unwrap();
    let (state, root) = first.clone().apply(segment.clone(), domain, &mut rand::rng()).unwrap();
    let checkpoint = Checkpoint::first(&first.summary()).next(domain, Epoch(0), &state.summary(), root).unwrap();
    let vote = |keys| {
        let vote = checkpoint.sign(keys, domain);
        json!({ "authority": vote.authority, "signature": Hex(vote.signature.0) })
    };
    let archive = scene.members[0].archive();
    let mut certificate = read(&archive.certificate_path(1));
    for (field, digest) in [("cut", checkpoint.cut), ("state", checkpoint.state), ("segment", checkpoint.segment)] {
        certificate["checkpoint"][field] = json!(digest);
    }
    certificate["votes"] = json!(committee.keys[..3].iter().map(vote).collect::<Vec<_>>());
    fs::write(archive.certificate_path(1), certificate.to_string()).unwrap();
    segment.write(&mut fs::File::create(archive.segment_path(1)).unwrap()).unwrap();

    let path = scene.path("one.json");
    write_endpoints(&path, vec![endpoints_of(&scene.members[0])]);
    let mut late = scene.members.pop().unwrap();
    late.config.endpoints = Some(path);
    // The second by name leads for ever, and is away: the late one would archive a proposal of its own.
    late.config.archive.as_mut().unwrap().times.takeover = Duration::MAX;
    fs::remove_dir_all(&late.archive).unwrap();
    start(&mut scene.members[0]).await;
    start(&mut late).await;
    is_left(&late).await;
    assert!(!is_certified(&late, 1) && !late.archive().segment_path(1).exists());
    // The files are sound but for that: without the chain they verify.
    let mut cut = read(&archive.cut_path(1));
    cut["checkpoint"] = certificate["checkpoint"].clone();
    fs::write(archive.cut_path(1), cut.to_string()).unwrap();
    state.write(&mut fs::File::create(archive.state_path(1)).unwrap()).unwrap();
    assert_eq!(scene.members[0].verify().await.unwrap().number, 1);
    stop(&mut late).await;
    scene.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_checkpoints_that_a_quorum_certified_under_one_number_all_keep_the_same() {
    let mut scene = Scene::certified(1).await;
    let first = scene.members[0].verify().await.unwrap().checkpoint;
    let archives: Vec<_> = scene.members.iter().map(|member| member.archive.clone()).collect();
    for (index, member) in scene.members.iter_mut().enumerate() {
        member.archive = member.archive.with_file_name(format!("other-{index}"));
    }
    scene.pay(&[0, 1, 2], 0, 1, 1).await;
    let second = scene.checkpoint().await.checkpoint;
    // The one with the higher digest gets a successor.
    let (low, high) = (scene.path("low"), scene.path("high"));
    let others = scene.path("other-0");
    let (with_low, low_digest) = if first < second { (&archives[0], first) } else { (&others, second) };
    crate::scene::copy_folder(with_low, &low);
    if first > second {
        scene.members.iter_mut().zip(&archives).for_each(|(member, archive)| member.archive = archive.clone());
    }
    crate::scene::copy_folder(&scene.members[0].archive, &high);
    scene.pay(&[0, 1, 2], 0, 1, 2).await;
    let longer = scene.checkpoint().await.checkpoint;
    let long = scene.members[0].archive.clone();
    scene.stop().await;

    for (index, member) in scene.members.iter_mut().enumerate() {
        member.archive = member.archive.with_file_name(format!("at-work-{index}"));
    }
    configure(&mut scene, A_WEEK);
    for (held, number, kept) in [([&low, &high, &high], 1, low_digest), ([&low, &low, &long], 2, longer)] {
        for (member, held) in scene.members.iter_mut().zip(held) {
            let _ = fs::remove_dir_all(&member.archive);
            crate::scene::copy_folder(held, &member.archive);
            start(member).await;
        }
        let keeps = |member: &Member| {
            let path = member.archive().certificate_path(number);
            path.exists() && scene.committee.domain.checkpoint_digest(&checkpoint_of(&read(&path))) == kept
        };
        eventually_async("all keep one", async || scene.members.iter().all(keeps)).await;
        scene.stop().await;
        for member in &scene.members {
            let report = member.verify().await.unwrap();
            assert_eq!((report.number, report.checkpoint), (number, kept));
        }
    }
    // Nobody takes the other one for what one peer claims to have been built on it.
    let (alone, one) = (scene.path("alone.json"), scene.path("one.json"));
    let [liar, honest, ..] = &mut scene.members[..] else { panic!("there are three") };
    for (member, held) in [(&*liar, &high), (&*honest, &low)] {
        let _ = fs::remove_dir_all(&member.archive);
        crate::scene::copy_folder(held, &member.archive);
    }
    let rival = read(&liar.archive().certificate_path(1));
    let mut fake = rival.clone();
    fake["checkpoint"]["number"] = json!(2);
    fake["checkpoint"]["previous"] = json!(scene.committee.domain.checkpoint_digest(&checkpoint_of(&rival)));
    fake["checkpoint"]["epoch"] = json!(9_999);
    fs::write(liar.archive().certificate_path(2), fake.to_string()).unwrap();
    // It serves, and looks at no archive.
    write_endpoints(&alone, vec![endpoints_of(liar)]);
    write_endpoints(&one, vec![endpoints_of(liar), endpoints_of(honest)]);
    (liar.config.endpoints, honest.config.endpoints) = (Some(alone), Some(one));
    start(liar).await;
    start(honest).await;
    is_left(honest).await;
    let kept = checkpoint_of(&read(&honest.archive().certificate_path(1)));
    assert_eq!(scene.committee.domain.checkpoint_digest(&kept), low_digest);
    scene.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_vote_whose_proposal_is_not_there_any_more_is_given_anew() {
    let mut scene = Scene::new(None);
    scene.start().await;
    scene.pay(&[0, 1, 2], 0, 1, 0).await;
    let cut = scene.members[0].propose().await.unwrap().cut;
    let first = scene.path("first.json");
    fs::copy(&cut, &first).unwrap();
    for member in &scene.members {
        member.sign(&first).await.unwrap();
    }
    scene.pay(&[0, 1, 2], 0, 1, 1).await;
    // A vote goes before its proposal is replaced, also if the next one cannot be written.
    scene.members[0].propose().await.unwrap();
    let member = &scene.members[1];
    let state = member.archive().state_path(1);
    fs::remove_file(&state).unwrap();
    fs::create_dir(&state).unwrap();
    member.sign(&cut).await.unwrap_err();
    assert!(!member.archive().vote_path(1).exists());
    fs::remove_dir(&state).unwrap();
    member.sign(&first).await.unwrap();
    // All have a vote for the first one beside the second.
    let mut replaced = Vec::new();
    for member in &scene.members {
        replaced.push(member.propose().await.unwrap().checkpoint);
        assert!(member.archive().vote_path(1).exists());
    }
    scene.stop().await;
    configure(&mut scene, A_WEEK);
    for member in &mut scene.members {
        start(member).await;
    }
    certified(&scene.members, 1).await;
    scene.stop().await;
    assert_eq!(scene.members[0].verify().await.unwrap().checkpoint, replaced[0]);
}
