/* test_kernel_name.c: names of kernels for people. */
#include "clients/profile/kernel_name.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

static void names_of_kernels_are_short(void **state)
{
    static const char *const cases[][2] = {
        {"_ZN2at6native24vectorized_gather_kernelILi16ElEEvPcS2_PT0_illllb",
         "vectorized_gather_kernel<16, long>"},
        {"_ZN12_GLOBAL__N_15sweepEPfi", "sweep"},
        {"_Z3addIfLb1EEvPT_S1_", "add<float, true>"},
        {"_Z6gatherPKcm", "gather"},
        {"triton_poi_fused_0", "triton_poi_fused_0"},
        {"_Zbroken", "_Zbroken"},
        {"", ""},
        {"two\nlines", "two lines"}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char *const name = kernel_name_format(cases[i][0]);
        assert_string_equal(name, cases[i][1]);
        free(name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_kernels_are_short),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
