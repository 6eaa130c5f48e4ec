#!/bin/sh
# An example of a TaskProlog, for sites without the SPANK plugin: passes what reachd knows about the task's
# GPUs to Slurm for the environment of the task, as the plugin does, some 20 ms slower.
#
# Runs as the user. Connects to $REACHD_URL (http://... or unix:/path), else to the loopback port, which is
# open to every user. Stops at the first answer that takes more than 0.2 s, and never fails a task.

url=${REACHD_URL:-http://127.0.0.1:17322}
visible=$CUDA_VISIBLE_DEVICES
node=${SLURM_STEP_GPUS:-$SLURM_JOB_GPUS}

count()
{
    echo "$1" | tr ',' '\n' | grep -c .
}

# Within a job indices may count from 0: then those of the node are in the same order.
case $visible in
'' | *[!A-Za-z0-9,._-]*) exit 0 ;;
*[!0-9,]*) gpus=$visible ;;
*)
    gpus=${node:-$visible}
    [ "$(count "$gpus")" = "$(count "$visible")" ] || exit 0
    ;;
esac

case $url in
unix:/*) ask() { curl -sf -m 0.2 --noproxy '*' --unix-socket "${url#unix:}" "http://localhost$1"; } ;;
http://*) ask() { curl -sf -m 0.2 --noproxy '*' --max-filesize 65536 "${url%/}$1"; } ;;
*) exit 0 ;;
esac

# Only printable lines that begin with REACH_ become "export NAME_NUMBER=value". The answer is followed by
# curl's exit status: 22 is a 404 or 409, a GPU that was not measured.
number=0
for gpu in $(echo "$gpus" | tr ',' ' '); do
    answer=$({ ask "/v1/gpus/$gpu/environment"; echo "=$?"; } | head -c 65536)
    case $answer in
    *=0) echo "$answer" | LC_ALL=C sed -n "s/^\(REACH_[A-Z_]*\)=\([ -~]*\)\$/export \1_$number=\2/p" ;;
    *=22) ;;
    *) exit 0 ;;
    esac
    number=$((number + 1))
done
exit 0
