#!/usr/bin/env bash
# Runs a command that writes forge's cache or node_modules, which only one command may write at a time. All such
# commands take this lock. The system releases it when the last process of the command ends.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p target
exec 9>target/setup.lock
if command -v flock >/dev/null; then
    flock --nonblock 9 || { echo "waiting for another command that uses forge" >&2; flock 9; }
fi
exec "$@"
