#!/bin/sh
# An example of a HealthCheckProgram, which slurmd runs as root from time to time. It drains the node if reachd reports
# a problem of a GPU. It never resumes a node, and never changes the reason of a node that is drained already. If reachd
# does not answer, the node stays as it is, and the system log has one line. slurmd ignores the exit status.

node=${SLURMD_NODENAME:-$(hostname -s)}
report=$(timeout 20 reachctl health 2>&1)
case $? in
0) ;;
1)
    if ! scontrol show node "$node" | grep -q 'State=[A-Z+*]*DRAIN'; then
        scontrol update NodeName="$node" State=DRAIN Reason="reachd: $(printf '%s\n' "$report" | head -n 1)"
    fi
    ;;
*) logger -t reachd-health -- "the state of the GPUs is unknown: $(printf '%s\n' "$report" | head -n 1)" ;;
esac
exit 0
