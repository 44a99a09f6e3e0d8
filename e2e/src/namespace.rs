//! A Linux namespace with its own mounts or network, created without privileges if the system allows user namespaces.
//! An idle process keeps it open, and others are started in it.

use std::process::{Child, Command, Stdio};

use crate::failure::Failure;
use crate::process::run;

/// The kind of a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Own {
    /// Mounts, and the rights of root over them.
    Mounts,
    /// A network. The caller must have root's rights over its own network.
    Network,
}

/// A namespace. It is removed when this value is dropped and its processes have ended.
#[derive(Debug)]
pub struct Namespace {
    holder: Child,
    own: Own,
}

impl Namespace {
    /// Creates one.
    ///
    /// # Errors
    /// If the system does not permit it, with the message of `unshare`.
    pub fn new(own: Own) -> Result<Self, Failure> {
        let kind: &[&str] = match own {
            Own::Mounts => &["--user", "--map-root-user", "--mount"],
            Own::Network => &["--net"],
        };
        // The shell reports when the namespace exists. Earlier, a process would enter our own namespace.
        let mut command = Command::new("unshare");
        command.args(kind).args(["sh", "-c", "echo there; exec sleep infinity"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut holder = command.spawn().map_err(|error| Failure::Io { path: "unshare".into(), error })?;
        let mut said = [0; 6];
        let there = holder.stdout.as_mut().map(|out| std::io::Read::read_exact(out, &mut said));
        if matches!(there, Some(Ok(()))) {
            return Ok(Self { holder, own });
        }
        let ended = holder.wait_with_output().map_err(Failure::wrong)?;
        Err(Failure::Wrong(String::from_utf8_lossy(&ended.stderr).into_owned()))
    }

    /// The ID of the process that keeps it open.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.holder.id()
    }

    /// The same command, run inside.
    #[must_use]
    pub fn inside(&self, command: &Command) -> Command {
        let mut entered = Command::new("nsenter");
        entered.args(["--target", &self.id().to_string()]);
        match self.own {
            Own::Mounts => entered.args(["--user", "--mount", "--preserve-credentials"]),
            Own::Network => entered.arg("--net"),
        };
        entered.arg("--").arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => entered.env(name, value),
                None => entered.env_remove(name),
            };
        }
        entered
    }

    /// Runs a shell command inside.
    ///
    /// # Errors
    /// If it fails.
    pub fn shell(&self, line: &str) -> Result<String, Failure> {
        let mut command = Command::new("sh");
        command.args(["-c", line]);
        Ok(run(&mut self.inside(&command))?.success()?.out)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}
