//! Free ports, unique among all test programs that run at the same time: whoever needs more than one, or a port before
//! something listens on it, takes it from here.
//!
//! Ports come in aligned blocks below the system's range for outgoing connections. The process that listens on the
//! first port of a block owns the block, so a port stays reserved while a node is down.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU32, Ordering};

const FIRST: u16 = 12_288;
const BLOCK: u16 = 64;
const BLOCKS: u32 = 300;

/// No port is left.
#[derive(Debug, thiserror::Error)]
#[error("no free block of ports was found, or all ports of a block are taken")]
pub struct NoPort;

/// A block of ports, reserved as long as this value lives.
#[derive(Debug)]
pub struct Ports {
    _guard: TcpListener,
    next: u16,
    end: u16,
}

impl Ports {
    /// Takes a free block.
    ///
    /// # Errors
    /// If there is none.
    pub fn take() -> Result<Self, NoPort> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        // Programs that start together begin to search at different places.
        let start = std::process::id().wrapping_mul(7);
        for _ in 0..BLOCKS {
            let block = start.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % BLOCKS;
            let first = FIRST + BLOCK * u16::try_from(block).unwrap_or_default();
            let Ok(guard) = TcpListener::bind(("127.0.0.1", first)) else { continue };
            let is_free = |port| TcpListener::bind(("127.0.0.1", port)).is_ok();
            if (first + 1..first + BLOCK).all(is_free) {
                return Ok(Self { _guard: guard, next: first + 1, end: first + BLOCK });
            }
        }
        Err(NoPort)
    }

    /// Takes `count` consecutive ports, and returns the first.
    ///
    /// # Errors
    /// If the block is used up.
    pub fn next(&mut self, count: u16) -> Result<u16, NoPort> {
        let first = self.next;
        self.next = first.checked_add(count).filter(|end| *end <= self.end).ok_or(NoPort)?;
        Ok(first)
    }
}
