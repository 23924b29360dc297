#!/usr/bin/env bash
# Does an injected latency stand for a real one? One job of four stages, twice:
#   - over two groups of two hosts (network namespaces) with a true link of 5 ms one way between them;
#   - on this machine, with 5 ms injected between the stages 1 and 2.
# Prints both makespans and their ratio; the aim is within 5 % on an idle machine. Needs root (network
# namespaces, /dev/net/tun), Open MPI and a build with benches:
#   bench/real_link.sh [BUILD_DIR=build/release] [MICROBATCHES=200]
set -eu
source_dir=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "${1:-$source_dir/build/release}" && pwd)
microbatches=${2:-200}
delay_us=5000

die() {
  echo "real_link.sh: $*" >&2
  exit 2
}
[ "$(id -u)" = 0 ] || die "needs root: it makes network namespaces and TAP devices"
[ -c /dev/net/tun ] || die "needs /dev/net/tun (modprobe tun)"
for program in ip nsenter unshare mpirun; do
  command -v "$program" >/dev/null || die "needs $program"
done
worker=$build/bin/pipewright-worker
link=$build/bench/bench_delay_link
for program in "$worker" "$link"; do
  [ -x "$program" ] || die "$program is not there: build it first"
done

id=pw$$
dir=$(mktemp -d)
link_pid=
cleanup() {
  [ -z "$link_pid" ] || kill "$link_pid" 2>/dev/null || true
  for name in a b h1 h2 h3 h4; do
    [ -e "/run/netns/$id-$name" ] || continue
    # Only what this script has started lives in there.
    for pid in $(ip netns pids "$id-$name"); do kill -9 "$pid" 2>/dev/null || true; done
    ip netns del "$id-$name"
  done
  rm -rf "$dir"
}
trap cleanup EXIT
trap 'exit 1' INT TERM

# Two sites, each a bridge in a namespace of its own; hosts h1, h2 at a, h3, h4 at b.
for site in a b; do
  ip netns add "$id-$site"
  ip -n "$id-$site" link set lo up
  ip -n "$id-$site" link add br0 type bridge forward_delay 0
  ip -n "$id-$site" link set br0 up
done
echo "127.0.0.1 localhost" >"$dir/hosts"
for i in 1 2 3 4; do
  site=a
  [ "$i" -le 2 ] || site=b
  ip netns add "$id-h$i"
  ip -n "$id-h$i" link set lo up
  ip -n "$id-$site" link add "v$i" type veth peer name eth0 netns "$id-h$i"
  ip -n "$id-$site" link set "v$i" master br0 up
  ip -n "$id-h$i" addr add "10.78.0.$i/24" dev eth0
  ip -n "$id-h$i" link set eth0 up
  echo "10.78.0.$i h$i" >>"$dir/hosts"
  echo "h$i slots=1" >>"$dir/hostfile"
done
"$link" "$id-a" wan0 "$id-b" wan0 "$delay_us" >"$dir/link.log" &
link_pid=$!
for _ in $(seq 100); do
  grep -q up "$dir/link.log" && break
  kill -0 "$link_pid" 2>/dev/null || die "the delayed link did not come up"
  sleep 0.05
done
for site in a b; do ip -n "$id-$site" link set wan0 master br0 up; done

# Runs a command on a host: with its network, name and /etc/hosts, as Open MPI's launch agent.
cat >"$dir/on" <<AGENT
#!/bin/sh
host=\$1
shift
exec nsenter --net="/run/netns/$id-\$host" unshare --uts --mount sh -c '
  hostname "\$0"; mount --bind "$dir/hosts" /etc/hosts; mount -t tmpfs tmpfs /dev/shm
  exec sh -c "\$*"' "\$host" "\$@"
AGENT
chmod +x "$dir/on"
! command -v ping >/dev/null || echo "true link: $("$dir/on" h1 ping -q -c 20 -i 0.05 h3 | tail -1)"

job() { # LINK
  cat <<YAML
name: real link
objective:
  quadratic: {generate: {kind: random, examples: 400, parameters: 256}, batch_size: 16}
schedule:
  pipedream: {stages: 4, microbatches: $microbatches, order: strict}
optimizer: {sgd: {learning_rate: 0.001}}
cost: {forward: 2ms, backward: 4ms}
link: $1
clock: real
observe: {objective: {never: {}}}
YAML
}
job '{latency: 0}' >"$dir/real.yaml"
job '{latency: 0, overrides: [{from: 1, to: 2, latency: 5ms}, {from: 2, to: 1, latency: 5ms}]}' \
  >"$dir/injected.yaml"

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1
export OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_pml=ob1
OMPI_MCA_btl=tcp,self OMPI_MCA_btl_tcp_if_include=eth0 OMPI_MCA_oob_tcp_if_include=eth0 \
OMPI_MCA_plm_rsh_agent=$dir/on \
  "$dir/on" h1 mpirun --hostfile "$dir/hostfile" -n 4 "$worker" --run "$dir/real.yaml" --out "$dir/real"
OMPI_MCA_btl=vader,self OMPI_MCA_oob_tcp_if_include=lo \
  mpirun --oversubscribe -n 4 "$worker" --run "$dir/injected.yaml" --out "$dir/injected"

makespan() { sed -n 's/^ *"makespan_ticks": *\([0-9]*\).*/\1/p' "$dir/$1/summary.json" | head -1; }
planned() { sed -n 's/.*"planned_makespan_ticks": *\([0-9]*\).*/\1/p' "$dir/$1/summary.json" | head -1; }
# From the end of each F on stage 1 to the start of the same on stage 2.
hop() {
  awk -F, '$2 == "F" && $1 == 1 { end[$3] = $6 } $2 == "F" && $1 == 2 { print $5 - end[$3] }' \
    "$dir/$1/timeline.csv" | sort -n |
    awk '{ at[NR] = $1 / 1e6 } END { printf "min %.3f, median %.3f ms", at[1], at[int((NR + 1) / 2)] }'
}
echo "F from stage 1 to stage 2, true link: $(hop real); injected: $(hop injected)"
awk -v real="$(makespan real)" -v injected="$(makespan injected)" -v plan="$(planned injected)" 'BEGIN {
  printf "makespan over the true link %.1f ms, with 5 ms injected %.1f ms (planned %.1f ms)\n",
         real / 1e6, injected / 1e6, plan / 1e6
  ratio = injected / real
  printf "injected / true = %.4f: %s\n", ratio, (ratio > 0.95 && ratio < 1.05) ? "within 5 %" : "NOT within 5 %"
}'
