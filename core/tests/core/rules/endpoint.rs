//! What a member says of where it can be reached.

use fastpay_core::{
    Committees, ENDPOINT_BYTES_MAX, ENDPOINT_SHARDS_MAX, EndpointError, MemberEndpoint, SignedEndpoint,
};
use fastpay_testkit::{TestCommittee, test_domain};

fn endpoint() -> MemberEndpoint {
    MemberEndpoint { number: 7, shards: vec!["http://a:1".into()], http: String::new(), tls_ca: String::new() }
}

#[test]
fn an_endpoint_counts_if_a_member_of_this_or_the_last_committee_signed_it() {
    let (first, domain) = (TestCommittee::new(4), test_domain());
    let (second, third) = (first.rotated(), first.rotated().rotated());
    let mut committees = Committees::new(first.committee.clone()).unwrap();
    let signed = |of: &TestCommittee| endpoint().sign(&of.keys[0], &domain).unwrap();
    let check = |signed: SignedEndpoint, committees: &Committees| signed.verify(&domain, committees).map(drop);
    let name = |of: &TestCommittee| of.keys[0].public().name;
    assert_eq!(check(signed(&first), &committees), Ok(()));
    assert_eq!(check(signed(&second), &committees), Err(EndpointError::NotAMember(name(&second))));
    committees.install(second.committee.clone()).unwrap();
    committees.install(third.committee.clone()).unwrap();
    assert_eq!([&second, &third].map(|of| check(signed(of), &committees)), [Ok(()), Ok(())]);
    assert_eq!(check(signed(&first), &committees), Err(EndpointError::NotAMember(name(&first))));

    let by_another = SignedEndpoint { authority: third.keys[1].public().name, ..signed(&third) };
    assert_eq!(check(by_another, &committees), Err(EndpointError::Signature(third.keys[1].public().name)));
    let elsewhere = endpoint().sign(&third.keys[0], &fastpay_core::Domain::new(5, domain.contract())).unwrap();
    assert_eq!(check(elsewhere, &committees), Err(EndpointError::Signature(name(&third))));
}

#[test]
fn an_endpoint_that_nobody_could_use_is_neither_signed_nor_accepted() {
    let (committee, domain) = (TestCommittee::new(4), test_domain());
    let committees = Committees::new(committee.committee.clone()).unwrap();
    let good = endpoint().sign(&committee.keys[0], &domain).unwrap();
    let check = |alter: &dyn Fn(&mut MemberEndpoint), is_good: bool| {
        let mut of = endpoint();
        alter(&mut of);
        let signed = of.clone().sign(&committee.keys[0], &domain);
        assert_eq!(signed.is_ok(), is_good, "{of:?}");
        let shown = signed.unwrap_or(SignedEndpoint { endpoint: of, ..good.clone() });
        let form = matches!(shown.verify(&domain, &committees), Err(EndpointError::Form(_)));
        assert_ne!(form, is_good);
    };
    check(&|of| of.shards.clear(), false);
    check(&|of| of.shards = vec!["http://a:1".into(); ENDPOINT_SHARDS_MAX], true);
    check(&|of| of.shards = vec!["http://a:1".into(); ENDPOINT_SHARDS_MAX + 1], false);
    check(&|of| of.shards[0] = "a:1".into(), false);
    for without_host in ["http://", "https://", "http://:1", "https:///a", "http://?a", "http://#a", "http//a"] {
        check(&|of| of.shards[0] = without_host.into(), false);
        check(&|of| of.http = without_host.into(), false);
    }
    check(&|of| of.http = "https://a".into(), true);
    check(&|of| of.http = "javascript:1".into(), false);
    check(&|of| of.tls_ca = "x".repeat(ENDPOINT_BYTES_MAX - 10), true);
    check(&|of| of.tls_ca = "x".repeat(ENDPOINT_BYTES_MAX - 9), false);
    // The errors name the limits.
    assert_eq!((ENDPOINT_BYTES_MAX, ENDPOINT_SHARDS_MAX), (3_072, 256));
    let too_long = MemberEndpoint { tls_ca: "x".repeat(ENDPOINT_BYTES_MAX), ..endpoint() };
    assert!(too_long.check().unwrap_err().to_string().contains("3,072 bytes"));
    let without_shards = MemberEndpoint { shards: Vec::new(), ..endpoint() };
    assert!(without_shards.check().unwrap_err().to_string().contains("1 to 256 shards"));
}
