/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where plugin-check looks when neither a flag nor Slurm has told; the rest is in
 * tests/e2e/test_plugin_check.py. */
#include "test.h"

#include "cmd/plugin_check.h"

#include <unistd.h>

static char root[] = "/dev/shm/sonde-check-XXXXXX";
static struct plugin_check check;
static struct page page;
static char *printed;
static size_t n_printed;

static const char *const directories[] = { "/usr", "/usr/lib", "/usr/lib/some-triplet",
                                           "/usr/lib/some-triplet/slurm-wlm", "/usr/lib/slurm" };

static void begin(void)
{
    memcpy(root + strlen(root) - 6, "XXXXXX", 6);
    page = (struct page){ .to = open_memstream(&printed, &n_printed), .width = 80 };
    check = (struct plugin_check){ .root = root, .page = &page };
    assert_non_null(page.to);
    assert_non_null(mkdtemp(root));
}

static void end(void)
{
    fclose(page.to);
    free(printed);
    for (size_t i = COUNT(directories); i-- > 0;) {
        char path[200];

        snprintf(path, sizeof(path), "%s%s", root, directories[i]);
        rmdir(path);
    }
    assert_int_equal(rmdir(root), 0);
}

FIXTURE(begin, end)

static void make_directories(void)
{
    for (size_t i = 0; i < COUNT(directories); i++) {
        char path[200];

        snprintf(path, sizeof(path), "%s%s", root, directories[i]);
        assert_int_equal(mkdir(path, 0755), 0);
    }
}

TEST(the_first_usual_place_that_there_is_is_taken)
{
    char expected[200];

    make_directories();
    plugin_check_places(&check);
    snprintf(expected, sizeof(expected), "%s/usr/lib/some-triplet/slurm-wlm", root);
    assert_string_equal(check.places, expected);
    fflush(page.to);
    assert_contains(printed, "(a usual place)");
}

TEST(what_slurm_tells_counts_for_more)
{
    make_directories();
    snprintf(check.told_dir, sizeof(check.told_dir), "%s/usr/lib/slurm", root);
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
