//! One HTTP request: for health, readiness, metrics and the JSON API.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The time limit of an answer, also on a busy machine. A frozen node gives none.
const PATIENCE: Duration = Duration::from_secs(20);
const ANSWER_BYTES_MAX: u64 = 1 << 20;

/// The status and the body of `GET path` at `http://host:port`.
///
/// # Errors
/// A description of the failure.
pub async fn http_get(address: &str, path: &str) -> Result<(u16, String), String> {
    let host = address.trim_start_matches("http://");
    let exchange = async {
        let mut stream = TcpStream::connect(host).await?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer).await?;
        std::io::Result::Ok(answer)
    };
    let answer = tokio::time::timeout(PATIENCE, exchange).await.map_err(|_| format!("{address} does not answer"))?;
    let answer = answer.map_err(|error| format!("{address}: {error}"))?;
    let text = String::from_utf8_lossy(&answer);
    let (head, body) = text.split_once("\r\n\r\n").ok_or_else(|| format!("{address}: not an HTTP answer"))?;
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    Ok((status.ok_or_else(|| format!("{address}: no status"))?, body.to_owned()))
}
