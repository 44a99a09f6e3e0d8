//! Settings of a run: committees, faults, the clock, and the claims that must hold.

use crate::claims::Claim;
use crate::protocol::{Action, Lie};
use crate::state::{AUTHORITIES, EPOCHS, Order};

/// The clock, in ticks since the request. Only what is compared with something is a number here.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// L: an authority that has not read the request refuses certificates from this time on.
    pub lag: u8,
    /// W: the unlock window.
    pub window: u8,
    /// The assumption on time: an honest authority that executed has its certificate upheld within so many ticks after
    /// the request is final. `None`: nothing is assumed, and less is claimed.
    pub hold: Option<u8>,
    /// The request is final after at most so many ticks. Ethereum may stop finalizing in between, also later.
    /// `None`: what the contract does is final at once.
    pub stall: Option<u8>,
}

impl Clock {
    /// The last tick. Whoever reads the request by the longest stall has waited for the window by then.
    pub fn horizon(&self) -> u8 {
        self.stall.unwrap_or(0) + self.window
    }
}

/// A configuration.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Its name on the command line.
    pub name: &'static str,
    /// The number of members of each epoch.
    pub n: [usize; EPOCHS],
    /// How many of them are Byzantine. f, but where keys are stolen. They may be others in each epoch.
    pub byzantine: [usize; EPOCHS],
    /// The honest members of each epoch, as bits. One that is a member of two epochs in a row has the same keys in both.
    pub members: [u8; EPOCHS],
    /// Honest members of epoch 1 that were members of epoch 0, too, with keys that were out.
    pub rekeyed: u8,
    /// The installation of epoch 1 names epoch 0 as compromised.
    pub compromised: bool,
    /// One honest authority may lose what it knows of the number, besides the Byzantine ones.
    pub restores: bool,
    /// The orders are redemptions: the contract can pay them.
    pub redeems: bool,
    /// The owner signed both orders. Otherwise only A.
    pub equivocates: bool,
    /// Somebody requests the unlock.
    pub requests: bool,
    /// The owner signed the request.
    pub genuine: bool,
    /// Authorities take part in checkpoints, prune and rebase.
    pub checkpoints: bool,
    /// The keys of epochs before the last one are in a thief's hands.
    pub retired_stolen: bool,
    /// The first steps. What may happen otherwise is not explored.
    pub begins: &'static [Action],
    /// Time.
    pub clock: Clock,
    /// The claims that must hold.
    pub claims: &'static [Claim],
}

impl Setting {
    /// The orders that the owner signed.
    pub fn orders(&self) -> &'static [Order] {
        if self.equivocates { &Order::BOTH } else { &[Order::A] }
    }

    /// f = ⌊(n−1)/3⌋.
    pub fn faults(&self, epoch: usize) -> usize {
        (self.n[epoch] - 1) / 3
    }

    /// q = ⌊(n+f)/2⌋+1.
    pub fn quorum(&self, epoch: usize) -> usize {
        (self.n[epoch] + self.faults(epoch)) / 2 + 1
    }

    /// Whether the committee changes.
    pub fn rotates(&self) -> bool {
        self.rotations() > 0
    }

    /// How often the committee changes.
    pub fn rotations(&self) -> usize {
        self.members.iter().skip(1).filter(|members| **members != 0).count()
    }

    /// Whether an honest authority is a member of the epoch.
    pub fn is_member(&self, epoch: usize, who: usize) -> bool {
        self.members[epoch] & 1 << who != 0
    }

    /// The honest members of an epoch.
    pub fn members(&self, epoch: usize) -> impl Iterator<Item = usize> + '_ {
        (0..AUTHORITIES).filter(move |who| self.is_member(epoch, *who))
    }

    /// The honest members of any epoch.
    pub fn everybody(&self) -> impl Iterator<Item = usize> + '_ {
        (0..AUTHORITIES).filter(|who| (0..EPOCHS).any(|epoch| self.is_member(epoch, *who)))
    }

    /// Whether two authorities are members of the same epochs, with the same keys.
    pub fn are_alike(&self, who: usize, other: usize) -> bool {
        let kind = |who: usize| (self.members.map(|members| members & 1 << who != 0), self.is_rekeyed(who));
        kind(who) == kind(other)
    }

    /// The first epoch of which an authority is a member.
    pub fn first_epoch(&self, who: usize) -> usize {
        (0..EPOCHS).find(|epoch| self.is_member(*epoch, who)).unwrap_or_default()
    }

    /// Whether an authority that has taken up so many epochs is a member of a later one for the first time.
    pub fn is_early(&self, who: usize, epoch: usize) -> bool {
        epoch < self.first_epoch(who) && !self.is_rekeyed(who)
    }

    /// A member of epoch 0 that counts as Byzantine there, since its keys are out. It has new ones in epoch 1.
    pub fn is_rekeyed(&self, who: usize) -> bool {
        self.rekeyed & 1 << who != 0
    }

    /// A member of the epoch that was none of the epoch before, or has new keys.
    pub fn is_new(&self, epoch: usize, who: usize) -> bool {
        epoch > 0 && self.is_member(epoch, who) && !self.is_member(epoch - 1, who)
    }

    /// A member of the epoch before that is none of this one.
    pub fn is_leaver(&self, epoch: usize, who: usize) -> bool {
        epoch > 0 && self.is_member(epoch - 1, who) && !self.is_member(epoch, who)
    }
}

/// Each bound is tight. The last moment to execute unread is 0, to have that upheld 1, and the first to void 2. A stall
/// is as long as the window.
const FINE: Clock = Clock { lag: 1, window: 2, hold: Some(1), stall: Some(2) };
/// The coarsest clock with a window.
const COARSE: Clock = Clock { lag: 1, window: 1, hold: Some(0), stall: None };
/// The same with a stall.
const COARSE_STALL: Clock = Clock { stall: Some(1), ..COARSE };
/// No assumption on time: a holder may be late without limit.
const UNTIMED: Clock = Clock { hold: None, ..COARSE };

/// One epoch of four members, and the finest clock.
pub const FOUR: Setting = Setting {
    name: "four",
    n: [4; EPOCHS],
    byzantine: [1; EPOCHS],
    members: [0b111, 0, 0],
    rekeyed: 0,
    compromised: false,
    restores: false,
    redeems: true,
    equivocates: true,
    requests: true,
    genuine: true,
    checkpoints: false,
    retired_stolen: false,
    begins: &[],
    clock: FINE,
    claims: Claim::ALL,
};
/// A quorum of 4 of 5.
pub const FIVE: Setting =
    Setting { name: "five", n: [5; EPOCHS], members: [0b1111, 0, 0], clock: COARSE_STALL, ..FOUR };
/// Two Byzantine members of seven. Six members make the same states.
pub const SEVEN: Setting =
    Setting { name: "seven", n: [7; EPOCHS], byzantine: [2; EPOCHS], members: [0b1_1111, 0, 0], clock: COARSE, ..FOUR };
/// The claims that need no assumption on time.
pub const FOUR_UNTIMED: Setting = Setting { name: "four-untimed", clock: UNTIMED, claims: Claim::UNTIMED, ..FOUR };
/// A restored authority beside f Byzantine ones.
pub const RESTORED: Setting =
    Setting { name: "restored", restores: true, clock: UNTIMED, claims: Claim::RESTORED, ..FOUR };
/// f+1 keys are stolen, and the owner asked for nothing.
pub const STOLEN: Setting = Setting {
    name: "stolen",
    byzantine: [2; EPOCHS],
    members: [0b11, 0, 0],
    redeems: false,
    genuine: false,
    clock: COARSE,
    claims: &[Claim::UpheldIsCertified, Claim::NoVoidUnasked],
    ..FOUR
};
/// An honest member leaves, and an honest one comes in the place of the Byzantine one.
pub const ONE_NEW: Setting =
    Setting { name: "one-new", members: [0b111, 0b1110, 0], redeems: false, clock: COARSE, ..FOUR };
/// The same with one order: whether it is executed or voided.
pub const ONE_NEW_ORDER: Setting = Setting { name: "one-new-order", equivocates: false, ..ONE_NEW };
/// The same with epoch 0 compromised.
pub const COMPROMISED: Setting = Setting { name: "compromised", compromised: true, ..ONE_NEW_ORDER };
/// The same without an assumption on time.
pub const ONE_NEW_UNTIMED: Setting =
    Setting { name: "one-new-untimed", clock: UNTIMED, claims: Claim::UNTIMED, ..ONE_NEW_ORDER };
/// Begun where the owner has a certificate.
const CERTIFIED: &[Action] = &[Action::Vote(0, Order::A), Action::Vote(1, Order::A)];
/// [`ONE_NEW_ORDER`] with a certificate.
pub const CERTIFIED_ORDER: Setting = Setting { name: "certified", begins: CERTIFIED, ..ONE_NEW_ORDER };
/// [`ONE_NEW_UNTIMED`] with a certificate.
pub const CERTIFIED_UNTIMED: Setting = Setting { name: "certified-untimed", begins: CERTIFIED, ..ONE_NEW_UNTIMED };
/// Two honest members leave, and two come.
pub const TWO_NEW: Setting = Setting { name: "two-new", members: [0b111, 0b1_1100, 0], ..ONE_NEW };
/// The same without a request: whether certificates stay unique.
pub const TWO_NEW_ORDERS: Setting = Setting {
    name: "two-new-orders",
    requests: false,
    claims: &[Claim::OneCertificate, Claim::OneExecution],
    ..TWO_NEW
};
/// The same with one order.
pub const TWO_NEW_ORDER: Setting = Setting { name: "two-new-order", equivocates: false, ..TWO_NEW };
/// An honest member leaves, and one whose keys were out goes on with new ones. Whether certificates stay unique.
pub const REKEYED: Setting =
    Setting { name: "rekeyed", members: [0b111, 0b1110, 0], rekeyed: 0b1000, ..TWO_NEW_ORDERS };
/// The same with one order, and without an assumption on time. Begun where the one whose keys are out and another one have
/// executed the order, and its number is to be unlocked.
pub const REKEYED_EXECUTED: Setting = Setting {
    name: "rekeyed-executed",
    rekeyed: 0b1000,
    begins: &[
        Action::Vote(0, Order::A),
        Action::Vote(1, Order::A),
        Action::Show(2, Order::A),
        Action::Show(3, Order::A),
        Action::Request,
    ],
    claims: &[Claim::OneCertificate, Claim::OneExecution, Claim::SettledNotVoided, Claim::OneOutcome],
    ..CERTIFIED_UNTIMED
};
/// Four members become seven: two honest ones and a Byzantine one come. Those who stay go on.
pub const FOUR_SEVEN: Setting =
    Setting { name: "four-seven", n: [4, 7, 7], byzantine: [1, 2, 2], members: [0b111, 0b1_1111, 0], ..TWO_NEW_ORDERS };
/// Seven members become four: two honest ones and a Byzantine one leave. Begun where the owner has a certificate and the
/// committee is installed.
pub const SEVEN_FOUR: Setting = Setting {
    name: "seven-four",
    n: [7, 4, 4],
    byzantine: [2, 1, 1],
    members: [0b1_1111, 0b1_1100, 0],
    begins: &[Action::Vote(0, Order::A), Action::Vote(1, Order::A), Action::Vote(2, Order::A), Action::Install(None)],
    ..TWO_NEW_ORDERS
};
/// Two rotations of four members. Two honest ones come with the first and inherit a lock from those that leave; of these
/// one leaves with the second, and another one comes. Begun where the second is installed.
pub const TWICE: Setting = Setting {
    name: "twice",
    members: [0b111, 0b1_1100, 0b11_0100],
    begins: &[
        Action::Vote(0, Order::A),
        Action::Vote(1, Order::A),
        Action::Install(None),
        Action::Read(0),
        Action::Read(1),
        Action::Read(2),
        Action::Read(3),
        Action::Read(4),
        Action::Close(0),
        Action::Close(1),
        Action::Close(2),
        Action::Join(3, 0b11, Some(Lie::Nothing)),
        Action::Join(4, 0b110, Some(Lie::Nothing)),
        Action::Install(None),
    ],
    ..TWO_NEW_ORDERS
};
/// One that leaves has executed the order, the number is frozen for the others, and the committee changes.
const LEAVING: &[Action] = &[
    Action::Vote(0, Order::A),
    Action::Vote(1, Order::A),
    Action::Show(0, Order::A),
    Action::Request,
    Action::Read(1),
    Action::Read(2),
    Action::Install(None),
];
/// [`TWO_NEW_ORDER`], begun there.
pub const LEAVER: Setting = Setting { name: "leaver", begins: LEAVING, ..TWO_NEW_ORDER };
/// The same with epoch 0 compromised.
pub const LEAVER_COMPROMISED: Setting = Setting { name: "leaver-compromised", compromised: true, ..LEAVER };
/// The same without an assumption on time.
pub const LEAVER_UNTIMED: Setting =
    Setting { name: "leaver-untimed", clock: UNTIMED, claims: Claim::UNTIMED, ..LEAVER };
/// All orders and requests, without an assumption on time.
pub const TWO_NEW_UNTIMED: Setting =
    Setting { name: "two-new-untimed", clock: UNTIMED, claims: Claim::UNTIMED, ..TWO_NEW };

/// [`FOUR_UNTIMED`] with checkpoints.
pub const CHECKPOINT_UNTIMED: Setting = Setting {
    name: "checkpoint-untimed",
    redeems: false,
    checkpoints: true,
    claims: Claim::CHECKPOINTS_UNTIMED,
    ..FOUR_UNTIMED
};
/// The same with the assumption on time, on a coarse clock with a stall.
pub const CHECKPOINT: Setting =
    Setting { name: "checkpoint", clock: COARSE_STALL, claims: Claim::CHECKPOINTS, ..CHECKPOINT_UNTIMED };
/// The same with fewer claims, so that a mutant is not found by a shorter way to be stuck.
pub const CHECKPOINT_SAFETY: Setting =
    Setting { name: "checkpoint-safety", claims: &[Claim::OneExecution, Claim::ExecutedNotVoided], ..CHECKPOINT };
/// [`LEAVER`] with checkpoints.
pub const CHECKPOINT_LEAVER: Setting =
    Setting { name: "checkpoint-leaver", checkpoints: true, claims: Claim::CHECKPOINTS, ..LEAVER };
/// The same, after two members have joined that know of no certificate. The other leaver is gone.
pub const CHECKPOINT_JOINED: Setting = Setting {
    name: "checkpoint-joined",
    begins: &[
        Action::Vote(0, Order::A),
        Action::Vote(1, Order::A),
        Action::Show(0, Order::A),
        Action::Request,
        Action::Read(1),
        Action::Read(2),
        Action::Install(None),
        Action::Read(0),
        Action::Read(0),
        Action::Read(1),
        Action::Close(1),
        Action::Leave(1),
        Action::Read(2),
        Action::Close(2),
        Action::Read(3),
        Action::Read(3),
        Action::Join(3, 0b110, Some(Lie::Nothing)),
        Action::Read(4),
        Action::Read(4),
        Action::Join(4, 0b110, Some(Lie::Nothing)),
    ],
    ..CHECKPOINT_LEAVER
};
/// [`TWO_NEW_ORDERS`] with checkpoints, a second rotation, and retired keys that are stolen after it. Begun where the
/// owner has a certificate.
pub const CHECKPOINT_CERTIFIED: Setting = Setting {
    name: "checkpoint-certified",
    members: [0b111, 0b1_1100, 0b1_1100],
    checkpoints: true,
    retired_stolen: true,
    begins: CERTIFIED,
    claims: &[Claim::OneCertificate, Claim::OneExecution, Claim::SettledForAll],
    ..TWO_NEW_ORDERS
};
/// The same, begun where one leaver has executed the order.
pub const CHECKPOINT_EXECUTED: Setting = Setting {
    name: "checkpoint-executed",
    begins: &[Action::Vote(0, Order::A), Action::Vote(1, Order::A), Action::Show(0, Order::A)],
    ..CHECKPOINT_CERTIFIED
};
/// The same, begun where both have: with a Byzantine member's confirmation, the order is settled.
pub const CHECKPOINT_SETTLED: Setting = Setting {
    name: "checkpoint-settled",
    begins: &[
        Action::Vote(0, Order::A),
        Action::Vote(1, Order::A),
        Action::Show(0, Order::A),
        Action::Show(1, Order::A),
    ],
    ..CHECKPOINT_CERTIFIED
};

/// What `make model` explores in full.
pub const BOUNDED: &[Setting] = &[
    FOUR,
    FIVE,
    SEVEN,
    FOUR_UNTIMED,
    RESTORED,
    STOLEN,
    TWO_NEW_ORDERS,
    REKEYED,
    REKEYED_EXECUTED,
    FOUR_SEVEN,
    SEVEN_FOUR,
    TWICE,
    CERTIFIED_ORDER,
    CERTIFIED_UNTIMED,
    LEAVER,
    LEAVER_COMPROMISED,
    LEAVER_UNTIMED,
    CHECKPOINT,
    CHECKPOINT_UNTIMED,
    CHECKPOINT_SAFETY,
    CHECKPOINT_SETTLED,
    CHECKPOINT_LEAVER,
    CHECKPOINT_JOINED,
];
/// What `make model-full` explores besides.
pub const FULL: &[Setting] = &[
    CHECKPOINT_EXECUTED,
    CHECKPOINT_CERTIFIED,
    ONE_NEW_ORDER,
    ONE_NEW_UNTIMED,
    COMPROMISED,
    TWO_NEW_ORDER,
    ONE_NEW,
    TWO_NEW,
    TWO_NEW_UNTIMED,
];
