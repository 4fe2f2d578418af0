#!/usr/bin/env bash
# A real Kubernetes cluster for the tests, on this machine, without Docker. README.md explains it.
#
#   cluster.sh missing [pods]
#                         print what this machine lacks for up, or for up-pods
#   cluster.sh build      compile the Kubernetes programs into the cache (six minutes, once)
#   cluster.sh is-built   exit code 0 if they are there
#   cluster.sh up         start a control plane on loopback; its pods are simulated
#   cluster.sh up-pods    start a control plane and a real node; pods are processes (needs root)
#   cluster.sh image NAME FOLDER [ARGUMENT...]
#                         give the real node an image: a Python base, FOLDER laid over it, and
#                         ARGUMENT... as the command it runs
#   cluster.sh down       stop what up or up-pods started; logs stay in $CLUSTER_CACHE/logs
#
# settings.sh names the variables (CLUSTER_...) that change ports, folders and networks.
set -euo pipefail

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
for part in settings missing build processes control_plane node_files real_node; do
  # shellcheck source=/dev/null
  . "$HERE/$part.sh"
done

case "${1:-}" in
  missing) missing "${2:-}" ;;
  build) build ;;
  is-built) is_built ;;
  up) stop_if_missing; build; up ;;
  up-pods) stop_if_missing pods; build; up_pods ;;
  inside-node) inside_node ;;  # only up-pods calls this
  image) shift; image "$@" ;;
  down) down ;;
  *) sed -n '2,/^set/{/^#/p}' "${BASH_SOURCE[0]}"; exit 2 ;;
esac
