#!/bin/bash
# For docs/memory-allocation.md.
#
# Measures the kinds of memory on two GPUs of one host in four minutes. After reachd's measurement, it runs the GPU
# tests of memory, advice, host_gather, diagnosis, contiguity and allocators, on both GPUs at the same time.
#
#   tests/gpu/experiments/survey_memory.sh FOLDER OUT
#
# FOLDER   the folder that `make portable` has made
# OUT      an empty folder; results.tar.gz has the export of reachd and the output of each test
set -u

. "$(dirname "$0")/lib_survey.sh"
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT

lane() # GPUs, test...
{
    local gpus=$1
    shift
    for t in "$@"; do
        CUDA_VISIBLE_DEVICES=$gpus REACH_GATHER_JSON=$results/host_gather.json \
            REACH_ALLOC_JSON=$results/fragmented.json timeout -k 5 150 \
            "$tests/test_$t.py" >"$results/$t.txt" 2>&1
        echo "$t on GPU $gpus: exit status $?, after $SECONDS s" >>"$results/lanes.txt"
    done
}

nvidia-smi >"$results/nvidia-smi.txt" 2>&1
"$folder/reachd" --measure quick --measure full --measure memory --export "$results/export" \
    >"$results/measure.txt" 2>&1
echo "measured after $SECONDS s" >>"$results/lanes.txt"
lane 0,1 memory
lane 0 host_gather contiguity &
lane 1 diagnose advice alloc &
wait
tar -C "$results" -czf "$out/results.tar.gz" .
for f in "$results"/*.txt; do
    case $f in *nvidia-smi* | *measure.txt) continue ;; esac
    echo "== ${f##*/}: $(grep -c '^ok' "$f") ok"
    grep -A6 -E '^not ok' "$f" | cut -c 1-300
done
cat "$results/lanes.txt"
