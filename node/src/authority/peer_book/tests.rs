use super::*;
use crate::authority::voter_status::VoterStatus;
use fastpay_client::{AuthorityClient, ClientOptions};
use fastpay_core::EndpointError;
use fastpay_testkit::TestCommittee;
use tokio::time::advance;

fn entry(name: AuthorityName, port: u16) -> AuthorityEndpoints {
    let shards = vec![format!("http://127.0.0.1:{port}")];
    AuthorityEndpoints { name, shards, http: None, tls_ca: None, label: None }
}

fn file(authorities: Vec<AuthorityEndpoints>) -> Option<Endpoints> {
    Some(Endpoints { authorities, ..Endpoints::default() })
}

fn name(of: &TestCommittee, member: usize) -> AuthorityName {
    of.keys[member].public().name
}

fn signed(of: &TestCommittee, member: usize, number: u64, port: u16) -> SignedEndpoint {
    let shards = vec![format!("http://127.0.0.1:{port}")];
    let endpoint = MemberEndpoint { number, shards, http: String::new(), tls_ca: String::new() };
    endpoint.sign(&of.keys[member], &of.domain).unwrap()
}

fn numbers(book: &PeerBook, committees: &Committees) -> BTreeMap<AuthorityName, u64> {
    book.tell(committees).iter().map(|signed| (signed.authority, signed.endpoint.number)).collect()
}

#[tokio::test(start_paused = true)]
async fn of_a_member_the_highest_number_counts_and_nobody_elses_signature() {
    let of = TestCommittee::new(4);
    let committees = Committees::new(of.committee.clone()).unwrap();
    let book = PeerBook::new(of.domain, None, &[]);
    let stranger = signed(&of.rotated(), 0, 5, 1);
    assert_eq!(
        stranger.clone().verify(&of.domain, &committees),
        Err(EndpointError::NotAMember(name(&of.rotated(), 0)))
    );
    let forged = SignedEndpoint { authority: name(&of, 1), ..signed(&of, 2, 9, 1) };
    book.learn([signed(&of, 0, 5, 1), stranger, forged], &committees);
    assert_eq!(numbers(&book, &committees), [(name(&of, 0), 5)].into());
    // An older one, from a peer that missed the news or lies, and an equal one change nothing; a newer one does.
    book.learn([signed(&of, 0, 4, 2), signed(&of, 0, 5, 3)], &committees);
    assert_eq!(book.tell(&committees), [signed(&of, 0, 5, 1)]);
    // But not at once: a member signs as many as it likes.
    assert!(!book.learn([signed(&of, 0, 6, 4)], &committees), "is to be asked for again");
    assert_eq!(book.tell(&committees), [signed(&of, 0, 5, 1)]);
    assert!(book.learn([signed(&of, 0, 5, 1)], &committees));
    advance(MOVES_INTERVAL - Duration::from_millis(1)).await;
    book.learn([signed(&of, 0, 6, 4), signed(&of, 1, 1, 5)], &committees);
    assert_eq!(numbers(&book, &committees), [(name(&of, 0), 5), (name(&of, 1), 1)].into());
    advance(Duration::from_millis(1)).await;
    book.learn([signed(&of, 0, 6, 4), signed(&of, 1, 2, 6)], &committees);
    assert_eq!(numbers(&book, &committees), [(name(&of, 0), 6), (name(&of, 1), 1)].into());
}

#[tokio::test]
async fn an_own_statement_is_signed_anew_only_if_it_says_something_else_and_above_what_was_said_under_that_name() {
    let (first, folder) = (TestCommittee::new(4), tempfile::tempdir().unwrap());
    let second = first.rotated();
    let mut committees = Committees::new(first.committee.clone()).unwrap();
    committees.install(second.committee.clone()).unwrap();
    let names = [name(&first, 0), name(&second, 0)];
    let keys = [&first, &second].map(|of| Arc::new(of.keys[0].clone())).to_vec();
    let open = |port| {
        let listed = file(vec![entry(names[1], port)]);
        PeerBook::open(folder.path(), (first.domain, &committees), listed, &names)
    };
    let own = |book: &PeerBook| {
        let status = VoterStatus::new(committees.clone(), keys.clone(), &names.as_slice().into()).unwrap();
        let (_, status) = watch::channel(Arc::new(status));
        let spread = Spread::new(book.clone(), status.clone(), SpreadTimes::default());
        let signed = spread.sign_own(&status.borrow()).unwrap();
        book.keep(&committees);
        signed
    };
    let said = own(&open(7));
    assert_eq!((said.authority, said.endpoint.number > 1_000_000_000), (names[1], true));
    // After a restart, even if a clock went back, the one that was told is told again.
    assert_eq!(own(&open(7)), said);
    // An earlier run with another copy of the folder has said something else, and whoever stole the old key as well.
    let book = open(7);
    let elsewhere = signed(&second, 0, said.endpoint.number + 1_000, 8);
    book.learn([elsewhere.clone(), signed(&first, 0, u64::MAX, 8)], &committees);
    let again = own(&book);
    assert_eq!(again.endpoint.number, elsewhere.endpoint.number + 1);
    assert_eq!(again.endpoint.shards, said.endpoint.shards);
    // Once its line of the file has changed, it says so.
    let moved = own(&open(9));
    assert!(moved.endpoint.number > again.endpoint.number, "{moved:?}");
    assert_eq!(moved.endpoint.shards, ["http://127.0.0.1:9"]);
}

#[test]
fn what_members_said_outlives_a_restart_and_is_forgotten_once_they_have_left() {
    let (first, folder) = (TestCommittee::new(4), tempfile::tempdir().unwrap());
    let (second, third) = (first.rotated(), first.rotated().rotated());
    let mut committees = Committees::new(first.committee.clone()).unwrap();
    let open = |committees: &Committees| PeerBook::open(folder.path(), (first.domain, committees), None, &[]);
    let book = open(&committees);
    book.learn([signed(&first, 0, 5, 1)], &committees);
    assert!(!folder.path().join(FILE).exists());
    book.keep(&committees);
    drop(book);
    committees.install(second.committee.clone()).unwrap();
    let book = open(&committees);
    book.learn([signed(&second, 1, 7, 1)], &committees);
    // The current members come first: an answer may not have room for all.
    assert_eq!(book.tell(&committees), [signed(&second, 1, 7, 1), signed(&first, 0, 5, 1)]);
    book.keep(&committees);
    committees.install(third.committee.clone()).unwrap();
    assert_eq!(book.tell(&committees), [signed(&second, 1, 7, 1)]);
    book.keep(&committees);
    assert!(!std::fs::read_to_string(folder.path().join(FILE)).unwrap().contains("\"5\""));
    // A damaged file costs no more than what it says.
    std::fs::write(folder.path().join(FILE), "{").unwrap();
    assert_eq!(open(&committees).tell(&committees), []);
}

#[tokio::test(start_paused = true)]
async fn the_endpoints_file_comes_first_and_who_moves_is_given_again() {
    let (first, second) = (TestCommittee::new(4), TestCommittee::new(4).rotated());
    let mut committees = Committees::new(first.committee.clone()).unwrap();
    committees.install(second.committee.clone()).unwrap();
    let listed = vec![entry(name(&first, 0), 1), entry(name(&second, 1), 2), entry(name(&second, 3), 9)];
    let book = PeerBook::new(first.domain, file(listed), &[name(&second, 3)]);
    let (mut reader, mut of_addresses) =
        (book.reader(ClientOptions::default()), book.reader(ClientOptions::default()).once_per_address());
    // A list, and who was put into it last.
    let (mut all, mut some) = (Vec::new(), Vec::new());
    let update = |reader: &mut PeerReader, all: &mut Vec<AuthorityName>| {
        let mut given = Vec::new();
        let make = |client: AuthorityClient| {
            given.push(client.name());
            client.name()
        };
        reader.update(all, |name| *name, make);
        given
    };
    let of_file = vec![name(&first, 0), name(&second, 1)];
    assert_eq!(update(&mut reader, &mut all), of_file, "all but this one");
    assert_eq!(update(&mut of_addresses, &mut some), of_file);
    // One that is listed, one under its new name at an address that is listed, this one itself, and a new one.
    let told = [signed(&second, 1, 5, 7), signed(&second, 0, 5, 1), signed(&second, 3, 5, 8), signed(&second, 2, 5, 3)];
    book.learn(told, &committees);
    reader.changed().await;
    assert_eq!(
        update(&mut reader, &mut all).into_iter().collect::<std::collections::BTreeSet<_>>(),
        [name(&second, 0), name(&second, 2)].into()
    );
    assert_eq!(update(&mut of_addresses, &mut some), [name(&second, 2)]);
    assert_eq!(update(&mut reader, &mut all), []);
    let places = all.clone();
    // One that says the same again, as after a restart, has not moved.
    advance(MOVES_INTERVAL).await;
    book.learn([signed(&second, 0, 6, 1), signed(&second, 2, 6, 4)], &committees);
    let moved = vec![name(&second, 2)];
    assert_eq!((update(&mut reader, &mut all), update(&mut of_addresses, &mut some)), (moved.clone(), moved));
    assert_eq!((&all, some.len()), (&places, 3), "in its place");
    // Who has left is no longer asked, unless the file lists it.
    let third = second.rotated();
    committees.install(third.committee.clone()).unwrap();
    book.learn([signed(&third, 1, 7, 5)], &committees);
    committees.install(third.rotated().committee.clone()).unwrap();
    book.keep(&committees);
    reader.changed().await;
    assert_eq!(update(&mut reader, &mut all), [name(&third, 1)]);
    assert_eq!(all, [of_file, vec![name(&third, 1)]].concat());
}
