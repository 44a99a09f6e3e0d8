#!/usr/bin/env python3
"""Fails if docs/abi/ differs from the ABI of the compiled contracts; `abi.py --write` writes it."""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CONTRACTS = ["FastPay", "Council"]


def main():
    stale = []
    for name in CONTRACTS:
        abi = json.loads((ROOT / f"out/{name}.sol/{name}.json").read_text())["abi"]
        text = "[\n" + ",\n".join(json.dumps(entry) for entry in abi) + "\n]\n"
        page = ROOT / f"docs/abi/{name}.json"
        if "--write" in sys.argv:
            page.parent.mkdir(exist_ok=True)
            page.write_text(text)
        elif not page.exists() or page.read_text() != text:
            stale.append(str(page.relative_to(ROOT)))
    if stale:
        sys.exit(f"{', '.join(stale)}: not the compiled contract's ABI; run script/checkers/abi.py --write")


main()
