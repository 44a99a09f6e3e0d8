#!/usr/bin/env python3
"""Plants the mutants of testkit/mutants.toml, and hunts each with the simulator or, if its entry says so, with *World*,
with the tests of single rules, or with the test that it names.

    mutants.py                 hunts all, and adds `planted` (the simulator's), `planted_ledger`, `planted_world`, `planted_rebase`,
                               `planted_handover`, `planted_retired`, `planted_recovery`, `planted_rules`,
                               `planted_interleavings` and `planted_tests` to target/sim.json
    mutants.py NAME ...        hunts only these, and prints how each is found
    mutants.py --check         checks that each can be planted; builds nothing

All mutants are planted into one copy of the sources (target/mutants), which is built once; an environment variable
activates one of them. The real sources contain no mutants. A hunt runs seeds in order until one of them fails. It first
tries a seed that is known to find the mutant (testkit/mutants.seeds), which saves the others. A mutant that the file
lists with `-` was missed by all seeds, and is hunted only if it is named. `--anew` hunts all without the file, and writes
it again. `MUTANT=NAME target/mutants/sim.program --seed 7 --trace` shows a run with a mutant.
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COPY = ROOT / "target" / "mutants"
MUTANTS = ROOT / "testkit" / "mutants.toml"
KNOWN = ROOT / "testkit" / "mutants.seeds"
RESULT = ROOT / "target" / "sim.json"
# The number of seeds after which a mutant counts as missed, and how many one run takes. A seed of *World* takes
# milliseconds, with checkpoints a tenth of a second.
SEEDS_MAX = {"sim": 100, "ledger": 100, "world": 1000, "rebase": 100, "handover": 200, "recovery": 100, "retired": 100} | dict.fromkeys(("rules", "interleavings"), 1)
SEEDS_OF_A_RUN = {"sim": 1, "ledger": 1, "world": 100, "rebase": 10, "handover": 50, "recovery": 10, "retired": 20} | dict.fromkeys(("rules", "interleavings"), 1)
# The tests of *World* that run seeds.
WORLDS = {
    "world": "properties::unlocks::unlocking_in_whatever_order",
    "rebase": "properties::unlocks::rebasing_in_whatever_order",
    "handover": "properties::handover::handing_over_in_whatever_order",
    "retired": "properties::interleavings::retired_keys_in_whatever_order",
    "recovery": "properties::checkpoints::a_state_follows_from_the_segment_and_not_from_the_order_of_execution",
}
# The tests without seeds: those of single rules, and *World* as a property, which draws its own.
TESTS = {"rules": "rules::", "interleavings": "properties::interleavings::"}
# An entry may name one test instead, as `program::module::test`: that program's, which is built with the others.
NAMED = "::"
# A run takes seconds. One that takes so much processor time counts as endless, and its mutant as found; so does one that
# waits for so long.
RUN_PROCESSOR_SECONDS_MAX, RUN_SECONDS_MAX = 120, 900
# In testkit/mutants.seeds: no seed finds the mutant.
NO_SEED = "-"
# The copy has a version of its own, so that cargo does not confuse its crates with the real ones.
VERSION = "0.1.0-mutants"
SWITCH = '''//! Which mutant is awake. Written by script/mutants.py.

/// Whether the mutant of this name is awake.
#[must_use]
pub fn awake(name: &str) -> bool {
    static AWAKE: std::sync::LazyLock<Option<String>> = std::sync::LazyLock::new(|| std::env::var("MUTANT").ok());
    AWAKE.as_deref() == Some(name)
}
'''


def mutants() -> list[dict]:
    listed = tomllib.loads(MUTANTS.read_text())["mutant"]
    names = [mutant["name"] for mutant in listed]
    repeated = {name for name in names if names.count(name) > 1}
    if repeated:
        sys.exit(f"{MUTANTS.name} lists {', '.join(sorted(repeated))} twice")
    return listed


def plant(listed: list[dict]) -> dict[str, str]:
    """The text of each changed file by its path. Ends the program if a mutant cannot be planted."""
    problems, places = [], {}
    for mutant in listed:
        name, path, find = mutant["name"], ROOT / mutant["file"], mutant["find"].removeprefix("\n")
        text = path.read_text() if path.is_file() else ""
        if (count := text.count(find)) != 1:
            problems.append(f"{name}: its text is in {mutant['file']} {count} times, not once")
            continue
        if "AWAKE" not in mutant["replace"]:
            problems.append(f"{name}: its replacement is never asleep")
            continue
        start = text.index(find)
        awake = f'fastpay_core::mutant::awake("{name}")'
        replace = mutant["replace"].removeprefix("\n").replace("FOUND", find).replace("AWAKE", awake)
        places.setdefault(mutant["file"], []).append((start, start + len(find), replace, name))
    changed = {}
    for file, spans in places.items():
        text = (ROOT / file).read_text()
        end_before, name_before = len(text) + 1, ""
        for start, end, replace, name in sorted(spans, reverse=True):
            if end > end_before:
                problems.append(f"{name} and {name_before}: their texts overlap in {file}")
            text = text[:start] + replace + text[end:]
            end_before, name_before = start, name
        changed[file] = text
    if problems:
        sys.exit("\n".join(problems) + f"\nWhere code has moved, point its mutants to it: {MUTANTS.relative_to(ROOT)}")
    return changed


def copy(changed: dict[str, str]) -> None:
    """Brings the copy up to date. Unchanged files keep their times, so that cargo compiles only what changed."""
    manifest = (ROOT / "Cargo.toml").read_text()
    lock = (ROOT / "Cargo.lock").read_text()
    version = tomllib.loads(manifest)["workspace"]["package"]["version"]
    members = tomllib.loads(manifest)["workspace"]["members"]
    files = {
        "Cargo.toml": manifest.replace(f'version = "{version}"', f'version = "{VERSION}"', 1),
        "Cargo.lock": re.sub(rf'(name = "fastpay-[a-z-]+"\nversion = )"{re.escape(version)}"', rf'\1"{VERSION}"', lock),
        "core/src/mutant.rs": SWITCH,
    }
    switch = "\nextern crate self as fastpay_core;\npub mod mutant;\n"
    library = "core/src/lib.rs"
    files[library] = changed.get(library, (ROOT / library).read_text()) + switch
    COPY.mkdir(parents=True, exist_ok=True)
    for member in members:
        for folder, folders, names in os.walk(ROOT / member):
            folders[:] = [name for name in folders if name not in ("target", "node_modules", "dist")]
            for name in names:
                file = str((Path(folder) / name).relative_to(ROOT))
                files.setdefault(file, changed.get(file))
        for old in (COPY / member).rglob("*"):
            if old.is_file() and str(old.relative_to(COPY)) not in files:
                old.unlink()
    for file, text in files.items():
        to = COPY / file
        to.parent.mkdir(parents=True, exist_ok=True)
        data = (ROOT / file).read_bytes() if text is None else text.encode()
        if not to.is_file() or to.read_bytes() != data:
            to.write_bytes(data)
    # Links to the other files that the crates read: compiled contracts, vectors, documents. .cargo is not linked: cargo
    # finds it above the copy. If cargo read it twice, its flags would differ, and cargo would compile all crates again.
    own = {".git", ".cargo", "target"} | {Path(member).parts[0] for member in members}
    beside = {entry.name for entry in ROOT.iterdir()} - own
    for name in beside - set(files):
        if not (COPY / name).exists():
            (COPY / name).unlink(missing_ok=True)
            (COPY / name).symlink_to(ROOT / name)


def build(named: set[str]) -> dict[str, Path]:
    """Builds the copy's simulator, the tests of its rules, and those that entries name. External crates are taken from the
    build of the tests, whose features are those of the whole workspace."""
    tests = sorted({"core"} | {by.split(NAMED)[0] for by in named})
    cargo = ["cargo", "build", "--workspace", "--bin", "sim", *(f"--test={name}" for name in tests)]
    environment = os.environ | {"CARGO_TARGET_DIR": str(ROOT / "target")}
    built = subprocess.run([*cargo, "--message-format=json-render-diagnostics"], cwd=COPY, env=environment,
                           stdout=subprocess.PIPE, text=True)
    if built.returncode != 0:
        sys.exit(built.returncode)
    messages = [json.loads(line) for line in built.stdout.splitlines() if line.startswith("{")]
    programs = {message["target"]["name"]: message["executable"] for message in messages if message.get("executable")}
    # Copied, because the next build of the real programs overwrites these names; renamed, because an older copy may be
    # running.
    copies = {name: Path(shutil.copy2(programs[name], COPY / "program.new")).rename(COPY / f"{name}.program")
              for name in ("sim", *tests)}
    named_programs = {by: copies[by.split(NAMED)[0]] for by in named}
    return dict.fromkeys(("sim", "ledger"), copies["sim"]) | dict.fromkeys(WORLDS | TESTS, copies["core"]) | named_programs


def run(programs: dict[str, Path], by: str, name: str, seeds: range) -> tuple[int, str] | None:
    """The first of the seeds that fails with this mutant, and the reason; `None` if no seed fails."""
    text = f"{seeds.start}..{seeds.stop}"
    program, _, test = by.partition(NAMED)
    match by:
        case "sim": arguments = ["--seeds", text, "--first"]
        case "ledger": arguments = ["--ledger", "--seeds", text, "--first"]
        case _ if test: arguments = ["--exact", test]
        case "rules" | "interleavings": arguments = [TESTS[by]]
        case _: arguments = ["--exact", WORLDS[by], "--nocapture"]
    environment = os.environ | {"MUTANT": name, "RUST_BACKTRACE": "0", "WORLD_SEEDS": text}
    limited = ["bash", "-c", f'ulimit -St {RUN_PROCESSOR_SECONDS_MAX}; exec "$0" "$@"', programs[by], *arguments]
    folder = COPY / program if test else ROOT
    done = subprocess.run(limited, env=environment, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True, timeout=RUN_SECONDS_MAX)
    if done.returncode == 0:
        return None
    if done.returncode == -signal.SIGXCPU:
        return seeds.start, "the run does not end"
    if found := re.search(r"^seed (\d+): (.*)", done.stdout, re.MULTILINE):
        return int(found[1]), found[2]
    failed = re.search(r"^test (\S+) \.\.\. FAILED", done.stdout, re.MULTILINE)
    return seeds.start, failed[1] if failed else f"the run ends with {done.returncode}"


@cache
def is_sound(program: Path, by: str, seed: int) -> bool:
    """Whether the seed finds nothing while all mutants are asleep. One that does proves nothing."""
    return run({by: program}, by, "", range(seed, seed + 1)) is None


def hunt(programs: dict[str, Path], mutant: dict, known: int | None) -> tuple[int, str] | None:
    """The first seed that finds the mutant, and the reason. The known seed is tried before the others."""
    name, by = mutant["name"], mutant.get("by", "sim")
    first = [] if known is None else [range(known, known + 1)]
    step = SEEDS_OF_A_RUN.get(by, 1)
    others = [range(seed, seed + step) for seed in range(0, SEEDS_MAX.get(by, 1), step)]
    for seeds in first + others:
        try:
            found = run(programs, by, name, seeds)
        except subprocess.TimeoutExpired:
            found = seeds.start, "the run does not end"
        if found and is_sound(programs[by], by, found[0]):
            return found
    return None


def known_seeds() -> dict[str, int | None]:
    lines = KNOWN.read_text().splitlines() if KNOWN.is_file() else []
    return {name: None if seed == NO_SEED else int(seed) for name, seed in (line.split() for line in lines)}


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("names", nargs="*", metavar="NAME")
    arguments.add_argument("--check", action="store_true", help="say whether each can be planted")
    arguments.add_argument("--anew", action="store_true", help="hunt from the first seed, and write the seeds down")
    given = arguments.parse_args()

    listed = mutants()
    changed = plant(listed)
    if given.check:
        print(f"{len(listed)} mutants can be planted")
        return 0
    by_name = {mutant["name"]: mutant for mutant in listed}
    if unknown := set(given.names) - set(by_name):
        sys.exit(f"no such mutant: {', '.join(sorted(unknown))}")
    names = given.names or list(by_name)
    copy(changed)
    named = {by for mutant in listed if NAMED in (by := mutant.get("by", "sim"))}
    programs = build(named)
    for by in programs:
        if failing := run(programs, by, "", range(0, 1)):
            sys.exit(f"with all mutants asleep, seed {failing[0]} of {by} fails: {failing[1]}")

    known = {} if given.anew else known_seeds()
    hunted = [name for name in names if given.names or known.get(name, 0) is not None]
    began, found = time.monotonic(), dict.fromkeys(names)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        hunts = {pool.submit(hunt, programs, by_name[name], known.get(name)): name for name in hunted}
        for done in as_completed(hunts):
            name, outcome = hunts[done], done.result()
            found[name] = outcome
            how = f"found with seed {outcome[0]}: {outcome[1]}" if outcome else "MISSED"
            print(f"mutant {name}: {how}", flush=True)
    missed = [name for name in names if not found[name]]
    seconds = time.monotonic() - began
    print(f"{len(names) - len(missed)} of {len(names)} mutants found in {seconds:.0f} s; missed: {', '.join(missed) or 'none'}")
    if given.names:
        return 1 if missed else 0
    lost = [name for name in missed if name in hunted and not given.anew]
    if lost:
        print(f"hunted, and missed: {', '.join(lost)}")
    seeds = {name: found[name][0] for name in names if found[name]}
    if given.anew:
        KNOWN.write_text("".join(f"{name} {seeds.get(name, NO_SEED)}\n" for name in names))
    if RESULT.is_file():
        result = json.loads(RESULT.read_text())
        for key, by in [("planted", "sim"), ("planted_ledger", "ledger"), *((f"planted_{by}", by) for by in (*WORLDS, *TESTS, "tests"))]:
            planted = [name for name in names if by_name[name].get("by", "sim") in (named if by == "tests" else {by})]
            missed_by = [name for name in planted if name in missed]
            result[key] = {"total": len(planted), "found": len(planted) - len(missed_by), "missed": missed_by,
                           "seeds_max": SEEDS_MAX.get(by, 1), "seeds": {name: seeds[name] for name in planted if name in seeds}}
        RESULT.write_text(json.dumps(result, indent=2) + "\n")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
