#!/bin/sh
# An example of a Prolog, which slurmd runs as root before a job. It queues measurements of those GPUs of
# the job that have no fingerprint or a stale one. It works in the background and always exits with 0,
# because a Prolog that fails drains the node. Failures go to the system log.
#
# Slurm counts the GPUs that the driver shows by PCI address (pci:N in reachd) if it finds them by NVML.

socket=${REACHD_SOCKET:-/run/reachd/reachd.sock}
gpus=${SLURM_JOB_GPUS:-${CUDA_VISIBLE_DEVICES:-$GPU_DEVICE_ORDINAL}}

ask()
{
    curl -s -m 2 --unix-socket "$socket" "$@"
}

say()
{
    logger -t reachd-prolog -- "$*" 2>/dev/null
}

if [ "$1" = --queue ]; then
    exec >/dev/null # see below
    for gpu in $(echo "$gpus" | tr ',' ' '); do
        case $gpu in
        -*) say "GPUs $gpus: $gpu names no GPU, and CUDA shows none behind it"; break ;;
        *[!0-9]*) ;;
        *) gpu=pci:$gpu ;;
        esac
        case $(ask "http://localhost/v1/gpus/$gpu" | head -c 65536) in
        *'"state":"unknown"'* | *'"state":"stale"'* | *'"state":"failed"'*)
            ask -H 'Content-Type: application/json' -d '{"depth":"quick"}' \
                "http://localhost/v1/gpus/$gpu/measurements" ;;
        *'"state":'*) ;;
        *) say "GPUs $gpus: reachd at $socket knows no GPU $gpu" ;;
        esac
    done
    exit 0
fi
case $gpus in
'') say "no list of GPUs: SLURM_JOB_GPUS, CUDA_VISIBLE_DEVICES and GPU_DEVICE_ORDINAL are empty" ;;
*[!A-Za-z0-9,._-]*) say "a list of GPUs that cannot be read: $gpus" ;;
*)
    # slurmd kills the process group of a Prolog that has ended. This waits until the other process has left
    # the group and closed its output.
    : "$(setsid "$0" --queue </dev/null 2>/dev/null &)"
    ;;
esac
exit 0
