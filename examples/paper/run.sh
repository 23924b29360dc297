#!/usr/bin/env bash
# Repeats the experiments of docs/paper.md: runs, figures and the tables of their numbers.
#
#   examples/paper/run.sh [OUT [EXPERIMENT...]]     OUT: paper-results unless given
#   examples/paper/run.sh paper-results delays rpd  only these of: delays rpd nesterov logistic scaling latency caps language
#
# Needs the built programs (build/release/bin, or PIPEWRIGHT=path of pipewright), gnuplot, and the data of
# the paper's authors in ../shared/golden. Takes a few minutes; what it finds in OUT is written over.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
pipewright=${PIPEWRIGHT:-$root/build/release/bin/pipewright}
golden=$root/../shared/golden

if [ "${1:-}" = -h ] || [ "${1:-}" = --help ]; then
  sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"
  exit 0
fi
out=${1:-paper-results}
shift || true
experiments=("$@")
[ $# -gt 0 ] || experiments=(delays rpd nesterov logistic scaling latency caps language)

fail() {
  printf 'run.sh: %s\n' "$*" >&2
  exit 1
}
[ -x "$pipewright" ] || fail "$pipewright is not there: build it, or name it by PIPEWRIGHT=..."
[ -d "$golden" ] || fail "$golden is not there: it holds the data of the experiments"
mkdir -p "$out"
out=$(cd "$out" && pwd)

say() { printf '\n== %s\n' "$*"; }

# A line of a table, on the terminal and in OUT/numbers-EXPERIMENT.md.
row() { printf '%s\n' "$*" | tee -a "$numbers"; }

# run NAME JOB [--set key=value ...]: into OUT/NAME.
run() {
  local name=$1 job=$2
  shift 2
  "$pipewright" run "$here/$job.yaml" --out "$out/$name" "$@" >"$out/$name.log" 2>&1 || {
    cat "$out/$name.log" >&2
    fail "the run $name failed"
  }
}

plot() {
  local name=$1
  shift
  "$pipewright" plot --out "$out/$name.svg" "$@" >/dev/null
  echo "figure $out/$name.svg"
}

# value_at RUN TICK: what $series says at that tick (the last one observed by then), or nan.
series=objective
value_at() {
  awk -F, -v tick="$2" 'NR > 1 && $1 <= tick { value = $3 } END { printf "%.5g\n", value }' \
    "$1/$series.csv"
}

# best_at SWEEP TICK COLUMN: over the runs of a sweep "value key run" of the lowest value at a tick; key
# is what stands in that column of runs.csv, with a * at an edge of the grid.
best_at() {
  local run
  for run in "$1"/run-*/; do
    printf '%s,%s\n' "$(value_at "$run" "$2")" "${run%/}"
  done | awk -F, -v column="$3" '
    NR == FNR { if (FNR > 1) key[FNR - 2] = $column; next }
    {
      n++
      if ($1 ~ /nan|inf/) next
      if (best == "" || $1 + 0 < best + 0) { best = $1; at = n - 1; run = $2 }
    }
    END { print best, key[at] (at == 0 || at == n - 1 ? "*" : ""), run }' "$1/runs.csv" -
}

# run_of SWEEP RATE: the folder of the run with that learning rate.
run_of() {
  printf '%s/run-%04d' "$1" "$(awk -F, -v rate="$2" 'NR > 1 && $2 == rate { print $1 }' "$1/runs.csv")"
}

# period_of RUN: ticks per microbatch over the second half of the run.
period_of() {
  awk -F, 'NR > 1 { tick[n++] = $1 }
    END { h = int(n / 2); printf "%.2f\n", (tick[n - 1] - tick[h]) / (n - 1 - h) }' \
    "$1/last_stage_loss.csv"
}

delays() {
  say "Delay of PipeDream's reads, S = 2..40 ($pipewright plan)"
  local stages measured
  echo "stages,mean,10th percentile,max,floor(S^2 - S/2)" >"$out/delays.csv"
  for stages in $(seq 2 40); do
    measured=$("$pipewright" plan --schedule pipedream --stages "$stages" \
      --microbatches $((10 * stages)) --format csv | awk -f "$here/delays.awk")
    echo "$stages,$measured,$(((2 * stages * stages - stages) / 2))" >>"$out/delays.csv"
  done
  plot delays "$out/delays.csv" --series max --series 'floor(S^2 - S/2)' --series mean \
    --series '10th percentile' --y-label 'delay (block updates)'
  row ""
  row "| S | mean | 10th percentile | max | floor(S² - S/2) |"
  row "|---|---|---|---|---|"
  awk -F, '$1 ~ /^(2|4|8|16|32|40)$/ { printf "| %s | %s | %s | %s | %s |\n", $1, $2, $3, $4, $5 }' \
    "$out/delays.csv" | tee -a "$numbers"
  row ""
  row "$(awk -F, 'NR == FNR { if (FNR > 1) { mean[$1] = $2; tenth[$1] = $3; max[$1] = $4 }; next }
    FNR > 1 && $1 in mean {
      n++
      if (near(mean[$1], $3) && near(tenth[$1], $4) && max[$1] == $5) same++
    }
    function near(a, b) { return a - b < 1e-6 && b - a < 1e-6 }
    END { print same " of " n " rows equal those of the authors (pipedream_delays.csv)" }' \
    "$out/delays.csv" "$golden/pipedream_delays.csv")"
}

rpd() {
  say "PipeDream and RPD on a quadratic, S = 8"
  local delta rate
  run rpd-pipedream quadratic-pipedream
  row ""
  row "| | learning rate | f after 3200 updates | ticks |"
  row "|---|---|---|---|"
  row "| PipeDream | 0.0625 | $(tail -1 "$out/rpd-pipedream/objective.csv" | awk -F, '{ printf "%.5g | %d", $3, $1 }') |"
  for delta in 8 60 180; do
    rate=0.0625
    [ $delta -gt 8 ] || rate=0.125
    run rpd-$delta quadratic-rpd --set optimizer.sgd.learning_rate=$rate --set \
      "schedule={rpd: {stages: 8, updates: 3200, delays: {file: $golden/quadratic_s8_rpd_d${delta}_samples.csv}}}"
    row "| RPD, delta = $delta | $rate | $(tail -1 "$out/rpd-$delta/objective.csv" | awk -F, '{ printf "%.5g | %d", $3, $1 }') |"
  done
  plot rpd-updates "$out/rpd-pipedream" "$out"/rpd-{8,60,180} --x updates --label PipeDream \
    --label 'RPD, δ = 8' --label 'RPD, δ = 60' --label 'RPD, δ = 180'
  plot rpd-ticks "$out/rpd-pipedream" "$out"/rpd-{8,60,180} --label PipeDream \
    --label 'RPD, δ = 8' --label 'RPD, δ = 60' --label 'RPD, δ = 180'
}

# try LABEL NAME JOB RATE [--set ...]: a sweep over learning rates, and the row of its best run at tick $tick,
# which is added to best_runs and its label to best_labels. RATE: the one that the authors used, or "".
try() {
  local label=$1 name=$2 job=$3 rate=$4 best delay=- authors=
  shift 4
  run "$name" "$job" "$@"
  read -r -a best < <(best_at "$out/$name" "$tick" 2)
  case $job in
  *-pipedream) delay=$(awk -f "$here/delays.awk" "${best[2]}/timeline.csv" | awk -F, '{ printf "%.1f, %d", $1, $3 }') ;;
  esac
  if [ -n "$rate" ]; then
    authors=" $(value_at "$(run_of "$out/$name" "$rate")" "$tick") ($rate) |"
  fi
  row "| $label | ${best[0]} (${best[1]}) |$authors $(period_of "${best[2]}") | $delay |"
  best_runs+=("${best[2]}")
  best_labels+=(--label "$label")
}

table() {
  best_runs=() best_labels=()
  row ""
  row "| | f at tick $tick (best learning rate) |${1:-} ticks per microbatch | delay: mean, max |"
  row "|---|---|${1:+---|}---|---|"
}

# compare PROBLEM TICK RATES: those that the authors used for PipeDream and LocalSGD with H = 2, 5, 30.
compare() {
  local problem=$1 tick=$2 local_steps
  shift 2
  table " at the authors' rate |"
  try PipeDream "$problem-pipedream" "$problem-pipedream" "$1"
  for local_steps in 2 5 30; do
    shift
    try "LocalSGD, H = $local_steps" "$problem-local-sgd-$local_steps" "$problem-local-sgd" "$1" \
      --set schedule.local_sgd.local_steps=$local_steps
  done
  plot "$problem" "${best_runs[@]}" "${best_labels[@]}" --log-y
}

nesterov() {
  say "PipeDream and LocalSGD on Nesterov's quadratic, R = S = 16"
  compare nesterov 1229 0.00390625 0.03125 0.03125 0.00390625
}

logistic() {
  say "PipeDream and LocalSGD on logistic regression, R = S = 16"
  compare logistic 829 0.03125 0.5 0.5 0.25
}

scaling() {
  say "Logistic regression in the time that PipeDream takes for 300 microbatches, S = 2..32"
  local stages directory rate
  run scaling-pipedream scaling-pipedream
  echo "stages,method,rate,value" >"$out/scaling-all.csv"
  awk -F, 'NR > 1 { print $2 ",pipedream," $3 "," $6 }' "$out/scaling-pipedream/runs.csv" >>"$out/scaling-all.csv"
  for stages in 2 4 8 16 32; do
    directory=$out/scaling-local-sgd-$stages
    run "scaling-local-sgd-$stages" scaling-local-sgd --set schedule.local_sgd.stages="$stages" \
      --set schedule.local_sgd.replicas="$stages"
    for rate in "$directory"/run-*/; do
      awk -F, -v tick=$((2 * (300 + stages - 1))) -v stages="$stages" -v number="${rate: -5:4}" '
        NR == FNR { if ($1 == number + 0) rate = $2; next }
        FNR > 1 && $1 <= tick { value = $3 }
        END { print stages ",local_sgd_h5," rate "," value }' "$directory/runs.csv" "$rate/objective.csv"
    done >>"$out/scaling-all.csv"
  done
  # The best of each S and method, side by side.
  awk -F, 'BEGIN { print "stages,PipeDream,LocalSGD H = 5" }
    NR > 1 && $4 !~ /nan|inf|^$/ && (!(($1, $2) in best) || $4 + 0 < best[$1, $2] + 0) {
      best[$1, $2] = $4; rate[$1, $2] = $3 }
    END { for (s = 2; s <= 32; s *= 2) print s "," best[s, "pipedream"] "," best[s, "local_sgd_h5"]
          for (s = 2; s <= 32; s *= 2)
            printf "| %d | %.5g (%s) | %.5g (%s) |\n", s, best[s, "pipedream"], rate[s, "pipedream"],
              best[s, "local_sgd_h5"], rate[s, "local_sgd_h5"] >"/dev/stderr" }' \
    "$out/scaling-all.csv" >"$out/scaling.csv" 2>"$out/scaling.rows"
  row ""
  row "| S | PipeDream: f (learning rate) | LocalSGD, H = 5: f (learning rate) |"
  row "|---|---|---|"
  row "$(cat "$out/scaling.rows")"
  row ""
  row "$(awk -F, 'NR == FNR { if (FNR > 1) value[$1 "," $2 "," $3 + 0] = $4; next }
    FNR > 1 {
      n++
      d = value[$1 "," $2 "," $3 + 0] / $4 - 1
      if (d < 0) d = -d
      if (d > worst) worst = d
    }
    END { printf "%d runs, largest relative difference from the authors: %.1e (logistic_fixed_time_scaling.csv)", n, worst }' \
    "$out/scaling-all.csv" "$golden/logistic_fixed_time_scaling.csv")"
  plot scaling "$out/scaling.csv" --log-x --y-label 'objective f(w) at the last tick'
}

# With c ticks per hop, a cap of S + (S-1) c microbatches in flight hides the latency again.
latency() {
  local problem tick c local_steps
  for problem in nesterov:1229 logistic:829; do
    tick=${problem#*:} problem=${problem%:*}
    for c in 1 4; do
      say "Latency of $c ticks per hop, sync charged as a ring: $problem"
      table
      try "PipeDream, cap 16" "$problem-c$c-pipedream" "$problem-pipedream" "" --set link.latency=$c
      try "PipeDream, cap $((16 + 15 * c))" "$problem-c$c-pipedream-wide" "$problem-pipedream" "" \
        --set link.latency=$c --set schedule.pipedream.in_flight_max=$((16 + 15 * c))
      for local_steps in 2 5 30; do
        try "LocalSGD, H = $local_steps" "$problem-c$c-local-sgd-$local_steps" "$problem-local-sgd" "" \
          --set schedule.local_sgd.local_steps=$local_steps --set link.latency=$c \
          --set schedule.local_sgd.sync=ring
      done
      plot "$problem-latency-$c" "${best_runs[@]}" "${best_labels[@]}" --x-max "$tick" --log-y
    done
  done
}

# How many microbatches to have in flight: a cap of S keeps the staleness low and lets the latency cost time, a
# larger one hides the latency and pays in staleness.
caps() {
  say "Nesterov's quadratic at tick 1229 by in-flight cap and latency, best learning rate"
  local cap c best line
  row ""
  row "| cap | c = 0 | c = 1 | c = 4 |"
  row "|---|---|---|---|"
  echo "cap,c = 0,c = 1,c = 4" >"$out/caps.csv"
  for cap in 8 16 24 31 46 61 76 91; do
    line="| $cap |"
    printf '%s' "$cap" >>"$out/caps.csv"
    for c in 0 1 4; do
      run "caps-$cap-c$c" nesterov-pipedream --set schedule.pipedream.in_flight_max=$cap \
        --set link.latency=$c --set 'sweep={optimizer.sgd.learning_rate: {log2: [-11, -6]}}'
      read -r -a best < <(best_at "$out/caps-$cap-c$c" 1229 2)
      line+=" ${best[0]} (${best[1]}) |"
      printf ',%s' "${best[0]}" >>"$out/caps.csv"
    done
    echo >>"$out/caps.csv"
    row "$line"
  done
  plot caps "$out/caps.csv" --log-y --x-label 'in-flight cap (microbatches)' \
    --y-label 'objective f(w) at tick 1229'
}

language() {
  say "PipeDream and LocalSGD on a character language model, R = S = 4"
  local tick=4000 series=validation local_steps microbatches set
  [ -f "$root/../shared/data/tinyshakespeare.txt" ] || fail "../shared/data/tinyshakespeare.txt is not there"
  best_runs=() best_labels=()
  row ""
  row "| | validation loss at tick $tick (best learning rate) | four more seeds: mean, least to largest | microbatches by then | ticks per microbatch |"
  row "|---|---|---|---|---|"
  language_row PipeDream language-pipedream language-pipedream
  for local_steps in 1:1200 4:1700; do
    microbatches=${local_steps#*:} local_steps=${local_steps%:*}
    language_row "LocalSGD, H = $local_steps" "language-local-sgd-$local_steps" language-local-sgd \
      --set "schedule.local_sgd.local_steps=$local_steps" \
      --set "schedule.local_sgd.microbatches=$microbatches"
  done
  plot language "${best_runs[@]}" "${best_labels[@]}" --series validation --x-max "$tick"
  plot language-microbatches "${best_runs[@]}" "${best_labels[@]}" --series validation --x microbatches
}

# language_row LABEL NAME JOB [--set ...]: the best run of the sweep at $tick, and its learning rate under other seeds.
language_row() {
  local label=$1 name=$2 job=$3 best others run
  shift 3
  run "$name" "$job" "$@"
  read -r -a best < <(best_at "$out/$name" "$tick" 2)
  run "$name-seeds" "$job" "$@" --set "sweep={optimizer.sgd.learning_rate: [${best[1]%\*}]}" --set seed=1 --set repeats=4
  others=$(for run in "$out/$name-seeds"/run-*; do value_at "$run" "$tick"; done | sort -g |
    awk '{ value[n++] = $1; sum += $1 } END { printf "%.4f, %.4f to %.4f", sum / n, value[0], value[n - 1] }')
  row "| $label | ${best[0]} (${best[1]}) | $others | $(awk -F, -v tick="$tick" 'NR > 1 && $1 <= tick { n++ } END { print n }' \
    "${best[2]}/last_stage_loss.csv") | $(period_of "${best[2]}") |"
  best_runs+=("${best[2]}")
  best_labels+=(--label "$label")
}

for experiment in "${experiments[@]}"; do
  case $experiment in
  delays | rpd | nesterov | logistic | scaling | latency | caps | language) ;;
  *) fail "no experiment '$experiment'; there are: delays rpd nesterov logistic scaling latency caps language" ;;
  esac
  numbers=$out/numbers-$experiment.md
  : >"$numbers"
  "$experiment"
done
say "Figures and tables (numbers-*.md) are in $out"
