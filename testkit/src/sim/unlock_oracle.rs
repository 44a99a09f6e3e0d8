//! The oracle's invariants of numbers whose owners requested an unlock.

use super::oracle::{Books, Breach, Oracle, Slot, require};

impl Oracle {
    /// Notes an owner's request to unlock a number.
    pub fn asks(&mut self, slot: Slot) {
        self.asked.insert(slot);
    }

    /// Notes a voided number in a final block: no honest authority has executed it or ever will.
    pub fn voided(&mut self, slot: Slot) -> Result<(), Breach> {
        self.void.insert(slot);
        require!(!self.is_executed_anywhere(slot), "#{} is voided, and an honest authority executed it", slot.1);
        Ok(())
    }

    /// Whether an honest authority has executed a number.
    #[must_use]
    pub fn is_executed_anywhere(&self, slot: Slot) -> bool {
        self.books.iter().any(|books| books.has_executed(slot))
    }

    /// Checks a vote to void a number that leaves an authority: the vote must be on its disk.
    pub fn void_vote_leaves(&self, authority: usize, slot: Slot) -> Result<(), Breach> {
        let books = &self.books[authority];
        require!(books.void_voted.contains(&slot), "a void vote of authority {authority} is not on its disk");
        Ok(())
    }

    /// Checks a vote for a certificate that leaves an authority: the certificate must be on its disk.
    pub fn certificate_vote_leaves(&self, authority: usize, slot: Slot) -> Result<(), Breach> {
        let books = &self.books[authority];
        let is_kept = books.seen.contains(&slot) || books.has_executed(slot);
        require!(is_kept, "authority {authority} attests a certificate that is not on its disk");
        Ok(())
    }

    /// Checks a final decision: an authority that has the upheld certificate has executed it.
    pub fn follows(&self, slot: Slot, is_upheld: bool) -> Result<(), Breach> {
        for (authority, books) in self.books.iter().enumerate() {
            let is_left = is_upheld && books.seen.contains(&slot) && !books.has_executed(slot);
            require!(!is_left, "authority {authority} keeps #{}, which is upheld, and does not execute it", slot.1);
        }
        Ok(())
    }

    /// Checks that all honest authorities are past a number.
    pub fn is_over(&self, slot: Slot) -> Result<(), Breach> {
        for (authority, books) in self.books.iter().enumerate() {
            let next = books.sent(slot.0);
            require!(next > slot.1, "authority {authority} is at #{next}, and #{} is decided", slot.1);
        }
        Ok(())
    }
}

impl Books {
    /// Whether it has executed a number.
    #[must_use]
    pub fn has_executed(&self, slot: Slot) -> bool {
        self.executed.contains(&slot)
    }
}
