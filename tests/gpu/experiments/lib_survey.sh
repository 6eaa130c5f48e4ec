# For docs/methods.md.
# lib_survey.sh: how each survey begins. Sourced with the survey's own arguments, FOLDER and OUT first:
# without them, or if FOLDER has no reachd, the survey's comment is its help. Sets folder, out, here and
# tests, which are absolute, and what programs below it need.
if [ $# -lt 2 ] || [ ! -x "$1/reachd" ]; then
    sed -n '4,/^set/s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
mkdir -p "$2" || exit 2
folder=$(cd "$1" && pwd)
out=$(cd "$2" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
tests=$(dirname "$here") # of GPUs
export REACH_TEST_BUILD=$folder CUDA_DEVICE_ORDER=PCI_BUS_ID PYTHONDONTWRITEBYTECODE=1
