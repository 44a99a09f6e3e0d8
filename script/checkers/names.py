#!/usr/bin/env python3
"""Checks README.md and docs/: every file, make target, function, test, type, setting and link target that they name must
exist in a file under version control other than these pages. For `Type::name`, one Rust file must contain both names.
Lines of prose have at most 120 columns, in all pages for readers."""

import re
import subprocess
import sys
from itertools import product
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Files that programs write at run time, and names from other projects. They are not in the repository.
ELSEWHERE = re.compile(
    r"(authority|relayer|merchant|config)\.toml|(network|endpoints|genesis|meta|next|raise|vote|state)\.json|(web/)?dist/?|EventSource"
    r"|(archive|config|data|shard-NNN|secrets|proofs|contacts|assets|application)/.*")
COLUMNS_MAX = 120
SUFFIX = re.compile(r"\.(rs|sol|ts|tsx|py|mjs|md|json|toml|tree|proto|yml|yaml|service|lock|sh|txt|svg|cast|png)$")
ABBREVIATED = re.compile(r"[…<>$ ]|NAME|TARGET|^[~/.]|^https?:|^@")


def slug(heading):
    """The anchor that GitHub derives from a heading."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower().replace("`", "")).replace(" ", "-")


def variants(text):
    """Expands braces: `a/{b,c}.rs` names two files."""
    parts = [part.split(",") for part in re.split(r"\{([^{}]*)\}", text)]
    return ["".join(choice) for choice in product(*(part if number % 2 else [",".join(part)]
                                                    for number, part in enumerate(parts)))]


def without_code(text):
    """The text outside of fenced blocks."""
    return re.sub(r"^ *```.*?^ *```", "", text, flags=re.DOTALL | re.MULTILINE)


def too_long(page, prose):
    """The lines of prose over the limit. Tables, pictures and HTML do not count as prose."""
    return [f"{page}: {len(line)} columns: {line[:60]}…" for line in prose.splitlines()
            if len(line) > COLUMNS_MAX and not re.match(r"\s*(\||<|!\[)", line)]


def main():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    listed = [name for name in listed if (ROOT / name).is_file()]
    pages = [name for name in listed if name == "README.md" or re.fullmatch(r"docs/\w+\.md", name)]
    sources = {name: (ROOT / name).read_text(errors="replace") for name in listed
               if name not in pages and name != "CHANGELOG.md" and not re.search(r"\.(png|cast|svg)$", name)}
    everything = "\n".join(sources.values())
    words = set(re.findall(r"[A-Za-z_][A-Za-z0-9_]*", everything))
    targets = set(re.findall(r"^([a-z-]+):", sources["Makefile"], re.MULTILINE))
    places = {f"/{name}" for name in listed} | {f"/{parent}" for name in listed for parent in Path(name).parents}
    ends = {place[at:] for place in places for at in range(len(place)) if place[at] == "/"}
    texts = {page: (ROOT / page).read_text() for page in pages}
    rust = [text for name, text in sources.items() if name.endswith(".rs")]
    anchors = {page: {slug(line.lstrip("#")) for line in text.splitlines() if line.startswith("#")}
               for page, text in texts.items()}
    findings = []

    def exists(path):
        return all(f"/{one.rstrip('/')}" in ends for one in variants(path))

    def check(page, text):
        if text.startswith("make ") and (target := text.split()[1]) not in targets:
            findings.append(f"{page}: no target `make {target}`")
        for name in re.findall(r"\b(?:test[A-Za-z]*|invariant)_\w+(?![\w…])", text):
            if name not in words:
                findings.append(f"{page}: no test {name}")
        if ABBREVIATED.search(text) or ELSEWHERE.fullmatch(text) or text.startswith("target/"):
            return
        if SUFFIX.search(text) or re.fullmatch(r"[\w.-]+/[\w./{},*-]*", text):
            if "*" not in text and not exists(text):
                findings.append(f"{page}: no file {text}")
        if (member := re.fullmatch(r"([A-Z]\w+)::(\w+)", text)) and not any(
                re.search(rf"\b{member[1]}\b", source) and re.search(rf"\b{member[2]}\b", source) for source in rust):
            findings.append(f"{page}: {member[1]} has no {member[2]}")
        for name in re.fullmatch(r"[A-Za-z_][\w.:]*(\(\))?", text) and re.findall(r"\w+", text) or []:
            is_name = "_" in name.strip("_") or re.search(r"[a-z][A-Z]", name)
            if is_name and name not in words and not name.startswith("fastpay_") and not name.startswith("_"):
                findings.append(f"{page}: nothing is called {name}")

    # Of these pages only line lengths are checked: history names things that no longer exist.
    for page in ["CHANGELOG.md", "SECURITY.md", "sdk/README.md"]:
        findings.extend(too_long(page, without_code((ROOT / page).read_text())))
    for page, text in texts.items():
        prose = without_code(text)
        findings.extend(too_long(page, prose))
        commands = re.findall(r"^\$ (make [a-z-]+)", text, re.MULTILINE)
        for quoted in re.findall(r"`([^`\n]+)`", prose) + commands:
            check(page, quoted)
            title = quoted.removesuffix("…").strip()
            if page == "docs/PROTOCOL.md" and title.count(" ") >= 4 and title not in everything:
                findings.append(f"{page}: no test `{title}`")
        for link in re.findall(r"\]\(([^)\s]+)\)", prose):
            path, _, anchor = link.partition("#")
            if re.match(r"https?:", link):
                continue
            file = (ROOT / page).parent.joinpath(path).resolve() if path else ROOT / page
            if not file.exists():
                findings.append(f"{page}: the link {link} leads nowhere")
            elif anchor and anchor not in anchors.get(str(file.relative_to(ROOT)), {anchor}):
                findings.append(f"{page}: the link {link} leads to no heading")
    for finding in sorted(set(findings)):
        print(finding, file=sys.stderr)
    print(f"documentation: {len(pages)} pages; {len(set(findings))} findings")
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()
