# Hosts of a cluster on this machine; sourced by cluster.sh, and nothing in it for those who use that.
#
# login and h1..h4 are namespaces with a name, addresses and shared memory of their own, each host on
# two networks: "cluster" (eth0, 10.77.0.x: ranks and Slurm) and "lan" (eth1, 10.77.1.x: to login, where
# clients and daemons are). The ends of the cables are in login, to be cut there:
#
#   ip link set cluster-h2 down
#
# All of it is below one process, the first of a namespace of processes, and of no name anywhere else:
# when that process has gone, however it ended, so have hosts, networks and all that ran there.

# Namespaces of a command and all that it starts.
own_namespaces=(unshare --net --uts --mount --pid --fork --kill-child --mount-proc)

# Why there can be no hosts here; empty when there can.
hosts_refused() {
  local program words
  for program in ip unshare nsenter; do
    command -v $program >/dev/null || {
      echo "$program is not installed (packages iproute2 util-linux)"
      return
    }
  done
  words=$("${own_namespaces[@]}" ip link add name probe type bridge 2>&1) ||
    echo "there can be no networks of our own here: $words"
}

# as_login COMMAND...: runs it on login, where the networks are to be laid, and gives its status. A
# signal to this shell, or its end, ends all.
as_login() {
  local login status=0
  setpriv --pdeathsig KILL "${own_namespaces[@]}" "$@" <&0 &
  login=$!
  trap 'kill -KILL $login 2>/dev/null; wait $login 2>/dev/null; exit 143' INT TERM
  wait $login || status=$?
  return $status
}

hosts='h1 h2 h3 h4'
declare -A holders

# enter_host HOST: the words before a command that is to run there, as the array $enter.
enter_host() { enter=(nsenter --target "${holders[$1]}" --net --uts --mount --); }

# lay_networks FOLDER: the hosts and what joins them.
lay_networks() {
  local folder=$1 network host number
  hostname login
  ip link set lo up
  printf '%s\n' '127.0.0.1 localhost' '10.77.0.254 login' >"$folder/hosts"
  for host in $hosts; do echo "10.77.0.${host#h} $host" >>"$folder/hosts"; done
  mount --bind "$folder/hosts" /etc/hosts
  number=0
  for network in cluster lan; do
    ip link add name $network type bridge forward_delay 0
    ip addr add 10.77.$((number++)).254/24 dev $network
    ip link set $network up
  done
  for host in $hosts; do
    mkfifo "$folder/$host.up"
    setpriv --pdeathsig KILL unshare --net --uts --mount sh -c '
      hostname "$0" && mount -t tmpfs tmpfs /dev/shm && ip link set lo up && echo up >"$1" && exec sleep infinity
      ' "$host" "$folder/$host.up" >/dev/null &
    holders[$host]=$!
    disown
    read -r _ <"$folder/$host.up"
    enter_host "$host"
    number=0
    for network in cluster lan; do
      ip link add name "$network-$host" type veth peer name eth$number netns "${holders[$host]}"
      ip link set "$network-$host" master $network up
      "${enter[@]}" ip addr add "10.77.$number.${host#h}/24" dev eth$number
      "${enter[@]}" ip link set eth$((number++)) up
    done
  done
}
