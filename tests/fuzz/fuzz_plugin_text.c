/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the profile plugin sends, of a step with any names: seven texts parted by line feeds (step,
 * node, user, account, partition, cluster, a sensor), then numbers, eight bytes each. The agent
 * reads what was sent to it; of what a Pushgateway gets, decoders of its own read labels and path:
 * what comes out is what was given. */
#include "plugin/text.h"

#include "source/profile_message.h"

#include "shown_text.h"

#include <stdio.h>

enum { MOST_BYTES = 4096, ROOM = 64 * 1024, NUMBERS = 8 };

static const struct samples_field task_fields[] = {
    { "CPUTime", true }, { "CPUUtilization", true }, { "RSS", false }, { "ReadMB", true }
};

static struct samples *make_samples(struct str *rest, const char *sensor)
{
    static const struct profile_quirks quirks;
    struct samples *samples = samples_new(&quirks);
    const struct samples_field energy_fields[] = { { "Power", false }, { sensor, false } };
    uint64_t numbers[NUMBERS] = { 0 };

    memcpy(numbers, rest->p, rest->n < sizeof(numbers) ? rest->n : sizeof(numbers));
    for (uint32_t task = 0; task < 2; task++)
        samples_add(samples, samples_dataset(samples, PROFILE_OF_TASK, task, task_fields, 4),
                    numbers + task);
    samples_add(samples, samples_dataset(samples, PROFILE_OF_ENERGY, 0, energy_fields, 2),
                numbers + 6);
    return samples;
}

/* --- the Pushgateway's --- */

/* The value of a label, whose quote has been taken; takes the other quote too. */
static struct str decode_value(struct str *rest, char *to, size_t room)
{
    size_t n = 0;

    while (!str_starts(*rest, STR("\""))) {
        if (str_starts(*rest, STR("\\"))) {
            *rest = str_skip(*rest, 1);
            FUZZ_CHECK(str_starts(*rest, STR("\\")) || str_starts(*rest, STR("\"")));
        }
        FUZZ_CHECK(rest->n && rest->p[0] != '\n' && n < room);
        to[n++] = rest->p[0];
        *rest = str_skip(*rest, 1);
    }
    *rest = str_skip(*rest, 1);
    return (struct str){ to, n };
}

/* What a field's room holds of it: a character is not cut. */
static void check_value(struct str name, struct str value, const struct profile_step *step)
{
    const struct {
        struct str name;
        const char *text;
    } given[] = {
        { STR("user"), step->user },
        { STR("account"), step->account },
        { STR("partition"), step->partition },
        { STR("cluster"), step->cluster },
    };

    for (size_t i = 0; i < COUNT(given); i++)
        if (str_eq(name, given[i].name)) {
            FUZZ_CHECK(is_shown_as(str_of(given[i].text), value, true), "%.*s", STR_ARG(value));
            return;
        }
    FUZZ_CHECK(str_eq(name, STR("slurm_job")) || str_eq(name, STR("task")) ||
               str_eq(name, STR("sensor")));
}

static void check_line(struct str line, const struct profile_step *step)
{
    static const struct str number = STR_INIT("0123456789.e+-");
    size_t brace = str_find(line, '{');
    char value[1024];

    if (str_starts(line, STR("# HELP ")) || str_starts(line, STR("# TYPE ")))
        return;
    FUZZ_CHECK(profile_metric_find(str_head(line, brace < line.n ? brace : str_find(line, ' '))));
    if (brace < line.n)
        for (bool is_last = false; !is_last;) {
            struct str name;

            line = str_skip(line, str_find(line, brace ? '{' : ',') + 1);
            brace = 0;
            name = str_cut(&line, '=');
            FUZZ_CHECK(str_starts(line, STR("\"")));
            line = str_skip(line, 1);
            check_value(name, decode_value(&line, value, sizeof(value)), step);
            is_last = str_starts(line, STR("} "));
            FUZZ_CHECK(is_last || str_starts(line, STR(",")));
        }
    line = str_skip(line, str_find(line, ' ') + 1);
    FUZZ_CHECK(line.n > 0);
    for (size_t i = 0; i < line.n; i++)
        FUZZ_CHECK(memchr(number.p, line.p[i], number.n), "%.*s", STR_ARG(line));
}

static void check_exposition(const struct samples *samples, const struct profile_step *step,
                             const struct profile_settings *settings)
{
    static char text[ROOM];
    size_t left_out, n = text_exposition(samples, step, settings, text, sizeof(text), &left_out);
    struct str rest = { text, n };

    FUZZ_CHECK(n <= sizeof(text) && left_out == 0 && (n == 0 || text[n - 1] == '\n'));
    while (rest.n)
        check_line(str_cut(&rest, '\n'), step);
}

/* RFC 4648, 5, without padding. */
static size_t decode_base64(struct str text, char *to)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    uint32_t bits = 0;
    size_t n = 0;

    for (size_t i = 0; i < text.n; i++) {
        const char *digit = memchr(digits, text.p[i], sizeof(digits) - 1);

        FUZZ_CHECK(digit, "%.*s", STR_ARG(text));
        bits = bits << 6 | (uint32_t)(digit - digits);
        if (i % 4)
            to[n++] = (char)(bits >> (6 - 2 * (i % 4)));
    }
    FUZZ_CHECK(text.n % 4 != 1);
    return n;
}

static void check_part(struct str *path, const char *name, const char *given)
{
    struct str label = str_cut(path, '/'), value = str_cut(path, '/');
    bool is_encoded = str_find(label, '@') < label.n;
    char bytes[1024];
    size_t n = 0;

    FUZZ_CHECK(str_eq(str_head(label, str_find(label, '@')), str_of(name)) && value.n < 800);
    if (is_encoded) {
        FUZZ_CHECK(str_eq(str_skip(label, strlen(name)), STR("@base64")));
        if (!str_eq(value, STR("=")))
            n = decode_base64(value, bytes);
        value = (struct str){ bytes, n };
    }
    FUZZ_CHECK(is_shown_as(str_of(given), value, true), "%.*s", STR_ARG(value));
}

static void check_path(const struct profile_step *step)
{
    char text[2048];
    size_t n = text_group_path(step, text, sizeof(text));
    struct str path = { text, n };

    FUZZ_CHECK(n > 0 && text[n] == '\0' && str_starts(path, STR("/metrics/job/42/")));
    path = str_skip(path, strlen("/metrics/job/42/"));
    check_part(&path, "instance", step->node);
    check_part(&path, "step", step->step);
    FUZZ_CHECK(!path.p);
}

/* --- the agent's --- */

/* A field of a line has no spaces, and is there. */
static void check_word(const char *given, const char *got)
{
    char word[256];

    snprintf(word, sizeof(word), "%s", given[0] ? given : "-");
    for (char *c = word; *c; c++)
        if (*c == ' ')
            *c = '\x01'; /* what is shown as "?" */
    FUZZ_CHECK(is_shown_as(str_of(word), str_of(got), true), "%s", got);
}

static void check_labels(const struct profile_step *step, const struct profile_message *message)
{
    FUZZ_CHECK(message->id.job_id == step->job_id);
    check_word(step->step, message->id.step);
    check_word(step->node, message->id.node);
    FUZZ_CHECK(is_shown_as(str_of(step->user), str_of(message->labels.user), true));
    FUZZ_CHECK(is_shown_as(str_of(step->account), str_of(message->labels.account), true));
    FUZZ_CHECK(is_shown_as(str_of(step->partition), str_of(message->labels.partition), true));
    FUZZ_CHECK(is_shown_as(str_of(step->cluster), str_of(message->labels.cluster), true));
}

static void check_message(const struct samples *samples, const struct profile_step *step,
                          const struct profile_settings *settings)
{
    static char text[PROFILE_MESSAGE];
    struct profile_message message;
    struct profile_sample sample;
    size_t next = 0, n, n_got = 0, n_expected = 0;
    struct samples_view view;
    struct err err;

    while ((n = text_message(samples, step, settings, &next, text, sizeof(text)))) {
        FUZZ_CHECK(profile_message_read((struct str){ text, n }, &message, &err) == 0, "%s: %.*s",
                   err.text, (int)n, text);
        FUZZ_CHECK(!message.is_end && message.every_seconds == settings->frequency_seconds);
        check_labels(step, &message);
        while (profile_message_next(&message, &sample))
            n_got++;
    }
    for (size_t i = 0; i < samples_count(samples); i++)
        if (samples_read(samples, i, settings->names, &view))
            n_expected += view.n;
    FUZZ_CHECK(n_got == n_expected, "%zu of %zu", n_got, n_expected);
    n = text_farewell(step, text, sizeof(text));
    FUZZ_CHECK(n && profile_message_read((struct str){ text, n }, &message, &err) == 0);
    FUZZ_CHECK(message.is_end);
}

/* As much of the next line as there is room for. */
static void take_text(struct str *rest, char *to, size_t room)
{
    struct str line = rest->p ? str_cut(rest, '\n') : STR("");

    snprintf(to, room, "%.*s", STR_ARG(line));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct profile_settings settings = { .names = PROFILE_NAMES_BOTH,
                                               .labels = ~0u,
                                               .frequency_seconds = 10 };
    struct str rest = { (const char *)data, size };
    struct profile_step step = { .job_id = 42 };
    struct samples *samples;
    char sensor[64];

    if (size == 0 || size > MOST_BYTES)
        return 0;
    take_text(&rest, step.step, sizeof(step.step));
    take_text(&rest, step.node, sizeof(step.node));
    take_text(&rest, step.user, sizeof(step.user));
    take_text(&rest, step.account, sizeof(step.account));
    take_text(&rest, step.partition, sizeof(step.partition));
    take_text(&rest, step.cluster, sizeof(step.cluster));
    take_text(&rest, sensor, sizeof(sensor));
    if (!rest.p)
        rest = STR("");
    samples = make_samples(&rest, sensor);
    check_exposition(samples, &step, &settings);
    check_path(&step);
    check_message(samples, &step, &settings);
    samples_free(samples);
    return 0;
}
