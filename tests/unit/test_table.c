/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of report/table: tables and CSV. */
#include "test.h"

#include "base/arena.h"
#include "report/table.h"

static const struct table_column columns[] = { { .title = "JOBID", .is_number = true },
                                               { .title = "NAME" },
                                               { .title = "STATE" } };

/* What is written of these cells. */
static struct str write_cells(struct arena *arena, enum table_format format, size_t width,
                              bool has_sums, const struct str *cells, size_t n)
{
    struct table_settings settings = { format, columns, COUNT(columns), width, NULL };
    char *text = NULL;
    struct err err = { 0 };
    struct table *table;
    struct str copy;
    size_t size;

    settings.to = open_memstream(&text, &size);
    table = table_new(&settings);
    for (size_t i = 0; i < n; i++)
        table_cell(table, cells[i]);
    assert_int_equal(table_end(table, has_sums, &err), 0);
    fclose(settings.to);
    copy = arena_str(arena, (struct str){ text, size });
    free(text);
    return copy;
}

#define WRITE(arena, format, width, has_sums, ...)                                                 \
    write_cells(arena, format, width, has_sums, (const struct str[]){ __VA_ARGS__ },               \
                sizeof((const struct str[]){ __VA_ARGS__ }) / sizeof(struct str))

TEST(a_table_has_its_columns_below_each_other)
{
    struct arena arena = { 0 };

    assert_str(WRITE(&arena, TABLE_TEXT, 0, false, STR("7"), STR("train"), STR("RUNNING"),
                     STR("123456"), STR(""), STR("FAILED")),
               " JOBID  NAME   STATE\n"
               "     7  train  RUNNING\n"
               "123456         FAILED\n");
    arena_clear(&arena);
}

TEST(the_sums_stand_below_a_line)
{
    struct arena arena = { 0 };

    assert_str(WRITE(&arena, TABLE_TEXT, 0, true, STR("7"), STR("a"), STR("b"), STR("7"),
                     STR("TOTAL"), STR("")),
               "JOBID  NAME   STATE\n"
               "    7  a      b\n"
               "-------------------\n"
               "    7  TOTAL\n");
    assert_str(write_cells(&arena, TABLE_TEXT, 0, false, NULL, 0), "JOBID  NAME  STATE\n");
    arena_clear(&arena);
}

TEST(a_table_fits_the_terminal_and_elsewhere_little_is_cut)
{
    struct arena arena = { 0 };
    const struct str cells[] = { STR("1234567890"), STR("a name that is much too long"),
                                 STR("COMPLETED") };

    assert_str(write_cells(&arena, TABLE_TEXT, 30, false, cells, 3),
               "     JOBID  NAME      STATE\n"
               "1234567890  a name …  COMPLET…\n");
    /* Numbers are never cut inside the line, but the line is. */
    assert_str(write_cells(&arena, TABLE_TEXT, 12, false, cells, 3), "     JOBID …\n"
                                                                     "1234567890 …\n");
    assert_str(write_cells(&arena, TABLE_TEXT, 0, false, cells, 3),
               "     JOBID  NAME                          STATE\n"
               "1234567890  a name that is much too long  COMPLETED\n");
    arena_clear(&arena);
}

TEST(one_long_text_does_not_make_all_lines_long)
{
    struct arena arena = { 0 };
    char name[1001], line[400];
    const struct str cells[] = { STR("1"), { name, 1000 }, STR("COMPLETED"),
                                 STR("2"), STR("b"),       STR("FAILED") };

    memset(name, 'x', sizeof(name) - 1);
    name[1000] = '\0';
    snprintf(line, sizeof(line),
             "JOBID  NAME%56s  STATE\n    1  %.59s…  COMPLETED\n    2  b%59s  "
             "FAILED\n",
             "", name, "");
    assert_str(write_cells(&arena, TABLE_TEXT, 0, false, cells, 6), line);
    /* who wants all of it asks for CSV */
    assert_true(write_cells(&arena, TABLE_CSV, 0, false, cells, 6).n > 1000);
    arena_clear(&arena);
}

TEST(columns_are_those_of_the_environment_where_there_is_no_terminal)
{
    FILE *file = tmpfile();

    unsetenv("COLUMNS");
    assert_int_equal(table_terminal_width(file), 0);
    setenv("COLUMNS", "72", 1);
    assert_int_equal(table_terminal_width(file), 72);
    setenv("COLUMNS", "many", 1);
    assert_int_equal(table_terminal_width(file), 0);
    unsetenv("COLUMNS");
    fclose(file);
}

TEST(what_can_be_spared_is_left_out_and_what_is_whole_is_not_cut)
{
    static const struct table_column some[] = {
        { .title = "JOBID", .is_number = true },
        { .title = "ACCOUNT", .spare = 2 },
        { .title = "NAME" },
        { .title = "STATE", .is_whole = true },
        { .title = "CPUS", .is_number = true },
        { .title = "NODES", .spare = 1 },
    };
    static const struct str cells[] = {
        STR_INIT("1"),         STR_INIT("physics"), STR_INIT("a name of some length"),
        STR_INIT("COMPLETED"), STR_INIT("4"),       STR_INIT("n[1-20]")
    };
    static const struct {
        size_t width;
        const char *text;
    } cases[] = {
        { 52, "JOBID  ACCOUNT  NAME        STATE      CPUS  NODES\n"
              "    1  physics  a name of…  COMPLETED     4  n[1-20]\n" },
        { 40, "JOBID  NAME     STATE      CPUS  NODES\n"
              "    1  a name…  COMPLETED     4  n[1-20]\n" },
        { 32, "JOBID  NAME      STATE      CPUS\n"
              "    1  a name …  COMPLETED     4\n" },
        { 20, "JOBID  NAME    STAT…\n"
              "    1  a nam…  COMP…\n" },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct table_settings settings = { TABLE_TEXT, some, COUNT(some), cases[i].width, NULL };
        struct err err = { 0 };
        struct table *table;
        char *text = NULL;
        size_t size;

        settings.to = open_memstream(&text, &size);
        table = table_new(&settings);
        for (size_t k = 0; k < COUNT(cells); k++)
            table_cell(table, cells[k]);
        assert_int_equal(table_end(table, false, &err), 0);
        fclose(settings.to);
        assert_string_equal(text, cases[i].text);
        free(text);
    }
}

TEST(no_text_breaks_the_table)
{
    struct arena arena = { 0 };

    assert_str(WRITE(&arena, TABLE_TEXT, 0, false, STR("1"), STR("a\nb\tc\033[31md\x7f"),
                     STR("x\xff\xc3y"), STR("2"), STR("\u202eevil\u200b\xc2\x85"), STR("z")),
               "JOBID  NAME          STATE\n"
               "    1  a?b?c?[31md?  x??y\n"
               "    2  ?evil??       z\n" +
                   0);
    arena_clear(&arena);
}

TEST(wide_and_narrow_characters_are_measured)
{
    struct arena arena = { 0 };

    assert_str(WRITE(&arena, TABLE_TEXT, 0, false, STR("1"), STR("日本"), STR("x"), STR("2"),
                     STR("e\u0301té"), STR("y")),
               "JOBID  NAME  STATE\n"
               "    1  日本  x\n"
               "    2  e\u0301té   y\n");
    arena_clear(&arena);
}

TEST(csv_is_that_of_rfc_4180)
{
    struct arena arena = { 0 };

    assert_str(WRITE(&arena, TABLE_CSV, 10, false, STR("-1"), STR("plain, with \"quotes\""),
                     STR("two\nlines"), STR("2"), STR(""), STR("\001\xff")),
               "JOBID,NAME,STATE\r\n"
               "-1,\"plain, with \"\"quotes\"\"\",\"two\nlines\"\r\n"
               "2,,??\r\n");
    assert_str(write_cells(&arena, TABLE_CSV, 0, false, NULL, 0), "JOBID,NAME,STATE\r\n");
    arena_clear(&arena);
}

TEST(a_spreadsheet_takes_no_text_for_a_formula)
{
    struct arena arena = { 0 };

    assert_str(WRITE(&arena, TABLE_CSV, 0, false, STR("1"), STR("=cmd|' /C calc'!A0"), STR("+1"),
                     STR("2"), STR("-1+1"), STR("@SUM(1,2)"), STR("3"), STR("\t=1"), STR("a=b")),
               "JOBID,NAME,STATE\r\n"
               "1,'=cmd|' /C calc'!A0,'+1\r\n"
               "2,'-1+1,\"'@SUM(1,2)\"\r\n"
               "3,\"'\t=1\",a=b\r\n");
    arena_clear(&arena);
}

TEST(many_rows_are_written_as_they_come)
{
    struct arena arena = { 0 };
    enum { ROWS = 2500 };
    struct str *cells = ARENA_ARRAY(&arena, struct str, ROWS * 3);
    struct str text;
    size_t lines = 0;

    for (size_t i = 0; i < ROWS; i++) {
        cells[i * 3] = STR("1");
        cells[i * 3 + 1] = i < 2000 ? STR("x") : STR("longer than those that were measured");
        cells[i * 3 + 2] = STR("y");
    }
    text = write_cells(&arena, TABLE_TEXT, 0, true, cells, ROWS * 3);
    for (struct str rest = text; rest.p;)
        lines += str_cut(&rest, '\n').n > 0;
    assert_int_equal(lines, ROWS + 2);
    assert_contains(text.p, "    1  longer than those that were measured  y\n");
    arena_clear(&arena);
}

TEST(a_full_disk_is_told)
{
    struct table_settings settings = { TABLE_CSV, columns, COUNT(columns), 0, NULL };
    struct err err = { 0 };
    struct table *table;

    settings.to = fopen("/dev/full", "we");
    assert_non_null(settings.to);
    table = table_new(&settings);
    for (size_t i = 0; i < 30000; i++)
        table_cell(table, STR("x"));
    assert_int_equal(table_end(table, false, &err), -ENOSPC);
    assert_contains(err.text, "cannot write");
    fclose(settings.to);
}
