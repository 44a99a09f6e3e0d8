#!/usr/bin/env python3
"""Fails where a line or a branch of contracts/ is not reached by the tests in test/trees, unless it is named below.

Foundry counts neither the branches of `require(condition, Error(…))` nor lines of assembly. In their place: the line of
a `require` must be reached, and the error must be expected by a test in test/trees, which is its other branch; and
assembly counts as reached, branches and all, with the line before its block.
"""

import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
REPORT = ROOT / "target/coverage/lcov.info"

# What no test can reach, or Foundry cannot see, by file and text of the line, and why.
EXCEPTIONS: dict[tuple[str, str], str] = {
    ("contracts/libraries/Committees.sol", "previous = votingKey;"): "the optimizer moves it into the loop's head",
}


def measure() -> None:
    """Runs the tests of the trees on a build that counts. Its gas is not that of the contract that is deployed."""
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    command = [str(ROOT / "node_modules/.bin/forge"), "coverage", "--ir-minimum", "--report", "lcov"]
    command += ["--report-file", str(REPORT)]
    environment = {**os.environ, "FOUNDRY_PROFILE": "coverage"}
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment, check=False)
    if result.returncode != 0:
        sys.exit(result.stdout[-8000:] + result.stderr[-4000:])


class Source:
    """A file of contracts/, and where in it assembly is."""

    def __init__(self, file: str):
        self.lines = (ROOT / file).read_text().splitlines()
        self.before_assembly: dict[int, int] = {}
        begin, depth = 0, 0
        for number, line in enumerate(self.lines, 1):
            if depth == 0 and re.match(r"\s*assembly\b", line):
                begin = number
            if begin:
                self.before_assembly[number] = begin
                depth += line.count("{") - line.count("}")
                if depth == 0:
                    begin = 0

    def text(self, number: int) -> str:
        return self.lines[number - 1].strip()

    def error(self, number: int) -> str | None:
        """What the `require` that begins in this line reverts with, or none where there is none."""
        if not self.text(number).startswith("require("):
            return None
        statement = " ".join(self.lines[number - 1 : number + 4]).split(";")[0]
        return re.findall(r"\b([A-Z]\w+)\(", statement)[-1]


def missed() -> tuple[int, list[tuple[str, int, str]]]:
    """How many lines and branches there are, and those that no test reaches."""
    expected = "".join(path.read_text() for path in (ROOT / "test/trees").glob("*.sol"))
    total, found, file, hits_of = 0, [], "", {}
    for record in REPORT.read_text().splitlines():
        kind, _, rest = record.partition(":")
        if kind == "SF":
            file, hits_of = rest.removeprefix(f"{ROOT}/"), {}
            source = Source(file) if file.startswith("contracts/") else None
        if not file.startswith("contracts/") or kind not in ("DA", "BRDA"):
            continue
        total += 1
        line, *_, hits = rest.split(",")
        number = int(line)
        reached = hits not in ("-", "0")
        block = source.before_assembly.get(number)
        if kind == "DA":
            hits_of[number] = reached
        if block and not reached:
            measured = [known for known in hits_of if known < block]
            reached = bool(measured) and hits_of[max(measured)]
        elif kind == "BRDA" and (error := source.error(number)) is not None:
            reached = hits_of.get(number, False) and (f"{error}.selector" in expected or f"{error}(" in expected)
        if not reached:
            found.append((file, number, "line" if kind == "DA" else "branch"))
    return total, found


def main() -> int:
    measure()
    total, found = missed()
    unexplained, used = defaultdict(set), set()
    for file, line, what in found:
        text = Source(file).text(line)
        if (file, text) in EXCEPTIONS:
            used.add((file, text))
        else:
            unexplained[f"{file}:{line}: {text}"].add(what)
    for place, what in unexplained.items():
        print(f"not covered ({', '.join(sorted(what))}): {place}", file=sys.stderr)
    for file, text in EXCEPTIONS.keys() - used:
        print(f"covered now, or gone; take it out of the exceptions: {file}: {text}", file=sys.stderr)
    print(f"{total - len(found)} of {total} lines and branches of contracts/ are covered, {len(found)} to explain")
    return 1 if unexplained or EXCEPTIONS.keys() - used or total == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
