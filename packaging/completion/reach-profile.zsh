#compdef reach-profile
# Completion of reach-profile for zsh. After the options, the words are a command of their own.
_arguments -S \
    '--seconds[time that the recordings may take]:seconds:' \
    '--launches[recorded launches of each kernel]:count:' \
    '--skip[launches of each kernel before its first recording]:count:' \
    '--sanitizer[libsanitizer-public.so or its folder]:library:_files' \
    '--keep[folder for the recordings]:folder:_files -/' \
    '--report[report from a folder of --keep]:folder:_files -/' \
    '*--fingerprint[fingerprint of a GPU]:file:_files' \
    '--json[print JSON]' \
    '--html[write a page]:file:_files' \
    '--trace[write the trace of the first kernel]:file:_files' \
    '--output[write the report to a file]:file:_files' \
    '--help[print the options]' \
    '--version[print the version]' \
    '(-):program: _command_names -e' \
    '*::arguments: _normal'
