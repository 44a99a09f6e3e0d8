//! A standby: it follows the stream, receipts to the owner, and takes over when it is told to, or after silence.

use super::{Action, Message, RETRY_INTERVAL, Replica, Role};
use crate::identity::{Millis, Number};

pub(super) struct Standby {
    /// How long the owner was silent while the stream answered.
    silence: Millis,
    /// When the stream last answered that there is nothing new.
    answered: Millis,
    /// When the last receipt was sent.
    receipted: Millis,
}

impl Standby {
    pub(super) fn new(now: Millis) -> Self {
        Self { silence: Millis(0), answered: now, receipted: now }
    }

    /// A frame arrived.
    pub(super) fn heard(&mut self) {
        self.silence = Millis(0);
    }

    /// The stream answers that there is nothing new. A pause in which it did not answer says nothing about the owner.
    fn silent(&mut self, now: Millis) {
        let pause = now.since(self.answered);
        self.answered = now;
        if pause <= RETRY_INTERVAL {
            self.silence.0 = self.silence.0.saturating_add(pause.0);
        }
    }
}

impl Replica {
    pub(super) fn tick_standby(&mut self, now: Millis) {
        let Role::Standby(standby) = &self.role else { return };
        if now.since(standby.receipted) >= RETRY_INTERVAL {
            self.send_receipt(now);
        }
        self.read(now);
    }

    /// Tells the owner what is synced here.
    pub(super) fn send_receipt(&mut self, now: Millis) {
        let (owner, end) = (self.chain.owner(), self.stored);
        if let Role::Standby(standby) = &mut self.role {
            standby.receipted = now;
        }
        if owner != self.me && end.number() > Number(0) {
            let message = Message::Receipt { number: end.number(), tag: end.tag() };
            self.actions.push(Action::Send { to: owner, message });
        }
    }

    /// Everything in the stream is judged, and nothing that follows on the chain is missing.
    pub(super) fn caught_up(&mut self, now: Millis) {
        let Role::Standby(standby) = &mut self.role else { return };
        standby.silent(now);
        let silent = self.automatic.is_some_and(|after| standby.silence >= after);
        let wanted = self.wants_takeover || (silent && self.chain.number() > Number(0));
        if wanted && !self.chain.is_sealed() {
            self.begin(now);
        }
    }
}
