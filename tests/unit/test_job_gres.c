/* SPDX-License-Identifier: GPL-2.0-or-later */
/* GRES of a job that its TRES do not name. Texts as Slurm 22.05 and 24.11 write them. */
#include "sections.h"

#include "base/buf.h"
#include "model/job_gres.h"

static struct section *section;

static void tear_down(void)
{
    section = section_unref(section);
}

FIXTURE(NULL, tear_down)

/* Of a job on as many nodes as there are texts, until NULL. */
static void check(const char *job, const char *const *texts, const char *expected)
{
    struct job_gres gres;
    struct str found;

    section_unref(section);
    section = jobs_from("%s\n", job);
    job_gres_begin(&gres, section);
    for (; *texts; texts++)
        job_gres_add(&gres, str_of(*texts));
    found = section_text(section, job_gres_end(&gres, &section->jobs.job[0]));
    if (!str_eq(found, str_of(expected)))
        fail_msg("%s: \"%.*s\" and not \"%s\"", job, STR_ARG(found), expected);
}

#define TEXTS(...)                                                                                 \
    (const char *const[])                                                                          \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }

TEST(what_the_tres_name_is_left_to_them)
{
    check("RUNNING tres=cpu=1,gres/tpu=2", TEXTS("tpu:v4:2,nic:1"), "nic:1");
    check("RUNNING tres=cpu=1,gres/gpu:a100=1", TEXTS("tpu:v4:1,gpu:a100:1"), "tpu:v4:1");
    check("RUNNING tres=cpu=1,gres/gpu=4,gres/tpu=2", TEXTS("gpu:v100:2,gpu:a100:2,tpu:2"), "");
    check("RUNNING tres=cpu=1", TEXTS("gpu:a100:2"), "gpu:a100:2");
    check("RUNNING", TEXTS("nic:1"), "nic:1");
    check("SUSPENDED tres=cpu=1", TEXTS("nic:1"), "nic:1");
}

TEST(what_a_job_has_of_its_nodes_is_added_up)
{
    check("RUNNING tres=cpu=2", TEXTS("nic(CNT:1)", "nic(CNT:1)"), "nic:2");
    check("RUNNING tres=cpu=2", TEXTS("nic(CNT:1)", "", "tpu:v4(CNT:2),nic(CNT:3)", "(null)"),
          "nic:4,tpu:v4:2");
    check("RUNNING tres=cpu=2", TEXTS("fpga:x:2(IDX:0-1)", "fpga:y:1(IDX:3)"), "fpga:x:2,fpga:y:1");
}

TEST(what_is_not_consumed_or_none_of_is_left_out)
{
    check("RUNNING tres=cpu=1", TEXTS("bandwidth:lustre:0"), "");
    check("RUNNING tres=cpu=1", TEXTS("bandwidth:lustre(CNT:18446744073709551613),nic:1"), "nic:1");
    check("RUNNING tres=cpu=1", TEXTS("(null)"), "");
    check("RUNNING tres=cpu=1", TEXTS("tpu:v4:0"), "");
}

TEST(only_a_job_that_holds_resources_has_any)
{
    check("PENDING tres=cpu=1", TEXTS("nic:1"), "");
    check("COMPLETED tres=cpu=1", TEXTS("nic:1"), "");
    check("RUNNING+COMPLETING tres=cpu=1", TEXTS("nic:1"), "");
}

TEST(what_cannot_be_read_is_unknown)
{
    struct buf many;

    check("RUNNING tres=cpu=1", TEXTS("nic:1", "nic(CNT:x)"), "");
    check("RUNNING tres=cpu=1", TEXTS("nic:18446744073709551000", "nic:18446744073709551000"), "");
    buf_init(&many, 4096);
    for (int i = 0; i <= JOB_GRES_MAX; i++)
        buf_printf(&many, "n%d:1,", i);
    check("RUNNING tres=cpu=1", TEXTS(many.p), "");
    buf_free(&many);
}
