# Packages of Debian 12 that Pipewright is made of, and how to install those that are missing. To be
# sourced by the scripts that a user starts; nothing here asks a question.

# What building the programs and running a cluster on one machine takes.
build_packages=(
  g++ cmake ninja-build ccache git pkg-config
  libopenmpi-dev openmpi-bin
  libboost1.74-dev
  libprotobuf-dev protobuf-compiler
  libeigen3-dev librandom123-dev
  libsqlite3-dev libssl-dev libyaml-cpp-dev
  libcli11-dev libspdlog-dev prometheus-cpp-dev
)

# What tests and benchmarks take on top of that.
test_packages=(
  libgtest-dev libgmock-dev libbenchmark-dev clang-format
  slurmctld slurmd slurm-client munge iproute2 prometheus
  chromium fonts-dejavu-core
  groff-base zsh
)

# What `pipewright plot` runs, if it is used.
figure_packages=(gnuplot-nox)

say() { printf '\n== %s\n' "$*"; }

fail() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

# Those of the arguments that are not installed.
missing_packages() {
  local package
  for package; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] ||
      printf '%s\n' "$package"
  done
}

# Runs a command as root, without ever waiting for an answer unless a person is there to give it.
as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  elif [ -t 0 ]; then
    sudo "$@"
  else
    sudo -n "$@"
  fi
}

apt_get() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -o Dpkg::Use-Pty=0 \
    -o DPkg::Lock::Timeout=120 "$@" </dev/null
}

install_packages() {
  if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    fail "this script installs packages with apt-get, which is not here (it is made for Debian 12)." \
      "Install what matches these packages and build with cmake --preset release: $*"
  fi
  local missing
  mapfile -t missing < <(missing_packages "$@")
  if [ ${#missing[@]} -eq 0 ]; then
    say "Packages: all $# are there"
    return
  fi
  say "Packages: installing ${missing[*]}"
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null ||
      fail "installing packages takes root and there is no sudo: run this as root, or have" \
        "somebody run: apt-get install ${missing[*]}"
    [ -t 0 ] || sudo -n true 2>/dev/null ||
      fail "sudo wants a password and nobody is there to give it: run this on a terminal, or have" \
        "somebody run: sudo apt-get install ${missing[*]}"
  fi
  # The lists may be absent, or so old that what they name has gone from the mirror.
  if apt-get install --simulate --no-install-recommends "${missing[@]}" >/dev/null 2>&1 &&
    apt_get install --yes --no-install-recommends "${missing[@]}"; then
    return
  fi
  say "Packages: fetching the lists first"
  apt_get update || fail "apt-get update failed: is there a network?"
  apt_get install --yes --no-install-recommends "${missing[@]}" ||
    fail "apt-get could not install: ${missing[*]} (they are Debian 12's names)"
}

# install_page_packages ROOT: what the web page is built from. Node and npm come from the distribution
# only where there are none; their packages are those of client/web/package-lock.json.
install_page_packages() {
  local node=()
  command -v node >/dev/null || node+=(nodejs)
  command -v npm >/dev/null || node+=(npm)
  if [ ${#node[@]} -gt 0 ]; then install_packages "${node[@]}"; fi
  # npm notes there what it has installed.
  local noted=$1/client/web/node_modules/.package-lock.json
  if [ "$noted" -nt "$1/client/web/package-lock.json" ]; then return; fi
  say "Packages of the web page: npm ci"
  (cd "$1/client/web" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error </dev/null)
}

# prepare_build ROOT: ccache then knows a file again in another build folder; one compiler per core.
prepare_build() {
  export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$1} CCACHE_NOHASHDIR=1
  export CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}
}
