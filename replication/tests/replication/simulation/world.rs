//! Time, connections and faults.

use std::collections::BTreeMap;
use std::sync::Arc;

use fastpay_replication::{Action, Alarm, FrameLog, LogEvent, MachineId, Message, Millis, Next, Number, Ticket};

use super::machine::Machine;
use super::oracle::Oracle;
use super::stream::{Request, Stream};
use crate::fixture::{FOUNDER, SECOND, THIRD};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    Intact,
    Damaged,
    Forgetful,
}

/// How long faults happen, and how long it may then take until frames become visible again.
const FAULTS_MS: u64 = 40_000;
const HEALING_MS: u64 = 40_000;
const TICK_MS: u64 = 20;
/// So many appends become visible after the faults.
const APPENDS_AFTER: u64 = 5;

enum Due {
    Tick(usize),
    Arrives { from: usize, run: u64, request: Request },
    Outcome { to: usize, run: u64, event: LogEvent },
    Message { from: MachineId, to: usize, message: Message },
    Synced { at: usize, run: u64, number: Number },
}

pub struct World {
    random: fastrand::Rng,
    profile: Profile,
    now: Millis,
    /// What happens, by time and by the order in which it was planned.
    due: BTreeMap<(u64, u64), Due>,
    planned: u64,
    machines: Vec<Machine>,
    stream: Stream,
    stream_answers_from: u64,
    oracle: Oracle,
    tickets: u64,
    /// Stays away after the faults.
    absent: Option<usize>,
    appended_after: u64,
    trace: bool,
}

impl World {
    pub fn new(seed: u64, profile: Profile) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let absent = (profile == Profile::Intact && random.bool()).then(|| random.usize(..3));
        let mut world = Self {
            random,
            profile,
            now: Millis(0),
            due: BTreeMap::new(),
            planned: 0,
            machines: [FOUNDER, SECOND, THIRD].map(Machine::new).into(),
            stream: Stream::default(),
            stream_answers_from: 0,
            oracle: Oracle::default(),
            tickets: 0,
            absent,
            appended_after: 0,
            trace: std::env::var_os("REPLICATION_TRACE").is_some(),
        };
        for machine in 0..3 {
            world.plan(machine as u64, Due::Tick(machine));
        }
        world
    }

    /// Runs to the end; returns how many frames were visible.
    pub fn run(mut self) -> usize {
        for at in 0..3 {
            self.machines[at].start(self.now);
        }
        self.machines[0].replica.as_mut().unwrap().take_over().unwrap();
        while let Some(((time, _), due)) = self.due.pop_first() {
            self.now = Millis(time);
            let healing = time >= FAULTS_MS;
            if self.appended_after >= APPENDS_AFTER {
                break;
            }
            assert!(
                time < FAULTS_MS + HEALING_MS || self.profile == Profile::Forgetful,
                "no frame becomes visible with the stream and two machines"
            );
            if time >= FAULTS_MS + HEALING_MS {
                break;
            }
            self.happen(due);
            if !healing {
                self.fail();
            }
        }
        for machine in &self.machines {
            self.oracle.disk(machine, &self.stream);
        }
        self.oracle.visible.len()
    }

    fn healing(&self) -> bool {
        self.now.0 >= FAULTS_MS
    }

    fn plan(&mut self, after: u64, due: Due) {
        self.planned += 1;
        self.due.insert((self.now.0 + after, self.planned), due);
    }

    /// A delay in milliseconds: mostly short.
    fn delay(&mut self) -> u64 {
        match self.random.u8(..100) {
            0 if !self.healing() => self.random.u64(..3_000),
            1..10 => self.random.u64(..60),
            _ => self.random.u64(1..6),
        }
    }

    fn chance(&mut self, of: u32) -> bool {
        !self.healing() && self.random.u32(..of) == 0
    }

    fn happen(&mut self, due: Due) {
        match due {
            Due::Tick(at) => {
                self.plan(TICK_MS, Due::Tick(at));
                self.tick(at);
            }
            Due::Arrives { from, run, request } => self.arrive(from, run, &request),
            Due::Outcome { to, run, event } => {
                if self.machines[to].run != run
                    || self.postponed(to, |_| Due::Outcome { to, run, event: event.clone() })
                {
                    return;
                }
                self.machines[to].connection.outcomes.push_back(event);
                while let Some(event) = self.machines[to].connection.next() {
                    let now = self.now;
                    if let Some(replica) = &mut self.machines[to].replica {
                        replica.on_log(event, now);
                    }
                }
                self.perform(to);
            }
            Due::Message { from, to, message } => {
                if self.postponed(to, |_| Due::Message { from, to, message: message.clone() }) {
                    return;
                }
                let now = self.now;
                if let Some(replica) = &mut self.machines[to].replica {
                    replica.on_message(from, message, now);
                }
                self.perform(to);
            }
            Due::Synced { at, run, number } => {
                if self.machines[at].run != run || self.postponed(at, |_| Due::Synced { at, run, number }) {
                    return;
                }
                self.machines[at].sync(number);
                let now = self.now;
                if let Some(replica) = &mut self.machines[at].replica {
                    replica.stored(number, now);
                }
                self.perform(at);
            }
        }
    }

    /// Plans it for later if the machine is stopped.
    fn postponed(&mut self, at: usize, due: impl FnOnce(()) -> Due) -> bool {
        let stopped = self.machines[at].stopped_until.since(self.now);
        if stopped == Millis(0) {
            return false;
        }
        self.plan(stopped.0, due(()));
        true
    }

    fn tick(&mut self, at: usize) {
        let now = self.now;
        let machine = &mut self.machines[at];
        if machine.stopped_until > now {
            return;
        }
        let Some(replica) = &mut machine.replica else {
            let back = if self.healing() { self.absent != Some(at) } else { self.random.u8(..50) == 0 };
            if back {
                self.machines[at].start(now);
            }
            return;
        };
        replica.tick(now);
        self.perform(at);
        self.command(at);
        self.work(at);
    }

    /// The operator, or a standby's own patience, moves the journal.
    fn command(&mut self, at: usize) {
        let turn = (self.now.0 / 4_000) as usize % 3;
        let served = self.machines.iter().any(Machine::serves);
        let moves = match self.healing() {
            true => !served && turn == at,
            false => self.random.u32(..if served { 400 } else { 60 }) == 0,
        };
        let automatic = self.random.u32(..200) == 0;
        let Some(replica) = &mut self.machines[at].replica else { return };
        if moves {
            let _ = replica.take_over();
        }
        if automatic {
            replica.set_automatic(Some(Millis(3_000)));
        }
    }

    /// Clients send orders and reads.
    fn work(&mut self, at: usize) {
        if !self.machines[at].serves() {
            return;
        }
        for _ in 0..self.random.usize(..3) {
            self.tickets += 1;
            let (ticket, now) = (Ticket(self.tickets), self.now);
            let bytes = self.random.usize(1..20);
            let records = std::iter::repeat_with(|| self.random.u8(..)).take(bytes).collect();
            let (reads, new_segment) = (self.random.bool(), self.random.u8(..20) == 0);
            let visible = self.oracle.visible.len();
            let machine = &mut self.machines[at];
            let Some(replica) = &mut machine.replica else { return };
            let taken = if reads { replica.answer(ticket) } else { replica.append(records, new_segment, ticket, now) };
            if taken.is_ok() {
                machine.waiting.insert(ticket, visible);
            }
        }
        self.perform(at);
    }

    fn perform(&mut self, at: usize) {
        let Some(replica) = &mut self.machines[at].replica else { return };
        for action in replica.take_actions() {
            if matches!(action, Action::Publish(_) | Action::Store(_) | Action::Send { .. }) && self.chance(2_000) {
                self.crash(at);
                return;
            }
            self.act(at, action);
        }
        let run = self.machines[at].run;
        for request in std::mem::take(&mut self.machines[at].connection.requests) {
            if self.chance(60) {
                continue;
            }
            if self.chance(60) {
                let after = self.delay();
                self.plan(after, Due::Arrives { from: at, run, request: request.clone() });
            }
            let after = self.delay();
            self.plan(after, Due::Arrives { from: at, run, request });
        }
    }

    fn act(&mut self, at: usize, action: Action) {
        if self.trace {
            let text = format!("{action:?}");
            println!("{:6} machine {at}: {}", self.now.0, text.get(..300).unwrap_or(&text));
        }
        let run = self.machines[at].run;
        match action {
            Action::Publish(frame) => self.machines[at].connection.append(&frame),
            Action::Read(from) => self.machines[at].connection.read(from),
            Action::Store(frame) => {
                let number = frame.number();
                self.machines[at].unsynced.push_back(frame);
                let after = self.delay();
                self.plan(after, Due::Synced { at, run, number });
            }
            Action::Send { to, message } => self.send(at, to, message),
            Action::LookUp { to, tag } => {
                let Machine { disk, unsynced, .. } = &self.machines[at];
                let frame = disk.iter().chain(unsynced).find(|frame| frame.placement().previous == tag);
                let next = frame.map_or(Next::Unknown, |frame| Next::Frame(Arc::clone(frame.bytes())));
                self.send(at, to, Message::After { tag, next });
            }
            Action::Began(_) => self.oracle.began(&self.machines[at]),
            Action::Visible { number, tickets } => {
                self.oracle.seen(&self.machines[at], number, &self.machines, &self.stream);
                self.oracle.answered(&self.machines[at], number, &tickets);
                for ticket in tickets {
                    self.machines[at].waiting.remove(&ticket);
                    self.appended_after += u64::from(self.healing());
                }
            }
            Action::Fenced => self.machines[at].waiting.clear(),
            Action::Left(_) => unreachable!("no run seals its stream"),
            Action::Alarm(Alarm::Unfit { number, error }) => {
                panic!("{number}: {error}");
            }
            Action::Alarm(Alarm::StreamEndsBefore { .. }) => assert_eq!(self.profile, Profile::Forgetful),
            Action::Alarm(Alarm::Overtaken { .. }) => assert_ne!(self.profile, Profile::Intact),
            Action::Alarm(Alarm::Damaged { .. }) => assert_ne!(self.profile, Profile::Intact),
        }
    }

    fn send(&mut self, from: usize, to: MachineId, message: Message) {
        let from = self.machines[from].id;
        let to = self.machines.iter().position(|machine| machine.id == to).unwrap();
        if self.chance(30) {
            return;
        }
        let after = self.delay();
        self.plan(after, Due::Message { from, to, message });
    }

    fn arrive(&mut self, from: usize, run: u64, request: &Request) {
        // A request that was sent arrives, whatever became of its sender.
        if self.stream_answers_from > self.now.0 {
            let after = self.stream_answers_from - self.now.0;
            if self.random.bool() {
                self.plan(after, Due::Arrives { from, run, request: request.clone() });
            }
            return;
        }
        let events = self.stream.answer(request);
        let after = self.delay();
        for event in events {
            let event = match event {
                LogEvent::Acknowledged(tag) | LogEvent::Refused(tag) if self.chance(40) => LogEvent::Unclear(tag),
                event => event,
            };
            if self.chance(60) {
                continue;
            }
            self.plan(after, Due::Outcome { to: from, run, event });
        }
    }

    fn crash(&mut self, at: usize) {
        if self.trace {
            println!("{:6} machine {at} crashes", self.now.0);
        }
        let Self { machines, random, .. } = self;
        machines[at].crash(random);
    }

    /// Draws a fault.
    fn fail(&mut self) {
        if self.random.u32(..3_000) == 0 {
            let at = self.random.usize(..3);
            self.crash(at);
        }
        if self.random.u32(..3_000) == 0 {
            let at = self.random.usize(..3);
            self.machines[at].stopped_until = Millis(self.now.0 + self.random.u64(..6_000));
        }
        if self.random.u32(..8_000) == 0 {
            self.stream_answers_from = self.now.0 + self.random.u64(..9_000);
        }
        // What two machines hold. A frame that only its owner has cannot be replaced if the owner goes.
        let mut held: Vec<_> = self.machines.iter().map(|at| at.disk.last().map_or(0, |end| end.number().0)).collect();
        held.sort_unstable();
        match self.profile {
            Profile::Intact => {}
            Profile::Damaged if self.random.u32(..300) == 0 => self.stream.damage(Number(held[1]), &mut self.random),
            Profile::Damaged if self.random.u32(..2_000) == 0 => self.stream.purge(Number(held[1].saturating_sub(3))),
            Profile::Forgetful if self.random.u32(..2_000) == 0 => {
                self.stream.damage(self.stream.last(), &mut self.random);
            }
            Profile::Forgetful if self.random.u32(..6_000) == 0 => self.stream.forget(&mut self.random),
            Profile::Damaged | Profile::Forgetful => {}
        }
    }
}
