# The control plane (etcd, API server, controllers, scheduler), simulated nodes, and down. Sourced
# by cluster.sh.

up() {
  prepare_run 127.0.0.1
  say "up: keys made"
  start_control_plane 127.0.0.1
  start_simulated_nodes "${CLUSTER_SIMULATED_NODES:-1}"
  echo "export KUBECONFIG=$CLUSTER_RUN/admin.kubeconfig"
}

prepare_run() {  # HOST: folders, tokens and keys of a new cluster that is reached at HOST
  [ ! -d "$CLUSTER_RUN/pids" ] || die "a cluster is up in $CLUSTER_RUN; run down first"
  mkdir -p "$CLUSTER_RUN/pids" "$CLUSTER_RUN/volumes"
  chmod 700 "$CLUSTER_RUN"
  trap take_down_after_failure EXIT
  local admin_token node_token
  admin_token=$(openssl rand -hex 16)
  node_token=$(openssl rand -hex 16)
  echo "$1" > "$CLUSTER_RUN/host"
  echo "$admin_token" > "$CLUSTER_RUN/admin.token"
  printf '%s\n' "$admin_token,admin,admin,system:masters" \
    "$node_token,system:node:real-node,real-node,system:nodes" > "$CLUSTER_RUN/tokens.csv"
  kubeconfig "$1" admin "$admin_token" > "$CLUSTER_RUN/admin.kubeconfig"
  kubeconfig "$1" system:node:real-node "$node_token" > "$CLUSTER_RUN/node.kubeconfig"
  openssl genrsa -out "$CLUSTER_RUN/service-account.key" 2048 2> /dev/null
}

kubeconfig() {  # HOST USER TOKEN
  cat << EOF
apiVersion: v1
kind: Config
clusters:
  - name: test
    cluster:
      server: "https://$1:$CLUSTER_API_PORT"
      certificate-authority: "$CLUSTER_RUN/certificates/apiserver.crt"
users: [{name: $2, user: {token: $3}}]
contexts: [{name: test, context: {cluster: test, user: $2}}]
current-context: test
EOF
}

call_api() {  # METHOD PATH [JSON]: one call as the admin
  curl -sSf --max-time 5 --cacert "$CLUSTER_RUN/certificates/apiserver.crt" \
    -H "Authorization: Bearer $(cat "$CLUSTER_RUN/admin.token")" \
    -H 'Content-Type: application/json' \
    -X "$1" ${3:+-d "$3"} "https://$(cat "$CLUSTER_RUN/host"):$CLUSTER_API_PORT$2"
}

start_control_plane() {  # ADDRESS that the API server listens on
  start_etcd_and_api_server "$1"
  wait_until 60 kube-apiserver call_api GET /readyz
  say "up: etcd and kube-apiserver ready"
  start_controllers_and_scheduler "$1"
  call_api POST /apis/storage.k8s.io/v1/storageclasses '{
    "metadata": {
      "name": "standard",
      "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}
    },
    "provisioner": "kubernetes.io/host-path"
  }' > /dev/null
  wait_until 60 kube-controller-manager \
    call_api GET /api/v1/namespaces/default/serviceaccounts/default
  say "up: kube-controller-manager and kube-scheduler at work"
}

start_etcd_and_api_server() {  # ADDRESS
  local etcd=http://127.0.0.1:$CLUSTER_ETCD_PORT
  local peer=http://127.0.0.1:$((CLUSTER_ETCD_PORT + 1))
  # On loopback nothing runs in the cluster that could use the endpoint of the API server.
  local endpoint=lease
  [ "$1" != 127.0.0.1 ] || endpoint=none
  start etcd "$PROGRAMS/etcd" --data-dir "$CLUSTER_RUN/etcd" --unsafe-no-fsync \
    --listen-client-urls "$etcd" --advertise-client-urls "$etcd" \
    --listen-peer-urls "$peer" --initial-advertise-peer-urls "$peer" \
    --initial-cluster "default=$peer"
  start kube-apiserver "$PROGRAMS/kube-apiserver" --etcd-servers="$etcd" \
    --bind-address="$1" --advertise-address="$(cat "$CLUSTER_RUN/host")" \
    --secure-port="$CLUSTER_API_PORT" --cert-dir="$CLUSTER_RUN/certificates" \
    --service-cluster-ip-range="$CLUSTER_SERVICE_NET.0/24" \
    --authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction \
    --token-auth-file="$CLUSTER_RUN/tokens.csv" \
    --service-account-issuer=https://kubernetes.default.svc \
    --service-account-key-file="$CLUSTER_RUN/service-account.key" \
    --service-account-signing-key-file="$CLUSTER_RUN/service-account.key" \
    --kubelet-preferred-address-types=InternalIP \
    --endpoint-reconciler-type="$endpoint" --allow-privileged=true
}

start_controllers_and_scheduler() {  # ADDRESS
  # The host-path provisioner binds every claim, in a folder that all clusters would share. As root,
  # mount one of our own there; on the real node inside_node has done so.
  local with_own_volumes=()
  if [ "$(id -u)" = 0 ] && [ "$1" = 127.0.0.1 ]; then
    mkdir -p -m 1777 "$VOLUMES"
    with_own_volumes=(unshare --mount
      sh -c 'mount --bind "$0" "$1" && shift && exec "$@"' "$CLUSTER_RUN/volumes" "$VOLUMES")
  fi
  # The default rate of 20 requests a second makes 100 Deployments take 17 s.
  local rate=(--kube-api-qps=500 --kube-api-burst=500)
  start kube-controller-manager "${with_own_volumes[@]}" "$PROGRAMS/kube-controller-manager" \
    --kubeconfig="$CLUSTER_RUN/admin.kubeconfig" \
    --service-account-private-key-file="$CLUSTER_RUN/service-account.key" \
    --root-ca-file="$CLUSTER_RUN/certificates/apiserver.crt" \
    --leader-elect=false --secure-port=0 --enable-hostpath-provisioner "${rate[@]}"
  start kube-scheduler "$PROGRAMS/kube-scheduler" --kubeconfig="$CLUSTER_RUN/admin.kubeconfig" \
    --leader-elect=false --secure-port=0 "${rate[@]}"
}

start_simulated_nodes() {  # COUNT: kwok reports their pods as running, but nothing runs
  local number size='{"cpu": "64", "memory": "256Gi", "pods": "500"}'
  [ "$1" -gt 0 ] || return 0
  : > "$CLUSTER_RUN/kwok.yaml"  # empty: pods run as soon as they are bound, and end when deleted
  start kwok "$PROGRAMS/kwok" --kubeconfig="$CLUSTER_RUN/admin.kubeconfig" \
    --config="$CLUSTER_RUN/kwok.yaml" --node-lease-duration-seconds=40 --cidr=10.245.0.1/16 \
    --manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake
  for number in $(seq "$1"); do
    call_api POST /api/v1/nodes '{
      "metadata": {
        "name": "fake-'"$number"'",
        "annotations": {"kwok.x-k8s.io/node": "fake"},
        "labels": {"type": "kwok", "kubernetes.io/hostname": "fake-'"$number"'"}
      },
      "status": {"allocatable": '"$size"', "capacity": '"$size"'}
    }' > /dev/null
    wait_until 30 kwok node_is_ready "fake-$number"
  done
  say "up: $1 simulated node(s) Ready"
}

node_is_ready() {  # NAME
  call_api GET "/api/v1/nodes/$1" | tr -d ' \n' | grep -q '"type":"Ready","status":"True"'
}

take_down_after_failure() {
  local code=$?
  trap - EXIT
  [ $code = 0 ] || down >&2
  exit $code
}

down() {
  local name logs
  if [ ! -d "$CLUSTER_RUN/pids" ]; then
    say "down: nothing is up"
    return
  fi
  if [ -f "$CLUSTER_RUN/cgroups" ]; then
    down_real_node
  else
    for name in kwok kube-scheduler kube-controller-manager kube-apiserver etcd; do
      kill_process $name
    done
  fi
  logs=$CLUSTER_CACHE/logs/$(basename "$CLUSTER_RUN")
  rm -rf "$logs"
  mkdir -p "$logs"
  mv "$CLUSTER_RUN"/*.log "$logs/" 2> /dev/null || true
  rm -rf "$CLUSTER_RUN"  # $VOLUMES stays: another cluster may have its own mounted there
  say "down: all stopped"
}
