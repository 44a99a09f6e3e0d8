//! What those who misbehave pursue over several steps, with other things between: to have a number executed and void, or
//! to have an authority vote for a second order after it has forgotten the first.

use std::collections::VecDeque;

use rand::prelude::*;

use super::contract::WINDOW;
use super::world::World;

/// One step towards it, about one number.
#[derive(Clone, Copy)]
enum Move {
    Sign,
    /// The newest order of the account, to so many authorities from the first.
    Submit(usize),
    /// The number's certificate, to the one authority that stays behind, to some, or to all.
    ShowLaggard,
    ShowSome,
    /// To all authorities but the one that stays behind.
    ShowMost,
    ShowAll,
    Stall(bool),
    Ask {
        by_stranger: bool,
    },
    Pass(u64),
    FollowFirst,
    /// All authorities but the one that stays behind.
    FollowMost,
    FollowAll,
    /// Collects votes to void the number, and keeps them.
    Gather {
        unanimous: bool,
    },
    Void {
        unanimous: bool,
    },
    Uphold,
    Redeem,
    Steal,
    Forge,
    Install,
    LeaveQueue,
    Copy,
    Restore,
    Certify,
    RebaseLaggard,
    RebaseFirst,
}

/// See the [module](self).
#[derive(Default)]
pub struct Agenda {
    owner: usize,
    number: u64,
    laggard: usize,
    moves: VecDeque<Move>,
}

impl World {
    /// Takes the next step of what is pursued, or begins with something new. False where it is nobody's turn.
    pub fn pursue(&mut self) -> bool {
        if !self.chance(55) {
            return false;
        }
        match self.agenda.moves.pop_front() {
            Some(next) => self.make(next),
            None => {
                let owner = self.rng.random_range(0..self.owners.len());
                let (number, laggard) =
                    (self.next(self.owners[owner].id()), self.rng.random_range(0..self.nodes.len()));
                let moves = match (self.is_restorable && self.chance(40), self.has_thief && self.chance(20)) {
                    (true, _) => self.amnesia(),
                    (false, true) => self.forgery(),
                    (false, false) if self.has_checkpoints && self.chance(40) => self.delay(),
                    (false, false) => self.dispute(),
                };
                let moves = if self.has_checkpoints { self.interspersed(moves) } else { moves };
                self.agenda = Agenda { owner, number, laggard, moves };
            }
        }
        true
    }

    /// A certificate that few have, a request, and votes to void the number.
    fn dispute(&mut self) -> VecDeque<Move> {
        use Move::{Ask, FollowAll, FollowMost, Gather, Pass, Redeem, ShowAll, ShowLaggard, ShowSome, Sign, Stall};
        use Move::{Forge, Install, LeaveQueue, Steal, Submit, Uphold, Void};
        let mut moves = vec![FollowAll, Sign, Submit(usize::MAX)];
        let (late, unanimous) = ([ShowLaggard, ShowSome, ShowAll][self.rng.random_range(0..3)], self.chance(40));
        let stalled_for = [WINDOW / 4, WINDOW * 6 / 10, WINDOW][self.rng.random_range(0..3)];
        let possible: [(u32, &[Move]); 18] = [
            (40, &[ShowLaggard]),
            (15, &[Steal]),
            (10, &[ShowSome]),
            (25, &[Ask { by_stranger: true }, Pass(WINDOW)]),
            (50, &[Stall(true), Ask { by_stranger: false }, Pass(stalled_for), late, Stall(false)]),
            (80, &[Ask { by_stranger: false }, FollowMost]),
            (20, &[late]),
            (20, &[Forge, FollowAll, late]),
            (40, &[Pass(WINDOW / 4), FollowMost, Void { unanimous: false }]),
            (60, &[Void { unanimous }, Void { unanimous: !unanimous }]),
            (60, &[Pass(WINDOW), FollowMost, Gather { unanimous: false }]),
            (8, &[Install, FollowMost, Void { unanimous: false }, Pass(WINDOW / 2), Void { unanimous: false }]),
            (40, &[Redeem]),
            (15, &[Steal]),
            (40, &[LeaveQueue, FollowMost]),
            (30, &[ShowSome, Uphold, FollowMost]),
            (80, &[Void { unanimous: false }]),
            (50, &[late, FollowMost, Uphold]),
        ];
        for (percent, next) in possible {
            if self.chance(percent) {
                moves.extend_from_slice(next);
            }
        }
        moves.into()
    }

    /// A thief upholds an order whose certificate nobody has seen once the window has passed, has one authority execute it,
    /// and wants the number void when what it upheld is open again.
    fn forgery(&mut self) -> VecDeque<Move> {
        use Move::{Ask, FollowAll, FollowMost, Forge, Install, Pass, ShowLaggard, Sign, Submit, Void};
        let until_void = [Ask { by_stranger: false }, FollowAll, Pass(WINDOW), Forge, FollowAll, ShowLaggard];
        let mut moves = vec![FollowAll, Sign, Submit(usize::MAX)];
        moves.extend(until_void);
        moves.extend([Install, FollowMost]);
        moves.extend([Void { unanimous: false }; 3]);
        moves.into()
    }

    /// The first authority votes for the number after a void one, and comes back as it was before.
    fn amnesia(&mut self) -> VecDeque<Move> {
        let again = [Move::FollowFirst, Move::Sign, Move::Submit(1)];
        let mut moves = vec![Move::Restore, Move::Copy, Move::Ask { by_stranger: false }, Move::FollowAll];
        moves.extend([Move::Void { unanimous: true }; 2]);
        moves.extend(again);
        moves.push(Move::Restore);
        moves.extend(again);
        moves.into()
    }

    /// A checkpoint includes what one authority has not executed, or not read.
    fn delay(&mut self) -> VecDeque<Move> {
        use Move::{
            Ask, Certify, FollowAll, FollowMost, LeaveQueue, Pass, RebaseLaggard, Redeem, ShowLaggard, ShowMost,
        };
        use Move::{Sign, Steal, Submit, Uphold, Void};
        let mut moves = vec![FollowAll, Sign, Submit(usize::MAX)];
        if self.chance(35) {
            // One authority learns from a checkpoint alone that the number is frozen, once nobody honest acts any more.
            moves.extend([
                Ask { by_stranger: false },
                FollowMost,
                Certify,
                Pass(WINDOW - 150),
                RebaseLaggard,
                FollowAll,
            ]);
            moves.extend([ShowLaggard, Pass(WINDOW / 4), FollowMost]);
            moves.extend([Void { unanimous: false }; 3]);
            return moves.into();
        }
        let possible: [(u32, &[Move]); 13] = [
            (70, &[ShowMost]),
            (30, &[Ask { by_stranger: false }, FollowMost]),
            (30, &[Pass(WINDOW), FollowMost, Void { unanimous: false }]),
            (30, &[Uphold, FollowMost]),
            (15, &[Steal]),
            (30, &[Redeem]),
            (50, &[FollowMost]),
            (90, &[Certify]),
            (20, &[ShowLaggard]),
            (90, &[RebaseLaggard]),
            (30, &[ShowMost, ShowLaggard]),
            (40, &[LeaveQueue, FollowMost]),
            (30, &[Void { unanimous: true }, Void { unanimous: false }]),
        ];
        for (percent, next) in possible {
            if self.chance(percent) {
                moves.extend_from_slice(next);
            }
        }
        moves.into()
    }

    /// With checkpoints and rebases between.
    fn interspersed(&mut self, mut moves: VecDeque<Move>) -> VecDeque<Move> {
        for _ in 0..self.rng.random_range(0..4) {
            let (at, rebase) = (self.rng.random_range(0..=moves.len()), [Move::RebaseLaggard, Move::RebaseFirst]);
            moves.insert(at, rebase[self.rng.random_range(0..2)]);
            let at = self.rng.random_range(0..=at);
            moves.insert(at, Move::Certify);
        }
        moves
    }

    fn make(&mut self, next: Move) {
        let owner = self.agenda.owner;
        let slot = (self.owners[owner].id(), self.agenda.number);
        let certificate = self.certified.get(&slot).copied();
        match (next, certificate) {
            (Move::Sign, _) => self.sign(owner),
            (Move::Submit(count), _) => {
                let newest = self.orders.iter().rposition(|(order, _)| order.transfer.sender() == slot.0);
                let asked = 0..self.nodes.len().min(count);
                newest.into_iter().for_each(|order| asked.clone().for_each(|at| self.submit(order, at)));
            }
            (Move::ShowLaggard, Some(index)) => self.show(index, self.agenda.laggard),
            (Move::ShowAll, Some(index)) => (0..self.nodes.len()).for_each(|at| self.show(index, at)),
            (Move::ShowMost, Some(index)) => {
                let laggard = self.agenda.laggard;
                (0..self.nodes.len()).filter(|at| *at != laggard).for_each(|at| self.show(index, at));
            }
            (Move::ShowSome, Some(index)) => self.some().into_iter().for_each(|at| self.show(index, at)),
            (Move::Stall(is_stalled), _) => self.contract.is_stalled = is_stalled,
            (Move::Ask { by_stranger }, _) => {
                let by = if by_stranger { (owner + 1) % self.owners.len() } else { owner };
                self.ask_contract(slot, by);
            }
            (Move::Pass(time), _) => {
                let more = self.rng.random_range(1..100);
                self.pass(time + more);
            }
            (Move::FollowFirst, _) => {
                self.pass(1);
                self.follow_all(0);
            }
            (Move::FollowMost, _) => {
                self.pass(1);
                let laggard = self.agenda.laggard;
                (0..self.nodes.len()).filter(|at| *at != laggard).for_each(|at| self.follow_all(at));
            }
            (Move::FollowAll, _) => {
                self.pass(1);
                (0..self.nodes.len()).for_each(|at| self.follow_all(at));
            }
            (Move::Gather { unanimous }, _) => {
                (0..self.nodes.len()).for_each(|at| self.ask_for_void(at, slot, unanimous));
            }
            (Move::Void { unanimous }, _) => self.try_to_void(slot, unanimous),
            (Move::Uphold, Some(index)) => {
                self.uphold(index);
            }
            (Move::Redeem, Some(index)) => self.redeem(index),
            (Move::Steal, _) => self.steal(slot),
            (Move::Forge, _) => {
                // Votes to void that no longer count once the number is open again.
                for at in 0..self.nodes.len() {
                    self.follow_all(at);
                    self.ask_for_void(at, slot, false);
                }
                self.forge(slot);
            }
            (Move::Install, _) => self.install(),
            (Move::LeaveQueue, _) => self.leave_queue(slot),
            (Move::Copy, _) => self.copy(),
            (Move::Restore, _) => self.restore(),
            (Move::Certify, _) => self.certify(),
            (Move::RebaseLaggard, _) => {
                let at = self.agenda.laggard;
                // Its shards may be at different events.
                if self.chance(30) {
                    self.follow(at, 0, usize::MAX);
                }
                self.rebase(at);
            }
            (Move::RebaseFirst, _) => {
                self.rebase(0);
            }
            (
                Move::ShowLaggard | Move::ShowSome | Move::ShowMost | Move::ShowAll | Move::Uphold | Move::Redeem,
                None,
            ) => {}
        }
    }
}
