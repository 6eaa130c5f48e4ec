/* hash.h: calculates FNV-1a, 64 bit (RFC 9923). It names values and guards stored rows against bit
 * rot. It is not for secrets and gives no protection against an attacker. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define HASH_START ((uint64_t)0xcbf29ce484222325u)

/* Continues `h` (HASH_START at first) over `n` bytes. */
uint64_t hash_bytes(uint64_t h, const void *data, size_t n);
/* Continues `h` over the eight bytes of a number, low byte first. */
uint64_t hash_u64(uint64_t h, uint64_t v);
/* Hashes eight bytes at a time, in a tenth of the time of hash_bytes. The result must not be
 * stored: another release or another byte order may give another number. */
uint64_t hash_quick(const void *data, size_t n);
