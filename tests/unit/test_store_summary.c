/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of the summaries in a store. */
#include "store_fixture.h"

#include "store/query.h"
#include "store/schema.h"
#include "store/sqlite.h"

enum { DAY = 86400 };

FIXTURE(fixture_begin_open, fixture_end)

static void put_summary(uint32_t id, int64_t submit_time, const char *document)
{
    const struct summary_record record = { id, submit_time, str_of(document) };

    OK(store_begin(fixture.store, &fixture.err));
    OK(store_put_summary(fixture.store, STR("alpha"), &record, &fixture.err));
    OK(store_commit(fixture.store, &fixture.err));
}

struct reading {
    struct store_reader *reader;
    struct arena arena;
};

static struct reading begin(void)
{
    struct reading reading = { 0 };

    OK(store_reader_open(str_of(fixture.path), &reading.reader, &fixture.err));
    return reading;
}

static void end(struct reading *reading)
{
    store_reader_close(reading->reader);
    arena_clear(&reading->arena);
}

static void assert_summary(const char *cluster, uint32_t id, int64_t submit_time,
                           const char *document)
{
    const struct run_key key = { submit_time, id, str_of(cluster) };
    struct reading reading = begin();
    struct str kept;

    OK(store_summary(reading.reader, &key, &reading.arena, &kept, &fixture.err));
    assert_str(kept, document);
    end(&reading);
}

/* "7,8": in their order. */
static void assert_unsummarised(int64_t from, int64_t to, size_t most, const char *ids)
{
    struct reading reading = begin();
    char found[200] = "";
    struct run_key *runs;
    size_t n;

    OK(store_unsummarised(reading.reader, STR("alpha"), from, to, most, &reading.arena, &runs, &n,
                          &fixture.err));
    for (size_t i = 0; i < n; i++) {
        size_t at = strlen(found);

        snprintf(found + at, sizeof(found) - at, "%s%u", i ? "," : "", runs[i].job_id);
        assert_str(runs[i].cluster, "alpha");
    }
    assert_string_equal(found, ids);
    end(&reading);
}

TEST(a_summary_is_of_one_run)
{
    put(job_in(JOB_COMPLETED, 7, 1000, 2000));
    put(job_in(JOB_COMPLETED, 7, 5000, 6000));
    put_summary(7, 1000, "{\"total\":{\"cpu_seconds\":1}}");
    assert_summary("alpha", 7, 1000, "{\"total\":{\"cpu_seconds\":1}}");
    assert_summary("alpha", 7, 5000, "");
    assert_summary("beta", 7, 1000, "");
    put_summary(7, 1000, "{}");
    assert_summary("alpha", 7, 1000, "{}");
}

TEST(a_run_that_is_not_kept_has_no_summary)
{
    put(job_in(JOB_COMPLETED, 7, 1000, 2000));
    put_summary(8, 1000, "{}");
    put_summary(7, 1001, "{}");
    assert_string_equal(ask("SELECT count(*) FROM summary"), "0");
}

TEST(a_summary_goes_with_its_run)
{
    struct store_pruned pruned;

    put(job_in(JOB_COMPLETED, 7, 1000, 2000));
    put(job_in(JOB_COMPLETED, 8, 5000, 6000));
    put_summary(7, 1000, "{}");
    put_summary(8, 5000, "{}");
    OK(store_begin(fixture.store, &fixture.err));
    OK(store_prune(fixture.store, STR("alpha"), &(struct store_retention){ .oldest_end = 3000 }, 10,
                   &pruned, &fixture.err));
    OK(store_commit(fixture.store, &fixture.err));
    assert_int_equal(pruned.by_age, 1);
    assert_string_equal(ask("SELECT job_id FROM summary JOIN job ON summary.job = job.id"), "8");
    assert_string_equal(ask("SELECT count(*) FROM summary"), "1");
}

TEST(runs_without_a_summary_are_found_by_their_end)
{
    struct job_record never_ran = job_in(JOB_CANCELLED, 5, 1000, 2000);
    const struct job_record of_another = job_in(JOB_COMPLETED, 9, 1000, 2000);

    never_ran.start_time = never_ran.end_time;
    never_ran.nodes = STR("");
    put(never_ran);
    put(job_in(JOB_PENDING, 1, 1000, 1001));
    put(job_in(JOB_RUNNING, 2, 1000, 1020));
    put(job_in(JOB_COMPLETED, 3, 1000, 2000)); /* at 1100 */
    put(job_in(JOB_FAILED, 4, 1200, 2000));    /* at 1300 */
    put(job_in(JOB_TIMEOUT, 6, 1100, 2000));   /* at 1200 */
    put_in("beta", &of_another);
    assert_unsummarised(0, DAY, 10, "4,6,3");
    assert_unsummarised(0, DAY, 2, "4,6");
    assert_unsummarised(1100, 1200, 10, "3");
    put_summary(6, 1100, ""); /* there was nothing to tell */
    assert_unsummarised(0, DAY, 10, "4,3");
}

TEST(a_store_without_summaries_gets_room_for_them)
{
    sqlite3 *db;

    fixture.store = store_close(fixture.store);
    fixture_remove_files();
    assert_int_equal(sqlite3_open(fixture.path, &db), SQLITE_OK);
    OK(schema_migrate(db, 0, schema_migrations, 2, NULL, &fixture.err));
    OK(db_exec(db, "INSERT INTO meta(name, value) VALUES('is_simulated', 0)", &fixture.err));
    db_close(db);
    fixture_open();
    put(job_in(JOB_COMPLETED, 7, 1000, 2000));
    put_summary(7, 1000, "{}");
    assert_summary("alpha", 7, 1000, "{}");
}
