# Settings of the test cluster, and what every step uses. Sourced by cluster.sh.

CACHE_BASE=${PENSTOCK_CACHE:-${XDG_CACHE_HOME:-${HOME:-}/.cache}/penstock}
CLUSTER_CACHE=${CLUSTER_CACHE:-$CACHE_BASE/test-cluster}      # compiled programs, node files, logs
CLUSTER_RUN=${CLUSTER_RUN:-$CLUSTER_CACHE/run}                # state of a cluster; down removes it
CLUSTER_API_PORT=${CLUSTER_API_PORT:-26443}                   # kube-apiserver
CLUSTER_ETCD_PORT=${CLUSTER_ETCD_PORT:-23790}                 # etcd; it also takes the next port
CLUSTER_SIMULATED_NODES=${CLUSTER_SIMULATED_NODES:-}          # default: 1 with up, 0 with up-pods
CLUSTER_COMPILE_JOBS=${CLUSTER_COMPILE_JOBS:-2}               # packages compiled at once
# Only with up-pods: the /24 networks, and this machine's end of the link to the real node.
CLUSTER_NODE_NET=${CLUSTER_NODE_NET:-10.200.0}                # this machine is .1, the node is .2
CLUSTER_POD_NET=${CLUSTER_POD_NET:-10.244.0}
CLUSTER_SERVICE_NET=${CLUSTER_SERVICE_NET:-10.96.0}
CLUSTER_LINK=${CLUSTER_LINK:-test-cluster0}

mkdir -p "$CLUSTER_CACHE"
CLUSTER_CACHE=$(cd "$CLUSTER_CACHE" && pwd)
# So that the process that starts inside the node's namespaces sees the same settings.
export CLUSTER_CACHE CLUSTER_RUN CLUSTER_API_PORT CLUSTER_ETCD_PORT CLUSTER_SIMULATED_NODES
export CLUSTER_NODE_NET CLUSTER_POD_NET CLUSTER_SERVICE_NET CLUSTER_LINK

CGROUPS=/sys/fs/cgroup
# The folder in which Kubernetes' host-path provisioner makes volumes. Its code fixes the path.
VOLUMES=/tmp/hostpath_pv

STARTED_NS=$(date +%s%N)
LAST_SAID_NS=$STARTED_NS

say() {  # prints the seconds of this step, the seconds since the start, and what was done
  local now_ns
  now_ns=$(date +%s%N)
  awk -v step=$((now_ns - LAST_SAID_NS)) -v total=$((now_ns - STARTED_NS)) -v text="$*" \
    'BEGIN { printf "%8.2fs %8.2fs  %s\n", step / 1e9, total / 1e9, text }'
  LAST_SAID_NS=$now_ns
}

die() { echo "test cluster: $*" >&2; exit 1; }

digest_of() { cat "$@" | sha256sum | cut -c1-16; }  # FILE...

# FOLDER FUNCTION: makes the folder once. FUNCTION fills the folder that it is given, which then
# gets its final name, so a step that was cut short leaves no half-made one. Others wait meanwhile.
make_once() {
  (
    flock 9
    [ ! -d "$1" ] || exit 0
    rm -rf "$1.unfinished"
    mkdir -p "$1.unfinished"
    "$2" "$1.unfinished"
    mv "$1.unfinished" "$1"
  ) 9> "$1.lock"
}
