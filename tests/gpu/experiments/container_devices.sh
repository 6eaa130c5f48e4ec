#!/bin/bash
# For docs/kubernetes.md.
#
# Takes the devices from a running reachd as a container loses them, gives them back, and measures under the memory limits of
# a container. It changes only its own mount namespace and its own cgroup. It needs root, cgroup v2, curl and python3.
#
#   tests/gpu/experiments/container_devices.sh FOLDER OUT
#
# FOLDER   the folder that `make portable` has made, or build/release
# OUT      an empty folder for the results
if [ $# -ne 2 ] || [ ! -x "$1/reachd" ]; then
    sed -n '3,/^[^#]/s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
if [ -z "$REACH_INSIDE" ]; then
    exec env REACH_INSIDE=1 unshare --mount --propagation private -- "$0" "$@"
fi
set -u
folder=$(cd "$1" && pwd)
out=$(cd "$2" && pwd)
socket=$out/reachd.sock
export REACHD_CONFIG=none PATH=$folder:$PATH
exec > >(tee "$out/container_devices.txt") 2>&1

ask() { curl -s --max-time 10 --noproxy '*' --unix-socket "$socket" "http://localhost$1"; }

# Waits until the first GPU has the state $1; prints the state, its error and the seconds.
await()
{
    local begin=$SECONDS state
    while state=$(ask /v1/gpus | python3 -c 'import json, sys
gpu = json.load(sys.stdin)["gpus"][0]
error = gpu["last_error"] or {"text": "no error"}
print(gpu["state"], "-", error["text"])'); [ "${state%% *}" != "$1" ] && [ $((SECONDS - begin)) -lt "$2" ]; do
        sleep 0.5
    done
    echo "  after $((SECONDS - begin)) s: $state; /readyz $(ask /readyz | head -c 60)"
}

echo "== a daemon with its devices"
nvidia-smi --query-gpu=name,uuid,driver_version --format=csv,noheader
chown 17322:17322 "$out"
setpriv --reuid=17322 --regid=17322 --clear-groups reachd --listen none --health none --socket "$socket" --state "$out/reachd.db" --no-measure-on-start 2>"$out/reachd.log" &
daemon=$!
until ask /v1/gpus | grep -q '"discovery":"done"'; do kill -0 $daemon || exit 1; sleep 0.2; done
reachctl measure --socket "$socket" --depth quick --wait
await ready 60
for file in /dev/nvidia[0-9]*; do
    echo "  pci:0@${file#/dev/nvidia}: $(ask "/v1/gpus/pci:0@${file#/dev/nvidia}" | head -c 70)"
done
echo "  files of the driver that the daemon has open: $(ls -l /proc/$daemon/fd | grep -c nvidia)"

echo "== the device files are missing"
mkdir "$out/dev" "$out/dev/shm"
mount --bind "$out/dev" /dev
kill -HUP $daemon
await lost 30
umount /dev
echo "  the files are back, no signal:"
await ready 70

echo "== a cgroup forbids the devices, as after systemctl daemon-reload"
group=/sys/fs/cgroup/reach-experiment
mkdir -p $group
python3 - $group <<'P'
# Attaches a BPF program that forbids all devices of major number 195: r2 = major; r0 = 1; if (r2 == 195) r0 = 0; return r0.
import ctypes, os, struct, sys
BPF, PROG_LOAD, PROG_ATTACH, CGROUP_DEVICE, ATTACH_DEVICE = {"x86_64": 321, "aarch64": 280}[os.uname().machine], 5, 8, 15, 6
code = b"".join(struct.pack("<BBhi", *insn) for insn in (
    (0x61, 0x12, 4, 0), (0xb7, 0, 0, 1), (0x55, 2, 1, 195), (0xb7, 0, 0, 0), (0x95, 0, 0, 0)))
program, license = ctypes.create_string_buffer(code), ctypes.create_string_buffer(b"GPL")
libc = ctypes.CDLL(None, use_errno=True)
def bpf(command, *attributes):
    text = ctypes.create_string_buffer(struct.pack(*attributes).ljust(128, b"\0"), 128)
    result = libc.syscall(BPF, command, text, 128)
    if result < 0:
        sys.exit(f"bpf: {os.strerror(ctypes.get_errno())}")
    return result
loaded = bpf(PROG_LOAD, "<IIQQ", CGROUP_DEVICE, len(code) // 8, ctypes.addressof(program), ctypes.addressof(license))
bpf(PROG_ATTACH, "<IIII", os.open(sys.argv[1], os.O_RDONLY), loaded, ATTACH_DEVICE, 0)
P
echo $daemon >$group/cgroup.procs
kill -HUP $daemon
sleep 2
await lost 20
(echo $BASHPID >$group/cgroup.procs && exec python3 -c 'import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
print("  access of /dev/nvidia0:", libc.access(b"/dev/nvidia0", 6), os.strerror(ctypes.get_errno()))')
echo $daemon >/sys/fs/cgroup/cgroup.procs
echo "  the devices are allowed again, SIGHUP:"
kill -HUP $daemon
await ready 30
kill $daemon
wait $daemon
rmdir $group

for limit in 2G 4G; do
    echo "== depth full under memory.max=$limit"
    mkdir -p $group && echo $limit >$group/memory.max || { echo "  no cgroup can be made"; break; }
    (echo $BASHPID >$group/cgroup.procs && exec reachd --measure full --state :memory: --export "$out/full-$limit" >"$out/full-$limit.log" 2>&1)
    python3 - "$out/full-$limit" <<'P'
import glob, json, sys
for path in glob.glob(sys.argv[1] + "/**/*.json", recursive=True):
    for kind in json.load(open(path)).get("memory", []):
        if kind["kind"].startswith("host") or kind["kind"].startswith("managed-h"):
            print("  ", kind["kind"], {name: value for name, value in kind.items() if name.startswith(("region", "reach", "probed"))})
P
    grep -h oom_kill $group/memory.events
    rmdir $group
done
