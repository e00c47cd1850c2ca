#!/usr/bin/env bash
# Builds the peers of the test suite into build/peers/: a real kube-apiserver and
# etcd with their command line tools, and the small client-go programs of
# tests/peers. Does nothing when they are up to date.
#
#   scripts/peers.sh          build what is missing or old
#   scripts/peers.sh --check  say whether they could be had; build nothing
#
# KUBEBUILDER_ASSETS may name a folder with a ready-made kube-apiserver and etcd,
# as envtest has it: those are linked instead of built.
#
# Exit status 77: the peers cannot be had on this machine; one line says why.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
module=$root/tests/peers
out=$root/build/peers
stamp=$out/.stamp
assets=${KUBEBUILDER_ASSETS:-}

servers=(etcd etcdctl etcdutl kube-apiserver kubectl)
own=(informer election manager)

package_of() {
  case $1 in
    etcd) echo go.etcd.io/etcd/server/v3 ;;
    etcdctl | etcdutl) echo "go.etcd.io/etcd/$1/v3" ;;
    kube-apiserver | kubectl) echo "k8s.io/kubernetes/cmd/$1" ;;
    *) echo "./cmd/$1" ;;
  esac
}

cannot() {
  echo "peers: $1" >&2
  exit 77
}

have_assets() {
  [[ -n $assets && -x $assets/kube-apiserver && -x $assets/etcd ]]
}

# What the binaries are made from, in one word. Sources are named relative to
# the module, so that the same tree elsewhere has the same key.
key() {
  {
    (cd "$module" && find go.mod go.sum cmd internal -type f -print0 | sort -z | xargs -0 sha256sum)
    sha256sum <"${BASH_SOURCE[0]}"
    go env GOVERSION GOOS GOARCH 2>/dev/null || true
    if have_assets; then
      stat -Lc '%n %s %Y' "$assets/kube-apiserver" "$assets/etcd"
    fi
  } | sha256sum | cut -d' ' -f1
}

complete() {
  local name
  for name in "$@"; do
    [[ -x $out/$name ]] || return 1
  done
}

build() {
  local name=$1 ldflags="-s -w" start=$SECONDS
  case $name in
    kube-apiserver | kubectl) ldflags+=" $kubernetes_version" ;;
  esac
  # go would write through a link, into somebody else's folder.
  [[ ! -L $out/$name ]] || rm "$out/$name"
  (cd "$module" && CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "$ldflags" \
    -o "$out/$name" "$(package_of "$name")")
  echo "peers: built $name in $((SECONDS - start)) s"
}

if ! command -v go >/dev/null; then
  have_assets || cannot "no Go on this machine, and KUBEBUILDER_ASSETS names no kube-apiserver and etcd"
  own=()
elif ! why=$(cd "$module" && go list -m 2>&1); then
  have_assets || cannot "${why//$'\n'/ }"
  own=()
fi
[[ ${1:-} != --check ]] || exit 0

mkdir -p "$out"
exec 9>"$out/.lock"
flock 9

key=$(key)
if have_assets; then
  servers=(kube-apiserver etcd)
fi
if [[ -f $stamp && $(<"$stamp") == "$key" ]] && complete "${servers[@]}" ${own[@]+"${own[@]}"}; then
  exit 0
fi

rm -f "$stamp"
if have_assets; then
  for name in kube-apiserver etcd kubectl; do
    if [[ -x $assets/$name ]]; then
      ln -sfn "$(cd "$assets" && pwd)/$name" "$out/$name"
    fi
  done
  echo "peers: kube-apiserver and etcd from $assets"
  todo=(${own[@]+"${own[@]}"})
else
  todo=("${servers[@]}" "${own[@]}")
  # The version is the pinned one; the build alone would leave a placeholder.
  version=$(cd "$module" && go list -m -f '{{.Version}}' k8s.io/kubernetes)
  IFS=. read -r major minor _ <<<"${version#v}"
  prefix=k8s.io/component-base/version
  kubernetes_version="-X $prefix.gitVersion=$version -X $prefix.gitMajor=$major"
  kubernetes_version+=" -X $prefix.gitMinor=$minor -X $prefix.gitTreeState=clean"
fi
for name in ${todo[@]+"${todo[@]}"}; do
  build "$name"
done
echo "$key" >"$stamp"
