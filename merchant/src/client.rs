//! Calls the running service, which alone has the database.

use std::net::SocketAddr;
use std::time::Duration;

use fastpay_merchant::config::Home;
use reqwest::{Method, Response, Url, header};
use serde_json::Value;

use crate::error::CommandError;

/// The time-out of a request: the service is on the same machine, or near.
const PATIENCE: Duration = Duration::from_secs(10);

/// A client of the service of a folder.
pub struct Service {
    address: SocketAddr,
    authorization: String,
    client: reqwest::Client,
}

impl Service {
    pub fn of(home: &Home) -> Result<Self, CommandError> {
        let (address, token) = (home.config()?.listen, home.token()?);
        let client = reqwest::Client::builder().timeout(PATIENCE).no_proxy().build();
        let client = client.map_err(|_| CommandError::Away(address))?;
        Ok(Self { address, authorization: format!("Bearer {}", *token), client })
    }

    /// Sends `GET` to a path below `/v1` with these parameters, and returns the answer.
    pub async fn get(&self, path: &[&str], query: &[(&str, Option<String>)]) -> Result<Value, CommandError> {
        let mut url = self.url(path)?;
        for (name, value) in query {
            if let Some(value) = value {
                url.query_pairs_mut().append_pair(name, value);
            }
        }
        self.json(self.send(Method::GET, url, None).await?).await
    }

    /// Sends a document by `POST`, and returns the answer.
    pub async fn post(&self, path: &[&str], body: &Value) -> Result<Value, CommandError> {
        self.json(self.send(Method::POST, self.url(path)?, Some(body)).await?).await
    }

    /// Reads a table: all its pages under one header line.
    pub async fn table(&self, path: &[&str]) -> Result<String, CommandError> {
        let mut table = String::new();
        let mut next = Some(self.url(path)?);
        while let Some(url) = next {
            let answer = self.send(Method::GET, url.clone(), None).await?;
            let link = answer.headers().get(header::LINK).and_then(|value| value.to_str().ok());
            let link = link.and_then(|value| value.strip_prefix('<')?.strip_suffix(">; rel=\"next\""));
            next = link.and_then(|link| url.join(link).ok());
            let page = answer.text().await.map_err(|_| self.away())?;
            let rows = page.split_once('\n').map_or("", |(_, rows)| rows);
            table.push_str(if table.is_empty() { &page } else { rows });
        }
        Ok(table)
    }

    fn url(&self, path: &[&str]) -> Result<Url, CommandError> {
        let mut url: Url = format!("http://{}/v1/", self.address).parse().map_err(|_| self.away())?;
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        Ok(url)
    }

    async fn send(&self, method: Method, url: Url, body: Option<&Value>) -> Result<Response, CommandError> {
        let mut request = self.client.request(method, url).header(header::AUTHORIZATION, &self.authorization);
        if let Some(body) = body {
            request = request.header(header::CONTENT_TYPE, "application/json").body(body.to_string());
        }
        let answer = request.send().await.map_err(|_| self.away())?;
        if answer.status().is_success() {
            return Ok(answer);
        }
        let problem = self.json(answer).await.unwrap_or_default();
        let text = |name: &str| problem.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        Err(CommandError::Refused { code: text("code"), detail: text("detail"), action: text("action") })
    }

    async fn json(&self, answer: Response) -> Result<Value, CommandError> {
        let text = answer.text().await.map_err(|_| self.away())?;
        serde_json::from_str(&text).map_err(|_| self.away())
    }

    fn away(&self) -> CommandError {
        CommandError::Away(self.address)
    }
}
