//! The file of endpoints.

use std::path::PathBuf;

use fastpay_client::{AuthorityClient, AuthorityEndpoints, ClientError, ClientOptions, Endpoints, EndpointsError};
use fastpay_core::{AuthorityName, Digest};

fn read(text: &str) -> Result<Endpoints, EndpointsError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("endpoints.json");
    std::fs::write(&path, text).unwrap();
    Endpoints::read(&path)
}

fn authority(byte: u8) -> AuthorityEndpoints {
    AuthorityEndpoints {
        name: AuthorityName([byte; 32]),
        shards: vec!["http://127.0.0.1:9000".into(), "http://127.0.0.1:9001".into()],
        http: Some("http://127.0.0.1:9100".into()),
        tls_ca: None,
        label: None,
    }
}

fn text(authorities: Vec<AuthorityEndpoints>) -> String {
    serde_json::to_string(&Endpoints { authorities, ..Endpoints::default() }).unwrap()
}

#[test]
fn what_is_written_is_read() {
    let tls = AuthorityEndpoints { tls_ca: Some("ca.pem".into()), http: None, ..authority(2) };
    let labelled = AuthorityEndpoints { label: Some("Münster".into()), ..authority(1) };
    let written = Endpoints {
        authorities: vec![labelled, tls],
        relayers: vec!["https://relayer.example".into()],
        explorer: Some("https://wallet.example/".into()),
    };
    let page = written.transfer_page(Digest::repeat_byte(7)).unwrap();
    assert_eq!(page, format!("https://wallet.example/explore/transfer/0x{}", "07".repeat(32)));
    assert_eq!(read(&serde_json::to_string(&written).unwrap()), Ok(written));
}

#[test]
fn wrong_files_are_refused_with_the_reason() {
    let missing = Endpoints::read(&PathBuf::from("/nowhere/endpoints.json")).unwrap_err();
    assert!(matches!(&missing, EndpointsError::Unreadable { .. }));
    assert!(missing.to_string().contains("/nowhere/endpoints.json"));
    for (wrong, reason) in [
        (String::new(), "EOF"),
        ("{}".into(), "missing field `authorities`"),
        (text(vec![authority(1)]).replace("shards", "shard"), "unknown field `shard`"),
        (text(vec![authority(1)]).replace(&"01".repeat(32), "01"), "64 hexadecimal digits"),
    ] {
        let error = read(&wrong).unwrap_err();
        assert!(matches!(error, EndpointsError::Malformed { .. }) && error.to_string().contains(reason), "{error}");
    }
    let nobody = read(&text(Vec::new())).unwrap_err();
    assert!(
        matches!(nobody, EndpointsError::Nobody(_)) && nobody.to_string().contains("lists no authority"),
        "{nobody}"
    );
    let twice = text(vec![authority(1), authority(2), authority(1)]);
    assert_eq!(read(&twice), Err(EndpointsError::Repeated(AuthorityName([1; 32]))));
    let relayed = |relayers: Vec<String>| {
        serde_json::to_string(&Endpoints { authorities: vec![authority(1)], relayers, ..Endpoints::default() }).unwrap()
    };
    let ftp = "ftp://relayer.example".to_owned();
    assert_eq!(read(&relayed(vec![ftp.clone()])), Err(EndpointsError::RelayerUrl(ftp)));
    assert_eq!(read(&relayed(vec!["https://relayer.example".into(); 17])), Err(EndpointsError::Relayers));
    for label in [String::new(), "x".repeat(41), "a\nb".into()] {
        let odd = text(vec![AuthorityEndpoints { label: Some(label), ..authority(1) }]);
        assert_eq!(read(&odd), Err(EndpointsError::Label(AuthorityName([1; 32]))));
    }
    let script =
        Endpoints { authorities: vec![authority(1)], explorer: Some("javascript:1".into()), ..Endpoints::default() };
    let script = serde_json::to_string(&script).unwrap();
    assert_eq!(read(&script), Err(EndpointsError::ExplorerUrl("javascript:1".into())));
    for shards in [Vec::new(), vec!["http://127.0.0.1:9000".to_owned(); 1_025]] {
        let odd = text(vec![AuthorityEndpoints { shards, ..authority(3) }]);
        assert_eq!(read(&odd), Err(EndpointsError::Shards(AuthorityName([3; 32]))));
    }
}

#[tokio::test]
async fn addresses_that_cannot_be_used_are_refused_when_a_client_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let no_ca = folder.path().join("none.pem");
    for (change, reason) in [
        (AuthorityEndpoints { shards: vec![], ..authority(1) }, "no shard"),
        (AuthorityEndpoints { shards: vec!["127.0.0.1:9000".into()], ..authority(1) }, "http://"),
        (AuthorityEndpoints { shards: vec!["ftp://host:1".into()], ..authority(1) }, "http://"),
        (AuthorityEndpoints { shards: vec!["http://a b".into()], ..authority(1) }, "invalid"),
        (AuthorityEndpoints { shards: vec!["https://host:1".into()], ..authority(1) }, "tlsCa"),
        (AuthorityEndpoints { tls_ca: Some(no_ca), ..authority(1) }, "none.pem"),
    ] {
        let error = AuthorityClient::new(&change, ClientOptions::default()).unwrap_err();
        assert!(matches!(error, ClientError::Address { .. }) && !error.is_retryable(), "{error:?}");
        assert!(error.to_string().contains(reason), "{error}");
    }
    let client = AuthorityClient::new(&authority(1), ClientOptions::default()).unwrap();
    assert_eq!((client.shards().len(), client.name()), (2, AuthorityName([1; 32])));
}
