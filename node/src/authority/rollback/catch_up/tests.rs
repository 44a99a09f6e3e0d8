use fastpay_client::AuthorityEndpoints;
use fastpay_core::{AuthorityKeys, Committee, Epoch};
use fastpay_testkit::fake::{FakeCommittee, Role};
use fastpay_testkit::{TestAccount, TestCommittee, payment};
use proptest::prelude::*;
use tokio::sync::watch;

use super::*;
use crate::authority::voter_status::VoterStatus;

fn state(next: u64, pending: bool) -> AccountState {
    let order = TestAccount::ed25519(0).sign(&TestCommittee::new(4).domain, some_payment(next));
    AccountState { next_sequence: SequenceNumber(next), pending: pending.then_some(order), ..AccountState::default() }
}

fn some_payment(sequence: u64) -> fastpay_core::Transfer {
    payment(TestAccount::ed25519(0).id(), TestAccount::ethereum(1).id(), 1, sequence).into()
}

#[test]
fn the_answers_of_a_quorum_give_a_number_above_all_that_may_have_been_voted_for() {
    let from = |states: &[(u64, bool)]| {
        let answers: Vec<_> = states.iter().map(|(next, pending)| answer(&state(*next, *pending)).unwrap()).collect();
        above_forgotten_votes(&answers, 3).map(|from| from.0)
    };
    // Nobody knows of anything: an order of number 0 may have come to this authority alone.
    assert_eq!(from(&[(0, false); 3]), Some(1));
    assert_eq!(from(&[(7, false); 3]), Some(8));
    // One that is locked may have helped to a certificate that this authority alone has confirmed.
    assert_eq!(from(&[(7, false), (7, true), (7, false)]), Some(9));
    assert_eq!(from(&[(7, true), (8, false), (2, false)]), Some(9));
    assert_eq!(from(&[(7, false); 2]), None, "too few");
    assert_eq!(from(&[(u64::MAX, true), (0, false), (0, false)]), Some(u64::MAX));
    let restored = AccountState { catching_up: true, ..state(7, false) };
    assert!(answer(&restored).is_err());
}

/// One account, whose certificates do not conflict: what matters is who knows how many of them.
#[derive(Clone, Copy, Debug, Default)]
struct Knows {
    next: u64,
    locked: bool,
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    /// Authority 0 forgets all it knows after some of the events; authorities from the end of the list are Byzantine,
    /// as many as the committee tolerates beside it.
    #[test]
    fn no_forgotten_vote_is_ever_repeated(
        size in 4_usize..=10,
        events in prop::collection::vec((any::<bool>(), 0_usize..10), 0..400),
        chosen in prop::collection::vec(any::<u64>(), 10),
        lies in prop::collection::vec((any::<u64>(), any::<bool>()), 10),
    ) {
        let faults = (size - 1) / 3;
        let quorum = (size + faults) / 2 + 1;
        let honest = size - faults;
        let mut all = vec![Knows::default(); honest];
        let (mut certificates, mut voted) = (0_u64, vec![false; honest]);
        // Each is asked for its vote, or gets the next certificate that there is.
        for (asked, who) in events {
            // The owner favours authority 0, which is then ahead of all others.
            let who = if who % 3 == 0 { 0 } else { who % honest };
            if asked && all[who].next == certificates {
                all[who].locked = true;
                voted[who] = true;
                if voted.iter().filter(|voted| **voted).count() + faults >= quorum {
                    certificates += 1;
                    voted.fill(false);
                }
            } else if !asked && all[who].next < certificates {
                all[who] = Knows { next: all[who].next + 1, locked: false };
            }
        }
        let forgotten = all[0].locked.then_some(all[0].next);
        let mut answers: Vec<(u64, Answer)> = Vec::new();
        for who in 1..size {
            let (next, pending) = match all.get(who) {
                Some(knows) => (knows.next, knows.locked),
                // A claim above what is known here needs a certificate; those below need none.
                None => (lies[who - honest].0 % (certificates + 1), lies[who - honest].1),
            };
            answers.push((chosen[who - 1], answer(&state(next, pending)).unwrap()));
        }
        answers.sort_unstable_by_key(|(order, _)| *order);
        let first: Vec<_> = answers.iter().take(quorum).map(|(_, answer)| *answer).collect();
        let from = above_forgotten_votes(&first, quorum).unwrap();
        prop_assert!(forgotten.is_none_or(|number| number < from.0), "{forgotten:?} is not below {from}");
        // And it is not kept from voting for longer than that.
        prop_assert!(from.0 <= certificates + 2, "{from} with {certificates} certificates");
        // One answer fewer would not do.
        prop_assert_eq!(above_forgotten_votes(&first[..quorum - 1], quorum), None);
    }
}

fn entry(name: AuthorityName) -> AuthorityEndpoints {
    AuthorityEndpoints { name, shards: vec!["http://127.0.0.1:1".into()], http: None, tls_ca: None, label: None }
}

#[tokio::test]
async fn peers_are_a_quorum_of_the_current_committee_without_this_authority() {
    let (first, second) = (TestCommittee::new(4), TestCommittee::new(4).rotated());
    let mut committees = Committees::new(first.committee.clone()).unwrap();
    committees.install(second.committee.clone()).unwrap();
    let name = |keys: &AuthorityKeys| keys.public().name;
    let own = [name(&first.keys[0]), name(&second.keys[0])];
    let peers = |keys: &[&AuthorityKeys]| {
        let authorities = keys.iter().map(|keys| entry(name(keys))).collect();
        peers(&Endpoints { authorities, ..Endpoints::default() }, &committees, &own)
    };
    let (before, now): (Vec<_>, Vec<_>) = (first.keys.iter().collect(), second.keys.iter().collect());
    let found: Vec<_> = peers(&now).unwrap().iter().map(AuthorityClient::name).collect();
    assert_eq!(found, now[1..].iter().map(|keys| name(keys)).collect::<Vec<_>>());
    assert_eq!(peers(&now[1..]).unwrap().len(), 3);
    let few = peers(&now[..3]).unwrap_err();
    assert!(matches!(few, PeersError::TooFew { known: 2, needed: 3 }), "{few}");
    // Former members may be listed beside, and do not count.
    assert_eq!(peers(&[&before[..], &now].concat()).unwrap().len(), 6);
    let few = peers(&[&before[..], &now[..3]].concat()).unwrap_err();
    assert!(matches!(few, PeersError::TooFew { known: 2, needed: 3 }), "{few}");
    assert!(matches!(peers(&before), Err(PeersError::TooFew { known: 0, .. })));
    assert!(matches!(peers(&[]), Err(PeersError::TooFew { known: 0, .. })));
}

#[tokio::test]
async fn a_former_member_is_no_witness() {
    // The last one has taken the place of the fourth, which still runs and knows nothing of the epoch.
    let fakes = FakeCommittee::start_with(TestCommittee::new(5)).await;
    let keys = &fakes.committee.keys;
    let committee = |epoch, numbers: [usize; 4]| {
        Committee::new(Epoch(epoch), numbers.map(|number| keys[number].public()).to_vec()).unwrap()
    };
    let mut committees = Committees::new(committee(0, [0, 1, 2, 3])).unwrap();
    let own = [keys[0].public().name];
    let status = |committees: &Committees| {
        let keys = vec![Arc::new(keys[0].clone())];
        Arc::new(VoterStatus::new(committees.clone(), keys, &own.as_slice().into()).unwrap())
    };
    let (to, voter_status) = watch::channel(status(&committees));
    let owner = TestAccount::ed25519(0);
    fakes.fund(1, owner.id(), 100, &[1, 2, 3, 4]);
    let domain = fakes.committee.domain;
    let peers = peers(&fakes.endpoints, &committees, &own).unwrap();
    let asker = Arc::new(Asker { peers, domain, voter_status });
    let votes_from = async || asker.votes_from(owner.id(), SequenceNumber(0)).await.map(|from| from.0);
    assert_eq!(votes_from().await, Some(1));

    committees.install(committee(1, [0, 1, 2, 4])).unwrap();
    to.send_replace(status(&committees));
    fakes.authorities[4].lock(&owner.sign(&domain, some_payment(0)));
    fakes.authorities[4].play(Role::Down);
    assert_eq!(votes_from().await, None, "two current members and a former one");
    fakes.authorities[4].play(Role::Honest);
    assert_eq!(votes_from().await, Some(2));
}
