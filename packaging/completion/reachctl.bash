# Completion of reachctl and the scripts over it for bash. Commands and options come from --help.
_reachctl()
{
    local cur=$2 prev=$3 help
    case $prev in
    --socket | --export | --hosts | --file-sd | --ca | --db | --state | --merge | --fingerprint)
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
        return
        ;;
    --dir | --reference)
        mapfile -t COMPREPLY < <(compgen -d -- "$cur")
        return
        ;;
    --depth) mapfile -t COMPREPLY < <(compgen -W 'quick full memory matrix' -- "$cur") && return ;;
    --format) mapfile -t COMPREPLY < <(compgen -W 'table json csv markdown html' -- "$cur") && return ;;
    # Generated from daemon/planner/params.c by make generated: words.
    --access) mapfile -t COMPREPLY < <(compgen -W 'read atomic write' -- "$cur") && return ;;
    --location) mapfile -t COMPREPLY < <(compgen -W 'any device host' -- "$cur") && return ;;
    --kind) mapfile -t COMPREPLY < <(compgen -W 'any device managed-device host-pinned host-virtual managed-host host-registered host-registered-huge host-pageable host-file host-gathered peer' -- "$cur") && return ;;
    --reuse) mapfile -t COMPREPLY < <(compgen -W 'same own' -- "$cur") && return ;;
    # End of the generated part.
    esac
    help=$("$1" --help 2>/dev/null)
    if [[ $cur == -* ]]; then
        help=$(grep -o -- '--[a-z][a-z-]*' <<<"$help" | sort -u)
    elif ((COMP_CWORD == 1)) && [[ ${1##*/} == reachctl ]]; then
        help=$(sed -n 's/^  reachctl \([a-z-]*\).*/\1/p' <<<"$help" | sort -u)
    else
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
        return
    fi
    mapfile -t COMPREPLY < <(compgen -W "$help" -- "$cur")
} && complete -o filenames -F _reachctl reachctl reach-nfd reach-dra reach-hwloc
