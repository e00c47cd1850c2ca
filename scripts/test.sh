#!/usr/bin/env bash
# Builds the tests of a preset and runs them; the last line counts cases: "N passed, N failed[, N skipped]".
#
#   scripts/test.sh [--preset dev|quick|tsan] [--target TARGET] [--nightly] [ctest arguments]
#
# Tests with the label nightly run only with --nightly, and then alone.
# Tests with the label peers need programs that scripts/peers.sh builds first; where it cannot, it says why and they are
# skipped.
# A program of GoogleTest counts by its cases; one that died before it could tell, and any other test, counts as one.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
preset=dev
target=lk_tests
labels=(-LE nightly)
while (($#)); do
  case $1 in
    --preset) preset=$2 && shift ;;
    --target) target=$2 && shift ;;
    --nightly) labels=(-L nightly) ;;
    *) break ;;
  esac
  shift
done
build=$root/build/$preset

cd "$root"
scripts/build.sh "$preset" "$target"

if ! ctest --test-dir "$build" -N -L peers "${labels[@]}" "$@" | grep -qx 'Total Tests: 0'; then
  scripts/peers.sh || (($? == 77))
fi

rm -rf "$build/test-results"
mkdir -p "$build/test-results"
failed=0
# Two at a time, whatever the machine: what is measured in them should not depend on it.
ctest --test-dir "$build" -j2 --output-on-failure --output-junit "$build/test-results/ctest.junit" \
  "${labels[@]}" "$@" || failed=$?
# Tables that tests made for people to read.
find "$build/test-results" -name '*.table' -exec cat {} +
awk -f scripts/count_tests.awk "$build/test-results/ctest.junit"
exit "$failed"
