//! Chooses the nonce of a sender's next transaction.

use std::collections::BTreeSet;

/// The nonces of one key that its sender has assigned.
#[derive(Debug, Default)]
pub(crate) struct Nonces {
    /// The lowest nonce above all assigned ones.
    next: u64,
    /// Lower nonces whose transaction was given up. Transactions above them wait until another one uses them.
    free: BTreeSet<u64>,
}

impl Nonces {
    /// Notes that a transaction has this nonce.
    pub(crate) fn adopt(&mut self, nonce: u64) {
        self.next = self.next.max(nonce.saturating_add(1));
        self.free.remove(&nonce);
    }

    /// Notes that the transaction with this nonce is never sent again.
    pub(crate) fn release(&mut self, nonce: u64) {
        self.next = self.next.max(nonce.saturating_add(1));
        self.free.insert(nonce);
    }

    /// The nonce of the next transaction. `mined` is the sender's number of transactions in the chain, `waiting` the
    /// same including the node's pool. [`Nonces::adopt`] notes the assignment.
    pub(crate) fn choose(&mut self, mined: u64, waiting: u64) -> u64 {
        // A nonce in the chain is used, whoever sent the transaction.
        self.free = self.free.split_off(&mined);
        self.free.first().copied().unwrap_or(self.next.max(waiting))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nonce_is_given_away_once() {
        let mut nonces = Nonces::default();
        assert_eq!(nonces.choose(3, 5), 5);
        assert_eq!(nonces.choose(3, 5), 5, "nothing was sent");
        nonces.adopt(5);
        assert_eq!(nonces.choose(3, 5), 6, "a node that lags");
        assert_eq!(nonces.choose(3, 9), 9);
    }

    #[test]
    fn a_released_nonce_comes_first() {
        let mut nonces = Nonces::default();
        nonces.adopt(7);
        for nonce in [6, 4] {
            nonces.release(nonce);
        }
        assert_eq!(nonces.choose(4, 4), 4);
        nonces.adopt(4);
        assert_eq!(nonces.choose(4, 5), 6);
        assert_eq!(nonces.choose(7, 8), 8, "somebody else used it");
        // After a restart, nothing else is known.
        let mut nonces = Nonces::default();
        nonces.release(4);
        assert_eq!(nonces.choose(4, 4), 4);
        nonces.adopt(4);
        assert_eq!(nonces.choose(4, 4), 5);
    }
}
