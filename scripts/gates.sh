#!/usr/bin/env bash
# The gates that only read the tree, in seconds. Each prints what breaks it; all run, any failure fails.
#
#   scripts/gates.sh [GATE]...   format layers pure doors length tests words scripts (default: all)
set -u  # no pipefail: a grep that finds nothing is what every gate hopes for

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root" || exit 1

# The sources whose path matches $1.
sources() {
  git ls-files --cached --others --exclude-standard -- '*.h' '*.cc' | grep -E "${1:-.}" |
    while read -r file; do [[ ! -f $file ]] || echo "$file"; done
}
product='^(api|controller|reconcilers)/'

# Prints "title: ..." and the rows of standard input; fails when there are any.
report() {
  local rows
  rows=$(cat)
  [[ -z $rows ]] && return 0
  printf '%s\n%s\n\n' "$1" "$rows" >&2
  return 1
}

# Laid out as .clang-format says.
gate_format() {
  sources | xargs -r clang-format-14 --dry-run 2>&1 |
    sed -nE 's/^([^ :]+):[0-9]+:[0-9]+: warning: .*/\1/p' | sort -u |
    report 'Not laid out by .clang-format (clang-format-14 -i FILE):'
}

# Includes only in the allowed direction.
gate_layers() {
  sources "$product" | xargs -r grep -nE '^#include "' | awk -F: '
    function layer(path) {
      if (match(path, /^api\/(base|types|transport|server)\//)) return substr(path, 5, RLENGTH - 5)
      if (match(path, /^(controller|reconcilers|tests)\//)) return substr(path, 1, RLENGTH - 1)
      return "?"
    }
    BEGIN {
      allowed["base"] = " base "
      allowed["types"] = " base types "
      allowed["transport"] = " base types transport "
      allowed["server"] = " base types transport server "
      allowed["controller"] = " base types transport controller "
      allowed["reconcilers"] = " base types transport controller reconcilers "
    }
    {
      split($3, part, "\"")
      from = layer($1)
      to = layer(part[2])
      # The binary puts all roles together.
      if ($1 ~ /^reconcilers\/main\// && to == "server") next
      if (index(allowed[from], " " to " ") == 0) print $1 ":" $2 ": " from " may not include " part[2]
    }' | report 'Includes against the direction reconcilers -> controller -> api/transport -> api/types -> api/base:'
}

# Planning and summarising read no clock, log nothing, do no I/O and know only values. There is no linking against
# this: system headers are always found.
gate_pure() {
  sources '^reconcilers/.*/(plan|status|snapshot|rules?|decide)(_[a-z_]+)?\.(h|cc)$|^api/types/' |
    grep -vE '^api/types/(crdgen_main|generate)\.' |
    xargs -r grep -nE '::now\(|SystemClock\(|api/base/(log|file|sqlite|unique_fd)\.h|api/transport/|controller/|<(iostream|fstream|thread|mutex|unistd\.h|time\.h|ctime|random)>|<sys/|\b(getenv|rand|printf|std::cout|std::cerr)\b *\(?' |
    grep -vE '^api/types/.*(snprintf|getenv)' |
    report 'Plan and status code is pure: no clock, no I/O, no logging, nothing but api/types:'
}

# One door to each library; none in a header of ours.
gate_doors() {
  {
    sources "$product.*\.h$" | xargs -r grep -nE '#include <(httplib\.h|rapidjson/|spdlog/|sqlite3\.h|prometheus/|yaml-cpp/|CLI/|archive)'
    sources | grep -v '^api/base/log\.cc$' | xargs -r grep -nE '#include <spdlog/'
    sources "$product" | grep -vE '^api/base/json|_json' | xargs -r grep -nE '#include <rapidjson/'
    sources "$product" | grep -v '^api/transport/' | xargs -r grep -nE '#include <httplib\.h>'
    # The API's store sets a busy handler of its own.
    sources "$product" | grep -vE '^api/(base/sqlite|server/store)\.cc$' | xargs -r grep -nE '#include <sqlite3\.h>'
    sources "$product" | xargs -r grep -nE '\b(system|popen)\('
  } | sort -u | report 'A library is included behind its one door only, headers stay light, and no shell is called:'
}

# No file over 600 lines.
gate_length() {
  sources | xargs -r wc -l | awk '$2 != "total" && $1 > 600 { print $2 ": " $1 " lines" }' | report 'Files over 600 lines:'
}

# Tests wait on conditions, and say why they are skipped.
gate_tests() {
  {
    sources '^tests/' | xargs -r grep -nE '\b(sleep_for|sleep_until|usleep|nanosleep|sleep)\(' | grep -v 'not synchronisation' |
      sed 's/$/   <- wait on a condition with a deadline, or say "not synchronisation: WHY" on the line/'
    sources '^tests/' | xargs -r grep -nE 'GTEST_SKIP\(\) *;|DISABLED_' | sed 's/$/   <- say why/'
  } | report 'Tests that sleep or are skipped without a reason:'
}

# Nothing left for later without an owner, no path of one machine.
gate_words() {
  local above
  above=$(dirname "$root")
  {
    git grep -nIE '\b(TODO|FIXME|XXX|HACK)\b' -- . ':!scripts/gates.sh' ':!LICENSE' ':!tests/peers/go.sum'
    # Folders that any machine has say nothing.
    case $above in
      / | /tmp | /var | /var/* | /usr | /usr/* | /opt | /home | /root) ;;
      *) git grep -nIF -e "$above/" -- . ;;
    esac
  } | report 'Words that do not belong in the tree:'
}

# Shell scripts parse.
gate_scripts() {
  git ls-files --cached --others --exclude-standard -- '*.sh' .ci/run | while read -r f; do
    [[ ! -f $f ]] || bash -n "$f" 2>&1
  done | report 'Scripts that do not parse:'
}

gates=("$@")
((${#gates[@]})) || gates=(format layers pure doors length tests words scripts)
failed=0
for gate in "${gates[@]}"; do
  "gate_$gate" || failed=1
done
exit $failed
