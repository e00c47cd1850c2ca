#!/usr/bin/env bash
# Rolls live servers under load with kubectl and prints what it cost. Builds the demo program beside the product.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
scripts/build.sh release lockkeeper slot-shim lk-demo
kubectl=$(scripts/kubectl.sh)
exec build/release/lk-demo build/release/lockkeeper "$kubectl" manifests/samples "$@"
