#!/usr/bin/env bash
# rank_death.sh [BIN] [KILLS]: how long a local pool takes from the SIGKILL of one of its ranks until it
# is whole again and the job on it runs again (goal: 5 s). Prints least, median and most.
set -euo pipefail
bin=${1:-$(dirname "$0")/../build/release/bin}
kills=${2:-10}
folder=$(mktemp -d)
export PIPEWRIGHT_DATA_DIR=$folder/data
trap '"$bin/pipewright" down >/dev/null; rm -rf "$folder"' EXIT

ranks=4
cat >"$folder/job.yaml" <<YAML
objective: {quadratic: {generate: {kind: tridiagonal, examples: 600, parameters: 512}, batch_size: 5}}
schedule: {pipedream: {stages: $ranks, microbatches: 400000}}
optimizer: {sgd: {learning_rate: 0.001}}
YAML

# What Prometheus would be told: cheap to ask, so that asking does not slow what is measured.
url=
token() { head -n 1 "$PIPEWRIGHT_DATA_DIR/token"; }
state() { curl -s -H @- "$url/metrics" <<<"Authorization: Bearer $(token)"; }
# All of the answer is read: a broken pipe would count as a no.
busy() { state | grep "^pipewright_ranks{state=\"busy\"} $ranks$" >/dev/null; }
runs() { state | grep '^pipewright_jobs{state="running"} 1$' >/dev/null; }
wait_for() { until "$@"; do sleep 0.02; done; }

"$bin/pipewright" up --ranks "$ranks" --port 0 >/dev/null
url=$(sed -n 's/.*"url": *"\([^"]*\)".*/\1/p' "$PIPEWRIGHT_DATA_DIR/daemon.json")
daemon=$(sed -n 's/.*"pid": *\([0-9]*\).*/\1/p' "$PIPEWRIGHT_DATA_DIR/daemon.json")

# ranks_below PID: the ranks' processes, in their order.
ranks_below() {
  local mpirun
  mpirun=$(pgrep -P "$daemon" mpirun)
  pgrep -P "$mpirun" pipewright-work | sort -n
}

times=()
for ((i = 0; i < kills; ++i)); do
  id=$("$bin/pipewright" submit "$folder/job.yaml")
  wait_for busy
  wait_for runs
  rank=$((i % ranks))
  victim=$(ranks_below | sed -n "$((rank + 1))p")
  begin=$(date +%s%N)
  kill -KILL "$victim"
  until ! runs; do sleep 0.005; done
  wait_for runs
  wait_for busy
  end=$(date +%s%N)
  times+=($(((end - begin) / 1000000)))
  echo "rank $rank: ${times[-1]} ms" >&2
  "$bin/pipewright" cancel "$id" >/dev/null
  "$bin/pipewright" wait "$id" >/dev/null || true
done
printf '%s\n' "${times[@]}" | sort -n | awk '
  { ms[NR] = $1 }
  END { printf "%d kills: min %d ms, median %d ms, max %d ms\n", NR, ms[1], ms[int((NR + 1) / 2)], ms[NR] }'
