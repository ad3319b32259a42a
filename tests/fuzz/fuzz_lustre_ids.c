/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Formats of Lustre's job ids, and ids: the first line is a format, each other one an id. What is
 * given stands in the id, and an id that is written by a format is read by it. */
#include "base/buf.h"
#include "base/num.h"
#include "source/lustre_ids.h"

#include "fuzz.h"

static bool is_within(struct str part, struct str text)
{
    return !part.n || (part.p >= text.p && part.p + part.n <= text.p + text.n);
}

static void check_parts(const struct lustre_parts *parts, struct str id)
{
    FUZZ_CHECK(is_within(parts->process, id));
    FUZZ_CHECK(!parts->has_job || parts->job_id);
    FUZZ_CHECK(parts->has_job || parts->has_user || parts->process.n);
}

static void check_usual(struct str id)
{
    struct lustre_parts parts;
    uint64_t number;
    struct buf again;

    if (!lustre_id_read(id, &parts)) {
        FUZZ_CHECK(!num_get_u64(id, &number) || number == 0 || number > UINT32_MAX);
        return;
    }
    check_parts(&parts, id);
    FUZZ_CHECK(parts.has_job != parts.has_user);
    if (parts.has_job) {
        FUZZ_CHECK(num_get_u64(id, &number) && number == parts.job_id);
        return;
    }
    buf_init(&again, id.n + 1);
    buf_put(&again, parts.process);
    buf_byte(&again, '.');
    FUZZ_CHECK(str_starts(id, buf_str(&again)));
    FUZZ_CHECK(num_get_u64(str_skip(id, again.n), &number) && number == parts.user_id);
    buf_free(&again);
}

/* As Lustre's client does, with a process of that name. */
static void write_id(struct str format, struct str process, struct buf *to)
{
    static const struct {
        char letter;
        const char *value;
    } values[] = { { 'g', "100" },      { 'h', "node1.site" }, { 'H', "node1" },
                   { 'j', "26515966" }, { 'p', "4711" },       { 'u', "1000" } };

    for (size_t i = 0; i < format.n; i++) {
        char c = format.p[i];

        if (c == ' ' || (c >= '\t' && c <= '\r'))
            continue;
        if (c != '%') {
            buf_byte(to, c);
            continue;
        }
        c = format.p[++i];
        if (c == 'e')
            buf_put(to, process);
        for (size_t k = 0; k < COUNT(values); k++)
            if (values[k].letter == c)
                buf_text(to, values[k].value);
    }
}

static void check_written(const struct lustre_format *format, struct str text, struct str process)
{
    bool has_job = str_find_str(text, STR("%j")) < text.n;
    bool has_user = str_find_str(text, STR("%u")) < text.n;
    struct lustre_parts parts;
    struct buf id;

    buf_init(&id, 4096);
    write_id(text, process, &id);
    if (id.n <= 256 && (has_job || has_user || process.n)) {
        FUZZ_CHECK(lustre_format_read(format, buf_str(&id), &parts), "%s", id.p);
        check_parts(&parts, buf_str(&id));
        FUZZ_CHECK(parts.has_user == has_user);
    }
    buf_free(&id);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str rest = { (const char *)data, size }, text = str_cut(&rest, '\n');
    struct lustre_format *format = NULL;
    struct err err = { 0 };
    bool is_quoted = text.n && (text.p[0] == '"' || text.p[0] == '\'');

    if (lustre_format_new(text, &format, &err) < 0)
        FUZZ_CHECK(!format && err.code == EINVAL && err.text[0]);
    while (rest.p) {
        struct str id = str_cut(&rest, '\n');
        struct lustre_parts parts;

        check_usual(id);
        if (!format)
            continue;
        if (lustre_format_read(format, id, &parts))
            check_parts(&parts, id);
        if (!is_quoted)
            check_written(format, text, str_head(id, 15)); /* as long as Linux keeps a name */
    }
    lustre_format_free(format);
    return 0;
}
