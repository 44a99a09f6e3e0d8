"""The rules that shorten recorded output for docs/WALKTHROUGH.md, and that select the lines to compare."""

import re

from shell import COLUMNS

BLOCK = r"(<!-- recorded by make walkthrough: {name} -->\n```\w+\n)(.*?)(\n```\n)"


def kind(line):
    """A line without the parts that differ between runs: numbers, names, hashes, the spaces of a column."""
    line = re.sub(r"\b(0x[0-9a-fA-F]{6,}…?|fp1[0-9a-z]{10,})", "NAME", line)
    return re.sub(r"\s+", " ", re.sub(r"\d[\d,.]*", "0", line)).strip()


def is_progress(line):
    """Whether the line reports progress: such lines begin with a time and go to standard error."""
    return line.startswith("[ ")


def shorten(lines):
    """Keeps the last progress line of each kind and the first authority of each list, and shortens hashes."""
    kinds = [kind(line) for line in lines]
    shown = []
    for number, line in enumerate(lines):
        if is_progress(line) and kinds[number] in kinds[number + 1:]:
            continue
        if line.startswith("  authority 0x") and number > 0 and lines[number - 1].startswith("  authority 0x"):
            if shown[-1] != "  …":
                shown.append("  …")
            continue
        shown.append(re.sub(r"\b(0x[0-9a-f]{8})[0-9a-f]{56}\b", r"\1…", line).rstrip())
    return shown


def put(page, name, lines):
    """The page with the block of this name replaced."""
    text = "\n".join(lines)
    page, count = re.subn(BLOCK.format(name=name), lambda block: block[1] + text + block[3], page, flags=re.DOTALL)
    if count != 1:
        raise SystemExit(f"docs/WALKTHROUGH.md has {count} blocks `<!-- recorded by make walkthrough: {name} -->`, not one")
    return page


def block(page, name):
    """The lines of a block."""
    found = re.search(BLOCK.format(name=name), page, flags=re.DOTALL)
    if not found:
        raise SystemExit(f"docs/WALKTHROUGH.md has no block `<!-- recorded by make walkthrough: {name} -->`")
    return found[2].split("\n")


def shape(lines):
    """The lines that must be the same in every run: all but progress, and authorities that lag on a busy machine."""
    kinds = [re.sub(r" \(0 of 0 authorities agree.*", "", kind(line)) for line in lines if not is_progress(line)]
    return [line for line in kinds if "is behind: it lacks" not in line and " is late: no answer within " not in line]


def progress(lines):
    """The kinds of progress lines."""
    return {kind(line) for line in lines if is_progress(line)}


def wrap(line):
    """A line, wrapped as in the terminal."""
    return [line[at:at + COLUMNS] for at in range(0, max(len(line), 1), COLUMNS)]
