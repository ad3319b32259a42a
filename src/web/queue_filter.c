/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Matches the jobs of a board with a filter. */
#include "web/queue_filter.h"

#include "base/list.h"
#include "model/hostlist.h"
#include "model/job_times.h"

#include <stdlib.h>

enum { YES = 1, NO }; /* 0: not judged yet */
enum {
    ID_ROOM = 100,
    LIST_HOSTS_MAX = 1 << 20, /* of one job */
};

static void put_words(struct map *map, const struct words *words)
{
    for (size_t i = 0; i < words->n; i++)
        if (words->word[i].n)
            map_put(map, words->word[i]);
}

static bool is_in(const struct map *map, struct str word)
{
    return map_get(map, word) != NULL;
}

/* As store_jobs has it. */
static int check_words(const struct queue_question *question, struct err *err)
{
    const struct job_filter *filter = question->filter;
    const struct words *words[] = {
        &filter->clusters,     &filter->users,         &filter->accounts,
        &filter->partitions,   &filter->qos,           &filter->states,
        &filter->nodes,        &filter->gpu_types,     &filter->names,
        &filter->reservations, &filter->visible_users, &filter->visible_accounts,
        &question->reasons,
    };
    size_t most = filter->n_ids;

    for (size_t i = 0; i < COUNT(words); i++)
        most = words[i]->n > most ? words[i]->n : most;
    if (most > STORE_WORDS_MAX)
        return err_set(err, E2BIG, "name at most %d of one kind", STORE_WORDS_MAX);
    return 0;
}

static int put_hosts(struct queue_words *words, struct err *err)
{
    const struct words *nodes = &words->question->filter->nodes;

    for (size_t i = 0; i < nodes->n; i++) {
        struct hostlist list;
        int code = hostlist_expand(nodes->word[i], &words->arena, STORE_NODES_MAX, &list, err);

        if (code == -EFBIG)
            return err_set(err, E2BIG, "name at most %d nodes", STORE_NODES_MAX);
        if (code < 0)
            return err_prefix(err, "nodes");
        for (size_t k = 0; k < list.n; k++)
            map_put(&words->hosts, list.hosts[k]);
        if (words->hosts.n > STORE_NODES_MAX)
            return err_set(err, E2BIG, "name at most %d nodes", STORE_NODES_MAX);
    }
    return 0;
}

/* Long or short: the one word that squeue shows of a job, so that a list has as many as were
 * counted. */
static void put_states(struct queue_words *words)
{
    const struct words *states = &words->question->filter->states;

    words->states = ARENA_ARRAY(&words->arena, bool, n_job_state_words);
    for (size_t i = 0; i < states->n; i++) {
        struct job_state state = JOB_STATE_NONE;

        if (job_state_add(&state, states->word[i]) ||
            str_eq_nocase(states->word[i], STR("UNKNOWN")))
            words->states[job_state_index(state)] = true;
    }
}

static char small(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

static void put_text(struct queue_words *words)
{
    struct str text = words->question->text;
    char *to = arena_alloc(&words->arena, text.n + 1);

    words->is_text_of_id = true;
    for (size_t i = 0; i < text.n; i++) {
        to[i] = small(text.p[i]);
        words->is_text_of_id &= (to[i] >= '0' && to[i] <= '9') || to[i] == '_' || to[i] == '+';
    }
    words->text = (struct str){ to, text.n };
}

static int by_id(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

static void put_ids(struct queue_words *words)
{
    const struct job_filter *filter = words->question->filter;

    words->ids = ARENA_ARRAY(&words->arena, uint32_t, filter->n_ids);
    for (size_t i = 0; i < filter->n_ids; i++)
        words->ids[i] = filter->ids[i];
    qsort(words->ids, filter->n_ids, sizeof(*words->ids), by_id);
}

int queue_words_init(struct queue_words *words, const struct queue_question *question,
                     struct err *err)
{
    int code = check_words(question, err);

    *words = (struct queue_words){ .question = question };
    map_init(&words->partitions, &words->arena);
    map_init(&words->hosts, &words->arena);
    map_init(&words->gpu_types, &words->arena);
    map_init(&words->reasons, &words->arena);
    if (code < 0)
        return code;
    put_words(&words->partitions, &question->filter->partitions);
    put_words(&words->gpu_types, &question->filter->gpu_types);
    put_words(&words->reasons, &question->reasons);
    put_states(words);
    put_text(words);
    put_ids(words);
    return put_hosts(words, err);
}

void queue_words_free(struct queue_words *words)
{
    map_free(&words->partitions);
    map_free(&words->hosts);
    map_free(&words->gpu_types);
    map_free(&words->reasons);
    arena_clear(&words->arena);
}

bool queue_words_are_none(const struct queue_words *words)
{
    const struct queue_question *q = words->question;
    const struct job_filter *f = q->filter;

    return q->viewer->is_staff && !q->text.n && !q->reasons.n && !f->clusters.n && !f->users.n &&
           !f->accounts.n && !f->partitions.n && !f->qos.n && !f->states.n && !f->nodes.n &&
           !f->gpu_types.n && !f->names.n && !f->reservations.n && !f->visible_users.n &&
           !f->visible_accounts.n && !f->n_ids && f->array_task_id == MODEL_UNKNOWN_U32 &&
           f->het_offset == MODEL_UNKNOWN_U32 && ((!f->from && !f->to) || f->by_end) &&
           !f->min_gpus && !f->min_cpus && !f->min_seconds;
}

/* ---- judges, each asked once for each symbol ---- */

static struct str text_of(const struct queue_filter *filter, symbol s)
{
    return section_text(filter->cluster->jobs, s);
}

static bool is_in_partition(struct queue_filter *filter, symbol s)
{
    for (struct str rest = text_of(filter, s); rest.p;)
        if (is_in(&filter->words->partitions, str_cut(&rest, ',')))
            return true;
    return false;
}

static bool has_host(struct queue_filter *filter, symbol s)
{
    struct str text = text_of(filter, s);
    struct hostlist list;
    bool has = false;

    if (str_find(text, '[') == text.n && str_find(text, ',') == text.n)
        return is_in(&filter->words->hosts, text);
    if (hostlist_expand(text, &filter->lists, LIST_HOSTS_MAX, &list, NULL) == 0)
        for (size_t i = 0; i < list.n && !has; i++)
            has = is_in(&filter->words->hosts, list.hosts[i]);
    arena_clear(&filter->lists);
    return has;
}

static bool has_gpu_type(struct queue_filter *filter, symbol s)
{
    const struct gres_list *list = gres_read(&filter->gpus, s);

    for (size_t i = 0; i < list->n; i++)
        if (list->item[i].count && list->item[i].type &&
            is_in(&filter->words->gpu_types, gres_type_name(&filter->gpus, list->item[i].type)))
            return true;
    return false;
}

static bool has_reason(struct queue_filter *filter, symbol s)
{
    return is_in(&filter->words->reasons,
                 groups_name(&filter->reasons.groups, groups_first(&filter->reasons.groups, s)));
}

static bool contains(struct str text, struct str small_letters)
{
    for (size_t i = 0; i + small_letters.n <= text.n; i++) {
        size_t n = 0;

        while (n < small_letters.n && small(text.p[i + n]) == small_letters.p[n])
            n++;
        if (n == small_letters.n)
            return true;
    }
    return false;
}

static bool has_text(struct queue_filter *filter, symbol s)
{
    return contains(text_of(filter, s), filter->words->text);
}

static bool is_visible_user(struct queue_filter *filter, symbol s)
{
    return viewer_may_see_user(filter->words->question->viewer, text_of(filter, s));
}

static bool is_visible_account(struct queue_filter *filter, symbol s)
{
    return viewer_may_see_account(filter->words->question->viewer, text_of(filter, s));
}

/* ---- tests ---- */

static struct queue_test make_test(struct queue_filter *filter, size_t offset, queue_judge *judge)
{
    size_t n = symbols_count(&filter->cluster->jobs->symbols);

    return (struct queue_test){ offset, judge, arena_alloc(&filter->arena, n) };
}

/* Any of these words, which the section's table of symbols knows or not: all is judged at once. */
static struct queue_test make_word_test(struct queue_filter *filter, size_t offset,
                                        const struct words *words)
{
    const struct map *map = &filter->cluster->jobs->symbols.map;
    struct queue_test test = make_test(filter, offset, NULL);

    memset(test.verdict, NO, map->n);
    for (size_t i = 0; i < words->n; i++) {
        void **place = words->word[i].n ? map_get(map, words->word[i]) : NULL;

        if (place)
            test.verdict[PART_OF(place, struct map_entry, value) - map->entries] = YES;
    }
    return test;
}

static bool passes(struct queue_filter *filter, const struct queue_test *test,
                   const struct job *job)
{
    symbol s;

    memcpy(&s, (const char *)job + test->offset, sizeof(s));
    if (!test->verdict[s])
        test->verdict[s] = test->judge(filter, s) ? YES : NO;
    return test->verdict[s] == YES;
}

static void add_word_tests(struct queue_filter *filter)
{
    const struct job_filter *asked = filter->words->question->filter;
    const struct {
        const struct words *words;
        size_t offset;
        queue_judge *judge; /* NULL: the text is the word */
    } rows[] = {
        { &asked->users, offsetof(struct job, user), NULL },
        { &asked->accounts, offsetof(struct job, account), NULL },
        { &asked->qos, offsetof(struct job, qos), NULL },
        { &asked->names, offsetof(struct job, name), NULL },
        { &asked->reservations, offsetof(struct job, reservation), NULL },
        { &asked->partitions, offsetof(struct job, partition), is_in_partition },
        { &asked->nodes, offsetof(struct job, nodes), has_host },
        { &asked->gpu_types, offsetof(struct job, tres), has_gpu_type },
        { &filter->words->question->reasons, offsetof(struct job, reason), has_reason },
    };
    _Static_assert(COUNT(rows) <= COUNT(filter->tests), "there is room for all of them");

    for (size_t i = 0; i < COUNT(rows); i++)
        if (rows[i].words->n)
            filter->tests[filter->n_tests++] =
                rows[i].judge ? make_test(filter, rows[i].offset, rows[i].judge)
                              : make_word_test(filter, rows[i].offset, rows[i].words);
}

static void add_visibility(struct queue_filter *filter)
{
    const struct queue_question *question = filter->words->question;
    const struct job_filter *asked = question->filter;
    const size_t user = offsetof(struct job, user), account = offsetof(struct job, account);

    if (!question->viewer->is_staff) {
        filter->may_see_user = make_test(filter, user, is_visible_user);
        filter->may_see_account = make_test(filter, account, is_visible_account);
    }
    if (asked->visible_users.n || asked->visible_accounts.n) {
        filter->asked_user = make_word_test(filter, user, &asked->visible_users);
        filter->asked_account = make_word_test(filter, account, &asked->visible_accounts);
    }
}

bool queue_filter_init(struct queue_filter *filter, const struct queue_words *words,
                       const struct board_cluster *cluster, const struct queue_cluster *jobs)
{
    if (!jobs->jobs || !board_asks(&words->question->filter->clusters, cluster->name))
        return false;
    *filter = (struct queue_filter){ .words = words, .cluster = jobs };
    gres_reader_init(&filter->gpus, jobs->jobs, STR("gpu"));
    reasons_init(&filter->reasons, jobs->jobs);
    buf_init(&filter->id, ID_ROOM);
    add_word_tests(filter);
    add_visibility(filter);
    if (words->text.n)
        filter->has_text = make_test(filter, 0, has_text);
    return true;
}

void queue_filter_free(struct queue_filter *filter)
{
    gres_reader_free(&filter->gpus);
    reasons_free(&filter->reasons);
    buf_free(&filter->id);
    arena_clear(&filter->arena);
    arena_clear(&filter->lists);
}

/* ---- one job ---- */

/* The queue does not say how long a suspended job has run. */
int64_t queue_elapsed(const struct job *job, int64_t now)
{
    int64_t began = job_began(job), ended = job_ended(job);

    if (!began || (!ended && !job_holds_resources(job->state)) || job->state.base == JOB_SUSPENDED)
        return -1;
    if (!ended)
        ended = now;
    return ended > began ? ended - began : 0;
}

static bool has_state(const struct queue_words *words, struct job_state state)
{
    return !words->question->filter->states.n || words->states[job_state_index(state)];
}

static bool is_id(const struct queue_words *words, uint32_t id)
{
    return id && bsearch(&id, words->ids, words->question->filter->n_ids, sizeof(id), by_id);
}

static bool has_id(const struct queue_words *words, const struct job *job)
{
    const struct job_filter *asked = words->question->filter;

    if (asked->n_ids && !is_id(words, job->id) && !is_id(words, job->array_job_id) &&
        !is_id(words, job->het_job_id))
        return false;
    if (asked->array_task_id != MODEL_UNKNOWN_U32 &&
        (!job->array_job_id || job->array_task_id != asked->array_task_id))
        return false;
    return asked->het_offset == MODEL_UNKNOWN_U32 ||
           (job->het_job_id && job->het_offset == asked->het_offset);
}

/* Waited, ran or ended in the time. */
static bool is_in_time(const struct job_filter *asked, const struct job *job)
{
    int64_t ended = job_ended(job);

    if (asked->by_end)
        return true;
    return (!asked->to || job->submit_time < asked->to) &&
           (!asked->from || !ended || ended >= asked->from);
}

static bool has_amounts(const struct queue_filter *filter, const struct job *job)
{
    const struct queue_question *question = filter->words->question;
    const struct job_filter *asked = question->filter;

    if (asked->min_cpus && (job->cpus == MODEL_UNKNOWN_U32 || job->cpus < asked->min_cpus))
        return false;
    if (asked->min_gpus && !(filter->cluster->gpus[job->tres] >= (double)asked->min_gpus))
        return false;
    return !asked->min_seconds || queue_elapsed(job, question->now) >= asked->min_seconds;
}

/* As people write it: "4711", "4711_7", "4711+1". */
static bool has_text_in_id(struct queue_filter *filter, const struct job *job)
{
    struct buf *id = &filter->id;

    buf_reset(id);
    buf_u64(id, job->id);
    if (job->array_job_id) {
        buf_byte(id, ' ');
        buf_u64(id, job->array_job_id);
        if (job->array_task_id != MODEL_UNKNOWN_U32) {
            buf_byte(id, '_');
            buf_u64(id, job->array_task_id);
        }
    }
    if (job->het_job_id) {
        buf_byte(id, ' ');
        buf_u64(id, job->het_job_id);
        buf_byte(id, '+');
        buf_u64(id, job->het_offset);
    }
    return contains(buf_str(id), filter->words->text);
}

static bool has_text_anywhere(struct queue_filter *filter, const struct job *job)
{
    static const size_t offsets[] = { offsetof(struct job, name), offsetof(struct job, user),
                                      offsetof(struct job, account), offsetof(struct job, nodes) };
    struct queue_test test = filter->has_text;

    for (size_t i = 0; i < COUNT(offsets); i++) {
        test.offset = offsets[i];
        if (passes(filter, &test, job))
            return true;
    }
    return filter->words->is_text_of_id && has_text_in_id(filter, job);
}

static bool passes_either(struct queue_filter *filter, const struct queue_test *a,
                          const struct queue_test *b, const struct job *job)
{
    return !a->verdict || passes(filter, a, job) || passes(filter, b, job);
}

bool queue_filter_takes(struct queue_filter *filter, const struct job *job)
{
    const struct queue_words *words = filter->words;

    if (!passes_either(filter, &filter->may_see_user, &filter->may_see_account, job) ||
        !passes_either(filter, &filter->asked_user, &filter->asked_account, job) ||
        !has_state(words, job->state) || !has_id(words, job) ||
        !is_in_time(words->question->filter, job) || !has_amounts(filter, job))
        return false;
    for (size_t i = 0; i < filter->n_tests; i++)
        if (!passes(filter, &filter->tests[i], job))
            return false;
    if (words->question->reasons.n && !reasons_is_pending(job))
        return false;
    return !filter->has_text.verdict || has_text_anywhere(filter, job);
}
