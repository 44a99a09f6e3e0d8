use super::*;
use fastpay_testkit::secret;

fn pair(number: u64) -> Arc<AuthorityKeys> {
    Arc::new(AuthorityKeys::from_secrets(secret(3, number), secret(4, number)).unwrap())
}

fn committee(epoch: u64, numbers: [u64; 4]) -> Committee {
    Committee::new(Epoch(epoch), numbers.map(|number| pair(number).public()).to_vec()).unwrap()
}

fn committees(lists: &[[u64; 4]]) -> Committees {
    let mut all = Committees::new(committee(0, lists[0])).unwrap();
    (1..).zip(&lists[1..]).for_each(|(epoch, list)| all.install(committee(epoch, *list)).unwrap());
    all
}

fn names(numbers: &[u64]) -> Vec<AuthorityName> {
    numbers.iter().map(|number| pair(*number).public().name).collect()
}

fn remembered(numbers: &[u64]) -> Remembered {
    names(numbers).as_slice().into()
}

fn having_joined(epoch: u64, numbers: &[u64]) -> Remembered {
    Remembered { joined: Some(Epoch(epoch)), ..remembered(numbers) }
}

fn voter(lists: &[[u64; 4]], keys: &[u64], remembered: impl Into<Remembered>) -> Option<AuthorityName> {
    let keys = keys.iter().map(|number| pair(*number)).collect();
    let voter_status = VoterStatus::new(committees(lists), keys, &remembered.into()).unwrap();
    voter_status.voter().map(|keys| keys.public().name)
}

const FIRST: [u64; 4] = [1, 2, 3, 4];
const SECOND: [u64; 4] = [11, 12, 13, 14];

#[test]
fn the_keys_of_the_current_epoch_vote() {
    assert_eq!(voter(&[FIRST], &[1, 11], remembered(&[1])), Some(names(&[1])[0]));
    for keys in [[11, 1], [1, 11]] {
        assert_eq!(voter(&[FIRST, SECOND], &keys, having_joined(1, &[1])), Some(names(&[11])[0]));
        assert_eq!(voter(&[FIRST, SECOND], &keys, remembered(&[1])), None, "the old ones may have voted elsewhere");
    }
    assert_eq!(voter(&[FIRST, SECOND], &[11], having_joined(1, &[1, 11])), Some(names(&[11])[0]));
    // Old keys that stay are found in the newest committee, too.
    assert_eq!(voter(&[FIRST, [1, 12, 13, 14]], &[1], remembered(&[1])), Some(names(&[1])[0]));
}

#[test]
fn an_authority_outside_the_current_epoch_has_no_vote_and_keeps_its_name() {
    let keys = vec![pair(1)];
    let voter_status = VoterStatus::new(committees(&[FIRST, SECOND]), keys, &remembered(&[1])).unwrap();
    assert!(voter_status.voter().is_none());
    assert_eq!((voter_status.public(), voter_status.epoch()), (pair(1).public(), Epoch(1)));
}

#[test]
fn a_memory_that_begins_after_epoch_0_does_not_vote() {
    assert_eq!(voter(&[FIRST, SECOND], &[11], remembered(&[11])), None);
    assert_eq!(voter(&[FIRST, [1, 2, 3, 5]], &[5], remembered(&[5])), None);
    assert_eq!(voter(&[FIRST, [1, 2, 3, 5]], &[3], remembered(&[3])), Some(names(&[3])[0]));
}

/// In which epochs a folder made for these names, which has joined `joined`, is full, and whether it joins the
/// current one.
fn full(
    lists: &[Vec<u64>],
    keys: &[u64],
    remembered_as: &[u64],
    joined: Option<u64>,
) -> (Vec<bool>, Option<Epoch>, bool) {
    let status = status(lists, keys, remembered_as, joined);
    let full = (0..lists.len() as u64).map(|epoch| status.is_full_in(Epoch(epoch))).collect();
    (full, status.joins(), status.voter().is_some())
}

fn status(lists: &[Vec<u64>], keys: &[u64], remembered_as: &[u64], joined: Option<u64>) -> VoterStatus {
    let all = |list: &[u64]| list.iter().map(|number| pair(*number).public()).collect::<Vec<_>>();
    let of = |(epoch, list): (u64, &Vec<u64>)| Committee::new(Epoch(epoch), all(list)).unwrap();
    let mut committees = Committees::new(of((0, &lists[0]))).unwrap();
    (1..).zip(&lists[1..]).for_each(|next| committees.install(of(next)).unwrap());
    let keys = keys.iter().map(|number| pair(*number)).collect();
    let remembered = Remembered { joined: joined.map(Epoch), ..remembered(remembered_as) };
    VoterStatus::new(committees, keys, &remembered).unwrap()
}

#[test]
fn a_member_whose_folder_is_not_full_joins_and_votes_from_then_on_while_it_stays() {
    let (joins, votes) = (|epoch| Some(Epoch(epoch)), (None, true));
    let lists = |lists: &[&[u64]]| lists.iter().map(|list| list.to_vec()).collect::<Vec<_>>();
    let told = |lists: &[Vec<u64>], key: u64, joined| {
        let (_, joins, votes) = full(lists, &[key], &[key], joined);
        (joins, votes)
    };
    // A new member.
    let two = lists(&[&FIRST, &[1, 2, 3, 5]]);
    assert_eq!(told(&two, 5, None), (joins(1), false));
    assert_eq!(told(&two, 5, Some(1)), votes);
    assert_eq!(told(&two, 3, None), votes);
    assert_eq!(told(&two, 4, None), (None, false), "it has left");
    // It stays, and closes what it joined.
    let three = lists(&[&FIRST, &[1, 2, 3, 5], &[1, 2, 15, 5]]);
    assert_eq!(full(&three, &[5], &[5], Some(1)), (vec![false, true, true], None, true));
    assert_eq!(full(&three, &[5], &[5], None), (vec![false, false, false], joins(2), false));
    assert_eq!(full(&three, &[3, 15], &[3], None), (vec![true, true, false], joins(2), false), "new keys");
    assert_eq!(full(&three, &[3, 15], &[3], Some(2)), (vec![true, true, true], None, true));
    // It was away for an epoch, and joins again.
    let back = lists(&[&FIRST, &[1, 2, 3, 5], &FIRST]);
    assert_eq!(full(&back, &[4], &[4], None), (vec![true, false, false], joins(2), false));
    assert_eq!(full(&back, &[4], &[4], Some(2)), (vec![true, false, true], None, true));
    assert_eq!(told(&back, 5, Some(1)), (None, false));
    // Those who stay in a larger or a somewhat smaller committee go on. In a much smaller one, those who know
    // nothing of an order would decide, also if it shrinks step by step.
    let sizes = lists(&[&FIRST, &[1, 2, 3, 4, 5], &[1, 2, 3, 4]]);
    assert_eq!(full(&sizes, &[1], &[1], None), (vec![true; 3], None, true));
    let seven: &[u64] = &[1, 2, 3, 4, 5, 6, 7];
    for smaller in [lists(&[seven, &FIRST]), lists(&[seven, &seven[..5], &FIRST])] {
        let last = smaller.len() as u64 - 1;
        let (mut is_full, now, votes) = full(&smaller, &[1], &[1], None);
        assert_eq!((is_full.pop(), now, votes), (Some(false), joins(last), false));
        assert!(is_full.iter().all(|full| *full));
        assert_eq!(told(&smaller, 1, Some(last)), (None, true));
        let all = |lists: &[Vec<u64>]| {
            let known = status(lists, &[1], &[1], None).committees().clone();
            all_join_in(&known, known.current()).map(|before| before.members().len())
        };
        assert_eq!(all(&smaller), Some(7));
        // All have joined then, and what was before counts no more.
        let later = [smaller, lists(&[&FIRST, &[1, 2, 3, 5]])].concat();
        assert_eq!(all(&later), None);
    }
    assert_eq!(full(&sizes[..2], &[5], &[5], Some(1)), (vec![false, true], None, true));
}

#[test]
fn a_member_that_joins_is_asked_again_later_executes_nothing_before_and_closes_what_it_joined() {
    let lists = [FIRST, [1, 2, 3, 5]];
    let joiner = VoterStatus::new(committees(&lists), vec![pair(5)], &remembered(&[5])).unwrap();
    assert_eq!(joiner.votes().err(), Some(Refusal::UnknownEpoch(Epoch(1))));
    assert_eq!((joiner.observes(), joiner.clone().ahead(true).observes()), (None, Some(Epoch(1))));
    let folder = tempfile::tempdir().unwrap();
    let floors = crate::authority::rollback::VoteFloors::open(folder.path()).unwrap();
    let protection = Some(Arc::new(RollbackProtection::new(floors).0));
    let restored = joiner.clone().with_rollback_protection(protection);
    assert_eq!(restored.votes().err(), Some(Refusal::NotVoting(Epoch(1))));
    let joined = joiner.having_joined(Epoch(1)).unwrap();
    assert_eq!((joined.votes_for_all(), joined.joins(), joined.observes()), (true, None, None));
    assert_eq!([&joiner, &joined].map(VoterStatus::full_since), [None, Some(Epoch(1))]);
    assert!(joiner.clone().ahead(true).having_joined(Epoch(1)).unwrap().voter().is_none(), "still ahead");
    // It goes on in later epochs, and what it joined is not forgotten with what the folder remembers.
    let next = joined.among(committees(&[FIRST, [1, 2, 3, 5], SECOND]), &remembered(&[5])).unwrap();
    assert_eq!((next.closes(Epoch(1)).is_some(), next.closes(Epoch(0)).is_some()), (true, false));
    let unjoined = joiner.among(committees(&[FIRST, [1, 2, 3, 5], SECOND]), &remembered(&[5])).unwrap();
    assert!(unjoined.closes(Epoch(1)).is_none());
    // A recovery ends what was joined before it.
    let mut all = committees(&[FIRST, [1, 2, 3, 5], [1, 2, 3, 5]]);
    let adopted = Some(Digest::repeat_byte(7));
    all.recover(Recovery { epoch: Epoch(2), adopted }).unwrap();
    let begun = Remembered { adopted, ..remembered(&[15]) };
    let status = |keys: u64, joined| {
        let remembered = Remembered { joined, ..begun.clone() };
        VoterStatus::new(all.clone(), vec![pair(keys)], &remembered).unwrap()
    };
    assert!(status(5, None).voter().is_some() && !status(5, None).is_full_in(Epoch(1)));
    assert!(!status(5, Some(Epoch(1))).is_full_in(Epoch(1)));
}

#[test]
fn an_observer_executes_nothing_until_a_committee_lists_it_and_joins_then() {
    let of = |lists: &[[u64; 4]], is_observer| {
        VoterStatus::of(committees(lists), vec![pair(5)], &remembered(&[5]), is_observer)
    };
    assert_eq!(of(&[FIRST], false).err(), Some(VoterStatusError::NotAMember(names(&[5])[0])));
    let observer = of(&[FIRST], true).unwrap();
    assert_eq!((observer.observes(), observer.joins(), observer.full_since()), (Some(Epoch(1)), None, None));
    assert_eq!((observer.public(), observer.is_outsider()), (pair(5).public(), true));
    assert_eq!(observer.votes().err(), Some(Refusal::UnknownEpoch(Epoch(1))));
    assert!(observer.closes(Epoch(0)).is_none() && observer.member_keys().is_none());
    let next = [FIRST, [1, 2, 3, 5]];
    let listed = observer.among(committees(&next), &remembered(&[5])).unwrap();
    assert_eq!((listed.observes(), listed.joins(), listed.is_outsider()), (None, Some(Epoch(1)), false));
    let passed_over = observer.among(committees(&[FIRST, SECOND]), &remembered(&[5])).unwrap();
    assert_eq!((passed_over.observes(), passed_over.joins()), (Some(Epoch(2)), None));
    // A member with another redemption key is a mistake all the same.
    let other = VoterStatus::of(committees(&[FIRST]), vec![mixed(1, 9)], &remembered(&[1]), true);
    assert_eq!(other.err(), Some(VoterStatusError::OtherRedemptionKey(names(&[1])[0])));
}

#[test]
fn after_a_recovery_who_begins_from_the_adopted_checkpoint_votes_and_nobody_else() {
    let adopted = Digest::repeat_byte(7);
    let vote = |lists: &[[u64; 4]], at: Option<Digest>, keys: &[u64], remembered: Remembered| {
        let mut all = committees(lists);
        all.recover(Recovery { epoch: Epoch(1), adopted: at }).unwrap();
        let keys = keys.iter().map(|number| pair(*number)).collect();
        let voter_status = VoterStatus::new(all, keys, &remembered).unwrap();
        assert_eq!(voter_status.votes_for_all(), voter_status.voter().is_some());
        let waits = voter_status.unrecovered().is_some();
        assert!(!waits || voter_status.voter().is_none());
        (voter_status.voter().map(|keys| keys.public().name), waits)
    };
    let begun = |numbers: &[u64], adopted| Remembered { adopted, ..remembered(numbers) };
    let second = [FIRST, SECOND];
    // Not adopted, not begun, begun from another one: also who remembers epoch 0.
    assert_eq!(vote(&second, None, &[1, 11], begun(&[1], None)), (None, true));
    assert_eq!(vote(&second, Some(adopted), &[1, 11], begun(&[1], None)), (None, true));
    let other = Some(Digest::repeat_byte(8));
    assert_eq!(vote(&second, Some(adopted), &[1, 11], begun(&[1], other)), (None, true));
    assert_eq!(vote(&second, None, &[1, 11], begun(&[1], other)), (None, true));
    // The same operators, and new ones.
    let new = Some(names(&[11])[0]);
    assert_eq!(vote(&second, Some(adopted), &[1, 11], begun(&[1], Some(adopted))), (new, false));
    assert_eq!(vote(&second, Some(adopted), &[11], begun(&[11], Some(adopted))), (new, false));
    assert_eq!(vote(&second, Some(adopted), &[1], begun(&[1], Some(adopted))), (None, false));
    // Later rotations: the memory begins with the recovery's epoch.
    let third = [FIRST, SECOND, [11, 22, 23, 1]];
    assert_eq!(vote(&third, Some(adopted), &[11], begun(&[1, 11], Some(adopted))), (new, false));
    let rekeyed = begun(&[12, 22], Some(adopted));
    assert_eq!(vote(&third, Some(adopted), &[22], rekeyed.clone()), (None, false), "with new keys");
    let joined = Remembered { joined: Some(Epoch(2)), ..rekeyed };
    assert_eq!(vote(&third, Some(adopted), &[22], joined), (Some(names(&[22])[0]), false));
    assert_eq!(vote(&third, Some(adopted), &[22], begun(&[22], Some(adopted))), (None, false));
    assert_eq!(vote(&third, Some(adopted), &[1], begun(&[1], Some(adopted))), (None, false));
}

#[test]
fn a_member_that_knows_all_its_votes_closes_an_epoch_that_has_ended_and_nobody_else_does() {
    let of = |keys: &[u64], remembered: Remembered| {
        let keys = keys.iter().map(|number| pair(*number)).collect();
        let all = committees(&[FIRST, SECOND, [11, 12, 13, 24]]);
        VoterStatus::new(all, keys, &remembered).unwrap()
    };
    let status = |keys: &[u64], remembered_as: &[u64]| of(keys, having_joined(1, remembered_as));
    let closes = |status: &VoterStatus, epoch| status.closes(Epoch(epoch)).map(|keys| keys.public().name);
    let name = |number| Some(names(&[number])[0]);
    let whole = status(&[1, 11], &[1]);
    assert_eq!([0, 1, 2, 3].map(|epoch| closes(&whole, epoch)), [name(1), name(11), None, None]);
    // It left with epoch 2, or its operator has removed the keys of an earlier one.
    assert_eq!([0, 1].map(|epoch| closes(&status(&[4, 14], &[4]), epoch)), [name(4), name(14)]);
    assert_eq!([0, 1].map(|epoch| closes(&status(&[11], &[1]), epoch)), [None, name(11)]);
    // It has not joined with its new keys. Its memory begins later, or may have a gap, or its shards have not followed so
    // far.
    assert_eq!([0, 1].map(|epoch| closes(&of(&[1, 11], remembered(&[1])), epoch)), [name(1), None]);
    assert_eq!([0, 1].map(|epoch| closes(&of(&[11], remembered(&[11])), epoch)), [None, None]);
    let folder = tempfile::tempdir().unwrap();
    let floors = crate::authority::rollback::VoteFloors::open(folder.path()).unwrap();
    let restored = whole.clone().with_rollback_protection(Some(Arc::new(RollbackProtection::new(floors).0)));
    assert_eq!(closes(&restored, 1), None);
    assert_eq!(closes(&whole.clone().ahead(true), 1), None);
    // A recovery ends the epochs before it, and what was voted for in them.
    let mut all = whole.committees().clone();
    all.recover(Recovery { epoch: Epoch(1), adopted: None }).unwrap();
    assert_eq!(closes(&whole.among(all.clone(), &remembered(&[1])).unwrap(), 1), None);
    let adopted = Some(Digest::repeat_byte(7));
    all.recover(Recovery { epoch: Epoch(1), adopted }).unwrap();
    let begun = Remembered { adopted, ..remembered(&[1]) };
    let recovered = whole.among(all, &begun).unwrap();
    assert_eq!([0, 1].map(|epoch| closes(&recovered, epoch)), [None, name(11)]);
}

#[test]
fn a_folder_says_nothing_of_votes_under_keys_that_it_was_not_made_for() {
    let is_only = |keys: [u64; 2], made_for: &[u64]| {
        let keys = keys.map(pair).to_vec();
        let voter_status = VoterStatus::new(committees(&[FIRST]), keys, &remembered(made_for)).unwrap();
        voter_status.is_member_only_as(&names(made_for))
    };
    assert!(is_only([1, 11], &[1]) && is_only([11, 1], &[1]));
    assert!(!is_only([1, 11], &[11]) && !is_only([11, 1], &[11]) && !is_only([1, 2], &[1]));
}

/// The voting key of one pair and the redemption key of another.
fn mixed(voting: u64, redemption: u64) -> Arc<AuthorityKeys> {
    Arc::new(AuthorityKeys::from_secrets(secret(3, voting), secret(4, redemption)).unwrap())
}

fn after_founders(next: Vec<Authority>) -> Committees {
    let mut all = committees(&[FIRST]);
    all.install(Committee::new(Epoch(1), next).unwrap()).unwrap();
    all
}

#[test]
fn a_redemption_key_that_changes_beside_its_voting_key_is_followed() {
    let next = [1, 2, 3, 4].map(|number| mixed(number, number + 20).public());
    let all = after_founders(next.to_vec());
    let voter_status = |keys: Vec<Arc<AuthorityKeys>>| {
        VoterStatus::new(all.clone(), keys, &having_joined(1, &[1])).unwrap().voter().cloned()
    };
    let new = Some(mixed(1, 21).public());
    for keys in [vec![mixed(1, 21)], vec![pair(1), mixed(1, 21)], vec![mixed(1, 21), pair(1)]] {
        assert_eq!(voter_status(keys).map(|keys| keys.public()), new);
    }
    assert!(voter_status(vec![pair(1)]).is_none(), "its pair is of epoch 0 alone");
}

#[test]
fn a_member_that_registers_the_voting_key_of_another_does_not_stop_it() {
    // Authority 4 registers authority 1's old voting key with a redemption key of its own.
    let rogue = mixed(1, 99).public();
    let next = vec![pair(11).public(), pair(12).public(), pair(13).public(), rogue];
    let all = after_founders(next);
    let victim = VoterStatus::new(all.clone(), vec![pair(1), pair(11)], &having_joined(1, &[1])).unwrap();
    assert_eq!(victim.voter().map(|keys| keys.public()), Some(pair(11).public()));
    assert!(victim.is_own(Epoch(0), &rogue.name) && !victim.is_own(Epoch(1), &rogue.name));
    assert!(victim.is_own(Epoch(1), &pair(11).public().name) && !victim.is_own(Epoch(2), &rogue.name));
    let behind = VoterStatus::new(all, vec![pair(1)], &remembered(&[1])).unwrap();
    assert!(behind.voter().is_none());
}

#[test]
fn keys_of_no_member_are_refused_with_the_reason() {
    let new = |keys: Vec<Arc<AuthorityKeys>>| {
        VoterStatus::new(committees(&[FIRST, SECOND]), keys, &Remembered::default()).err()
    };
    assert_eq!(new(vec![pair(9)]), Some(VoterStatusError::NotAMember(names(&[9])[0])));
    assert_eq!(new(Vec::new()), Some(VoterStatusError::NoKeys));
    assert_eq!(new(vec![mixed(11, 12)]), Some(VoterStatusError::OtherRedemptionKey(names(&[11])[0])));
}

/// Ten keys, and what a folder made for the first of them remembers of a stale past.
fn stale_status(stale: Stale, joined: Option<u64>) -> VoterStatus {
    let all = committees(&[FIRST, [1, 2, 3, 5], [1, 2, 3, 6]]);
    let remembered = Remembered { stale, joined: joined.map(Epoch), ..remembered(&[1]) };
    VoterStatus::new(all, vec![pair(1)], &remembered).unwrap()
}

#[test]
fn a_folder_that_lacks_votes_is_limited_until_it_has_joined_a_later_epoch_and_never_closes_what_it_lacks() {
    let folder = tempfile::tempdir().unwrap();
    let limited = |status: VoterStatus| {
        let floors = crate::authority::rollback::VoteFloors::open(folder.path()).unwrap();
        status.with_rollback_protection(Some(Arc::new(RollbackProtection::new(floors).0)))
    };
    let joins = |status: &VoterStatus| status.joins().map(|epoch| (epoch.0, status.is_stale()));
    // Where it is not known up to which epoch, or it is the current one, it joins nothing and votes above the floors.
    for stale in [Stale::Unknown, Stale::UpTo(Epoch(2)), Stale::UpTo(Epoch(7))] {
        let status = stale_status(stale, None);
        assert!(status.voter().is_none(), "it votes for nothing without a protection");
        let status = limited(status);
        assert!(status.voter().is_some() && !status.votes_for_all() && status.rollback_protection().is_some());
        assert_eq!((joins(&status), status.full_since()), (Some((2, true)), None));
        assert!([0, 1].iter().all(|epoch| status.closes(Epoch(*epoch)).is_none()));
    }
    // Also what it joined before counts for nothing.
    assert_eq!(joins(&limited(stale_status(Stale::UpTo(Epoch(2)), Some(2)))), Some((2, true)));
    let later = limited(stale_status(Stale::UpTo(Epoch(1)), Some(1)));
    assert_eq!(joins(&later), Some((2, false)));
    assert!(later.voter().is_some() && !later.votes_for_all() && later.closes(Epoch(1)).is_none());

    let joined = later.having_joined(Epoch(2)).unwrap();
    assert!(joined.votes_for_all() && joined.rollback_protection().is_none());
    assert_eq!((joins(&joined), joined.full_since()), (None, Some(Epoch(2))));
    assert!([0, 1].iter().all(|epoch| joined.closes(Epoch(*epoch)).is_none()));
    let next = committees(&[FIRST, [1, 2, 3, 5], [1, 2, 3, 6], [1, 2, 3, 7]]);
    let next = joined.among(next, &Remembered { stale: Stale::UpTo(Epoch(1)), ..remembered(&[1]) }).unwrap();
    assert!(next.votes_for_all() && next.closes(Epoch(2)).is_some());
    // With new keys it votes for nothing before, and says that it will.
    let all = committees(&[FIRST, SECOND]);
    let rekeyed = Remembered { stale: Stale::UpTo(Epoch(0)), ..remembered(&[1]) };
    let rekeyed = limited(VoterStatus::new(all, vec![pair(1), pair(11)], &rekeyed).unwrap());
    assert_eq!(rekeyed.votes().err(), Some(Refusal::UnknownEpoch(Epoch(1))));
    // A recovery ends what it may have voted for before.
    let mut all = committees(&[FIRST, [1, 2, 3, 5], [1, 2, 3, 6]]);
    let adopted = Some(Digest::repeat_byte(7));
    all.recover(Recovery { epoch: Epoch(2), adopted }).unwrap();
    for (last, is_full) in [(1, true), (2, false)] {
        let remembered = Remembered { adopted, stale: Stale::UpTo(Epoch(last)), ..remembered(&[1]) };
        let status = VoterStatus::new(all.clone(), vec![pair(1)], &remembered).unwrap();
        assert_eq!(status.full_since().is_some(), is_full, "{last}");
    }
}

#[test]
fn what_an_earlier_release_took_for_full_has_new_keys_and_lacks_nothing_else() {
    let lists = |lists: &[&[u64]]| lists.iter().map(|list| list.to_vec()).collect::<Vec<_>>();
    let of = |all: &[&[u64]], keys: &[u64]| status(&lists(all), keys, &keys[..1], None).was_full();
    let (first, second): (&[u64], &[u64]) = (&FIRST, &SECOND);
    assert!(of(&[first, second], &[1, 11]));
    assert!(of(&[first, first], &[1]));
    assert!(!of(&[first, &[5, 12, 13, 14]], &[5]), "a new member");
    let seven: &[u64] = &[1, 2, 3, 4, 5, 6, 7];
    assert!(!of(&[seven, second], &[1, 11]), "a much smaller committee");
    let third: &[u64] = &[21, 22, 23, 24];
    assert!(of(&[first, second, third], &[1, 11, 21]));
}
