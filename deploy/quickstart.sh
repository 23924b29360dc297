#!/usr/bin/env bash
# From a fresh Debian 12 to a pipeline of MPI processes that trains before your eyes. Run again, it
# uses what is there. Further arguments go to `pipewright up`, e.g. deploy/quickstart.sh --port 0
set -euo pipefail
case ${1:-} in
-h | --help)
  sed -n '2,3s/^# //p' "$0"
  exit 0
  ;;
esac
cd "$(dirname "$0")/.."
. deploy/packages.sh
prepare_build "$PWD"

install_packages "${build_packages[@]}"
install_page_packages "$PWD" || say "The web page is left out: its packages could not be fetched"

say "Building (some minutes the first time)"
# A build folder with tests keeps them.
[ -f build/release/CMakeCache.txt ] || first_time=-DPIPEWRIGHT_TESTS=OFF
cmake --preset release ${first_time:-} >/dev/null
cmake --build --preset release --target pipewright pipewrightd pipewright-worker

bin=build/release/bin
say "Starting a cluster on this machine: a daemon and 4 MPI ranks"
"$bin/pipewright" up --ranks 4 "$@"

say "Comparing PipeDream and LocalSGD on one problem, side by side on 2 ranks each"
pipedream=$("$bin/pipewright" submit examples/pipedream.yaml --set ranks=2)
local_sgd=$("$bin/pipewright" submit examples/local_sgd.yaml --set ranks=2)
status=0
"$bin/pipewright" watch "$pipedream" "$local_sgd" || status=$?

cat <<TEXT

== What next
  $bin/pipewright web                                      the link to the web page with all of this
  $bin/pipewright list                                     the jobs so far
  $bin/pipewright show $pipedream                                   all about one of them
  $bin/pipewright export $pipedream --out results                  its files
  $bin/pipewright submit examples/a9a.yaml --watch         another one
  $bin/pipewright down                                     stops the cluster; jobs are kept
TEXT
exit "$status"
