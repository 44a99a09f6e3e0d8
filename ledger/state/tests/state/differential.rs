//! The same courses of funding, redeeming and rotating, taken by the ledger and by the contract in the EVM. After each step
//! both have the same verdict, the same newest index, hold the same, and have paid the same.
//!
//! A run prints its seed; `DIFFERENTIAL_SEED=…` repeats it. Needs what `make setup` installs.

use std::path::Path;
use std::process::Command;

use alloy_primitives::{U256, address, hex};
use alloy_sol_types::{SolError, SolValue, sol};
use fastpay_core::{
    AccountId, Amount, Asset, ContractVote, Domain, PrimaryAddress, TransactionIndex, Vote, VoteSignature,
    encode_redemption_votes,
};
use fastpay_ledger_statement::{Action, ClusterId, Outcome, Rejection, StateKey};

use crate::people::{account, certified, client, committee, redemption, rotation};
use crate::world::{COMMITTEE, ISSUED_EACH, World, genesis};

sol! {
    struct Authority {
        bytes32 votingKey;
        address redemptionKey;
    }
    struct Redemption {
        bytes32 sender;
        address recipient;
        address asset;
        uint128 amount;
        uint128 fee;
        uint64 sequence;
        bytes32 memo;
    }
    /// As in test/differential/LedgerCourse.s.sol.
    struct Step {
        uint256 advance;
        uint8 kind;
        bytes32 account;
        uint128 amount;
        Redemption redemption;
        uint64 epoch;
        bytes votes;
        Authority[] next;
        uint64 compromisedSince;
    }
    struct Course {
        uint256 chainId;
        address deployment;
        uint32 votesValidity;
        Authority[] first;
        address relayer;
        address[] recipients;
        Step[] steps;
    }
    error NothingReceived(address asset);
    error ZeroRecipient();
    error AlreadyRedeemed(bytes32 sender, uint64 sequence);
    error UnknownEpoch(uint64 epoch);
    error EpochEnded(uint64 epoch, uint256 endedAt);
    error WrongVotesLength(uint256 item, uint256 length, uint256 expected);
    error VotesNotAscending(uint256 item, uint256 position, uint8 member);
    error WrongSigner(uint256 item, uint256 position, uint8 member, address recovered);
    error ZeroRedemption(uint256 item);
    error FeeAboveAmount(uint256 item, uint128 fee, uint128 amount);
    error BalanceTooLow(uint256 item, address asset, uint256 balance, uint128 amount);
}

const COURSES: usize = 16;
const STEPS: usize = 30;
const DAY: u64 = 24 * 60 * 60;
const VALIDITY: u64 = 7 * DAY;
const CONTRACT: PrimaryAddress = address!("0xfafafafafafafafafafafafafafafafafafafafa");
const RELAYER: u8 = 3;
const PAYER: usize = 0;
/// Apart from payer and relayer, with Ethereum keys.
const RECIPIENTS: [u8; 2] = [1, 4];

/// What both sides show after a step. The index, what is held, and what relayer and recipients were paid.
#[derive(Debug, PartialEq)]
struct Shown {
    /// The selector of the contract's error that a rejection is.
    refused: Option<[u8; 4]>,
    numbers: Vec<u128>,
}

fn address_of(at: u8) -> PrimaryAddress {
    client(at).account().ethereum_address().unwrap()
}

/// A step for both: the action for the ledger, and the contract's.
struct Both {
    action: Action,
    step: Step,
}

struct Courses {
    random: fastrand::Rng,
    /// Of the ledger, and of the contract.
    domains: [Domain; 2],
    epoch: u8,
    now: u64,
    /// When the votes of the epoch before cease to count.
    until: u64,
}

impl Courses {
    fn next(&mut self) -> Both {
        // Steps are a day apart, so that the contract's limit lets everything pass; some at the very end of votes.
        let edges = [self.until, self.until + 1];
        let edge = edges[self.random.usize(0..2)];
        let next =
            if edge > self.now + DAY && self.random.bool() { edge } else { self.now + DAY + self.random.u64(0..DAY) };
        let advance = U256::from(next - self.now);
        self.now = next;
        let both = match self.random.u8(0..10) {
            0..=3 => self.fund(),
            4..=8 => self.redeem(),
            _ => self.rotate(),
        };
        Both { step: Step { advance, ..both.step }, ..both }
    }

    fn fund(&mut self) -> Both {
        let amount = Amount(self.random.u128(0..30));
        let account = if self.random.u8(0..8) == 0 { AccountId::ZERO } else { account(1) };
        let action = Action::Fund { committee: COMMITTEE, account, asset: Asset::ETHER, amount };
        Both { action, step: Step { account: account.0.into(), amount: amount.0, ..step(0) } }
    }

    fn redeem(&mut self) -> Both {
        let amount = self.random.u128(0..25);
        let (sender, sequence) = (self.random.u8(1..3), self.random.u64(250..260));
        let recipient = address_of(RECIPIENTS[self.random.usize(0..2)]);
        let order = redemption(
            sender,
            sequence,
            recipient,
            amount,
            self.random.u128(0..amount + 2) / 2 + self.random.u128(0..3),
        );
        let epoch = self.random.u8(self.epoch.saturating_sub(2)..self.epoch + 2);
        let mutation = self.random.u8(0..8);
        let [ours, theirs] = self.domains.map(|domain| {
            let Action::Redeem { redemption, mut votes, committee, epoch } = certified(&domain, epoch, order.clone())
            else {
                panic!("a redemption")
            };
            match mutation {
                0 => drop(votes.drain(2..)),
                1 => votes.swap(0, 1),
                2 => votes[1] = votes[0].clone(),
                3 => votes[2].signature = votes[1].signature,
                _ => {}
            }
            Action::Redeem { redemption, votes, committee, epoch }
        });
        let Action::Redeem { votes, redemption, .. } = theirs else { panic!("a redemption") };
        let redemption = Redemption {
            sender: redemption.sender.0.into(),
            recipient: redemption.recipient,
            asset: redemption.asset.0,
            amount: redemption.amount.0,
            fee: redemption.fee.0,
            sequence: redemption.sequence.0,
            memo: redemption.memo,
        };
        let vote = |ContractVote { authority, signature }| Vote {
            authority,
            signature: VoteSignature::Redemption { signature },
        };
        let votes: Vec<Vote> = votes.into_iter().map(vote).collect();
        let votes = encode_redemption_votes(&committee(epoch), &votes).unwrap().into();
        Both { action: ours, step: Step { redemption, epoch: epoch.into(), votes, ..step(1) } }
    }

    fn rotate(&mut self) -> Both {
        if self.epoch > 5 {
            return self.redeem();
        }
        self.epoch += 1;
        let compromised = self.epoch - u8::from(self.random.u8(0..4) == 0);
        self.until = if compromised == self.epoch { self.now + VALIDITY } else { 0 };
        let action = Action::Rotate(Box::new(rotation(&self.domains[0], self.epoch, compromised, self.now)));
        let next = authorities(self.epoch);
        Both { action, step: Step { next, compromisedSince: compromised.into(), ..step(2) } }
    }
}

fn authorities(epoch: u8) -> Vec<Authority> {
    let committee = committee(epoch);
    let authority =
        |m: &fastpay_core::Authority| Authority { votingKey: m.name.0.into(), redemptionKey: m.redemption_key };
    committee.members().iter().map(authority).collect()
}

fn step(kind: u8) -> Step {
    let redemption = Redemption {
        sender: Default::default(),
        recipient: Default::default(),
        asset: Default::default(),
        amount: 0,
        fee: 0,
        sequence: 0,
        memo: Default::default(),
    };
    let (advance, account, amount, epoch, votes, next) = Default::default();
    Step { advance, kind, account, amount, redemption, epoch, votes, next, compromisedSince: 0 }
}

/// The contract's error for the same reason.
fn selector(rejection: Rejection, kind: u8) -> [u8; 4] {
    match rejection {
        Rejection::ZeroAmount if kind == 0 => NothingReceived::SELECTOR,
        Rejection::InvalidRecipient => ZeroRecipient::SELECTOR,
        Rejection::AlreadyRedeemed => AlreadyRedeemed::SELECTOR,
        Rejection::UnknownEpoch(_) => UnknownEpoch::SELECTOR,
        Rejection::EpochEnded(..) => EpochEnded::SELECTOR,
        Rejection::VoteCount { .. } => WrongVotesLength::SELECTOR,
        Rejection::VotesUnsorted(_) => VotesNotAscending::SELECTOR,
        Rejection::InvalidVote(_) => WrongSigner::SELECTOR,
        Rejection::ZeroAmount => ZeroRedemption::SELECTOR,
        Rejection::FeeAboveAmount => FeeAboveAmount::SELECTOR,
        Rejection::OmnibusTooLow(_) => BalanceTooLow::SELECTOR,
        other => panic!("the contract has no such error: {other}"),
    }
}

/// Takes a step on the ledger at this time.
fn take(world: &mut World, client_number: usize, both: &Both, now: u64) -> Shown {
    let settlement = ClusterId(1);
    let request = world.sign(client_number, both.action.clone()).verify(world.layout().deployment()).unwrap();
    // A height takes 100 ms in this world.
    world.clusters.get_mut(&settlement).unwrap().moment.time.0 = now * 1_000 - 100;
    world.decide(settlement, vec![], vec![request.clone()]).unwrap();
    let result: &Result<Outcome, Rejection> = &world.answers[&request.digest()];
    let refused = result.as_ref().err().map(|rejection| selector(*rejection, both.step.kind));
    let index: TransactionIndex = world.read(settlement, &StateKey::EventIndex(COMMITTEE)).unwrap_or_default();
    let mut numbers = vec![index.0.into(), world.omnibus()];
    numbers.extend([RELAYER].iter().chain(&RECIPIENTS).map(|at| world.reserve(client(*at).account()) - ISSUED_EACH));
    Shown { refused, numbers }
}

fn read(line: &str) -> Shown {
    let fields: Vec<&str> = line.split(' ').collect();
    let [accepted, numbers @ .., reason] = &fields[..] else { panic!("{line}") };
    let reason = hex::decode(reason).unwrap();
    let refused = (*accepted == "false").then(|| *reason.first_chunk().unwrap());
    Shown { refused, numbers: numbers.iter().map(|number| number.parse().unwrap()).collect() }
}

fn run_contract(courses: &[Course]) -> Vec<Shown> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let folder = root.join("target/differential");
    std::fs::create_dir_all(&folder).unwrap();
    let lines: Vec<String> = courses.iter().map(|course| hex::encode_prefixed(course.abi_encode())).collect();
    std::fs::write(folder.join("courses.txt"), lines.join("\n")).unwrap();
    let outcomes = folder.join("outcomes.txt");
    // One of an earlier run must not be taken for this one's.
    if outcomes.exists() {
        std::fs::remove_file(&outcomes).unwrap();
    }
    let forge = root.join("node_modules/.bin/forge");
    assert!(forge.exists(), "Foundry is not installed; run `make setup` first");
    let script = "test/differential/LedgerCourse.s.sol:LedgerCourseScript";
    let output = Command::new(forge)
        .args(["script", script, "--quiet", "--gas-limit", "1000000000000"])
        .current_dir(&root)
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "forge failed: {}{}", text(&output.stdout), text(&output.stderr));
    std::fs::read_to_string(outcomes).unwrap().lines().map(read).collect()
}

#[test]
fn ledger_and_contract_take_every_course_alike() {
    let seed = std::env::var("DIFFERENTIAL_SEED").map_or_else(|_| rand::random(), |seed| seed.parse().unwrap());
    println!("DIFFERENTIAL_SEED={seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut courses, mut shown) = (vec![], vec![]);
    for _ in 0..COURSES {
        let mut fixed = genesis(1);
        fixed.votes_validity_ms = VALIDITY * 1_000;
        let mut world = World::of(fixed);
        world.act(PAYER, Action::Open).unwrap();
        let domains = [world.layout().deployment().domain(COMMITTEE), Domain::new(31_337, CONTRACT)];
        let mut course = Courses { random: random.fork(), domains, epoch: 0, now: 10 * DAY, until: 0 };
        let mut steps = vec![];
        for number in 0..STEPS {
            let both = course.next();
            let who = if both.step.kind == 0 { PAYER } else { RELAYER.into() };
            shown.push((number, both.action.clone(), take(&mut world, who, &both, course.now)));
            steps.push(both.step);
        }
        courses.push(Course {
            chainId: U256::from(31_337),
            deployment: CONTRACT,
            votesValidity: u32::try_from(VALIDITY).unwrap(),
            first: authorities(0),
            relayer: address_of(RELAYER),
            recipients: RECIPIENTS.map(address_of).into(),
            steps,
        });
    }
    let contract = run_contract(&courses);
    assert_eq!(contract.len(), COURSES * STEPS);
    for ((number, action, ours), theirs) in shown.iter().zip(&contract) {
        assert_eq!(ours, theirs, "step {number}, seed {seed}: {action:?}");
    }
    // Every verdict must have been tried, or the agreement says nothing.
    let tried = |error| contract.iter().filter(|shown| shown.refused == error).count();
    assert!(tried(None) > COURSES * STEPS / 4, "seed {seed}: too little was accepted");
    let errors = [
        NothingReceived::SELECTOR,
        ZeroRecipient::SELECTOR,
        AlreadyRedeemed::SELECTOR,
        UnknownEpoch::SELECTOR,
        EpochEnded::SELECTOR,
        WrongVotesLength::SELECTOR,
        VotesNotAscending::SELECTOR,
        WrongSigner::SELECTOR,
        BalanceTooLow::SELECTOR,
    ];
    for error in errors {
        assert!(tried(Some(error)) > 0, "seed {seed}: no course met error {}", hex::encode(error));
    }
}
