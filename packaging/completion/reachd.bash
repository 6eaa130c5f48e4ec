# Completion of reachd for bash. The options are asked of the program itself.
_reachd()
{
    local cur=$2 prev=$3
    case $prev in
    --state | --socket | --token-file | --libcuda | --config | --export | --analyze | --reference)
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
        return
        ;;
    --log-level) set -- error warning info debug ;;
    --log-format) set -- auto text json journal ;;
    --measure | --depth) set -- quick full memory matrix ;;
    --simulate) set -- k80 p100 a100-80g h100-80g h200 ;;
    --listen | --health | --memory-limit | --host-memory-limit | --memory-time-ms | --probe-deadline-ms | --log-rate | --repeat | \
        --max-connections | --request-deadline-ms)
        return
        ;;
    *) mapfile -t COMPREPLY < <(compgen -W "$("$1" --help 2>/dev/null | sed -n 's/^  \(--[a-z-]*\).*/\1/p')" -- "$cur") && return ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "$*" -- "$cur")
} && complete -o filenames -F _reachd reachd
