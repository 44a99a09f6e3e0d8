//! The plan of a run. The seed chooses it; a failing run is shortened by trying smaller plans.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::dice::Dice;

/// How an authority misbehaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Role {
    /// Never answers.
    Silent,
    /// Votes for every order and claims to have confirmed every certificate.
    VotesForAll,
    /// Lies about numbers, locks, balances, certificates and histories.
    Lies,
    /// Answers with what it answered to others before.
    Replays,
    /// Answers like one that votes for all, minutes later.
    Slow,
    /// Any of these, each time anew.
    Mixed,
}

const ROLES: [Role; 6] = [Role::Silent, Role::VotesForAll, Role::Lies, Role::Replays, Role::Slow, Role::Mixed];

/// How a committee of four changes whose members hand over, in two steps or three.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum HandOver {
    /// A fifth member comes, and another one leaves.
    OneMore,
    /// All members get new keys, twice.
    AllKeys,
    /// Three members come, and three leave: all of those who are left join.
    ThreeMore,
    /// Another member is faulty in each epoch. One that was leaves, and is honest when it comes back with new keys. One that
    /// was honest turns, with the keys that it has, and is honest again with new ones. In the last epoch a third one is.
    FaultsMove,
    /// One member after the other gets new keys.
    OneKey,
    /// Somebody takes a member's place, who comes back with new keys in the place of another one.
    Replaced,
}

/// The members of the first committee of those that hand over.
const FOUNDERS: usize = 4;
/// Where faults move: the member that is faulty at first, and the one that turns.
const FIRST_FAULTY: usize = 3;
const TURNING: usize = 4;

/// The events of a run that are not drawn on the way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// The seed of all dice.
    pub seed: u64,
    /// The shards of each authority.
    pub shards: Vec<u32>,
    /// How the last so many authorities misbehave: at most f. Where faults move, others misbehave in the same way.
    pub byzantine: Vec<Role>,
    /// Correct clients.
    pub clients: usize,
    /// How many payments each makes.
    pub payments: usize,
    /// Clients that sign two orders for a number, overspend, replay, stop half-way and make up certificates.
    pub adversaries: usize,
    /// How long things go wrong, in simulated seconds.
    pub storm_s: u64,
    /// How often an authority crashes meanwhile, in seconds between; 0: never.
    pub crash_every_s: u64,
    /// Lost messages of each thousand.
    pub loss_per_mille: u32,
    /// And so many arrive twice.
    pub duplicates_per_mille: u32,
    /// The longest that a message takes.
    pub delay_ms_max: u64,
    /// How often a client and an authority lose sight of each other, in seconds between; 0: never.
    pub part_every_s: u64,
    /// How often the committee changes its keys in all.
    pub rotations: u64,
    /// A process stands still for up to this long now and then.
    pub pause_ms_max: u64,
    /// A checkpoint is due after so many bytes of journal.
    pub checkpoint_bytes: u64,
    /// So many accounts are in memory at most.
    pub accounts_in_memory: usize,
    /// Relayers at work.
    pub relayers: usize,
    /// They work also for a fee that does not cover the gas.
    pub relayed_at_a_loss: bool,
    /// Ethereum nodes lie about the contract's events now and then.
    pub nodes_lie: bool,
    /// The last honest authority comes back with older copies of its folder.
    pub is_restored: bool,
    /// Redemptions among each thousand single transfers of a correct client.
    pub redemptions_per_mille: u32,
    /// At the end, so many times, owners of accounts sign two orders for a number each, and ask to unlock it.
    #[serde(default)]
    pub disputes: u64,
    /// At the end, so many times, a payment is settled while the committee changes.
    #[serde(default)]
    pub straddles: u64,
    /// Some of the kills of a wallet fall right after it has sent an order or a certificate.
    #[serde(default)]
    pub aimed_kills: bool,
    /// Checkpoints are certified, and authorities are rebased onto them while they are down.
    #[serde(default)]
    pub has_checkpoints: bool,
    /// Members close each epoch, and those who need to join the next one. Else the same authorities stay members, and those
    /// with new keys join at once, with nothing.
    #[serde(default)]
    pub hand_over: Option<HandOver>,
    /// The Primary is a ledger.
    #[serde(default)]
    pub on_ledger: bool,
}

impl Plan {
    /// The plan of a seed.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        // Other dice than those of the run itself.
        let dice = Dice::new(seed ^ 0x5eed_0f91_a45e_ed00);
        let authorities = *dice.pick(&[4, 4, 4, 5, 7]);
        let faults_tolerated = (authorities - 1) / 3;
        let byzantine = 0..dice.below(faults_tolerated + 1).max(usize::from(dice.chance(700)));
        let mut byzantine: Vec<_> = byzantine.map(|_| *dice.pick(&ROLES)).collect();
        let clients = 1 + dice.below(4);
        let rotations = *dice.pick(&[0, 0, 1, 2]);
        let mut crash_every_s = *dice.pick(&[0, 2, 5, 20]);
        let is_restored = dice.chance(300);
        if is_restored {
            // It gives no votes where others do: it is one of the f that may be missing.
            byzantine.truncate(faults_tolerated - 1);
            crash_every_s = crash_every_s.max(2);
        }
        let plan = Self {
            seed,
            shards: (0..authorities).map(|_| *dice.pick(&[1, 2, 2, 3])).collect(),
            byzantine,
            clients,
            payments: 2 + dice.below(5),
            adversaries: dice.below(3),
            storm_s: *dice.pick(&[20, 60, 120, 300]),
            crash_every_s,
            loss_per_mille: *dice.pick(&[0, 10, 50, 200]),
            duplicates_per_mille: *dice.pick(&[0, 20, 200]),
            delay_ms_max: *dice.pick(&[2, 50, 500, 5_000]),
            part_every_s: *dice.pick(&[0, 5, 30]),
            rotations,
            pause_ms_max: *dice.pick(&[0, 0, 100, 3_000]),
            checkpoint_bytes: *dice.pick(&[500, 2_000, 8_000, 1 << 20]),
            accounts_in_memory: *dice.pick(&[4, 5, 8, 64]),
            relayers: 1 + dice.below(2),
            // The certificates of an epoch before the last one are redeemed by relayers alone here.
            relayed_at_a_loss: rotations >= 2 || *dice.pick(&[true, false, false]),
            // With many of them, relayers leave a lower number for its fee and pay a higher one of the same account.
            redemptions_per_mille: *dice.pick(&[300, 300, 800]),
            nodes_lie: dice.chance(400),
            is_restored,
            // Right after a rotation all members together cannot void yet. None of these takes dice: other plans stay as
            // they were.
            disputes: if rotations == 0 && seed.is_multiple_of(4) { 3 } else { 0 },
            straddles: if seed % 4 == 1 { 2 } else { 0 },
            aimed_kills: seed % 8 == 6,
            has_checkpoints: seed % 4 == 3,
            hand_over: None,
            on_ledger: false,
        };
        use HandOver::{AllKeys, FaultsMove, OneKey, OneMore, Replaced, ThreeMore};
        let kinds = [OneMore, AllKeys, ThreeMore, FaultsMove, OneKey, Replaced];
        let kind = kinds[usize::try_from(seed / 8 % kinds.len() as u64).expect("few kinds")];
        if seed % 8 == 2 { plan.handing_over(kind) } else { plan }
    }

    /// The plan of a seed, with a ledger as the Primary. It has no relayers; somebody hands redemptions to the ledger, as long
    /// as their votes count.
    #[must_use]
    pub fn on_ledger(seed: u64) -> Self {
        let plan = Self { hand_over: None, ..Self::of(seed) };
        Self {
            rotations: plan.rotations.min(1),
            relayers: 0,
            relayed_at_a_loss: false,
            nodes_lie: false,
            disputes: 0,
            straddles: 0,
            has_checkpoints: false,
            on_ledger: true,
            ..plan
        }
    }

    /// The same with a committee that hands over. One member lies, or comes back with an older copy of its folder.
    fn handing_over(mut self, kind: HandOver) -> Self {
        let newcomers = match kind {
            HandOver::AllKeys | HandOver::OneKey => 0,
            HandOver::OneMore | HandOver::Replaced => 1,
            HandOver::FaultsMove => 2,
            HandOver::ThreeMore => 3,
        };
        let rotations = if kind == HandOver::FaultsMove { 3 } else { 2 };
        let shards = self.shards.iter().copied().cycle().take(FOUNDERS + newcomers).collect();
        self.is_restored = kind == HandOver::OneKey;
        if self.is_restored {
            self.byzantine.clear();
            self.crash_every_s = self.crash_every_s.max(2);
        } else {
            self.byzantine.truncate(1);
            if self.byzantine.is_empty() {
                self.byzantine.push(Role::Mixed);
            }
        }
        // The certificates of an epoch before the last one are redeemed by relayers alone.
        Self { shards, rotations, relayed_at_a_loss: true, hand_over: Some(kind), ..self }
    }

    /// The members of an epoch of a committee that hands over, each with the number of times that it has changed its keys.
    /// Byzantine ones are members all the time, but where faults move.
    #[must_use]
    pub fn seats(&self, kind: HandOver, epoch: u64) -> Vec<(usize, u64)> {
        let founders = FOUNDERS - self.byzantine.len();
        let (first, second) = (epoch >= 1, epoch == 2);
        let is_member = |authority: usize| {
            let (is_founder, is_byzantine) = (authority < founders, authority >= self.honest());
            match kind {
                HandOver::AllKeys | HandOver::OneKey => true,
                HandOver::FaultsMove => match epoch {
                    0 => authority < FOUNDERS,
                    1 => authority < FIRST_FAULTY || authority == TURNING,
                    2 => authority < 2 || [FIRST_FAULTY, TURNING].contains(&authority),
                    _ => authority == 0 || authority >= FIRST_FAULTY,
                },
                _ if is_byzantine || authority == 0 => true,
                HandOver::OneMore => (is_founder || first) && !(second && authority == 1),
                HandOver::ThreeMore if second => [founders, founders + 1].contains(&authority),
                HandOver::ThreeMore => is_founder || first,
                HandOver::Replaced if is_founder => !first || authority as u64 != epoch,
                HandOver::Replaced => first,
            }
        };
        let changes = |authority: usize| match kind {
            HandOver::AllKeys => epoch,
            HandOver::OneKey => u64::from((authority as u64) < epoch),
            HandOver::Replaced => u64::from(second && authority == 1),
            HandOver::FaultsMove => u64::from(authority == FIRST_FAULTY && first || authority == TURNING && epoch > 2),
            HandOver::OneMore | HandOver::ThreeMore => 0,
        };
        (0..self.authorities()).filter(|one| is_member(*one)).map(|one| (one, changes(one))).collect()
    }

    /// The faulty members of an epoch of a committee that hands over, each with the epoch from which on its keys of this
    /// one are misused. In no committee are more than f, also not later.
    #[must_use]
    pub fn faulty(&self, kind: HandOver, epoch: u64) -> BTreeMap<usize, u64> {
        let members = self.seats(kind, epoch).into_iter().map(|(member, _)| member);
        let misused_from = |member: &usize| match (kind, *member, epoch) {
            _ if *member >= self.honest() => Some(0),
            _ if self.byzantine.is_empty() => None,
            (HandOver::FaultsMove, FIRST_FAULTY, 0) => Some(0),
            (HandOver::FaultsMove, TURNING, 1 | 2) => Some(2),
            _ => None,
        };
        members.filter_map(|member| Some((member, misused_from(&member)?))).collect()
    }

    /// Smaller plans, each less in one respect.
    #[must_use]
    pub fn smaller(&self) -> Vec<Self> {
        let mut plans = Vec::new();
        let mut with = |change: fn(&mut Self)| {
            let mut plan = self.clone();
            change(&mut plan);
            if plan != *self {
                plans.push(plan);
            }
        };
        with(|plan| plan.disputes = 0);
        with(|plan| plan.disputes = plan.disputes.min(1));
        with(|plan| plan.straddles = 0);
        with(|plan| plan.straddles = plan.straddles.min(1));
        with(|plan| plan.aimed_kills = false);
        with(|plan| plan.has_checkpoints = false);
        with(|plan| plan.adversaries = 0);
        with(|plan| plan.byzantine.clear());
        // Where members hand over, some are members only later.
        if self.hand_over.is_none() {
            with(|plan| plan.rotations = 0);
            with(|plan| plan.rotations = plan.rotations.min(1));
        }
        if !self.on_ledger {
            with(|plan| plan.relayers = 1);
            with(|plan| plan.relayed_at_a_loss = true);
        }
        with(|plan| plan.nodes_lie = false);
        with(|plan| plan.is_restored = false);
        with(|plan| plan.part_every_s = 0);
        with(|plan| plan.pause_ms_max = 0);
        with(|plan| plan.crash_every_s = 0);
        with(|plan| (plan.loss_per_mille, plan.duplicates_per_mille) = (0, 0));
        with(|plan| plan.delay_ms_max = 2);
        with(|plan| plan.shards.iter_mut().for_each(|count| *count = 1));
        with(|plan| plan.clients = 1);
        with(|plan| plan.clients = plan.clients.saturating_sub(1).max(1));
        with(|plan| plan.payments = 1);
        with(|plan| plan.payments = plan.payments.saturating_sub(1).max(1));
        with(|plan| plan.adversaries = plan.adversaries.min(1));
        with(|plan| plan.storm_s = (plan.storm_s / 2).max(5));
        with(|plan| plan.checkpoint_bytes = 1 << 20);
        with(|plan| plan.accounts_in_memory = 64);
        plans
    }

    /// How many authorities there are.
    #[must_use]
    pub fn authorities(&self) -> usize {
        self.shards.len()
    }

    /// How many of them are honest, at least at some time: the first ones.
    #[must_use]
    pub fn honest(&self) -> usize {
        self.authorities() - self.byzantine.len()
    }
}
