/* SPDX-License-Identifier: GPL-2.0-or-later */
/* prometheus.io, "Exposition formats", text format 0.0.4; the Pushgateway's README, "URL": the
 * labels job, instance and step are the group's, which the Pushgateway adds to all that is in it.
 */
#include "plugin/text.h"

#include "base/base64.h"
#include "base/num.h"

/* Where text is written to. Past the end nothing is, and `is_over` stays set. */
struct out {
    char *to;
    size_t room, n;
    bool is_over;
};

static void put(struct out *out, struct str s)
{
    out->is_over |= s.n > out->room - out->n;
    if (out->is_over)
        return;
    memcpy(out->to + out->n, s.p, s.n);
    out->n += s.n;
}

static void put_text(struct out *out, const char *text)
{
    put(out, str_of(text));
}

static void put_u64(struct out *out, uint64_t value)
{
    char digits[NUM_U64_MAX];

    put(out, (struct str){ digits, num_put_u64(digits, value) });
}

static void put_double(struct out *out, double value)
{
    char digits[NUM_DOUBLE_MAX];

    put(out, (struct str){ digits, num_put_double(digits, value) });
}

/* A text of struct profile_step, or a sensor: as whoever reads it can take it. No longer than it
 * was, for the agent has no more room. */
struct clean {
    char text[sizeof(((struct profile_step *)NULL)->node)];
    size_t n;
};

static struct clean clean(const char *text)
{
    struct clean clean;

    clean.n = str_copy_printable(clean.text, sizeof(clean.text), str_of(text));
    return clean;
}

static void put_escaped(struct out *out, const char *text)
{
    struct clean value = clean(text);

    for (size_t i = 0; i < value.n; i++) {
        if (value.text[i] == '"' || value.text[i] == '\\')
            put(out, STR("\\"));
        put(out, (struct str){ value.text + i, 1 });
    }
}

static void put_label(struct out *out, const char *name, const char *value)
{
    put_text(out, name);
    put(out, STR("=\""));
    put_escaped(out, value);
    put(out, STR("\""));
}

/* Those that are not the group's and can be wished for. */
static const struct extra {
    enum profile_label bit;
    const char *name;
    size_t offset;
} extras[] = {
    { PROFILE_LABEL_USER, "user", offsetof(struct profile_step, user) },
    { PROFILE_LABEL_ACCOUNT, "account", offsetof(struct profile_step, account) },
    { PROFILE_LABEL_PARTITION, "partition", offsetof(struct profile_step, partition) },
    { PROFILE_LABEL_CLUSTER, "cluster", offsetof(struct profile_step, cluster) },
};

/* NULL: it is not wanted, or not known. */
static const char *value_of(const struct extra *extra, const struct profile_step *step,
                            unsigned wanted)
{
    const char *value = (const char *)step + extra->offset;

    return wanted & extra->bit && value[0] ? value : NULL;
}

/* What an exposition is made of. */
struct exposition {
    const struct samples *samples;
    const struct profile_step *step;
    enum profile_names names;
    struct str extras; /* `,user="a",account="b"`, the same in all that have it */
};

static void put_extras(struct out *out, const struct profile_step *step, unsigned wanted)
{
    for (size_t i = 0; i < COUNT(extras); i++) {
        const char *value = value_of(&extras[i], step, wanted);

        if (!value)
            continue;
        put(out, STR(","));
        put_label(out, extras[i].name, value);
    }
}

static void put_header(struct out *out, const struct profile_metric *metric)
{
    put(out, STR("# HELP "));
    put_text(out, metric->name);
    put(out, STR(" "));
    put_text(out, metric->help);
    put(out, STR("\n# TYPE "));
    put_text(out, metric->name);
    put(out, STR(" "));
    put_text(out, metric->type);
    put(out, STR("\n"));
}

static void put_task_label(struct out *out, uint32_t task)
{
    put(out, STR("task=\""));
    put_u64(out, task);
    put(out, STR("\""));
}

/* As the original plugin would have, had it told tasks apart. */
static void put_original_labels(struct out *out, const struct samples_view *view)
{
    if (view->kind != PROFILE_OF_TASK)
        return;
    put(out, STR("{"));
    put_task_label(out, view->task);
    put(out, STR("}"));
}

static void put_labels(struct out *out, const struct exposition *exposition,
                       const struct samples_view *view, const char *sensor)
{
    put(out, STR("{slurm_job=\""));
    put_u64(out, exposition->step->job_id);
    put(out, STR("\""));
    if (view->kind == PROFILE_OF_TASK) {
        put(out, STR(","));
        put_task_label(out, view->task);
    }
    if (sensor[0]) {
        put(out, STR(","));
        put_label(out, "sensor", sensor);
    }
    put(out, exposition->extras);
    put(out, STR("}"));
}

static void put_sample(struct out *out, const struct exposition *exposition,
                       const struct samples_view *view, const struct samples_value *value)
{
    put_text(out, value->metric->name);
    if (value->metric->is_original)
        put_original_labels(out, view);
    else
        put_labels(out, exposition, view, value->sensor);
    put(out, STR(" "));
    put_double(out, value->value);
    put(out, STR("\n"));
}

static void put_family(struct out *out, const struct exposition *exposition,
                       const struct profile_metric *metric)
{
    size_t begin = out->n, n = samples_count(exposition->samples);
    struct samples_view view;

    for (size_t i = 0; i < n && !out->is_over; i++) {
        if (!samples_read(exposition->samples, i, exposition->names, &view))
            continue;
        for (size_t k = 0; k < view.n; k++) {
            if (view.values[k].metric != metric)
                continue;
            if (out->n == begin)
                put_header(out, metric);
            put_sample(out, exposition, &view, &view.values[k]);
        }
    }
}

size_t text_exposition(const struct samples *samples, const struct profile_step *step,
                       const struct profile_settings *settings, char *to, size_t room,
                       size_t *ret_left_out)
{
    char extra_labels[2 * (sizeof(step->user) + sizeof(step->account) + sizeof(step->partition) +
                           sizeof(step->cluster)) +
                      sizeof(",user=\"\",account=\"\",partition=\"\",cluster=\"\"")];
    struct out extra_out = { .to = extra_labels, .room = sizeof(extra_labels) };
    struct out out = { .to = to, .room = room };
    struct exposition exposition = { .samples = samples, .step = step };

    put_extras(&extra_out, step, settings->labels);
    exposition.extras = (struct str){ extra_labels, extra_out.n };
    *ret_left_out = 0;
    for (size_t i = 0; i < n_profile_metrics; i++) {
        size_t begin = out.n;

        exposition.names =
            profile_metrics[i].is_original ? PROFILE_NAMES_ORIGINAL : PROFILE_NAMES_NEW;
        if (!(settings->names & exposition.names))
            continue;
        put_family(&out, &exposition, &profile_metrics[i]);
        if (out.is_over) {
            out.n = begin;
            out.is_over = false;
            ++*ret_left_out;
        }
    }
    return out.n;
}

/* A field of a line: without spaces, and there. */
static void put_word(struct out *out, const char *text)
{
    struct clean word = clean(text);

    for (size_t i = 0; i < word.n; i++)
        if (word.text[i] == ' ')
            word.text[i] = '?';
    put(out, word.n ? (struct str){ word.text, word.n } : STR("-"));
}

static void put_head(struct out *out, const struct profile_step *step)
{
    put(out, STR("sonde-profile 1\nstep "));
    put_u64(out, step->job_id);
    put(out, STR(" "));
    put_word(out, step->step);
    put(out, STR(" "));
    put_word(out, step->node);
    put(out, STR("\n"));
}

static void put_label_lines(struct out *out, const struct profile_step *step, unsigned wanted)
{
    for (size_t i = 0; i < COUNT(extras); i++) {
        const char *value = value_of(&extras[i], step, wanted);
        struct clean text;

        if (!value)
            continue;
        text = clean(value);
        put(out, STR("label "));
        put_text(out, extras[i].name);
        put(out, STR(" "));
        put(out, (struct str){ text.text, text.n });
        put(out, STR("\n"));
    }
}

static void put_dataset(struct out *out, const struct samples_view *view)
{
    static const char *const kinds[PROFILE_KINDS] = {
        [PROFILE_OF_TASK] = "task ",
        [PROFILE_OF_ENERGY] = "energy",
        [PROFILE_OF_NETWORK] = "network",
        [PROFILE_OF_FILESYSTEM] = "filesystem",
    };

    put(out, STR("dataset "));
    put_text(out, kinds[view->kind]);
    if (view->kind == PROFILE_OF_TASK)
        put_u64(out, view->task);
    put(out, STR("\n"));
    for (size_t i = 0; i < view->n; i++) {
        put_text(out, view->values[i].metric->name);
        put(out, STR(" "));
        put_double(out, view->values[i].value);
        put_text(out, view->values[i].sensor[0] ? " " : "");
        put_text(out, view->values[i].sensor);
        put(out, STR("\n"));
    }
}

size_t text_message(const struct samples *samples, const struct profile_step *step,
                    const struct profile_settings *settings, size_t *next, char *to, size_t room)
{
    struct out out = { .to = to, .room = room };
    size_t head, n = samples_count(samples);
    struct samples_view view;

    put_head(&out, step);
    put_label_lines(&out, step, settings->labels);
    put(&out, STR("every "));
    put_u64(&out, settings->frequency_seconds);
    put(&out, STR("\n"));
    head = out.n;
    if (out.is_over)
        return 0;
    for (; *next < n; ++*next) {
        size_t begin = out.n;

        if (!samples_read(samples, *next, settings->names, &view) || !view.n)
            continue;
        put_dataset(&out, &view);
        if (!out.is_over)
            continue;
        out.n = begin;
        out.is_over = false;
        if (begin > head)
            break;
    }
    return out.n > head ? out.n : 0;
}

size_t text_farewell(const struct profile_step *step, char *to, size_t room)
{
    struct out out = { .to = to, .room = room };

    put_head(&out, step);
    put(&out, STR("end\n"));
    return out.is_over ? 0 : out.n;
}

/* Not "." or "..", which are taken out of paths on the way. */
static bool is_plain_in_path(struct str s)
{
    size_t n_dots = 0;

    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');

        if (!is_letter && c != '-' && c != '_' && c != '.')
            return false;
        n_dots += c == '.';
    }
    return n_dots < s.n;
}

static void put_group_label(struct out *out, const char *name, const char *text)
{
    struct clean value = clean(text);
    char digits[2 * sizeof(value.text)];
    struct str bytes = { value.text, value.n };
    bool is_plain = is_plain_in_path(bytes);

    put(out, STR("/"));
    put_text(out, name);
    put_text(out, is_plain ? "/" : "@base64/");
    if (!is_plain)
        bytes = (struct str){ digits, base64_write_web(digits, bytes) };
    put(out, bytes.n ? bytes : STR("=")); /* how the Pushgateway spells an empty value */
}

size_t text_group_path(const struct profile_step *step, char *to, size_t room)
{
    struct out out = { .to = to, .room = room };

    put(&out, STR("/metrics/job/"));
    put_u64(&out, step->job_id);
    put_group_label(&out, "instance", step->node);
    put_group_label(&out, "step", step->step);
    put(&out, (struct str){ "", 1 });
    return out.is_over ? 0 : out.n - 1;
}
