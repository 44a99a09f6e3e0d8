#!/usr/bin/env python3
"""Runs the commands of steps.txt on a real localnet, and records their output for docs/WALKTHROUGH.md.

`walkthrough.py PROGRAMS` writes the marked blocks of docs/WALKTHROUGH.md, and docs/images: the terminal as
walkthrough.svg and .cast, and pictures of the web wallet. The block `demo` is the output of `fastpay-demo`.
`walkthrough.py --check PROGRAMS` writes nothing. It fails if a command does not end as steps.txt says, or prints lines
of another shape than docs/WALKTHROUGH.md shows. PROGRAMS is the folder of the built programs. The rules in words.py
shorten long output; nobody shortens it by hand.
"""

import argparse
import difflib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import picture
import words
from shell import PATIENCE_SECONDS, Shell

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PAGE = ROOT / "docs" / "WALKTHROUGH.md"
IMAGES = ROOT / "docs" / "images"
# Pictures of the web wallet that README.md shows, and the tests that take them.
PICTURES = {"received": "alice pays bob", "explorer-payment": "a payment is found by digest"}


@dataclass
class Command:
    """One command of steps.txt, and its output."""

    section: str
    text: str
    comments: list
    code: int = 0
    answer: tuple = None
    kill_at: str = None
    frozen: str = None
    pieces: list = field(default_factory=list)

    @property
    def lines(self):
        return "".join(text for _, text in self.pieces).rstrip("\n").split("\n")

    @property
    def shown(self):
        return words.shorten(self.lines)

    @property
    def seconds(self):
        return self.pieces[-1][0] if self.pieces else 0.0

    def before(self, at):
        """The time of the last output before `at`, or 0."""
        return max((earlier for earlier, _ in self.pieces if earlier < at), default=0.0)


def read_steps():
    """The commands of steps.txt."""
    commands, section, comments = [], None, []
    for number, line in enumerate((HERE / "steps.txt").read_text().splitlines(), 1):
        if line.startswith("== "):
            section = line[3:]
        elif section is None or not line:
            continue
        elif line.startswith("# "):
            comments.append(line[2:])
        elif line.startswith("$ "):
            commands.append(Command(section, line[2:], comments))
            comments = []
        else:
            match shlex.split(line):
                case ["fails", code]:
                    commands[-1].code = int(code)
                case ["answer", text, "at", at]:
                    commands[-1].answer = (text, at)
                case ["killed", "at", at]:
                    commands[-1].kill_at = at
                case ["while", program, "is", "frozen"]:
                    commands[-1].frozen = program
                case _:
                    raise SystemExit(f"steps.txt, line {number}: {line}")
    return commands


class Localnet:
    """A localnet of its own, which runs until `stop`."""

    def __init__(self, programs):
        self.log = ROOT / "target" / "localnet-walkthrough.log"
        with open(self.log, "w") as log:
            self.process = subprocess.Popen([programs / "fastpay-localnet", "--name", "walkthrough"], stdout=log, stderr=log)

    def exports(self):
        """Waits until the localnet is up, and returns the `export` lines that it asks users to paste."""
        end = time.monotonic() + PATIENCE_SECONDS
        while "for programs" not in (said := self.log.read_text()):
            if self.process.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"the localnet did not come up:\n{said}")
            time.sleep(0.1)
        return re.findall(r"^ +(export .*)$", said, re.MULTILINE)

    @contextmanager
    def frozen(self, program):
        """Suspends one of the localnet's programs while the context is open."""
        listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid=,args="], check=True, capture_output=True, text=True).stdout
        found = [line.split(None, 2) for line in listed.splitlines()]
        pids = [int(pid) for pid, parent, name in found if program and int(parent) == self.process.pid and program in name]
        if program and not pids:
            raise SystemExit(f"the localnet has no {program}")
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)

    def stop(self):
        self.process.terminate()
        self.process.wait(PATIENCE_SECONDS)


def photograph():
    """Has the browser tests take pictures of the wallet and the explorer on the running network."""
    network = ROOT / "target" / "localnet-walkthrough" / "network.json"
    tests = "|".join(PICTURES.values())
    subprocess.run(["npm", "run", "--silent", "test", "--workspace", "web", "--", "--grep", tests], cwd=ROOT, check=True,
                   env=os.environ | {"FASTPAY_NETWORK": str(network)})
    for name in PICTURES:
        shutil.copyfile(ROOT / "target" / "web" / f"{name}.png", IMAGES / f"{name}.png")


def perform(programs, commands, and_then=lambda: None):
    """Runs all commands on a localnet, and then `and_then`, while the localnet still runs."""
    localnet = Localnet(programs)
    try:
        shell = Shell(ROOT, localnet.exports())
        for command in commands:
            with localnet.frozen(command.frozen):
                command.pieces, code = shell.run(command.text, command.answer, command.kill_at)
            if code != command.code:
                said = "\n".join(command.lines)
                raise SystemExit(f"`{command.text}` ended with {code}, not {command.code}:\n{said}")
            print(f"  {command.seconds:6.2f} s  {command.text}", flush=True)
        shell.close()
        and_then()
    finally:
        localnet.stop()


def sections(commands):
    """The lines of docs/WALKTHROUGH.md for each section."""
    blocks = {}
    for command in commands:
        lines = blocks.setdefault(command.section, [])
        if lines:
            lines.append("")
        lines += [f"# {comment}" for comment in command.comments] + [f"$ {command.text}"] + command.shown
    return blocks


def demo(programs):
    """The lines that the demo prints, without its table of steps."""
    print("  fastpay-demo", flush=True)
    done = subprocess.run([programs / "fastpay-demo"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"the demo failed:\n{done.stdout}{done.stderr}")
    paragraphs = done.stdout.strip("\n").split("\n\n")
    # The table of steps repeats the lines above it.
    return "\n\n".join(text for text in paragraphs if not text.startswith("step ")).split("\n")


def check(blocks):
    """Compares the blocks with docs/WALKTHROUGH.md, and returns the exit code: 1 if they differ."""
    page, wrong = PAGE.read_text(), 0
    shown = {name: words.block(page, name) for name in blocks}
    pairs = [(f"block {name}", words.shape(shown[name]), words.shape(lines)) for name, lines in blocks.items()]
    # Which block shows a kind of progress depends on the machine's speed, so all blocks are compared at once.
    now, then = (words.progress(sum(of.values(), [])) for of in (blocks, shown))
    for name, before, after in pairs + [("progress", sorted(then), sorted(then & now))]:
        difference = difflib.unified_diff(before, after, f"docs/WALKTHROUGH.md, {name}", "what is printed now", lineterm="")
        for line in difference:
            print(line, file=sys.stderr)
            wrong = 1
    if wrong:
        print("docs/WALKTHROUGH.md shows what is no longer so: run make walkthrough, and read what it changes", file=sys.stderr)
    return wrong


def write(blocks, commands):
    """Writes docs/WALKTHROUGH.md and the pictures of the terminal."""
    page = PAGE.read_text()
    for name, lines in blocks.items():
        page = words.put(page, name, lines)
    PAGE.write_text(page)
    (IMAGES / "walkthrough.svg").write_text(picture.svg(commands))
    (IMAGES / "walkthrough.cast").write_text(picture.asciicast(commands))


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--check", action="store_true", help="compare with docs/WALKTHROUGH.md, and write nothing")
    arguments.add_argument("programs", type=Path, help="the folder of the built programs")
    options = arguments.parse_args()
    programs, commands = options.programs.resolve(), read_steps()
    if options.check:
        perform(programs, commands)
        sys.exit(check(sections(commands)))
    IMAGES.mkdir(exist_ok=True)
    perform(programs, commands, photograph)
    blocks = sections(commands)
    blocks["demo"] = demo(programs)
    write(blocks, commands)


if __name__ == "__main__":
    main()
