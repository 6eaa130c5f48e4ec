/* ranges.h: the names of the NVTX ranges that a thread of the program is in. Frameworks name their
 * operators by such ranges. */
#pragma once

enum {
    RANGES_NAME_BYTES = 120, /* a longer name is cut */
    RANGES_DEPTH = 32,       /* outer ranges of a thread are forgotten */
    RANGES_STRINGS = 2048    /* registered strings and domains; others have no name */
};

/* Returns the name of the innermost range of this thread that has a name, or "". A name ends before
 * its first comma, because PyTorch appends numbers ("aten::embedding, seq = 0"). The name is UTF-8
 * if the text of the program is. It is valid until this thread begins or ends a range. */
const char *ranges_innermost(void);
