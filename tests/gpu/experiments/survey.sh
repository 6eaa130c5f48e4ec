#!/bin/bash
# For docs/methods.md.
#
# Measures and tests a machine with GPUs in a limited time, and writes the results to at most eight files.
#
#   tests/gpu/experiments/survey.sh FOLDER OUT [SECONDS]
#
# FOLDER   the folder that `make portable` has made, or build/release
# OUT      an empty folder for the results
# SECONDS  the time limit; steps that do not fit are left out; default 540
#
# Steps and their files, the most important first. GPUs are measured in parallel if a step permits it.
#   measure    reachd --measure quick, full and matrix, exported      export.tar.gz measure.txt
#   example    a daemon, reachctl measure, random_read            random_read.txt random_read.json daemon.txt
#   bench      the targets of tests/bench                             bench.txt
#   check-gpu  the GPU tests (REACH_RUNS, REACH_LOAD_RUNS: how often)   check-gpu.txt
#   summary    a table of all results, printed last                   summary.txt
#
# REACH_SIMULATE=h200 tests the script itself without a GPU. REACH_STEPS names the steps to run.
set -u

. "$(dirname "$0")/lib_survey.sh"
limit=${3:-540}
steps=" ${REACH_STEPS:-measure example bench check-gpu} "
tmp=$(mktemp -d) || exit 2
daemon=
simulate=()
[ -z "${REACH_SIMULATE-}" ] || simulate=(--simulate "$REACH_SIMULATE")

SUMMARY_SECONDS=10 # reserved for the summary

left()
{
    local n=$((limit - SECONDS - SUMMARY_SECONDS))
    echo $((n > 1 ? n : 1))
}

wants()
{
    [[ $steps == *" $1 "* ]]
}

# Runs a command for at most $1 seconds, or for the remaining time if that is less.
within()
{
    local most=$1 rest
    shift
    rest=$(left)
    timeout -k 5 $((most < rest ? most : rest)) "$@"
}

finish()
{
    if [ -n "$daemon" ]; then
        kill "$daemon" 2>/dev/null
        wait "$daemon" 2>/dev/null
    fi
    rm -rf "$tmp"
}
trap finish EXIT

say()
{
    printf '%4d s  %s\n' $SECONDS "$*"
}

measure()
{
    say 'measuring at depths quick, full and matrix'
    within 240 "$folder/reachd" "${simulate[@]}" --measure quick --measure full --measure matrix \
        --export "$tmp/export" >"$out/measure.txt" 2>&1
    echo "exit status $?" >>"$out/measure.txt"
}

start_daemon()
{
    "$folder/reachd" "${simulate[@]}" --listen 127.0.0.1:0 --socket none \
        --state "$tmp/reachd.db" --no-measure-on-start >"$out/daemon.txt" 2>&1 &
    daemon=$!
    for _ in $(seq 100); do
        REACHD_URL=$(sed -n 's|.*serving \(127\.0\.0\.1:[0-9]*\).*|http://\1|p' "$out/daemon.txt")
        [ -z "$REACHD_URL" ] || break
        sleep 0.1
    done
    export REACHD_URL
    if [ -z "$REACHD_URL" ]; then
        say 'the daemon does not serve; daemon.txt says why'
    fi
}

# reachctl waits until the daemon has discovered its GPUs.
gpu_count()
{
    "$folder/reachctl" gpus --json |
        python3 -c 'import json, sys; print(len(json.load(sys.stdin)["gpus"]))' || echo 0
}

# Measures one GPU through the daemon, then runs the example job with the fingerprint.
example_on()
{
    within 120 "$folder/reachctl" measure --gpu "$1" --depth full --wait
    if [ ${#simulate[@]} -gt 0 ]; then
        set -- "$1" --dry-run
    fi
    within 120 "$folder/examples/random_read" --gpu "$@" --json "$tmp/random_read-$1.json"
    echo "exit status $?"
}

example()
{
    local count i jobs=()
    start_daemon
    count=$(gpu_count)
    say "the example on $count GPUs"
    for ((i = 0; i < count; i++)); do
        example_on "$i" >"$tmp/random_read-$i.txt" 2>&1 &
        jobs+=($!)
    done
    [ "$count" -eq 0 ] || wait "${jobs[@]}"
    for ((i = 0; i < count; i++)); do
        printf '== GPU %d\n' "$i"
        cat "$tmp/random_read-$i.txt"
    done >"$out/random_read.txt"
}

bench()
{
    say 'benchmarks'
    within 150 python3 "$tests/../bench/bench.py" >"$out/bench.txt" 2>&1
    echo "exit status $?" >>"$out/bench.txt"
}

check_gpu()
{
    say "the GPU tests, with $(left) s left"
    (
        cd "$tests/../.." || exit 1
        export REACH_KEEP=$out
        within 600 tests/run -j 1 -t "$(left)" tests/gpu/test_*.py
        echo "exit status $?"
    ) >"$out/check-gpu.txt" 2>&1
}

{
    uname -srm
    nvidia-smi --query-gpu=index,name,uuid,driver_version,memory.total,clocks.max.sm,mig.mode.current \
        --format=csv,noheader 2>&1 | head -n 16
} >"$tmp/machine.txt"

if wants measure; then measure; fi
if wants example; then example; fi
if wants bench; then bench; fi
if wants check-gpu; then check_gpu; fi

# Packs the folders that the daemon exported; docs/measurements has folders of this form.
[ ! -d "$tmp/export" ] || tar -C "$tmp/export" -czf "$out/export.tar.gz" .
timeout 30 python3 "$here/lib_survey.py" "$tmp" "$out" >"$out/summary.txt" 2>&1
find "$out" -type f -size +16M -exec echo 'too large to be carried:' {} \;
say 'done'
cat "$out/summary.txt"
