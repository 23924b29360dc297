#!/usr/bin/env bash
# The language model of 8 stages and 1.2 million parameters:
#   - in one process on one core, against its matrix products alone;
#   - against the same model and batch in PyTorch (Debian: python3-torch) on one thread, side by side;
#   - on 2 ranks with 2 cores against one rank: both by the tokens per second of a run's wall time.
#   bench/language_model.sh [BUILD_DIR=build/release] [MICROBATCHES=200]
set -euo pipefail
source_dir=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "${1:-$source_dir/build/release}" && pwd)
microbatches=${2:-200}
python=${PYTHON:-/usr/bin/python3}
# What they make of the CPU is up to the libraries.
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1

bench=$build/bench/bench_language_model
[ -x "$bench" ] || { echo "language_model.sh: $bench is not there: build it first" >&2; exit 2; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

"$bench" | tee "$dir/bench"
ours=$(sed -n 's/.*: \([0-9]*\) tokens\/s.*/\1/p' "$dir/bench")
if "$python" -c 'import torch' 2>/dev/null; then
  torch=$("$python" "$source_dir/bench/language_model_torch.py")
  awk -v ours="$ours" -v torch="$torch" 'BEGIN {
    printf "PyTorch: %d tokens/s; ours / PyTorch = %.2f (aim: 1 or more)\n", torch, ours / torch }'
else
  echo "PyTorch is left out: $python has no torch (Debian: python3-torch)"
fi

worker=$build/bin/pipewright-worker
if [ ! -x "$worker" ] || ! command -v mpirun >/dev/null; then
  echo "ranks are left out: no $worker, or no mpirun"
  exit 0
fi
# As many characters as tinyshakespeare has.
awk 'BEGIN { srand(1); for (i = 0; i < 200000; ++i) printf "%c", 32 + int(65 * rand()) }' >"$dir/text"
cat >"$dir/job.yaml" <<YAML
objective:
  transformer: {data: {text: text}, batch_size: 16, sequence_length: 64, embedding: 128, heads: 4}
schedule:
  pipedream: {stages: 8, microbatches: $microbatches}
optimizer: {sgd: {learning_rate: 0.05}}
YAML
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1
export OMPI_MCA_hwloc_base_binding_policy=none
seconds() { # RANKS
  mpirun --oversubscribe -n "$1" "$worker" --run "$dir/job.yaml" --out "$dir/ranks$1" >"$dir/log" 2>&1 ||
    { cat "$dir/log" >&2; exit 1; }
  sed -n 's/^ *"wall_seconds": *\([0-9.]*\).*/\1/p' "$dir/ranks$1/summary.json"
}
for repetition in 1 2 3; do
  awk -v one="$(seconds 1)" -v two="$(seconds 2)" -v tokens=$((microbatches * 16 * 64)) 'BEGIN {
    printf "1 rank %.0f tokens/s, 2 ranks %.0f tokens/s: %.2f times (aim: 1.6)\n",
           tokens / one, tokens / two, one / two }'
done
