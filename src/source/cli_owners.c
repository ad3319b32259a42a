/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whose each job is, from squeue(1) with the few fields of cli_format.h. Some sites have a program
 * of their own in its place that prints what prometheus-cluster-exporter asks for, whatever it is
 * asked: then there is no token in the answer, and its lines are words. */
#include "source/cli.h"
#include "source/cli_format.h"

enum { WORDS_MAX = 3 };

struct owners_answer {
    struct owned owned;
    bool has_tokens; /* somewhere in the answer: lines without are none of squeue's */
    size_t room;     /* of the section's array */
};

static struct job owned_job(uint32_t id, uint32_t user_id)
{
    return (struct job){
        .id = id,
        .array_task_id = MODEL_UNKNOWN_U32,
        .tasks = 1,
        .user_id = user_id,
        .state = JOB_STATE_NONE,
        .cpus = MODEL_UNKNOWN_U32,
        .node_count = MODEL_UNKNOWN_U32,
        .memory_bytes = MODEL_UNKNOWN_U64,
        .time_limit_minutes = MODEL_UNKNOWN_U32,
        .priority = MODEL_UNKNOWN_U64,
    };
}

/* How many there are; one more than the most if there are more. */
static size_t split_words(struct str line, struct str words[WORDS_MAX])
{
    size_t n = 0;

    for (line = str_trim(line); line.n; line = str_trim(line)) {
        size_t end = 0;

        if (n == WORDS_MAX)
            return WORDS_MAX + 1;
        while (end < line.n && line.p[end] != ' ' && line.p[end] != '\t')
            end++;
        words[n++] = str_head(line, end);
        line = str_skip(line, end);
    }
    return n;
}

bool owner_line_read(struct answer *answer, struct str line, struct job *ret)
{
    struct str words[WORDS_MAX];
    size_t n = split_words(line, words);
    uint32_t id = n ? answer_u32(words[0], 0) : 0;

    if (!id || n < WORDS_MAX - 1 || n > WORDS_MAX)
        return false;
    *ret = owned_job(id, MODEL_UNKNOWN_U32);
    ret->user = answer_name(answer, words[n - 1]);
    ret->account = n == WORDS_MAX ? answer_name(answer, words[1]) : 0;
    return true;
}

/* Where it begins, or the length of the text. */
static size_t find_token(struct str text, const char *token)
{
    for (struct str rest = text;; rest = str_skip(rest, 1)) {
        rest = str_skip(rest, str_find(rest, token[0]));
        if (rest.n < FRAME_TOKEN)
            return text.n;
        if (memcmp(rest.p, token, FRAME_TOKEN) == 0)
            return (size_t)(rest.p - text.p);
    }
}

static bool read_fields(struct answer *answer, struct str line, struct job *ret)
{
    const char *token = ((const struct owned *)answer)->token;
    struct str fields[OWNERS_N_FIELDS];
    uint32_t id;

    for (size_t i = 0; i < OWNERS_N_FIELDS; i++) {
        size_t end = find_token(line, token);

        if (end == line.n)
            return false;
        fields[i] = str_head(line, end);
        line = str_skip(line, end + FRAME_TOKEN);
    }
    id = answer_u32(fields[OWNERS_JOB_ID], 0);
    if (!id || line.n)
        return false;
    *ret = owned_job(id, answer_u32(fields[OWNERS_USER_ID], MODEL_UNKNOWN_U32));
    ret->user = answer_user(answer, fields[OWNERS_USER_NAME], ret->user_id);
    ret->account = answer_name(answer, fields[OWNERS_ACCOUNT]);
    return true;
}

/* What looked like words was said before squeue said anything. */
static void forget_words(struct section *section)
{
    section->skipped += section->jobs.n;
    section->jobs.n = 0;
}

static void read_line(void *ctx, struct str line)
{
    struct owners_answer *all = ctx;
    struct answer *answer = ctx;
    struct jobs *jobs = &answer->section->jobs;
    bool has_token = find_token(line, all->owned.token) < line.n;
    struct job job;

    if (has_token && !all->has_tokens)
        forget_words(answer->section);
    all->has_tokens |= has_token;
    if (has_token ? read_fields(answer, line, &job)
                  : !all->has_tokens && owner_line_read(answer, line, &job)) {
        jobs->job =
            section_grow(answer->section, jobs->job, jobs->n, &all->room, sizeof(*jobs->job));
        jobs->job[jobs->n++] = job;
    } else if (str_trim(line).n) {
        answer_leave_out(answer, str_head(line, find_token(line, all->owned.token)));
    }
}

static void begin(struct answer *answer)
{
    lined_begin(answer, read_line);
    frame_make_token(((struct owned *)answer)->token);
    answer->section->jobs.lacks_features = true;
    answer->section->jobs.lacks_qos = true;
}

static void put_format(const struct answer *answer, struct buf *to)
{
    put_format_of(owners_fields, OWNERS_N_FIELDS, ((const struct owned *)answer)->token, to);
}

static int end(struct answer *answer, struct err *err)
{
    struct owners_answer *all = (struct owners_answer *)answer;
    struct lines *lines = &all->owned.lined.lines;
    struct str last = buf_str(&lines->rest);

    /* squeue ends its lines; what stands in its place may not end the last one. */
    if (!all->has_tokens && find_token(last, all->owned.token) == last.n)
        lines_end(lines);
    return lined_end(answer, &answer->section->jobs.n, err);
}

static void release(struct answer *answer)
{
    lined_free(answer);
    arena_adopt(&answer->section->arena, answer->section->jobs.job);
}

const struct answer_class answer_owners = {
    .size = sizeof(struct owners_answer),
    .begin = begin,
    .put_format = put_format,
    .feed = lined_feed,
    .end = end,
    .free = release,
};
