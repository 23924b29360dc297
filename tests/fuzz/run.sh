#!/usr/bin/env bash
# Runs fuzz targets over their corpora (tests/fuzz/corpus/TARGET).
#
#   tests/fuzz/run.sh [--seconds S | --runs N] [--keep] [TARGET...]
#
#   --seconds S   look for new inputs for so long, per target (default 60), from a new seed
#   --runs N      so many inputs, from a fixed seed: what the tests do
#   --keep        what reaches code that the corpus does not reach joins the corpus
#   --programs D  the folder of the programs (default build/fuzz/fuzz; built when it is not given)
#
# The programs need clang-14 and libclang-rt-14-dev (Debian's names).
#
# An input that finds a fault is written to fuzz-faults/; put it into the corpus with its mending:
# build/fuzz/fuzz/fuzz_TARGET FILE shows it again.
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
limit=(-max_total_time=60)
keep=false
programs=
targets=()
while [ $# -gt 0 ]; do
  case $1 in
  -h | --help)
    sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"
    exit 0
    ;;
  --seconds) limit=(-max_total_time="${2:?--seconds needs a number}") && shift ;;
  --runs) limit=(-runs="${2:?--runs needs a number}" -seed=1) && shift ;;
  --keep) keep=true ;;
  --programs) programs=${2:?--programs needs a folder} && shift ;;
  -*) echo "run.sh: $1 is not known; --help says what is" >&2 && exit 2 ;;
  *) targets+=("$1") ;;
  esac
  shift
done
if [ ${#targets[@]} -eq 0 ]; then
  for file in "$root"/tests/fuzz/targets/*.cpp; do targets+=("$(basename "$file" .cpp)"); done
fi
for target in "${targets[@]}"; do
  [ -e "$root/tests/fuzz/targets/$target.cpp" ] || {
    echo "run.sh: there is no target '$target' in tests/fuzz/targets" >&2
    exit 2
  }
done
if [ -z "$programs" ]; then
  programs=$root/build/fuzz/fuzz
  (cd "$root" && cmake --preset fuzz >/dev/null && cmake --build --preset fuzz)
fi

scratch=$(mktemp -d -p "$([ -w /dev/shm ] && echo /dev/shm || echo "${TMPDIR:-/tmp}")")
trap 'rm -rf "$scratch"' EXIT
export TMPDIR=$scratch
faults=$PWD/fuzz-faults
for target in "${targets[@]}"; do
  corpus=$root/tests/fuzz/corpus/$target
  new=$scratch/new-$target
  mkdir -p "$new" "$faults"
  "$programs/fuzz_$target" "${limit[@]}" -timeout=30 -rss_limit_mb=2048 -malloc_limit_mb=1024 \
    -max_len=65536 -print_final_stats=1 -artifact_prefix="$faults/$target-" "$new" "$corpus"
  if $keep; then
    "$programs/fuzz_$target" -merge=1 "$corpus" "$new" 2>&1 | tail -n 1
  fi
done
rmdir "$faults" 2>/dev/null || true
