#!/usr/bin/env bash
# Runs a command with what others leave of the processor: setup/lowest_priority.sh COMMAND ARGUMENT...
# It gets a session of its own, because Linux may share the processor by session before it looks at
# priorities (sched_autogroup). Ctrl-C here ends it, with all that it has started.
set -u
setsid bash -c 'echo 19 2> /dev/null > /proc/self/autogroup; exec nice -n 19 "$@"' lowest "$@" &
session=$!
trap 'kill -TERM -- "-$session"' INT TERM HUP
wait "$session"
