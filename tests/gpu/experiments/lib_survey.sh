# For docs/methods.md.
# lib_survey.sh: the common start of the survey scripts, which source it with their own arguments FOLDER and OUT.
# Without the arguments, or if FOLDER has no reachd, it prints the head of the script as help and exits. It sets the
# absolute paths folder, out, here and tests, and the environment for the programs of the survey.
if [ $# -lt 2 ] || [ ! -x "$1/reachd" ]; then
    sed -n '4,/^set/s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
mkdir -p "$2" || exit 2
folder=$(cd "$1" && pwd)
out=$(cd "$2" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
tests=$(dirname "$here") # the folder of the GPU tests
export REACH_TEST_BUILD=$folder CUDA_DEVICE_ORDER=PCI_BUS_ID PYTHONDONTWRITEBYTECODE=1
