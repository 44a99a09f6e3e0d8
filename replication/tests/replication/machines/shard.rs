//! Three machines and a stream, all of which work until a test says otherwise.

use std::collections::BTreeSet;
use std::sync::Arc;

use fastpay_replication::{
    Action, Alarm, ChainEnd, Frame, Kind, LogEvent, MachineId, Message, Millis, Next, Number, Replica, Sealed, Ticket,
};

use crate::fixture::{FOUNDER, SECOND, SECRET, THIRD, start};
use crate::simulation::stream::{Request, Stream};

pub struct Shard {
    pub now: Millis,
    pub stream: Stream,
    pub stream_answers: bool,
    pub acknowledges: bool,
    /// Machines that reach nobody and that nobody reaches.
    pub cut_off: BTreeSet<MachineId>,
    /// Machines whose disks do not sync.
    pub slow: BTreeSet<MachineId>,
    pub disks: Vec<Vec<Frame>>,
    replicas: Vec<Replica>,
    unsynced: Vec<Vec<Frame>>,
    pub visible: Vec<(MachineId, Number)>,
    pub answered: Vec<(MachineId, Ticket)>,
    pub published: Vec<(MachineId, Frame)>,
    pub fenced: Vec<MachineId>,
    pub began: Vec<MachineId>,
    pub left: Vec<Sealed>,
    pub alarms: Vec<(MachineId, Alarm)>,
}

pub fn index(machine: MachineId) -> usize {
    [FOUNDER, SECOND, THIRD].iter().position(|other| *other == machine).unwrap()
}

impl Shard {
    /// Three machines of which none owns the journal.
    pub fn new() -> Self {
        let open = |machine| Replica::open(machine, start(), &SECRET, ChainEnd::before_first(&start()), Millis(0));
        Self {
            now: Millis(0),
            stream: Stream::default(),
            stream_answers: true,
            acknowledges: true,
            cut_off: BTreeSet::new(),
            slow: BTreeSet::new(),
            disks: vec![Vec::new(); 3],
            replicas: [FOUNDER, SECOND, THIRD].map(open).into(),
            unsynced: vec![Vec::new(); 3],
            visible: Vec::new(),
            answered: Vec::new(),
            published: Vec::new(),
            fenced: Vec::new(),
            began: Vec::new(),
            left: Vec::new(),
            alarms: Vec::new(),
        }
    }

    /// Three machines, and the founder owns the journal.
    pub fn owned() -> Self {
        let mut shard = Self::new();
        shard.at(FOUNDER).take_over().unwrap();
        shard.pass(200);
        assert_eq!(shard.began, [FOUNDER]);
        shard
    }

    /// The seal of a founder that left.
    pub fn sealed() -> Sealed {
        let mut shard = Self::owned();
        let now = shard.now;
        shard.at(FOUNDER).leave(now).unwrap();
        shard.pass(200);
        shard.left[0]
    }

    pub fn at(&mut self, machine: MachineId) -> &mut Replica {
        &mut self.replicas[index(machine)]
    }

    /// Starts a machine anew, with what is on its disk.
    pub fn restart(&mut self, machine: MachineId) {
        let end = self.disks[index(machine)].iter();
        let end = end.fold(ChainEnd::before_first(&start()), |end, frame| end.follow(&start(), frame).unwrap());
        self.unsynced[index(machine)].clear();
        self.replicas[index(machine)] = Replica::open(machine, start(), &SECRET, end, self.now);
    }

    pub fn append(&mut self, machine: MachineId, ticket: u64) {
        let now = self.now;
        self.at(machine).append(vec![ticket as u8], false, Ticket(ticket), now).unwrap();
        self.perform();
    }

    /// Lets time pass, in steps of 10 ms.
    pub fn pass(&mut self, ms: u64) {
        for _ in 0..ms / 10 {
            self.now.0 += 10;
            for at in 0..3 {
                let now = self.now;
                self.replicas[at].tick(now);
            }
            self.perform();
        }
    }

    pub fn is_answered(&self, ticket: u64) -> bool {
        self.answered.iter().any(|(_, answered)| *answered == Ticket(ticket))
    }

    /// How many empty frames a machine published.
    pub fn empty(&self, machine: MachineId) -> usize {
        self.published.iter().filter(|(by, frame)| *by == machine && *frame.kind() == Kind::Empty).count()
    }

    /// How many takeovers a machine published.
    pub fn takeovers(&self, machine: MachineId) -> usize {
        let is_takeover = |frame: &Frame| matches!(frame.kind(), Kind::Takeover(_));
        self.published.iter().filter(|(by, frame)| *by == machine && is_takeover(frame)).count()
    }

    pub fn log(&mut self, machine: MachineId, event: LogEvent) {
        let now = self.now;
        self.at(machine).on_log(event, now);
        self.perform();
    }

    pub fn message(&mut self, from: MachineId, to: MachineId, message: Message) {
        let now = self.now;
        self.at(to).on_message(from, message, now);
        self.perform();
    }

    /// Performs what the machines ask for, until they ask for nothing more.
    pub fn perform(&mut self) {
        loop {
            let mut idle = true;
            for machine in [FOUNDER, SECOND, THIRD] {
                for action in self.at(machine).take_actions() {
                    idle = false;
                    self.act(machine, action);
                }
            }
            if idle {
                return;
            }
        }
    }

    /// Syncs what a slow disk has.
    pub fn sync(&mut self, machine: MachineId) {
        let frames = std::mem::take(&mut self.unsynced[index(machine)]);
        let now = self.now;
        for frame in frames {
            self.disks[index(machine)].push(frame.clone());
            self.at(machine).stored(frame.number(), now);
        }
    }

    fn act(&mut self, machine: MachineId, action: Action) {
        let now = self.now;
        match action {
            Action::Publish(frame) => {
                self.published.push((machine, frame.clone()));
                self.ask_stream(machine, &Request::Append(frame));
            }
            Action::Read(from) => self.ask_stream(machine, &Request::Read(from)),
            Action::Store(frame) => {
                self.unsynced[index(machine)].push(frame);
                if !self.slow.contains(&machine) {
                    self.sync(machine);
                }
            }
            Action::Send { to, message } => {
                if !self.cut_off.contains(&machine) && !self.cut_off.contains(&to) {
                    self.at(to).on_message(machine, message, now);
                }
            }
            Action::LookUp { to, tag } => {
                let mut frames = self.disks[index(machine)].iter().chain(&self.unsynced[index(machine)]);
                let found = frames.find(|frame| frame.placement().previous == tag);
                let next = found.map_or(Next::Unknown, |frame| Next::Frame(Arc::clone(frame.bytes())));
                if self.cut_off.contains(&machine) {
                    return;
                }
                self.at(to).on_message(machine, Message::After { tag, next }, now);
            }
            Action::Began(_) => self.began.push(machine),
            Action::Visible { number, tickets } => {
                self.visible.push((machine, number));
                self.answered.extend(tickets.into_iter().map(|ticket| (machine, ticket)));
            }
            Action::Fenced => self.fenced.push(machine),
            Action::Left(sealed) => self.left.push(sealed),
            Action::Alarm(alarm) => self.alarms.push((machine, alarm)),
        }
    }

    fn ask_stream(&mut self, machine: MachineId, request: &Request) {
        if !self.stream_answers || self.cut_off.contains(&machine) {
            return;
        }
        let now = self.now;
        for event in self.stream.answer(request) {
            if self.acknowledges || !matches!(event, LogEvent::Acknowledged(_)) {
                self.at(machine).on_log(event, now);
            }
        }
    }
}
