/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parses and prints job ids with array task, component and cluster. */
#include "model/job_name.h"

#include "base/num.h"
#include "base/quote.h"
#include "model/job.h"

static bool read_number(struct str text, uint32_t *ret)
{
    uint64_t value;

    if (!num_get_u64(text, &value) || value >= MODEL_UNKNOWN_U32)
        return false;
    *ret = (uint32_t)value;
    return true;
}

int job_name_read(struct str text, struct job_name *ret, struct err *err)
{
    struct str trimmed = str_trim(text), rest = trimmed, number;
    struct job_name name = { .task = MODEL_UNKNOWN_U32, .offset = MODEL_UNKNOWN_U32 };
    size_t colon = str_find(trimmed, ':'), sign;
    bool ok = colon > 0;

    if (colon < trimmed.n) {
        name.cluster = str_head(trimmed, colon);
        rest = str_skip(trimmed, colon + 1);
    }
    for (sign = 0; sign < rest.n && rest.p[sign] != '_' && rest.p[sign] != '+'; sign++)
        continue;
    number = str_head(rest, sign);
    if (sign < rest.n)
        ok &=
            read_number(str_skip(rest, sign + 1), rest.p[sign] == '_' ? &name.task : &name.offset);
    if (!ok || !read_number(number, &name.id) || !name.id)
        return err_set(err, EINVAL, "\"%s\" is no job; write 4711, 4711_7, 4711+1 or CLUSTER:4711",
                       quote(trimmed).text);
    *ret = name;
    return 0;
}

void job_name_put(struct buf *to, const struct job_name *name)
{
    if (name->cluster.n) {
        buf_put(to, name->cluster);
        buf_byte(to, ':');
    }
    buf_u64(to, name->id);
    if (name->task != MODEL_UNKNOWN_U32) {
        buf_byte(to, '_');
        buf_u64(to, name->task);
    } else if (name->offset != MODEL_UNKNOWN_U32) {
        buf_byte(to, '+');
        buf_u64(to, name->offset);
    }
}
