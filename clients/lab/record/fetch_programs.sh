#!/bin/sh
# Fetches the public programs that are recorded, at the commits that were recorded, into a folder.
#
#   clients/lab/record/fetch_programs.sh FOLDER
set -eu
folder=${1:?"usage: fetch_programs.sh FOLDER"}

# Fetches the folders "$4".. of a repository at a commit into $folder/$1.
fetch()
{
    git init -q "$folder/$1"
    git -C "$folder/$1" sparse-checkout set --no-cone "$4"
    git -C "$folder/$1" fetch -q --depth 1 --filter=blob:none "https://github.com/$2" "$3"
    git -C "$folder/$1" checkout -q FETCH_HEAD
}

fetch rodinia yuhc/gpu-rodinia 9c10d3ea16ddba2ba057cc3951a9efc4c2cc18a4 /cuda
fetch polybench cavazos-lab/PolyBench-ACC 70ea4ca9047dc4ec9c3ca79b4c91b3b2cc1510e7 /CUDA
fetch hecbench zjin-lcf/HeCBench f27000a5188f8ac79bd43fc95a1b3f890c18823d /src
fetch code-samples NVIDIA-developer-blog/code-samples 72d62ec464442786a36754508bcb1094d197d6a5 /posts/gups
