#compdef reachctl
# Completion of reachctl for zsh. Commands and options are asked of the program itself.
local help
local -a found
case $words[CURRENT-1] in
--socket|--export|--hosts|--file-sd|--ca|--db|--state|--merge|--fingerprint) _files; return ;;
--dir|--reference) _files -/; return ;;
--depth) compadd quick full memory matrix; return ;;
--format) compadd table json csv markdown svg html; return ;;
--access) compadd read atomic write; return ;;
esac
help=$($words[1] --help 2>/dev/null)
if [[ $PREFIX == -* ]]; then
    found=(${(fu)"$(print -r -- $help | grep -o -- '--[a-z][a-z-]*')"})
    compadd -- $found
elif (( CURRENT == 2 )); then
    found=(${(fu)"$(print -r -- $help | sed -n 's/^  reachctl \([a-z-]*\).*/\1/p')"})
    compadd -- $found
else
    _files
fi
