/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads a store through store/query.h, and the file of docs/allocations.md. */
#include "record/kept.h"

#include "base/buf.h"
#include "base/quote.h"
#include "source/allocation_file.h"
#include "store/query.h"

#include <math.h>
#include <sys/stat.h>

enum {
    NAME_ROOM = 256,  /* of a cluster */
    MOST_WORDS = 500, /* accounts that are asked for by name; of more, all of the cluster are */
    MOST_ACCOUNTS = 1 << 20,      /* of a cluster */
    LATE_SECONDS = 7 * 24 * 3600, /* how far back the present rate reaches, */
    LEAST_SECONDS = 3600,         /* and at least has to */
    ANCHOR_SECONDS = 3600,
};

struct kept_source {
    struct source source;
    char path[STORE_PATH_MAX];
    char *url, *allocations_file;
    struct recorder *recorder;
    size_t cluster;
    struct store_reader *reader; /* NULL: not open */
    dev_t device;                /* of the file that it reads, as the next */
    ino_t inode;
    struct arena promises_arena;
    struct allocation_list promises; /* of all clusters, as they could last be read */
    int64_t anchor;                  /* UTC seconds: see enum part */
    struct arena counted_arena;
    struct map counted; /* what was used before it: double[ALLOCATION_KINDS] */
};

static void forget_counted(struct kept_source *kept)
{
    map_free(&kept->counted);
    arena_clear(&kept->counted_arena);
    map_init(&kept->counted, &kept->counted_arena);
    kept->anchor = 0;
}

static void close_reader(struct kept_source *kept)
{
    kept->reader = store_reader_close(kept->reader);
    forget_counted(kept);
}

static int open_reader(struct kept_source *kept, struct err *err)
{
    int code = store_reader_open(str_of(kept->url), &kept->reader, err);

    if (code < 0) {
        kept->reader = NULL;
        return code;
    }
    if (store_reader_is_simulated(kept->reader) == kept->source.simulated)
        return 0;
    close_reader(kept);
    return err_set(err, EINVAL, "%s holds %s jobs; name another store",
                   quote(str_of(kept->path)).text, kept->source.simulated ? "real" : "simulated");
}

/* Opens it at first, and when another file has taken its place. */
static int make_reader(struct kept_source *kept, int64_t deadline_ns, struct err *err)
{
    struct stat status;
    int code = 0;

    if (stat(kept->path, &status) < 0) {
        code = errno;
        close_reader(kept);
        return err_set(err, code, "cannot read the store %s: %s%s", quote(str_of(kept->path)).text,
                       err_words(code), code == ENOENT ? "; the recorder makes it" : "");
    }
    if (status.st_dev != kept->device || status.st_ino != kept->inode)
        close_reader(kept);
    if (!kept->reader)
        code = open_reader(kept, err);
    if (code < 0)
        return code;
    kept->device = status.st_dev;
    kept->inode = status.st_ino;
    store_reader_deadline(kept->reader, deadline_ns);
    return 0;
}

/* One look. */
struct look {
    struct kept_source *kept;
    struct str cluster;
    struct section *section;
    struct arena arena; /* for what is needed no longer than it lasts */
    struct err *err;
};

static int read_ended(struct look *look)
{
    struct ended *ended = &look->section->ended;
    struct symbols *symbols = &look->section->symbols;
    struct ended_row *row;
    size_t n;
    int code = store_ended(look->kept->reader, look->cluster, &look->arena, &row, &n, look->err);

    if (code < 0)
        return code;
    ended->row = ARENA_ARRAY(&look->section->arena, struct ended_jobs, n);
    ended->n = n;
    for (size_t i = 0; i < n; i++)
        ended->row[i] = (struct ended_jobs){
            .state = symbols_put(symbols, row[i].state),
            .partition = symbols_put(symbols, row[i].partition),
            .account = symbols_put(symbols, row[i].account),
            .count = row[i].count,
        };
    return 0;
}

/* A mistake in the file leaves what it said before; at first there is nothing to leave. */
static int read_promises(struct kept_source *kept, struct err *err)
{
    struct arena arena = { 0 };
    struct allocation_list list;
    int code = allocation_file_read(kept->allocations_file, &arena, &list, err);

    if (code < 0) {
        arena_clear(&arena);
        return code;
    }
    arena_clear(&kept->promises_arena);
    kept->promises_arena = arena;
    kept->promises = list;
    return 0;
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Since when the store knows all that ran; 0: it knows of nothing. slurmdbd was asked for all since
 * then; where it never was, jobs were seen since the oldest of them, or a little later. What was
 * deleted since had ended before then. */
static int find_reach(struct look *look, int64_t *ret)
{
    struct cluster_row *row;
    size_t n;
    int code = store_clusters(look->kept->reader, &look->arena, &row, &n, look->err);

    *ret = 0;
    for (size_t i = 0; i < n && code == 0; i++) {
        if (!str_eq(row[i].name, look->cluster))
            continue;
        *ret = row[i].accounted_since ? row[i].accounted_since : row[i].first_submit_time;
        if (*ret)
            *ret = later(*ret, row[i].pruned_end);
    }
    return code;
}

/* Counting months of jobs takes seconds, so that of what is used, all but the last days is counted
 * once an hour: until the anchor. What comes behind it is also the present rate. */
enum part { BEFORE_ANCHOR, OF_LATE, PARTS };

/* An entry that holds now. */
struct promise {
    const struct allocation_entry *entry;
    struct allocation *allocation;
    struct str key;    /* of what it has used before the anchor */
    bool is_all_known; /* the store reaches back to its beginning */
    struct {
        int64_t since; /* 0: not to be counted now */
        double used[ALLOCATION_KINDS];
    } parts[PARTS];
};

struct promises {
    struct promise *promise;
    size_t n;
    int64_t until[PARTS];
};

/* Begun anew each hour, and when the clock was set. */
static void set_anchor(struct kept_source *kept, int64_t now)
{
    int64_t age = now - kept->anchor - LATE_SECONDS;

    if (age >= 0 && age < ANCHOR_SECONDS)
        return;
    forget_counted(kept);
    kept->anchor = now - LATE_SECONDS;
}

/* What it has used before the anchor is that of these accounts, from then. */
static struct str key_of(const struct allocation_entry *entry, struct arena *arena)
{
    struct str key;
    struct buf text;

    buf_init(&text, SIZE_MAX / 2);
    buf_i64(&text, entry->from);
    for (size_t i = 0; i <= entry->n_includes; i++) {
        buf_byte(&text, '\0'); /* which no name holds */
        buf_put(&text, i ? entry->includes[i - 1] : entry->account);
    }
    key = arena_str(arena, buf_str(&text));
    buf_free(&text);
    return key;
}

static void plan(struct look *look, struct promise *promise, int64_t reach)
{
    const struct allocation_entry *entry = promise->entry;
    int64_t anchor = look->kept->anchor;
    void **counted;

    if (!reach || !entry->from)
        return;
    promise->is_all_known = reach <= entry->from;
    promise->parts[OF_LATE].since = later(anchor, later(entry->from, reach));
    if (!promise->is_all_known || entry->from >= anchor)
        return;
    promise->key = key_of(entry, &look->arena);
    counted = map_get(&look->kept->counted, promise->key);
    if (counted)
        memcpy(promise->parts[BEFORE_ANCHOR].used, *counted, sizeof(double[ALLOCATION_KINDS]));
    else
        promise->parts[BEFORE_ANCHOR].since = entry->from;
}

static void list_promises(struct look *look, int64_t reach, struct promises *promises)
{
    const struct allocation_list *list = &look->kept->promises;
    struct allocations *allocations = &look->section->allocations;

    promises->until[BEFORE_ANCHOR] = look->kept->anchor;
    promises->until[OF_LATE] = allocations->now;
    promises->promise = ARENA_ARRAY(&look->arena, struct promise, list->n);
    allocations->row = ARENA_ARRAY(&look->section->arena, struct allocation, list->n);
    for (size_t i = 0; i < list->n; i++) {
        const struct allocation_entry *entry = &list->entry[i];
        struct allocation *allocation = &allocations->row[allocations->n];

        if (!str_eq(entry->cluster, look->cluster) ||
            !allocation_entry_holds(entry, allocations->now))
            continue;
        *allocation = allocation_entry_promise(entry);
        allocation->account = symbols_put(&look->section->symbols, entry->account);
        promises->promise[promises->n] =
            (struct promise){ .entry = entry, .allocation = allocation };
        plan(look, &promises->promise[promises->n++], reach);
        allocations->n++;
    }
}

/* The accounts whose use since then is to be counted. */
static void list_accounts(const struct promises *promises, enum part part, int64_t since,
                          struct map *accounts)
{
    for (size_t i = 0; i < promises->n; i++) {
        const struct promise *promise = &promises->promise[i];

        if (promise->parts[part].since != since)
            continue;
        map_put(accounts, promise->entry->account);
        for (size_t k = 0; k < promise->entry->n_includes; k++)
            map_put(accounts, promise->entry->includes[k]);
    }
}

/* Each account's row becomes its value; one that has used nothing has none. */
static int ask_usage(struct look *look, int64_t since, int64_t until, struct map *accounts)
{
    static const enum usage_key by_account = USAGE_ACCOUNT;
    struct usage_question question = {
        .keys = &by_account,
        .n_keys = 1,
        .now = look->section->allocations.now,
        .most = MOST_ACCOUNTS,
    };
    struct str *words = ARENA_ARRAY(&look->arena, struct str, accounts->n);
    struct usage_row *row;
    size_t n;
    int code;

    for (size_t i = 0; i < accounts->n; i++)
        words[i] = accounts->entries[i].key;
    job_filter_clear(&question.filter);
    question.filter.clusters = (struct words){ &look->cluster, 1 };
    if (accounts->n <= MOST_WORDS)
        question.filter.accounts = (struct words){ words, accounts->n };
    question.filter.from = since;
    question.filter.to = until;
    code = store_usage(look->kept->reader, &question, &look->arena, &row, &n, look->err);
    for (size_t i = 0; i < n && code == 0; i++) {
        void **value = map_get(accounts, row[i].keys[0]);

        if (value)
            *value = &row[i];
    }
    return code;
}

static void add_usage(const struct map *accounts, struct str account, double to[ALLOCATION_KINDS])
{
    const struct usage_row *row = *map_get(accounts, account);

    if (!row)
        return;
    to[ALLOCATION_CPUS] += (double)row->cpu_seconds;
    to[ALLOCATION_GPUS] += (double)row->gpu_seconds;
}

static void put_usage(struct promise *promise, enum part part, const struct map *accounts)
{
    double *used = promise->parts[part].used;

    add_usage(accounts, promise->entry->account, used);
    for (size_t i = 0; i < promise->entry->n_includes; i++)
        add_usage(accounts, promise->entry->includes[i], used);
}

/* At once: should the next take too long, this need not be counted again. */
static void keep_counted(struct kept_source *kept, const struct promise *promise)
{
    double *used = ARENA_ARRAY(&kept->counted_arena, double, ALLOCATION_KINDS);

    memcpy(used, promise->parts[BEFORE_ANCHOR].used, sizeof(double[ALLOCATION_KINDS]));
    *map_put(&kept->counted, promise->key) = used;
}

/* Of all whose part begins then: most allocations of a cluster begin on the same day. */
static int count_since(struct look *look, struct promises *promises, enum part part, int64_t since)
{
    struct map accounts;
    int code;

    if (atomic_load(&look->kept->source.cancelled))
        return err_set(look->err, ECANCELED, "cancelled");
    if (since >= promises->until[part])
        return 0;
    map_init(&accounts, &look->arena);
    list_accounts(promises, part, since, &accounts);
    code = ask_usage(look, since, promises->until[part], &accounts);
    for (size_t i = 0; i < promises->n && code == 0; i++) {
        struct promise *promise = &promises->promise[i];

        if (promise->parts[part].since != since)
            continue;
        put_usage(promise, part, &accounts);
        if (part == BEFORE_ANCHOR)
            keep_counted(look->kept, promise);
    }
    map_free(&accounts);
    return code;
}

static int by_time(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static int count_part(struct look *look, struct promises *promises, enum part part)
{
    int64_t *times = ARENA_ARRAY(&look->arena, int64_t, promises->n + 1);
    int code = 0;

    for (size_t i = 0; i < promises->n; i++)
        times[i + 1] = promises->promise[i].parts[part].since;
    qsort(times, promises->n + 1, sizeof(*times), by_time);
    for (size_t i = 1; i <= promises->n && code == 0; i++)
        if (times[i] != times[i - 1]) /* the first is 0 */
            code = count_since(look, promises, part, times[i]);
    return code;
}

static void put_numbers(const struct promise *promise, int64_t now)
{
    int64_t late_since = promise->parts[OF_LATE].since, late_seconds = now - late_since;

    for (size_t i = 0; i < ALLOCATION_KINDS && late_since; i++) {
        double late = promise->parts[OF_LATE].used[i];

        if (promise->is_all_known)
            promise->allocation->used[i] = promise->parts[BEFORE_ANCHOR].used[i] + late;
        if (late_seconds >= LEAST_SECONDS)
            promise->allocation->rate[i] = late / (double)late_seconds;
    }
}

static int count_all(struct look *look, struct promises *promises)
{
    int code = count_part(look, promises, BEFORE_ANCHOR);

    if (code == 0)
        code = count_part(look, promises, OF_LATE);
    for (size_t i = 0; i < promises->n && code == 0; i++)
        put_numbers(&promises->promise[i], look->section->allocations.now);
    return code;
}

/* Of something missing, the reason is to be found. */
static void warn_of_reach(const struct promises *promises, int64_t reach,
                          char warning[SOURCE_WARNING])
{
    time_t since = (time_t)reach;
    struct tm day;
    size_t n = 0;

    for (size_t i = 0; i < promises->n; i++)
        n += promises->promise[i].entry->from && !promises->promise[i].is_all_known;
    if (!n || warning[0])
        return;
    if (!reach || !gmtime_r(&since, &day))
        snprintf(warning, SOURCE_WARNING, "the store knows no jobs yet: what is used is unknown");
    else
        snprintf(warning, SOURCE_WARNING,
                 "the store has jobs since %04d-%02d-%02d only: what is used of %zu allocations "
                 "that began before is unknown",
                 day.tm_year + 1900, day.tm_mon + 1, day.tm_mday, n);
}

static int read_allocations(struct look *look, char warning[SOURCE_WARNING])
{
    struct promises promises = { 0 };
    struct err mistake;
    int64_t reach;
    int code;

    if (read_promises(look->kept, &mistake) < 0)
        snprintf(warning, SOURCE_WARNING, "what was promised before holds on: %.250s",
                 mistake.text);
    look->section->allocations.now = clock_wall(look->kept->source.clock) / NS_PER_SEC;
    set_anchor(look->kept, look->section->allocations.now);
    code = find_reach(look, &reach);
    if (code < 0)
        return code;
    list_promises(look, reach, &promises);
    warn_of_reach(&promises, reach, warning);
    return count_all(look, &promises);
}

static int look_at(struct look *look, enum kind kind, int64_t deadline_ns,
                   char warning[SOURCE_WARNING])
{
    struct kept_source *kept = look->kept;
    int code = make_reader(kept, deadline_ns, look->err);

    if (code < 0)
        return code;
    code = kind == KIND_ENDED ? read_ended(look) : read_allocations(look, warning);
    if (code < 0 && code != -ETIMEDOUT && code != -ECANCELED)
        close_reader(kept);
    return code;
}

static int read_kept(struct source *source, enum kind kind, int64_t deadline_ns,
                     struct section **ret, char ret_warning[SOURCE_WARNING], struct err *err)
{
    struct kept_source *kept = (struct kept_source *)source;
    struct look look = { .kept = kept, .err = err };
    char name[NAME_ROOM];
    int code;

    ret_warning[0] = '\0';
    if (!recorder_get_name(kept->recorder, kept->cluster, name, sizeof(name)))
        return err_set(err, EAGAIN,
                       "what this cluster is called is not known until Slurm has answered");
    look.cluster = str_of(name);
    look.section = section_new(kind);
    code = look_at(&look, kind, deadline_ns, ret_warning);
    arena_clear(&look.arena);
    if (code < 0)
        section_unref(look.section);
    else
        *ret = look.section;
    return code;
}

static void close_kept(struct source *source)
{
    struct kept_source *kept = (struct kept_source *)source;

    close_reader(kept);
    map_free(&kept->counted);
    arena_clear(&kept->promises_arena);
    free(kept->url);
    free(kept->allocations_file);
    free(kept);
}

static const struct source_class classes[] = {
    { .name = "store", .kinds = KIND_BIT(KIND_ENDED), .read = read_kept, .close = close_kept },
    { .name = "store",
      .kinds = KIND_BIT(KIND_ENDED) | KIND_BIT(KIND_ALLOCATIONS),
      .read = read_kept,
      .close = close_kept },
};

int source_open_kept(const struct kept_settings *settings, const struct clock *clock,
                     struct source **ret, struct err *err)
{
    struct kept_source *kept = heap_alloc(sizeof(*kept));
    int code = store_path(settings->url, kept->path, err);

    kept->source.class = &classes[settings->allocations_file.n > 0];
    kept->source.clock = clock;
    kept->source.simulated = settings->is_simulated;
    kept->url = heap_str(settings->url);
    kept->allocations_file = heap_str(settings->allocations_file);
    kept->recorder = settings->recorder;
    kept->cluster = settings->cluster;
    map_init(&kept->counted, &kept->counted_arena);
    if (code == 0 && settings->allocations_file.n)
        code = read_promises(kept, err);
    if (code < 0)
        close_kept(&kept->source);
    else
        *ret = &kept->source;
    return code;
}
