#!/usr/bin/env bash
# Builds the peers of the test suite into build/peers/: a real kube-apiserver and
# etcd with their command line tools, and the small client-go programs of
# tests/peers. Does nothing when they are up to date.
#
#   scripts/peers.sh          build what is missing or old
#   scripts/peers.sh --check  say whether they can be had here; build nothing
#
# KUBEBUILDER_ASSETS may name a folder with a ready-made kube-apiserver and etcd,
# as envtest has it. What is in it is linked; the rest is built if there is Go.
#
# Exit status 77: the peers cannot be had on this machine; one line says why.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
module=$root/tests/peers
out=$root/build/peers
stamp=$out/.stamp
all=(etcd etcdctl etcdutl kube-apiserver kubectl informer election manager)

package_of() {
  case $1 in
    etcd) echo go.etcd.io/etcd/server/v3 ;;
    etcdctl | etcdutl) echo "go.etcd.io/etcd/$1/v3" ;;
    kube-apiserver | kubectl) echo "k8s.io/kubernetes/cmd/$1" ;;
    *) echo "./cmd/$1" ;;
  esac
}

# What build/peers is made from, in one word.
key() {
  {
    (cd "$module" && find go.mod go.sum cmd internal -type f -print0 | sort -z | xargs -0 sha256sum)
    sha256sum <"${BASH_SOURCE[0]}"
    if ((${#built[@]})); then
      go env GOVERSION GOOS GOARCH
    fi
    for name in ${linked[@]+"${linked[@]}"}; do
      stat -Lc '%n %s %Y' "$assets/$name"
    done
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

assets=${KUBEBUILDER_ASSETS:-}
if [[ -n $assets && -x $assets/kube-apiserver && -x $assets/etcd ]]; then
  assets=$(cd "$assets" && pwd)
else
  assets=
fi
no_go=
if ! command -v go >/dev/null; then
  no_go="no Go on this machine"
elif ! no_go=$(cd "$module" && go list -m 2>&1 >/dev/null); then
  no_go=${no_go//$'\n'/ }  # This Go is too old.
fi
if [[ -z $assets && -n $no_go ]]; then
  echo "peers: $no_go, and KUBEBUILDER_ASSETS names no kube-apiserver and etcd" >&2
  exit 77
fi
[[ ${1:-} != --check ]] || exit 0

linked=()
built=()
for name in "${all[@]}"; do
  if [[ -n $assets && -x $assets/$name ]]; then
    linked+=("$name")
  elif [[ -z $no_go ]]; then
    built+=("$name")
  fi
done

mkdir -p "$out"
exec 9>"$out/.lock"
flock 9
key=$(key)
if [[ -f $stamp && $(<"$stamp") == "$key" ]] &&
  complete ${linked[@]+"${linked[@]}"} ${built[@]+"${built[@]}"}; then
  exit 0
fi

rm -f "$stamp"
for name in ${linked[@]+"${linked[@]}"}; do
  ln -sfn "$assets/$name" "$out/$name"
  echo "peers: linked $name from KUBEBUILDER_ASSETS"
done
if ((${#built[@]})); then
  # The version is the pinned one; the build alone would leave a placeholder.
  version=$(cd "$module" && go list -m -f '{{.Version}}' k8s.io/kubernetes)
  IFS=. read -r major minor _ <<<"${version#v}"
  prefix=k8s.io/component-base/version
  kubernetes_version="-X $prefix.gitVersion=$version -X $prefix.gitMajor=$major"
  kubernetes_version+=" -X $prefix.gitMinor=$minor -X $prefix.gitTreeState=clean"
fi
for name in ${built[@]+"${built[@]}"}; do
  build "$name"
done
echo "$key" >"$stamp"
