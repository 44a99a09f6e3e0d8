//! Processes: started, watched, killed, and never left behind.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::failure::Failure;

/// The number of log lines that an error shows.
const LOG_LINES: usize = 25;

/// A running process, which is killed when this value is dropped.
#[derive(Debug)]
pub struct Program {
    name: String,
    child: Child,
    log: PathBuf,
}

/// A command that has ended.
#[derive(Clone, Debug)]
pub struct Finished {
    /// The command line.
    pub command: String,
    /// Its exit status.
    pub status: ExitStatus,
    /// Its standard output.
    pub out: String,
    /// Its standard error.
    pub err: String,
}

impl Finished {
    /// The same value if it succeeded.
    ///
    /// # Errors
    /// [`Failure::Command`].
    pub fn success(self) -> Result<Self, Failure> {
        if self.status.success() {
            return Ok(self);
        }
        let output = format!("{}{}", self.out, self.err);
        Err(Failure::Command { command: self.command, status: self.status.to_string(), output })
    }
}

fn show(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let arguments = command.get_args().map(|argument| format!(" {}", argument.to_string_lossy()));
    program + &arguments.collect::<String>()
}

/// A developer's exported variables must not affect these processes.
fn isolate(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        let ours = ["FASTPAY_", "OTEL_"].iter().any(|prefix| name.to_string_lossy().starts_with(prefix));
        if ours && !command.get_envs().any(|(set, _)| set == name) {
            command.env_remove(name);
        }
    }
}

/// Runs a command to its end.
///
/// # Errors
/// If it cannot be started. A failure of the command is part of the result.
pub fn run(command: &mut Command) -> Result<Finished, Failure> {
    isolate(command);
    let shown = show(command);
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| Failure::Io { path: command.get_program().into(), error })?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok(Finished { command: shown, status: output.status, out: text(&output.stdout), err: text(&output.stderr) })
}

impl Program {
    /// Starts a process whose output is appended to `log`.
    ///
    /// # Errors
    /// If the log cannot be opened or the program not started.
    pub fn start(name: &str, command: &mut Command, log: &Path) -> Result<Self, Failure> {
        let io = |error| Failure::Io { path: log.into(), error };
        let file = OpenOptions::new().create(true).append(true).open(log).map_err(io)?;
        let same: File = file.try_clone().map_err(io)?;
        isolate(command);
        let started = command.stdin(Stdio::null()).stdout(file).stderr(same).spawn();
        let child = started.map_err(|error| Failure::Io { path: command.get_program().into(), error })?;
        Ok(Self { name: name.to_owned(), child, log: log.to_owned() })
    }

    /// The process ID.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Its exit status, if it has ended.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Checks that the process is still running.
    ///
    /// # Errors
    /// [`Failure::Ended`].
    pub fn check(&mut self) -> Result<(), Failure> {
        match self.ended() {
            None => Ok(()),
            Some(status) => {
                let (name, log) = (self.name.clone(), self.log_tail());
                Err(Failure::Ended { name, status: status.to_string(), log })
            }
        }
    }

    /// The end of its log.
    #[must_use]
    pub fn log_tail(&self) -> String {
        let text = self.log_text();
        let lines: Vec<_> = text.lines().collect();
        lines.get(lines.len().saturating_sub(LOG_LINES)..).unwrap_or_default().join("\n")
    }

    /// Its log of all its runs.
    #[must_use]
    pub fn log_text(&self) -> String {
        std::fs::read(&self.log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }

    /// Kills it at once, as `kill -9` does, and waits until it has ended.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Sends it a signal by name, such as `TERM`, `STOP` or `CONT`.
    pub fn signal(&self, signal: &str) {
        let command = format!("kill -{signal} {}", self.id());
        let _ = Command::new("sh").args(["-c", &command]).stderr(Stdio::null()).status();
    }

    /// Sends SIGTERM, and kills the process if it does not end.
    ///
    /// # Errors
    /// If it had to be killed.
    pub fn stop(&mut self, patience: Duration) -> Result<ExitStatus, Failure> {
        self.signal("TERM");
        let until = Instant::now() + patience;
        loop {
            if let Some(status) = self.ended() {
                return Ok(status);
            }
            if Instant::now() >= until {
                self.kill();
                return Err(Failure::TooLate { patience, last: format!("{} does not end at SIGTERM", self.name) });
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.kill();
    }
}
