# Says what this machine lacks for the test cluster. Sourced by cluster.sh.

missing() {  # [pods]: prints what is missing, separated by commas; nothing if nothing is
  local program found=()
  local programs="curl flock openssl"
  [ "${1:-}" != pods ] || programs="$programs apt-get dpkg gcc ip python3 unshare"
  for program in $programs; do
    command -v "$program" > /dev/null || found+=("$program")
  done
  is_built || go_is_new_enough || found+=("Go $(wanted_go) or later")
  if [ "${1:-}" = pods ]; then
    [ "$(id -u)" = 0 ] || found+=("root's rights")
    [ -d "$CGROUPS/memory" ] || found+=("cgroup version 1")
  fi
  local IFS=,
  echo "${found[*]}" | sed 's/,/, /g'
}

stop_if_missing() {  # [pods]
  local found
  found=$(missing "$@")
  [ -z "$found" ] || die "this machine lacks: $found"
}
