#!/bin/bash
# For docs/caches.md.
#
# Measures the caches of one GPU in three minutes: by reachd at depth full, and by the GPU tests, which find the same
# numbers by other methods.
#
#   tests/gpu/experiments/survey_caches.sh FOLDER OUT
#
# FOLDER   the folder that `make portable` has made
# OUT      an empty folder; results.tar.gz has the files of a folder docs/measurements/visit-caches-...:
#
#   conditions.txt measure.txt    the conditions, and the output of three measurements at depth full
#   full_times.txt                the time of each part of a measurement
#   reachctl-caches.txt           the output of `reachctl caches`
#   divisions.txt                 cache_traces divisions: how the driver divides the array of an SM
#   hierarchy.json                the results of three more measurements
#   hierarchy.txt onchip.txt fit.txt sides.txt   the output of the tests of these names
#   caches.txt                    test_caches.py: the sides by two methods, REACH_RUNS times (50)
#   observations.tar.gz           the raw observations of the last measurement
set -u

. "$(dirname "$0")/lib_survey.sh"
results=$(mktemp -d)
export_folder=$(mktemp -d)
kept=$(mktemp -d)
trap 'rm -rf "$results" "$export_folder" "$kept"' EXIT
export CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES-0}
lanes=

test_of() # name, seconds, REACH_RUNS
{
    mkdir -p "$kept/$1"
    REACH_RUNS=$3 REACH_OUT=$kept/$1 timeout -k 5 "$2" "$tests/test_$1.py" >"$results/$1.txt" 2>&1
    lanes+="$1: exit status $?, after $SECONDS s"$'\n'
}

for run in 1 2 3; do
    "$folder/reachd" --config none --log-level debug --log-rate 0 --measure full \
        --export "$export_folder/$run" >"$results/measure.txt" 2>"$export_folder/log"
    echo "== run $run" >>"$results/full_times.txt"
    grep -h -o 'time of .*' "$export_folder/log" >>"$results/full_times.txt"
    grep '^== gpu' "$results/measure.txt" >>"$results/full_times.txt"
done
cat "$export_folder"/*/*/conditions.txt >"$results/conditions.txt"
tar -C "$export_folder/3" -czf "$results/observations.tar.gz" .
fingerprint=$(echo "$export_folder"/3/*/fingerprint-full.json)
"$folder/reachctl" --url "file:$fingerprint" caches >"$results/reachctl-caches.txt" 2>&1
"$folder/tests/gpu/cache_traces" divisions >"$results/divisions.txt" 2>&1
test_of hierarchy 90 3
test_of onchip 90 3
test_of fit 60 1
test_of sides 60 1
test_of caches 90 "${REACH_RUNS-50}"
cp "$kept/hierarchy/hierarchy.json" "$results" 2>/dev/null
tar -C "$results" -czf "$out/results.tar.gz" .
for f in hierarchy onchip fit sides caches; do
    echo "== $f: $(grep -c '^ok' "$results/$f.txt") ok"
    grep -A6 -E '^not ok' "$results/$f.txt" | cut -c 1-400
done
cat "$results/divisions.txt" "$results/reachctl-caches.txt"
grep '^== gpu' "$results/full_times.txt"
printf '%s' "$lanes"
