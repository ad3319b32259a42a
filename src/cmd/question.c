/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Options that select recorded jobs and the store to read. */
#include "cmd/question.h"

#include "base/clock.h"
#include "base/moment.h"
#include "base/num.h"
#include "base/quote.h"
#include "model/hostlist.h"

#include <math.h>
#include <pwd.h>

#define SETTING(member) offsetof(struct question_options, member)
#define LETTER(letter, type, member)                                                               \
    {                                                                                              \
        letter, type, SETTING(member), NULL, NULL, NULL, NULL, "Which jobs", NULL                  \
    }

static const struct option rows_of_question[] = {
    { "store", OPTION_STRING, SETTING(store), "URL", "sqlite:/var/lib/sonde/sonde.db",
      "SONDE_STORE", NULL, "Store", "Where the exporter keeps jobs: sqlite:/path. Only read." },
    { "cluster", OPTION_LIST, SETTING(clusters), "NAME", NULL, NULL, NULL, "Which jobs",
      "Those of this cluster. As with all that take names: several are separated by commas, or the "
      "flag is repeated." },
    LETTER("M", OPTION_LIST, clusters),
    { "user", OPTION_LIST, SETTING(users), "NAME", NULL, NULL, NULL, "Which jobs",
      "Those of this user." },
    LETTER("u", OPTION_LIST, users),
    { "all-users", OPTION_BOOL, SETTING(all_users), NULL, NULL, NULL, NULL, "Which jobs",
      "Those of all users, if none is named." },
    LETTER("a", OPTION_BOOL, all_users),
    { "account", OPTION_LIST, SETTING(accounts), "NAME", NULL, NULL, NULL, "Which jobs",
      "Those of this account." },
    LETTER("A", OPTION_LIST, accounts),
    { "partition", OPTION_LIST, SETTING(partitions), "NAME", NULL, NULL, NULL, "Which jobs",
      "Those in this partition, or that wait for it among others." },
    LETTER("r", OPTION_LIST, partitions),
    { "qos", OPTION_LIST, SETTING(qos), "NAME", NULL, NULL, NULL, "Which jobs",
      "Those with this QOS." },
    LETTER("q", OPTION_LIST, qos),
    { "state", OPTION_LIST, SETTING(states), "STATE", NULL, NULL, NULL, "Which jobs",
      "Those in this state, in full or as squeue shortens it: RUNNING or R. A job that is "
      "RUNNING+COMPLETING is in both." },
    LETTER("s", OPTION_LIST, states),
    { "node", OPTION_LIST, SETTING(nodes), "LIST", NULL, NULL, NULL, "Which jobs",
      "Those that had a node of this list: n1, n[1-4]." },
    LETTER("N", OPTION_LIST, nodes),
    { "gpu-type", OPTION_LIST, SETTING(gpu_types), "TYPE", NULL, NULL, NULL, "Which jobs",
      "Those with GPUs of this type." },
    { "name", OPTION_LIST, SETTING(names), "NAME", NULL, NULL, NULL, "Which jobs",
      "Those with exactly this name; a comma is part of it." },
    { "reservation", OPTION_LIST, SETTING(reservations), "NAME", NULL, NULL, NULL, "Which jobs",
      "Those in this reservation." },
    { "from", OPTION_STRING, SETTING(from), "TIME", NULL, NULL, NULL, "Which jobs",
      "From this time on, in the local time zone: 2026-10-01, 2026-10-01T12:00, 2026-10, 12:00, "
      "today, yesterday, now-1day, now-3hours; with a zone, 2026-10-01T12:00Z; seconds of UTC, "
      "1790812800." },
    LETTER("S", OPTION_STRING, from),
    { "starttime", OPTION_STRING, SETTING(from), "TIME", NULL, NULL, NULL, "Which jobs",
      "The same, as sacct calls it." },
    { "to", OPTION_STRING, SETTING(to), "TIME", NULL, NULL, NULL, "Which jobs",
      "Until this time, itself excluded." },
    LETTER("E", OPTION_STRING, to),
    { "endtime", OPTION_STRING, SETTING(to), "TIME", NULL, NULL, NULL, "Which jobs",
      "The same, as sacct calls it." },
    { "efficiency-below", OPTION_STRING, SETTING(efficiency_below), "RATIO", NULL, NULL, NULL,
      "Which jobs", "Those that have ended and used less of the CPU time they held: 0.1, or 10%." },
    { "efficiency-above", OPTION_STRING, SETTING(efficiency_above), "RATIO", NULL, NULL, NULL,
      "Which jobs", "Those that used more of it." },
    { "min-cpus", OPTION_UINT, SETTING(min_cpus), "NUMBER", NULL, NULL, NULL, "Which jobs",
      "Those with at least so many CPUs." },
    { "min-gpus", OPTION_UINT, SETTING(min_gpus), "NUMBER", NULL, NULL, NULL, "Which jobs",
      "Those with at least so many GPUs." },
    { "min-elapsed", OPTION_DURATION, SETTING(min_elapsed_ns), "DURATION", NULL, NULL, NULL,
      "Which jobs", "Those that ran for at least so long: 10m, 1h30m, 2d." },
};
_Static_assert(COUNT(rows_of_question) == QUESTION_OPTIONS, "as many rows as the header says");

void question_options_rows(size_t offset, struct option rows[QUESTION_OPTIONS])
{
    for (size_t i = 0; i < QUESTION_OPTIONS; i++) {
        rows[i] = rows_of_question[i];
        rows[i].offset += offset;
    }
}

struct words question_words(const struct option_list *list, struct arena *arena)
{
    struct str *words;
    size_t n = 0, most = 0;

    for (size_t i = 0; i < list->n; i++)
        for (struct str rest = list->items[i]; rest.p; most++)
            str_cut(&rest, ',');
    words = ARENA_ARRAY(arena, struct str, most);
    for (size_t i = 0; i < list->n; i++) {
        for (struct str rest = list->items[i]; rest.p;) {
            struct str word = str_trim(str_cut(&rest, ','));

            if (word.n)
                words[n++] = word;
        }
    }
    return (struct words){ words, n };
}

static int check_states(const struct words *states, struct err *err)
{
    for (size_t i = 0; i < states->n; i++) {
        struct job_state state = JOB_STATE_NONE;

        if (!job_state_add(&state, states->word[i]))
            return err_set(err, EINVAL, "--state: Slurm has no state \"%s\"",
                           quote(states->word[i]).text);
    }
    return 0;
}

/* Before anything is written: the store would tell of it later. */
static int check_nodes(const struct words *nodes, struct err *err)
{
    uint64_t n, sum = 0;

    for (size_t i = 0; i < nodes->n; i++) {
        if (hostlist_count(nodes->word[i], &n, err) < 0) {
            err->code = EINVAL;
            return err_prefix(err, "--node");
        }
        if (n > STORE_NODES_MAX || (sum += n) > STORE_NODES_MAX)
            return err_set(err, E2BIG, "--node: name at most %d nodes", STORE_NODES_MAX);
    }
    return 0;
}

static int read_time(const char *flag, struct str text, int64_t now, int64_t *ret, struct err *err)
{
    if (text.n && moment_parse(text, now, ret, err) < 0)
        return err_prefix(err, "%s", flag);
    return 0;
}

static int read_ratio(const char *flag, struct str text, double *ret, struct err *err)
{
    bool is_percent = str_ends(text, STR("%"));
    double ratio;

    if (!text.n)
        return 0;
    if (!num_get_double(is_percent ? str_head(text, text.n - 1) : text, &ratio) ||
        !isfinite(ratio) || ratio < 0)
        return err_set(err, EINVAL, "%s: \"%s\" is no part of a whole; write 0.1, or 10%%", flag,
                       quote(text).text);
    *ret = is_percent ? ratio / 100 : ratio;
    return 0;
}

int question_filter(const struct question_options *options, int64_t now, struct arena *arena,
                    struct job_filter *ret, struct err *err)
{
    int r;

    job_filter_clear(ret);
    ret->clusters = question_words(&options->clusters, arena);
    ret->users = question_words(&options->users, arena);
    ret->accounts = question_words(&options->accounts, arena);
    ret->partitions = question_words(&options->partitions, arena);
    ret->qos = question_words(&options->qos, arena);
    ret->states = question_words(&options->states, arena);
    ret->gpu_types = question_words(&options->gpu_types, arena);
    ret->reservations = question_words(&options->reservations, arena);
    /* Commas are part of these. */
    ret->nodes = (struct words){ options->nodes.items, options->nodes.n };
    ret->names = (struct words){ options->names.items, options->names.n };
    ret->min_cpus = options->min_cpus;
    ret->min_gpus = options->min_gpus;
    ret->min_seconds = options->min_elapsed_ns / NS_PER_SEC;
    r = check_states(&ret->states, err);
    if (r == 0)
        r = check_nodes(&ret->nodes, err);
    if (r == 0)
        r = read_time("--from", options->from, now, &ret->from, err);
    if (r == 0)
        r = read_time("--to", options->to, now, &ret->to, err);
    if (r == 0)
        r = read_ratio("--efficiency-below", options->efficiency_below, &ret->efficiency_below,
                       err);
    if (r == 0)
        r = read_ratio("--efficiency-above", options->efficiency_above, &ret->efficiency_above,
                       err);
    if (r == 0 && ret->from && ret->to && ret->from >= ret->to)
        r = err_set(err, EINVAL, "--from must lie before --to");
    return r;
}

bool question_has_key(const struct usage_question *question, enum usage_key key, size_t *ret_at)
{
    for (size_t i = 0; i < question->n_keys; i++) {
        if (question->keys[i] == key) {
            *ret_at = i;
            return true;
        }
    }
    return false;
}

struct str question_own_user(struct arena *arena)
{
    char digits[NUM_U64_MAX], room[4096];
    struct passwd passwd, *found = NULL;

    if (geteuid() == 0)
        return STR("");
    getpwuid_r(geteuid(), &passwd, room, sizeof(room), &found);
    if (found)
        return arena_str(arena, str_of(found->pw_name));
    return arena_str(arena, (struct str){ digits, num_put_u64(digits, geteuid()) });
}

int question_exit_status(int code)
{
    return code == 0 ? 0 : code == -EINVAL || code == -E2BIG ? 2 : 1;
}
