"""Runs bash in a terminal of its own, and records its output with the times."""

import codecs
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

COLUMNS, ROWS = 100, 30
# No step takes this long, even on a busy machine.
PATIENCE_SECONDS = 180
# Bash prints this before each prompt, with the last command's exit code. No command prints these characters.
END = re.compile("\x01([0-9]+)\x02")


class Shell:
    """Runs commands one after another in the same bash, so that variables persist."""

    def __init__(self, folder, set_up):
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            environment = {name: value for name, value in os.environ.items() if not name.startswith("FASTPAY_")}
            environment |= {"PS1": "", "PS2": "", "PROMPT_COMMAND": r"printf '\001%d\002' $?", "TERM": "xterm-256color",
                             "HISTFILE": "/dev/null", "LC_ALL": "C.UTF-8"}
            os.execvpe("bash", ["bash", "--norc", "--noprofile", "--noediting", "-i"], environment)
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        modes = termios.tcgetattr(self.terminal)
        modes[1] &= ~termios.ONLCR
        modes[3] &= ~termios.ECHO
        termios.tcsetattr(self.terminal, termios.TCSANOW, modes)
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._read("")
        for line in set_up:
            self.run(line)

    def run(self, command, answer=None, kill_at=None):
        """Returns the command's output, as pairs of seconds and text, and its exit code.

        `answer` is a pair: a text to type, and the output after which to type it. `kill_at` is the output at which to
        kill the command.
        """
        os.write(self.terminal, command.encode() + b"\n")
        return self._read(command, answer, kill_at)

    def _read(self, command, answer=None, kill_at=None):
        started, pieces, said = time.monotonic(), [], ""
        while not (end := END.search(said)):
            passed = time.monotonic() - started
            if passed > PATIENCE_SECONDS:
                raise SystemExit(f"`{command}` does not end:\n{said}")
            if not select.select([self.terminal], [], [], 1)[0]:
                continue
            piece = self.decoder.decode(os.read(self.terminal, 65_536))
            said += piece
            pieces.append((time.monotonic() - started, END.sub("", piece)))
            if answer and said.rstrip().endswith(answer[1]):
                os.write(self.terminal, answer[0].encode() + b"\n")
                pieces.append((time.monotonic() - started, answer[0] + "\n"))
                answer = None
            if kill_at and kill_at in said:
                self._kill()
                kill_at = None
        if answer or kill_at:
            raise SystemExit(f"`{command}` never said {(answer or [0, kill_at])[1]!r}:\n{said}")
        return [(at, text) for at, text in pieces if text], int(end[1])

    def _kill(self):
        processes = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], check=True, capture_output=True, text=True).stdout
        for pid, parent in (map(int, line.split()) for line in processes.splitlines()):
            if parent == self.pid:
                os.kill(pid, signal.SIGKILL)

    def close(self):
        """Ends bash."""
        os.close(self.terminal)
        os.waitpid(self.pid, 0)
