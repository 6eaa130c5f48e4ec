/* kernel_name.h: readable names of kernels. */
#pragma once

/* Returns the demangled name without return type, namespaces and parameters:
 * "vectorized_gather_kernel<16, long>". A name that is not mangled is unchanged, except that
 * control characters become blanks. The C++ library of the system demangles names; without this
 * library, names stay mangled. The caller frees the text. Returns NULL if out of memory. */
char *kernel_name_format(const char *mangled);
