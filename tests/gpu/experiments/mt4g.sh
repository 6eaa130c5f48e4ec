#!/bin/bash
# For docs/caches.md.
#
# Builds MT4G (github.com/caps-tum/mt4g, commit below) for NVIDIA GPUs with nvcc alone, and runs it. The tables in docs/caches.md
# compare reachd with it. This repository contains no code of MT4G. tests/gpu/experiments/mt4g_hip replaces the part of HIP that
# MT4G uses.
#
#   tests/gpu/experiments/mt4g.sh build CLONE FOLDER   builds FOLDER/mt4g from CLONE, a git clone of MT4G that has the commit
#   tests/gpu/experiments/mt4g.sh run FOLDER [MOST]    runs each group of benchmarks for at most MOST (60) seconds; FOLDER gets the
#                                                      results and the times
#
# It needs nvcc, and the headers of nlohmann-json and of cxxopts (Debian: nlohmann-json3-dev, libcxxopts-dev). INCLUDE names
# another folder of these headers, ARCH another architecture than sm_90. There are 68 files, and each takes some 15 s to compile.
#
# MT4G destroys the context before each of some thousand launches. `run` leaves that out (MT4G_KEEP). The launches are unchanged,
# and most groups take less than a second.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
commit=4cc55662a9541a40e91909c61d543c524ae04fcb

build() {
    local clone=$1 folder=$2
    mkdir -p "$folder/src" "$folder/obj"
    git -C "$clone" archive "$commit" -- include src | tar -x -C "$folder/src"
    sed "s/\${MT4G_VERSION}/${commit:0:7}/" "$folder/src/include/version.hpp.in" >"$folder/src/include/version.hpp"
    (cd "$folder/src" && find src -name '*.cpp') | xargs -P "$(nproc)" -I{} sh -c \
        'out=$2/obj/$(echo {} | tr / _).o
         [ -e "$out" ] || nvcc -std=c++20 -O2 -arch=$3 -x cu -w -include cstdint -I"$2/src/include" -I"$1/mt4g_hip" ${4:+-I"$4"} \
             -c -o "$out" "$2/src/{}"' sh "$here" "$folder" "${ARCH:-sm_90}" "${INCLUDE:-}"
    nvcc -arch="${ARCH:-sm_90}" -cudart static -Xcompiler -static-libstdc++ -Xcompiler -static-libgcc \
        -Xlinker --wrap=cudaDeviceReset,--wrap=cudaMalloc,--wrap=cudaFree -o "$folder/mt4g" "$folder"/obj/*.o -x cu "$here/mt4g_hip/reset.cc"
}

run() {
    local folder=$1 most=$2 group start
    cd "$folder"
    for group in l1 readonly texture constant shared memory l2; do
        start=$(date +%s.%N)
        MT4G_KEEP=1 timeout "$most" ./mt4g --$group -f "mt4g_$group" >"mt4g_$group.log" 2>&1 && echo "ok $group" || echo "not done: $group"
        echo "$group $(awk "BEGIN{printf \"%.2f\", $(date +%s.%N) - $start}") s $(grep resets "mt4g_$group.log" || true)"
    done
}

case ${1:-} in
build) build "$2" "$3" ;;
run) run "$2" "${3:-60}" ;;
*) sed -n 2,12p "$0" ;;
esac
