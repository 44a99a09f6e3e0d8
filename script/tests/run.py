#!/usr/bin/env python3
"""Runs the parts of parts.toml, two at a time, and reports how long each took.

    run.py check                  the parts to run before each commit
    run.py test                   the parts that every change must pass
    run.py all                    all parts
    run.py rest --minutes 65      the parts that `test` leaves out, beginning with another one at each commit,
                                  if their budgets end within so many minutes of --since

A part's output goes to target/test-logs/NAME.log, and is printed if the part fails. The times of all parts go to
target/test-times.json.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOGS = ROOT / "target/test-logs"
TIMES = ROOT / "target/test-times.json"
LANES = 2
# A part that takes this many times its budget is stopped as hanging.
OVERRUN = 2


def parts_of(chosen: str) -> list[dict]:
    parts = tomllib.loads((ROOT / "script/tests/parts.toml").read_text())["part"]
    if chosen == "all":
        return [part for part in parts if part["in"] != ["check"]]
    if chosen == "rest":
        return [part for part in parts if part["in"] == ["all"]]
    return [part for part in parts if chosen in part["in"]]


def rotated(parts: list[dict]) -> list[dict]:
    """The same parts, beginning with another one at each commit."""
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout
    begin = int(head[:8] or "0", 16) % len(parts)
    return parts[begin:] + parts[:begin]


class Running:
    """A part that is running."""

    def __init__(self, part: dict, passed: set[str]):
        self.part, self.began = part, time.monotonic()
        self.log = LOGS / f"{part['name']}.log"
        # Tells the part which needs are met, so that it does not repeat the set-up.
        done = sorted(passed | set(part.get("needs", [])))
        # The part gets a session of its own, so that everything that it starts can be stopped with it.
        self.process = subprocess.Popen(
            part["run"], shell=True, cwd=ROOT, env=os.environ | {"DONE": " ".join(done)}, stdin=subprocess.DEVNULL, stdout=self.log.open("wb"),
            stderr=subprocess.STDOUT, start_new_session=True,
        )

    def seconds(self) -> float:
        return time.monotonic() - self.began

    def poll(self) -> int | None:
        if self.seconds() > 60 * OVERRUN * self.part["minutes"]:
            print(f"{self.part['name']}: stopped after {self.seconds():.0f} s", flush=True)
            self.stop()
        return self.process.poll()

    def stop(self) -> None:
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()


def run(parts: list[dict], may_begin=lambda part: True) -> tuple[list[dict], list[str], list[str]]:
    """Runs the parts. Returns the times of those that ran, and the names of those that failed and that did not run."""
    names = {part["name"] for part in parts}
    waiting, running, times, failed, passed = list(parts), [], [], [], set()
    try:
        while waiting or running:
            for part in list(waiting):
                busy = {other.part.get("uses") for other in running} - {None}
                ready = all(need in passed or need not in names for need in part.get("needs", []))
                room = len(running) < LANES and part.get("uses") not in busy
                if ready and room and not failed and may_begin(part):
                    waiting.remove(part)
                    print(f"{part['name']} …", flush=True)
                    running.append(Running(part, passed))
            if not running:
                break
            time.sleep(0.2)
            for one in [one for one in running if one.poll() is not None]:
                running.remove(one)
                name, code, seconds = one.part["name"], one.process.returncode, one.seconds()
                times.append({"part": name, "seconds": round(seconds, 1)})
                if code == 0:
                    passed.add(name)
                    print(f"{name}: passed in {seconds:.0f} s", flush=True)
                    if seconds > 60 * one.part["minutes"]:
                        print(f"{name}: over its budget of {one.part['minutes']} minutes", flush=True)
                else:
                    failed.append(name)
                    sys.stdout.flush()
                    sys.stdout.buffer.write(one.log.read_bytes())
                    print(f"\n{name}: FAILED with exit code {code} after {seconds:.0f} s; its output is above", flush=True)
    finally:
        for one in running:
            one.stop()
    return times, failed, [part["name"] for part in waiting]


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("set", choices=["check", "test", "all", "rest"])
    arguments.add_argument("--minutes", type=float, help="begin no part that cannot end within so many minutes")
    arguments.add_argument("--since", type=float, default=time.time(), help="Unix time from which they count")
    given = arguments.parse_args()

    LOGS.mkdir(parents=True, exist_ok=True)
    parts = parts_of(given.set)
    if given.set == "rest":
        parts = rotated(parts)

    def fits(part: dict) -> bool:
        return given.minutes is None or time.time() - given.since + 60 * part["minutes"] < 60 * given.minutes

    times, failed, not_run = run(parts, fits)

    # A run of CI has two steps, `test` and `rest`; their times form one list.
    if given.set == "rest" and TIMES.exists():
        names = {entry["part"] for entry in times}
        times += [entry for entry in json.loads(TIMES.read_text()) if entry["part"] not in names]
    times.sort(key=lambda entry: -entry["seconds"])
    TIMES.write_text(json.dumps(times, indent=1) + "\n")

    print()
    for entry in times:
        print(f"{entry['seconds']:7.0f} s  {entry['part']}")
    for name in not_run:
        print(f"NOT RUN    {name}")
    if given.set in ("check", "test"):
        left_out = [part["name"] for part in parts_of("test" if given.set == "check" else "rest")]
        left_out = [name for name in left_out if name not in {part["name"] for part in parts}]
        left_out += [part["without"] for part in parts if "without" in part]
        print(f"left out: {', '.join(left_out)} (make {'test' if given.set == 'check' else 'test-all'})")
    print(f"\nparts: {len(times) - len(failed)} passed, {len(failed)} failed, {len(not_run)} skipped")
    return 1 if failed or (not_run and given.minutes is None) else 0


if __name__ == "__main__":
    sys.exit(main())
