# Compiles server/ into one program in the cache that is all of Kubernetes. Sourced by cluster.sh.

SERVER=$HERE/server
COMPONENTS="etcd kube-apiserver kube-controller-manager kube-scheduler kube-proxy kubelet kwok"
# The name changes with the sources, so checkouts of different age can share a cache.
PROGRAMS=$CLUSTER_CACHE/programs-$(digest_of "$SERVER"/{main.go,go.mod,go.sum,unused_module/go.mod})
FETCH_ATTEMPTS=3
FETCH_PAUSE_S=20

is_built() { [ -d "$PROGRAMS" ]; }

build() {
  if is_built; then
    say "build: already compiled"
    return
  fi
  stop_if_missing
  make_once "$PROGRAMS" compile
  say "build: done"
}

wanted_go() { sed -n 's/^go \([0-9]*\.[0-9]*\).*/\1/p' "$SERVER/go.mod"; }

go_is_new_enough() {
  local found
  found=$(GOTOOLCHAIN=local go env GOVERSION 2> /dev/null) || return 1
  printf '%s\n%s\n' "$(wanted_go)" "${found#go}" | sort --version-sort --check=quiet
}

compile() {  # FOLDER
  export GOTOOLCHAIN=local CGO_ENABLED=0 GOCACHE=$PROGRAMS.compiler-cache
  local component
  fetch_modules
  (cd "$SERVER" && nice -n 10 go build -p "$CLUSTER_COMPILE_JOBS" -buildvcs=false -trimpath \
    -ldflags "-s -w $(version_flags)" -o "$1/test-cluster" .)
  for component in $COMPONENTS; do ln -s test-cluster "$1/$component"; done
  # The compiler's cache (3 GB) stays after a failure only: the next attempt is quicker with it.
  rm -rf "$GOCACHE"
  say "build: compiled and linked, $(du -h "$1/test-cluster" | cut -f1)"
}

fetch_modules() {
  local attempt log=$CLUSTER_CACHE/fetch.log
  # The module proxy refuses at times. What has arrived is kept.
  for attempt in $(seq $FETCH_ATTEMPTS); do
    # Go fetches as many modules at once as it has cores: eight take a tenth of the time of two.
    if (cd "$SERVER" && GOMAXPROCS=8 go list -buildvcs=false -deps . > /dev/null 2> "$log"); then
      say "build: modules fetched and checked against go.sum"
      return
    fi
    [ "$attempt" = $FETCH_ATTEMPTS ] || sleep $FETCH_PAUSE_S
  done
  tail -n 5 "$log" >&2
  die "the Go modules could not be fetched"
}

version_flags() {  # so that the server reports the version that go.mod names
  local version minor package
  version=$(awk '$1 == "k8s.io/kubernetes" { print $2; exit }' "$SERVER/go.mod")
  minor=$(echo "$version" | cut -d. -f2)
  for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    printf -- '-X %s.gitVersion=%s ' $package "$version"
    printf -- '-X %s.gitMajor=1 -X %s.gitMinor=%s ' $package $package "$minor"
    printf -- '-X %s.gitTreeState=clean -X %s.gitCommit=test-cluster ' $package $package
    printf -- '-X %s.buildDate=1970-01-01T00:00:00Z ' $package
  done
}
