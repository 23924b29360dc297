#!/usr/bin/env bash
# A daemon on the login node, which the pools in Slurm's jobs attach to. It runs until it is told to end
# (Ctrl-C): start it in tmux, or with nohup, or as a service.
#
#   daemon.sh [--listen ADDRESS] [--port 7070] [--data-dir DIR] [further options of pipewrightd]
#
# ADDRESS is one that the nodes reach; by default this machine's first. Its token is what keeps others
# out: DIR (default: that of pipewright itself) has to be yours alone. It speaks HTTPS: with the
# certificate that you give (--tls-certificate, --tls-key, --tls-ca), else with one that is made in
# DIR/tls. Jobs read files from the folders that you name (--data-root FOLDER), from no others.

set -euo pipefail
script=daemon.sh
here=$(cd "$(dirname "$0")" && pwd)
. "$here/common.sh"
case ${1:-} in
-h | --help)
  usage "$0"
  exit 0
  ;;
esac
listen= tls=make
data=${PIPEWRIGHT_DATA_DIR:-${XDG_DATA_HOME:-$HOME/.local/share}/pipewright}
options=()
while [ $# -gt 0 ]; do
  case $1 in
  --listen) listen=${2:?--listen needs an address} ;;
  --data-dir) data=${2:?--data-dir needs a folder} ;;
  --allow-plain-http-beyond-loopback)
    tls=none
    options+=("$1")
    shift
    continue
    ;;
  *)
    if [ "$1" = --tls-certificate ]; then tls=given; fi
    options+=("$1" "${2:?$1 needs a value}")
    ;;
  esac
  shift 2
done
[ -n "$listen" ] || listen=$(hostname -I | cut -d ' ' -f 1)
[ -n "$listen" ] || refuse "this machine has no address but loopback: give --listen ADDRESS"
find_programs
mkdir -p "$data"
chmod go-rwx "$data"
if [ $tls = make ]; then
  if [ ! -e "$data/tls/server.pem" ]; then
    make=$here/../tls/make-certificates.sh
    [ -e "$make" ] || refuse "$make is not there: give --tls-certificate FILE --tls-key FILE --tls-ca FILE"
    "$make" "$data/tls" "$listen" "$(hostname)"
  fi
  options+=(--tls-certificate "$data/tls/server.pem" --tls-key "$data/tls/server.key" --tls-ca "$data/tls/ca.pem")
fi
say "pools: pipewright pool start --slurm --data-dir $data --nodes N --ntasks-per-node M"
exec "$bin/pipewrightd" --ranks 0 --listen "$listen" --data-dir "$data" ${options[@]+"${options[@]}"}
