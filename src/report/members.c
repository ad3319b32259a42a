/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes members of a JSON object and omits unknown values. */
#include "report/members.h"

#include "model/job.h"
#include "report/facts_json.h"

#include <math.h>

void member_number(struct buf *to, const char *name, double value)
{
    if (!isfinite(value))
        return;
    fact_put_name(to, name);
    buf_double(to, value);
}

void member_text(struct buf *to, const char *name, struct str text)
{
    if (!text.n)
        return;
    fact_put_name(to, name);
    buf_json(to, text);
}

void member_truth(struct buf *to, const char *name, bool value)
{
    fact_put_name(to, name);
    buf_text(to, value ? "true" : "false");
}

void member_whole(struct buf *to, const char *name, int64_t value)
{
    fact_put_name(to, name);
    buf_i64(to, value);
}

void member_time(struct buf *to, const char *name, int64_t moment)
{
    if (moment)
        member_whole(to, name, moment);
}

void member_span(struct buf *to, const char *name, int64_t seconds)
{
    if (seconds >= 0)
        member_whole(to, name, seconds);
}

void member_u32(struct buf *to, const char *name, uint32_t value)
{
    if (value != MODEL_UNKNOWN_U32)
        member_whole(to, name, value);
}

void member_u64(struct buf *to, const char *name, uint64_t value)
{
    if (value == MODEL_UNKNOWN_U64)
        return;
    fact_put_name(to, name);
    buf_u64(to, value);
}

void member_begin(struct buf *to, const char *name, char bracket)
{
    fact_put_name(to, name);
    buf_byte(to, bracket);
}

void member_item(struct buf *to, size_t which)
{
    buf_text(to, which ? ",{" : "{");
}
