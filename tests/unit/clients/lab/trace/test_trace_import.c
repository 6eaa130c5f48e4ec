/* test_trace_import.c: compares imported records with files in the formats of NVBit's mem_trace,
 * Accel-Sim and CSV. The files were written by hand from the sources of the tools. */
#include "clients/lab/trace/import.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct imported {
    enum status status;
    struct err err;
    struct import_counts counts;
    struct rlt_left_out left_out; /* the records after reading the trace back */
    uint32_t count, kernel_count, allocation_count;
    struct rlt_record records[64];
    struct rlt_kernel kernels[8];
    struct rlt_allocation allocations[8];
};

static void read_back(char *bytes, size_t size, struct imported *out)
{
    FILE *in = fmemopen(bytes, size, "r");
    struct err err = {0};
    struct rlt_reader *r = rlt_reader_new(in, &err);
    assert_non_null(r);
    while (rlt_read(r, &out->records[out->count], &err))
        out->count++;
    assert_int_equal(err.status, STATUS_OK);
    const struct rlt_tables *t = rlt_tables(r);
    out->left_out = t->left_out;
    out->kernel_count = t->kernel_count;
    if (t->kernels)
        memcpy(out->kernels, t->kernels, t->kernel_count * sizeof *t->kernels);
    out->allocation_count = t->allocation_count;
    if (t->allocations)
        memcpy(out->allocations, t->allocations, t->allocation_count * sizeof *t->allocations);
    rlt_reader_free(r);
    fclose(in);
}

/* Imports an input. `kind` is 'n', 'c' or 'k' (a kernel of Accel-Sim) if the input is a text, and
 * 'a' if it is a path. */
static struct imported import(char kind, const char *text)
{
    struct imported result = {0};
    char *bytes = NULL;
    size_t size;
    FILE *out = open_memstream(&bytes, &size);
    struct rlt_writer *w = rlt_writer_new(out, 128);
    char *copy = strdup(text);
    FILE *in = kind == 'a' ? NULL
               : *text     ? fmemopen(copy, strlen(text), "r")
                           : fopen("/dev/null", "r");
    if (kind == 'n')
        result.status = import_nvbit(in, w, &result.counts, &result.err);
    else if (kind == 'c')
        result.status = import_csv(in, w, &result.counts, &result.err);
    else if (kind == 'k')
        result.status =
            import_accelsim_kernel(in, rlt_write_app(w, ""), w, &result.counts, &result.err);
    else
        result.status = import_accelsim(text, w, &result.counts, &result.err);
    assert_int_equal(rlt_writer_end(w, NULL), STATUS_OK);
    fclose(out);
    read_back(bytes, size, &result);
    free(bytes);
    if (in)
        fclose(in);
    free(copy);
    if (result.status != STATUS_OK)
        assert_true(result.err.text[0] != '\0');
    return result;
}

static void assert_refused(char kind, const char *text, const char *words)
{
    const struct imported i = import(kind, text);
    if (i.status == STATUS_OK || !strstr(i.err.text, words))
        fail_msg("\"%s\" instead of \"%s\"", i.err.text, words);
}

/* ---- NVBit ---- */

#define LAUNCH                                                                                     \
    "MEMTRACE: CTX 0x000055d0c0ffee00 - LAUNCH - Kernel pc 0x00007f1200000000 - Kernel name "      \
    "f(int) - and more - grid launch id 3 - grid size 4,2,1 - block size 256,1,1 - nregs 16 - "    \
    "shmem 0 - cuda stream id 0\n"
#define ACCESS(block, warp, opcode)                                                                \
    "MEMTRACE: CTX 0x000055d0c0ffee00 - grid_launch_id 3 - CTA " block " - warp " warp             \
    " - " opcode " - "
#define ZEROS8                                                                                     \
    "0x0000000000000000 0x0000000000000000 0x0000000000000000 0x0000000000000000 "                 \
    "0x0000000000000000 0x0000000000000000 0x0000000000000000 0x0000000000000000 "
#define ZEROS24 ZEROS8 ZEROS8 ZEROS8
#define EIGHT                                                                                      \
    "0x00007f0000000000 0x00007f0000000008 0x00007f0000000080 0x00007f0000000088 "                 \
    "0x00007f0000000000 0x0000000000000000 0x0000000000000000 0x00007f0000001000 "

static void nvbit_lines_become_records(void **state)
{
    const struct imported i =
        import('n', "----- NVBit loaded -----\n" LAUNCH
                    "the program's own output\n" ACCESS("1,1,0", "7", "LDG.E.64") EIGHT ZEROS24
               "\n" ACCESS("1,1,0", "7", "STG.E.U8") EIGHT ZEROS24
               "\n" ACCESS("0,0,0", "0", "RED.E.ADD.S32") EIGHT ZEROS24
               "\n" ACCESS("0,0,0", "0", "LDS.128") EIGHT ZEROS24 "\n" ACCESS("0,0,0", "0", "LDL")
                   EIGHT ZEROS24 "\n" ACCESS("0,0,0", "0", "LDG.E") ZEROS8 ZEROS24
               "\n" ACCESS("0,0,0", "0", "LDGSTS.E.128") "0x0000000000000400 "
                                                         "0x0000000000000410 " ZEROS24
                                                         "0x0 0x0 0x0 0x0 0x0 0x0\n");
    (void)state;
    if (i.status != STATUS_OK)
        fail_msg("%s", i.err.text);
    assert_int_equal(i.count, 3);
    assert_int_equal(i.counts.records, 3);
    assert_int_equal(i.counts.other_memory, 3);
    assert_int_equal(i.counts.idle, 1);
    assert_int_equal(i.counts.other_lines, 2);
    assert_int_equal(i.kernel_count, 1);
    assert_string_equal(i.kernels[0].name, "f(int) - and more");
    assert_int_equal(i.kernels[0].grid[1], 2);
    assert_int_equal(i.kernels[0].block[0], 256);
    assert_int_equal(i.records[0].block, 5);
    assert_int_equal(i.records[0].warp, 7);
    assert_int_equal(i.records[0].mask, 0x9f);
    assert_int_equal(i.records[0].kind, RLT_LOAD);
    assert_int_equal(i.records[0].width_log2, 3);
    assert_int_equal(i.records[0].line_count, 3);
    assert_int_equal(i.records[0].lines[0], 0x7f0000000000 / 128);
    assert_int_equal(i.records[0].lines[2], 0x7f0000001000 / 128);
    assert_int_equal(i.records[1].kind, RLT_STORE);
    assert_int_equal(i.records[1].width_log2, 0);
    assert_int_equal(i.records[2].kind, RLT_ATOMIC);
    assert_int_equal(i.records[2].width_log2, 2);
}

static void nvbit_without_a_launch_is_read(void **state)
{
    const struct imported i = import('n', ACCESS("1,2,0", "0", "LDG.E") EIGHT ZEROS24);
    (void)state;
    assert_int_equal(i.status, STATUS_OK);
    assert_int_equal(i.count, 1);
    assert_int_equal(i.kernels[0].grid[0], 0);
}

static void torn_nvbit_lines_are_refused(void **state)
{
    (void)state;
    assert_refused('n', "", "MEMTRACE");
    assert_refused('n', "hello\n", "MEMTRACE");
    assert_refused('n', LAUNCH ACCESS("0,0,0", "0", "LDG.E") EIGHT "\n", "line 2");
    assert_refused('n', "MEMTRACE: CTX 0x1 - grid_launch_id 1 - CTA 1,2\n", "line 1");
    assert_refused('n', "MEMTRACE: CTX 0x1 - LAUNCH - Kernel name f\n", "grid launch id");
    assert_refused('n',
                   "MEMTRACE: CTX 0x1 - LAUNCH - Kernel name f - grid launch id 9999999999 - "
                   "grid size 1,1,1 - block size 1,1,1\n",
                   "2^32");
}

/* A text without an access that can be imported is rejected, and the message has the reason. */
static void nvbit_without_an_access_is_refused(void **state)
{
    (void)state;
    assert_refused('n', LAUNCH, "launches but no accesses");
    assert_refused('n', LAUNCH ACCESS("0,0,0", "0", "LDG.E") ZEROS8 ZEROS24 "\n",
                   "every address is 0 in all 1");
    assert_refused('n', LAUNCH ACCESS("0,0,0", "0", "LDG.E") "0x8 " ZEROS24 ZEROS8 "\n",
                   "1 accesses have no address");
    assert_refused('n', LAUNCH ACCESS("0,0,0", "0", "UBLKCP.S.G") EIGHT ZEROS24 "\n",
                   "1 are bulk copies");
    assert_refused('n', LAUNCH ACCESS("0,0,0", "0", "LDS") EIGHT ZEROS24 "\n",
                   "1 accesses are to shared");
}

/* Each context numbers its launches from 0. */
static void contexts_are_kept_apart(void **state)
{
    static const char launch[] =
        "MEMTRACE: CTX %s - LAUNCH - Kernel name %s - grid launch id 0 - grid size %d,1,1 - "
        "block size 32,1,1\n";
    static const char access[] =
        "MEMTRACE: CTX %s - grid_launch_id 0 - CTA 0,1,0 - warp 0 - LDG.E - " EIGHT ZEROS24 "\n";
    char text[8192];
    size_t n = 0;
    (void)state;
    n += (size_t)snprintf(text + n, sizeof text - n, launch, "0xa", "first", 7);
    n += (size_t)snprintf(text + n, sizeof text - n, launch, "0xb", "second", 9);
    for (int i = 0; i < 2; i++) {
        n += (size_t)snprintf(text + n, sizeof text - n, access, "0xa");
        n += (size_t)snprintf(text + n, sizeof text - n, access, "0xb");
    }
    const struct imported i = import('n', text);
    if (i.status != STATUS_OK)
        fail_msg("%s", i.err.text);
    assert_int_equal(i.count, 4);
    assert_int_equal(i.kernel_count, 2);
    assert_string_equal(i.kernels[0].name, "first");
    assert_string_equal(i.kernels[1].name, "second");
    assert_int_equal(i.kernels[0].app, 0);
    assert_int_equal(i.kernels[1].app, 1);
    for (uint32_t k = 0; k < 4; k++) {
        assert_int_equal(i.records[k].kernel, k % 2);
        assert_int_equal(i.records[k].block, k % 2 ? 9 : 7);
    }
}

/* The trace contains the numbers of left-out accesses. */
static void nvbit_copies_are_counted_in_the_trace(void **state)
{
    const struct imported i = import('n', LAUNCH ACCESS("0,0,0", "0", "LDG.E") EIGHT ZEROS24
                                     "\n" ACCESS("0,0,0", "0", "UTMALDG.2D") EIGHT ZEROS24
                                     "\n" ACCESS("0,0,0", "0", "UBLKRED.S.G") EIGHT ZEROS24
                                     "\n" ACCESS("0,0,0", "0", "SUST.D.BA.2D") EIGHT ZEROS24
                                     "\n" ACCESS("0,0,0", "0", "UTMACCTL.PF") EIGHT ZEROS24 "\n");
    (void)state;
    assert_int_equal(i.status, STATUS_OK);
    assert_int_equal(i.count, 1);
    assert_int_equal(i.left_out.copies, 2);
    assert_int_equal(i.left_out.textures, 1);
    assert_int_equal(i.left_out.unknown, 0);
    assert_true(rlt_left_out_share(&i.left_out, i.count) == 0.75);
}

/* ---- Accel-Sim ---- */

#define HEADER(version) HEADER_OF("2", version)
#define HEADER_OF(blocks, version)                                                                 \
    "-kernel name = _Z1fPi\n-kernel id = 1\n-grid dim = (" blocks ",1,1)\n-block dim = (64,1,1)\n" \
    "-shmem = 0\n-nregs = 8\n-binary version = 90\n-cuda stream id = 0\n"                          \
    "-shmem base_addr = 0x00007f3000000000\n-local mem base_addr = 0x00007f4000000000\n"           \
    "-nvbit version = 1.7\n-accelsim tracer version = " version "\n\n"                             \
    "#traces format = PC mask dest_num [reg_dests] opcode src_num [reg_srcs] mem_width "           \
    "[adrrescompress?] [mem_addresses] immediate\n\n"
#define EMPTY_BLOCK "\n#BEGIN_TB\n\nthread block = 0,0,0\n\n#END_TB\n"
#define BLOCK(count, instructions)                                                                 \
    EMPTY_BLOCK "\n#BEGIN_TB\n\nthread block = 1,0,0\n\nwarp = 1\ninsts = " count                  \
                "\n" instructions "\n#END_TB\n"

static void accelsim_instructions_become_records(void **state)
{
    const struct imported i = import(
        'k',
        HEADER("5") BLOCK(
            "12", "0000 ffffffff 1 R1 IMAD.MOV.U32 2 R255 R255 0 0\n"
                  "0010 ffffffff 1 R4 S2R 0 0 0\n"
                  "0020 ffffffff 1 R2 LDG.E.SYS 1 R4 4 1 0x7f0000000000 4 0\n"
                  "0030 00000003 0 STG.E.64 2 R4 R2 8 0 0x00007f0000000000 0x00007f0000001000 0\n"
                  "0040 00000007 1 R2 LDG.E 1 R4 4 2 0x7f0000000000 4096 -8192 0\n"
                  "0050 ffffffff 1 R2 LDS.U.32 1 R4 4 1 0x400 4 0\n"
                  "0060 00000001 1 R2 LD.E 1 R4 4 0 0x7f3000000010 0\n"
                  "0070 00000001 1 R2 LD.E 1 R4 4 0 0x7f2000000010 0\n"
                  "0080 00000000 1 R2 LDG.E 1 R4 4 0\n"
                  "0090 00000001 0 UTMALDG.2D 2 UR4 UR8 16 0 0x7f0000000000 0\n"
                  "00a0 ffffffff 1 R2 LDG.E 1 R4 4 1 0x0 4 0\n"
                  "00b0 00000001 0 UTMACMDFLUSH 0 0\n"));
    (void)state;
    if (i.status != STATUS_OK)
        fail_msg("%s", i.err.text);
    assert_int_equal(i.count, 4);
    assert_string_equal(i.kernels[0].name, "_Z1fPi");
    assert_int_equal(i.kernels[0].block[0], 64);
    assert_int_equal(i.records[0].block, 1);
    assert_int_equal(i.records[0].warp, 1);
    assert_int_equal(i.records[0].gap, 2);
    assert_int_equal(i.records[0].line_count, 1);
    assert_int_equal(i.records[1].gap, 0);
    assert_int_equal(i.records[1].kind, RLT_STORE);
    assert_int_equal(i.records[1].width_log2, 3);
    assert_int_equal(i.records[1].line_count, 2);
    assert_int_equal(i.records[2].line_count, 3);
    assert_int_equal(i.records[2].lines[1], 0x7f0000001000 / 128);
    assert_int_equal(i.records[2].lines[2], 0x7effffffF000 / 128);
    assert_int_equal(i.records[3].lines[0], 0x7f2000000000 / 128);
    assert_int_equal(i.counts.other_memory, 2);
    assert_int_equal(i.counts.idle, 1);
    assert_int_equal(i.counts.left_out.copies, 1);
    assert_int_equal(i.counts.left_out.unknown, 1);
}

static void accelsim_line_numbers_are_skipped(void **state)
{
    const struct imported i =
        import('k', "-enable lineinfo = 1\n" HEADER("4")
                        BLOCK("1", "17 0020 ffffffff 1 R2 LDG.E 1 R4 4 1 0x7f0000000000 128\n"));
    (void)state;
    assert_int_equal(i.status, STATUS_OK);
    assert_int_equal(i.records[0].line_count, 32);
}

static void damaged_accelsim_traces_are_refused(void **state)
{
    (void)state;
    assert_refused('k', "", "no block");
    assert_refused('k', HEADER("2"), "other than 3, 4 and 5");
    assert_refused('k', HEADER("3") "0 0 0 1 0020 ffffffff 0 LDG.E 0 4 1 0x0 4\n",
                   "outside of a warp");
    assert_refused('k', HEADER("3") BLOCK("1", "0020 ffffffff 0 LDG.E 0 4 0 0x7f0000000000\n"),
                   "mask");
    assert_refused('k', HEADER("3") BLOCK("1", "0020 ffffffff 0 LDG.E 0 4 7 0x7f0000000000\n"),
                   "mask");
    assert_refused('k', HEADER("3") BLOCK("1", "what\n"), "instruction");
    assert_refused('k', HEADER("3") "#BEGIN_TB\n#BEGIN_TB\n", "inside another");
    assert_refused('k', HEADER("3") "#BEGIN_TB\nthread block = 0,0,0\nwarp = 0\n", "lacks its end");
}

#define LOAD "0020 ffffffff 1 R2 LDG.E 1 R4 4 1 0x7f0000000000 4\n"

/* The text of this kernel was truncated at a line. */
static void cut_accelsim_traces_are_refused(void **state)
{
    (void)state;
    assert_refused('k', HEADER("5") BLOCK("300", LOAD LOAD LOAD), "3 of the 300 instructions");
    assert_refused('k', HEADER("5") BLOCK("1", LOAD LOAD), "2 of the 1 instructions");
    assert_refused('k', HEADER("5") BLOCK("2", LOAD "\nwarp = 2\ninsts = 1\n" LOAD), "line 31");
    assert_refused('k', HEADER("5") BLOCK("x", LOAD), "not a valid number of instructions");
    assert_refused('k', HEADER_OF("3", "5") BLOCK("1", LOAD), "2 of the 3 blocks");
    assert_refused('k', HEADER_OF("1", "5") BLOCK("1", LOAD), "2 of the 1 blocks");
    assert_refused('k', HEADER_OF("4294967295", "5") BLOCK("1", LOAD), "2 of the 4294967295");
    /* Without a grid, the number of blocks is unknown. */
    assert_int_equal(import('k', HEADER_OF("0", "5") BLOCK("1", LOAD)).status, STATUS_OK);
}

static void put(const char *folder, const char *name, const char *text)
{
    char path[256];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void a_list_of_kernels_is_followed(void **state)
{
    char folder[] = "/tmp/reach-import-XXXXXX";
    char path[256];
    (void)state;
    assert_non_null(mkdtemp(folder));
    put(folder, "kernel-1.traceg",
        HEADER("3") BLOCK("1", "0020 ffffffff 1 R2 LDG.E 1 R4 4 1 0x7f0000000000 4\n"));
    put(folder, "kernelslist.g",
        "MemcpyHtoD,0x00007f0000000000,4096\ncudaMalloc,0x00007f1000000000,1048576\n"
        "kernel-1.traceg\nkernel-1.traceg\nMemcpyDtoH,0x1,2\n");
    (void)snprintf(path, sizeof path, "%s/kernelslist.g", folder);
    struct imported i = import('a', path);
    if (i.status != STATUS_OK)
        fail_msg("%s", i.err.text);
    assert_int_equal(i.count, 2);
    assert_int_equal(i.kernel_count, 2);
    assert_int_equal(i.records[1].kernel, 1);
    assert_int_equal(i.allocation_count, 2);
    assert_int_equal(i.allocations[1].bytes, 1048576);
    put(folder, "kernelslist.g", "MemcpyDtoH,0x1,2\n");
    assert_refused('a', path, "names no kernel");
    put(folder, "kernelslist.g", "kernel-2.traceg\n");
    assert_refused('a', path, "kernel-2.traceg");
    put(folder, "kernelslist.g", "kernel/../../etc/passwd\n");
    assert_refused('a', path, "in the folder of the list");
    (void)snprintf(path, sizeof path, "%s/kernel-1.traceg", folder);
    i = import('a', path);
    assert_int_equal(i.count, 1);
    assert_int_equal(unlink(path), 0);
    (void)snprintf(path, sizeof path, "%s/kernelslist.g", folder);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
}

/* The kernel of each text has no access to global memory with an address. */
static void a_kernel_without_an_address_is_refused(void **state)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"0020 ffffffff 1 R2 LDG.E 1 R4 4 1 0x0 4 0\n", "1 accesses have no address"},
        {"0020 ffffffff 1 R2 LDG.E 1 R4 0 0\n", "1 accesses have no address"},
        {"0020 00000001 0 UTMASTG.2D 2 UR4 UR8 0 0\n", "1 are bulk copies"},
        {"0020 ffffffff 1 R2 TEX.SCR.LL 1 R4 0 0\n", "1 access textures"},
        {"0020 ffffffff 1 R2 LDS 1 R4 4 1 0x400 4 0\n", "1 accesses are to shared"},
        {"0020 00000000 1 R2 LDG.E 1 R4 4 0\n", "every address is 0 in all 1"},
        {"0020 ffffffff 1 R1 MOV 1 R2 0 0\n", "no instruction accesses memory"},
    };
    char folder[] = "/tmp/reach-import-XXXXXX";
    char path[256], text[2048];
    (void)state;
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/kernel-1.traceg", folder);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        (void)snprintf(text, sizeof text, HEADER("5") BLOCK("1", "%s"), cases[i].text);
        put(folder, "kernel-1.traceg", text);
        assert_refused('a', path, cases[i].words);
    }
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
}

/* One program is not installed, and one program fails. */
static void a_trace_that_cannot_be_unpacked_is_refused(void **state)
{
    static const char *const packed[][2] = {
        {"kernel-1.traceg.xz", "install the package xz-utils"},
        {"kernel-1.traceg.zst", "install the package zstd"},
        {"kernel-1.traceg.gz", "install the package gzip"},
    };
    char folder[] = "/tmp/reach-import-XXXXXX";
    char path[256];
    const char *const path_now = getenv("PATH");
    char *const old = strdup(path_now ? path_now : "");
    (void)state;
    assert_non_null(mkdtemp(folder));
    for (size_t i = 0; i < sizeof packed / sizeof packed[0]; i++) {
        put(folder, packed[i][0], "no archive");
        (void)snprintf(path, sizeof path, "%s/%s", folder, packed[i][0]);
        assert_int_equal(setenv("PATH", folder, 1), 0);
        assert_refused('a', path, packed[i][1]);
        assert_int_equal(setenv("PATH", old, 1), 0);
        if (i == 2) /* gzip is on every machine that has a shell */
            assert_refused('a', path, "gzip failed");
        assert_int_equal(unlink(path), 0);
    }
    assert_int_equal(rmdir(folder), 0);
    free(old);
}

/* ---- CSV ---- */

static void rows_become_records(void **state)
{
    struct imported i = import('c', "warp,address\r\n# a remark\r\n3,0x7f0000000080\r\n3;256\r\n"
                                    "\r\n4, 0x80 \r\n");
    (void)state;
    if (i.status != STATUS_OK)
        fail_msg("%s", i.err.text);
    assert_int_equal(i.count, 3);
    assert_int_equal(i.records[0].block, 3);
    assert_int_equal(i.records[0].lines[0], 0x7f0000000080 / 128);
    assert_int_equal(i.records[1].lines[0], 2);
    assert_int_equal(i.records[2].block, 4);
    i = import('c', "128\n256");
    assert_int_equal(i.count, 2);
    assert_int_equal(i.records[1].block, 1);
    assert_int_equal(i.records[1].lines[0], 2);
}

static void other_rows_are_refused(void **state)
{
    (void)state;
    assert_refused('c', "", "no row");
    assert_refused('c', "address\n", "no row");
    assert_refused('c', "1,2\n3\n", "line 2");
    assert_refused('c', "1,0\n2,0x0\n", "every address is 0");
    assert_refused('c', "1,2,3\n4,5,6\n", "line 2");
    assert_refused('c', "address\n12x\n", "line 2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nvbit_lines_become_records),
        cmocka_unit_test(nvbit_without_a_launch_is_read),
        cmocka_unit_test(torn_nvbit_lines_are_refused),
        cmocka_unit_test(nvbit_without_an_access_is_refused),
        cmocka_unit_test(contexts_are_kept_apart),
        cmocka_unit_test(nvbit_copies_are_counted_in_the_trace),
        cmocka_unit_test(accelsim_instructions_become_records),
        cmocka_unit_test(accelsim_line_numbers_are_skipped),
        cmocka_unit_test(damaged_accelsim_traces_are_refused),
        cmocka_unit_test(cut_accelsim_traces_are_refused),
        cmocka_unit_test(a_kernel_without_an_address_is_refused),
        cmocka_unit_test(a_trace_that_cannot_be_unpacked_is_refused),
        cmocka_unit_test(a_list_of_kernels_is_followed),
        cmocka_unit_test(rows_become_records),
        cmocka_unit_test(other_rows_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
