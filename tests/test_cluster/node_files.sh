# Files of the real node: Debian's container runtime, and images. Sourced by cluster.sh.
#
# Debian's packages are unpacked, not installed, and images are made from folders: neither Docker
# nor an image registry is needed.

RUNTIME_PACKAGES="containerd runc containernetworking-plugins nftables libnftables1 libnftnl11
  libmnl0 libjansson4 libgmp10 libedit2 libbsd0 libmd0 libtinfo6 libxtables12 libseccomp2"
PYTHON_PACKAGES="libc6 libcrypt1 libgcc-s1 zlib1g libexpat1 libssl3 libffi8 libbz2-1.0 liblzma5
  libuuid1 libsqlite3-0 busybox-static python3.11-minimal libpython3.11-minimal
  libpython3.11-stdlib"
NODE_FILES=$CLUSTER_CACHE/node-$(digest_of "$HERE"/{node_files.sh,make_image.py,pause.c})
RUNTIME=$NODE_FILES/runtime
RUNTIME_LIBRARIES=$RUNTIME/usr/lib/x86_64-linux-gnu:$RUNTIME/lib/x86_64-linux-gnu

make_node_files() {  # FOLDER
  local python=$1/python pause=$1/pause program
  mkdir -p "$1/runtime" "$python" "$pause"
  # shellcheck disable=SC2086
  unpack "$1/runtime" $RUNTIME_PACKAGES
  # shellcheck disable=SC2086
  unpack "$python" $PYTHON_PACKAGES
  rm -rf "$python"/usr/share/{doc,man,lintian}
  mkdir -p "$python"/{etc,tmp,proc,sys,dev,root,data}
  chmod 1777 "$python/tmp"
  for program in sh ls cat wget sleep env; do ln -sf busybox "$python/bin/$program"; done
  ln -sf python3.11 "$python/usr/bin/python3"
  echo 'root:x:0:0:root:/root:/bin/sh' > "$python/etc/passwd"
  gcc -Os -static -s -o "$pause/pause" "$HERE/pause.c"
  python3 "$HERE/make_image.py" localhost/python:1 "$1/python.tar" "$python" -- python3
  python3 "$HERE/make_image.py" localhost/pause:1 "$1/pause.tar" "$pause" -- /pause
  say "node files: runtime unpacked and images made ($(du -sh "$1" | cut -f1))"
}

unpack() {  # FOLDER PACKAGE...
  local folder=$1 downloads package
  shift
  downloads=$(mktemp -d)
  chmod 755 "$downloads"  # apt-get downloads as a user of its own
  if ! (cd "$downloads" && apt-get download -qq "$@" 2> /dev/null); then
    apt-get update -qq
    (cd "$downloads" && apt-get download -qq "$@")
  fi
  for package in "$downloads"/*.deb; do dpkg -x "$package" "$folder"; done
  rm -rf "$downloads"
}

image() {  # NAME FOLDER [ARGUMENT...]
  local name=$1 folder=$2 archive=$CLUSTER_RUN/image.tar
  shift 2
  python3 "$HERE/make_image.py" "$name" "$archive" "$NODE_FILES/python" "$folder" -- "$@"
  import_image "$archive"
  rm -f "$archive"
  say "image: $name is on the node"
}

containerd_client() {  # ARGUMENT...
  LD_LIBRARY_PATH=$RUNTIME_LIBRARIES "$RUNTIME/usr/bin/ctr" \
    --address "$CLUSTER_RUN/containerd.sock" --namespace k8s.io "$@"
}

import_image() { containerd_client images import "$1" > /dev/null; }  # ARCHIVE
