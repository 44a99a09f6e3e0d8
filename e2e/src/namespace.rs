//! A corner of the system with its own mounts or its own network, made without privileges where the system lets
//! users have namespaces: a process that only waits holds it, and others are started in it.

use std::process::{Child, Command, Stdio};

use crate::failure::Failure;
use crate::process::run;

/// What a namespace has of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Own {
    /// Mounts, and the rights of root over them.
    Mounts,
    /// A network. The caller must have the rights of root over its own.
    Network,
}

/// A namespace, which is gone with this value and the processes in it.
#[derive(Debug)]
pub struct Namespace {
    holder: Child,
    own: Own,
}

impl Namespace {
    /// Makes one.
    ///
    /// # Errors
    /// If the system does not permit it: the words of `unshare`.
    pub fn new(own: Own) -> Result<Self, Failure> {
        let kind: &[&str] = match own {
            Own::Mounts => &["--user", "--map-root-user", "--mount"],
            Own::Network => &["--net"],
        };
        // Says when it is there: before, whoever enters would enter ours.
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

    /// The number of the process that holds it.
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

    /// Runs a line of shell inside, which must succeed.
    ///
    /// # Errors
    /// If it does not.
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
