/* verdict.c: the names of the three verdicts. */
#include "base/verdict.h"

#include "base/name_of.h"

NAME_FUNCTIONS(verdict, enum verdict, [VERDICT_CLEAN] = "clean", [VERDICT_DISTURBED] = "disturbed",
               [VERDICT_UNUSABLE] = "unusable")
