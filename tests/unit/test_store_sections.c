/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of the sections in a store. */
#include "store_fixture.h"

#include "store/query.h"
#include "store/schema.h"
#include "store/sqlite.h"

FIXTURE(fixture_begin_open, fixture_end)

static void put_section(const char *cluster, const char *kind, int64_t time, const char *document)
{
    OK(store_begin(fixture.store, &fixture.err));
    OK(store_put_section(fixture.store, str_of(cluster), kind, time, str_of(document),
                         &fixture.err));
    OK(store_commit(fixture.store, &fixture.err));
}

static void assert_section(const char *cluster, const char *kind, int64_t known_time, int64_t time,
                           const char *document)
{
    struct store_reader *reader;
    struct arena arena = { 0 };
    int64_t found_time;
    struct str found;

    OK(store_reader_open(str_of(fixture.path), &reader, &fixture.err));
    OK(store_section(reader, str_of(cluster), kind, known_time, &arena, &found_time, &found,
                     &fixture.err));
    assert_str(found, document);
    assert_int_equal(found_time, time);
    store_reader_close(reader);
    arena_clear(&arena);
}

TEST(the_newest_of_each_kind_and_cluster_is_kept)
{
    put_section("north", "nodes", 100, "{\"nodes\":1}");
    put_section("north", "nodes", 160, "{\"nodes\":2}");
    put_section("north", "shares", 120, "{\"shares\":1}");
    put_section("south", "nodes", 130, "{\"nodes\":3}");
    assert_section("north", "nodes", 0, 160, "{\"nodes\":2}");
    assert_section("north", "shares", 0, 120, "{\"shares\":1}");
    assert_section("south", "nodes", 0, 130, "{\"nodes\":3}");
    assert_section("south", "shares", 0, 0, "");
    assert_section("west", "nodes", 0, 0, "");
    assert_string_equal(ask("SELECT count(*) FROM section"), "3");
}

TEST(what_is_told_again_is_only_newer)
{
    put_section("north", "nodes", 100, "{}");
    put_section("north", "nodes", 160, "");
    assert_section("north", "nodes", 0, 160, "{}");
}

TEST(what_the_reader_knows_is_not_read)
{
    put_section("north", "nodes", 100, "{}");
    assert_section("north", "nodes", 100, 100, "");
    assert_section("north", "nodes", 99, 100, "{}");
}

TEST(a_long_document_is_kept_small)
{
    size_t n = 3000000;
    char *long_text = heap_alloc(n + 1);

    for (size_t i = 0; i < n; i++)
        long_text[i] = (char)('a' + i % 26 + (i % 1009 == 0));
    put_section("north", "nodes", 100, long_text);
    assert_section("north", "nodes", 0, 100, long_text);
    assert_string_equal(ask("SELECT length(document) < 300000 FROM section"), "1");
    free(long_text);
}

TEST(a_damaged_document_is_told)
{
    static const char *const damages[] = {
        "UPDATE section SET document = x'00'",
        "UPDATE section SET document = substr(document, 1, length(document) - 6)",
    };

    for (size_t i = 0; i < COUNT(damages); i++) {
        struct store_reader *reader;
        struct arena arena = { 0 };
        int64_t time;
        struct str found;
        sqlite3 *db;

        put_section("north", "nodes", 100, "{\"many\": \"words\"}");
        OK(db_open(fixture.path, true, &db, &fixture.err));
        OK(db_exec(db, damages[i], &fixture.err));
        db_close(db);
        OK(store_reader_open(str_of(fixture.path), &reader, &fixture.err));
        assert_int_equal(
            store_section(reader, STR("north"), "nodes", 0, &arena, &time, &found, &fixture.err),
            -EBADMSG);
        assert_contains(fixture.err.text, "cannot be read");
        store_reader_close(reader);
        arena_clear(&arena);
    }
}

TEST(a_reader_notices_that_others_have_written)
{
    struct store_reader *reader;
    int64_t first, again, later;

    OK(store_reader_open(str_of(fixture.path), &reader, &fixture.err));
    OK(store_reader_version(reader, &first, &fixture.err));
    OK(store_reader_version(reader, &again, &fixture.err));
    assert_int_equal(again, first);
    put_section("north", "nodes", 100, "{}");
    OK(store_reader_version(reader, &later, &fixture.err));
    assert_int_not_equal(later, first);
    fixture.store = store_close(fixture.store);
    fixture_remove_files();
    fixture_open();
    OK(store_reader_version(reader, &again, &fixture.err));
    assert_int_not_equal(again, later);
    assert_int_not_equal(again, first);
    store_reader_close(reader);
}

TEST(clusters_tell_when_their_queue_was_looked_at)
{
    struct store_reader *reader;
    struct arena arena = { 0 };
    struct look_row *rows;
    size_t n;

    put_section("south", "nodes", 100, "{}");
    OK(store_begin(fixture.store, &fixture.err));
    OK(store_put_look(fixture.store, STR("north"), 170, NULL, 0, &fixture.err));
    OK(store_commit(fixture.store, &fixture.err));
    OK(store_reader_open(str_of(fixture.path), &reader, &fixture.err));
    OK(store_looks(reader, &arena, &rows, &n, &fixture.err));
    assert_int_equal(n, 2);
    assert_str(rows[0].cluster, "north");
    assert_int_equal(rows[0].jobs_seen, 170);
    assert_str(rows[1].cluster, "south");
    assert_int_equal(rows[1].jobs_seen, 0);
    store_reader_close(reader);
    arena_clear(&arena);
}

TEST(a_store_without_sections_gets_room_for_them)
{
    sqlite3 *db;

    fixture.store = store_close(fixture.store);
    fixture_remove_files();
    assert_int_equal(sqlite3_open(fixture.path, &db), SQLITE_OK);
    OK(schema_migrate(db, 0, schema_migrations, 3, NULL, &fixture.err));
    OK(db_exec(db, "INSERT INTO meta(name, value) VALUES('is_simulated', 0)", &fixture.err));
    db_close(db);
    fixture_open();
    put_section("north", "nodes", 100, "{}");
    assert_section("north", "nodes", 0, 100, "{}");
}
