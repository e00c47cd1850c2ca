# Sums the cases of a ctest run. Input: ctest's JUnit file; beside it NAME.xml of each GoogleTest program.
# Prints "skipped N: WHY" for each reason, then "N passed, N failed[, N skipped]".

function attribute(text, name,   parts) {
  return match(text, " " name "=\"[^\"]*\"") ? substr(text, RSTART + length(name) + 3, RLENGTH - length(name) - 4) : ""
}

function settle(   file, line, cases, bad, left, not_run, whole) {
  if (test == "") return
  file = folder test ".xml"
  cases = bad = left = whole = 0
  while ((getline line < file) > 0) {
    if (line ~ /^ +<testcase name=/) {
      not_run = attribute(line, "status") == "notrun"
      if (not_run || attribute(line, "result") == "skipped") left++
      else cases++
      counted = !not_run
    } else if (line ~ /^ +<failure / && counted) {
      bad++
      counted = 0  # a case with several failures is one
    } else if (line ~ /^ +<skipped /) {
      why = attribute(line, "message")
      sub(/^[^&]*&#x0A;/, "", why)  # file:line
      gsub(/&#x0A;/, " ", why)
      gsub(/&quot;/, "\"", why)
      gsub(/&apos;/, "'", why)
      if (!whys[why]++) order[++reasons] = why
    } else if (line ~ /^<\/testsuites>/) {
      whole = 1
    }
  }
  close(file)
  if (whole) {
    passed += cases - bad
    failed += bad
    skipped += left
    if (state == "fail" && bad == 0) failed++  # all cases passed, and yet: a leak, a timeout at the end
  } else if (state == "run") {
    passed++
  } else if (state == "fail") {
    failed++
  } else {
    skipped++
  }
  test = ""
}

BEGIN { passed = failed = skipped = 0 }
FNR == 1 { folder = FILENAME; sub(/[^\/]*$/, "", folder) }
/^\t<testcase name=/ { settle(); test = attribute($0, "name"); state = attribute($0, "status") }
END {
  settle()
  for (i = 1; i <= reasons; i++) printf "skipped %d: %s\n", whys[order[i]], order[i]
  printf "%d passed, %d failed%s\n", passed, failed, skipped ? ", " skipped " skipped" : ""
}
