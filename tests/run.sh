#!/usr/bin/env bash
# Installs the packages, builds, checks the formatting, runs every test.
#
#   tests/run.sh [--ci] [--preset release|dev|tsan|no-mpi] [further arguments of ctest]
#   tests/run.sh -L unit                only the tests with that label
#   tests/run.sh -R PipeDream -V        only the tests of that name, with their output
#
# --ci: warnings are errors; the preset no-mpi is built too and runs an example; the fast tests run
# under AddressSanitizer and UndefinedBehaviorSanitizer as well.
set -euo pipefail

preset=release
ci=false
ctest_arguments=()
while [ $# -gt 0 ]; do
  case $1 in
  -h | --help)
    sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"
    exit 0
    ;;
  --ci) ci=true ;;
  --preset)
    preset=${2:?--preset needs release, dev, tsan or no-mpi}
    shift
    ;;
  *) ctest_arguments+=("$1") ;;
  esac
  shift
done

cd "$(dirname "$0")/.."
. deploy/packages.sh
prepare_build "$PWD"

check_format() {
  say "Formatting: clang-format"
  local faults
  faults=$(find core proto worker daemon client tests bench -name '*.[ch]pp' -print0 |
    xargs -0 -n 16 -P "$(nproc)" clang-format --dry-run 2>&1 |
    sed -nE 's/^([^ ]+):[0-9]+:[0-9]+: warning: .*/\1/p' | sort -u)
  [ -z "$faults" ] || fail "not formatted: $(echo $faults); clang-format -i puts that right"
}

# configure PRESET [options of cmake]
configure() {
  say "Configuring: $*"
  local name=$1
  shift
  if $ci; then set -- -D PIPEWRIGHT_WERROR=ON "$@"; fi
  cmake --preset "$name" "$@" >"$log" 2>&1 || {
    cat "$log"
    fail "configuring the preset $name failed"
  }
  grep -A3 -E 'CMake Warning|left out' "$log" || true
}

# build PRESET [options of cmake --build]; ninja's progress only on a terminal
build() {
  say "Building: $*"
  local name=$1
  shift
  local begin=$SECONDS
  if [ -t 1 ]; then
    cmake --build --preset "$name" "$@"
  else
    cmake --build --preset "$name" "$@" >"$log" 2>&1 || {
      tail -n 200 "$log"
      fail "building the preset $name failed"
    }
  fi
  printf 'built in %d s\n' $((SECONDS - begin))
}

run_tests() {
  local name=$1
  shift
  # Tests that start worlds of processes have the machine to themselves (RUN_SERIAL).
  local parallel=$(($(nproc) < 4 ? $(nproc) : 4))
  ctest --preset "$name" --parallel "$parallel" --no-tests=error "$@"
}

# Without MPI everything else still builds, and runs jobs in one process.
check_no_mpi() {
  configure no-mpi -D PIPEWRIGHT_TESTS=OFF -D PIPEWRIGHT_BENCH=OFF
  build no-mpi
  say "Without MPI: pipewright run examples/minimal.yaml"
  build/no-mpi/bin/pipewright run examples/minimal.yaml --out "$scratch/no-mpi" >/dev/null
}

# check_sanitized PRESET LABELS: builds only what those tests need. None of them calls MPI: Open MPI
# itself leaks, which LeakSanitizer would blame on us, and ThreadSanitizer cannot follow it.
check_sanitized() {
  local name=$1 labels=$2
  configure "$name"
  local targets
  mapfile -t targets < <(ninja -C "build/$name" -t targets all |
    sed -nE "s/^((${labels})_[a-z_0-9]+): phony$/\1/p" | sort -u)
  [ ${#targets[@]} -gt 0 ] || fail "no test program has one of the labels $labels"
  build "$name" --target "${targets[@]}"
  say "Testing: preset $name, labels $labels"
  run_tests "$name" -L "^($labels)\$"
}

scratch=$(mktemp -d)
log=$scratch/log
trap 'rm -rf "$scratch"' EXIT

install_packages "${build_packages[@]}" "${test_packages[@]}" "${figure_packages[@]}"
install_page_packages "$PWD" || fail "npm could not install the packages of client/web: is there a network?"
check_format
# On top of what a quickstart may have configured without tests.
configure "$preset" -D PIPEWRIGHT_TESTS=ON
build "$preset"
if $ci; then
  check_no_mpi
  check_sanitized dev 'unit|property|golden|transport|fuzz'
fi
say "Testing: preset $preset"
run_tests "$preset" ${ctest_arguments[@]+"${ctest_arguments[@]}"}
