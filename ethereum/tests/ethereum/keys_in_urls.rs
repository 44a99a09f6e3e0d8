//! Providers put keys into the URLs of their nodes. They are in no error, whoever repeats them.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};

use alloy::primitives::Address;
use fastpay_ethereum::{Primary, PrimaryConfig, PrimaryError, served_chain};
use url::Url;

const PASSWORD: &str = "pass-of-the-user";
const PATH_KEY: &str = "0123456789abcdef0123456789abcdef";
const QUERY_KEY: &str = "another%20key-of-the-query";
const DECODED: &str = "another key-of-the-query";

fn url_at(address: SocketAddr) -> Url {
    format!("http://user:{PASSWORD}@{address}/v3/{PATH_KEY}?apikey={QUERY_KEY}").parse().unwrap()
}

/// A node whose every answer has this status, and a body that repeats what was asked and by whom.
fn repeating_node(status: &'static str, body: fn(&str) -> String) -> Url {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = url_at(listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut request = Vec::new();
            let mut chunk = [0; 4096];
            // The request of these tests is short: it ends with its JSON.
            while !request.ends_with(b"}") {
                match stream.read(&mut chunk) {
                    Ok(length @ 1..) => request.extend(&chunk[..length]),
                    _ => break,
                }
            }
            let request = String::from_utf8_lossy(&request).into_owned();
            let target = request.split(' ').nth(1).unwrap_or_default();
            let body = body(&format!("{target} with {PATH_KEY}, {QUERY_KEY}, {DECODED}, {PASSWORD}"));
            let head = format!("HTTP/1.1 {status}\r\nContent-Type: application/json\r\nConnection: close\r\n");
            let _ = write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len());
        }
    });
    url
}

/// What an attempt to use the node says, to people and to programmers.
async fn said_of(url: &Url) -> (PrimaryError, String) {
    let config = PrimaryConfig::new(vec![url.clone()], 1, Address::repeat_byte(1));
    let primary = Primary::connect_lazily(config.clone()).unwrap();
    let error = Primary::connect(config).await.unwrap_err();
    let asked = served_chain(url).await.unwrap_err();
    let said = format!("{error} {error:?} {asked} {asked:?} {primary:?}");
    (error, said)
}

#[track_caller]
fn tells_no_key(said: &str, url: &Url) {
    for key in [PASSWORD, PATH_KEY, QUERY_KEY, DECODED] {
        assert!(!said.contains(key), "{key} in {said}");
    }
    let address = format!("{}:{}", url.host().unwrap(), url.port().unwrap());
    assert!(said.contains(&address), "who was asked is said: {said}");
}

#[tokio::test]
async fn a_node_that_does_not_answer_is_named_without_its_key() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = url_at(listener.local_addr().unwrap());
    drop(listener);
    let (error, said) = said_of(&url).await;
    assert!(matches!(error, PrimaryError::Unreachable { .. }), "{said}");
    tells_no_key(&said, &url);
}

#[tokio::test]
async fn a_node_that_repeats_its_key_is_quoted_without_it() {
    let refusal = |text: &str| {
        format!("{{\"jsonrpc\":\"2.0\",\"id\":0,\"error\":{{\"code\":-32001,\"message\":\"no access at {text}\"}}}}")
    };
    let page = |text: &str| format!("no access at {text}");
    for (url, expected) in [
        (repeating_node("403 Forbidden", page), "HTTP error 403"),
        (repeating_node("200 OK", page), "unreadable answer"),
        (repeating_node("200 OK", refusal), "refused eth_chainId"),
    ] {
        let (_, said) = said_of(&url).await;
        assert!(said.contains(expected) && said.contains("no access at …"), "{said}");
        tells_no_key(&said, &url);
    }
}
