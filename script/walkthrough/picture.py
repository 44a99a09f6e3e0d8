"""Renders the recording as an asciicast and as an animated picture, which GitHub shows without any script."""

import json
from html import escape

from shell import COLUMNS, ROWS
from words import is_progress, wrap

# Faster than anyone types, so that viewers do not wait.
SECONDS_PER_KEY = 0.02
# The reading time of a line, and the maximum for a command's output.
SECONDS_PER_LINE, SECONDS_PER_OUTPUT_MAX = 0.35, 3.0
SECONDS_AT_THE_END = 5.0
CELL, LINE, MARGIN = 8.4, 18, 16


def asciicast(commands):
    """Version 2 of the format: all printed text with its times. Players shorten pauses above two seconds."""
    header = {"version": 2, "width": COLUMNS, "height": ROWS, "idle_time_limit": 2, "title": "Five minutes with FastPay"}
    events, now = [json.dumps(header)], 0.5

    def show(text):
        events.append(json.dumps([round(now, 3), "o", text.replace("\n", "\r\n")], ensure_ascii=False))

    for command in commands:
        for comment in command.comments:
            show(f"\x1b[2m# {comment}\x1b[0m\n")
        show("\x1b[32m$\x1b[0m ")
        for key in command.text:
            now += SECONDS_PER_KEY
            show(key)
        show("\n")
        for at, text in command.pieces:
            now += at - command.before(at)
            show(text)
        now += min(SECONDS_PER_LINE * len(command.lines), SECONDS_PER_OUTPUT_MAX)
    return "\n".join(events) + "\n"


def _style(line):
    if line.startswith("$ "):
        return "c"
    return "d" if line.startswith("# ") or is_progress(line) else "e" if line.startswith("error:") else "o"


def _rows(lines):
    """The lines, wrapped as in the terminal, each with its style."""
    return [(_style(line), piece) for line in lines for piece in wrap(line)]


def svg(commands):
    """The shortened lines in a scrolling window. A cover moves down and reveals the lines that were printed so far."""
    rows, reveals, now = [], [], 0.5
    for command in commands:
        rows += _rows([f"# {comment}" for comment in command.comments] + [f"$ {command.text}"])
        reveals.append((now, len(rows)))
        now += 0.6 + SECONDS_PER_KEY * len(command.text) + min(command.seconds, 2.0)
        said = _rows(command.shown)
        rows += said
        reveals.append((now, len(rows)))
        now += 0.8 + min(SECONDS_PER_LINE * len(said), SECONDS_PER_OUTPUT_MAX)
    total = now + SECONDS_AT_THE_END

    def frames(offset):
        steps = [f"0%{{transform:translateY({offset(0)}px)}}"]
        steps += [f"{100 * at / total:.2f}%{{transform:translateY({offset(count)}px)}}" for at, count in reveals]
        return "".join(steps)

    width, height = round(COLUMNS * CELL + 2 * MARGIN), ROWS * LINE + 2 * MARGIN + 20
    cover = frames(lambda count: count * LINE)
    strip = frames(lambda count: -max(0, count - ROWS) * LINE)
    texts = "\n".join(f'<text class="{style}" y="{number * LINE + 13}">{escape(line)}</text>'
                      for number, (style, line) in enumerate(rows) if line)
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img">
<title>A terminal: deposit, pay, redeem and audit with the fastpay command</title>
<style>
text {{ font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; white-space: pre; fill: #d7dde4 }}
.c {{ fill: #7ee2a8 }} .d {{ fill: #8b98a5 }} .e {{ fill: #ff9b8f }}
#strip {{ animation: strip {total:.1f}s step-end infinite }}
#cover {{ animation: cover {total:.1f}s step-end infinite; transform: translateY({len(rows) * LINE}px) }}
@keyframes strip {{ {strip} }}
@keyframes cover {{ {cover} }}
@media (prefers-reduced-motion: reduce) {{ #strip, #cover {{ animation: none }} }}
</style>
<rect width="{width}" height="{height}" rx="8" fill="#1b1f24" stroke="#8b98a5" stroke-opacity="0.4"/>
<circle cx="18" cy="16" r="5" fill="#ff9b8f"/><circle cx="36" cy="16" r="5" fill="#e8c66a"/><circle cx="54" cy="16" r="5" fill="#7ee2a8"/>
<svg x="{MARGIN}" y="{MARGIN + 16}" width="{width - MARGIN}" height="{ROWS * LINE}"><g id="strip">
{texts}
<rect id="cover" width="100%" height="{ROWS * LINE}" fill="#1b1f24"/>
</g></svg>
</svg>
"""
