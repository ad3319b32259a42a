/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What people write on the command line of `sonde jobs`, and what jobs are named: a moment that is
 * read can be shown and read again, a job that is read is one, and no text breaks a table. */
#include "base/moment.h"
#include "model/job.h"
#include "model/job_name.h"
#include "report/table.h"

#include "fuzz.h"

static const int64_t now = 1792070055;

static void check_moment(struct str text)
{
    struct err err = { 0 };
    int64_t moment, again;
    struct buf shown;

    if (moment_parse(text, now, &moment, &err) < 0) {
        FUZZ_CHECK(err.code == EINVAL && err.text[0]);
        return;
    }
    buf_init(&shown, 64);
    moment_put_zoned(&shown, moment);
    FUZZ_CHECK(moment_parse(buf_str(&shown), now, &again, &err) == 0 && again == moment);
    buf_free(&shown);
}

static void check_job(struct str text)
{
    struct job_name job;
    struct err err = { 0 };

    if (job_name_read(text, &job, &err) < 0)
        return;
    FUZZ_CHECK(job.id > 0 && job.id != MODEL_UNKNOWN_U32);
    FUZZ_CHECK(job.task == MODEL_UNKNOWN_U32 || job.offset == MODEL_UNKNOWN_U32);
}

static const struct table_column columns[] = { { .title = "A" }, { .title = "B" } };

static void check_text(struct str text)
{
    size_t lines = 0;

    for (struct str rest = text; rest.n;) {
        size_t n = rest.p[0] == '\n' ? 1 : str_printable_len(rest);

        FUZZ_CHECK(n > 0);
        lines += rest.p[0] == '\n';
        rest = str_skip(rest, n);
    }
    FUZZ_CHECK(lines == 2);
}

/* Quoted cells closed, and as many as there are columns in each line. */
static void check_csv(struct str text)
{
    size_t commas = 0, lines = 0;
    bool is_quoted = false;

    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] == '"')
            is_quoted = !is_quoted;
        commas += !is_quoted && text.p[i] == ',';
        lines += !is_quoted && text.p[i] == '\n';
    }
    FUZZ_CHECK(!is_quoted && commas == 2 && lines == 2);
}

static void check_table(struct str cell, enum table_format format, size_t width)
{
    struct table_settings settings = { format, columns, COUNT(columns), width, NULL };
    struct err err = { 0 };
    struct table *table;
    char *text = NULL;
    size_t n = 0;

    settings.to = open_memstream(&text, &n);
    table = table_new(&settings);
    table_cell(table, cell);
    table_cell(table, cell);
    FUZZ_CHECK(table_end(table, false, &err) == 0);
    fclose(settings.to);
    if (format == TABLE_TEXT)
        check_text((struct str){ text, n });
    else
        check_csv((struct str){ text, n });
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = { (const char *)data, size };

    if (size > 4096)
        return 0;
    check_moment(text);
    check_job(text);
    check_table(text, TABLE_TEXT, 0);
    check_table(text, TABLE_TEXT, size % 40);
    check_table(text, TABLE_CSV, 0);
    return 0;
}
