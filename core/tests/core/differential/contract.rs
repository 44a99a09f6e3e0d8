//! The contract's verdicts: Foundry deploys it for each case, calls it, and writes the result to a file.

use std::path::{Path, PathBuf};
use std::process::Command;

use alloy_primitives::hex;
use alloy_sol_types::{SolValue, sol};

use super::case::{Case, Function, VOTES_VALIDITY};

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
    /// As in test/differential/Judge.s.sol.
    struct ContractCase {
        uint256 chainId;
        address deployment;
        uint32 votesValidity;
        Authority[][] epochs;
        uint256 sinceRotation;
        uint8 callee;
        Redemption[] redemptions;
        uint64 epoch;
        address guardian;
        bytes votes;
    }
}

#[derive(Clone, Debug)]
pub struct Verdict {
    pub accepted: bool,
    /// The revert data, if it reverted.
    pub reason: String,
}

/// The contract's verdict on each case, in their order.
pub fn judge(cases: &[Case]) -> Vec<Verdict> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let folder = root.join("target/differential");
    std::fs::create_dir_all(&folder).unwrap();
    let lines: Vec<String> = cases.iter().map(|case| hex::encode_prefixed(encode(case).abi_encode())).collect();
    std::fs::write(folder.join("cases.txt"), lines.join("\n")).unwrap();
    let verdicts = folder.join("verdicts.txt");
    // One of an earlier run must not be taken for this one's.
    if verdicts.exists() {
        std::fs::remove_file(&verdicts).unwrap();
    }
    run_forge(root);
    std::fs::read_to_string(verdicts).unwrap().lines().map(read).collect()
}

fn run_forge(root: &Path) {
    let forge: PathBuf = root.join("node_modules/.bin/forge");
    assert!(forge.exists(), "Foundry is not installed; run `make setup` first");
    let output = Command::new(forge)
        .args(["script", "test/differential/Judge.s.sol:JudgeScript", "--quiet", "--gas-limit", "1000000000000"])
        .current_dir(root)
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "forge failed: {}{}", text(&output.stdout), text(&output.stderr));
}

fn read(line: &str) -> Verdict {
    let (accepted, reason) = line.split_once(' ').unwrap();
    Verdict { accepted: accepted.parse().unwrap(), reason: reason.into() }
}

fn encode(case: &Case) -> ContractCase {
    let call = &case.call;
    ContractCase {
        chainId: alloy_primitives::U256::from(call.domain.chain_id()),
        deployment: call.domain.contract(),
        votesValidity: u32::try_from(VOTES_VALIDITY).unwrap(),
        epochs: case.epochs.iter().map(|signers| authorities(signers.committee.members())).collect(),
        sinceRotation: alloy_primitives::U256::from(case.since_rotation),
        callee: match call.function {
            Function::Redeem => 0,
            Function::RedeemBatch => 1,
        },
        redemptions: call.redemptions.iter().map(redemption).collect(),
        epoch: call.epoch.0,
        guardian: call.guardian,
        votes: case.votes.clone().into(),
    }
}

fn authorities(members: &[fastpay_core::Authority]) -> Vec<Authority> {
    members.iter().map(|m| Authority { votingKey: m.name.0.into(), redemptionKey: m.redemption_key }).collect()
}

fn redemption(order: &fastpay_core::Redemption) -> Redemption {
    Redemption {
        sender: order.sender.0.into(),
        recipient: order.recipient,
        asset: order.asset.0,
        amount: order.amount.0,
        fee: order.fee.0,
        sequence: order.sequence.0,
        memo: order.memo,
    }
}
