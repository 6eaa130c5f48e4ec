#!/bin/bash
# Everything about kinds of memory on two GPUs of one host, in a limited time: the GPU tests of
# memory, host_gather, diagnosis, contiguity and allocators, two GPUs side by side.
#
#   tests/gpu/survey_memory.sh FOLDER OUT
#
# FOLDER   what `make portable` has made
# OUT      an empty folder for what each test printed
set -u

[ $# -eq 2 ] || {
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
    exit 2
}
folder=$(cd "$1" && pwd)
out=$(cd "$2" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
export REACH_TEST_BUILD=$folder CUDA_DEVICE_ORDER=PCI_BUS_ID PYTHONDONTWRITEBYTECODE=1

lane() # GPU, test...
{
    local gpu=$1
    shift
    for t in "$@"; do
        CUDA_VISIBLE_DEVICES=$gpu REACH_GATHER_JSON=$out/host_gather.json timeout -k 5 150 \
            "$here/test_$t.py" >"$out/$t-gpu$gpu.txt" 2>"$out/$t-gpu$gpu.err"
        echo "$t on GPU $gpu: exit status $?, ${SECONDS} s" >>"$out/lanes.txt"
    done
}

nvidia-smi >"$out/nvidia-smi.txt" 2>&1
lane 0,1 memory
lane 0 host_gather contiguity &
lane 1 diagnose alloc &
wait
for f in "$out"/*.txt; do
    case $f in *nvidia-smi*) continue ;; esac
    echo "== ${f##*/}"
    grep -E "^not ok|^# |exit status" "$f" | cut -c 1-160 | tail -n 24
done
