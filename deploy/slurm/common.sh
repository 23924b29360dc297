# What the batch scripts share; each of them sources it after it has found this folder as $here.

say() { printf '%s: %s\n' "$script" "$*" >&2; }

# Exit status 2, as of pipewright itself: what was given is at fault.
refuse() {
  say "$*"
  exit 2
}

# The comment at the top of a script, as its help.
usage() { sed -n '/^# /,/^$/{/^#SBATCH/d;s/^# \{0,1\}//p}' "$1"; }

# check_allocation: how many ranks Slurm has given, as $ranks.
check_allocation() {
  ranks=${SLURM_NTASKS:-${SLURM_JOB_NUM_NODES:-}}
  [ -n "$ranks" ] || refuse "Slurm does not say how many tasks it has given (SLURM_NTASKS): give sbatch --ntasks N"
  say "Slurm job $SLURM_JOB_ID, attempt $((${SLURM_RESTART_COUNT:-0} + 1)): $ranks ranks on ${SLURM_JOB_NODELIST:-?}"
}

# find_programs [DIR]: the folder of the programs, as $bin. Installed, in a build tree, beside the
# sources, or on the PATH.
find_programs() {
  local folder
  for folder in "${1:-}" "$here/../../../bin" "$here/../../build/release/bin"; do
    if [ -n "$folder" ] && [ -x "$folder/pipewright-worker" ]; then
      bin=$(cd "$folder" && pwd)
      return
    fi
    if [ -n "${1:-}" ]; then refuse "--bin $1: there is no pipewright-worker"; fi
  done
  folder=$(command -v pipewright-worker) || refuse "pipewright-worker is not found: give --bin DIR"
  bin=$(dirname "$folder")
}

# find_daemon URL TOKEN_FILE DATA_DIR TLS_CA: as $url, $token_file and $tls_ca; what is not given comes
# from the environment and the data folder, as for pipewright itself.
find_daemon() {
  url=$1 token_file=$2 tls_ca=${4:-${PIPEWRIGHT_TLS_CA:-}}
  local data=$3
  if [ -z "$url$data" ]; then
    url=${PIPEWRIGHT_URL:-}
    token_file=${token_file:-${PIPEWRIGHT_TOKEN_FILE:-}}
  fi
  if [ -z "$url" ]; then
    data=${data:-${PIPEWRIGHT_DATA_DIR:-${XDG_DATA_HOME:-$HOME/.local/share}/pipewright}}
    token_file=${token_file:-$data/token}
    url=$(sed -n 's/.*"url": *"\([^"]*\)".*/\1/p' "$data/daemon.json" 2>/dev/null) || true
    tls_ca=${tls_ca:-$(sed -n 's/.*"tls_ca": *"\([^"]*\)".*/\1/p' "$data/daemon.json" 2>/dev/null)} || true
    [ -n "$url" ] || refuse "there is no daemon in $data (no daemon.json): start one, or give --url URL --token-file FILE"
  fi
  [ -r "$token_file" ] || refuse "the token file '$token_file' cannot be read: give --token-file FILE"
}

# launch mpirun|srun TYPE_OF_MPI: the command that starts the ranks, as the array $launcher.
launch() {
  case $1 in
  mpirun)
    command -v mpirun >/dev/null || refuse "there is no mpirun here: load Open MPI, or use srun"
    launcher=(mpirun -n "$ranks")
    # mpirun and its daemons on the nodes find within half a minute that they cannot reach each other
    # (Open MPI's default: 8 minutes), and those end that have lost it.
    export OMPI_MCA_oob_tcp_keepalive_time=${OMPI_MCA_oob_tcp_keepalive_time:-10}
    export OMPI_MCA_oob_tcp_keepalive_intvl=${OMPI_MCA_oob_tcp_keepalive_intvl:-5}
    export OMPI_MCA_oob_tcp_keepalive_probes=${OMPI_MCA_oob_tcp_keepalive_probes:-4}
    ;;
  srun)
    srun --mpi=list 2>&1 | grep -qw -- "${2%%_v*}" ||
      refuse "this Slurm has no MPI plugin '$2' (srun --mpi=list): use mpirun instead"
    launcher=(srun --mpi="$2" --ntasks="$ranks" --export=ALL --kill-on-bad-exit=1)
    ;;
  *) refuse "the launcher is mpirun or srun, not '$1'" ;;
  esac
}

# What the pool is told; with a name of its own at each requeue, for the one before may still count as
# attached.
pool_command() {
  local name=slurm-$SLURM_JOB_ID
  [ "${SLURM_RESTART_COUNT:-0}" -eq 0 ] || name+=-r$SLURM_RESTART_COUNT
  pool=("${launcher[@]}" "$bin/pipewright-worker" --daemon "$url" --token-file "$token_file"
    --name "$name" --expect-ranks "$ranks")
  if [ -n "$tls_ca" ]; then pool+=(--tls-ca "$tls_ca"); fi
  # Asked for by pool.sbatch alone.
  if [ -n "${silence_max:-}" ]; then pool+=(--silence-max "$silence_max"); fi
}

# until_ended PID: waits for it and gives its status; signals to this shell go to `on_signal`.
until_ended() {
  local status
  while :; do
    signalled=false status=0
    wait "$1" || status=$?
    if ! $signalled; then return "$status"; fi
  done
}

# run_pool LAUNCHER TYPE_OF_MPI [options of the batch script]: the whole of a batch script of a pool.
run_pool() {
  local launcher_name=$1 mpi=$2 given_url= given_token= given_data= given_bin= given_ca= silence_max=
  shift 2
  while [ $# -gt 0 ]; do
    case $1 in
    --url) given_url=${2:?--url needs a URL} ;;
    --token-file) given_token=${2:?--token-file needs a file} ;;
    --tls-ca) given_ca=${2:?--tls-ca needs a file} ;;
    --data-dir) given_data=${2:?--data-dir needs a folder} ;;
    --bin) given_bin=${2:?--bin needs a folder} ;;
    --silence-max) silence_max=${2:?--silence-max needs seconds} ;;
    --mpi) mpi=${2:?--mpi needs a type, like pmix} ;;
    *) refuse "'$1' is none of --url, --token-file, --tls-ca, --data-dir, --bin, --silence-max, --mpi" ;;
    esac
    shift 2
  done
  check_allocation
  find_programs "$given_bin"
  find_daemon "$given_url" "$given_token" "$given_data" "$given_ca"
  launch "$launcher_name" "$mpi"
  pool_command
  # Launchers pass SIGUSR1 on to all ranks, which then give back what they run and end with status 0.
  # SIGTERM would make mpirun kill them.
  on_signal() {
    signalled=true told=true
    say "told to end: the pool leaves"
    kill -USR1 "$child" 2>/dev/null || true
  }
  trap on_signal USR1 TERM INT
  # A world that has lost a rank ends; the allocation is still there. One that lives for ten minutes may
  # do so again and again, another a few times, later and later.
  # One that ends at once the first time has never come up.
  local status restarts=0 begun told=false came_up=false
  while :; do
    begun=$SECONDS status=0
    "${pool[@]}" &
    child=$!
    until_ended "$child" || status=$?
    say "the pool has ended with status $status"
    if $told || [ "$status" -eq 0 ] || [ "$status" -eq 2 ]; then break; fi
    if [ $((SECONDS - begun)) -ge 5 ]; then came_up=true; fi
    if ! $came_up; then break; fi
    if [ $((SECONDS - begun)) -gt 600 ]; then restarts=0; fi
    if [ "$restarts" -eq 5 ]; then
      say "it has died $((restarts + 1)) times in a short while: it is not started again"
      break
    fi
    sleep $((1 << restarts)) &
    child=$!
    until_ended "$child" || true
    if $told; then break; fi
    restarts=$((restarts + 1))
    say "the pool is started again"
  done
  if [ "$status" -ne 0 ] && [ "$launcher_name" = srun ]; then
    say "if no rank came up: is '$mpi' what this MPI was built for? srun --mpi=list names the others"
  fi
  exit "$status"
}
