#!/bin/bash
# Process 1 of a node, in mount, PID and UTS namespaces of its own. Its death is
# the node's: the kernel then kills every process and drops every mount of it.
set -eu
: "${NODE:?}" "${FOLDER:?}" "${LOCALKUBE:?}" "${ADDRESS:?}" "${KUBECONFIG_FILE:?}" "${PROXY_CONFIG:?}"

hostname "$NODE"
# The kubelet hands mounts on to containers; the host does not see them.
mount --make-rshared /
while read -r mine well_known; do
    mkdir -p "$FOLDER/$mine"
    mount --bind "$FOLDER/$mine" "$well_known"
done <<MOUNTS
kubelet /var/lib/kubelet
cni /var/lib/cni
pod-logs /var/log/pods
container-logs /var/log/containers
run-containerd /run/containerd
MOUNTS
mount -t tmpfs tmpfs /run/netns

# What a crash left: sockets and records of containers that are no more.
find /run/containerd -mindepth 1 -delete
rm -rf "$FOLDER/containerd-state"

serve() {
    local name=$1
    shift
    "$@" >> "$FOLDER/log/$name.log" 2>&1 < /dev/null &
}
mkdir -p "$FOLDER/log"
serve containerd containerd --config "$FOLDER/containerd.toml"
serve volumes "$LOCALKUBE" volume-node --node="$NODE" --volumes="$FOLDER/volumes"
until [ -S /run/containerd/containerd.sock ]; do sleep 0.05; done
serve kubelet "$LOCALKUBE" kubelet --kubeconfig="$KUBECONFIG_FILE" --config="$FOLDER/kubelet.yaml" \
    --hostname-override="$NODE" --node-ip="$ADDRESS" --root-dir=/var/lib/kubelet
serve kube-proxy "$LOCALKUBE" kube-proxy --config="$PROXY_CONFIG"

# Reaps what is orphaned on the node, for ever.
while :; do wait -n || sleep 0.2; done
