/* test_host_memory.c: pages and mapped files of the host, and their NUMA nodes. */
#include "gpu/cuda/host_memory.h"
#include "gpu/cuda/host_nodes.h"

#include "base/units.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Returns whether a line of /proc/self/maps contains both texts. */
static bool maps_have(const char *one, const char *other)
{
    FILE *const f = fopen("/proc/self/maps", "re");
    char line[4096];
    bool found = false;

    assert_non_null(f);
    while (!found && fgets(line, sizeof line, f))
        found = strstr(line, one) && strstr(line, other);
    (void)fclose(f);
    return found;
}

static uint32_t count_files(const char *folder)
{
    DIR *const d = opendir(folder);
    uint32_t n = 0;

    assert_non_null(d);
    for (const struct dirent *e = readdir(d); e; e = readdir(d))
        n += e->d_name[0] != '.';
    (void)closedir(d);
    return n;
}

/* Huge pages depend on the kernel and are left out. */
static void pages_are_zero_and_aligned(void **state)
{
    static const enum host_pages kinds[] = {HOST_PAGES_ORDINARY, HOST_PAGES_ANY};

    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct err err = {0};
        void *p = NULL;
        assert_int_equal(host_memory_map(6 * MIB, kinds[i], &p, &err), STATUS_OK);
        assert_int_equal((uintptr_t)p % (2 * MIB), 0);
        assert_int_equal(((char *)p)[0] | ((char *)p)[6 * MIB - 1], 0);
        host_memory_free(p, 6 * MIB);
    }
}

/* The file is in the folder of the path and has no name there. */
static void a_mapped_file_has_no_name(void **state)
{
    char folder[] = "/tmp/reach-host-XXXXXX", path[64];
    struct err err = {0};
    void *p = NULL;

    (void)state;
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/reachd.db", folder);
    assert_int_equal(host_memory_map_file(path, 4 * MIB, &p, &err), STATUS_OK);
    assert_int_equal((uintptr_t)p % (2 * MIB), 0);
    assert_int_equal(((char *)p)[0] | ((char *)p)[4 * MIB - 1], 0);
    assert_true(maps_have(folder, "(deleted)"));
    assert_int_equal(count_files(folder), 0);
    host_memory_free(p, 4 * MIB);
    assert_false(maps_have(folder, "(deleted)"));
    assert_int_equal(rmdir(folder), 0);
}

static void a_state_without_a_folder_uses_another(void **state)
{
    static const char *const states[] = {NULL, ":memory:", "/nowhere/reachd.db"};

    (void)state;
    if (access("/var/tmp", W_OK) != 0)
        skip();
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
        struct err err = {0};
        void *p = NULL;
        assert_int_equal(host_memory_map_file(states[i], 2 * MIB, &p, &err), STATUS_OK);
        assert_true(maps_have("/var/tmp/", "(deleted)"));
        host_memory_free(p, 2 * MIB);
    }
}

static void lists_of_the_kernel_are_read(void **state)
{
    cpu_set_t set;

    (void)state;
    host_nodes_parse("0-3,8,1022-4096\n", &set);
    assert_int_equal(CPU_COUNT(&set), 7);
    assert_true(CPU_ISSET(3, &set) && CPU_ISSET(8, &set) && CPU_ISSET(1023, &set));
    host_nodes_parse("\n", &set);
    assert_int_equal(CPU_COUNT(&set), 0);
}

static void the_share_of_a_node_is_read(void **state)
{
    static const char line[] =
        "7f5c40000000 default anon=400 dirty=400 active=0 N0=100 N11=300 kernelpagesize_kB=4\n";

    (void)state;
    assert_true(host_nodes_line_share(line, 0) == 0.25);
    assert_true(host_nodes_line_share(line, 11) == 0.75);
    assert_true(host_nodes_line_share(line, 1) == 0);
    assert_true(host_nodes_line_share("7f5c40000000 default\n", 0) == 0);
}

/* This host has some nodes, or the kernel reports none. */
static void a_thread_is_bound_to_a_node_and_back(void **state)
{
    const uint64_t nodes = host_nodes_list();
    cpu_set_t first, before, after;

    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof first, &first), 0);
    assert_false(host_nodes_bind(1 << 20, &before));
    assert_false(host_nodes_bind(-1, &before));
    for (int node = 0; node < 64; node++) {
        if (!(nodes >> node & 1) || !host_nodes_bind(node, &before))
            continue;
        assert_true(CPU_EQUAL(&first, &before));
        host_nodes_unbind(&before);
    }
    assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
    assert_true(CPU_EQUAL(&first, &after));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_are_zero_and_aligned),
        cmocka_unit_test(a_mapped_file_has_no_name),
        cmocka_unit_test(a_state_without_a_folder_uses_another),
        cmocka_unit_test(lists_of_the_kernel_are_read),
        cmocka_unit_test(the_share_of_a_node_is_read),
        cmocka_unit_test(a_thread_is_bound_to_a_node_and_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
