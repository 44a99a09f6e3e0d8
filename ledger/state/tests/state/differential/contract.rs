//! The contract's side: its calls, its errors, and the EVM in which it runs.

use std::path::Path;
use std::process::Command;

use alloy_primitives::{hex, keccak256};
use alloy_sol_types::{SolValue, sol};
use fastpay_core::{Committee, ContractVote, Vote, VoteSignature, encode_redemption_votes};
use fastpay_ledger_statement::NextCommittee;

use super::Shown;

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
    struct Announcement {
        uint64 epoch;
        Authority[] authorities;
        address guardian;
        address recovery;
        uint64 compromisedSince;
        bytes32 checkpoint;
        uint64 deadline;
    }

    function depositEther(bytes32 recipient);
    function redeem(Redemption redemption, uint64 epoch, bytes votes);
    function redeemBatch(Redemption[] redemptions, uint64 epoch, bytes votes);
    function requestUnlock(bytes32 account, uint64 sequence, bytes authorization);
    function upholdSequence(bytes32 account, uint64 sequence, bytes32 digest, bytes votes);
    function voidSequence(bytes32 account, uint64 sequence, bool unanimous, bytes votes);
    function announce(Announcement announcement, bytes proofs, bytes votes);
    function endorse(bytes32 id);
    function mature(bytes32 id);
    function install(Announcement announcement, uint256 blockNumber, bytes votes);

    /// As in test/differential/LedgerCourse.s.sol.
    struct Step {
        uint256 time;
        bool isForCouncil;
        address caller;
        uint256 value;
        bytes data;
    }
    struct Course {
        uint256 chainId;
        address deployment;
        uint32 votesValidity;
        uint32 unlockWindow;
        uint256 begin;
        Authority[] first;
        address guardian;
        address[] people;
        uint256[] balances;
        Step[] steps;
    }
}

/// The number of the block of a step, as the script counts.
pub fn block_of(step: usize) -> u64 {
    1_001 + step as u64
}

/// The selector of an error with this signature.
pub fn error(signature: &str) -> [u8; 4] {
    *keccak256(signature).first_chunk().unwrap()
}

pub fn authorities(committee: &Committee) -> Vec<Authority> {
    let authority =
        |m: &fastpay_core::Authority| Authority { votingKey: m.name.0.into(), redemptionKey: m.redemption_key };
    committee.members().iter().map(authority).collect()
}

pub fn redemption(of: &fastpay_core::Redemption) -> Redemption {
    Redemption {
        sender: of.sender.0.into(),
        recipient: of.recipient,
        asset: of.asset.0,
        amount: of.amount.0,
        fee: of.fee.0,
        sequence: of.sequence.0,
        memo: of.memo,
    }
}

pub fn announcement(next: &NextCommittee) -> Announcement {
    Announcement {
        epoch: next.committee.epoch().0,
        authorities: authorities(&next.committee),
        guardian: next.guardian,
        recovery: Default::default(),
        compromisedSince: next.compromised_since.0,
        checkpoint: next.checkpoint,
        deadline: next.deadline,
    }
}

/// Votes as the contract reads them.
pub fn packed(committee: &Committee, votes: &[ContractVote]) -> alloy_primitives::Bytes {
    let vote = |ContractVote { authority, signature }: &ContractVote| Vote {
        authority: *authority,
        signature: VoteSignature::Redemption { signature: *signature },
    };
    let votes: Vec<Vote> = votes.iter().map(vote).collect();
    encode_redemption_votes(committee, &votes).unwrap().into()
}

fn read(line: &str) -> Shown {
    let fields: Vec<&str> = line.split(' ').collect();
    let [accepted, numbers @ .., reason] = &fields[..] else { panic!("{line}") };
    let reason = hex::decode(reason).unwrap();
    let refused = (*accepted == "false").then(|| *reason.first_chunk().unwrap());
    Shown { refused, numbers: numbers.iter().map(|number| number.parse().unwrap()).collect() }
}

pub fn run(courses: &[Course]) -> Vec<Shown> {
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
