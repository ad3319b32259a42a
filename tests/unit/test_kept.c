/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The source over a store: jobs that have ended, and what is used of what was promised. The store
 * is a real one; of the recorder, nothing is needed but the cluster's name. */
#include "test.h"

#include "files.h"
#include "manual_clock.h"
#include "record/kept.h"

#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <unistd.h>

static const int64_t day = 24 * 3600;
static const int64_t now = 1780315200; /* 2026-06-01 12:00 */
static const int64_t start_of_2026 = 1767225600;
static const int64_t april = 1775001600;

static const char *cluster_name; /* NULL: not known yet */

bool recorder_get_name(struct recorder *recorder, size_t cluster, char *to, size_t room)
{
    (void)recorder;
    assert_int_equal(cluster, 3);
    if (cluster_name)
        snprintf(to, room, "%s", cluster_name);
    return cluster_name;
}

static struct manual_clock manual;
static char url[128];
static const char *file;
static struct source *source;
static struct section *section;
static struct err err;
static char warning[SOURCE_WARNING];

static void set_up(void)
{
    manual_clock_init(&manual, now * NS_PER_SEC, 0);
    cluster_name = "mila";
    snprintf(url, sizeof(url), "sqlite:%s", test_path("store"));
    file = test_path("allocations.yml");
}

static void remove_store(void)
{
    remove_all("store");
    remove_all("store-wal");
    remove_all("store-shm");
}

static void tear_down(void)
{
    section = section_unref(section);
    source = source_close(source);
    manual_clock_destroy(&manual);
}

FIXTURE(set_up, tear_down)

static struct store *open_store(void)
{
    struct store *store;

    if (store_open(str_of(url), false, &store, &err) < 0 || store_begin(store, &err) < 0)
        fail_msg("%s", err.text);
    return store;
}

static void close_store(struct store *store)
{
    if (store_commit(store, &err) < 0)
        fail_msg("%s", err.text);
    store_close(store);
}

static struct job_record job(uint32_t id, const char *account, int64_t start, int64_t end)
{
    struct job_record record;

    job_record_clear(&record);
    record.id = id;
    record.submit_time = record.eligible_time = record.start_time = start;
    record.end_time = end;
    record.origin = RECORD_ACCOUNTED;
    record.as_of = now;
    record.tasks = 1;
    record.state = (struct job_state){ .base = JOB_COMPLETED };
    record.account = str_of(account);
    record.partition = STR("gpu");
    record.user = STR("anna");
    record.cpus = 4;
    record.node_count = 1;
    record.tres = STR("cpu=4,mem=1G,node=1,billing=4,gres/gpu=2");
    return record;
}

static void put(struct store *store, const char *cluster, struct job_record record)
{
    if (store_put_job(store, str_of(cluster), &record, &err) < 0)
        fail_msg("%s", err.text);
}

static void put_mark(struct store *store, const char *name, int64_t value)
{
    if (store_set_mark(store, STR("mila"), name, value, &err) < 0)
        fail_msg("%s", err.text);
}

/* With the file if there is one. */
static void open_source(void)
{
    struct kept_settings settings = {
        .url = str_of(url),
        .allocations_file = access(file, F_OK) == 0 ? str_of(file) : STR(""),
        .cluster = 3,
    };

    if (source_open_kept(&settings, &manual.clock, &source, &err) < 0)
        fail_msg("%s", err.text);
}

static int look(enum kind kind)
{
    section = section_unref(section);
    err = (struct err){ 0 };
    return source->class->read(source, kind, clock_mono(&clock_real) + TEST_DEADLINE, &section,
                               warning, &err);
}

static void look_well(enum kind kind)
{
    if (look(kind) < 0)
        fail_msg("%s", err.text);
}

static uint64_t count_of(const char *state, const char *account)
{
    uint64_t count = 0;

    for (size_t i = 0; i < section->ended.n; i++) {
        const struct ended_jobs *row = &section->ended.row[i];

        if (str_eq(section_text(section, row->state), str_of(state)) &&
            str_eq(section_text(section, row->account), str_of(account)))
            count += row->count;
    }
    return count;
}

static const struct allocation *find(const char *account)
{
    for (size_t i = 0; i < section->allocations.n; i++)
        if (str_eq(section_text(section, section->allocations.row[i].account), str_of(account)))
            return &section->allocations.row[i];
    fail_msg("there is nothing of %s", account);
    return NULL;
}

TEST(jobs_that_have_ended_are_those_of_this_cluster)
{
    struct store *store = open_store();
    struct job_record failed = job(3, "physics", now - 100, now - 50);

    failed.state.base = JOB_FAILED;
    put(store, "mila", job(1, "physics", now - 200, now - 100));
    put(store, "mila", job(2, "physics", now - 200, now - 100));
    put(store, "mila", failed);
    put(store, "mila", job(4, "chemistry", now - 200, now - 100));
    put(store, "cedar", job(1, "physics", now - 200, now - 100));
    close_store(store);
    open_source();
    look_well(KIND_ENDED);
    assert_int_equal(section->kind, KIND_ENDED);
    assert_int_equal(section->ended.n, 3);
    assert_int_equal(count_of("COMPLETED", "physics"), 2);
    assert_int_equal(count_of("FAILED", "physics"), 1);
    assert_int_equal(count_of("COMPLETED", "chemistry"), 1);
    assert_str(section_text(section, section->ended.row[0].partition), "gpu");
}

TEST(what_is_added_later_is_seen_at_the_next_look)
{
    struct store *store = open_store();

    put(store, "mila", job(1, "physics", now - 200, now - 100));
    close_store(store);
    open_source();
    look_well(KIND_ENDED);
    assert_int_equal(count_of("COMPLETED", "physics"), 1);
    store = open_store();
    put(store, "mila", job(2, "physics", now - 200, now - 100));
    close_store(store);
    look_well(KIND_ENDED);
    assert_int_equal(count_of("COMPLETED", "physics"), 2);
}

TEST(until_the_recorder_has_made_the_store_there_is_none)
{
    open_source();
    assert_int_equal(look(KIND_ENDED), -ENOENT);
    assert_contains(err.text, "the recorder makes it");
    close_store(open_store());
    look_well(KIND_ENDED);
    assert_int_equal(section->ended.n, 0);
}

TEST(a_store_that_was_replaced_is_opened_anew)
{
    struct store *store = open_store();

    put(store, "mila", job(1, "physics", now - 200, now - 100));
    close_store(store);
    open_source();
    look_well(KIND_ENDED);
    assert_int_equal(count_of("COMPLETED", "physics"), 1);
    remove_store();
    assert_int_equal(look(KIND_ENDED), -ENOENT);
    store = open_store();
    put(store, "mila", job(1, "chemistry", now - 200, now - 100));
    close_store(store);
    look_well(KIND_ENDED);
    assert_int_equal(count_of("COMPLETED", "physics"), 0);
    assert_int_equal(count_of("COMPLETED", "chemistry"), 1);
}

TEST(what_is_no_store_is_refused_until_one_is_there)
{
    write_file(url + strlen("sqlite:"), "this is not what it should be, but a text");
    open_source();
    assert_int_equal(look(KIND_ENDED), -EBADMSG);
    remove_store();
    close_store(open_store());
    look_well(KIND_ENDED);
}

TEST(without_its_name_nothing_is_told_of_a_cluster)
{
    close_store(open_store());
    cluster_name = NULL;
    open_source();
    assert_int_equal(look(KIND_ENDED), -EAGAIN);
    cluster_name = "mila";
    look_well(KIND_ENDED);
}

TEST(simulated_jobs_are_not_taken_for_real_ones)
{
    struct store *store;

    assert_int_equal(store_open(str_of(url), true, &store, &err), 0);
    store_close(store);
    open_source();
    assert_int_equal(look(KIND_ENDED), -EINVAL);
    assert_contains(err.text, "simulated");
}

TEST(another_scheme_is_refused)
{
    const struct kept_settings settings = { .url = STR("mysql:host"), .cluster = 3 };

    assert_int_equal(source_open_kept(&settings, &manual.clock, &source, &err), -EINVAL);
}

TEST(without_a_file_there_are_no_allocations)
{
    open_source();
    assert_int_equal(source->class->kinds, KIND_BIT(KIND_ENDED));
    assert_string_equal(source->class->name, "store");
}

TEST(a_mistake_in_the_file_is_told_when_it_is_opened)
{
    struct kept_settings settings = { .url = str_of(url), .cluster = 3 };

    write_file(file, "clusters: {mila: {physics: {gpu_year: 1}}}");
    settings.allocations_file = str_of(file);
    assert_int_equal(source_open_kept(&settings, &manual.clock, &source, &err), -EINVAL);
    assert_contains(err.text, "did you mean gpu_years?");
}

/* A day of 4 CPUs and 2 GPUs in May, and two hours of them yesterday. */
static void make_usage(void)
{
    struct store *store = open_store();

    put(store, "mila", job(1, "physics", april + 30 * day, april + 31 * day));
    put(store, "mila", job(2, "physics", now - day, now - day + 7200));
    put(store, "mila", job(3, "chemistry", april + 30 * day, april + 30 * day + 10));
    put(store, "cedar", job(1, "physics", april + 30 * day, april + 31 * day));
    put_mark(store, "accounted_since", start_of_2026);
    put_mark(store, "accounted_until", now);
    close_store(store);
}

TEST(what_is_used_is_counted_from_the_beginning_of_an_allocation)
{
    const struct allocation *of;

    make_usage();
    write_file(file, "clusters:\n"
                     "  mila: {physics: {gpu_years: 1, cpu_years: 2, from: 2026-04-01, to: "
                     "2027-04-01}}\n"
                     "  cedar: {biology: {gpu_years: 1}}\n");
    open_source();
    look_well(KIND_ALLOCATIONS);
    assert_string_equal(warning, "");
    assert_int_equal(section->allocations.n, 1);
    assert_int_equal(section->allocations.now, now);
    of = find("physics");
    assert_int_equal(of->from, april);
    assert_true(of->seconds[ALLOCATION_GPUS] == (double)ALLOCATION_YEAR_SECONDS);
    assert_true(of->used[ALLOCATION_CPUS] == 4. * (double)(day + 7200));
    assert_true(of->used[ALLOCATION_GPUS] == 2. * (double)(day + 7200));
}

TEST(the_rate_is_that_of_the_last_seven_days)
{
    const struct allocation *of;

    make_usage();
    write_file(file, "clusters: {mila: {physics: {gpu_years: 1, from: 2026-04-01, to: 2027-04-01}, "
                     "chemistry: {gpu_years: 1, from: 2026-05-31, to: 2027-04-01}}}");
    open_source();
    look_well(KIND_ALLOCATIONS);
    of = find("physics");
    assert_true(of->rate[ALLOCATION_GPUS] == 2. * 7200 / (7. * (double)day));
    of = find("chemistry");
    assert_true(of->used[ALLOCATION_GPUS] == 0 && of->rate[ALLOCATION_GPUS] == 0);
}

TEST(what_was_used_long_ago_is_counted_once_an_hour)
{
    struct store *store;

    make_usage();
    write_file(file, "clusters: {mila: {physics: {gpu_years: 1, from: 2026-04-01, to: "
                     "2027-04-01}}}");
    open_source();
    look_well(KIND_ALLOCATIONS);
    assert_true(find("physics")->used[ALLOCATION_GPUS] == 2. * (double)(day + 7200));
    store = open_store();
    put(store, "mila", job(4, "physics", april + day, april + day + 100));
    put(store, "mila", job(5, "physics", now - 1000, now));
    close_store(store);
    manual_clock_set_wall(&manual, (now + 3599) * NS_PER_SEC);
    look_well(KIND_ALLOCATIONS);
    assert_true(find("physics")->used[ALLOCATION_GPUS] == 2. * (double)(day + 7200 + 1000));
    manual_clock_set_wall(&manual, (now + 3600) * NS_PER_SEC);
    look_well(KIND_ALLOCATIONS);
    assert_true(find("physics")->used[ALLOCATION_GPUS] == 2. * (double)(day + 7200 + 1000 + 100));
}

TEST(another_store_or_another_list_of_accounts_is_counted_at_once)
{
    struct store *store;

    make_usage();
    write_file(file, "clusters: {mila: {physics: {gpu_years: 1, from: 2026-04-01, to: "
                     "2027-04-01}}}");
    open_source();
    look_well(KIND_ALLOCATIONS);
    write_file(file, "clusters: {mila: {physics: {gpu_years: 1, from: 2026-04-01, to: 2027-04-01, "
                     "includes: [chemistry]}}}");
    look_well(KIND_ALLOCATIONS);
    assert_true(find("physics")->used[ALLOCATION_GPUS] == 2. * (double)(day + 7200 + 10));
    remove_store();
    store = open_store();
    put(store, "mila", job(1, "chemistry", april, april + 50));
    close_store(store);
    look_well(KIND_ALLOCATIONS);
    assert_true(find("physics")->used[ALLOCATION_GPUS] == 2. * 50);
}

TEST(the_rate_of_a_young_allocation_is_that_since_it_began)
{
    const struct allocation *of;

    make_usage();
    write_file(file, "clusters: {mila: {physics: {gpu_years: 1, from: 2026-05-31, to: "
                     "2027-04-01}}}");
    open_source();
    look_well(KIND_ALLOCATIONS);
    of = find("physics");
    assert_true(of->used[ALLOCATION_GPUS] == 2. * 7200);
    assert_true(of->rate[ALLOCATION_GPUS] == 2. * 7200 / (1.5 * (double)day));
    manual_clock_set_wall(&manual, of->from * NS_PER_SEC);
    look_well(KIND_ALLOCATIONS);
    of = find("physics");
    assert_true(of->used[ALLOCATION_GPUS] == 0);
    assert_true(isnan(of->rate[ALLOCATION_GPUS]));
}

TEST(accounts_that_are_included_count_as_well)
{
    const struct allocation *of;

    make_usage();
    write_file(file, "clusters: {mila: {physics: {cpu_years: 1, from: 2026-04-01, to: 2027-04-01, "
                     "includes: [chemistry, nobody]}}}");
    open_source();
    look_well(KIND_ALLOCATIONS);
    assert_int_equal(section->allocations.n, 1);
    of = find("physics");
    assert_true(of->used[ALLOCATION_CPUS] == 4. * (double)(day + 7200 + 10));
}

TEST(only_the_allocation_of_now_is_told)
{
    make_usage();
    write_file(file, "clusters: {mila: {physics: [{gpu_years: 1, from: 2025-04-01, to: "
                     "2026-04-01}, {gpu_years: 2, from: 2026-04-01, to: 2027-04-01}, {gpu_years: "
                     "3, from: 2027-04-01, to: 2028-04-01}], later: {gpu_years: 4, from: "
                     "2027-04-01, to: 2028-04-01}}}");
    open_source();
    look_well(KIND_ALLOCATIONS);
    assert_int_equal(section->allocations.n, 1);
    assert_int_equal(find("physics")->from, april);
    manual_clock_set_wall(&manual, (april + 365 * day) * NS_PER_SEC);
    look_well(KIND_ALLOCATIONS);
    assert_int_equal(section->allocations.n, 2);
    assert_int_equal(find("physics")->from, april + 365 * day);
}

TEST(what_began_before_the_store_reaches_back_is_unknown)
{
    struct store *store = open_store();
    const struct allocation *of;

    put(store, "mila", job(1, "physics", now - 2 * day, now - day));
    close_store(store);
    write_file(file, "clusters: {mila: {physics: {gpu_years: 1, from: 2026-04-01, to: 2027-04-01}, "
                     "chemistry: {gpu_years: 1, from: 2026-06-01, to: 2027-04-01}}}");
    open_source();
    look_well(KIND_ALLOCATIONS);
    assert_contains(warning, "since 2026-05-30 only");
    of = find("physics");
    assert_true(isnan(of->used[ALLOCATION_GPUS]));
    assert_true(of->rate[ALLOCATION_GPUS] == 1);
    assert_true(find("chemistry")->used[ALLOCATION_GPUS] == 0);
    store = open_store();
    put_mark(store, "accounted_since", april);
    put_mark(store, "accounted_until", now);
    close_store(store);
    look_well(KIND_ALLOCATIONS);
    assert_string_equal(warning, "");
    assert_true(find("physics")->used[ALLOCATION_GPUS] == 2. * (double)day);
}

TEST(what_was_deleted_is_not_known_any_more)
{
    struct store *store;

    make_usage();
    store = open_store();
    put_mark(store, "pruned_end", april + 30 * day);
    close_store(store);
    write_file(file, "clusters: {mila: {physics: {gpu_years: 1, from: 2026-04-01, to: 2027-04-01}, "
                     "chemistry: {gpu_years: 1, from: 2026-05-01, to: 2027-04-01}}}");
    open_source();
    look_well(KIND_ALLOCATIONS);
    assert_contains(warning, "since 2026-05-01 only");
    assert_true(isnan(find("physics")->used[ALLOCATION_GPUS]));
    assert_true(find("chemistry")->used[ALLOCATION_GPUS] == 2. * 10);
}

static bool cancels; /* when usage is next asked for */

static int cancel_at_usage(void *ctx, int action, const char *table, const char *column,
                           const char *schema, const char *by)
{
    (void)ctx;
    (void)schema;
    (void)by;
    if (cancels && action == SQLITE_READ && strcmp(table, "job") == 0 &&
        strcmp(column, "cpus") == 0)
        source_cancel(source);
    return SQLITE_OK;
}

static int watch(sqlite3 *db, const char **message, const void *api)
{
    (void)message;
    (void)api;
    return sqlite3_set_authorizer(db, cancel_at_usage, NULL);
}

TEST(what_was_counted_before_a_look_broke_off_is_not_counted_again)
{
    struct store *store;

    make_usage();
    write_file(file, "clusters: {mila: {physics: {gpu_years: 1, from: 2026-04-01, to: 2027-04-01}, "
                     "chemistry: {gpu_years: 1, from: 2026-04-02, to: 2027-04-01}}}");
    sqlite3_auto_extension((void (*)(void))watch);
    open_source();
    cancels = true;
    assert_int_equal(look(KIND_ALLOCATIONS), -ECANCELED);
    cancels = false;
    sqlite3_cancel_auto_extension((void (*)(void))watch);
    store = open_store();
    put(store, "mila", job(4, "physics", april + 2 * day, april + 2 * day + 100));
    put(store, "mila", job(5, "chemistry", april + 2 * day, april + 2 * day + 100));
    close_store(store);
    atomic_store(&source->cancelled, false);
    look_well(KIND_ALLOCATIONS);
    assert_true(find("physics")->used[ALLOCATION_GPUS] == 2. * (double)(day + 7200));
    assert_true(find("chemistry")->used[ALLOCATION_GPUS] == 2. * (10 + 100));
}

TEST(a_store_without_jobs_tells_what_was_promised_alone)
{
    close_store(open_store());
    write_file(file, "clusters: {mila: {physics: {gpu_years: 1, from: 2026-04-01, to: 2027-04-01}, "
                     "all: {gpu_years: 5}}}");
    open_source();
    look_well(KIND_ALLOCATIONS);
    assert_contains(warning, "knows no jobs yet");
    assert_true(isnan(find("physics")->used[ALLOCATION_GPUS]));
    assert_true(isnan(find("physics")->rate[ALLOCATION_GPUS]));
    assert_true(find("all")->seconds[ALLOCATION_GPUS] == 5. * ALLOCATION_YEAR_SECONDS);
}

TEST(a_change_of_the_file_holds_at_the_next_look)
{
    make_usage();
    write_file(file, "clusters: {mila: {physics: {students: 1}}}");
    open_source();
    look_well(KIND_ALLOCATIONS);
    assert_true(find("physics")->students == 1);
    write_file(file, "clusters: {mila: {physics: {students: 2}}}");
    look_well(KIND_ALLOCATIONS);
    assert_true(find("physics")->students == 2);
}

TEST(a_mistake_made_later_leaves_what_the_file_said_before)
{
    make_usage();
    write_file(file, "clusters: {mila: {physics: {students: 1}}}");
    open_source();
    look_well(KIND_ALLOCATIONS);
    write_file(file, "clusters: {mila: {physics: {students: -2}}}");
    look_well(KIND_ALLOCATIONS);
    assert_contains(warning, "holds on");
    assert_contains(warning, "allocations.yml:1: students is a whole number");
    assert_true(find("physics")->students == 1);
    unlink(file);
    look_well(KIND_ALLOCATIONS);
    assert_contains(warning, "allocations.yml");
    assert_true(find("physics")->students == 1);
    write_file(file, "clusters: {mila: {physics: {students: 3}}}");
    look_well(KIND_ALLOCATIONS);
    assert_string_equal(warning, "");
    assert_true(find("physics")->students == 3);
}

TEST(more_accounts_than_are_asked_for_by_name_are_counted_too)
{
    struct buf text;

    make_usage();
    buf_init(&text, 1 << 20);
    buf_text(&text, "clusters:\n  mila:\n");
    for (unsigned i = 0; i < 600; i++)
        buf_printf(&text, "    a%u: {cpu_years: 1, from: 2026-04-01, to: 2027-04-01}\n", i);
    buf_text(&text, "    physics: {cpu_years: 1, from: 2026-04-01, to: 2027-04-01}\n");
    write_bytes(file, buf_str(&text));
    buf_free(&text);
    open_source();
    look_well(KIND_ALLOCATIONS);
    assert_int_equal(section->allocations.n, 601);
    assert_true(find("a599")->used[ALLOCATION_CPUS] == 0);
    assert_true(find("physics")->used[ALLOCATION_CPUS] == 4. * (double)(day + 7200));
}

TEST(a_look_that_was_cancelled_ends)
{
    make_usage();
    write_file(file, "clusters: {mila: {physics: {gpu_years: 1, from: 2026-04-01, to: "
                     "2027-04-01}}}");
    open_source();
    source_cancel(source);
    assert_int_equal(look(KIND_ALLOCATIONS), -ECANCELED);
}
