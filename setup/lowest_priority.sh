#!/usr/bin/env bash
# Runs a command with what others leave of the processor: setup/lowest_priority.sh COMMAND ARGUMENT...
# Linux may share the processor by session before it looks at priorities (sched_autogroup). So the
# command gets a session of its own with the lowest priority, where that can be set: in a session of
# its own with the usual one it would get as much as all others together. Elsewhere, for instance
# where /proc can only be read, it stays in this session as a group of processes.
# Ctrl-C here ends it, with all that it has started.
set -u
autogroup=/proc/self/autogroup
if [ -w "$autogroup" ]; then
    # Linux takes ten such changes in a second from all users together.
    setsid bash -c 'for _ in {1..20}; do { echo 19 > '"$autogroup"'; } 2> /dev/null && break; sleep 0.2; done
        exec nice -n 19 "$@"' lowest "$@" &
else
    set -m # a group of processes for what is started
    nice -n 19 "$@" < /dev/null &
    set +m
fi
started=$!
trap 'kill -TERM -- "-$started"' INT TERM HUP
wait "$started"
