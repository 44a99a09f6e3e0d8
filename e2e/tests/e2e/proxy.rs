//! A TCP proxy between a program and its Ethereum node, which a test can cut; or before an authority's port, where it lies.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use fastpay_e2e::wait_for;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// The proxy's rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Forwards everything to this address.
    Pass(String),
    /// Forwards nothing, and closes connections at once.
    Cut,
    /// Forwards everything but requests that contain this word, whose connections it closes.
    CutAt(String, &'static str),
    /// Forwards so many requests over HTTP, and then holds the next one without an answer.
    HoldAfter(String, usize),
    /// Forwards everything, and changes the end of each message that the server sends over HTTP/2.
    Lie(String),
}

/// What a connection does with what passes.
#[derive(Clone, Copy)]
enum Rule {
    Pass,
    CutAt(&'static str),
    HoldAfter(usize),
    Lie,
}

/// A proxy, which listens as long as this value lives.
pub struct Proxy {
    mode: watch::Sender<Mode>,
    cut: Arc<Mutex<usize>>,
    /// The requests since the rule was set.
    requests: Arc<Mutex<usize>>,
    url: String,
    task: tokio::task::JoinHandle<()>,
}

impl Proxy {
    pub async fn start(port: u16, target: &str) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
        let (mode, seen) = watch::channel(Mode::Pass(target.trim_start_matches("http://").to_owned()));
        let cut = Arc::new(Mutex::new(0));
        let requests = Arc::new(Mutex::new(0));
        let task = tokio::spawn(accept(listener, seen, (cut.clone(), requests.clone())));
        Self { mode, cut, requests, url: format!("http://127.0.0.1:{port}"), task }
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    pub fn set(&self, mode: Mode) {
        *self.requests.lock().unwrap() = 0;
        self.mode.send_replace(mode);
    }

    /// The address that it forwards to now, if it does.
    fn target(&self) -> String {
        match &*self.mode.borrow() {
            Mode::Pass(target) | Mode::CutAt(target, _) | Mode::HoldAfter(target, _) | Mode::Lie(target) => {
                target.clone()
            }
            Mode::Cut => panic!("the proxy is cut"),
        }
    }

    pub fn lie(&self) {
        self.set(Mode::Lie(self.target()));
    }

    pub fn be_honest(&self) {
        self.set(Mode::Pass(self.target()));
    }

    pub fn hold_after(&self, requests: usize) {
        self.set(Mode::HoldAfter(self.target(), requests));
    }

    /// Whether a request is held now.
    pub fn is_holding(&self) -> bool {
        matches!(&*self.mode.borrow(), Mode::HoldAfter(_, count) if *self.requests.lock().unwrap() > *count)
    }

    pub fn pass(&self, target: &str) {
        self.set(Mode::Pass(target.trim_start_matches("http://").to_owned()));
    }

    pub fn cut_at(&self, target: &str, word: &'static str) {
        self.set(Mode::CutAt(target.trim_start_matches("http://").to_owned(), word));
    }

    /// Waits until a request with the word has been cut.
    pub async fn wait_until_cut(&self) {
        let probe = || {
            let cut = *self.cut.lock().unwrap();
            async move { if cut > 0 { Ok(()) } else { Err("nothing was cut".to_owned()) } }
        };
        wait_for(Duration::from_secs(120), probe).await.unwrap();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

type Counts = (Arc<Mutex<usize>>, Arc<Mutex<usize>>);

async fn accept(listener: TcpListener, mode: watch::Receiver<Mode>, counts: Counts) {
    loop {
        let Ok((client, _)) = listener.accept().await else { continue };
        let (mut mode, counts) = (mode.clone(), counts.clone());
        tokio::spawn(async move {
            let now = mode.borrow_and_update().clone();
            let (target, rule) = match now {
                Mode::Pass(target) => (target, Rule::Pass),
                Mode::CutAt(target, word) => (target, Rule::CutAt(word)),
                Mode::HoldAfter(target, count) => (target, Rule::HoldAfter(count)),
                Mode::Lie(target) => (target, Rule::Lie),
                Mode::Cut => return,
            };
            let Ok(server) = TcpStream::connect(target).await else { return };
            tokio::select! {
                () = carry(client, server, rule, &counts) => {}
                // Connections made under the old rule end with it.
                _ = mode.changed() => {}
            }
        });
    }
}

async fn carry(mut client: TcpStream, mut server: TcpStream, rule: Rule, (cut, requests): &Counts) {
    let (mut up, mut down, mut frames) = ([0; 16_384], [0; 16_384], Frames::default());
    loop {
        tokio::select! {
            read = client.read(&mut up) => {
                let Ok(length @ 1..) = read else { return };
                let said = String::from_utf8_lossy(&up[..length]);
                let count = {
                    let mut requests = requests.lock().unwrap();
                    *requests += said.matches("POST ").count();
                    *requests
                };
                match rule {
                    Rule::CutAt(word) if said.contains(word) => {
                        *cut.lock().unwrap() += 1;
                        return;
                    }
                    Rule::HoldAfter(most) if count > most => std::future::pending().await,
                    _ => {}
                }
                if server.write_all(&up[..length]).await.is_err() { return }
            }
            read = server.read(&mut down) => {
                let Ok(length @ 1..) = read else { return };
                if matches!(rule, Rule::Lie) {
                    frames.change(&mut down[..length]);
                }
                if client.write_all(&down[..length]).await.is_err() { return }
            }
        }
    }
}

/// Where a stream of HTTP/2 frames is.
#[derive(Default)]
struct Frames {
    header: Vec<u8>,
    /// The bytes that are left of the present frame, and whether its end is that of a message.
    left: usize,
    is_message: bool,
}

impl Frames {
    const HEADER_BYTES: usize = 9;
    const DATA: u8 = 0;
    /// What comes before a message of gRPC.
    const PREFIX_BYTES: usize = 5;

    /// Changes the last byte of each message.
    fn change(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            if self.left > 0 {
                self.left -= 1;
                if self.left == 0 && self.is_message {
                    *byte ^= 1;
                }
                continue;
            }
            self.header.push(*byte);
            if self.header.len() == Self::HEADER_BYTES {
                self.left = self.header[..3].iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
                self.is_message = self.header[3] == Self::DATA && self.left > Self::PREFIX_BYTES;
                self.header.clear();
            }
        }
    }
}
