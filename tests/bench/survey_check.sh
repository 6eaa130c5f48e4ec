#!/bin/sh
# Measures how long `make check` takes on this machine. For each WAY it makes a clean clone of HEAD, executes .ci/run in
# it, and adds a row to docs/measurements/check.md. It stops at the first failure.
#
#   tests/bench/survey_check.sh WAY...
#
# quiet    the machine unchanged; to publish the number, end all other work first
# busy     beside one busy loop for each processor
# aarch64  `make ARCH=aarch64 check`, whose programs qemu-user runs, the machine unchanged
# quarter  with a quarter of the time of the processors, in a separate control group (needs root)
#
# A WAY may be repeated: tests/bench/survey_check.sh quiet quiet quiet
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
page=$root/docs/measurements/check.md
processors=$(nproc)
folder=$(mktemp -d)
chmod 755 "$folder" # tests run programs as another user
group=
loops=
# shellcheck disable=SC2086 # a list on purpose
trap 'kill $loops 2>/dev/null; rm -rf "$folder"; [ -z "$group" ] || rmdir "$group"' EXIT
trap 'exit 130' INT TERM

# Limits this process and its children to a quarter of the time of the processors.
slow_down()
{
    quota=$((processors * 100000 / 4))
    if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
        echo +cpu >/sys/fs/cgroup/cgroup.subtree_control
        top=/sys/fs/cgroup group=$top/reachd-check-$$
        mkdir -p "$group"
        echo "$quota 100000" >"$group/cpu.max"
    else
        top=/sys/fs/cgroup/cpu group=$top/reachd-check-$$
        mkdir -p "$group"
        echo 100000 >"$group/cpu.cfs_period_us"
        echo "$quota" >"$group/cpu.cfs_quota_us"
    fi
    echo $$ >"$group/cgroup.procs"
}

minutes()
{
    awk -v s="$1" 'BEGIN { printf "%d min %02d s", s / 60, s % 60 }'
}

run() # way
{
    arch=
    case $1 in
    quiet) ;;
    aarch64) arch=ARCH=aarch64 ;;
    busy)
        for _ in $(seq "$processors"); do
            sh -c 'while :; do :; done' &
            loops="$loops $!"
        done
        ;;
    quarter) slow_down ;;
    *)
        sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
        exit 2
        ;;
    esac
    git clone -q "$root" "$folder/clone"
    load=$(cut -d ' ' -f 1 /proc/loadavg)
    begin=$(date +%s)
    status=0
    (cd "$folder/clone" && .ci/run $arch && times >"$folder/times") >"$folder/log" 2>&1 || status=$?
    seconds=$(($(date +%s) - begin))
    [ -z "$group" ] || echo $$ >"$top/cgroup.procs"
    # shellcheck disable=SC2086 # a list on purpose
    [ -z "$loops" ] || kill $loops
    loops=
    if [ $status -ne 0 ]; then
        cp "$folder/log" "$root/build/check.$1.log"
        grep '^failed' "$folder/log" || :
        echo "failed; all of it is in build/check.$1.log"
        exit 1
    fi
    cpu=$(awk -F '[ms ]+' 'NR == 2 { print int($1 * 60 + $2 + $3 * 60 + $4) }' "$folder/times")
    # shellcheck disable=SC2016 # these quote the commit in the page
    printf '| %s | `%s` | %s | %s | %s | %s | %s | %s |\n' "$(date -u +%Y-%m-%d)" "$(git -C "$root" rev-parse --short HEAD)" \
        "$1" "$processors" "$load" "$(minutes $seconds)" "$(minutes "$cpu")" "$(tail -n 1 "$folder/log")" |
        tee -a "$page"
    rm -rf "$folder/clone"
}

mkdir -p "$root/build"
for way in "$@"; do run "$way"; done
