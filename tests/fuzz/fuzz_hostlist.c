/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Host lists: counting and writing out agree, and what is folded again names the same hosts, each
 * once. */
#include "base/map.h"
#include "model/hostlist.h"

#include "fuzz.h"

enum { MOST = 2000, OUT_MAX = 16 << 20 };

static bool has_structure(struct str name)
{
    for (size_t i = 0; i < name.n; i++)
        if (memchr("[], \t\n", name.p[i], 6))
            return true;
    return false;
}

static size_t put_all(struct map *names, const struct hostlist *list)
{
    for (size_t i = 0; i < list->n; i++)
        map_index(names, list->hosts[i]);
    return names->n;
}

static void check_folding(const struct hostlist *list, struct arena *arena)
{
    struct hostlist again;
    struct buf folded, twice;
    struct map names;
    struct err err = { 0 };
    size_t different;

    map_init(&names, arena);
    buf_init(&folded, OUT_MAX);
    buf_init(&twice, OUT_MAX);
    hostlist_compress(list, &folded);
    FUZZ_CHECK(hostlist_expand(buf_str(&folded), arena, MOST, &again, &err) == 0, "%s", err.text);
    different = put_all(&names, list);
    FUZZ_CHECK(again.n == different, "%zu became %zu", different, again.n);
    FUZZ_CHECK(put_all(&names, &again) == different);
    hostlist_compress(&again, &twice);
    FUZZ_CHECK(str_eq(buf_str(&folded), buf_str(&twice)), "%.*s", STR_ARG(buf_str(&twice)));
    buf_free(&twice);
    buf_free(&folded);
    map_free(&names);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = { (const char *)data, size };
    struct arena arena = { 0 };
    struct hostlist list;
    struct err err = { 0 };
    uint64_t count = 0;
    int counted = hostlist_count(text, &count, NULL);
    int expanded = hostlist_expand(text, &arena, MOST, &list, &err);

    FUZZ_CHECK(expanded == counted || expanded == -EFBIG, "%d / %d", expanded, counted);
    FUZZ_CHECK(expanded == 0 || err.text[0]);
    FUZZ_CHECK(expanded == 0 || !arena.block);
    if (expanded == 0) {
        FUZZ_CHECK(list.n == count);
        for (size_t i = 0; i < list.n; i++)
            FUZZ_CHECK(list.hosts[i].n && !has_structure(list.hosts[i]));
        check_folding(&list, &arena);
    }
    arena_clear(&arena);
    return 0;
}
