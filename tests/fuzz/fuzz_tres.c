/* SPDX-License-Identifier: GPL-2.0-or-later */
/* TRES and GRES strings: whatever stands before it, a member at the end is read, and what is given
 * stands in the text. */
#include "base/buf.h"
#include "model/tres.h"

#include "fuzz.h"

static bool is_within(struct str part, struct str text)
{
    return !part.n || (part.p >= text.p && part.p + part.n <= text.p + text.n);
}

static size_t check_entries(struct str text)
{
    struct gres_item item;
    size_t n = 0;
    bool bad = false;

    for (struct str rest = text; gres_next(&rest, &item, &bad); n++) {
        FUZZ_CHECK(item.name.n);
        FUZZ_CHECK(is_within(item.name, text) && is_within(item.type, text) &&
                   is_within(item.indexes, text));
        FUZZ_CHECK(str_find(item.name, ':') == item.name.n);
        FUZZ_CHECK(item.count != TRES_UNKNOWN);
        FUZZ_CHECK(n < text.n);
    }
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = { (const char *)data, size };
    struct tres tres;
    struct buf longer;

    check_entries(text);
    tres_parse(text, &tres);
    buf_init(&longer, size + 100);
    buf_put(&longer, text);
    buf_text(&longer, ",cpu=7,gres/gpu=5");
    tres_parse(buf_str(&longer), &tres);
    FUZZ_CHECK(tres.cpus == 7);
    FUZZ_CHECK(tres.gpus == 5);
    buf_reset(&longer);
    buf_text(&longer, "gpu:a100:4(IDX:0-3),");
    buf_put(&longer, text);
    FUZZ_CHECK(check_entries(buf_str(&longer)) == check_entries(text) + 1);
    buf_free(&longer);
    return 0;
}
