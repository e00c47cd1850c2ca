#!/usr/bin/env bash
# Installs the Debian packages that a task needs and that are missing, as root or by sudo.
# Does nothing, at once, when all are there.
#
#   scripts/setup.sh [build|test|lint|bench|kubectl]...   (default: test, what `make test` needs)
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
list=$root/scripts/packages.txt

groups=()
for group in "${@:-test}"; do
  case $group in
    test | bench) groups+=(build "$group") ;;
    lint) groups+=(build test lint) ;;
    build | kubectl) groups+=("$group") ;;
    *)
      echo "setup: no group \"$group\"; there are build, test, lint, bench and kubectl" >&2
      exit 2
      ;;
  esac
done

wanted=()
for group in "${groups[@]}"; do
  mapfile -t -O "${#wanted[@]}" wanted < <(awk -v group="$group" '$1 == group { print $2 }' "$list")
done

if ! command -v dpkg-query >/dev/null; then
  echo "setup: this is no Debian; install what these stand for yourself: ${wanted[*]}" >&2
  exit 1
fi
declare -A installed=()
while read -r name state; do
  [[ $state == ii* ]] && installed[$name]=1
done < <(dpkg-query -W -f '${Package} ${db:Status-Abbrev}\n' "${wanted[@]}" 2>/dev/null)
missing=()
for name in "${wanted[@]}"; do
  [[ -n ${installed[$name]:-} ]] || missing+=("$name")
done
((${#missing[@]})) || exit 0

as_root=()
if ((EUID != 0)); then
  if ! command -v sudo >/dev/null; then
    echo "setup: missing: ${missing[*]}; run this as root, or install sudo" >&2
    exit 1
  fi
  as_root=(sudo)
fi
echo "setup: installing ${missing[*]}"
apt() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 "$@" </dev/null; }
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { apt update && apt install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
  cat "$log" >&2
  echo "setup: apt-get could not install ${missing[*]}" >&2
  exit 1
fi
