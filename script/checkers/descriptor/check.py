#!/usr/bin/env python3
"""Checks the descriptor of orders for hardware and browser wallets (ERC-7730) with the linter of its registry.

The file in docs/ names no deployment, because each operator adds their own. The linter requires one, so it reads a copy
that has one. The check fails on warnings, too.
"""

import json
import sys
import tempfile
import typing
from pathlib import Path

import typing_extensions

# The linter requires Python 3.12, but uses only this name of it.
typing.override = typing_extensions.override

from erc7730.common.output import ListOutputAdder  # noqa: E402
from erc7730.lint.lint import lint_all  # noqa: E402

ROOT = Path(__file__).resolve().parents[3]
DESCRIPTOR = ROOT / "docs" / "erc7730" / "eip712-fastpay.json"
DEPLOYMENT = {"chainId": 1, "address": "0x5FbDB2315678afecb367f032d93F642f64180aa3"}


def main():
    descriptor = json.loads(DESCRIPTOR.read_text())
    descriptor["context"]["eip712"]["deployments"] = [DEPLOYMENT]
    out = ListOutputAdder()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / DESCRIPTOR.name
        copy.write_text(json.dumps(descriptor))
        # The linter would fetch ABIs from servers, and an order is not a contract call.
        checked = lint_all([copy], out, skip_abi_validation=True)
    findings = [output for output in out.outputs if output.level >= output.Level.WARNING]
    for finding in findings:
        print(f"{finding.title}: {finding.message}")
    print(f"{DESCRIPTOR.relative_to(ROOT)}: {len(findings)} findings")
    return 0 if checked == 1 and not findings else 1


if __name__ == "__main__":
    sys.exit(main())
