# Starts, watches and stops processes by their recorded ids. Sourced by cluster.sh.
#
# $CLUSTER_RUN/pids/NAME holds a process id and when the kernel started it, in clock ticks. An id
# that another process has taken over has another time, so no foreign process is ever signalled.

start_ticks() {  # PID: empty if there is no such process or it is a zombie
  awk '{ sub(/.*\) /, ""); if ($1 != "Z") print $20 }' "/proc/$1/stat" 2> /dev/null || true
}

start() {  # NAME COMMAND...
  local name=$1
  shift
  "$@" > "$CLUSTER_RUN/$name.log" 2>&1 < /dev/null &
  echo "$! $(start_ticks $!)" > "$CLUSTER_RUN/pids/$name"
}

is_running() {  # NAME
  local pid ticks
  read -r pid ticks < "$CLUSTER_RUN/pids/$1" || return 1
  [ -n "$ticks" ] && [ "$(start_ticks "$pid")" = "$ticks" ]
}

kill_process() {  # NAME: all data goes with the cluster, so nothing needs to end gently
  local pid attempt
  [ -f "$CLUSTER_RUN/pids/$1" ] || return 0
  if is_running "$1"; then
    read -r pid _ < "$CLUSTER_RUN/pids/$1"
    kill -KILL "$pid" 2> /dev/null || true
    for attempt in $(seq 100); do
      is_running "$1" || break
      sleep 0.1
    done
  fi
  rm -f "$CLUSTER_RUN/pids/$1"
}

# SECONDS NAME COMMAND...: repeats the command until it succeeds. Fails when the time is over, and
# at once when the process NAME has ended.
wait_until() {
  local deadline=$((SECONDS + $1)) name=$2 trouble=""
  shift 2
  until "$@" > /dev/null 2>&1; do
    is_running "$name" || trouble="$name ended"
    [ $SECONDS -lt $deadline ] || trouble="$name was not ready in time"
    if [ -n "$trouble" ]; then
      tail -n 15 "$CLUSTER_RUN/$name.log" >&2
      die "$trouble"
    fi
    sleep 0.1
  done
}
