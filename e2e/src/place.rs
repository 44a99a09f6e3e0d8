//! The locations of the repository and the programs, and a folder for each network.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::failure::Failure;

/// The repository's root.
pub(crate) fn root() -> &'static Path {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    ROOT.get_or_init(|| {
        let own = Path::new(env!("CARGO_MANIFEST_DIR"));
        own.parent().unwrap_or(own).to_owned()
    })
}

/// A program of this workspace: beside the running one, or for a test one folder above it.
///
/// # Errors
/// If it was not built.
pub fn program(name: &str) -> Result<PathBuf, Failure> {
    let own = std::env::current_exe().map_err(|error| Failure::Io { path: name.into(), error })?;
    let mut folder = own.parent().unwrap_or(Path::new("."));
    if folder.ends_with("deps") {
        folder = folder.parent().unwrap_or(folder);
    }
    let path = folder.join(name);
    if path.is_file() { Ok(path) } else { Err(Failure::Missing(path)) }
}

/// A tool of Foundry: the binary from this platform's package, if there is one. Killing the launcher would leave the
/// tool running.
pub(crate) fn foundry(name: &str) -> Result<PathBuf, Failure> {
    let packages = std::fs::read_dir(root().join("node_modules/@foundry-rs")).into_iter().flatten().flatten();
    let prefix = format!("{name}-");
    let ours = packages.filter(|package| package.file_name().to_string_lossy().starts_with(&prefix));
    let native = ours.map(|package| package.path().join("bin").join(name)).find(|path| path.is_file());
    let launcher = root().join("node_modules/.bin").join(name);
    native.or_else(|| launcher.exists().then(|| launcher.clone())).ok_or(Failure::Missing(launcher))
}

/// The folder of one network, under `target/`: configurations, keys, data and logs.
#[derive(Debug)]
pub struct Place {
    folder: PathBuf,
    keep: bool,
}

impl Place {
    /// An empty folder with a fixed name, which is kept when this value is dropped.
    ///
    /// # Errors
    /// If the old folder cannot be removed or the new one not created.
    pub fn fixed(name: &str) -> Result<Self, Failure> {
        let folder = root().join("target").join(name);
        if folder.exists() {
            std::fs::remove_dir_all(&folder).map_err(|error| Failure::Io { path: folder.clone(), error })?;
        }
        Self { folder, keep: true }.made()
    }

    /// An empty folder that is removed when this value is dropped, except after a panic, which keeps its logs.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn temporary(name: &str) -> Result<Self, Failure> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = root().join("target/e2e").join(format!("{name}-{}-{number}", std::process::id()));
        Self { folder, keep: false }.made()
    }

    fn made(self) -> Result<Self, Failure> {
        let logs = self.folder.join("logs");
        std::fs::create_dir_all(&logs).map_err(|error| Failure::Io { path: logs, error })?;
        Ok(self)
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A path in it.
    #[must_use]
    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.folder.join(name)
    }

    /// The log file of the process `name`.
    #[must_use]
    pub fn log(&self, name: &str) -> PathBuf {
        self.folder.join("logs").join(name).with_extension("log")
    }

    /// Writes a file in it.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, name: impl AsRef<Path>, content: impl AsRef<[u8]>) -> Result<PathBuf, Failure> {
        let path = self.path(name);
        std::fs::write(&path, content).map_err(|error| Failure::Io { path: path.clone(), error })?;
        Ok(path)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !self.keep && !std::thread::panicking() {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }
}
