/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Packed texts of a store: any bytes are read or refused, what was read is written the same way and
 * reads the same again, and any bytes can be packed. */
#include "store/rest.h"

#include "fuzz.h"

static void check_fields(const struct job_record *record)
{
    FUZZ_CHECK(record->n_extra <= REST_EXTRAS_MAX);
    for (size_t i = 0; i < record->n_extra; i++)
        FUZZ_CHECK(record->extra[i].name.n && record->extra[i].value.n);
}

static void check_again(struct packer *packer, const struct job_record *record)
{
    struct arena arena = { 0 };
    struct job_record again = { 0 };
    struct buf plain, packed, plain_again;
    struct err err;

    buf_init(&plain, REST_MAX);
    buf_init(&packed, 2 * REST_MAX);
    rest_encode(record, &plain);
    if (plain.n)
        rest_pack(packer, REST_JOBS, buf_str(&plain), &packed);
    FUZZ_CHECK(rest_decode(buf_str(&packed), &arena, &again, &err) == 0, "%s", err.text);
    buf_init(&plain_again, REST_MAX);
    rest_encode(&again, &plain_again);
    FUZZ_CHECK(str_eq(buf_str(&plain), buf_str(&plain_again)));
    buf_free(&plain_again);
    buf_free(&plain);
    buf_free(&packed);
    arena_clear(&arena);
}

static void check_any(struct packer *packer, enum rest_dictionary dictionary, struct str text)
{
    struct arena arena = { 0 };
    struct buf packed;
    struct str back;
    struct err err;

    buf_init(&packed, 2 * REST_MAX);
    rest_pack(packer, dictionary, str_head(text, REST_MAX), &packed);
    FUZZ_CHECK(rest_unpack(buf_str(&packed), &arena, &back, &err) == 0, "%s", err.text);
    FUZZ_CHECK(str_eq(back, str_head(text, REST_MAX)));
    buf_free(&packed);
    arena_clear(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct packer
        *packer; /* one for all, as in a store: it takes longer to make than to use */
    struct str bytes = { (const char *)data, size };
    struct job_record record = { 0 };
    struct arena arena = { 0 };
    struct err err;

    if (!packer)
        packer = packer_new();
    if (rest_decode(bytes, &arena, &record, &err) == 0) {
        check_fields(&record);
        check_again(packer, &record);
    }
    check_any(packer, REST_JOBS, bytes);
    check_any(packer, REST_DOCUMENTS, bytes);
    arena_clear(&arena);
    return 0;
}
