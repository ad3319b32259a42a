/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where plugin-check looks when neither a flag nor Slurm has told; the rest is in
 * tests/e2e/test_plugin_check.py. */
#include "test.h"

#include "cmd/plugin_check.h"
#include "files.h"

#include <unistd.h>

static struct plugin_check check;
static struct page page;
static char *printed;
static size_t n_printed;

static const char *const directories[] = { "usr/lib/some-triplet/slurm-wlm", "usr/lib/slurm" };

static void begin(void)
{
    page = (struct page){ .to = open_memstream(&printed, &n_printed), .width = 80 };
    check = (struct plugin_check){ .root = test_dir(), .page = &page };
    assert_non_null(page.to);
}

static void end(void)
{
    fclose(page.to);
    free(printed);
}

FIXTURE(begin, end)

static void make_directories(void)
{
    for (size_t i = 0; i < COUNT(directories); i++)
        make_dir(directories[i]);
}

TEST(the_first_usual_place_that_there_is_is_taken)
{
    make_directories();
    plugin_check_places(&check);
    assert_string_equal(check.places, test_path("usr/lib/some-triplet/slurm-wlm"));
    fflush(page.to);
    assert_contains(printed, "(a usual place)");
}

TEST(what_slurm_tells_counts_for_more)
{
    make_directories();
    snprintf(check.told_dir, sizeof(check.told_dir), "%s/usr/lib/slurm", test_dir());
    check.told_by = "slurmctld";
    plugin_check_places(&check);
    assert_string_equal(check.places, check.told_dir);
}

TEST(without_any_the_flag_is_told)
{
    plugin_check_places(&check);
    assert_string_equal(check.places, "");
    assert_int_equal(page.counts[MARK_NOTE], 1);
    fflush(page.to);
    assert_contains(printed, "--plugin-dir");
}
