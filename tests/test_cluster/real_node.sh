# A real node: containerd, runc, kubelet and kube-proxy, in namespaces of its own. Sourced by
# cluster.sh.
#
# The whole cluster runs in its own mount, process, network, cgroup, ipc and host-name namespaces,
# below the caller's cgroups. The machine itself gets one network link and two routes. Ending the
# first process ends everything inside.

SYSCTLS=/proc/sys
# kubelet wants these values and would set them for the whole machine, so it sees files instead.
WANTED_SYSCTLS="vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1
  kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000"

up_pods() {
  make_once "$NODE_FILES" make_node_files
  prepare_run "$CLUSTER_NODE_NET.2"
  mkdir -p -m 1777 "$VOLUMES"
  make_cgroups
  # The group is joined first, so that everything inside counts as part of it.
  # shellcheck disable=SC2016
  start real-node bash -c '
    for group in $(cat "$1/cgroups"); do echo $$ > "$group/cgroup.procs"; done
    exec unshare --mount --pid --net --cgroup --ipc --uts --fork --mount-proc --kill-child \
      bash "$0/cluster.sh" inside-node' "$HERE" "$CLUSTER_RUN"
  wait_until 10 real-node test -f "$CLUSTER_RUN/namespaces-made"
  link_to_node
  say "up: namespaces made and linked"
  wait_until 120 real-node test -f "$CLUSTER_RUN/node-ready"
  cat "$CLUSTER_RUN/real-node.log"
  say "up: real node Ready"
  echo "export KUBECONFIG=$CLUSTER_RUN/admin.kubeconfig"
}

hierarchies() {  # of cgroup version 1: the controllers, and the place of this process below them
  awk -F: '$2 != "" { print $2, $3 }' /proc/self/cgroup
}

make_cgroups() {
  local controllers place group
  while read -r controllers place; do
    group=$CGROUPS/${controllers#name=}${place%/}/test-cluster.$$
    mkdir "$group"
    echo "$group" >> "$CLUSTER_RUN/cgroups"
    if [ -f "$group/cpuset.cpus" ]; then  # empty in a new group, and nothing could run in it
      cat "$group/../cpuset.cpus" > "$group/cpuset.cpus"
      cat "$group/../cpuset.mems" > "$group/cpuset.mems"
    fi
  done < <(hierarchies)
}

link_to_node() {
  local outer inner
  read -r outer _ < "$CLUSTER_RUN/pids/real-node"
  inner=$(cat "/proc/$outer/task/$outer/children")
  ip link add "$CLUSTER_LINK" type veth peer name eth0 netns "${inner%% *}"
  ip addr add "$CLUSTER_NODE_NET.1/24" dev "$CLUSTER_LINK"
  ip link set "$CLUSTER_LINK" up
  ip route add "$CLUSTER_POD_NET.0/24" via "$CLUSTER_NODE_NET.2"
  ip route add "$CLUSTER_SERVICE_NET.0/24" via "$CLUSTER_NODE_NET.2"
}

inside_node() {  # the first process in the namespaces
  mount_own_folders
  hostname real-node
  ip link set lo up
  touch "$CLUSTER_RUN/namespaces-made"
  configure_network
  start_containerd
  start_control_plane 0.0.0.0
  start kubelet "$PROGRAMS/kubelet" --config="$CLUSTER_RUN/kubelet.yaml" \
    --kubeconfig="$CLUSTER_RUN/node.kubeconfig" --root-dir="$CLUSTER_RUN/kubelet" \
    --cert-dir="$CLUSTER_RUN/kubelet-certificates" --hostname-override=real-node \
    --node-ip="$CLUSTER_NODE_NET.2"
  start kube-proxy "$PROGRAMS/kube-proxy" --kubeconfig="$CLUSTER_RUN/admin.kubeconfig" \
    --proxy-mode=nftables --hostname-override=real-node --conntrack-max-per-core=0 \
    --cluster-cidr="$CLUSTER_POD_NET.0/24"
  wait_until 60 kubelet node_is_ready real-node
  start_simulated_nodes "${CLUSTER_SIMULATED_NODES:-0}"
  touch "$CLUSTER_RUN/node-ready"
  while :; do
    sleep 3600 &
    wait $! || true
  done
}

mount_own_folders() {
  local controllers folder sysctl shown
  mount --make-rprivate /
  mount -t tmpfs -o mode=755 cgroups $CGROUPS
  for controllers in $(hierarchies | cut -d' ' -f1); do
    folder=$CGROUPS/${controllers#name=}
    mkdir "$folder"
    mount -t cgroup -o "${controllers/name=/none,name=}" cgroup "$folder"
  done
  mkdir -p "$CLUSTER_RUN"/{pod-logs,sysctls,network}
  mount --bind "$CLUSTER_RUN/pod-logs" /var/log
  mount --bind "$CLUSTER_RUN/volumes" "$VOLUMES"
  mount -t tmpfs run /run
  for sysctl in $WANTED_SYSCTLS; do
    shown=$CLUSTER_RUN/sysctls/$(basename "${sysctl%=*}")
    echo "${sysctl#*=}" > "$shown"
    mount --bind "$shown" "$SYSCTLS/${sysctl%=*}"
  done
}

configure_network() {
  local attempt
  for attempt in $(seq 100); do  # link_to_node brings it, from outside
    if ip link show eth0 > /dev/null 2>&1; then break; fi
    sleep 0.05
  done
  ip addr add "$CLUSTER_NODE_NET.2/24" dev eth0
  ip link set eth0 up
  ip route add default via "$CLUSTER_NODE_NET.1"
  echo 1 > $SYSCTLS/net/ipv4/ip_forward  # of this network namespace only
}

start_containerd() {
  local image
  export PATH=$RUNTIME/usr/bin:$RUNTIME/usr/sbin:$RUNTIME/sbin:$PATH
  export LD_LIBRARY_PATH=$RUNTIME_LIBRARIES
  containerd_settings > "$CLUSTER_RUN/containerd.toml"
  kubelet_settings > "$CLUSTER_RUN/kubelet.yaml"
  pod_network_settings > "$CLUSTER_RUN/network/pods.conflist"
  start containerd containerd --config "$CLUSTER_RUN/containerd.toml"
  wait_until 20 containerd containerd_client version
  for image in pause python; do import_image "$NODE_FILES/$image.tar"; done
  say "up: containerd with its images"
}

containerd_settings() {
  cat << EOF
version = 2
root = "$CLUSTER_RUN/containerd"
state = "/run/containerd"
[grpc]
  address = "$CLUSTER_RUN/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  # Without CAP_SYS_RESOURCE, as in many containers, no process may lower this score.
  restrict_oom_score_adj = true
  disable_apparmor = true
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "$RUNTIME/usr/lib/cni"
    conf_dir = "$CLUSTER_RUN/network"
EOF
}

pod_network_settings() {
  cat << EOF
{"cniVersion": "0.4.0", "name": "pods", "plugins": [{
  "type": "bridge", "bridge": "pods0", "isGateway": true, "hairpinMode": true,
  "ipam": {"type": "host-local", "dataDir": "$CLUSTER_RUN/pod-addresses",
    "ranges": [[{"subnet": "$CLUSTER_POD_NET.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}
EOF
}

kubelet_settings() {  # its port is reached only inside its own network namespace, so by everyone
  cat << EOF
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
containerRuntimeEndpoint: unix://$CLUSTER_RUN/containerd.sock
cgroupDriver: cgroupfs
oomScoreAdj: 0
failSwapOn: false
makeIPTablesUtilChains: false
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
evictionHard:
  imagefs.available: "0%"
  nodefs.available: "0%"
  nodefs.inodesFree: "0%"
  memory.available: "0%"
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
nodeStatusUpdateFrequency: 2s
syncFrequency: 5s
EOF
}

down_real_node() {
  local group attempt
  kill_process real-node
  rm -f "$CLUSTER_RUN"/pids/*  # ids inside the namespaces; the kernel has ended those processes
  ip link del "$CLUSTER_LINK" 2> /dev/null || true
  sleep 0.3
  while read -r group; do
    for attempt in $(seq 10); do
      find "$group" -depth -type d -exec rmdir {} + 2> /dev/null || true
      [ -d "$group" ] || break
      sleep 0.2
    done
    [ ! -d "$group" ] || echo "test cluster: left over: $group" >&2
  done < "$CLUSTER_RUN/cgroups"
}
