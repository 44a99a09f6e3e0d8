#!/usr/bin/env python3
"""Tests the scripts that no other test runs. They take seconds, with short programs in place of the real ones."""

import hashlib
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import tarfile
import tempfile
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_SECONDS = 60


class Terminal:
    """A command in a terminal of its own."""

    def __init__(self, command: list[str], folder: Path):
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            # A shell starts background programs with interrupts ignored, and their children inherit that.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.chdir(folder)
            os.execvp(command[0], command)
        self.said = b""

    def until(self, words: bytes) -> None:
        while words not in self.said:
            self.said += os.read(self.terminal, 4_096)

    def press_interrupt(self) -> None:
        os.write(self.terminal, b"\x03")

    def end(self) -> int:
        """Reads the rest of the command's output, and returns its exit code."""
        try:
            while piece := os.read(self.terminal, 4_096):
                self.said += piece
        except OSError:
            pass  # Linux reports the end of a terminal as this error.
        os.close(self.terminal)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


class UntilInterrupted(unittest.TestCase):
    """script/until-interrupted.sh, which runs `make web`, `make shop` and `make localnet`."""

    def at_terminal(self, command: str) -> Terminal:
        folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        (folder / "Makefile").write_text(f"serve:\n\t@{ROOT}/script/until-interrupted.sh {command}\n")
        signal.signal(signal.SIGALRM, lambda *_: self.fail("it does not end"))
        signal.alarm(PATIENCE_SECONDS)
        self.addCleanup(signal.alarm, 0)
        return Terminal(["make", "serve"], folder)

    def test_interrupt_ends_the_program_in_its_way_and_is_no_error_of_make(self):
        for program in ["trap 'echo put away; exit 130' INT; echo ready; while :; do sleep 0.05; done",
                        "echo ready; echo put away; exec sleep 60"]:
            made = self.at_terminal(f'bash -c "{program}"')
            made.until(b"ready")
            time.sleep(0.2)
            made.press_interrupt()
            self.assertEqual(made.end(), 0, made.said)
            self.assertIn(b"put away", made.said)
            self.assertNotRegex(made.said, rb"Error|Interrupt|\*\*\*")

    def test_a_program_that_fails_is_an_error(self):
        made = self.at_terminal("bash -c 'exit 3'")
        self.assertEqual(made.end(), 2, made.said)
        self.assertIn(b"Error 3", made.said)


class OneAtATime(unittest.TestCase):
    """script/one-at-a-time.sh, which runs the commands that write forge's cache."""

    def test_a_second_command_waits_for_the_first_and_for_what_that_one_started(self):
        folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        (folder / "script").mkdir()
        shutil.copy(ROOT / "script/one-at-a-time.sh", folder / "script")
        write = f"for n in 1 2 3 4 5; do echo $0 >>{folder}/cache; sleep 0.5; done"
        commands = [subprocess.Popen([folder / "script/one-at-a-time.sh", "bash", "-c", write, name], stderr=subprocess.PIPE)
                    for name in ("one", "two")]
        said = [command.communicate(timeout=PATIENCE_SECONDS)[1] for command in commands]
        self.assertEqual([command.returncode for command in commands], [0, 0], said)
        written = (folder / "cache").read_text().split()
        self.assertIn(written, [["one"] * 5 + ["two"] * 5, ["two"] * 5 + ["one"] * 5])
        self.assertEqual(sum(b"waiting" in text for text in said), 1, said)

    def test_every_target_that_runs_forge_takes_the_lock(self):
        recipes = (ROOT / "Makefile").read_text().replace("\\\n", " ").splitlines()
        parts = (ROOT / "script/tests/parts.toml").read_text().splitlines()
        runs = [line for line in recipes if line.startswith("\t")] + [line for line in parts if line.startswith("run =")]
        # `forge fmt` writes no cache.
        uses = [line for line in runs if re.search(r"/forge (?!fmt)|coverage\.py|/slither |checkers/(prove|mutants)\.py|setup\.sh", line)]
        self.assertGreaterEqual(len(uses), 7)
        for line in uses:
            self.assertRegex(line, r"ONE_AT_A_TIME|one-at-a-time\.sh")


class Release(unittest.TestCase):
    """script/dist.sh, which packs four programs that print their version."""

    PROGRAMS = ["fastpay-node", "fastpay-relayer", "fastpay", "fastpay-merchant"]

    def packed(self) -> tuple[Path, Path]:
        tree = Path(self.enterContext(tempfile.TemporaryDirectory()))
        for name in ["script/dist.sh", "Cargo.toml", "LICENSE", "README.md", "CHANGELOG.md", "SECURITY.md"]:
            (tree / name).parent.mkdir(exist_ok=True)
            shutil.copy(ROOT / name, tree / name)
        for name in ["deploy", "docs"]:
            shutil.copytree(ROOT / name, tree / name)
        (tree / "web/dist").mkdir(parents=True)
        (tree / "web/dist/index.html").write_text("a page")
        (tree / "target/release").mkdir(parents=True)
        (tree / "main.c").write_text('#include <stdio.h>\nint main(void) { puts("1.0"); return 0; }\n')
        subprocess.run(["cc", "-g", "-o", tree / "target/release/fastpay", tree / "main.c"], check=True)
        for program in self.PROGRAMS:
            if program != "fastpay":
                shutil.copy(tree / "target/release/fastpay", tree / "target/release" / program)
        tools = tree / "tools"
        tools.mkdir()
        for tool, said in [("npm", '{"bomFormat": "CycloneDX", "of": "web"}'), ("sbom", '{"bomFormat": "CycloneDX"}')]:
            (tools / tool).write_text(f"#!/bin/sh\necho '{said}'\n")
            (tools / tool).chmod(0o755)
        git = ["git", "-C", tree, "-c", "user.name=t", "-c", "user.email=t@example.org"]
        subprocess.run([*git, "init", "--quiet"], check=True)
        subprocess.run([*git, "commit", "--quiet", "--allow-empty", "--message", "one"], check=True)
        environment = os.environ | {"PATH": f"{tools}:{os.environ['PATH']}"}
        self.pack = lambda: subprocess.run([tree / "script/dist.sh", tools / "sbom"], check=True, env=environment,
                                           capture_output=True, timeout=PATIENCE_SECONDS)
        self.pack()
        [archive] = [path for path in (tree / "dist").glob("*.tar.gz") if "symbols" not in path.name]
        return tree / "dist", archive

    @staticmethod
    def sections(program: Path) -> set[str]:
        listed = subprocess.run(["readelf", "--section-headers", "--wide", program], check=True, capture_output=True, text=True)
        return set(re.findall(r"\] (\.\S+)", listed.stdout))

    def test_programs_are_stripped_listed_and_checked_by_sums(self):
        dist, archive = self.packed()
        for line in (dist / "SHA256SUMS").read_text().splitlines():
            digest, name = line.split()
            self.assertEqual(hashlib.sha256((dist / name).read_bytes()).hexdigest(), digest, name)
        names = {line.split()[1].removeprefix("./") for line in (dist / "SHA256SUMS").read_text().splitlines()}
        self.assertEqual(names, {path.name for path in dist.iterdir() if path.is_file()} - {"SHA256SUMS"})
        materials = sorted(dist.glob("*.cdx.json"))
        self.assertEqual([json.loads(path.read_text())["bomFormat"] for path in materials], ["CycloneDX"] * 2)
        unpacked = dist.parent / "unpacked"
        for path in dist.glob("*.tar.gz"):
            with tarfile.open(path) as packed:
                packed.extractall(unpacked, filter="data")
        root = unpacked / archive.name.removesuffix(".tar.gz")
        for program in self.PROGRAMS:
            kept, apart = self.sections(root / "bin" / program), self.sections(Path(f"{root}-symbols") / f"{program}.debug")
            self.assertFalse({".symtab", ".debug_info"} & kept, program)
            self.assertIn(".gnu_debuglink", kept)
            self.assertIn(".debug_info", apart)
        self.assertEqual((root / "web/index.html").read_text(), "a page")
        self.assertTrue((root / "docs/OPERATIONS.md").is_file(), "the units and the README name it")
        before = (dist / "SHA256SUMS").read_text()
        self.pack()
        self.assertEqual((dist / "SHA256SUMS").read_text(), before, "the same commit gives the same archives")

    def test_the_image_of_an_archive_is_made_of_what_is_in_it(self):
        dist, archive = self.packed()
        root = dist / archive.name.removesuffix(".tar.gz")
        text = (root / "deploy/Dockerfile").read_text()
        [source] = re.findall(r"^ARG PROGRAMS=(\w+)$", text, re.MULTILINE)
        stages = {name: body for name, body in re.findall(r"^FROM \S+ AS (\S+)\n((?:(?!FROM).*\n)*)", text, re.MULTILINE)}
        copied = re.findall(r"^COPY (?!--from)(\S+) ", stages[f"from-{source}"], re.MULTILINE)
        self.assertEqual(copied, ["bin/"])
        self.assertEqual(sorted(path.name for path in (root / "bin").iterdir()), sorted(self.PROGRAMS))
        self.assertIn("!bin", (root / "deploy/Dockerfile.dockerignore").read_text().splitlines())
        # BuildKit builds only the stages that the last one needs, so it does not build the other one.
        self.assertIn("FROM from-${PROGRAMS} AS programs", text)
        self.assertRegex(text, r"\nCOPY --from=programs / /usr/local/bin/\n")


if __name__ == "__main__":
    unittest.main()
