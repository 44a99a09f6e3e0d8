//! Members that the endpoints file does not list.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use fastpay_client::{AuthorityEndpoints, CommitteeClient, Names, Network, NetworkError, NoCertificates};
use fastpay_core::{AuthorityName, Committees, Epoch, MemberEndpoint, SignedEndpoint};
use fastpay_testkit::fake::{FakeAuthority, FakeCommittee, Role, options};
use fastpay_testkit::{TestCommittee, alice, bob, payment};
use tokio::time::Instant;

/// The committee of the next epoch: the first member stays, and all others are new.
fn next_of(first: &TestCommittee) -> TestCommittee {
    let new = first.rotated().keys.into_iter().take(3);
    TestCommittee::of(first.keys.iter().take(1).cloned().chain(new).collect(), first.domain, Epoch(1))
}

fn signed(of: &TestCommittee, member: AuthorityName, number: u64) -> SignedEndpoint {
    let keys = of.keys.iter().find(|keys| keys.public().name == member).unwrap();
    let shards = vec![format!("http://127.0.0.1:{number}")];
    let endpoint = MemberEndpoint { number, shards, http: String::new(), tls_ca: String::new() };
    endpoint.sign(keys, &of.domain).unwrap()
}

/// The numbers of those who said where they are.
fn told(network: &Network) -> BTreeMap<AuthorityName, u64> {
    network.told().iter().map(|signed| (signed.authority, signed.endpoint.number)).collect()
}

/// How many clients there are of an authority.
fn count(network: &Network, name: AuthorityName) -> usize {
    network.authorities().iter().filter(|client| client.name() == name).count()
}

/// Whether the endpoints file lists an authority.
fn is_listed(fakes: &FakeCommittee, name: &AuthorityName) -> bool {
    fakes.endpoints.authorities.iter().any(|entry| entry.name == *name)
}

/// Has the network follow the committee to its next epoch, in which these listed endpoints have new names.
fn follow(network: &Network, next: &TestCommittee, names: Names) {
    let mut committees = network.committees();
    committees.install(next.committee.clone()).unwrap();
    network.adopt(committees, names);
}

async fn find(network: &Network) -> bool {
    network.find_members(Instant::now() + Duration::from_secs(10)).await
}

#[tokio::test]
async fn new_members_are_found_by_their_own_word_alone_and_the_newest_counts() {
    let fakes = FakeCommittee::start().await;
    let (network, first) = (fakes.network(), fakes.committee.clone());
    let next = next_of(&first);
    follow(&network, &next, Names::new());
    let new = network.unreached();
    assert_eq!((new.len(), network.is_all_listed()), (3, false));
    assert!(!find(&network).await, "nobody knows");

    // One of them says what it does not know; another one has missed the newest.
    let forged = SignedEndpoint { authority: new[1], ..signed(&next, new[0], 9) };
    let stranger = first.rotated().rotated();
    let outsider = signed(&stranger, stranger.keys[0].public().name, 9);
    fakes.authorities[0].tell(&[forged.clone(), outsider, signed(&next, new[0], 4)]);
    fakes.authorities[1].tell(&[signed(&next, new[0], 5)]);
    fakes.authorities[2].tell(&[signed(&next, new[2], 7), forged]);
    assert!(find(&network).await);
    assert_eq!(told(&network), [(new[0], 5), (new[2], 7)].into());
    assert_eq!(network.unreached(), [new[1]]);
    assert_eq!([0, 1, 2].map(|number| count(&network, new[number])), [1, 0, 1]);

    // An older one changes nothing, a newer one counts, and neither needs who told it.
    assert!(!network.learn([signed(&next, new[0], 4), signed(&next, new[2], 7)]));
    assert!(network.learn([signed(&next, new[0], 6)]));
    assert_eq!(told(&network), [(new[0], 6), (new[2], 7)].into());
    // Where the file lists a member, it is reached there.
    assert!(!network.learn([signed(&next, first.keys[0].public().name, 99)]));

    // Once it has left for good, its word is forgotten.
    let (third, fourth) = (next.rotated(), next.rotated().rotated());
    follow(&network, &third, Names::new());
    assert_eq!(told(&network).len(), 2);
    assert_eq!(count(&network, new[0]), 0, "no member now");
    follow(&network, &fourth, Names::new());
    assert!(told(&network).is_empty());
}

#[tokio::test]
async fn who_left_does_not_take_the_place_of_who_came() {
    let fakes = FakeCommittee::start().await;
    let (network, first) = (fakes.network(), fakes.committee.clone());
    let next = next_of(&first);
    follow(&network, &next, Names::new());
    let new = network.unreached();
    // All that left say that they are the new ones.
    let left = fakes.endpoints.authorities.iter().map(|entry| entry.name);
    let left = left.filter(|name| next.committee.member(name).is_none());
    let claims: Names = left.zip(new.iter().copied()).collect();
    network.adopt(network.committees(), claims.clone());
    assert!(network.unreached().is_empty(), "nobody contradicts");
    assert!(!network.is_all_found(), "and nothing is signed");
    assert!(network.learn(new.iter().map(|name| signed(&next, *name, 5))));
    assert_eq!((network.authorities().len(), network.names()), (4, claims));
    assert!(new.iter().all(|name| count(&network, *name) == 1));
    assert_eq!(told(&network).len(), 3);
    assert!(network.is_all_found());
}

#[tokio::test]
async fn a_member_that_says_where_it_is_has_no_second_voice_at_an_endpoint_that_claims_its_name() {
    let fakes = FakeCommittee::start().await;
    let (network, next) = (fakes.network(), fakes.committee.rotated());
    fakes.install(next.clone());
    follow(&network, &next, Names::new());
    let name = next.keys[3].public().name;
    assert!(network.learn([signed(&next, name, 5)]));
    // The last one says that it has this name.
    fakes.authorities.iter().for_each(FakeAuthority::rotate);
    network.learn_names(Instant::now() + Duration::from_secs(10)).await;
    assert_eq!(network.names().len(), 3);
    assert_eq!((count(&network, name), network.authorities().len()), (1, 5));
}

#[tokio::test]
async fn a_member_that_the_file_lists_has_no_second_voice_at_an_endpoint_that_claimed_its_name() {
    let fakes = FakeCommittee::start().await;
    let next = next_of(&fakes.committee);
    let member = next.keys.iter().map(|keys| keys.public().name).find(|name| !is_listed(&fakes, name)).unwrap();
    let former = fakes
        .endpoints
        .authorities
        .iter()
        .map(|entry| entry.name)
        .find(|name| next.committee.member(name).is_none())
        .unwrap();
    // The wallet has stored the claim. Its newest file lists the member, too.
    let mut committees = Committees::new(fakes.committee.committee.clone()).unwrap();
    committees.install(next.committee.clone()).unwrap();
    let mut endpoints = fakes.endpoints.clone();
    let shards = vec!["http://127.0.0.1:5".into()];
    endpoints.authorities.push(AuthorityEndpoints { name: member, shards, http: None, tls_ca: None, label: None });
    let network = Network::new(next.domain, committees.clone(), &endpoints).unwrap();
    network.adopt(committees, [(former, member)].into());
    assert_eq!(count(&network, member), 1);
    // Without the one that claims it; in the order of the file.
    assert_eq!((network.authorities().len(), network.authorities()[3].name()), (4, member));
    let answers = network.ask_all(Instant::now() + Duration::from_secs(10), |_| async { Ok(()) }).await;
    assert!(!network.of_members(&answers).contains_key(&former));
    assert_eq!(answers.iter().filter(|(name, _)| *name == member).count(), 1);
}

#[tokio::test]
async fn a_member_that_is_listed_several_times_refuses_once() {
    let fakes = FakeCommittee::start().await;
    let clients = fakes.network().authorities().to_vec();
    let [.., refuses] = &clients[..] else { panic!() };
    let listed: Vec<_> = [refuses; 2].into_iter().chain(&clients).cloned().collect();
    let network = Network::of(fakes.committee.domain, fakes.network().committees(), listed);
    let (refusing, others) = fakes.authorities.split_last().unwrap();
    refusing.play(Role::RefusesCertificates);
    others.iter().for_each(|other| other.play(Role::Slow(Duration::from_millis(200))));
    let order = alice().order(&fakes.committee.domain, payment(alice().account(), bob().account(), 7, 0).into());
    fakes.fund(1, alice().account(), 100, &[0, 1, 2, 3]);
    let client = CommitteeClient::new(network, Arc::new(NoCertificates), options());
    let settled = client.settle(&fakes.committee.certified(&order)).await.unwrap();
    assert_eq!(settled.confirmed.len(), 3);
}

#[tokio::test]
async fn with_fewer_addresses_than_a_quorum_the_newest_file_is_asked_for() {
    let fakes = FakeCommittee::start().await;
    let network = fakes.network();
    assert_eq!(network.check_reach(), Ok(()));
    let grown = fakes.committee.rotated_to(7);
    follow(&network, &grown, Names::new());
    let too_few = |known| Err(NetworkError::TooFewEndpoints { known, size: 7, quorum: 5 });
    assert_eq!(network.check_reach(), too_few(0), "those that left do not count");
    let names = network.unreached();
    let learn = |names: &[AuthorityName]| network.learn(names.iter().map(|name| signed(&grown, *name, 5)));
    assert!(learn(&names[..4]));
    assert_eq!(network.check_reach(), too_few(4));
    assert!(learn(&names));
    assert_eq!((network.check_reach(), network.unreached().len()), (Ok(()), 0));
}

#[tokio::test]
async fn members_that_the_file_lists_under_their_former_names_are_asked_for_the_new_ones() {
    let fakes = FakeCommittee::start().await;
    let (network, next) = (fakes.network(), fakes.committee.rotated());
    fakes.install(next.clone());
    fakes.authorities.iter().for_each(FakeAuthority::rotate);
    follow(&network, &next, Names::new());
    assert_eq!(network.check_reach(), Err(NetworkError::TooFewEndpoints { known: 0, size: 4, quorum: 3 }));
    network.learn_names(Instant::now() + Duration::from_secs(10)).await;
    assert_eq!((network.check_reach(), network.unreached().len()), (Ok(()), 0));
}
