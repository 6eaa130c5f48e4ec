# Completion of reach-profile for bash. Options come from --help; after them, the words are a command of their own.
_reach_profile()
{
    local cur=$2 prev=$3 i options
    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        --) _reach_profile_program $((i + 1)) && return ;;
        --seconds | --launches | --skip | --sanitizer | --keep | --report | --fingerprint | --html | --trace | --output)
            ((i++))
            ;;
        -*) ;;
        *) _reach_profile_program "$i" && return ;;
        esac
    done
    case $prev in
    --sanitizer | --fingerprint | --html | --trace | --output) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
    --keep | --report) mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
    --seconds | --launches | --skip) COMPREPLY=() ;;
    *)
        if [[ $cur == -* ]]; then
            options=$("$1" --help 2>/dev/null | grep -o -- '--[a-z][a-z-]*' | sort -u)
            mapfile -t COMPREPLY < <(compgen -W "$options" -- "$cur")
        else
            mapfile -t COMPREPLY < <(compgen -c -- "$cur")
        fi
        ;;
    esac
}

# Completes the program and its arguments, which begin at word $1.
_reach_profile_program()
{
    if ((COMP_CWORD == $1)); then
        mapfile -t COMPREPLY < <(compgen -c -f -- "${COMP_WORDS[COMP_CWORD]}" | sort -u)
    elif declare -F _command_offset >/dev/null; then
        _command_offset "$1"
    else
        mapfile -t COMPREPLY < <(compgen -f -- "${COMP_WORDS[COMP_CWORD]}")
    fi
} && complete -o filenames -F _reach_profile reach-profile
