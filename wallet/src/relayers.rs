//! Asks the relayers of the endpoints file over HTTP, and has one of them submit an owner's request to the contract
//! (`POST /v1/unlocks`).

use std::time::Duration;

use alloy::primitives::Bytes;
use fastpay_core::{AccountId, SequenceNumber};
use reqwest::redirect::Policy;
use reqwest::{Client, Response};
use serde::Deserialize;
use serde_json::json;
use tokio::time::timeout;

use crate::error::WalletError;
use crate::wallet::Wallet;

/// The maximum time for an answer: a relayer asks chain and authorities first.
const PATIENCE: Duration = Duration::from_secs(60);
/// The maximum length of an answer: an entry of an asset has about a hundred bytes.
const ANSWER_BYTES_MAX: usize = 256 << 10;

/// Why a relayer does not submit a request. Other fields are ignored.
#[derive(Deserialize)]
struct Problem {
    code: String,
    detail: String,
}

impl Wallet {
    /// The addresses of the relayers, and a client for them.
    ///
    /// # Errors
    /// If the endpoints file cannot be read.
    pub(crate) fn relayers(&self) -> Result<(Vec<String>, Client), WalletError> {
        let endpoints = self.endpoints()?;
        let client = Client::builder().redirect(Policy::none()).build();
        let client = client.map_err(|error| WalletError::Relayers(error.to_string()))?;
        Ok((endpoints.relayers, client))
    }

    /// Has the first relayer that agrees submit and pay for the request to unlock a number.
    ///
    /// # Errors
    /// [`WalletError::Relayers`] with the answer of each.
    pub(crate) async fn have_requested(
        &self,
        account: AccountId,
        sequence: SequenceNumber,
        authorization: Vec<u8>,
    ) -> Result<(), WalletError> {
        let (urls, client) = self.relayers()?;
        let authorization = Bytes::from(authorization);
        let body = json!({ "account": account, "sequence": sequence.0.to_string(), "authorization": authorization });
        let mut refusals = Vec::new();
        for url in urls {
            match timeout(PATIENCE, request(&client, &url, body.to_string())).await {
                Ok(Ok(())) => return Ok(()),
                Ok(Err(refusal)) => refusals.push(format!("{url}: {refusal}")),
                Err(_) => refusals.push(format!("{url}: no answer")),
            }
        }
        let none = "the endpoints file lists no relayer".to_owned();
        Err(WalletError::Relayers(if refusals.is_empty() { none } else { refusals.join("; ") }))
    }
}

async fn request(client: &Client, url: &str, body: String) -> Result<(), String> {
    let failed = |error: reqwest::Error| error.without_url().to_string();
    let url = format!("{}/v1/unlocks", url.trim_end_matches('/'));
    let sending = client.post(url).header("content-type", "application/json").body(body).send();
    let response = sending.await.map_err(failed)?;
    let status = response.status();
    if status.is_success() {
        return Ok(());
    }
    let answer = read(response).await?;
    Err(match serde_json::from_slice(&answer) {
        Ok(Problem { code, detail }) => format!("{detail} ({code})"),
        Err(_) => format!("it answers {status}"),
    })
}

/// Reads a relayer's answer, unless it is too long.
pub(crate) async fn read(mut response: Response) -> Result<Vec<u8>, String> {
    let mut answer = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| error.without_url().to_string())? {
        if answer.len().saturating_add(chunk.len()) > ANSWER_BYTES_MAX {
            return Err("its answer is too long".into());
        }
        answer.extend_from_slice(&chunk);
    }
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    /// A relayer that gives this answer once, and returns the request.
    async fn relayer(status: &'static str, body: &'static str) -> (String, tokio::task::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let asked = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut asked = vec![0; 4_096];
            let mut length = 0;
            while !asked[..length].ends_with(b"}") {
                length += stream.read(&mut asked[length..]).await.unwrap();
            }
            let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
            stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
            String::from_utf8_lossy(&asked[..length]).into_owned()
        });
        (url, asked)
    }

    #[tokio::test]
    async fn a_relayer_takes_a_request_or_says_why_not() {
        let problem = r#"{"code":"budget-spent","detail":"come back tomorrow","title":"t"}"#;
        for (status, body, expected) in [
            ("202 Accepted", r#"{"state":"sent"}"#, Ok(())),
            ("429 Too Many Requests", problem, Err("come back tomorrow (budget-spent)")),
            ("404 Not Found", "", Err("it answers 404 Not Found")),
            ("302 Found", "", Err("it answers 302 Found")),
        ] {
            let (url, asked) = relayer(status, body).await;
            let answer = request(&Client::builder().redirect(Policy::none()).build().unwrap(), &url, "{}".into()).await;
            assert_eq!(answer, expected.map_err(str::to_owned));
            let asked = asked.await.unwrap().to_lowercase();
            assert!(asked.starts_with("post /v1/unlocks http/1.1\r\n"), "{asked}");
            assert!(asked.contains("content-type: application/json\r\n"), "{asked}");
        }
    }
}
