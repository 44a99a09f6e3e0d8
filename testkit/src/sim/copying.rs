//! A copy of an authority's disk and folder, which comes back later between two of its processes.

use std::path::Path;
use std::sync::Arc;

use fastpay_node::authority::voter_status::VoterStatus;
use tempfile::TempDir;
use tokio::sync::watch;

use super::live_shard::ShardDisk;
use super::oracle::Books;
use super::process::{Keeper, memory_folder};
use super::world::lock;

/// An authority's disk between two of its processes.
pub(super) struct Copy {
    disks: Vec<ShardDisk>,
    /// The small files.
    folder: TempDir,
    voter_status: Arc<VoterStatus>,
    /// The oracle's records of it.
    books: Books,
}

impl Keeper {
    /// Between two processes, an operator may copy the disk or restore such a copy.
    pub(super) fn bring_back_a_copy(&mut self) {
        let may_be = self.world.plan.is_restored && self.authority + 1 == self.world.plan.honest();
        // Its Ethereum nodes may lag. So that it knows up to which epoch it may have voted, where that matters, none begins
        // meanwhile.
        let may_rotate = self.world.plan.hand_over.is_some() && self.world.chain.rotates();
        if !may_be || may_rotate || self.world.is_calm() || !self.world.dice.chance(400) {
            return;
        }
        if self.copy.is_none() { self.copy() } else { self.bring_back() }
    }

    /// Copies the disk and the folder.
    pub(super) fn copy(&mut self) {
        self.world.trace.note("copied", format_args!("a{}", self.authority));
        let disks = self.disks.iter().map(|disk| lock(disk).copy()).collect();
        let folder = memory_folder();
        copy_files(&self.data(), &folder.path().join("data"));
        let books = self.world.oracle().books(self.authority).clone();
        self.copy = Some(Copy { disks, folder, voter_status: self.voter_status.borrow().clone(), books });
    }

    /// Brings the copy back, if there is one.
    pub(super) fn bring_back(&mut self) {
        let Some(Copy { disks, folder, voter_status, books }) = self.copy.take() else { return };
        self.world.trace.note("restored", format_args!("a{}", self.authority));
        for (disk, copy) in self.disks.iter().zip(disks) {
            *lock(disk) = copy;
        }
        self.folder.1 = None;
        std::fs::remove_dir_all(self.data()).expect("it is there");
        copy_files(&folder.path().join("data"), &self.data());
        self.voter_status = watch::Sender::new(voter_status).subscribe();
        self.world.check(|oracle| {
            oracle.restored(self.authority, books);
            Ok(())
        });
    }
}

/// A copy as `cp` makes it.
fn copy_files(from: &Path, to: &Path) {
    std::fs::create_dir(to).expect("the copy is new");
    for entry in std::fs::read_dir(from).expect("the folder is there") {
        let path = entry.expect("it can be read").path();
        let name = path.file_name().expect("an entry has a name");
        if path.is_dir() {
            copy_files(&path, &to.join(name));
        } else {
            std::fs::copy(&path, to.join(name)).expect("there is room");
        }
    }
}
