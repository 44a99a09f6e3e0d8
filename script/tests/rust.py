#!/usr/bin/env python3
"""Builds all Rust tests with lints, or runs them, two programs at a time.

    rust.py build          compiles; a warning of clippy is an error
    rust.py sim            compiles the simulator alone, with what `build` has compiled already
    rust.py run            compiles what is out of date, and runs all tests
    rust.py run --quick    runs the unit tests of all crates, and the tests of the rules (core)

Clippy is the compiler, so that our own crates are compiled once for lints and tests.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SIDE_BY_SIDE = 2
# These programs take longest, so they start first.
LONGEST = ["e2e", "node", "wallet", "testkit", "relayer"]
# These tests mostly wait for blocks and processes, so more of them run at a time than there are cores.
WAITING, WAITING_SIDE_BY_SIDE = ["e2e", "node", "wallet", "relayer"], 4
# Besides unit tests, `make check` runs the tests of the rules, without the differential test, which runs the contract.
QUICK = "core"
QUICK_LEAVES_OUT = ["--skip", "differential::"]

ENVIRONMENT = os.environ | {
    "RUSTC_WORKSPACE_WRAPPER": "clippy-driver",
    # In the format of cargo-clippy.
    "CLIPPY_ARGS": "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__",
    # The programs that the end-to-end tests start are built by this script.
    "PROGRAMS_ARE_BUILT": "1",
}


def build(command: list[str]) -> list[dict]:
    """The test programs, as cargo describes them."""
    cargo = ["cargo", *command, "--workspace", "--message-format=json-render-diagnostics"]
    built = subprocess.run(cargo, cwd=ROOT, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True)
    if built.returncode != 0:
        sys.exit(built.returncode)
    messages = [json.loads(line) for line in built.stdout.splitlines() if line.startswith("{")]
    programs = [
        message for message in messages
        if message["reason"] == "compiler-artifact" and message["executable"] and message["profile"]["test"]
    ]

    def rank(program: dict) -> int:
        name = program["target"]["name"]
        return LONGEST.index(name) if name in LONGEST else len(LONGEST)

    return sorted(programs, key=rank)


def run(program: dict, arguments: list[str]) -> tuple[str, float, int, str]:
    """Runs one program in the folder that cargo uses. Returns its name, seconds, exit code and output."""
    began = time.monotonic()
    folder = Path(program["manifest_path"]).parent
    name = f"{folder.name}/{program['target']['name']}"
    environment = ENVIRONMENT | {"CARGO_MANIFEST_DIR": str(folder)}
    if program["target"]["name"] in WAITING:
        environment["RUST_TEST_THREADS"] = str(WAITING_SIDE_BY_SIDE)
    done = subprocess.run(
        [program["executable"], *arguments], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
    )
    return name, time.monotonic() - began, done.returncode, done.stdout


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("what", choices=["build", "sim", "run"])
    arguments.add_argument("--quick", action="store_true")
    given = arguments.parse_args()

    if given.what == "sim":
        # A test among the targets selects the features of the tests, so what their build compiled is used.
        build(["build", "--bin=sim", f"--test={QUICK}"])
        return 0
    programs = build(["test", "--no-run", *(["--lib", f"--test={QUICK}"] if given.quick else [])])
    if given.what == "build":
        print(f"{len(programs)} test programs")
        return 0
    failed, failures, count = [], [], 0
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        for name, seconds, code, output in pool.map(run, programs, repeat(QUICK_LEAVES_OUT if given.quick else [])):
            result = re.findall(r"^test result: .*", output, re.MULTILINE)
            count += sum(int(found) for found in re.findall(r"(\d+) passed", " ".join(result)))
            for line in re.findall(r"^.*SKIPPED, NOT TESTED HERE.*$", output, re.MULTILINE):
                print(line)
            print(f"{name}: {' '.join(result) or f'exit code {code}'} {seconds:.0f} s", flush=True)
            if code != 0:
                failed += [f"{name}: {test}" for test in re.findall(r"^test (\S+) .*FAILED$", output, re.MULTILINE)] or [name]
                failures.append(output[max(output.find("\nfailures:\n"), 0):])
    # At the end, which is what is seen of a long log.
    print("".join(failures), flush=True)
    print(f"{count} tests passed; failed: {', '.join(failed) or 'none'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
