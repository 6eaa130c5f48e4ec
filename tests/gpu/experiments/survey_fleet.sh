#!/bin/bash
# For docs/fleet.md.
#
# Surveys the GPUs of one machine. It starts one daemon for each GPU, as if each GPU were a node, and reachctl surveys
# the daemons over HTTP. The reports contain the missing SMs of each chip.
#
#   tests/gpu/experiments/survey_fleet.sh FOLDER OUT
#
# FOLDER   the folder that `make portable` has made, or build/release
# OUT      an empty folder for the results: fleet.db (the survey), survey.txt (its reports and a map of every chip),
#          states.tar.gz (a copy of each daemon's database, for a later survey of several machines), daemons.txt (the
#          logs of the daemons)
#
# REACH_SIMULATE='TEXT;TEXT' tests the script itself, with a daemon for each simulated GPU.
set -u

. "$(dirname "$0")/lib_survey.sh"
tmp=$(mktemp -d) || exit 2
pids=() urls=() gpus=()
export REACHD_CONFIG=none
FIRST_PORT=17400

end()
{
    [ ${#pids[@]} -eq 0 ] || kill "${pids[@]}" 2>/dev/null
    wait
    cat "$tmp"/*.log >"$out/daemons.txt" 2>/dev/null
    rm -rf "$tmp"
}
trap end EXIT

if [ -n "${REACH_SIMULATE-}" ]; then
    IFS=';' read -r -a gpus <<<"$REACH_SIMULATE"
else
    mapfile -t gpus < <(nvidia-smi -L | sed -n 's/.*UUID: \(GPU-[^)]*\)).*/\1/p')
fi
[ ${#gpus[@]} -gt 0 ] || { echo "no GPU here" >&2; exit 77; }

for i in "${!gpus[@]}"; do
    url=127.0.0.1:$((FIRST_PORT + 2 * i))
    what=()
    [ -z "${REACH_SIMULATE-}" ] || what=(--simulate "${gpus[$i]}")
    # The loop below requests depth full from all daemons at the same time, because each has its own GPU.
    CUDA_VISIBLE_DEVICES=$([ -n "${REACH_SIMULATE-}" ] && echo "" || echo "${gpus[$i]}") \
        "$folder/reachd" --listen "$url" --socket none --state "$tmp/$i.db" --no-measure-on-start \
        "${what[@]}" 2>"$tmp/$i.log" &
    pids+=($!)
    urls+=("$url")
done

for i in "${!urls[@]}"; do
    (
        for _ in $(seq 300); do
            "$folder/reachctl" --url "http://${urls[$i]}" measure --depth full --wait \
                >"$tmp/$i.measured" 2>&1 && exit 0
            sleep 0.2
        done
        cat "$tmp/$i.measured" >&2
        exit 1
    ) &
    asked[i]=$!
done
for i in "${!urls[@]}"; do
    wait "${asked[$i]}" || echo "the GPU of ${urls[$i]} was not measured" >&2
done

status=0
{
    echo "date: $(date -u +%FT%TZ)"
    "$folder/reachd" --version
    echo "command: tests/gpu/experiments/survey_fleet.sh FOLDER OUT"
    nvidia-smi --query-gpu=name,uuid,serial,driver_version --format=csv 2>/dev/null
    echo
    "$folder/reachctl" survey --db "$out/fleet.db" "${urls[@]}" || status=1
    echo
    "$folder/reachctl" survey report signatures maps hosts --db "$out/fleet.db" || status=1
    for url in "${urls[@]}"; do
        echo
        "$folder/reachctl" --url "http://$url" map || status=1
    done
} >"$out/survey.txt" 2>&1
for i in "${!urls[@]}"; do
    "$folder/reachctl" backup "$tmp/state-$i.db" --state "$tmp/$i.db" >/dev/null || status=1
done
(cd "$tmp" && tar czf "$out/states.tar.gz" state-*.db) || status=1
cat "$out/survey.txt"
exit $status
