#!/usr/bin/env bash
# clang-tidy over the files that changed since scripts/base.sh, for five minutes at most.
# What there was no time for is named.
#
#   scripts/tidy.sh [FILE.cc]...   (default: the changed ones)
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
seconds=${LK_TIDY_SECONDS:-300}
build=build/clang
commands=build/tidy

files=("$@")
if ((${#files[@]} == 0)); then
  base=$(scripts/base.sh)
  range=(HEAD)
  [[ -z $base ]] || range=("$base")
  mapfile -t files < <(git diff --name-only --diff-filter=d "${range[@]}" -- '*.cc' | grep -v '^tests/' | sort)
fi
scripts/build.sh clang configure
# What follows the compiler's own command there (the pass makes no code and touches its outputs) is none of tidy's.
mkdir -p "$commands"
sed -E 's/ && [^"]*"/"/' "$build/compile_commands.json" >"$commands/compile_commands.json"
known=()
for file in "${files[@]}"; do
  [[ -f $file ]] && grep -qF "\"$root/$file\"" "$commands/compile_commands.json" && known+=("$file")
done
((${#known[@]})) || {
  echo "tidy: no changed file to look at"
  exit 0
}

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
# Time of the machine and not of this shell: the workers are shells of their own.
end=$(($(cut -d. -f1 /proc/uptime) + seconds))
export out end commands
one() {
  local checks=$1 pass=$2 file=$3 left=$((end - $(cut -d. -f1 /proc/uptime))) rc=0
  if ((left <= 0)); then
    rc=124
  else
    timeout "$left" clang-tidy-14 -p "$commands" --quiet --checks="$checks" --warnings-as-errors='*' "$file" \
      >"$out/$pass.${file//\//_}.txt" 2>/dev/null || rc=$?
  fi
  case $rc in
    0) echo "$file" >>"$out/clean" ;;
    124) echo "$file ($pass)" >>"$out/skipped" ;;
    *) echo "$file" >>"$out/failed" ;;
  esac
}
export -f one
# The analyzer takes four times what all else takes: it comes second, with the time that is left.
pass() { printf '%s\n' "${known[@]}" | xargs -P 2 -I {} bash -c 'one "$@"' one "$1" "$2" {}; }
pass '-clang-analyzer-*' checks
pass '-*,clang-analyzer-*,-clang-analyzer-optin.performance.Padding' analyzer

count() { if [[ -f $out/$1 ]]; then wc -l <"$out/$1"; else echo 0; fi; }
echo "tidy: ${#known[@]} files, two passes each: $(count clean) clean, $(count failed) with findings," \
  "$(count skipped) skipped for lack of time"
[[ ! -f $out/skipped ]] || sort "$out/skipped" | sed 's/^/tidy: skipped /'
if [[ -f $out/failed ]]; then
  cat "$out"/*.txt >&2
  exit 1
fi
