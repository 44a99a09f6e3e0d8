//! Who is full in an epoch: whose folder has all that its authority must know in order to vote there.

use fastpay_core::handover::{Stale, Term, all_join_after, full_since, may_stay};
use fastpay_core::{Committee, Epoch};
use fastpay_testkit::{TestCommittee, authority_keys, test_domain};

/// The committees of consecutive epochs whose members have these keys.
fn committees(lists: &[&[u64]]) -> Vec<Committee> {
    let keys = |numbers: &[u64]| numbers.iter().copied().map(authority_keys).collect();
    let committee = |(epoch, numbers): (u64, &&[u64])| TestCommittee::of(keys(numbers), test_domain(), Epoch(epoch));
    (0..).zip(lists).map(|(epoch, numbers)| committee((epoch, numbers)).committee).collect()
}

/// Since when the folder of an authority is full that has these keys in the epochs of the lists, and began in `begun`.
fn full(lists: &[&[u64]], own: &[Option<u64>], begun: &[u64], stale: Stale) -> Option<u64> {
    let committees = committees(lists);
    let terms = committees.iter().zip(own).map(|(committee, own)| {
        let member = own.map(|number| authority_keys(number).public());
        assert!(member.is_none_or(|own| committee.members().contains(&own)));
        Term { committee, member }
    });
    let begun = begun.iter().copied().map(Epoch);
    full_since(&terms.collect::<Vec<_>>(), begun, stale).map(|epoch| epoch.0)
}

#[test]
fn who_stays_with_the_same_keys_goes_on_and_who_has_new_ones_joins_however_often_they_change() {
    const FIRST: &[u64] = &[1, 2, 3, 4];
    let whole = |lists: &[&[u64]], own: &[Option<u64>], begun: &[u64]| full(lists, own, begun, Stale::No);
    let one = Some(1);
    assert_eq!(whole(&[FIRST, &[1, 2, 3, 5]], &[one; 2], &[0]), Some(0));
    assert_eq!(whole(&[FIRST, &[1, 2, 3, 5]], &[None, Some(5)], &[]), None, "a new member");
    assert_eq!(whole(&[FIRST, &[1, 2, 3, 5]], &[None, Some(5)], &[0]), None, "it was none of the epoch");
    assert_eq!(whole(&[FIRST, &[1, 2, 3, 5]], &[Some(4), None], &[0]), None, "no member any more");
    assert_eq!(whole(&[FIRST, &[1, 2, 3, 5], FIRST], &[Some(4), None, Some(4)], &[0]), None, "it was away");
    assert_eq!(whole(&[FIRST, &[11, 2, 3, 4]], &[one, Some(11)], &[0]), None, "new keys");
    assert_eq!(whole(&[FIRST, &[11, 2, 3, 4]], &[one, Some(11)], &[0, 1]), Some(1), "it has joined with them");
    let there_and_back: &[&[u64]] = &[FIRST, &[11, 2, 3, 4], FIRST];
    assert_eq!(whole(there_and_back, &[one, Some(11), one], &[0, 1]), None, "the first keys again");
    assert_eq!(whole(there_and_back, &[one, Some(11), one], &[0, 1, 2]), Some(2));
    assert_eq!(whole(&[FIRST], &[one], &[7]), None, "an epoch that is not among them");
    assert_eq!(full_since(&[], [Epoch(0)], Stale::No), None);

    // One of the two keys is new.
    let (all, pair) = (committees(&[FIRST]), authority_keys(1).public());
    let rekeyed = fastpay_core::Authority { redemption_key: authority_keys(9).public().redemption_key, ..pair };
    let members =
        [&[rekeyed], &all[0].members().iter().copied().filter(|member| *member != pair).collect::<Vec<_>>()[..]];
    let after = Committee::new(Epoch(1), members.concat()).unwrap();
    let terms =
        |then| [Term { committee: &all[0], member: Some(pair) }, Term { committee: &after, member: Some(then) }];
    assert_eq!(full_since(&terms(rekeyed), [Epoch(0)], Stale::No), None);
    assert_eq!(full_since(&terms(pair), [Epoch(0)], Stale::No), Some(Epoch(0)));
}

#[test]
fn who_stays_in_a_committee_that_becomes_much_smaller_at_once_or_step_by_step_joins() {
    const SEVEN: &[u64] = &[1, 2, 3, 4, 5, 6, 7];
    const FOUR: &[u64] = &[1, 2, 3, 4];
    let of_one = |lists: &[&[u64]], begun: &[u64]| full(lists, &vec![Some(1); lists.len()], begun, Stale::No);
    assert_eq!(of_one(&[FOUR, SEVEN], &[0]), Some(0));
    assert_eq!(of_one(&[SEVEN, &SEVEN[..5]], &[0]), Some(0));
    assert_eq!(of_one(&[SEVEN, FOUR], &[0]), None);
    assert_eq!(of_one(&[SEVEN, &SEVEN[..5], FOUR], &[0]), None);
    assert_eq!(of_one(&[SEVEN, &SEVEN[..5], FOUR], &[0, 2]), Some(2));
    assert_eq!(of_one(&[SEVEN, FOUR, FOUR], &[0, 1]), Some(1));
}

#[test]
fn a_folder_that_may_lack_votes_of_an_epoch_is_full_in_later_ones_that_it_joined_and_in_no_other() {
    const SAME: &[&[u64]] = {
        const FOUR: &[u64] = &[1, 2, 3, 4];
        &[FOUR; 4]
    };
    let stale = |begun: &[u64], stale| full(SAME, &[Some(1); 4], begun, stale);
    assert_eq!(stale(&[0], Stale::No), Some(0));
    for begun in [&[0][..], &[0, 1], &[0, 2]] {
        assert_eq!(stale(begun, Stale::UpTo(Epoch(2))), None, "{begun:?}");
    }
    assert_eq!(stale(&[0, 2, 3], Stale::UpTo(Epoch(2))), Some(3));
    assert_eq!(stale(&[0, 2], Stale::UpTo(Epoch(1))), Some(2));
    assert_eq!(stale(&[0, 1, 2, 3], Stale::Unknown), None);
    // It states nothing of the epoch of which it lacks votes, also after it has joined the next one.
    assert_eq!(full(&SAME[..3], &[Some(1); 3], &[0, 3], Stale::UpTo(Epoch(2))), None);
}

#[test]
fn everybody_joins_a_committee_that_became_much_smaller_at_once_or_step_by_step() {
    const SEVEN: &[u64] = &[1, 2, 3, 4, 5, 6, 7];
    const FOUR: &[u64] = &[1, 2, 3, 4];
    let all_join = |lists: &[&[u64]]| {
        let all = committees(lists);
        let (after, before) = all.split_last().unwrap();
        all_join_after(before, after).map(|before| before.members().len())
    };
    assert_eq!(all_join(&[SEVEN, &SEVEN[..5]]), None);
    assert_eq!(all_join(&[SEVEN, &SEVEN[..5], FOUR]), Some(7));
    assert_eq!(all_join(&[SEVEN, FOUR, FOUR]), None, "all have joined the one before");
}

/// The size of the largest set of votes that another order of a number can get in `after`, once one has a certificate of
/// `before`: members of both by their numbers, where the first ones stay and the others of `after` are new.
fn votes_for_another(before: usize, quorum: usize, after: usize, faulty: usize) -> usize {
    let all_of = |size: usize, some: usize| {
        (0_u32..1 << size).filter(move |votes| votes.count_ones() as usize == some).collect::<Vec<_>>()
    };
    let mut most = 0;
    for certificate in all_of(before, quorum) {
        for bad in all_of(after, faulty) {
            let knows = |member: usize| member >= before || certificate & (1 << member) != 0;
            let votes = (0..after).filter(|member| bad & (1 << member) != 0 || !knows(*member)).count();
            most = most.max(votes);
        }
    }
    most
}

#[test]
fn those_who_stay_decide_nothing_that_they_do_not_know_of_unless_the_committee_becomes_much_smaller() {
    let committees: Vec<_> = (4..=10).map(|size| TestCommittee::new(size).committee).collect();
    for before in &committees {
        for after in &committees {
            let [n, m] = [before, after].map(|committee| committee.members().len());
            // Who joins knows of the order, and the faulty members vote for anything.
            let votes = votes_for_another(n, before.quorum(), m, after.faults_tolerated());
            assert_eq!(may_stay(before, after), votes < after.quorum(), "{n} to {m}");
            assert!(may_stay(before, after) || m < n, "{n} to {m}");
        }
    }
    let stay = |n: usize, m: usize| may_stay(&committees[n - 4], &committees[m - 4]);
    assert_eq!([(5, 4), (7, 6), (7, 5), (8, 7), (7, 4)].map(|(n, m)| stay(n, m)), [true, true, true, true, false]);
}
