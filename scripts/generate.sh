#!/usr/bin/env bash
# Writes what is generated from the types: crd/ and docs/reference/. Says what it wrote.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
mkdir -p build
scripts/build.sh release crdgen >build/generate.log 2>&1 || {
  cat build/generate.log >&2
  exit 1
}
build/release/api/types/crdgen .
