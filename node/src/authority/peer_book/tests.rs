use super::*;
use fastpay_client::ClientOptions;
use fastpay_core::EndpointError;
use fastpay_testkit::TestCommittee;

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

#[test]
fn of_a_member_the_highest_number_counts_and_nobody_elses_signature() {
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
    book.learn([signed(&of, 0, 6, 4)], &committees);
    assert_eq!(book.tell(&committees), [signed(&of, 0, 6, 4)]);
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

#[tokio::test]
async fn the_endpoints_file_comes_first_and_who_moves_is_given_again() {
    let (first, second) = (TestCommittee::new(4), TestCommittee::new(4).rotated());
    let mut committees = Committees::new(first.committee.clone()).unwrap();
    committees.install(second.committee.clone()).unwrap();
    let listed = vec![entry(name(&first, 0), 1), entry(name(&second, 1), 2), entry(name(&second, 3), 9)];
    let book = PeerBook::new(first.domain, file(listed), &[name(&second, 3)]);
    let given = |reader: &mut PeerReader| -> Vec<_> { reader.news().iter().map(|client| client.name()).collect() };
    let (mut reader, mut of_addresses) =
        (book.reader(ClientOptions::default()), book.reader(ClientOptions::default()).once_per_address());
    assert_eq!(given(&mut reader), [name(&first, 0), name(&second, 1)], "all but this one");
    assert_eq!(given(&mut of_addresses), [name(&first, 0), name(&second, 1)]);
    // One that is listed, one under its new name at an address that is listed, this one itself, and a new one.
    let told = [signed(&second, 1, 5, 7), signed(&second, 0, 5, 1), signed(&second, 3, 5, 8), signed(&second, 2, 5, 3)];
    book.learn(told, &committees);
    reader.changed().await;
    assert_eq!(
        given(&mut reader).into_iter().collect::<std::collections::BTreeSet<_>>(),
        [name(&second, 0), name(&second, 2)].into()
    );
    assert_eq!(given(&mut of_addresses), [name(&second, 2)]);
    assert_eq!(given(&mut reader), []);
    book.learn([signed(&second, 2, 6, 4)], &committees);
    assert_eq!((given(&mut reader), given(&mut of_addresses)), (vec![name(&second, 2)], vec![name(&second, 2)]));
}
