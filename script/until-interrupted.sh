#!/usr/bin/env bash
# Runs a command that is meant to end by Ctrl-C. In a terminal the command is a job of its own, so only the command gets
# the interrupt; make does not get it and reports no error.
set -u
[ -t 0 ] || exec "$@"
set -m
# Without this trap, bash ends when the interrupt kills the program.
trap : INT
"$@"
code=$?
[ $code -eq 130 ] || exit $code
