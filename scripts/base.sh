#!/usr/bin/env bash
# Prints the commit that this change stands on: the merge base with the main branch of the origin, else the
# commit before this one; nothing in a tree of one commit.
set -euo pipefail

for branch in origin/HEAD origin/main origin/master; do
  base=$(git merge-base HEAD "$branch" 2>/dev/null) || continue
  if [[ $base != "$(git rev-parse HEAD)" ]]; then
    echo "$base"
    exit 0
  fi
done
git rev-parse --verify --quiet HEAD~1 || true
