#compdef reachctl reach-nfd reach-dra reach-hwloc
# Completion of reachctl and the scripts over it for zsh. Commands and options come from --help.
local help
local -a found
case $words[CURRENT-1] in
--socket|--export|--hosts|--file-sd|--ca|--db|--state|--merge|--fingerprint) _files; return ;;
--dir|--reference) _files -/; return ;;
--depth) compadd quick full memory matrix; return ;;
--format) compadd table json csv markdown html; return ;;
# Generated from daemon/planner/params.c by make generated: words.
--access) compadd read atomic write; return ;;
--location) compadd any device host; return ;;
--kind) compadd any device managed-device host-pinned host-virtual managed-host host-registered host-registered-huge host-pageable host-file host-gathered peer; return ;;
--reuse) compadd same own; return ;;
# End of the generated part.
esac
help=$($words[1] --help 2>/dev/null)
if [[ $PREFIX == -* ]]; then
    found=(${(fu)"$(print -r -- $help | grep -o -- '--[a-z][a-z-]*')"})
    compadd -- $found
elif [[ $CURRENT == 2 && ${words[1]:t} == reachctl ]]; then
    found=(${(fu)"$(print -r -- $help | sed -n 's/^  reachctl \([a-z-]*\).*/\1/p')"})
    compadd -- $found
else
    _files
fi
