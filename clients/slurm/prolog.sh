#!/bin/sh
# An example of a Prolog, which slurmd runs as root before a job. It queues measurements of those GPUs of
# the job that have no fingerprint or a stale one. It works in the background and always exits with 0,
# because a Prolog that fails drains the node. Failures go to the system log.
#
# Slurm 25.11 and later names the GPUs of a job by UUID. Earlier releases number the device files of gres.conf, or the
# files that AutoDetect finds, in the order of `slurmd -G`. The number in the name of a file /dev/nvidiaN identifies the
# GPU (pci:0@N in reachd). PCI addresses and the orders of NVML and CUDA have no effect. slurmd and scontrol must be in
# the PATH.

socket=${REACHD_SOCKET:-/run/reachd/reachd.sock}
case $CUDA_VISIBLE_DEVICES in
*[!0-9,]*) gpus=$CUDA_VISIBLE_DEVICES ;;
*) gpus=${SLURM_JOB_GPUS:-${CUDA_VISIBLE_DEVICES:-$GPU_DEVICE_ORDINAL}} ;;
esac

ask()
{
    curl -s -m 2 --unix-socket "$socket" "$@"
}

say()
{
    logger -t reachd-prolog -- "$*" 2>/dev/null
}

# Prints the device files of the GPUs in the order of Slurm's numbers. An entry of gres.conf may list several files.
device_files()
{
    slurmd -G ${SLURMD_NODENAME:+-N "$SLURMD_NODENAME"} 2>&1 | sed -n 's/.*Gres Name=gpu .* File=\([^ ]*\).*/\1/p' |
        while read -r list; do scontrol show hostnames "$list"; done
}

if [ "$1" = --queue ]; then
    exec >/dev/null # see below
    files=
    for gpu in $(echo "$gpus" | tr ',' ' '); do
        case $gpu in
        -*) say "GPUs $gpus: $gpu names no GPU, and CUDA shows none behind it"; break ;;
        *[!0-9]*) ;;
        *)
            [ -n "$files" ] || files=$(device_files)
            file=$(echo "$files" | sed -n "$((gpu + 1))p")
            if [ -z "$file" ]; then
                say "GPUs $gpus: slurmd -G lists no device file of GPU $gpu"
                continue
            fi
            gpu=pci:0@${file##*nvidia}
            ;;
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
