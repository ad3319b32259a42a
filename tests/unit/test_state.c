/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of model/state: states of jobs and nodes. */
#include "test.h"

#include "model/state.h"

static struct job_state job_of(const char *words)
{
    struct job_state state = JOB_STATE_NONE;

    for (struct str rest = str_of(words); rest.p;)
        assert_true(job_state_add(&state, str_cut(&rest, ',')));
    return state;
}

TEST(a_job_word_is_read_in_every_spelling)
{
    static const struct {
        const char *word, *short_word;
        struct job_state state;
    } rows[] = {
        { "PENDING", "PD", { JOB_PENDING, 0 } },
        { "RUNNING", "R", { JOB_RUNNING, 0 } },
        { "SUSPENDED", "S", { JOB_SUSPENDED, 0 } },
        { "COMPLETED", "CD", { JOB_COMPLETED, 0 } },
        { "CANCELLED", "CA", { JOB_CANCELLED, 0 } },
        { "FAILED", "F", { JOB_FAILED, 0 } },
        { "TIMEOUT", "TO", { JOB_TIMEOUT, 0 } },
        { "NODE_FAIL", "NF", { JOB_NODE_FAIL, 0 } },
        { "PREEMPTED", "PR", { JOB_PREEMPTED, 0 } },
        { "BOOT_FAIL", "BF", { JOB_BOOT_FAIL, 0 } },
        { "DEADLINE", "DL", { JOB_DEADLINE, 0 } },
        { "OUT_OF_MEMORY", "OOM", { JOB_OUT_OF_MEMORY, 0 } },
        { "COMPLETING", "CG", { JOB_BASE_UNKNOWN, JOB_COMPLETING } },
        { "CONFIGURING", "CF", { JOB_BASE_UNKNOWN, JOB_CONFIGURING } },
        { "RESIZING", "RS", { JOB_BASE_UNKNOWN, JOB_RESIZING } },
        { "REQUEUED", "RQ", { JOB_BASE_UNKNOWN, JOB_REQUEUED } },
        { "REQUEUE_FED", "RF", { JOB_BASE_UNKNOWN, JOB_REQUEUE_FED } },
        { "REQUEUE_HOLD", "RH", { JOB_BASE_UNKNOWN, JOB_REQUEUE_HOLD } },
        { "SPECIAL_EXIT", "SE", { JOB_BASE_UNKNOWN, JOB_SPECIAL_EXIT } },
        { "STAGE_OUT", "SO", { JOB_BASE_UNKNOWN, JOB_STAGE_OUT } },
        { "SIGNALING", "SI", { JOB_BASE_UNKNOWN, JOB_SIGNALING } },
        { "STOPPED", "ST", { JOB_BASE_UNKNOWN, JOB_STOPPED } },
        { "REVOKED", "RV", { JOB_BASE_UNKNOWN, JOB_REVOKED } },
        { "RESV_DEL_HOLD", "RD", { JOB_BASE_UNKNOWN, JOB_RESV_DEL_HOLD } },
        { "LAUNCH_FAILED", "launch_failed", { JOB_BASE_UNKNOWN, JOB_LAUNCH_FAILED } },
        { "POWER_UP_NODE", "power_up_node", { JOB_BASE_UNKNOWN, JOB_POWER_UP_NODE } },
        { "RECONFIG_FAIL", "reconfig_fail", { JOB_BASE_UNKNOWN, JOB_RECONFIG_FAIL } },
        { "UPDATE_DB", "update_db", { JOB_BASE_UNKNOWN, JOB_UPDATE_DB } },
        { "EXPEDITING", "expediting", { JOB_BASE_UNKNOWN, JOB_EXPEDITING } },
        { "CANCELLED by 1001", "cancelled by 0", { JOB_CANCELLED, 0 } },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct job_state by_word = job_of(rows[i].word), by_short = job_of(rows[i].short_word);

        if (by_word.base != rows[i].state.base || by_word.flags != rows[i].state.flags ||
            by_short.base != rows[i].state.base || by_short.flags != rows[i].state.flags)
            fail_msg("%s or %s was read wrongly", rows[i].word, rows[i].short_word);
    }
}

TEST(a_word_that_is_no_job_state_changes_nothing)
{
    static const char *const words[] = { "",    "?",           "UNKNOWN", "RUNNINGX",
                                         "RUN", "CANCELLEDby", "by",      "idle" };
    struct job_state job = job_of("RUNNING,SIGNALING");

    for (size_t i = 0; i < COUNT(words); i++) {
        assert_false(job_state_add(&job, str_of(words[i])));
        assert_int_equal(job.base, JOB_RUNNING);
        assert_int_equal(job.flags, JOB_SIGNALING);
    }
}

TEST(the_job_word_is_the_one_that_squeue_prints)
{
    static const char *const rows[][2] = {
        { "RUNNING", "RUNNING" },
        { "COMPLETED,COMPLETING", "COMPLETING" },
        { "CANCELLED,COMPLETING,SIGNALING", "COMPLETING" },
        { "COMPLETED,STAGE_OUT,CONFIGURING", "STAGE_OUT" },
        { "RUNNING,CONFIGURING,POWER_UP_NODE", "CONFIGURING" },
        { "RUNNING,CONFIGURING,RESIZING", "CONFIGURING" },
        { "PENDING,EXPEDITING,RESIZING", "EXPEDITING" },
        { "PENDING,REQUEUED,REQUEUE_FED,REQUEUE_HOLD", "REQUEUED" },
        { "PENDING,REQUEUE_FED,REQUEUE_HOLD", "REQUEUE_FED" },
        { "PENDING,REQUEUE_HOLD,SPECIAL_EXIT", "REQUEUE_HOLD" },
        { "PENDING,SPECIAL_EXIT,STOPPED", "SPECIAL_EXIT" },
        { "RUNNING,STOPPED,REVOKED", "STOPPED" },
        { "PENDING,REVOKED,RESV_DEL_HOLD", "REVOKED" },
        { "PENDING,RESV_DEL_HOLD,SIGNALING", "RESV_DEL_HOLD" },
        { "RUNNING,SIGNALING", "SIGNALING" },
        { "FAILED,LAUNCH_FAILED", "FAILED" },
        { "TIMEOUT,UPDATE_DB", "TIMEOUT" },
        { "PENDING,RECONFIG_FAIL", "PENDING" },
        { "LAUNCH_FAILED", "UNKNOWN" },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct job_state job = job_of(rows[i][0]);

        assert_str(job_state_word(job), rows[i][1]);
        assert_str(job_state_words[job_state_index(job)], rows[i][1]);
    }
    assert_str(job_state_word(JOB_STATE_NONE), "UNKNOWN");
}

TEST(every_job_word_reads_back_as_itself)
{
    for (size_t i = 0; i < n_job_state_words; i++) {
        struct job_state job = JOB_STATE_NONE;

        if (i == JOB_BASE_UNKNOWN)
            continue;
        assert_true(job_state_add(&job, job_state_words[i]));
        assert_int_equal(job_state_index(job), i);
    }
}

TEST(only_a_job_with_an_allocation_holds_resources)
{
    assert_true(job_holds_resources(job_of("RUNNING")));
    assert_true(job_holds_resources(job_of("SUSPENDED")));
    assert_true(job_holds_resources(job_of("COMPLETING")));
    assert_true(job_holds_resources(job_of("CANCELLED,COMPLETING")));
    assert_true(job_holds_resources(job_of("PENDING,COMPLETING"))); /* requeued, not yet gone */
    assert_true(job_holds_resources(job_of("CONFIGURING")));
    assert_true(job_holds_resources(job_of("SIGNALING")));
    assert_false(job_holds_resources(job_of("PENDING")));
    assert_false(job_holds_resources(job_of("PENDING,SIGNALING")));
    assert_false(job_holds_resources(job_of("COMPLETED")));
    assert_false(job_holds_resources(job_of("STAGE_OUT")));
    assert_false(job_holds_resources(job_of("REQUEUE_HOLD")));
    assert_false(job_holds_resources(JOB_STATE_NONE));
}

TEST(a_suspended_job_has_released_its_cpus_and_a_stopped_one_has_not)
{
    assert_false(job_holds_cpus(job_of("SUSPENDED")));
    assert_true(job_holds_cpus(job_of("STOPPED")));
    assert_true(job_holds_cpus(job_of("RUNNING,STOPPED")));
    assert_true(job_holds_cpus(job_of("RUNNING")));
    assert_true(job_holds_cpus(job_of("COMPLETING")));
    assert_false(job_holds_cpus(job_of("PENDING")));
    assert_false(job_holds_cpus(job_of("COMPLETED")));
}

TEST(a_pending_job_requests_resources_whatever_flag_squeue_shows)
{
    static const char *const pending[] = {
        "PENDING",      "PENDING,REQUEUED",   "REQUEUED",     "REQUEUE_FED",
        "REQUEUE_HOLD", "PENDING,EXPEDITING", "SPECIAL_EXIT", "RESV_DEL_HOLD",
    };
    static const char *const others[] = {
        "RUNNING",   "SUSPENDED", "PENDING,COMPLETING", "CONFIGURING",     "STOPPED",
        "COMPLETED", "STAGE_OUT", "CANCELLED,REVOKED",  "PENDING,REVOKED", "REVOKED",
    };

    for (size_t i = 0; i < COUNT(pending); i++)
        assert_true(job_requests_resources(job_of(pending[i])));
    for (size_t i = 0; i < COUNT(others); i++)
        assert_false(job_requests_resources(job_of(others[i])));
    assert_false(job_requests_resources(JOB_STATE_NONE));
}

static void assert_node(const char *text, enum node_base base, uint32_t flags)
{
    struct node_state node;

    if (!node_state_parse(str_of(text), &node))
        fail_msg("\"%s\" was not read", text);
    if (node.base != base || node.flags != flags)
        fail_msg("\"%s\" was read as %u, %x", text, node.base, node.flags);
}

TEST(a_node_state_is_read_as_any_release_prints_it)
{
    /* StateComplete, scontrol show node */
    assert_node("IDLE", NODE_IDLE, 0);
    assert_node("idle+drain", NODE_IDLE, NODE_DRAIN);
    assert_node("mixed+reserved", NODE_MIXED, NODE_RESERVED);
    assert_node("down+not_responding", NODE_DOWN, NODE_NOT_RESPONDING);
    assert_node("MIXED+CLOUD+NOT_RESPONDING+POWERED_DOWN", NODE_MIXED,
                NODE_CLOUD | NODE_NOT_RESPONDING | NODE_POWERED_DOWN);
    assert_node("IDLE+RESERVED+MAINTENANCE", NODE_IDLE, NODE_RESERVED | NODE_MAINTENANCE);
    assert_node("IDLE*+CLOUD+POWER", NODE_IDLE,
                NODE_NOT_RESPONDING | NODE_CLOUD | NODE_POWERED_DOWN);
    assert_node("DOWN+DRAIN+INVALID_REG", NODE_DOWN, NODE_DRAIN | NODE_INVALID_REG);
    assert_node("FUTURE+DYNAMIC", NODE_FUTURE, NODE_DYNAMIC_FUTURE);
    assert_node("IDLE+DYNAMIC_NORM+BLOCKED+EXTERNAL", NODE_IDLE,
                NODE_DYNAMIC_NORM | NODE_BLOCKED | NODE_EXTERNAL);
    assert_node("MIXED+PERFCTRS", NODE_MIXED, 0);

    /* StateLong and StateCompact */
    assert_node("mixed", NODE_MIXED, 0);
    assert_node("alloc", NODE_ALLOCATED, 0);
    assert_node("idle~", NODE_IDLE, NODE_POWERED_DOWN);
    assert_node("idle#", NODE_IDLE, NODE_POWERING_UP);
    assert_node("idle!", NODE_IDLE, NODE_POWER_DOWN);
    assert_node("idle%", NODE_IDLE, NODE_POWERING_DOWN);
    assert_node("alloc$", NODE_ALLOCATED, NODE_MAINTENANCE);
    assert_node("mix@", NODE_MIXED, NODE_REBOOT_REQUESTED);
    assert_node("mix^", NODE_MIXED, NODE_REBOOT_ISSUED);
    assert_node("mixed-", NODE_MIXED, NODE_PLANNED);
    assert_node("alloc+", NODE_ALLOCATED, NODE_COMPLETING);
    assert_node("down*", NODE_DOWN, NODE_NOT_RESPONDING);
    assert_node("futr", NODE_FUTURE, 0);
    assert_node("unk*", NODE_UNKNOWN, NODE_NOT_RESPONDING);
    assert_node("drained*", NODE_IDLE, NODE_DRAIN | NODE_NOT_RESPONDING);
    assert_node("drain", NODE_IDLE, NODE_DRAIN);
    assert_node("drain$", NODE_IDLE, NODE_DRAIN | NODE_MAINTENANCE);
    assert_node("draining", NODE_ALLOCATED, NODE_DRAIN);
    assert_node("drng@", NODE_ALLOCATED, NODE_DRAIN | NODE_REBOOT_REQUESTED);
    assert_node("failing*", NODE_ALLOCATED, NODE_FAIL | NODE_NOT_RESPONDING);
    assert_node("failg", NODE_ALLOCATED, NODE_FAIL);
    assert_node("fail", NODE_UNKNOWN, NODE_FAIL);
    assert_node("comp", NODE_UNKNOWN, NODE_COMPLETING);
    assert_node("comp$", NODE_UNKNOWN, NODE_COMPLETING | NODE_MAINTENANCE);
    assert_node("maint", NODE_IDLE, NODE_MAINTENANCE);
    assert_node("maint*", NODE_IDLE, NODE_MAINTENANCE | NODE_NOT_RESPONDING);
    assert_node("resv", NODE_IDLE, NODE_RESERVED);
    assert_node("reserved", NODE_IDLE, NODE_RESERVED);
    assert_node("plnd", NODE_IDLE, NODE_PLANNED);
    assert_node("block", NODE_IDLE, NODE_BLOCKED);
    assert_node("npc", NODE_IDLE, 0);
    assert_node("reboot", NODE_UNKNOWN, NODE_REBOOT_REQUESTED);
    assert_node("reboot^", NODE_UNKNOWN, NODE_REBOOT_ISSUED);
    assert_node("boot*", NODE_UNKNOWN, NODE_REBOOT_REQUESTED | NODE_NOT_RESPONDING);
    assert_node("inval", NODE_UNKNOWN, NODE_INVALID_REG);
    assert_node("powering_down", NODE_UNKNOWN, NODE_POWERING_DOWN);
    assert_node("pow_dn", NODE_UNKNOWN, NODE_POWER_DOWN);
    assert_node("pow_up", NODE_UNKNOWN, NODE_POWER_UP);
    assert_node("canc_r", NODE_UNKNOWN, NODE_REBOOT_CANCEL);
}

/* As slurm_node_state_string() of the libslurm of 22.05.8, 24.11.5 and 26.05.3 says. Of all 7 bases
 * and 2^24 combinations of flags, MIXED+FAIL is the only one with a base for which they differ. */
TEST(a_node_that_is_to_fail_is_called_as_its_release_calls_it)
{
    static const char *const older[] = { "20.11.9", "22.05.8", "24.11.5", "25.05.3", "25.11.0" };
    static const char *const newer[] = {
        "25.11.1", "26.05.3", "26.11.0-0rc1", "", "unknown", "26"
    };
    static const struct {
        struct node_state state;
        const char *before, *since;
    } rows[] = {
        { { NODE_MIXED, NODE_FAIL }, "fail", "failing" },
        { { NODE_MIXED, NODE_FAIL | NODE_NOT_RESPONDING }, "fail", "failing" },
        { { NODE_MIXED, NODE_FAIL | NODE_MAINTENANCE | NODE_RESERVED }, "fail", "failing" },
        { { NODE_MIXED, NODE_FAIL | NODE_REBOOT_REQUESTED }, "fail", "failing" },
        { { NODE_MIXED, NODE_FAIL | NODE_COMPLETING }, "failing", "failing" },
        { { NODE_MIXED, NODE_FAIL | NODE_DRAIN }, "draining", "draining" },
        { { NODE_MIXED, NODE_FAIL | NODE_INVALID_REG }, "inval", "inval" },
        { { NODE_ALLOCATED, NODE_FAIL }, "failing", "failing" },
        { { NODE_IDLE, NODE_FAIL }, "fail", "fail" },
        { { NODE_IDLE, NODE_FAIL | NODE_COMPLETING }, "failing", "failing" },
        { { NODE_IDLE, NODE_FAIL | NODE_MAINTENANCE }, "maint", "maint" },
        { { NODE_DOWN, NODE_FAIL }, "fail", "fail" },
        { { NODE_DOWN, NODE_FAIL | NODE_REBOOT_ISSUED }, "reboot", "reboot" },
        { { NODE_MIXED, 0 }, "mixed", "mixed" },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        for (size_t k = 0; k < COUNT(older); k++) {
            struct node_state state = rows[i].state;

            node_state_set_release(&state, str_of(older[k]));
            assert_str(node_state_word(state), rows[i].before);
        }
        for (size_t k = 0; k < COUNT(newer); k++) {
            struct node_state state = rows[i].state;

            node_state_set_release(&state, str_of(newer[k]));
            assert_str(node_state_word(state), rows[i].since);
        }
    }
}

TEST(the_mark_of_an_older_release_is_no_flag_of_slurm)
{
    struct node_state state = { NODE_MIXED, NODE_FAIL }, again;
    struct buf text;

    node_state_set_release(&state, STR("24.11.5"));
    buf_init(&text, 100);
    node_state_put(&text, state);
    assert_str(buf_str(&text), "mixed+fail");
    assert_true(node_state_parse(buf_str(&text), &again));
    assert_int_equal(again.flags, NODE_FAIL);
    assert_false(node_takes_jobs(state));
    buf_free(&text);
}

TEST(the_words_of_a_json_list_may_come_in_any_order)
{
    struct node_state node = NODE_STATE_NONE;

    assert_true(node_state_add(&node, STR("DRAIN")));
    assert_true(node_state_add(&node, STR("DOWN")));
    assert_true(node_state_add(&node, STR("NOT_RESPONDING")));
    assert_int_equal(node.base, NODE_DOWN);
    assert_int_equal(node.flags, NODE_DRAIN | NODE_NOT_RESPONDING);
}

TEST(an_unknown_part_is_told_and_the_known_ones_are_kept)
{
    static const char *const texts[] = { "idle+nonsense+drain", "idle++drain", "+idle+drain",
                                         "idle+drain+?" };
    struct node_state node;

    for (size_t i = 0; i < COUNT(texts); i++) {
        assert_false(node_state_parse(str_of(texts[i]), &node));
        assert_int_equal(node.base, NODE_IDLE);
        assert_int_equal(node.flags, NODE_DRAIN);
    }
    assert_false(node_state_parse(STR(""), &node));
    assert_false(node_state_parse(STR("*"), &node));
    assert_false(node_state_parse((struct str){ NULL, 0 }, &node));
    assert_int_equal(node.base, NODE_UNKNOWN);
    assert_int_equal(node.flags, 0);
}

TEST(the_node_word_is_the_one_that_sinfo_prints)
{
    static const struct {
        const char *word;
        struct node_state state;
    } rows[] = {
        { "idle", { NODE_IDLE, 0 } },
        { "idle", { NODE_IDLE, NODE_POWERED_DOWN | NODE_CLOUD } },
        { "idle", { NODE_IDLE, NODE_RESERVED | NODE_NOT_RESPONDING } },
        { "reserved", { NODE_IDLE, NODE_RESERVED | NODE_PLANNED | NODE_BLOCKED } },
        { "blocked", { NODE_IDLE, NODE_BLOCKED | NODE_PLANNED } },
        { "planned", { NODE_IDLE, NODE_PLANNED } },
        { "completing", { NODE_IDLE, NODE_COMPLETING } },
        { "mixed", { NODE_MIXED, NODE_RESERVED | NODE_PLANNED } },
        { "completing", { NODE_MIXED, NODE_COMPLETING } },
        { "mixed", { NODE_MIXED, NODE_MAINTENANCE } },
        { "allocated", { NODE_ALLOCATED, NODE_COMPLETING } },
        { "allocated", { NODE_ALLOCATED, NODE_REBOOT_REQUESTED } },
        { "allocated", { NODE_ALLOCATED, NODE_MAINTENANCE } },
        { "down", { NODE_DOWN, NODE_NOT_RESPONDING } },
        { "down", { NODE_DOWN, NODE_COMPLETING } },
        { "down", { NODE_DOWN, NODE_MAINTENANCE | NODE_RESERVED } },
        { "maint", { NODE_IDLE, NODE_MAINTENANCE | NODE_RESERVED } },
        { "maint", { NODE_IDLE, NODE_MAINTENANCE | NODE_REBOOT_ISSUED } },
        { "reboot", { NODE_DOWN, NODE_REBOOT_ISSUED } },
        { "reboot", { NODE_IDLE, NODE_REBOOT_REQUESTED | NODE_DRAIN } },
        { "reboot", { NODE_DOWN, NODE_MAINTENANCE | NODE_REBOOT_ISSUED } },
        { "drained", { NODE_IDLE, NODE_DRAIN } },
        { "drained", { NODE_DOWN, NODE_DRAIN | NODE_NOT_RESPONDING } },
        { "drained", { NODE_IDLE, NODE_DRAIN | NODE_MAINTENANCE } },
        { "draining", { NODE_MIXED, NODE_DRAIN } },
        { "draining", { NODE_ALLOCATED, NODE_DRAIN | NODE_REBOOT_REQUESTED } },
        { "draining", { NODE_IDLE, NODE_DRAIN | NODE_COMPLETING } },
        { "failing", { NODE_ALLOCATED, NODE_FAIL } },
        { "failing", { NODE_MIXED, NODE_FAIL } },
        { "failing", { NODE_IDLE, NODE_FAIL | NODE_COMPLETING } },
        { "fail", { NODE_DOWN, NODE_FAIL } },
        { "drained", { NODE_IDLE, NODE_FAIL | NODE_DRAIN } },
        { "inval", { NODE_ALLOCATED, NODE_INVALID_REG | NODE_DRAIN | NODE_MAINTENANCE } },
        { "future", { NODE_FUTURE, NODE_DYNAMIC_FUTURE } },
        { "cloud", { NODE_UNKNOWN, NODE_CLOUD } },
        { "unknown", { NODE_UNKNOWN, NODE_CLOUD | NODE_POWERED_DOWN } },
        { "unknown", { NODE_UNKNOWN, NODE_NOT_RESPONDING } },
        { "resume", { NODE_UNKNOWN, NODE_RESUME } },
        { "error", { NODE_ERROR, NODE_NOT_RESPONDING } },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_str(node_state_word(rows[i].state), rows[i].word);
        assert_str(node_state_words[node_state_index(rows[i].state)], rows[i].word);
    }
}

TEST(every_node_word_reads_back_as_itself)
{
    for (size_t i = 0; i < n_node_state_words; i++) {
        struct node_state node;

        if (!node_state_parse(node_state_words[i], &node))
            fail_msg("%.*s was not read", STR_ARG(node_state_words[i]));
        assert_str(node_state_word(node), node_state_words[i].p);
    }
}

TEST(a_whole_node_state_is_written_in_slurms_order_and_reads_back)
{
    struct buf buf;
    struct node_state again;

    buf_init(&buf, 1000);
    node_state_put(&buf, (struct node_state){ NODE_IDLE, NODE_NOT_RESPONDING | NODE_DRAIN });
    assert_str(buf_str(&buf), "idle+drain+not_responding");
    for (uint32_t base = 0; base < NODE_BASES; base++) {
        for (uint32_t bit = 0; bit < 24; bit++) {
            uint32_t flags = UINT32_C(1) << bit | UINT32_C(1) << (bit * 7 + 3) % 24;

            buf_reset(&buf);
            node_state_put(&buf, (struct node_state){ (uint8_t)base, flags });
            assert_true(node_state_parse(buf_str(&buf), &again));
            assert_int_equal(again.flags, flags);
            assert_int_equal(again.base, base);
            assert_true(node_flag_word((enum node_flag)(1 << bit)).n > 0);
        }
    }
    assert_str(node_base_word(NODE_ALLOCATED), "allocated");
    buf_free(&buf);
}
