//! What must hold, whatever fails.

use fastpay_replication::{Number, Tag, Ticket};

use super::machine::Machine;
use super::stream::Stream;

/// All frames that were ever visible, in order.
#[derive(Default)]
pub struct Oracle {
    pub visible: Vec<(Number, Tag)>,
}

impl Oracle {
    /// A machine says that the frames up to this one are visible.
    pub fn seen(&mut self, at: &Machine, number: Number, machines: &[Machine], stream: &Stream) {
        let followed: Vec<_> = at.followed().take_while(|frame| frame.0 <= number).collect();
        assert_eq!(followed.last().map(|frame| frame.0), Some(number), "a visible frame is in the chain");
        self.contains_all_visible(&followed[..], self.visible.len().min(followed.len()));
        for (_, tag) in followed.iter().skip(self.visible.len()) {
            let holders = machines.iter().filter(|machine| machine.holds(*tag)).count();
            assert!(holders >= 2, "a visible frame is synced on {holders} machines");
            assert!(stream.acknowledged.contains(tag), "a visible frame was not acknowledged");
        }
        if followed.len() > self.visible.len() {
            self.visible = followed;
        }
    }

    /// A machine begins to own the journal. It may have been replaced before it hears that: then it lacks what its
    /// successors made visible, and must answer nothing.
    pub fn began(&self, at: &Machine) {
        let followed: Vec<_> = at.followed().collect();
        self.contains_all_visible(&followed, self.visible.len().min(followed.len()));
    }

    /// A machine sends answers that rest on the frames up to this one.
    pub fn answered(&self, at: &Machine, number: Number, tickets: &[Ticket]) {
        let followed = at.followed().take_while(|frame| frame.0 <= number).count();
        for ticket in tickets {
            let visible_before = at.waiting.get(ticket).expect("an answer of an earlier run, or a second one");
            assert!(followed >= *visible_before, "a stale owner answers without {visible_before} - {followed} frames");
        }
    }

    /// A segment holds nothing that the stream did not acknowledge.
    pub fn disk(&self, at: &Machine, stream: &Stream) {
        assert!(at.disk.iter().all(|frame| stream.acknowledged.contains(&frame.tag())), "a segment ran ahead");
    }

    fn contains_all_visible(&self, followed: &[(Number, Tag)], count: usize) {
        assert!(followed.len() >= count, "{} of {count} visible frames are lost", count - followed.len().min(count));
        for (visible, followed) in self.visible[..count].iter().zip(followed) {
            assert_eq!(visible, followed, "a visible frame was replaced by another one");
        }
    }
}
