#!/usr/bin/env bash
# Runs a command until Ctrl-C, which is how it is meant to end. In a terminal the command is a job of its own: the interrupt
# goes to it alone, and make, which would call it an error, does not hear of it.
set -u
[ -t 0 ] || exec "$@"
set -m
# Otherwise bash ends with a program that the interrupt kills.
trap : INT
"$@"
code=$?
[ $code -eq 130 ] || exit $code
