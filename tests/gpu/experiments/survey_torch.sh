#!/bin/bash
# For docs/torch.md.
#
# Measures the gain of jobs on one GPU in some five minutes. It measures the GPU, then runs the GPU tests of reach.torch
# (on all GPUs in CUDA_VISIBLE_DEVICES), its table of speeds, the sweep of its shapes, and a model with tables beyond
# the reach. It also runs partitioning, reach-gups, several allocations, and cuCollections if its test was built.
#
#   tests/gpu/experiments/survey_torch.sh FOLDER OUT [WHEEL [STEP...]]
#
# FOLDER   the folder that `make portable` has made
# OUT      an empty folder; results.tar.gz has the export of reachd and the output of each test
# WHEEL    the wheel that `make wheel` has made; without it, or with "-", the package of FOLDER is used
# STEP     the steps to run after the measurement: torch torch_speed torch_sweep dlrm partition gups several cuco.
#          torch_variants (variants of two kernels, 90 s) runs only if it is named
set -u

. "$(dirname "$0")/lib_survey.sh"
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
all_gpus=${CUDA_VISIBLE_DEVICES-0}
export CUDA_VISIBLE_DEVICES=${all_gpus%%,*}
export REACH_CUCO_JSON=$results/cuco.json
wheel=${3:--}
shift $(($# < 3 ? $# : 3))
steps=" ${*:-torch torch_speed torch_sweep dlrm partition gups several cuco} "
if [ "$wheel" != - ]; then
    python3 -m pip install -q --no-index --no-deps --target "$results/site" "$wheel" || exit 1
    export REACH_TEST_PYTHON=$results/site
fi

step() # NAME SECONDS COMMAND...
{
    local name=$1 limit=$2 begin=$SECONDS
    shift 2
    [ "$name" = measure ] || [[ $steps == *" $name "* ]] || return
    timeout -k 5 "$limit" "$@" >"$results/$name.txt" 2>&1
    echo "$name: exit status $?, $((SECONDS - begin)) s" | tee -a "$results/steps.txt"
    # After each step the results are packed again, so that they are complete if the time runs out.
    tar -C "$results" --exclude ./site -czf "$out/results.tar.gz" .
}

nvidia-smi >"$results/nvidia-smi.txt" 2>&1
step measure 60 "$folder/reachd" --measure full --export "$results/export"
fingerprint=$(echo "$results"/export/*/fingerprint-full.json)
export REACHD_URL=file:$fingerprint
step torch 240 env CUDA_VISIBLE_DEVICES="$all_gpus" "$tests/test_torch.py"
step torch_speed 540 "$here/survey_torch_speed.py" "$results"
step torch_sweep 400 "$here/survey_torch_sweep.py" "$results" 330
step torch_variants 110 "$here/survey_torch_variants.py" "$results" 80
step dlrm 300 "$tests/test_dlrm.py" "$results"
for t in partition gups several cuco; do
    step "$t" 150 "$tests/test_$t.py"
done
for t in torch dlrm partition gups several cuco; do
    f=$results/$t.txt
    [ -f "$f" ] || continue
    echo "== $t: $(grep -c '^ok' "$f") ok"
    grep -A6 -E '^not ok' "$f" | cut -c 1-300
done
[ ! -f "$results/dlrm.txt" ] || grep '^#' "$results/dlrm.txt" | tail -n 25
[ ! -f "$results/torch_variants.txt" ] || sed -n '/^copy: /,$p' "$results/torch_variants.txt"
[ ! -f "$results/torch_speed.txt" ] || tail -n 60 "$results/torch_speed.txt"
