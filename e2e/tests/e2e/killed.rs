//! Operators' commands that are killed on their way, and repeated.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};

use fastpay_e2e::{Authority, PATIENCE, Place, Program, program, wait_for};

use crate::proxy::Proxy;

/// How a command ended that was not killed.
pub struct Ended {
    pub code: Option<i32>,
    pub err: String,
    /// How often it was killed before.
    pub kills: usize,
}

/// Runs a command that reads the chain through `chain`. It is killed while its first request waits, its second, its
/// fourth, its eighth …, until one run ends by itself. What it writes to `out` is there as a whole or not at all.
pub async fn killed_on_its_way(chain: &Proxy, arguments: &[OsString], config: &Path, out: Option<&Path>) -> Ended {
    for kills in 0.. {
        chain.hold_after((1 << kills) - 1);
        let mut command = Command::new(program("fastpay-node").unwrap());
        command.args(arguments).arg("--config").arg(config).stdin(Stdio::null());
        let mut running = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let is_held = wait_for(PATIENCE, || {
            let found = match (running.try_wait().unwrap(), chain.is_holding()) {
                (Some(_), _) => Ok(false),
                (None, true) => Ok(true),
                (None, false) => Err("the command goes on".to_owned()),
            };
            async move { found }
        });
        if !is_held.await.unwrap() {
            chain.be_honest();
            let ended = running.wait_with_output().unwrap();
            let err = String::from_utf8_lossy(&ended.stderr).into_owned();
            return Ended { code: ended.status.code(), err, kills };
        }
        running.kill().unwrap();
        running.wait().unwrap();
        if let Some(written) = out.and_then(|out| std::fs::read(out).ok()) {
            serde_json::from_slice::<serde_json::Value>(&written).unwrap();
        }
    }
    unreachable!("a command makes a number of requests")
}

/// Runs a command that waits, until it has said that it waits for `reason`, and kills it then.
pub async fn killed_while_it_waits(place: &Place, authority: &Authority, command: &[&str], reason: &str) {
    let mut watching = Command::new(program("fastpay-node").unwrap());
    watching.args(command).arg("--config").arg(authority.config());
    let name = format!("{}-{}", command[0], authority.name());
    let mut running = Program::start(&name, &mut watching, &place.log(&name)).unwrap();
    wait_for(PATIENCE, || {
        running.check().unwrap();
        let said = running.log_text();
        let found = if said.contains(reason) { Ok(()) } else { Err(said) };
        async move { found }
    })
    .await
    .unwrap();
    running.kill();
}
