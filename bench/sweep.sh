#!/usr/bin/env bash
# How many runs of a sweep per second: 100 tiny runs on a running pool of 4 ranks, from submission to
# the last outcome in the store. Prints runs per second, and the CPU time per run of daemon and ranks.
#   bench/sweep.sh [BUILD_DIR]
set -euo pipefail
bin="${1:-build/release}/bin"
data=$(mktemp -d)
cleanup() {
  "$bin/pipewright" down --data-dir "$data" > "$data/down.log" 2>&1 || cat "$data/down.log" >&2
  rm -rf "$data"
}
trap cleanup EXIT
cat > "$data/sweep.yaml" <<'JOB'
objective:
  quadratic: {generate: {kind: tridiagonal, examples: 16, parameters: 16}, batch_size: 4}
schedule: {pipedream: {stages: 4, microbatches: 8}}
optimizer: {sgd: {learning_rate: 0.01}}
repeats: 100
JOB
"$bin/pipewright" up --ranks 4 --port 0 --data-dir "$data" >&2
daemon=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["pid"])' "$data/daemon.json")
ranks=$(pgrep -P "$(pgrep -P "$daemon" mpirun)")
cpu_ms() {
  local pid
  for pid in $daemon $ranks; do awk -v hz="$(getconf CLK_TCK)" '{print ($14 + $15) * 1000 / hz}' "/proc/$pid/stat"; done
}
for repetition in 1 2 3 4 5; do
  before=$(cpu_ms)
  id=$("$bin/pipewright" submit "$data/sweep.yaml" --data-dir "$data")
  "$bin/pipewright" wait "$id" --data-dir "$data" 2> /dev/null
  "$bin/pipewright" show "$id" --json --data-dir "$data" | python3 -c '
import json, sys
job = json.load(sys.stdin)
runs = job["progress"]["runs"]
took = int(job["ended_unix_ms"]) - int(job["submitted_unix_ms"])
cpu = [float(b) - float(a) for a, b in zip(sys.argv[1].split(), sys.argv[2].split())]
print("{} runs in {} ms: {:.0f} runs/s; CPU per run: daemon {:.1f} ms, ranks {} ms".format(
    runs["succeeded"], took, 1000 * runs["succeeded"] / took, cpu[0] / runs["total"],
    " ".join("{:.1f}".format(c / runs["total"]) for c in cpu[1:])))' "$before" "$(cpu_ms)"
done
