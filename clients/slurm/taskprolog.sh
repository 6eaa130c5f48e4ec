#!/bin/sh
# An example of a TaskProlog, for sites without the SPANK plugin. Like the plugin, it passes the data of
# reachd about the GPUs of the task to the environment of the task. It takes about 20 ms longer.
#
# It runs as the user and connects to $REACHD_URL (http://... or unix:/path), or to the loopback port, which
# is open to every user. It stops at the first response that takes more than 0.2 s, and never fails a task.
# If a GPU gets no variables, the reason goes to standard error.

url=${REACHD_URL:-http://127.0.0.1:17322}
visible=${CUDA_VISIBLE_DEVICES:-$GPU_DEVICE_ORDINAL}
node=${SLURM_STEP_GPUS:-$SLURM_JOB_GPUS}

say()
{
    echo "reachd taskprolog: $*" >&2
}

# Prints the "detail" of a problem document, which is a sentence.
detail()
{
    sed -n 's/.*"detail":"\(\([^"\\]\|\\.\)*\)".*/\1/p' | sed 's/\\"/"/g'
}

count()
{
    echo "$1" | tr ',' '\n' | grep -c .
}

# CUDA reads the list up to the first entry that names no device.
case ,$visible in
*,-*)
    say "CUDA shows no GPU from the entry below 0 on: $visible"
    visible=$(echo ",$visible" | sed 's/,-.*//; s/^,//')
    ;;
esac

# If a cgroup forbids some device files, CUDA counts the GPUs of the others (pci:N@2,5 in reachd). If it forbids
# none, the indices of the job are in the order of the indices of the node, which Slurm counts by PCI address
# (pci:N) if it finds the GPUs by NVML. CUDA counts by PCI address only with CUDA_DEVICE_ORDER=PCI_BUS_ID.
# Otherwise CUDA counts from the fastest GPU (cuda:N), which reachd can resolve only if all GPUs are alike. For a
# job with one GPU the order does not matter.
files=
forbidden=
for file in "${REACHD_DEV:-/dev}"/nvidia[0-9]*; do
    if [ -r "$file" ] && [ -w "$file" ]; then
        files=$files,${file##*nvidia}
    else
        forbidden=$file
    fi
done
[ -n "$forbidden" ] || files=
files=${files#,}
kind=cuda
[ "$CUDA_DEVICE_ORDER" != PCI_BUS_ID ] || kind=pci
case $visible in
'') exit 0 ;;
*[!A-Za-z0-9,._-]*)
    say "a list of GPUs that cannot be read: $visible"
    exit 0
    ;;
*[!0-9,]*) gpus=$visible ;;
*)
    gpus=${node:-$visible}
    if [ -n "$files" ]; then
        gpus=$visible
        case $files in
        *,*) ;;
        *) kind=pci ;;
        esac
    elif [ "$(count "$gpus")" != "$(count "$visible")" ]; then
        say "CUDA_VISIBLE_DEVICES=$visible of the GPUs $gpus does not say which"
        exit 0
    fi
    [ "$gpus" = "$visible" ] || [ "$(count "$gpus")" != 1 ] || kind=pci
    ;;
esac

case $url in
unix:/*) ask() { curl -s -m 0.2 -w '\n=%{http_code}' --noproxy '*' --unix-socket "${url#unix:}" "http://localhost$1"; } ;;
http://*) ask() { curl -s -m 0.2 -w '\n=%{http_code}' --noproxy '*' --max-filesize 122880 "${url%/}$1"; } ;;
*) exit 0 ;;
esac

# Only printable lines that begin with REACH_ become "export NAME_NUMBER=value". The response is followed by
# its HTTP status: 404 or 409 means that the GPU was not measured or is unknown.
number=0
for gpu in $(echo "$gpus" | tr ',' ' '); do
    case $gpu in
    *[!0-9]*) ;;
    *) gpu=$kind:$gpu${files:+@$files} ;;
    esac
    answer=$(ask "/v1/gpus/$gpu/environment" | head -c 122880)
    case $answer in
    *=200) printf '%s\n' "$answer" | LC_ALL=C sed -n "s/^\(REACH_[A-Z_]*\)=\([ -~]*\)\$/export \1_$number=\2/p" ;;
    *=404 | *=409) say "GPU $gpu: $(echo "$answer" | detail)" ;;
    *) exit 0 ;;
    esac
    number=$((number + 1))
done
exit 0
