#!/usr/bin/env python3
"""Shows that the proofs in test/halmos can fail: each mutant below is the contract with one check removed, and the
proof that the mutant names must find a counterexample.

    script/checkers/mutants.py [NAME …]      all mutants, or these
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / "target/halmos/mutants"

# name: (file, the original text, the mutant's text, the proof that must fail)
MUTANTS = {
    "any-signer": (
        "contracts/libraries/Votes.sol",
        "eq(mload(0), mload(add(keys, shl(5, above))))",
        "1",
        "check_RedeemNeedsAQuorum",
    ),
    "repeated-member": (
        "contracts/libraries/Votes.sol",
        "gt(above, next)",
        "1",
        "check_RedeemNeedsAQuorum",
    ),
    "spent-again": (
        "contracts/FastPay.sol",
        "orders.bits = done | bit;",
        "orders.bits = done ^ bit ^ bit;",
        "check_ABatchNeedsAQuorum",
    ),
    "not-taken-off": (
        "contracts/base/Balances.sol",
        "balance -= amount; // checked above",
        "",
        "check_RedeemNeedsAQuorum",
    ),
    "queued-again": (
        "contracts/FastPay.sol",
        "delete _queue[sender][sequence];",
        "",
        "check_WhatWaitsIsPaidOnce",
    ),
    "compromised-and-paid": (
        "contracts/FastPay.sol",
        "if (_isCompromised(waiting.epoch)) {",
        "if (false) {",
        "check_WhatACompromisedEpochQueuedNeedsAQuorum",
    ),
    "anyone-installs": (
        "contracts/base/Roles.sol",
        "require(msg.sender == address(COUNCIL), NotCouncil(msg.sender));",
        "",
        "check_OnlyTheCouncilInstalls",
    ),
    "votes-for-anything": (
        "contracts/Council.sol",
        "Votes.check(votes, digest, Committees",
        "Votes.check(votes, digest ^ digest, Committees",
        "check_AnAnnouncementNeedsAQuorum",
    ),
    "upheld-by-anyone": (
        "contracts/base/Unlocks.sol",
        "Votes.check(votes, vote, keys, quorum",
        "Votes.check(votes, vote ^ vote, keys, quorum",
        "check_UpholdingNeedsAQuorum",
    ),
    "voided-early": (
        "contracts/base/Unlocks.sol",
        "require(block.timestamp >= voidableFrom, NotVoidable",
        "require(block.timestamp >= voidableFrom - voidableFrom, NotVoidable",
        "check_VoidingNeedsAQuorum",
    ),
    "anyone-pauses": (
        "contracts/base/Roles.sol",
        "require(msg.sender == guardian, NotGuardian(msg.sender));",
        "",
        "check_OnlyTheGuardianPauses",
    ),
}


def prepare(name: str, file: str, old: str, new: str) -> Path:
    """Copies everything that a proof needs, changes the copy, and returns its folder."""
    root = WORK / name
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    for folder in ["contracts", "test/halmos"]:
        shutil.copytree(ROOT / folder, root / folder)
    shutil.copy(ROOT / "foundry.toml", root)
    for folder in ["node_modules", "script"]:
        os.symlink(ROOT / folder, root / folder)
    source = (root / file).read_text()
    if old not in source:
        sys.exit(f"the mutant {name} changes a line that {file} does not have any more; write it anew")
    (root / file).write_text(source.replace(old, new))
    return root


def survives(name: str) -> bool:
    """Whether the proof misses the mutant."""
    file, old, new, proof = MUTANTS[name]
    root = prepare(name, file, old, new)
    command = [sys.executable, str(ROOT / "script/checkers/prove.py"), "--root", str(root), "--function", proof]
    command += ["--config", str(ROOT / "halmos.toml"), "--early-exit"]
    result = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    killed = result.returncode != 0 and "Counterexample" in result.stdout
    missed = "TIMED OUT" if "[TIMEOUT]" in result.stdout else "NOT FOUND"
    print(f"{'found' if killed else missed}: {name} ({proof})", flush=True)
    if not killed:
        print(result.stdout[-3000:], result.stderr[-1000:])
    return not killed


if __name__ == "__main__":
    names = sys.argv[1:] or list(MUTANTS)
    sys.exit(any([survives(name) for name in names]))
