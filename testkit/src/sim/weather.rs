//! The simulated network: the fates of messages.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use super::dice::Dice;
use super::plan::Plan;

/// The maximum delay of a message without faults.
const CALM_DELAY_MAX: Duration = Duration::from_millis(5);

/// The network between clients and authorities, which are identified by number.
pub struct Weather {
    loss_per_mille: u32,
    duplicates_per_mille: u32,
    delay_max: Duration,
    is_calm: bool,
    /// The times until which connections are cut.
    partitions: BTreeMap<(usize, usize), Instant>,
}

/// The fate of a message.
pub enum Fate {
    /// It is lost.
    Lost,
    /// It arrives after this long.
    Arrives(Duration),
    /// It arrives twice.
    ArrivesTwice(Duration, Duration),
}

impl Weather {
    /// The weather of a plan.
    #[must_use]
    pub fn new(plan: &Plan) -> Self {
        Self {
            loss_per_mille: plan.loss_per_mille,
            duplicates_per_mille: plan.duplicates_per_mille,
            delay_max: Duration::from_millis(plan.delay_ms_max),
            is_calm: false,
            partitions: BTreeMap::new(),
        }
    }

    /// Ends all faults: from now on each message arrives once and soon.
    pub fn calm_down(&mut self) {
        self.is_calm = true;
        self.partitions.clear();
    }

    /// Cuts the connection between a client and an authority for this time.
    pub fn part(&mut self, client: usize, authority: usize, time: Duration) {
        if !self.is_calm {
            self.partitions.insert((client, authority), Instant::now() + time);
        }
    }

    /// Draws the fate of a message.
    #[must_use]
    pub fn fate(&self, client: usize, authority: usize, dice: &Dice) -> Fate {
        if self.is_calm {
            return Fate::Arrives(dice.between(Duration::ZERO, CALM_DELAY_MAX));
        }
        let is_parted = self.partitions.get(&(client, authority)).is_some_and(|until| Instant::now() < *until);
        if is_parted || dice.chance(self.loss_per_mille) {
            return Fate::Lost;
        }
        let delay = || dice.mostly_short(self.delay_max);
        if dice.chance(self.duplicates_per_mille) {
            return Fate::ArrivesTwice(delay(), delay());
        }
        Fate::Arrives(delay())
    }

    /// Whether a connection breaks at this message.
    #[must_use]
    pub fn breaks(&self, dice: &Dice) -> bool {
        !self.is_calm && dice.chance(self.loss_per_mille / 10)
    }
}
