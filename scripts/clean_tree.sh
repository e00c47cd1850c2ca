#!/usr/bin/env bash
# Fails when files below the given folders differ from the last commit or are not in it, and shows how.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
changed=$(git status --porcelain -- "$@")
[[ -n $changed ]] || exit 0
printf 'The generated files are not what the types say. Run "make generate" and commit:\n%s\n\n' "$changed" >&2
git --no-pager diff -- "$@" | sed -n 1,100p >&2
exit 1
