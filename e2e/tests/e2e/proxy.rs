//! A TCP proxy between a program and its Ethereum node, which a test can cut.

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
}

/// A proxy, which listens as long as this value lives.
pub struct Proxy {
    mode: watch::Sender<Mode>,
    cut: Arc<Mutex<usize>>,
    url: String,
    task: tokio::task::JoinHandle<()>,
}

impl Proxy {
    pub async fn start(port: u16, target: &str) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
        let (mode, seen) = watch::channel(Mode::Pass(target.trim_start_matches("http://").to_owned()));
        let cut = Arc::new(Mutex::new(0));
        let task = tokio::spawn(accept(listener, seen, cut.clone()));
        Self { mode, cut, url: format!("http://127.0.0.1:{port}"), task }
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    pub fn set(&self, mode: Mode) {
        self.mode.send_replace(mode);
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

async fn accept(listener: TcpListener, mode: watch::Receiver<Mode>, cut: Arc<Mutex<usize>>) {
    loop {
        let Ok((client, _)) = listener.accept().await else { continue };
        let (mut mode, cut) = (mode.clone(), cut.clone());
        tokio::spawn(async move {
            let now = mode.borrow_and_update().clone();
            let (target, word) = match now {
                Mode::Pass(target) => (target, None),
                Mode::CutAt(target, word) => (target, Some(word)),
                Mode::Cut => return,
            };
            let Ok(server) = TcpStream::connect(target).await else { return };
            tokio::select! {
                () = carry(client, server, word, &cut) => {}
                // Connections made under the old rule end with it.
                _ = mode.changed() => {}
            }
        });
    }
}

async fn carry(mut client: TcpStream, mut server: TcpStream, word: Option<&str>, cut: &Mutex<usize>) {
    let (mut up, mut down) = ([0; 16_384], [0; 16_384]);
    loop {
        tokio::select! {
            read = client.read(&mut up) => {
                let Ok(length @ 1..) = read else { return };
                let said = String::from_utf8_lossy(&up[..length]);
                if word.is_some_and(|word| said.contains(word)) {
                    *cut.lock().unwrap() += 1;
                    return;
                }
                if server.write_all(&up[..length]).await.is_err() { return }
            }
            read = server.read(&mut down) => {
                let Ok(length @ 1..) = read else { return };
                if client.write_all(&down[..length]).await.is_err() { return }
            }
        }
    }
}
