//! A proxy between a test and a real Ethereum node that can change answers, refuse requests, or become unreachable.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use url::Url;

type Lie = Box<dyn FnMut(&str, &Value, &mut Value) + Send>;

#[derive(Default)]
struct Behaviour {
    lie: Option<Lie>,
    away: bool,
}

/// Forwards JSON-RPC to a real node, and lets a function of the test change each answer.
pub struct LyingNode {
    url: Url,
    behaviour: Arc<Mutex<Behaviour>>,
}

impl LyingNode {
    /// A proxy of `upstream` that changes nothing at first. Its threads end with the test's process.
    #[must_use]
    pub fn start(upstream: &Url) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
        let behaviour = Arc::new(Mutex::new(Behaviour::default()));
        let upstream = format!("{}:{}", upstream.host_str().unwrap(), upstream.port().unwrap());
        let shared = behaviour.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (shared, upstream) = (shared.clone(), upstream.clone());
                std::thread::spawn(move || serve(stream, &upstream, &shared));
            }
        });
        Self { url, behaviour }
    }

    /// The address on which the proxy listens.
    #[must_use]
    pub fn url(&self) -> Url {
        self.url.clone()
    }

    /// From now on `lie(method, params, answer)` may change each whole answer: `answer["result"]`, or an
    /// `answer["error"]` in its place.
    pub fn lie(&self, lie: impl FnMut(&str, &Value, &mut Value) + Send + 'static) {
        self.behaviour.lock().unwrap().lie = Some(Box::new(lie));
    }

    /// From now on `change` may change the logs, and nothing else.
    pub fn lie_about_logs(&self, mut change: impl FnMut(&mut Vec<Value>) + Send + 'static) {
        self.lie(move |method, _, answer| {
            if let ("eth_getLogs", Some(logs)) = (method, answer["result"].as_array_mut()) {
                change(logs);
            }
        });
    }

    /// From now on the proxy answers every request for `method` with this error.
    pub fn refuse(&self, method: &'static str, code: i64, message: &'static str) {
        self.lie(move |asked, _, answer| {
            if asked == method {
                answer.as_object_mut().unwrap().remove("result");
                answer["error"] = json!({ "code": code, "message": message });
            }
        });
    }

    /// From now on the proxy changes nothing.
    pub fn repent(&self) {
        self.behaviour.lock().unwrap().lie = None;
    }

    /// Starts or stops closing every connection without an answer.
    pub fn go_away(&self, away: bool) {
        self.behaviour.lock().unwrap().away = away;
    }
}

fn serve(mut stream: TcpStream, upstream: &str, behaviour: &Mutex<Behaviour>) -> Option<()> {
    let request = read_body(&mut stream)?;
    if behaviour.lock().unwrap().away {
        return None;
    }
    let mut forward = TcpStream::connect(upstream).ok()?;
    let head = "POST / HTTP/1.1\r\nHost: node\r\nContent-Type: application/json\r\nConnection: close\r\n";
    write!(forward, "{head}Content-Length: {}\r\n\r\n", request.len()).ok()?;
    forward.write_all(&request).ok()?;
    let mut answer: Value = serde_json::from_slice(&read_body(&mut forward)?).ok()?;
    let request: Value = serde_json::from_slice(&request).ok()?;
    if let Some(lie) = &mut behaviour.lock().unwrap().lie {
        lie(request["method"].as_str()?, &request["params"], &mut answer);
    }
    let answer = answer.to_string();
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n";
    write!(stream, "{head}Content-Length: {}\r\n\r\n{answer}", answer.len()).ok()
}

/// Reads the body of an HTTP message with a Content-Length.
fn read_body(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut reader = BufReader::new(stream);
    let mut length = None;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        if line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok();
        }
    }
    let mut body = vec![0; length?];
    reader.read_exact(&mut body).ok()?;
    Some(body)
}
