//! Copies the journals of all shards as of one moment, even while the node writes to them.
//!
//! The journals must fit each other: if one contains a credit from another shard, the other must contain the payment
//! that issued it ([`crate::authority::check_credits`]). Two journals that are read one after the other may not fit.
//!
//! ```text
//!  lengths of all ─► lengths of all again ─► copy up to the second ─► read the copies ─► cut what does not fit
//! ```
//! The frames that were on disk at a moment between the two measurements fit, because a shard writes a payment before
//! it sends its credit. These are at least the frames before the first measurement, and at most those before the
//! second. So some choice among the frames between the two fits, and [`ends`] finds the longest one.

use std::collections::BTreeMap;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use fastpay_core::{JournalPosition, Record, ShardId};
use fastpay_program::files;

use super::{BackupError, Copied, OWNER_ONLY, failed};
use crate::authority::storage::{Journal, JournalExtent, JournalOptions, JournalRead, ShardFolders, shard_folders};
use crate::authority::stored_record::decode;

/// Copies the journals of the data folder `from` to `to`, up to ends at which they fit each other. Returns their
/// generation.
pub(super) fn copy(from: &Path, to: &Path, copied: &mut Copied) -> Result<u64, BackupError> {
    let (journals, generation) = shard_folders(from)?;
    let measure = || journals.iter().map(|shard| JournalExtent::measure(&shard.journal)).collect::<Result<Vec<_>, _>>();
    let (first, second) = (measure()?, measure()?);
    copy_measured(&first, &second, (to, generation), copied)?;
    Ok(generation)
}

/// Copies the journals. All of `first` was measured before any of `second`.
fn copy_measured(
    first: &[JournalExtent],
    second: &[JournalExtent],
    (to, generation): (&Path, u64),
    copied: &mut Copied,
) -> Result<(), BackupError> {
    let to: Vec<_> = (0..).zip(second).map(|(shard, _)| ShardFolders::of(to, generation, shard).journal).collect();
    let mut scans = Vec::new();
    for (((shard, first), second), to) in (0..).map(ShardId).zip(first).zip(second).zip(&to) {
        DirBuilder::new().recursive(true).mode(OWNER_ONLY).create(to).map_err(failed(to))?;
        second.copy(to)?;
        scans.push(Scan::read(shard, to, first.end())?);
    }
    for (to, end) in to.iter().zip(ends(&scans)?) {
        JournalExtent::measure(to)?.cut(end)?;
        let kept = JournalExtent::measure(to)?;
        copied.files = copied.files.saturating_add(kept.segments() as u64);
        copied.bytes = copied.bytes.saturating_add(kept.bytes());
        to.parent().map_or(Ok(()), files::sync_folder).map_err(failed(to))?;
    }
    Ok(())
}

/// The newest credit of each pair of shards in a part of a journal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Credits {
    /// The newest credit issued by this shard, for each other shard.
    issued: BTreeMap<ShardId, u64>,
    /// The newest credit applied by this shard, from each other shard.
    applied: BTreeMap<ShardId, u64>,
}

impl Credits {
    /// Adds later credits, which replace earlier ones, because numbers only grow in a journal.
    fn add(&mut self, later: Self) {
        self.issued.extend(later.issued);
        self.applied.extend(later.applied);
    }

    fn of(record: &Record) -> Self {
        let issued = record.forwarded().into_iter().collect();
        let applied = match record {
            Record::Credit(applied) => [(applied.credit.from, applied.credit.number)].into(),
            _ => BTreeMap::new(),
        };
        Self { issued, applied }
    }
}

/// The credits in one shard's journal.
#[derive(Debug, Default)]
struct Scan {
    /// The credits in all frames before the tail.
    before: Credits,
    /// The frames that may be left out, each with its start and its credits.
    tail: Vec<(JournalPosition, Credits)>,
    end: JournalPosition,
}

impl Scan {
    /// Reads a copy. Frames that end after `tail_from` may be left out. An incomplete frame at the end is cut off.
    fn read(shard: ShardId, journal: &Path, tail_from: JournalPosition) -> Result<Self, BackupError> {
        let last_segment = JournalExtent::measure(journal)?.last_segment();
        let reader = Journal::open(journal, JournalOptions::default(), last_segment)?.reader();
        let mut scan = Self { end: reader.end(), ..Self::default() };
        let (mut frame, mut credits) = (JournalPosition::default(), Credits::default());
        let mut records = reader.read_from(frame);
        let mut at = records.position();
        while let Some(entry) = records.next() {
            let (position, bytes) = entry?;
            // A frame's header lies between this record and the one before.
            if position != at {
                scan.add(frame, std::mem::take(&mut credits), at, tail_from);
                frame = at;
            }
            let record = decode(shard, position, &bytes)?;
            credits.add(Credits::of(&record));
            at = records.position();
        }
        scan.add(frame, credits, at, tail_from);
        Ok(scan)
    }

    fn add(&mut self, start: JournalPosition, credits: Credits, end: JournalPosition, tail_from: JournalPosition) {
        if end <= tail_from {
            self.before.add(credits);
        } else {
            self.tail.push((start, credits));
        }
    }

    /// The newest credit that this shard issued for `to` in the first `kept` frames of the tail and before.
    fn issued(&self, to: ShardId, kept: usize) -> u64 {
        let tail = self.tail.iter().take(kept).rev().find_map(|(_, credits)| credits.issued.get(&to));
        tail.or_else(|| self.before.issued.get(&to)).copied().unwrap_or_default()
    }
}

/// The ends at which all journals are consistent with each other: the longest such choice among the tails.
fn ends(scans: &[Scan]) -> Result<Vec<JournalPosition>, BackupError> {
    let mut kept: Vec<usize> = scans.iter().map(|scan| scan.tail.len()).collect();
    let shards = || (0..).map(ShardId).zip(scans).enumerate();
    loop {
        let mut shorter = kept.clone();
        for (at, (to, scan)) in shards() {
            for (other, (from, sender)) in shards() {
                let issued = sender.issued(to, kept.get(other).copied().unwrap_or_default());
                let applied = scan.before.applied.get(&from).copied().unwrap_or_default();
                if applied > issued {
                    return Err(BackupError::Torn { from, to, issued, applied });
                }
                let early = |(_, credits): &(_, Credits)| credits.applied.get(&from).is_some_and(|n| *n > issued);
                if let (Some(first), Some(kept)) = (scan.tail.iter().position(early), shorter.get_mut(at)) {
                    *kept = first.min(*kept);
                }
            }
        }
        if shorter == kept {
            break;
        }
        kept = shorter;
    }
    let end = |(scan, kept): (&Scan, usize)| scan.tail.get(kept).map_or(scan.end, |(start, _)| *start);
    Ok(scans.iter().zip(kept).map(end).collect())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::authority::storage::JournalWrite;
    use fastpay_core::{AppliedCredit, CrossShardCredit, Effect, Epoch, Forwarded, Link, SequenceNumber};
    use fastpay_testkit::{TestAccount, TestCommittee, payment};
    use proptest::prelude::*;

    const SHARDS: usize = 3;

    #[derive(Clone, Copy, Debug)]
    enum Step {
        /// A shard issues a credit for another one.
        Issue(usize, usize),
        /// A shard applies the next credit from another one, if there is one.
        Apply(usize, usize),
        /// The next journal is measured.
        Measure,
    }

    /// The frames that all shards have written.
    #[derive(Default)]
    struct History {
        frames: [Vec<Credits>; SHARDS],
        measured: Vec<usize>,
        /// How many frames each shard had written between the two measurements.
        between: Option<[usize; SHARDS]>,
    }

    fn id(shard: usize) -> ShardId {
        ShardId(shard as u32)
    }

    impl History {
        fn sum(&self, shard: usize, frames: usize) -> Credits {
            let mut sum = Credits::default();
            self.frames[shard][..frames].iter().for_each(|credits| sum.add(credits.clone()));
            sum
        }

        fn newest(&self, shard: usize, of: fn(&Credits) -> &BTreeMap<ShardId, u64>, other: usize) -> u64 {
            let all = self.sum(shard, self.frames[shard].len());
            of(&all).get(&id(other)).copied().unwrap_or_default()
        }

        fn take(&mut self, step: Step) {
            match step {
                Step::Issue(from, to) if from != to => {
                    let number = self.newest(from, |credits| &credits.issued, to) + 1;
                    self.frames[from].push(Credits { issued: [(id(to), number)].into(), ..Credits::default() });
                }
                Step::Apply(to, from) if from != to => {
                    let number = self.newest(to, |credits| &credits.applied, from) + 1;
                    if number <= self.newest(from, |credits| &credits.issued, to) {
                        self.frames[to].push(Credits { applied: [(id(from), number)].into(), ..Credits::default() });
                    }
                }
                Step::Measure if self.measured.len() < 2 * SHARDS => {
                    let shard = self.measured.len() % SHARDS;
                    self.measured.push(self.frames[shard].len());
                    if self.measured.len() == SHARDS {
                        self.between = Some([0, 1, 2].map(|shard| self.frames[shard].len()));
                    }
                }
                _ => {}
            }
        }

        /// Scans a shard, with each frame as a position.
        fn scan(&self, shard: usize) -> Scan {
            let (first, second) = (self.measured[shard], self.measured[shard + SHARDS]);
            let position = |frame: usize| JournalPosition(frame as u64);
            let tail = (first..second).map(|frame| (position(frame), self.frames[shard][frame].clone()));
            Scan { before: self.sum(shard, first), tail: tail.collect(), end: position(second) }
        }

        /// Whether no shard has applied a credit that the other one has not issued.
        fn fits(&self, ends: &[usize]) -> bool {
            let sums: Vec<_> = ends.iter().enumerate().map(|(shard, frames)| self.sum(shard, *frames)).collect();
            let issued = |from: ShardId, to| sums[from.0 as usize].issued.get(&to).copied().unwrap_or_default();
            sums.iter().enumerate().all(|(to, sum)| sum.applied.iter().all(|(from, n)| *n <= issued(*from, id(to))))
        }
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let pair = || (0..SHARDS, 0..SHARDS);
        let step = prop_oneof![
            4 => pair().prop_map(|(from, to)| Step::Issue(from, to)),
            6 => pair().prop_map(|(to, from)| Step::Apply(to, from)),
            1 => Just(Step::Measure),
        ];
        prop::collection::vec(step, 0..200)
    }

    proptest! {
        /// Whenever the journals are measured, the kept parts fit, contain everything that was there between the
        /// measurements, and could not be longer.
        #[test]
        fn the_copies_of_all_journals_fit_each_other_whenever_they_are_measured(steps in steps()) {
            let mut history = History::default();
            steps.into_iter().chain([Step::Measure; 2 * SHARDS]).for_each(|step| history.take(step));
            let scans: Vec<_> = (0..SHARDS).map(|shard| history.scan(shard)).collect();
            let ends: Vec<_> = ends(&scans).unwrap().into_iter().map(|end| end.0 as usize).collect();
            prop_assert!(history.fits(&ends));
            let between = history.between.unwrap();
            for shard in 0..SHARDS {
                prop_assert!(ends[shard] >= between[shard], "{ends:?} {between:?}");
                let mut longer = ends.clone();
                longer[shard] += 1;
                prop_assert!(longer[shard] > history.measured[shard + SHARDS] || !history.fits(&longer));
            }
        }
    }

    #[test]
    fn a_credit_whose_payment_came_after_the_measurement_is_cut_off_with_what_rests_on_it() {
        let place = tempfile::tempdir().unwrap();
        let committee = TestCommittee::new(4);
        let (alice, bob) = (TestAccount::numbered(1), TestAccount::numbered(2));
        let payment = payment(alice.id(), bob.id(), 1, 0);
        let link = || Link { number: 0, previous: None, skip: None };
        let issue = |to| {
            let certificate = Arc::new(committee.certificate(&alice.sign(&committee.domain, payment.clone())));
            Record::Confirmation { certificate, sent: link(), effect: Effect::Forwarded { to, number: 1 } }
        };
        let apply = |from| {
            let credit = CrossShardCredit { from, number: 1, forwarded: Forwarded::Payment(payment.clone()) };
            Record::Credit(AppliedCredit { credit, received: vec![link()] })
        };
        let options = JournalOptions { segment_bytes_max: 1, ..JournalOptions::default() };
        let folder = |shard| ShardFolders::of(&place.path().join("data"), 0, shard).journal;
        let mut journals = [0, 1].map(|shard| {
            std::fs::create_dir_all(folder(shard)).unwrap();
            Journal::create(&folder(shard), options).unwrap()
        });
        let mut write = |shard: usize, record: Record| {
            journals[shard].append(&borsh::to_vec(&record).unwrap()).unwrap();
            journals[shard].commit().unwrap();
            journals[shard].end()
        };
        let measure = |shard| JournalExtent::measure(&folder(shard)).unwrap();
        let vote = || Record::VoidVoted { account: alice.id(), sequence: SequenceNumber(0), epoch: Epoch(0) };
        let kept = [write(0, vote()), write(1, vote())];
        let first = [measure(0), measure(1)];
        let mut second = vec![measure(0)];
        // Shard 1 applies a credit that shard 0 issued after it was measured, and then issues one.
        write(0, issue(ShardId(1)));
        write(1, apply(ShardId(0)));
        write(1, issue(ShardId(0)));
        second.push(measure(1));
        write(0, apply(ShardId(1)));

        let (copy, mut copied) = (place.path().join("copy"), Copied::default());
        copy_measured(&first, &second, (&copy, 0), &mut copied).unwrap();
        for (shard, kept) in (0..).zip(kept) {
            let journal = ShardFolders::of(&copy, 0, shard).journal;
            assert_eq!(Journal::open(&journal, options, JournalPosition::default()).unwrap().end(), kept);
        }
        // After another measurement, everything fits.
        let (copy, now) = (place.path().join("all"), [measure(0), measure(1)]);
        copy_measured(&now, &now, (&copy, 0), &mut copied).unwrap();
        assert!(
            (0..2)
                .all(|shard| JournalExtent::measure(&ShardFolders::of(&copy, 0, shard).journal).unwrap().bytes() > 500)
        );
    }

    #[test]
    fn journals_that_never_fitted_are_refused() {
        let applied = Credits { applied: [(ShardId(1), 2)].into(), ..Credits::default() };
        let issued = Credits { issued: [(ShardId(0), 1)].into(), ..Credits::default() };
        let scans = [
            Scan { before: applied, ..Scan::default() },
            Scan { tail: vec![(JournalPosition(5), issued)], ..Scan::default() },
        ];
        let refused = ends(&scans).unwrap_err();
        assert!(matches!(refused, BackupError::Torn { issued: 1, applied: 2, .. }), "{refused}");
    }
}
