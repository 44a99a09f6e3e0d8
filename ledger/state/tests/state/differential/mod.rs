//! The same courses, taken by the ledger and by the contract in the EVM: of funding, redeeming, unlocking and rotating,
//! with equal windows, delays and bonds. After each step both have the same verdict and newest index, hold the same,
//! and everyone has the same.
//!
//! A run prints its seed; `DIFFERENTIAL_SEED=…` repeats it. Needs what `make setup` installs.

mod contract;
mod course;

use std::collections::BTreeMap;

use alloy_primitives::U256;
use fastpay_core::{Amount, Asset, Domain, TransactionIndex};
use fastpay_ledger_statement::{
    Action, Bond, CurrentEpoch, Issue, Outcome, Rejection, SafetyParameters, StateKey, Time, UnlockDecision,
    UnlockEntry, UnlockRequest,
};

use crate::people::{Client, GUARDIAN, address, client, committee};
use crate::world::{COMMITTEE, ISSUED_EACH, World, founded, genesis};

use contract::{Course, error};
use course::{BEGIN, Both, CHAIN, CONTRACT, Courses};

const COURSES: usize = 40;
const STEPS: usize = 80;
pub const DAY: u64 = 24 * 60 * 60;
/// In seconds.
pub const VALIDITY: u64 = 7 * DAY;
pub const WINDOW: u64 = 3 * DAY;
/// The contract's, in wei.
const BOND: u128 = 5_000_000_000_000_000;
const DEPOSITOR: u8 = 0;
const RELAYER: u8 = 3;
/// It pays the bonds.
const REQUESTER: u8 = 7;
const RICHES: u128 = 1_000 * BOND;
/// With Ethereum keys. The first two are recipients, too.
const PEOPLE: [u8; 5] = [1, GUARDIAN, DEPOSITOR, RELAYER, REQUESTER];

/// As the contract's constants.
const PARAMETERS: SafetyParameters = SafetyParameters {
    votes_validity_ms: VALIDITY * 1_000,
    unlock_window_ms: WINDOW * 1_000,
    endorsed_delay_ms: DAY * 1_000,
    announced_delay_ms: 14 * DAY * 1_000,
    lapse_ms: 14 * DAY * 1_000,
    unlock_bond: Bond { asset: Asset::ETHER, amount: Amount(BOND) },
};

/// What both sides show after a step. The index, what is held, and what each of the people has.
#[derive(Debug, PartialEq)]
pub struct Shown {
    /// The selector of the contract's error that a rejection is.
    refused: Option<[u8; 4]>,
    numbers: Vec<u128>,
}

/// The contract's errors for the same reasons.
fn names() -> BTreeMap<[u8; 4], &'static str> {
    let signatures = [
        "NothingReceived(address)",
        "ZeroRecipient()",
        "AlreadyRedeemed(bytes32,uint64)",
        "UnknownEpoch(uint64)",
        "EpochEnded(uint64,uint256)",
        "WrongVotesLength(uint256,uint256,uint256)",
        "VotesNotAscending(uint256,uint256,uint8)",
        "WrongSigner(uint256,uint256,uint8,address)",
        "ZeroRedemption(uint256)",
        "FeeAboveAmount(uint256,uint128,uint128)",
        "BalanceTooLow(uint256,address,uint256,uint128)",
        "EmptyBatch()",
        "NotOwner(bytes32)",
        "AlreadyRequested(bytes32,uint64)",
        "AlreadyDecided(bytes32,uint64)",
        "NotRequested(bytes32,uint64)",
        "NotVoidable(bytes32,uint64,uint256)",
        "SequenceSpent(bytes32,uint64)",
        "WrongEpoch(uint64,uint64)",
        "InvalidCompromisedSince(uint64)",
        "InvalidDeadline(uint64,uint256)",
        "WrongProofsLength(uint256,uint256)",
        "NoPossession(uint256)",
        "AlreadyAnnounced(bytes32)",
        "NotAnnounced(bytes32)",
        "AnnouncementEnded(bytes32)",
        "AnnouncementLapsed(bytes32,uint256)",
        "NotGuardian(address)",
        "AlreadyEndorsed(bytes32)",
        "NotInstallable(bytes32,uint256)",
        "AlreadyMatured(bytes32)",
        "NotMatured(bytes32)",
    ];
    signatures.map(|signature| (error(signature), signature.split('(').next().unwrap())).into()
}

/// The name of the contract's error for the same reason.
fn name_of(rejection: Rejection, action: &Action) -> &'static str {
    match rejection {
        Rejection::ZeroAmount if matches!(action, Action::Fund { .. }) => "NothingReceived",
        Rejection::ZeroAmount => "ZeroRedemption",
        Rejection::InvalidRecipient => "ZeroRecipient",
        Rejection::AlreadyRedeemed => "AlreadyRedeemed",
        Rejection::UnknownEpoch(_) => "UnknownEpoch",
        Rejection::EpochEnded(..) => "EpochEnded",
        Rejection::VoteCount { .. } => "WrongVotesLength",
        Rejection::VotesUnsorted(_) => "VotesNotAscending",
        Rejection::InvalidVote(_) => "WrongSigner",
        Rejection::FeeAboveAmount => "FeeAboveAmount",
        Rejection::OmnibusTooLow(_) => "BalanceTooLow",
        Rejection::EmptyBatch => "EmptyBatch",
        Rejection::NotOwner(_) => "NotOwner",
        Rejection::NotRequested => "NotRequested",
        Rejection::AlreadyDecided => "AlreadyDecided",
        Rejection::NotVoidable(_) => "NotVoidable",
        Rejection::SequenceSpent => "SequenceSpent",
        Rejection::WrongNextEpoch(_) => "WrongEpoch",
        Rejection::InvalidCompromise => "InvalidCompromisedSince",
        Rejection::DeadlinePassed(_) | Rejection::DeadlineTooFar(_) => "InvalidDeadline",
        Rejection::ProofCount { .. } => "WrongProofsLength",
        Rejection::NoPossession(_) => "NoPossession",
        Rejection::AlreadyAnnounced => "AlreadyAnnounced",
        Rejection::NotAnnounced => "NotAnnounced",
        Rejection::AnnouncementEnded(_) => "AnnouncementEnded",
        Rejection::AnnouncementLapsed(_) => "AnnouncementLapsed",
        Rejection::NotGuardian(_) => "NotGuardian",
        Rejection::AlreadyEndorsed => "AlreadyEndorsed",
        Rejection::NotInstallable(_) => "NotInstallable",
        Rejection::AlreadyMatured => "AlreadyMatured",
        Rejection::NotMatured => "NotMatured",
        other => panic!("the contract has no such error: {other}"),
    }
}

/// A request that was made before is carried out, and only the bond comes back: its shard cannot know.
fn refunded(world: &World, UnlockRequest { account, sequence, .. }: &UnlockRequest) -> &'static str {
    let entry: UnlockEntry = world.read(world.settlement(), &StateKey::Unlock(COMMITTEE, *account, *sequence)).unwrap();
    match entry.decision(&current(world)) {
        Some(UnlockDecision::Upheld | UnlockDecision::Voided) => "AlreadyDecided",
        None => "AlreadyRequested",
    }
}

pub fn current(world: &World) -> CurrentEpoch {
    world.read(world.settlement(), &StateKey::Epoch(COMMITTEE)).unwrap()
}

fn index(world: &World) -> TransactionIndex {
    world.read(world.settlement(), &StateKey::EventIndex(COMMITTEE)).unwrap_or_default()
}

/// Takes a step on the ledger at this time, in seconds.
fn take(world: &mut World, both: &Both, now: u64) -> Shown {
    let before = index(world);
    let who = world.clients.iter().position(|of| of.key.account() == client(both.by).account()).unwrap();
    let result = world.settle_at(Time(now * 1_000), who, both.action.clone());
    let name = match (&result, &both.action) {
        (Ok(Outcome::Unlocking), Action::RequestUnlock(request)) if index(world) == before => {
            Some(refunded(world, request))
        }
        (Ok(_), _) => None,
        (Err(rejection), action) => Some(name_of(*rejection, action)),
    };
    let selector = |name| *names().iter().find(|(_, known)| **known == name).unwrap().0;
    let mut numbers = vec![index(world).0.into(), world.omnibus()];
    numbers.extend(PEOPLE.iter().map(|at| world.reserve(client(*at).account())));
    assert_eq!(world.total(), world.issued());
    Shown { refused: name.map(selector), numbers }
}

fn world() -> World {
    let mut fixed = genesis(1);
    fixed.committees.insert(COMMITTEE, founded(PARAMETERS));
    fixed.issued.push(Issue { owner: client(REQUESTER).account(), asset: Asset::ETHER, amount: Amount(RICHES) });
    let mut world = World::of(fixed);
    world.clients.push(Client::new(REQUESTER));
    for who in [usize::from(DEPOSITOR), world.clients.len() - 1] {
        world.act(who, Action::Open).unwrap();
    }
    world
}

#[test]
fn ledger_and_contract_take_every_course_alike() {
    let seed = std::env::var("DIFFERENTIAL_SEED").map_or_else(|_| rand::random(), |seed| seed.parse().unwrap());
    println!("DIFFERENTIAL_SEED={seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut courses, mut shown) = (vec![], vec![]);
    for _ in 0..COURSES {
        let mut world = world();
        let domains = [world.domain(), Domain::new(CHAIN, CONTRACT)];
        let mut course = Courses::new(random.fork(), domains);
        let mut steps = vec![];
        for number in 0..STEPS {
            let (both, now) = course.next(&world, number);
            shown.push((number, both.action.clone(), take(&mut world, &both, now)));
            steps.push(both.step);
        }
        let riches = |at: &u8| U256::from(if *at == REQUESTER { RICHES } else { ISSUED_EACH });
        courses.push(Course {
            chainId: U256::from(CHAIN),
            deployment: CONTRACT,
            votesValidity: u32::try_from(VALIDITY).unwrap(),
            unlockWindow: u32::try_from(WINDOW).unwrap(),
            begin: U256::from(BEGIN),
            first: contract::authorities(&committee(0)),
            guardian: address(GUARDIAN),
            people: PEOPLE.map(address).into(),
            balances: PEOPLE.iter().map(riches).collect(),
            steps,
        });
    }
    let contract = contract::run(&courses);
    assert_eq!(contract.len(), COURSES * STEPS);
    for ((number, action, ours), theirs) in shown.iter().zip(&contract) {
        let name = |shown: &Shown| shown.refused.map(|selector| names().get(&selector).copied().unwrap_or("unknown"));
        let names = [ours, theirs].map(name);
        assert_eq!(ours, theirs, "step {number}, seed {seed}, {names:?}: {action:?}");
    }
    // Every verdict must have been tried, or the agreement says nothing.
    let mut tried: BTreeMap<&str, usize> = names().into_values().map(|name| (name, 0)).collect();
    let mut accepted: BTreeMap<String, usize> = BTreeMap::new();
    for ((_, action, _), theirs) in shown.iter().zip(&contract) {
        match theirs.refused {
            Some(selector) => *tried.get_mut(names()[&selector]).unwrap() += 1,
            None => *accepted.entry(kind_of(action)).or_default() += 1,
        }
    }
    println!("accepted {accepted:?}, refused {tried:?}");
    let never: Vec<_> = tried.iter().filter(|(_, count)| **count == 0).map(|(name, _)| *name).collect();
    assert!(never.is_empty(), "seed {seed}: no course met {never:?}");
    let kinds = [
        "Fund",
        "Redeem",
        "RedeemBatch",
        "RequestUnlock",
        "Uphold",
        "Void",
        "Announce",
        "Endorse",
        "Mature",
        "Install",
    ];
    let missing: Vec<_> = kinds.into_iter().filter(|kind| !accepted.contains_key(*kind)).collect();
    assert!(missing.is_empty(), "seed {seed}: nothing of {missing:?} was carried out");
}

/// The name of an action's variant.
fn kind_of(action: &Action) -> String {
    let text = format!("{action:?}");
    text.split(|letter: char| !letter.is_alphanumeric()).next().unwrap().to_owned()
}
