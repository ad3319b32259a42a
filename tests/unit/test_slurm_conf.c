/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lines of configuration files, read as Slurm's parse_config.c reads them. */
#include "test.h"

#include "source/slurm_conf.h"

static struct str text;
static unsigned number;

static void begin(const char *given)
{
    text = str_of(given);
    number = 0;
}

static void assert_next(unsigned expected_number, const char *key, const char *value)
{
    struct slurm_conf_line line;

    assert_true(slurm_conf_next(&text, &number, &line));
    assert_int_equal(line.number, expected_number);
    assert_str(line.key, key);
    assert_str(line.value, value);
}

static void assert_end(void)
{
    struct slurm_conf_line line;

    assert_false(slurm_conf_next(&text, &number, &line));
}

TEST(keys_are_taken_with_their_lines)
{
    begin("# a comment\n\nProfilePrometheusHost=http://localhost:9091\n"
          "  ProfilePrometheusDefault = \"all or none\" # why\r\nX+=1");
    assert_next(3, "ProfilePrometheusHost", "http://localhost:9091");
    assert_next(4, "ProfilePrometheusDefault", "all or none");
    assert_next(5, "X", "1");
    assert_end();
}

TEST(what_scontrol_prints_is_read_too)
{
    begin("Configuration data as of 2024-01-01T00:00:00\n"
          "PluginDir               = /usr/lib/slurm:/opt/x\nSLURM_VERSION           = 22.05.8\n");
    assert_next(2, "PluginDir", "/usr/lib/slurm:/opt/x");
    assert_next(3, "SLURM_VERSION", "22.05.8");
    assert_end();
}

TEST(a_line_that_goes_on_is_one)
{
    begin("A=1,\\\nB=2 \\  \nC=3\nD=\\\\\nE=5 # ends \\\nF=6\\");
    assert_next(1, "A", "1,\\");
    assert_next(4, "D", "\\\\");
    assert_next(5, "E", "5");
    assert_next(6, "F", "6\\");
    assert_end();
}

TEST(a_commented_key_is_none)
{
    begin("#A=1\n \\\\#B=2\n# C=3 \\\nD=4\n");
    assert_next(4, "D", "4");
    assert_end();
}

TEST(an_included_file_is_told)
{
    begin("Include more.conf\nIncludes=1\ninclude\n");
    assert_next(1, "Include", "more.conf");
    assert_next(2, "Includes", "1");
    assert_end();
}

TEST(garbage_has_no_keys)
{
    begin("=1\n\377\376=2\nfoo\nbar baz=3\n\"q\"=4\n");
    assert_end();
    begin("");
    assert_end();
}
