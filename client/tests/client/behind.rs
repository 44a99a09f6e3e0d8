//! An honest authority that lags is brought up to date, although a faster one shows certificates that it must refuse.
//!
//! The fast one votes for nothing, so the order needs the vote of the one that lags.

use std::sync::Arc;
use std::time::Duration;

use fastpay_client::{CommitteeClient, Network, NoCertificates};
use fastpay_core::{AccountKey, SequenceNumber, TransactionIndex, UnlockEvent, UnlockEventKind, VerifiedOrder};
use fastpay_testkit::fake::{FakeCommittee, Role, options};
use fastpay_testkit::{alice, bob, carol, payment};

async fn is_certified(network: &Network, order: &VerifiedOrder) {
    let client = CommitteeClient::new(network.clone(), Arc::new(NoCertificates), options());
    assert_eq!(client.certify(order).await.unwrap().digest(), order.digest());
}

/// The first authority answers before all others, and votes for nothing.
fn lie(fakes: &FakeCommittee, slow: Role) {
    fakes.authorities[0].play(Role::BadVote);
    fakes.authorities[1..3].iter().for_each(|other| other.play(slow));
}

#[tokio::test]
async fn a_listed_payment_that_it_must_refuse_keeps_no_other_from_it() {
    use UnlockEventKind::{Requested, Voided};
    for events in [&[Requested(0)][..], &[Requested(0), Voided]] {
        let fakes = FakeCommittee::start().await;
        fakes.fund(1, alice().account(), 100, &[0, 1, 2, 3]);
        let pays = |from: &AccountKey, to: &AccountKey, amount| {
            from.order(&fakes.committee.domain, payment(from.account(), to.account(), amount, 0).into())
        };
        let (account, sequence) = (carol().account(), SequenceNumber(0));
        for (after, kind) in (1..).zip(events) {
            let (after, index) = (TransactionIndex(after), TransactionIndex(after + 1));
            let event = UnlockEvent { after, index, account, sequence, kind: *kind };
            fakes.authorities.iter().for_each(|authority| authority.follow_unlock(&event));
        }
        fakes.authorities[0].show(&fakes.committee.certificate(&pays(&carol(), &bob(), 5)), true);
        let income = fakes.committee.certificate(&pays(&alice(), &bob(), 7));
        fakes.authorities[1..3].iter().for_each(|authority| authority.confirm(&income));
        lie(&fakes, Role::Slow(Duration::from_millis(200)));
        is_certified(&fakes.network(), &fakes.committee.verified(&pays(&bob(), &alice(), 7))).await;
    }
}

#[tokio::test]
async fn a_certificate_that_retired_keys_made_hides_no_other_of_its_number_from_it() {
    let fakes = FakeCommittee::start().await;
    fakes.fund(1, alice().account(), 100, &[0, 1, 2, 3]);
    let network = fakes.network();
    let pays = |amount, number| {
        let pays = payment(alice().account(), bob().account(), amount, number);
        alice().order(&fakes.committee.domain, pays.into())
    };
    let forged = fakes.committee.certificate(&pays(9, 0));
    let next = fakes.replace_long_ago(&network);
    let executed = next.certificate(&pays(7, 0));
    fakes.authorities[..3].iter().for_each(|authority| authority.confirm(&executed));
    fakes.authorities[0].show(&forged, false);
    lie(&fakes, Role::SlowCertificates(Duration::from_millis(200)));
    is_certified(&network, &next.verified(&pays(1, 1))).await;
}
