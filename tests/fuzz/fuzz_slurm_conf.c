/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lines of a configuration file: keys and values lie within the text, in its order. */
#include "fuzz.h"

#include "source/slurm_conf.h"

#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *begin = (const char *)data, *end = begin + size;
    struct str rest = { begin, size };
    struct slurm_conf_line line;
    unsigned number = 0, last = 0;

    while (slurm_conf_next(&rest, &number, &line)) {
        FUZZ_CHECK(line.number > last && line.number <= number, "%u", line.number);
        FUZZ_CHECK(line.key.n && line.key.p >= begin && line.key.p + line.key.n <= end, "key");
        FUZZ_CHECK(!line.value.n ||
                       (line.value.p > line.key.p && line.value.p + line.value.n <= end),
                   "value");
        last = line.number;
    }
    FUZZ_CHECK(number <= size + 1, "%u lines", number);
    return 0;
}
