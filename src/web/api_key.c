/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Encodes and decodes keys of runs and nodes for addresses. */
#include "web/api_key.h"

#include "base/base64.h"
#include "base/num.h"

/* "r1700000000:42:CLUSTER" and "nCLUSTER\0NAME", in the alphabet of base64 that URLs take. */
enum { RUN = 'r', NODE = 'n', KEY_BYTES = API_KEY_MAX * 3 / 4 };

static const int64_t latest_time = INT64_C(253402300799); /* the end of the year 9999 */

static void put(struct buf *out, const struct buf *plain)
{
    if (!plain->over)
        base64_put_web(out, buf_str(plain));
}

void api_key_put_run(struct buf *out, const struct run_key *key)
{
    struct buf plain;

    buf_init(&plain, KEY_BYTES);
    buf_byte(&plain, RUN);
    buf_i64(&plain, key->submit_time);
    buf_byte(&plain, ':');
    buf_u64(&plain, key->job_id);
    buf_byte(&plain, ':');
    buf_put(&plain, key->cluster);
    put(out, &plain);
    buf_free(&plain);
}

void api_key_put_node(struct buf *out, const struct api_node_key *key)
{
    struct buf plain;

    buf_init(&plain, KEY_BYTES);
    buf_byte(&plain, NODE);
    buf_put(&plain, key->cluster);
    buf_byte(&plain, '\0');
    buf_put(&plain, key->name);
    put(out, &plain);
    buf_free(&plain);
}

/* Only what we would have written ourselves: a key has one spelling. */
static bool read_plain(struct str text, char kind, struct arena *arena, struct str *ret)
{
    char bytes[KEY_BYTES], again[API_KEY_MAX];
    size_t n;

    if (text.n > API_KEY_MAX || !base64_decode(text, bytes, sizeof(bytes), &n) || n < 1 ||
        bytes[0] != kind)
        return false;
    if (!str_eq(text, (struct str){ again, base64_write_web(again, (struct str){ bytes, n }) }))
        return false;
    *ret = arena_str(arena, (struct str){ bytes + 1, n - 1 });
    return true;
}

/* Digits as buf_u64 writes them. */
static bool read_number(struct str text, uint64_t most, uint64_t *ret)
{
    return text.n && text.p[0] != '0' && num_get_u64(text, ret) && *ret <= most;
}

bool api_key_read_run(struct str text, struct arena *arena, struct run_key *ret)
{
    struct str rest, submit, id;
    uint64_t submit_time, job_id;

    if (!read_plain(text, RUN, arena, &rest))
        return false;
    submit = str_cut(&rest, ':');
    id = rest.p ? str_cut(&rest, ':') : STR("");
    if (!rest.n || str_find(rest, '\0') < rest.n)
        return false;
    if (!read_number(submit, (uint64_t)latest_time, &submit_time) ||
        !read_number(id, UINT32_MAX - 1, &job_id))
        return false;
    *ret = (struct run_key){ (int64_t)submit_time, (uint32_t)job_id, rest };
    return true;
}

bool api_key_read_node(struct str text, struct arena *arena, struct api_node_key *ret)
{
    struct str rest, cluster;

    if (!read_plain(text, NODE, arena, &rest))
        return false;
    cluster = str_cut(&rest, '\0');
    if (!cluster.n || !rest.n || str_find(rest, '\0') < rest.n)
        return false;
    *ret = (struct api_node_key){ cluster, rest };
    return true;
}
