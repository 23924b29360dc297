#!/usr/bin/env bash
# mpirun.sh RANKS PROGRAM [ARGS]: a world of RANKS on this machine, as tests want it: root allowed, more
# ranks than cores, shared memory and loopback only, no second of grace at the end unless asked for.
set -eu
ranks=$1
shift
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_hwloc_base_binding_policy=none
export OMPI_MCA_pml=ob1 OMPI_MCA_btl=vader,self OMPI_MCA_btl_vader_single_copy_mechanism=none
export OMPI_MCA_odls_base_sigkill_timeout=${OMPI_MCA_odls_base_sigkill_timeout:-0} OMPI_MCA_oob_tcp_if_include=lo
exec mpirun --oversubscribe -n "$ranks" "$@"
