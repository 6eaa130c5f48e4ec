#!/bin/sh
# Builds MUMmerGPU in its folder, src, without textures. NVCC is the compiler with its options.
set -eu
options='-I. -DUNIX -DTREETEX=0 -DREORDER_TREE=0'
objects=$(mktemp -d)
trap 'rm -rf "$objects"' EXIT
echo 'template <class T, int D, int M> struct texture {};' >"$objects/texture.h"
$NVCC $options -include "$objects/texture.h" -c mummergpu.cu -o "$objects/mummergpu.o"
for file in suffix-tree PoolMalloc mummergpu_gold mummergpu_main; do
    $NVCC $options -x c++ -Xcompiler -fopenmp,-include,unistd.h -c $file.cpp -o "$objects/$file.o"
done
$NVCC -Xcompiler -fopenmp "$objects"/*.o -o mummergpu -lcuda
