//! A model of two nullifiers that share orders, explored exhaustively: all interleavings of votes, certificates, a request to
//! unlock, void votes and the contract's decision, at three honest members and one that votes for everything. Without each
//! rule, some interleaving breaks a promise.
//!
//! The account nullifier A has two orders of number 0, which claim the coins X and Y, and one of number 1, which claims X.
//! Another account B claims X, too. Of time the model has the protocol's assumption alone: once the window of a request has
//! passed, an honest member that had executed an order of the number has had it upheld, and nobody executes anything on
//! a view that lacks the request.

use std::collections::HashSet;

/// The orders: which number of A each takes, if any, and whether it claims X or Y.
const ORDERS: [(Option<u8>, char); 4] = [(Some(0), 'X'), (Some(0), 'Y'), (Some(1), 'X'), (None, 'X')];
const HONEST: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Taken {
    Free,
    Void,
    By(u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Member {
    /// Numbers 0 and 1 of A, the only ones of B, X and Y.
    taken: [Taken; 5],
    /// The orders that hold numbers here, and all that it voted for.
    held: u8,
    voted: u8,
    seen: Option<u8>,
    has_read: u8,
    void_voted: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct State {
    members: [Member; HONEST],
    requested: bool,
    outcome: Option<Taken>,
}

/// What is left out.
#[derive(Clone, Copy, Default)]
struct Without {
    /// An order does not say which number it takes.
    numbers: bool,
    freed_coins: bool,
    freezing: bool,
    /// A certificate is executed if its coin allows it.
    both: bool,
}

fn all(mask: u8) -> impl Iterator<Item = u8> {
    (0..4).filter(move |order| mask & (1 << order) != 0)
}

impl Member {
    /// The places in `taken` of what an order takes.
    fn numbers(&self, order: u8, without: Without) -> [usize; 2] {
        let (of_account, coin) = ORDERS[order as usize];
        let any_number = without.numbers && order == 0 && self.taken[0] == Taken::Void;
        [if any_number { 1 } else { of_account.map_or(2, usize::from) }, if coin == 'X' { 3 } else { 4 }]
    }

    /// Whether both numbers of the order are the next ones.
    fn is_next(&self, order: u8, without: Without) -> bool {
        let [of_account, coin] = self.numbers(order, without);
        let is_reached = of_account != 1 || self.taken[0] == Taken::Void;
        is_reached && self.taken[of_account] == Taken::Free && self.taken[coin] == Taken::Free
    }

    fn is_frozen(&self) -> bool {
        self.has_read == 1
    }

    /// An order that has taken a number, or whose number is void, ends what else holds the number.
    fn end(&mut self, number: usize, without: Without) {
        for order in all(self.held) {
            let [of_account, coin] = self.numbers(order, without);
            if coin == number || (of_account == number && !without.freed_coins) {
                self.held &= !(1 << order);
            }
        }
    }
}

impl State {
    fn is_certified(&self, order: u8) -> bool {
        self.members.iter().filter(|member| member.voted & (1 << order) != 0).count() >= 2
    }

    fn steps(&self, without: Without) -> Vec<Self> {
        let mut next = Vec::new();
        let window_passed = self.members.iter().any(|member| member.void_voted);
        let is_known =
            self.members.iter().any(|member| matches!(member.taken[0], Taken::By(_)) || member.seen.is_some());
        for (at, member) in self.members.iter().enumerate() {
            let mut push = |change: &dyn Fn(&mut Member)| {
                let mut state = *self;
                change(&mut state.members[at]);
                next.push(state);
            };
            for order in 0..4 {
                let numbers = member.numbers(order, without);
                let is_disputed = numbers[0] == 0;
                let is_frozen = is_disputed && member.is_frozen() && !without.freezing;
                let upheld = (member.has_read == 2 && is_disputed).then_some(self.outcome).flatten();
                let takes_one = |other: u8| member.numbers(other, without).iter().any(|one| numbers.contains(one));
                let has_rival = all(member.held).any(|other| other != order && takes_one(other));
                if member.is_next(order, without) && !is_frozen && !has_rival && upheld.is_none() {
                    push(&|member| {
                        member.held |= 1 << order;
                        member.voted |= 1 << order;
                    });
                }
                let is_late = is_disputed && member.has_read == 0 && window_passed && !without.freezing;
                if !self.is_certified(order) || !member.is_next(order, without) || is_late {
                    continue;
                }
                if is_frozen && !without.both {
                    if member.seen.is_none() {
                        push(&|member| member.seen = Some(order));
                    }
                } else if upheld.is_none_or(|upheld| upheld == Taken::By(order)) {
                    push(&|member| {
                        numbers.into_iter().for_each(|number| member.end(number, Without::default()));
                        numbers.into_iter().for_each(|number| member.taken[number] = Taken::By(order));
                    });
                }
            }
            if self.requested && member.has_read == 0 {
                push(&|member| member.has_read = 1);
            }
            if let (Some(outcome), 1) = (self.outcome, member.has_read) {
                push(&|member| {
                    member.has_read = 2;
                    if outcome == Taken::Void {
                        member.end(0, without);
                        member.seen = None;
                        if member.taken[0] == Taken::Free {
                            member.taken[0] = Taken::Void;
                        }
                    }
                });
            }
            let may_void = member.is_frozen() && member.taken[0] == Taken::Free && member.seen.is_none();
            if may_void && !member.void_voted && (window_passed || !is_known) {
                push(&|member| member.void_voted = true);
            }
        }
        let decide = |outcome| Self { outcome: Some(outcome), ..*self };
        if self.requested && self.outcome.is_none() {
            if self.members.iter().filter(|member| member.void_voted).count() >= 2 {
                next.push(decide(Taken::Void));
            }
            for order in 0..2 {
                let attests = |member: &&Member| member.taken[0] == Taken::By(order) || member.seen == Some(order);
                if self.members.iter().filter(attests).count() >= 2 {
                    next.push(decide(Taken::By(order)));
                }
            }
        }
        next.push(Self { requested: true, ..*self });
        next
    }

    /// What is promised, and broken here.
    fn broken(&self, without: Without) -> Option<&'static str> {
        for (at, member) in self.members.iter().enumerate() {
            if matches!(member.taken[0], Taken::By(_)) && self.outcome == Some(Taken::Void) {
                return Some("a void number is executed");
            }
            for other in &self.members[..at] {
                let differs = |number: usize| match (member.taken[number], other.taken[number]) {
                    (Taken::By(one), Taken::By(two)) => one != two,
                    _ => false,
                };
                if (0..5).any(differs) {
                    return Some("a nullifier is spent twice");
                }
            }
            // Once the outcome is read, nothing holds what number 0 held.
            let is_over = member.has_read == 2 && self.outcome == Some(Taken::Void) && !without.numbers;
            if is_over && member.held & 0b11 != 0 {
                return Some("a coin is frozen by a void order");
            }
        }
        None
    }
}

/// The first broken promise, and how many states there are.
fn explore(without: Without) -> (Option<&'static str>, usize) {
    let member = Member { taken: [Taken::Free; 5], held: 0, voted: 0, seen: None, has_read: 0, void_voted: false };
    let first = State { members: [member; HONEST], requested: false, outcome: None };
    let (mut known, mut next) = (HashSet::from([first]), vec![first]);
    while let Some(state) = next.pop() {
        if let Some(broken) = state.broken(without) {
            return (Some(broken), known.len());
        }
        for mut step in state.steps(without) {
            // Honest members are alike.
            step.members.sort_unstable();
            if known.insert(step) {
                next.push(step);
            }
        }
    }
    (None, known.len())
}

#[test]
fn a_nullifiers_life_in_all_interleavings() {
    let (broken, states) = explore(Without::default());
    println!("{states} states");
    assert_eq!(broken, None);
    assert!(states > 10_000, "{states}");
}

#[test]
fn without_each_rule_a_nullifiers_life_breaks() {
    let none = Without::default();
    let twice = Some("a nullifier is spent twice");
    assert_eq!(explore(Without { freed_coins: true, ..none }).0, Some("a coin is frozen by a void order"));
    assert!(explore(Without { freezing: true, ..none }).0.is_some());
    assert!(explore(Without { both: true, ..none }).0.is_some());
    assert_eq!(explore(Without { numbers: true, ..none }).0, twice);
}
