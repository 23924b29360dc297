#!/usr/bin/env bash
# A CA of your own and a certificate of it for a daemon, where no other CA is at hand.
#
#   make-certificates.sh [--group GROUP] FOLDER [NAME ...]
#
# --group: the daemon's group, which may then read the folder and the daemon's key (0750, 0640), but
# not ca.key; without it all is for the caller alone. Give it again when you renew the certificate.
# NAME: a host name or an IP address by which clients and pools reach the daemon; by default this
# machine's. localhost and loopback are always among them. In FOLDER (made, mode 0700) come to be:
#   ca.pem                   what clients and pools trust: --tls-ca; may be given to everybody
#   ca.key                   makes further certificates; keep it to yourself
#   server.pem, server.key   for the daemon: --tls-certificate, --tls-key
# Called again it keeps the CA and makes a new certificate (SIGHUP tells the daemon to read it). The
# certificate is valid for 397 days, the CA for ten years.

set -euo pipefail
say() { printf 'make-certificates.sh: %s\n' "$*" >&2; }
case ${1:-} in
'' | -h | --help)
  sed -n '/^# /,/^$/{s/^# \{0,1\}//p}' "$0"
  [ -n "${1:-}" ] && exit 0 || exit 2
  ;;
esac
command -v openssl >/dev/null || {
  say "there is no openssl here (Debian: openssl)"
  exit 2
}
group=
if [ "$1" = --group ]; then
  [ $# -ge 3 ] || {
    say "--group wants a group and then a folder"
    exit 2
  }
  group=$2
  shift 2
fi
folder=$1
shift
if [ $# -eq 0 ]; then
  # shellcheck disable=SC2046
  set -- "$(hostname)" $(hostname -I 2>/dev/null || true)
fi
names=DNS:localhost,IP:127.0.0.1,IP:::1
for name in "$@"; do
  kind=DNS
  if [[ $name =~ ^[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+$ || $name == *:* ]]; then kind=IP; fi
  names+=,$kind:$name
done

umask 077
mkdir -p "$folder"
cd "$folder"
log=$(mktemp)
trap 'rm -f "$log" server.csr server.ext server.pem.new server.key.new' EXIT
quietly() {
  "$@" >"$log" 2>&1 || {
    cat "$log" >&2
    say "$1 has failed"
    exit 1
  }
}
key=(-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes)
if [ ! -e ca.pem ]; then
  quietly openssl req -x509 "${key[@]}" -days 3650 -subj "/CN=Pipewright CA of $(hostname)" \
    -keyout ca.key -out ca.pem
  chmod 644 ca.pem
fi
printf 'subjectAltName=%s\nextendedKeyUsage=serverAuth\nbasicConstraints=CA:FALSE\n' "$names" >server.ext
quietly openssl req "${key[@]}" -subj "/CN=pipewrightd" -keyout server.key.new -out server.csr
quietly openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 397 \
  -extfile server.ext -out server.pem.new
if [ -n "$group" ]; then
  quietly chgrp "$group" . server.key.new server.pem.new
  chmod 750 .
  chmod 640 server.key.new server.pem.new
fi
mv server.key.new server.key
mv server.pem.new server.pem
say "$PWD: server.pem is for $names until $(openssl x509 -in server.pem -noout -enddate | cut -d = -f 2)"
