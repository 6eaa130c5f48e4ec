#compdef reachd
# Completion of reachd for zsh. The options are asked of the program itself.
local -a options
case $words[CURRENT-1] in
--state|--socket|--token-file|--libcuda|--config|--export|--analyze|--reference) _files ;;
--log-level) compadd error warning info debug ;;
--log-format) compadd auto text json journal ;;
--measure|--depth) compadd quick full memory matrix ;;
--simulate) compadd k80 p100 a100-80g h100-80g h200 ;;
*)
    options=(${(f)"$($words[1] --help 2>/dev/null | sed -n 's/^  \(--[a-z-]*\).*/\1/p')"})
    compadd -- $options
    ;;
esac
