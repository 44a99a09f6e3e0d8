#!/usr/bin/env python3
"""Runs Halmos with the addresses that Ethereum gives to created contracts.

Halmos itself numbers them from 0xaaaa0001. FastPay computes the addresses of its committees from its own address and
their number (contracts/libraries/Committees.sol), so a proof about it needs Ethereum's rule: the last 20 bytes
of keccak256(rlp([creator, nonce])), the nonce counted from 1 (EIP-161).
"""

import json
import sys
from pathlib import Path

from eth_hash.auto import keccak
from halmos.__main__ import main
from halmos.sevm import Exec, con_addr


def rlp_bytes(data: bytes) -> bytes:
    """The RLP of one string of less than 56 bytes."""
    return data if len(data) == 1 and data[0] < 0x80 else bytes([0x80 + len(data)]) + data


def create_address(creator: int, nonce: int) -> int:
    """The address of a contract that the EVM's CREATE makes."""
    items = rlp_bytes(creator.to_bytes(20, "big"))
    items += rlp_bytes(nonce.to_bytes((nonce.bit_length() + 7) // 8, "big"))
    return int.from_bytes(keccak(bytes([0xC0 + len(items)]) + items)[12:], "big")


def new_address(execution: Exec):
    """Replaces Halmos's function: returns the address of the next contract that the running one creates."""
    creator = execution.this().as_long()
    execution.cnts[f"created by {creator}"] += 1
    return con_addr(create_address(creator, execution.cnts[f"created by {creator}"]))


# Every Ethereum client tests this example of the yellow paper's address rule. It reveals an error in this file.
assert create_address(0x6AC7EA33F8831EA9DCC53393AAA88B25A785DBF0, 1) == 0x343C43A37D37DFF08AE8C4A11544C718ABB4FCF8
Exec.new_address = new_address

# Halmos only warns about a path that it cuts off at a loop bound. Such a path proves nothing, so its proof fails here.
report = Path("target/halmos/report.json")
report.parent.mkdir(parents=True, exist_ok=True)
report.unlink(missing_ok=True)
sys.argv += ["--json-output", str(report)]
exit_code = main()
if exit_code == 0:
    proofs = [proof for all_of_contract in json.loads(report.read_text())["test_results"].values() for proof in all_of_contract]
    cut_off = [proof["name"] for proof in proofs if proof["num_bounded_loops"]]
    if cut_off:
        print("cut off, because a loop is longer than halmos.toml says:", *cut_off, file=sys.stderr)
        exit_code = 1
sys.exit(exit_code)
