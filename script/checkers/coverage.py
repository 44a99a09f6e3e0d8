#!/usr/bin/env python3
"""Fails if the tests in test/trees do not reach a line or a branch of contracts/.

It measures a build without optimizer, on which Foundry counts both outcomes of each `require` and the lines of
assembly. Foundry cannot count code that the optimizer moves or merges.
"""

import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
REPORT = ROOT / "target/coverage/lcov.info"


def measure() -> None:
    """Runs the tests of test/trees on an instrumented build. Its gas costs differ from the deployed contract's."""
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    command = [str(ROOT / "node_modules/.bin/forge"), "coverage", "--report", "lcov", "--report-file", str(REPORT)]
    environment = {**os.environ, "FOUNDRY_PROFILE": "coverage"}
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment, check=False)
    if result.returncode != 0:
        sys.exit(result.stdout[-8000:] + result.stderr[-4000:])


def counted() -> dict[str, list[tuple[int, str, bool]]]:
    """The lines and branches of each file of contracts/ that has code: line number, kind, and whether it is reached."""
    files: dict[str, list[tuple[int, str, bool]]] = defaultdict(list)
    file = ""
    for record in REPORT.read_text().splitlines():
        kind, _, rest = record.partition(":")
        if kind == "SF":
            file = rest.removeprefix(f"{ROOT}/")
        elif kind in ("DA", "BRDA") and file.startswith("contracts/"):
            line, *_, hits = rest.split(",")
            files[file].append((int(line), "line" if kind == "DA" else "branch", hits not in ("-", "0")))
    return files


def main() -> int:
    measure()
    files = counted()
    sources = {str(path.relative_to(ROOT)) for path in (ROOT / "contracts").rglob("*.sol")}
    unseen = {file for file in sources - files.keys() if not file.startswith("contracts/interfaces/")}
    for file in sorted(unseen):
        print(f"not in the report at all: {file}", file=sys.stderr)
    missed = 0
    for file, found in files.items():
        text = (ROOT / file).read_text().splitlines()
        for line, what in sorted({(line, what) for line, what, reached in found if not reached}):
            missed += 1
            print(f"not covered ({what}): {file}:{line}: {text[line - 1].strip()}", file=sys.stderr)
    print(f"{sum(map(len, files.values()))} lines and branches in {len(files)} files of contracts/, {missed} not covered")
    return 1 if missed or unseen else 0


if __name__ == "__main__":
    sys.exit(main())
