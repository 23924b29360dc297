#!/usr/bin/env bash
# Does anything grow? Very many tiny runs of two ranks each, one job after the other, on one pool of two
# ranks. Prints resident memory and descriptors of the daemon and of both ranks as the runs go by. A
# communicator is made for every run: of those that are not freed Open MPI has 65,536 at most, and a
# pool that runs out of them ends.
#   bench/service/tiny_runs.sh [RUNS=100000] [BUILD_DIR=build/release]
set -euo pipefail
runs="${1:-100000}"
bin="${2:-build/release}/bin"
data=$(mktemp -d)
cleanup() {
  "$bin/pipewright" down --data-dir "$data" > "$data/down.log" 2>&1 || cat "$data/down.log" >&2
  rm -rf "$data"
}
trap cleanup EXIT
"$bin/pipewright" up --ranks 2 --port 0 --data-dir "$data" >&2
daemon=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["pid"])' "$data/daemon.json")
ranks=$(pgrep -P "$(pgrep -P "$daemon" mpirun)")
row() {
  local pid text
  text=$(printf '%7s runs' "$1")
  for pid in $daemon $ranks; do
    text+=$(awk -v open="$(ls "/proc/$pid/fd" | wc -l)" \
      '/^VmRSS/ {printf " | %6.1f MiB %3d fds", $2 / 1024, open}' "/proc/$pid/status")
  done
  echo "$text | $2"
}
submit() {
  cat > "$data/job.yaml" <<JOB
objective:
  quadratic: {generate: {kind: tridiagonal, examples: 16, parameters: 16}, batch_size: 4}
schedule: {pipedream: {stages: 2, microbatches: 4}}
optimizer: {sgd: {learning_rate: 0.01}}
observe: {objective: never}
ranks: 2
repeats: $1
JOB
  "$bin/pipewright" submit "$data/job.yaml" --data-dir "$data"
}
echo "             | daemon               | rank 0               | rank 1               | runs/s"
step=$((runs / 10))
row 0 "-"
for part in 1 2 3 4 5 6 7 8 9 10; do
  begin=$(date +%s%N)
  id=$(submit "$step")
  "$bin/pipewright" wait "$id" --data-dir "$data" 2> /dev/null
  row $((part * step)) "$((step * 1000000000 / ($(date +%s%N) - begin)))"
done
