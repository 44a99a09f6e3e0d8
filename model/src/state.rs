//! One account, one sequence number, two orders for it that its owner signed, and all that is said and done about them.
//!
//! The network is the adversary. Every signature ever given stays in its hands: it delivers a certificate to anybody,
//! at any time, or never. Byzantine members are no part of the state. They are a number that counts as votes for
//! everything.

use crate::setting::Setting;

/// At most so many honest authorities, over all epochs.
pub const AUTHORITIES: usize = 6;
/// At most two rotations.
pub const EPOCHS: usize = 3;
/// The contract emits each of the events at most once, but `CommitteeInstalled`.
const EVENTS: usize = 4 + EPOCHS - 1;

/// One of the two orders. Both are valid and have the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Order {
    /// The first.
    A,
    /// The second.
    B,
}

impl Order {
    /// Both.
    pub const BOTH: [Order; 2] = [Order::A, Order::B];

    /// The one that conflicts with it.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Order::A => Order::B,
            Order::B => Order::A,
        }
    }
}

/// A set of the two orders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Orders(u8);

impl Orders {
    /// Adds an order.
    pub fn insert(&mut self, order: Order) {
        self.0 |= 1 << order as u8;
    }

    /// Whether it is in the set.
    pub fn contains(self, order: Order) -> bool {
        self.0 & (1 << order as u8) != 0
    }

    /// Both sets together.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// What is in both.
    #[must_use]
    pub fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The first of them.
    pub fn first(self) -> Option<Order> {
        Order::BOTH.into_iter().find(|order| self.contains(*order))
    }

    /// Whether both are in it.
    pub fn are_both(self) -> bool {
        self.0 == 3
    }

    /// With the orders' names exchanged.
    #[must_use]
    pub fn exchanged(self) -> Self {
        Self(self.0 >> 1 | (self.0 & 1) << 1)
    }
}

impl From<Option<Order>> for Orders {
    fn from(order: Option<Order>) -> Self {
        let mut orders = Self::default();
        order.into_iter().for_each(|order| orders.insert(order));
        orders
    }
}

/// How an authority is done with the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Done {
    /// It executed the order.
    Executed(Order),
    /// It applied `SequenceVoided`.
    Voided,
}

impl Done {
    /// With the orders' names exchanged.
    #[must_use]
    pub fn exchanged(self) -> Self {
        match self {
            Done::Executed(order) => Done::Executed(order.other()),
            Done::Voided => Done::Voided,
        }
    }
}

/// A checkpoint, in what it says of the number. It states all that was executed below V and all events up to D.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Checkpoint {
    /// The number is below V, and this became of it. D does not matter to it any more.
    Below(Done),
    /// The number is not below V, and D is so many events: the state has the request and the outcome among them.
    Beyond(u8),
}

/// An event of the contract's one order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Event {
    /// `UnlockRequested`. The clock starts here.
    Requested,
    /// `SequenceUpheld`.
    Upheld(Order),
    /// `SequenceVoided`.
    Voided,
    /// `Redeemed`: the order paid on the contract, if it is a redemption.
    Paid(Order),
    /// `CommitteeInstalled`, of the next epoch. Where the checkpoint that it names covers the number: how it was done.
    Installed(Option<Done>),
}

/// The VoidVotes that an authority gave in an epoch. It gives the second only where it would give the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum VoidVotes {
    /// None.
    #[default]
    None,
    /// The one with `unanimous`.
    Unanimous,
    /// Also the one without, which counts in the quorum path.
    Both,
}

/// A Closing's statement about the number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Closing {
    /// The orders that its author has a lock on: its own, or both where it was contested.
    pub locks: Orders,
    /// The order whose certificate comes with it: executed, or Seen.
    pub certificate: Option<Order>,
    /// The executed order that the checkpoint which it names covers, and that checkpoint's proof: its author has no
    /// certificate of it.
    pub covered: Option<(Order, u8)>,
    /// How much of the order its author had read.
    pub read: u8,
}

/// The durable state and the signatures of an honest authority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Authority {
    /// So many events of the contract's order it has applied.
    pub read: u8,
    /// t_f: the chain time at which it read the request.
    pub read_at: u8,
    /// The epoch that it has taken up.
    pub epoch: u8,
    /// The order that it voted for, or inherited as a lock. Both: contested.
    pub lock: Orders,
    /// A certificate that it stored and did not execute.
    pub seen: Option<Order>,
    /// It stored that on a view so old that the certificate may not have counted any more.
    pub seen_stale: bool,
    /// It refused a certificate and did not store it.
    pub refused: bool,
    /// How it is done with the number.
    pub done: Option<Done>,
    /// The epoch that it had taken up then.
    pub done_in: u8,
    /// So many events it had applied then.
    pub done_at: u8,
    /// A checkpoint covers the number, by the vote or the installation of this epoch. So it forgot the certificate, or
    /// never had it.
    pub base: Option<u8>,
    /// A rebase stepped over so many events without what they say. Only mutants do.
    pub skipped: u8,
    /// A rebase lost the record that it signed VoidVotes. Only mutants do.
    pub lost_void_votes: bool,
    /// The orders that it voted for, by epoch.
    pub votes: [Orders; EPOCHS],
    /// Its VoidVotes, by epoch.
    pub void_votes: [VoidVotes; EPOCHS],
    /// Its Closings, by epoch.
    pub closings: [Option<Closing>; EPOCHS - 1],
    /// The epochs that it has joined.
    pub joined: [bool; EPOCHS],
    /// It is gone for good.
    pub left: bool,
    /// Its folder was restored from a copy that has nothing of the number.
    pub restored: bool,
    /// The order that it had executed and reported before it was restored.
    pub forgotten: Option<Order>,
}

impl Authority {
    /// The order that it executed.
    pub fn executed(&self) -> Option<Order> {
        match self.done {
            Some(Done::Executed(order)) => Some(order),
            _ => None,
        }
    }

    /// Whether it can show the order's certificate to others.
    pub fn holds(&self, order: Order) -> bool {
        !self.left && (self.done == Some(Done::Executed(order)) && self.base.is_none() || self.seen == Some(order))
    }
}

/// Everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct State {
    /// The honest ones. A setting says which of them are members of which epoch.
    pub authorities: [Authority; AUTHORITIES],
    events: [Option<Event>; EVENTS],
    /// So many events are final.
    pub final_events: u8,
    /// The time since the request. It ends at the setting's horizon.
    pub now: u8,
    /// The time of the newest final block.
    pub final_time: u8,
    /// So long an honest authority had a certificate to uphold, and a final request to do it with.
    pub held: u8,
}

impl State {
    /// Nothing has happened.
    pub fn new() -> Self {
        let authorities = [Authority::default(); AUTHORITIES];
        Self { authorities, events: [None; EVENTS], final_events: 0, now: 0, final_time: 0, held: 0 }
    }

    /// The contract's order.
    pub fn events(&self) -> impl Iterator<Item = Event> + '_ {
        self.events.iter().map_while(|event| *event)
    }

    /// The contract emits an event.
    pub fn emit(&mut self, event: Event) {
        let place = self.events().count();
        self.events[place] = Some(event);
    }

    /// Exchanges the orders' names in the events.
    pub fn exchange_events(&mut self) {
        for event in self.events.iter_mut().flatten() {
            *event = match *event {
                Event::Upheld(order) => Event::Upheld(order.other()),
                Event::Paid(order) => Event::Paid(order.other()),
                Event::Installed(named) => Event::Installed(named.map(Done::exchanged)),
                other => other,
            };
        }
    }

    /// The first `count` events of the order.
    pub fn first_events(&self, count: u8) -> impl Iterator<Item = Event> + '_ {
        self.events().take(count.into())
    }

    /// Whether the contract has emitted it.
    pub fn has(&self, event: Event) -> bool {
        self.events().any(|one| one == event)
    }

    /// Whether the event is final.
    pub fn is_final(&self, event: Event) -> bool {
        self.first_events(self.final_events).any(|one| one == event)
    }

    /// The epoch on the contract.
    pub fn epoch(&self) -> usize {
        self.epoch_at(EVENTS as u8)
    }

    /// The epoch after the first `read` events.
    pub fn epoch_at(&self, read: u8) -> usize {
        self.first_events(read).filter(|event| matches!(event, Event::Installed(_))).count()
    }

    /// The order that the contract has upheld.
    pub fn upheld(&self) -> Option<Order> {
        Order::BOTH.into_iter().find(|order| self.has(Event::Upheld(*order)))
    }

    /// The order that the contract has paid: the redeem bit is set.
    pub fn paid(&self) -> Option<Order> {
        Order::BOTH.into_iter().find(|order| self.has(Event::Paid(*order)))
    }

    /// Whether the contract upheld or voided the number.
    pub fn has_outcome(&self) -> bool {
        self.upheld().is_some() || self.has(Event::Voided)
    }

    /// Whether a quorum's votes of that epoch for the order exist. Byzantine members vote for everything.
    pub fn is_certified_in(&self, setting: &Setting, epoch: usize, order: Order) -> bool {
        let voters = setting.members(epoch).filter(|who| self.authorities[*who].votes[epoch].contains(order)).count();
        epoch <= self.epoch() && voters + setting.byzantine[epoch] >= setting.quorum(epoch)
    }

    /// Whether anybody can have a certificate of the order.
    pub fn is_certified(&self, setting: &Setting, order: Order) -> bool {
        (0..EPOCHS).any(|epoch| self.is_certified_in(setting, epoch, order))
    }

    /// Whether an honest authority can show the order's certificate.
    pub fn is_known(&self, order: Order) -> bool {
        self.authorities.iter().any(|authority| authority.holds(order))
    }
}

impl Default for State {
    fn default() -> Self {
        Self::new()
    }
}
