#!/usr/bin/env bash
# The tests with the label nightly: kill -9 of everything at every step of a real roll, and what else takes long.
#
#   scripts/nightly.sh            all of them, then the peers and the benchmarks
#   scripts/nightly.sh --sample   three minutes of them, other ones with each commit; the seed is printed
#
# The tests read LK_SAMPLE_SECONDS (none: everything) and LK_SAMPLE_SEED.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
if [[ ${1:-} == --sample ]]; then
  LK_SAMPLE_SEED=${LK_SAMPLE_SEED:-$((16#$(git rev-parse --short=7 HEAD)))}
  export LK_SAMPLE_SECONDS=180 LK_SAMPLE_SEED
  echo "nightly: a sample of $LK_SAMPLE_SECONDS s; LK_SAMPLE_SEED=$LK_SAMPLE_SEED runs the same again"
  exec scripts/test.sh --preset dev --nightly
fi
failed=0
scripts/test.sh --preset dev --nightly || failed=1
scripts/bench.sh || failed=1
exit "$failed"
