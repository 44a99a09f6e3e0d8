//! Reading certificates in bulk, of authorities that show few at a time, none, others, or are of an older release.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fastpay_client::{AuthorityClient, ClientError, ClientOptions, Network, ShardClient};
use fastpay_core::{AccountId, Certificate, Committees, SequenceNumber};
use fastpay_rpc::{PAGE_ENTRIES_MAX, PRUNED_CHECKPOINT_KEY, PRUNED_FIRST_KEY, TransferName, proto};
use fastpay_testkit::{TestAccount, TestCommittee};
use tokio::time::Instant;
use tonic::Status;

use crate::server::{Certificates, Server};
use crate::values::some_certificate;

const PATIENCE: Duration = Duration::from_secs(60);

fn shard(server: &Server) -> ShardClient {
    let options = ClientOptions { connect_timeout: PATIENCE, request_timeout: PATIENCE };
    ShardClient::new(&server.url(), None, options).unwrap()
}

fn names(count: u64) -> Vec<TransferName> {
    (0..count).map(|number| (TestAccount::numbered(0).id(), SequenceNumber(number))).collect()
}

/// Shows what it is asked for, `at_once` at a time, save where `shows` replaces it.
fn lister(at_once: usize, shows: impl Fn(u64) -> Option<Certificate> + Send + Sync + 'static) -> Certificates {
    Arc::new(move |request| {
        assert!(request.names.len() <= PAGE_ENTRIES_MAX as usize);
        let looked_up = request.names.iter().take(at_once);
        let found = looked_up.clone().filter_map(|name| shows(name.sequence));
        let certificates = found.map(|certificate| (&certificate).into()).collect();
        Ok(proto::CertificatesResponse { certificates, looked_up: looked_up.count() as u32 })
    })
}

#[tokio::test]
async fn pages_are_read_until_every_name_was_looked_up() {
    let honest = Server::showing(lister(7, |number| (number != 120).then(|| some_certificate(number)))).await;
    let name = TestCommittee::new(4).committee.members()[0].name;
    let authority = AuthorityClient::of(name, vec![shard(&honest)]).unwrap();
    let found = authority.certificates(&names(130)).await.unwrap();
    let expected: Vec<_> = (0..130).filter(|number| *number != 120).map(some_certificate).collect();
    assert_eq!(found, expected);
    assert_eq!(authority.certificates(&[]).await, Ok(Vec::new()));
}

#[tokio::test]
async fn a_pruned_certificate_hides_no_other() {
    // A page ends before a name that is pruned, and begins with an error where the first one is.
    let kept = |account: &[u8], sequence| (*account == TestAccount::numbered(0).id().0).then_some(sequence >= 3);
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let server = Server::showing(Arc::new(move |request| {
        count.fetch_add(1, Ordering::Relaxed);
        let is_kept = |name: &&proto::TransferName| kept(&name.sender, name.sequence) != Some(false);
        let looked_up: Vec<_> = request.names.iter().take_while(is_kept).collect();
        if looked_up.is_empty() {
            let mut status = Status::out_of_range("it is pruned");
            status.metadata_mut().insert(PRUNED_FIRST_KEY, 3.into());
            status.metadata_mut().insert(PRUNED_CHECKPOINT_KEY, 1.into());
            return Err(status);
        }
        let found = looked_up.iter().filter(|name| kept(&name.sender, name.sequence) == Some(true));
        let certificates = found.map(|name| (&some_certificate(name.sequence)).into()).collect();
        Ok(proto::CertificatesResponse { certificates, looked_up: looked_up.len() as u32 })
    }))
    .await;
    let name = TestCommittee::new(4).committee.members()[0].name;
    let authority = AuthorityClient::of(name, vec![shard(&server)]).unwrap();
    let unknown = (AccountId([9; 32]), SequenceNumber(0));
    let asked_for: Vec<_> = [unknown].into_iter().chain(names(6)).chain(names(5)).collect();
    let found = authority.certificates(&asked_for).await.unwrap();
    assert_eq!(found, [3, 4, 5, 3, 4].map(some_certificate));
    assert_eq!(asked.load(Ordering::Relaxed), 5, "all that are pruned of an account are stepped over at once");
}

#[tokio::test]
async fn an_answer_about_no_name_or_more_names_than_asked_is_refused() {
    for (certificates, looked_up) in [(0, 0), (0, 3), (2, 1)] {
        let server = Server::showing(Arc::new(move |_| {
            let certificates = (0..certificates).map(|number| (&some_certificate(number)).into()).collect();
            Ok(proto::CertificatesResponse { certificates, looked_up })
        }))
        .await;
        let error = shard(&server).certificates(&names(2)).await.unwrap_err();
        assert!(matches!(error, ClientError::Malformed(_)), "{certificates} {looked_up}: {error:?}");
    }
}

#[tokio::test]
async fn liars_old_releases_and_silence_leave_the_search_to_the_next_authority() {
    let committee = TestCommittee::new(4);
    // Another number's certificate; none at all; votes of too few; and the honest one last.
    let cut = |number| Certificate { votes: vec![], ..some_certificate(number) };
    let servers = [
        Server::showing(lister(100, |number| Some(some_certificate(number + 1_000)))).await,
        Server::showing(Arc::new(|_| Err(Status::unimplemented("an older release")))).await,
        Server::showing(lister(100, move |number| Some(cut(number)))).await,
        Server::showing(lister(2, |number| (number < 5).then(|| some_certificate(number)))).await,
    ];
    let members = committee.committee.members().iter();
    let clients = members.zip(&servers).map(|(member, server)| AuthorityClient::of(member.name, vec![shard(server)]));
    let clients = clients.collect::<Result<Vec<_>, _>>().unwrap();
    let committees = Committees::new(committee.committee.clone()).unwrap();
    let network = Network::of(committee.domain, committees, clients);
    let found = network.find_certificates(names(6), None, Instant::now() + PATIENCE).await;
    let expected: BTreeMap<TransferName, Certificate> =
        names(5).into_iter().map(|name| (name, some_certificate(name.1.0))).collect();
    let found: BTreeMap<_, _> = found.into_iter().map(|(name, found)| (name, found.into_certificate())).collect();
    assert_eq!(found, expected);
    let nobody = network.find_certificates([(AccountId([9; 32]), SequenceNumber(0))], None, Instant::now() + PATIENCE);
    assert_eq!(nobody.await.len(), 0);
}
