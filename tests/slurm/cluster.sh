#!/usr/bin/env bash
# A Slurm of four nodes (8 CPUs each) on this machine, as long as a command runs in it:
#
#   tests/slurm/cluster.sh [--hosts]                   a shell
#   tests/slurm/cluster.sh [--hosts] COMMAND [ARGS]    exits with the command's status
#
# The nodes n1..n4 share this machine's name and network. With --hosts they are h1..h4, each with a
# name and networks of its own, and the command runs on one more, login (hosts.sh).
#
# For root, on a machine without systemd. Everything is in a temporary folder, even munge's key; the
# daemons are children of this script and do not outlive it, however it ends. The command sees the
# folder as SLURM_LAB (run/slurmd-nI.pid, log/) and can use sbatch, srun, scancel ... as they are.
set -euo pipefail
. "$(dirname "$0")/hosts.sh"
has_hosts=false lab=
case ${1:-} in
--hosts)
  has_hosts=true
  shift
  ;;
--on-login)  # of this script itself
  has_hosts=true lab=$2
  shift 2
  ;;
esac

skip() {
  printf '[  SKIPPED ] no Slurm: %s\n' "$*"  # the form of GoogleTest, which ctest looks for
  exit 0
}
fail() {
  printf 'cluster.sh: %s\n' "$*" >&2
  exit 1
}

[ "$(id -u)" -eq 0 ] || skip 'slurmctld and slurmd are started by root alone'
for program in slurmctld slurmd munged sbatch srun setpriv; do
  command -v "$program" >/dev/null ||
    skip "$program is not installed (packages slurmctld slurmd slurm-client munge)"
done

if [ -z "$lab" ]; then
  lab=$(mktemp -d "${TMPDIR:-/tmp}/pipewright-slurm-XXXXXX")
  chmod 755 "$lab"
  mkdir "$lab"/{run,log,state,tmp}
  if $has_hosts; then
    trap 'rm -rf "$lab"' EXIT
    refused=$(hosts_refused)
    [ -z "$refused" ] || skip "$refused"
    status=0
    as_login "$0" --on-login "$lab" "$@" || status=$?
    exit $status
  fi
fi
daemons=()

# start NAME COMMAND: a child that dies with this script, its words in log/NAME.out.
start() {
  local name=$1
  shift
  setpriv --pdeathsig KILL "$@" >"$lab/log/$name.out" 2>&1 </dev/null &
  daemons+=($!)
  echo $! >"$lab/run/$name.pid"
  disown  # or bash tells of its end
}

is_down() {
  local state
  state=$(sed 's/.*) //' "/proc/$1/stat" 2>/dev/null) || return 0
  [ "${state%% *}" = Z ]
}

# wait_until TENTHS COMMAND
wait_until() {
  local left=$1
  shift
  until "$@"; do
    [ $((left--)) -gt 0 ] || return 1
    sleep 0.1
  done
}

no_steps() { [ -z "$(squeue --noheader --states=all --Format=state 2>/dev/null |
  grep -E 'RUNNING|COMPLETING|CONFIGURING|SUSPENDED')" ]; }

take_down() {
  local status=$? pid
  if $has_hosts; then exit "$status"; fi  # and with this process all others
  trap - EXIT INT TERM
  # Jobs first: what they run are children of slurmstepd, which lives without slurmd.
  if [ -n "${SLURM_CONF:-}" ] && scancel --user root --signal KILL --full >/dev/null 2>&1; then
    scancel --user root >/dev/null 2>&1 || true
    wait_until 100 no_steps || true
  fi
  for pid in ${daemons[@]+"${daemons[@]}"}; do kill "$pid" 2>/dev/null || true; done
  for pid in ${daemons[@]+"${daemons[@]}"}; do
    wait_until 50 is_down "$pid" || kill -KILL "$pid" 2>/dev/null || true
  done
  rm -rf "$lab"
  exit "$status"
}
trap take_down EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# A port of this machine on which nobody listens, and five after it.
free_ports() {
  local base i
  while :; do
    base=$((20000 + RANDOM % 12000))
    for i in 0 1 2 3 4 5; do
      if (exec 3<>"/dev/tcp/127.0.0.1/$((base + i))") 2>/dev/null; then continue 2; fi
    done
    echo "$base"
    return
  done
}

if $has_hosts; then
  lay_networks "$lab"
  # Processes have numbers here that others have outside.
  export TMPDIR=$lab/tmp
  nodes=$hosts node_list='h[1-4]' controller='login(10.77.0.254)' device=eth0
else
  host=$(hostname -s)
  getent hosts "$host" >/dev/null || skip "the name of this machine, $host, has no address (/etc/hosts)"
  nodes='n1 n2 n3 n4' node_list='n[1-4]' controller="$host(127.0.0.1)" device=lo
fi

head -c 1024 /dev/urandom >"$lab/munge.key"
chmod 400 "$lab/munge.key"
start munged munged --foreground --force --key-file="$lab/munge.key" --socket="$lab/run/munge.socket" \
  --pid-file="$lab/run/munged-own.pid" --log-file="$lab/log/munged.log" --seed-file="$lab/run/munge.seed"
port=$(free_ports)
{
  cat <<CONF
ClusterName=pipewright-test
SlurmctldHost=$controller
SlurmctldPort=$port
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
# Credentials that end soon let a job be queued again after seconds rather than minutes.
AuthInfo=socket=$lab/run/munge.socket,cred_expire=5
CryptoType=crypto/munge
StateSaveLocation=$lab/state
SlurmdSpoolDir=$lab/spool-%n
SlurmctldPidFile=$lab/run/slurmctld-own.pid
SlurmdPidFile=$lab/run/slurmd-own-%n.pid
SlurmctldLogFile=$lab/log/slurmctld.log
SlurmdLogFile=$lab/log/slurmd-%n.log
# PMIx keeps its sockets below TmpFS: the nodes of one machine must not share it.
TmpFS=$lab/tmp-%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
# Nodes may have more CPUs than this machine.
SlurmdParameters=config_overrides
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0,bf_interval=1
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SlurmdTimeout=60
KillWait=5
MinJobAge=600
CONF
  i=0
  for node in $nodes; do
    mkdir "$lab/spool-$node" "$lab/tmp-$node"
    i=$((i + 1))
    if $has_hosts; then
      place="NodeHostname=$node NodeAddr=10.77.0.$i"
    else
      place="NodeHostname=$host NodeAddr=127.0.0.1"
    fi
    echo "NodeName=$node $place Port=$((port + i)) CPUs=8 State=UNKNOWN"
  done
  echo "PartitionName=all Nodes=$node_list Default=YES MaxTime=INFINITE State=UP"
} >"$lab/slurm.conf"
export SLURM_CONF=$lab/slurm.conf SLURM_LAB=$lab

wait_until 100 test -S "$lab/run/munge.socket" || {
  cat "$lab"/log/munged.* >&2
  fail 'munged does not come up'
}
start slurmctld slurmctld -D -i
for node in $nodes; do
  if $has_hosts; then enter_host "$node"; else enter=(); fi
  start "slurmd-$node" ${enter[@]+"${enter[@]}"} slurmd -D -N "$node"
done
nodes_ready() { [ "$(sinfo --noheader --Node --states=idle --format=%N 2>/dev/null | wc -l)" -eq 4 ]; }
wait_until 300 nodes_ready || {
  tail -n 20 "$lab"/log/*.log >&2
  fail 'the nodes do not come up'
}

# Ranks: root may run them, more of them than cores, each node's by TCP (n1..n4 share a host name, so
# shared memory would be taken for possible where it is not), on one device.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1
export OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp,self
export OMPI_MCA_btl_tcp_if_include=$device OMPI_MCA_oob_tcp_if_include=$device
if [ $# -eq 0 ]; then set -- bash; fi
"$@"
