#!/bin/sh
# An example of a Prolog, which slurmd runs as root before a job: has reachd measure those GPUs of the job
# that have no fingerprint or a stale one. It only queues the measurements, in the background, and always
# exits 0, because a Prolog that fails drains the node.

socket=${REACHD_SOCKET:-/run/reachd/reachd.sock}
gpus=${SLURM_JOB_GPUS:-$CUDA_VISIBLE_DEVICES}

ask()
{
    curl -sf -m 2 --unix-socket "$socket" "$@"
}

if [ "$1" = --queue ]; then
    exec >/dev/null # see below
    for gpu in $(echo "$gpus" | tr ',' ' '); do
        case $(ask "http://localhost/v1/gpus/$gpu" | head -c 65536) in
        *'"state":"unknown"'* | *'"state":"stale"'* | *'"state":"failed"'*)
            ask -H 'Content-Type: application/json' -d '{"depth":"quick"}' \
                "http://localhost/v1/gpus/$gpu/measurements" ;;
        esac
    done
    exit 0
fi
case $gpus in
'' | *[!A-Za-z0-9,._-]*) ;;
*)
    # slurmd kills the process group of a Prolog that has ended. So this waits until the other process has
    # left the group and closed its output.
    : "$(setsid "$0" --queue </dev/null 2>/dev/null &)"
    ;;
esac
exit 0
