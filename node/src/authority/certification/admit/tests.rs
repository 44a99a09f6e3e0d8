//! Admission without peers: rivals, bounds, and archives that skip numbers and complete them afterwards.

use std::collections::BTreeSet;
use std::fs;
use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;

use fastpay_core::checkpoint::{
    ArchivedList, CheckpointMismatch, CheckpointState, InstalledCommittee, PrimaryEventKind,
};
use fastpay_core::{AccountId, Amount, Asset, Digest, Epoch, SequenceNumber};
use fastpay_rpc::{ArchiveFile, ArchivedRequest};
use fastpay_testkit::{TestAccount, TestCommittee, payment, richer_state};
use tempfile::TempDir;
use tokio::sync::watch;
use url::Url;

use super::super::archive::{ArchiveError, CERTIFICATE, FILES};
use super::super::archived::{ArchivedReads, NotArchived};
use super::super::lag::Lag;
use super::super::member::MemberTimes;
use super::super::store::Store;
use super::super::uploads::Uploads;
use super::*;

const ORDERS_MAX: usize = 10_000;
/// The numbers of the whole archive. The third installs a committee.
const NUMBERS: u64 = 6;

/// A whole archive, and what the chain shows.
struct Whole {
    folder: TempDir,
    domain: Domain,
    committees: Committees,
    events: Vec<PrimaryEvent>,
    certificates: Vec<CheckpointCertificate>,
}

fn event(index: u64, kind: PrimaryEventKind) -> PrimaryEvent {
    PrimaryEvent { index: TransactionIndex(index), kind }
}

fn installed(committee: &TestCommittee, checkpoint: Digest) -> PrimaryEventKind {
    let (committee, compromised_since) = (committee.committee.clone(), committee.committee.epoch());
    PrimaryEventKind::Installed(InstalledCommittee { committee, compromised_since, checkpoint })
}

impl Whole {
    fn new() -> Self {
        let first = TestCommittee::new(4);
        let (next, domain, folder) = (first.rotated(), first.domain, tempfile::tempdir().unwrap());
        let mut committees = Committees::new(first.committee.clone()).unwrap();
        committees.install(next.committee.clone()).unwrap();
        let (payer, payee) = (TestAccount::numbered(0), TestAccount::numbered(1));
        let deposit = PrimaryEventKind::Deposit { recipient: payer.id(), asset: Asset::ETHER, amount: Amount(100) };
        let (mut events, mut certificates, archive) = (Vec::new(), Vec::new(), Archive::new(folder.path()));
        for number in 1..=NUMBERS {
            let kind = if number == 3 { installed(&next, Digest::ZERO) } else { deposit.clone() };
            events.push(event(number, kind));
            let order = payer.sign(&domain, payment(payer.id(), payee.id(), 1, number - 1));
            let entries = vec![SegmentEntry::Event(events.last().unwrap().clone()), SegmentEntry::Executed(order)];
            let base = archive.base(number - 1, &domain, &committees).unwrap();
            let computed = follow_segment(&base, Segment { entries }, &domain, &mut |_| ()).unwrap().unwrap();
            archive.write(&base, &computed).unwrap();
            let committee = if number < 3 { &first } else { &next };
            let votes = committee.keys.iter().map(|keys| computed.checkpoint.sign(keys, &domain)).collect();
            let certificate =
                CheckpointCertificate::from_votes(computed.checkpoint, &domain, &committee.committee, votes).unwrap();
            archive.complete(&certificate).unwrap();
            certificates.push(certificate);
        }
        Self { folder, domain, committees, events, certificates }
    }

    fn known(&self) -> (&Domain, &Committees) {
        (&self.domain, &self.committees)
    }

    fn archive(&self) -> Archive {
        Archive::new(self.folder.path())
    }

    fn state(&self, number: u64) -> Vec<u8> {
        fs::read(self.archive().state_path(number)).unwrap()
    }

    fn segment(&self, number: u64) -> Vec<u8> {
        fs::read(self.archive().segment_path(number)).unwrap()
    }

    /// An admission of all numbers into an empty archive, by an authority that sees these events.
    fn admission(&self, folder: &Path, events: &[PrimaryEvent]) -> Admission {
        let (archive, certificates) = (Archive::new(folder), self.certificates.clone());
        let tip = archive.tip(&self.committees).unwrap();
        let rest = certificates.into_iter().filter(|next| next.checkpoint.number > tip.number).collect::<Vec<_>>();
        let base = Admission::base(&archive, &tip, &rest, &Memory::default(), self.known()).unwrap();
        let events = events.iter().filter(|event| event.index > base.state.up_to).cloned().collect();
        Admission::over(archive, (self.domain, ORDERS_MAX), base, (&tip, rest), events).unwrap()
    }

    /// Skips to the last but one.
    fn skip(&self, folder: &Path) -> Admission {
        let mut admission = self.admission(folder, &self.events);
        admission.skip(&mut Cursor::new(self.state(NUMBERS - 1))).unwrap();
        admission
    }

    fn refill(&self, folder: &Path) -> Option<Admission> {
        Admission::refill(&Archive::new(folder), ORDERS_MAX, self.known()).unwrap()
    }

    fn is_whole(&self, folder: &Path) {
        for number in 1..=NUMBERS {
            for kind in FILES {
                let [own, theirs] = [folder, self.folder.path()].map(|folder| Archive::new(folder).path(number, kind));
                assert_eq!(fs::read(own).unwrap(), fs::read(theirs).unwrap(), "{kind} of {number}");
            }
        }
        assert_eq!(Archive::new(folder).skipped().unwrap(), BTreeSet::new());
    }

    /// Verifies an archive up to its newest number.
    async fn verify(&self, folder: &Path) -> Result<u64, CheckpointError> {
        let archive = Archive::new(folder);
        let (first, last) = (archive.base(0, &self.domain, &self.committees)?, archive.newest_number()?);
        let verified = archive.verify_after(first, last, self.known(), &mut |_| (), |_| ()).await?;
        Ok(verified.checkpoint.number)
    }
}

fn refused(result: Result<(), CheckpointError>) -> NotAdmitted {
    match result.unwrap_err() {
        CheckpointError::NotAdmitted { reason, .. } => reason,
        other => panic!("{other}"),
    }
}

#[test]
fn a_rival_replaces_the_newest_checkpoint_by_its_digest_or_with_a_successor() {
    let committee = TestCommittee::new(4);
    let (domain, state) = (committee.domain, CheckpointState::new(committee.committee).unwrap().summary());
    let first = Checkpoint::first(&state);
    let next = |of: &Checkpoint, segment| {
        let checkpoint = of.next(&domain, Epoch(0), &state, Digest::repeat_byte(segment)).unwrap();
        CheckpointCertificate { checkpoint, votes: Vec::new() }
    };
    let mut two = [next(&first, 1), next(&first, 2)];
    two.sort_by_key(|certificate| domain.checkpoint_digest(&certificate.checkpoint));
    let [low, high] = two;
    let is_ahead = |certificates: &[_], tip: &CheckpointCertificate| is_ahead(certificates, &tip.checkpoint, &domain);
    assert!(!is_ahead(&[], &low));
    let with_successor = [high.clone(), next(&high.checkpoint, 3)];
    assert!(is_ahead(std::slice::from_ref(&low), &high) && !is_ahead(&with_successor[..1], &low));
    assert!(is_ahead(&with_successor, &low));
    assert!(is_ahead(&[next(&low.checkpoint, 3)], &low));
}

#[test]
fn a_segment_of_more_entries_than_a_checkpoint_may_have_is_not_read() {
    let committee = TestCommittee::new(4);
    let (domain, committees) = (committee.domain, Committees::new(committee.committee).unwrap());
    let archive = Archive::new(std::path::Path::new("none"));
    let base = archive.base(0, &domain, &committees).unwrap();
    let checkpoint = base.checkpoint.next(&domain, Epoch(0), &base.state, Digest::ZERO).unwrap();
    let rest = VecDeque::from([CheckpointCertificate { checkpoint, votes: Vec::new() }]);
    let mut admission = Admission { archive, domain, orders_max: 2, events: Some(Vec::new()), base, rest };
    let mut refusal = |count| {
        let entry = SegmentEntry::Void { account: AccountId([1; 32]), sequence: SequenceNumber(2) };
        let mut bytes = Vec::new();
        Segment { entries: vec![entry; count] }.write(&mut bytes).unwrap();
        match admission.admit(&mut bytes.as_slice(), &mut |_| ()).unwrap_err() {
            CheckpointError::NotAdmitted { number: 1, reason } => reason,
            other => panic!("{other}"),
        }
    };
    assert!(matches!(refusal(2), NotAdmitted::Segment(_)));
    assert!(matches!(refusal(3), NotAdmitted::Damaged(_)));
}

#[test]
fn what_is_no_certified_state_or_shows_other_committees_than_the_chain_is_not_skipped_to() {
    let whole = Whole::new();
    let (landing, good) = (NUMBERS - 1, whole.state(NUMBERS - 1));
    let attempt = |bytes: &[u8], events: &[PrimaryEvent]| {
        let folder = tempfile::tempdir().unwrap();
        let mut admission = whole.admission(folder.path(), events);
        assert_eq!(admission.landing(STEPS_MAX).unwrap().unwrap().0, landing);
        let skipped = admission.skip(&mut Cursor::new(bytes));
        let files = fs::read_dir(folder.path()).unwrap().count();
        assert!(skipped.is_ok() || (files == 0 && admission.next().unwrap().0 == 1), "nothing was taken");
        skipped
    };
    attempt(&good, &whole.events).unwrap();
    let lie = |bytes: &[u8]| refused(attempt(bytes, &whole.events));
    for bytes in [&[][..], &[7; 1_000], &good[..good.len() - 1], &[&good[..], &[0]].concat(), &whole.segment(landing)] {
        let reason = lie(bytes);
        assert!(matches!(reason, NotAdmitted::Damaged(_)), "{reason}");
    }
    let reason = lie(&whole.state(landing - 1));
    assert!(matches!(reason, NotAdmitted::Other(CheckpointMismatch::UpTo)), "{reason}");
    let reason = lie(&whole.state(1));
    assert!(matches!(reason, NotAdmitted::Other(CheckpointMismatch::Epoch)), "{reason}");
    let reason = lie(&richer_state(&good));
    assert!(matches!(reason, NotAdmitted::Other(CheckpointMismatch::State)), "{reason}");

    // What a quorum certifies against the own chain: another installation, or one that the chain does not show yet.
    let mut others = whole.events.clone();
    let PrimaryEventKind::Installed(installation) = &mut others[2].kind else { panic!("it installs a committee") };
    installation.checkpoint = Digest::repeat_byte(7);
    let reason = refused(attempt(&good, &others));
    assert!(matches!(reason, NotAdmitted::Events), "{reason}");
    let behind = attempt(&good, &whole.events[..4]).unwrap_err();
    assert!(matches!(behind, CheckpointError::ChainBehind { .. }), "{behind}");
}

#[test]
fn only_what_counts_is_skipped_to_and_only_where_much_is_lacking() {
    let (whole, folder) = (Whole::new(), tempfile::tempdir().unwrap());
    let admission = whole.admission(folder.path(), &whole.events);
    let (number, bytes_max) = admission.landing(STEPS_MAX).unwrap().unwrap();
    assert!(number == NUMBERS - 1 && bytes_max > whole.state(number).len() as u64);
    assert!(admission.landing(NUMBERS as usize).unwrap().is_none());
    // A newest certificate by the votes of an epoch that the chain has ended, or by none.
    let base = || whole.archive().base(0, &whole.domain, &whole.committees).unwrap();
    let over = |certificates: Vec<CheckpointCertificate>, events: Vec<PrimaryEvent>| {
        let base = base();
        let tip = base.checkpoint;
        let archive = Archive::new(folder.path());
        Admission::over(archive, (whole.domain, ORDERS_MAX), base, (&tip, certificates), events).map(drop)
    };
    let mut later = whole.events.clone();
    let third = TestCommittee::new(4).rotated().rotated();
    later.push(event(7, installed(&third, Digest::ZERO)));
    over(whole.certificates.clone(), later.clone()).unwrap();
    later.push(event(8, installed(&third.rotated(), Digest::ZERO)));
    let reason = refused(over(whole.certificates.clone(), later));
    assert!(matches!(reason, NotAdmitted::Certificate(NotCertified::EpochEnded(_))), "{reason}");
    let mut unsigned = whole.certificates.clone();
    unsigned.last_mut().unwrap().votes.pop();
    let reason = refused(over(unsigned, whole.events.clone()));
    assert!(matches!(reason, NotAdmitted::Certificate(NotCertified::VoteCount { .. })), "{reason}");
}

#[tokio::test]
async fn skipped_numbers_are_named_and_hidden_until_they_are_complete() {
    let (whole, folder, store) = (Whole::new(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let archive = Archive::new(folder.path());
    let mut admission = whole.skip(folder.path());
    assert_eq!(archive.skipped().unwrap(), (1..NUMBERS).collect());
    assert_eq!(admission.next().unwrap().0, NUMBERS);
    admission.admit(&mut whole.segment(NUMBERS).as_slice(), &mut |_| ()).unwrap();
    assert_eq!(archive.newest_number().unwrap(), NUMBERS);

    let error = whole.verify(folder.path()).await.unwrap_err();
    let is_named = matches!(error, CheckpointError::Archive(ArchiveError::Skipped { first: 1, last: 5, count: 5 }));
    assert!(is_named, "{error}");
    assert_eq!(archive.linked((0, 5), &whole.domain, &whole.committees).unwrap().len(), 6);
    // Peers see the state, which they may skip to, and of the others nothing.
    for (number, file, is_shown) in [
        (1, ArchiveFile::Certificate, false),
        (5, ArchiveFile::Certificate, false),
        (5, ArchiveFile::State, true),
        (6, ArchiveFile::Certificate, true),
        (6, ArchiveFile::Segment, true),
    ] {
        assert_eq!(archive.read_part(number, file, 0).unwrap().is_some(), is_shown, "{file:?} of {number}");
    }
    // Nothing is uploaded before them, and clients come again.
    let objects = Store::open(&Url::from_directory_path(store.path()).unwrap()).unwrap();
    let times = MemberTimes::default();
    let mut uploads = Uploads::new(archive.clone(), objects.clone(), whole.domain, &times, Arc::default());
    uploads.pass().await.unwrap();
    assert_eq!(objects.numbers().await.unwrap(), BTreeSet::new());
    let reads = ArchivedReads::new(Some(archive.clone()), whole.domain);
    let list = ArchivedList::Sent(SequenceNumber(0));
    let request = ArchivedRequest { account: TestAccount::numbered(0).id(), list, limit: 0, with_paid: false };
    assert_eq!(reads.read(request).await, Err(NotArchived::Busy));
    // What this authority lacks of them, its journals say.
    let (place, times) = ((&archive, Path::new("no journals")), (Default::default(), Default::default()));
    for begins_at in [0, NUMBERS - 1] {
        let mut lag = Lag::new(begins_at, watch::channel(false).0);
        let looked = lag.look(place, &whole.domain, times, &mut |_| ());
        assert!(matches!(looked, Err(CheckpointError::Storage(_))), "{looked:?}");
    }

    // Oldest first, each as any other.
    let mut admission = whole.refill(folder.path()).unwrap();
    let reason = refused(admission.admit(&mut whole.segment(2).as_slice(), &mut |_| ()));
    assert!(matches!(reason, NotAdmitted::Segment(_)), "{reason}");
    for number in 1..NUMBERS {
        assert_eq!(admission.next().unwrap().0, number);
        assert!(!admission.admit_own(&Memory::default(), &mut |_| ()).unwrap());
        admission.admit(&mut whole.segment(number).as_slice(), &mut |_| ()).unwrap();
        assert_eq!(archive.skipped().unwrap(), (number + 1..NUMBERS).collect());
        // Killed here, it goes on.
        admission = match whole.refill(folder.path()) {
            Some(next) => next,
            None => break,
        };
    }
    whole.is_whole(folder.path());
    assert_eq!(whole.verify(folder.path()).await.unwrap(), NUMBERS);
    assert_eq!(reads.read(request).await.unwrap().entries.len(), NUMBERS as usize);
    uploads.pass().await.unwrap();
    assert_eq!(objects.numbers().await.unwrap(), (1..=NUMBERS).collect());
}

#[tokio::test]
async fn a_kill_during_a_skip_leaves_an_archive_that_goes_on() {
    let (whole, folder) = (Whole::new(), tempfile::tempdir().unwrap());
    let archive = Archive::new(folder.path());
    drop(whole.skip(folder.path()));
    // Killed before the last certificate: what was written means nothing.
    fs::remove_file(archive.certificate_path(NUMBERS - 1)).unwrap();
    assert_eq!((archive.newest_number().unwrap(), archive.skipped().unwrap()), (0, BTreeSet::new()));
    assert_eq!(whole.verify(folder.path()).await.unwrap(), 0);
    assert!(whole.refill(folder.path()).is_none());
    // It may go on step by step, and skip later: to this number, or to an earlier one.
    let mut admission = whole.admission(folder.path(), &whole.events);
    admission.admit(&mut whole.segment(1).as_slice(), &mut |_| ()).unwrap();
    assert_eq!((archive.newest_number().unwrap(), archive.skipped().unwrap()), (1, BTreeSet::new()));
    let state = whole.state(3);
    let mut shorter = whole.admission(folder.path(), &whole.events);
    shorter.rest.truncate(3);
    shorter.skip(&mut Cursor::new(state)).unwrap();
    assert_eq!((archive.newest_number().unwrap(), archive.skipped().unwrap()), (3, [2, 3].into()));

    // Killed once the state counts, with nothing after it: the next skip leaves two gaps in one.
    drop(whole.skip(folder.path()));
    assert_eq!((archive.newest_number().unwrap(), archive.skipped().unwrap()), (5, (2..NUMBERS).collect()));
    let mut admission = whole.admission(folder.path(), &whole.events);
    admission.admit(&mut whole.segment(NUMBERS).as_slice(), &mut |_| ()).unwrap();

    // Killed between the certificate and the mark: its files are checked, and the mark goes.
    let mut admission = whole.refill(folder.path()).unwrap();
    let mark = archive.path(2, "skipped.json");
    let held = fs::read(&mark).unwrap();
    admission.admit(&mut whole.segment(2).as_slice(), &mut |_| ()).unwrap();
    assert!(archive.path(2, CERTIFICATE).exists() && !mark.exists());
    fs::write(&mark, held).unwrap();
    let mut admission = whole.refill(folder.path()).unwrap();
    assert_eq!(admission.next().unwrap().0, 2);
    assert!(admission.admit_own(&Memory::default(), &mut |_| ()).unwrap() && !mark.exists());
    for number in 3..NUMBERS {
        admission.admit(&mut whole.segment(number).as_slice(), &mut |_| ()).unwrap();
    }
    assert!(admission.next().is_none());
    whole.is_whole(folder.path());
    assert_eq!(whole.verify(folder.path()).await.unwrap(), NUMBERS);
}

#[test]
fn a_rival_of_the_newest_number_is_replaced_by_a_skip() {
    let (whole, folder) = (Whole::new(), tempfile::tempdir().unwrap());
    let archive = Archive::new(folder.path());
    // The first number, with another cut.
    let first = TestCommittee::new(4);
    let base = archive.base(0, &whole.domain, &whole.committees).unwrap();
    let segment = Segment { entries: vec![SegmentEntry::Event(whole.events[0].clone())] };
    let rival = follow_segment(&base, segment, &whole.domain, &mut |_| ()).unwrap().unwrap();
    archive.write(&base, &rival).unwrap();
    let votes = first.keys.iter().map(|keys| rival.checkpoint.sign(keys, &whole.domain)).collect();
    let certificate = CheckpointCertificate::from_votes(rival.checkpoint, &whole.domain, &first.committee, votes);
    archive.complete(&certificate.unwrap()).unwrap();

    let (tip, certificates) = (rival.checkpoint, whole.certificates.clone());
    let base = Admission::base(&archive, &tip, &certificates, &Memory::default(), whole.known()).unwrap();
    let over = (whole.domain, ORDERS_MAX);
    let admission = Admission::over(archive.clone(), over, base, (&tip, certificates), whole.events.clone());
    let mut admission = admission.unwrap();
    admission.skip(&mut Cursor::new(whole.state(NUMBERS - 1))).unwrap();
    admission.admit(&mut whole.segment(NUMBERS).as_slice(), &mut |_| ()).unwrap();
    assert_eq!(archive.skipped().unwrap(), (1..NUMBERS).collect());
    let mut admission = whole.refill(folder.path()).unwrap();
    for number in 1..NUMBERS {
        assert!(
            !admission.admit_own(&Memory::default(), &mut |_| ()).unwrap(),
            "the rival's files are not those of the number"
        );
        admission.admit(&mut whole.segment(number).as_slice(), &mut |_| ()).unwrap();
    }
    whole.is_whole(folder.path());
}
