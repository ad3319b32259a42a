/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An agent's answer: every line is a sample, a comment, empty, or counted; what is seen has names
 * that may be such, and written again it is read as the same. */
#include "base/arena.h"
#include "base/buf.h"
#include "metric/reader.h"

#include "fuzz.h"

#include <math.h>

static void put_escaped(struct buf *to, struct str value)
{
    for (size_t i = 0; i < value.n; i++) {
        if (value.p[i] == '\n')
            buf_text(to, "\\n");
        else if (value.p[i] == '"' || value.p[i] == '\\')
            buf_printf(to, "\\%c", value.p[i]);
        else
            buf_byte(to, value.p[i]);
    }
}

static void compare(void *ctx, const struct metric_sample *again)
{
    const struct metric_sample *sample = ctx;

    FUZZ_CHECK(str_eq(again->name, sample->name) && again->n_labels == sample->n_labels);
    for (size_t i = 0; i < again->n_labels; i++)
        FUZZ_CHECK(str_eq(again->label[i].name, sample->label[i].name) &&
                   str_eq(again->label[i].value, sample->label[i].value));
    FUZZ_CHECK(again->value == sample->value || (isnan(again->value) && isnan(sample->value)));
}

static void see(void *ctx, const struct metric_sample *sample)
{
    size_t *samples = ctx;
    struct buf text;

    (*samples)++;
    FUZZ_CHECK(sample->name.n && sample->n_labels <= METRIC_READ_LABELS);
    buf_init(&text, 4 * METRIC_READ_LINE);
    buf_put(&text, sample->name);
    buf_byte(&text, '{');
    for (size_t i = 0; i < sample->n_labels; i++) {
        FUZZ_CHECK(sample->label[i].name.n);
        buf_printf(&text, "%.*s=\"", STR_ARG(sample->label[i].name));
        put_escaped(&text, sample->label[i].value);
        buf_text(&text, "\",");
    }
    buf_text(&text, "} ");
    buf_double(&text, sample->value);
    if (text.n <= METRIC_READ_LINE)
        FUZZ_CHECK(metric_read(buf_str(&text), compare, (void *)(uintptr_t)sample) == 0, "%s",
                   text.p);
    buf_free(&text);
}

static size_t count_lines(struct str text)
{
    size_t n = 0;

    while (text.p && text.n) {
        struct str line = str_cut(&text, '\n');

        n += line.n > 0;
    }
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = { (const char *)data, size };
    size_t samples = 0, passed_over = metric_read(text, see, &samples);

    FUZZ_CHECK(samples + passed_over <= count_lines(text));
    return 0;
}
