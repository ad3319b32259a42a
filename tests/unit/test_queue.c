/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of web/queue: filters and order of jobs on a board. */
#include "made_board.h"

#include "source/sim.h"
#include "web/queue.h"
#include "web/show_cluster.h"

#include <math.h>

int64_t sections_now = MADE_NOW;

struct asking {
    struct board *board;
    struct job_filter filter;
    struct viewer viewer;
    struct queue_question question;
    struct arena arena;
    struct queue_page page;
    struct err err;
    char found[400];
};

static void begin(struct asking *asking, struct board *board)
{
    *asking = (struct asking){ .board = board, .viewer = { .is_staff = true } };
    job_filter_clear(&asking->filter);
    asking->question = (struct queue_question){
        .filter = &asking->filter,
        .sort = QUEUE_BY_ID,
        .limit = QUEUE_ROWS_MAX,
        .viewer = &asking->viewer,
        .now = MADE_NOW,
    };
}

/* "1,2,3": ids of the page in its order. */
static const char *found(struct asking *asking)
{
    size_t at = 0;

    asking->found[0] = '\0';
    if (queue_find(asking->board, &asking->question, &asking->arena, &asking->page, &asking->err) <
        0)
        fail_msg("%s", asking->err.text);
    for (size_t i = 0; i < asking->page.n && at < sizeof(asking->found); i++)
        at += (size_t)snprintf(asking->found + at, sizeof(asking->found) - at, "%s%u", i ? "," : "",
                               asking->page.row[i].job->id);
    return asking->found;
}

static int fails(struct asking *asking)
{
    return queue_find(asking->board, &asking->question, &asking->arena, &asking->page,
                      &asking->err);
}

static void end(struct asking *asking)
{
    arena_clear(&asking->arena);
    board_unref(asking->board);
}

/* A word at a time. */
static struct words one(const char *word)
{
    static struct str words[8];
    static size_t next;
    struct str *to = &words[next++ % COUNT(words)];

    *to = str_of(word);
    return (struct words){ to, 1 };
}

/* What the tests of filters choose from. */
static struct board *some_jobs(void)
{
    /* the start of 57 is expected */
    return made_board(
        NULL, jobs_from("* cpus=4 partition=main\n"
                        "RUNNING id=1 user=alice account=physics name=Train-Net qos=high "
                        "tres=cpu=4,gres/gpu=2,gres/gpu:a100=2 nodes=n1 submit=-9999s start=-1h\n"
                        "PENDING id=2 user=bob account=physics name=fold partition=gpu,main "
                        "cpus=64 reason='ReqNodeNotAvail, UnavailableNodes:n[7-9]' submit=-9998s\n"
                        "RUNNING+COMPLETING id=3 user=carol account=biology nodes=n[2-4],x1 "
                        "submit=-9997s start=-60s\n"
                        "COMPLETED id=4 user=alice account=biology reservation=course nodes=n1 "
                        "submit=-9996s start=-500s end=-100s\n"
                        "* user=dave account=chemistry reason=Priority\n"
                        "PENDING id=57 array_job_id=50 array_task_id=7 submit=-9943s start=+1000s\n"
                        "PENDING id=60 het_job_id=59 het_offset=1 tasks=30 submit=-9940s\n"));
}

TEST(every_filter_leaves_what_it_names)
{
    static const uint32_t array[] = { 50 }, het[] = { 59, 1 };
    struct asking a;

    begin(&a, some_jobs());
    assert_string_equal(found(&a), "1,2,3,4,57,60");
    assert_int_equal(a.page.matches, 6);
    assert_int_equal(a.page.jobs, 35);
#define FOUND_WITH(member, value, ids)                                                             \
    do {                                                                                           \
        job_filter_clear(&a.filter);                                                               \
        a.filter.member = value;                                                                   \
        assert_string_equal(found(&a), ids);                                                       \
    } while (0)
    FOUND_WITH(users, one("alice"), "1,4");
    FOUND_WITH(users, one("ali"), "");
    FOUND_WITH(users, one(""), "");
    FOUND_WITH(accounts, one("biology"), "3,4");
    FOUND_WITH(qos, one("high"), "1");
    FOUND_WITH(names, one("fold"), "2");
    FOUND_WITH(names, one("alice"), ""); /* a text, but no name */
    FOUND_WITH(reservations, one("course"), "4");
    FOUND_WITH(partitions, one("gpu"), "2");
    FOUND_WITH(partitions, one("main"), "1,2,3,4,57,60");
    FOUND_WITH(clusters, one("north"), "1,2,3,4,57,60");
    FOUND_WITH(clusters, one("south"), "");
    FOUND_WITH(nodes, one("n1"), "1,4");
    FOUND_WITH(nodes, one("n[3,9]"), "3");
    FOUND_WITH(nodes, one("x1"), "3");
    FOUND_WITH(gpu_types, one("a100"), "1");
    FOUND_WITH(gpu_types, one("v100"), "");
    FOUND_WITH(min_gpus, 1, "1");
    FOUND_WITH(min_cpus, 5, "2");
    FOUND_WITH(min_seconds, 400, "1,4");
    FOUND_WITH(from, MADE_NOW - 50, "1,2,3,57,60");
    FOUND_WITH(to, MADE_NOW - 10000 + 4, "1,2,3");
    FOUND_WITH(array_task_id, 7, "57");
    FOUND_WITH(het_offset, 1, "60");
    FOUND_WITH(efficiency_below, 0.1, "1,2,3,4,57,60");
    job_filter_clear(&a.filter);
    a.filter.ids = array;
    a.filter.n_ids = 1;
    assert_string_equal(found(&a), "57");
    a.filter.ids = het;
    a.filter.n_ids = 2;
    assert_string_equal(found(&a), "1,60");
    end(&a);
}

TEST(a_state_is_any_of_its_words)
{
    struct asking a;

    begin(&a, some_jobs());
    FOUND_WITH(states, one("RUNNING"), "1");
    FOUND_WITH(states, one("r"), "1");
    FOUND_WITH(states, one("COMPLETING"), "3");
    FOUND_WITH(states, one("PD"), "2,57,60");
    FOUND_WITH(states, one("UNKNOWN"), "");
    FOUND_WITH(states, one("no such state"), "");
    end(&a);
}

/* As Slurm makes them: what squeue shows is one word of each. */
static struct board *jobs_with_flags(void)
{
    static const char *const states[] = {
        "RUNNING",
        "RUNNING+COMPLETING",
        "RUNNING+CONFIGURING",
        "RUNNING+STOPPED",
        "RUNNING+SIGNALING",
        "RUNNING+RESIZING",
        "SUSPENDED",
        "COMPLETED",
        "COMPLETED+COMPLETING",
        "PENDING",
        "PENDING+SPECIAL_EXIT",
        "PENDING+REQUEUED+REQUEUE_HOLD",
        "CONFIGURING",
        "UNKNOWN",
    };
    struct section *jobs = section_new(KIND_JOBS);

    for (size_t i = 0; i < COUNT(states); i++)
        section_add(jobs, "%s partition=main\n", states[i]);
    return made_board(nodes_from("partition main\n"), jobs);
}

TEST(a_list_by_state_has_as_many_as_were_counted)
{
    struct str holding[10], rest = STR(SHOW_HOLDING);
    const struct cluster_sums *sums;
    struct asking a;
    size_t n = 0;

    begin(&a, jobs_with_flags());
    sums = &a.board->cluster[0].sums;
    assert_int_equal(sums->n_job_states, 12);
    for (size_t i = 0; i < sums->n_job_states; i++) {
        a.filter.states = (struct words){ &sums->job_state[i].word, 1 };
        found(&a);
        assert_true((double)a.page.jobs == sums->job_state[i].jobs.jobs);
    }
    while (rest.p && n < COUNT(holding))
        holding[n++] = str_cut(&rest, ',');
    a.filter.states = (struct words){ holding, n };
    assert_string_equal(found(&a), "1,2,3,4,5,6,7,9,13");
    assert_true(sums->partition[0].jobs.holding.jobs == 9);
    end(&a);
}

TEST(a_reason_is_that_of_the_sums_and_of_who_waits)
{
    struct asking a;

    begin(&a, some_jobs());
    for (size_t i = 0; i < a.board->cluster[0].sums.n_reasons; i++) {
        const struct sums_by_word *sum = &a.board->cluster[0].sums.reason[i];

        a.question.reasons = (struct words){ &sum->word, 1 };
        found(&a);
        assert_true((double)a.page.jobs == sum->jobs.jobs);
    }
    assert_int_equal(a.board->cluster[0].sums.n_reasons, 2);
    a.question.reasons = one("ReqNodeNotAvail, UnavailableNodes");
    assert_string_equal(found(&a), "2");
    a.question.reasons = one("None"); /* what runs does not wait */
    assert_string_equal(found(&a), "");
    end(&a);
}

TEST(a_text_is_found_anywhere_whatever_its_case)
{
    struct asking a;

    begin(&a, some_jobs());
#define FOUND_TEXT(word, ids)                                                                      \
    do {                                                                                           \
        a.question.text = STR(word);                                                               \
        assert_string_equal(found(&a), ids);                                                       \
    } while (0)
    FOUND_TEXT("train-NET", "1");
    FOUND_TEXT("ALICE", "1,4");
    FOUND_TEXT("chem", "57,60");
    FOUND_TEXT("x1", "3");
    FOUND_TEXT("50_7", "57");
    FOUND_TEXT("59+1", "60");
    FOUND_TEXT("57", "57");
    FOUND_TEXT("high", ""); /* of a QOS */
    FOUND_TEXT("7 5", "");  /* what stands between two ids is in none */
    end(&a);
}

TEST(a_user_does_not_see_anothers_job)
{
    static const struct str accounts[] = { STR_INIT("biology") };
    struct asking a;

    begin(&a, some_jobs());
    a.viewer = (struct viewer){ .user = STR("alice") };
    assert_string_equal(found(&a), "1,4");
    assert_int_equal(a.page.matches, 2);
    assert_int_equal(a.page.jobs, 2);
    a.question.sort = QUEUE_BY_SUBMIT;
    a.question.is_descending = true;
    assert_string_equal(found(&a), "4,1");
    a.filter.users = one("bob");
    assert_string_equal(found(&a), "");
    assert_int_equal(a.page.matches, 0);
    job_filter_clear(&a.filter);
    a.question.text = STR("bob");
    assert_string_equal(found(&a), "");
    a.question.text = STR("");
    a.viewer.accounts = (struct words){ accounts, 1 };
    assert_string_equal(found(&a), "4,3,1");
    a.viewer = (struct viewer){ .user = STR("eve") };
    assert_string_equal(found(&a), "");
    end(&a);
}

TEST(what_may_be_shown_can_be_narrowed_by_the_question)
{
    static const struct str accounts[] = { STR_INIT("chemistry") };
    struct asking a;

    begin(&a, some_jobs());
    a.filter.visible_users = one("bob");
    assert_string_equal(found(&a), "2");
    a.filter.visible_accounts = (struct words){ accounts, 1 };
    assert_string_equal(found(&a), "2,57,60");
    a.filter.visible_users = one("nobody");
    a.filter.visible_accounts = (struct words){ NULL, 0 };
    assert_string_equal(found(&a), "");
    end(&a);
}

TEST(what_is_not_told_is_last_either_way)
{
    struct asking a;

    begin(&a, made_board(NULL, jobs_from("RUNNING user=bob cpus=unknown\n"
                                         "RUNNING user= cpus=8 tres=cpu=8\n"
                                         "RUNNING user=alice cpus=2 tres=cpu=1,gres/gpu=1\n")));
    a.question.sort = QUEUE_BY_CPUS;
    assert_string_equal(found(&a), "3,2,1");
    a.question.is_descending = true;
    assert_string_equal(found(&a), "2,3,1");
    a.question.sort = QUEUE_BY_USER;
    assert_string_equal(found(&a), "1,3,2");
    a.question.is_descending = false;
    assert_string_equal(found(&a), "3,1,2");
    a.question.sort = QUEUE_BY_GPUS;
    assert_string_equal(found(&a), "2,3,1");
    assert_true(a.page.row[0].gpus == 0);
    assert_true(a.page.row[1].gpus == 1);
    assert_true(isnan(a.page.row[2].gpus));
    end(&a);
}

TEST(a_job_that_waits_has_not_run_whatever_start_is_expected)
{
    struct asking a;

    begin(&a, some_jobs());
    a.question.sort = QUEUE_BY_ELAPSED;
    assert_string_equal(found(&a), "3,4,1,60,57,2");
    assert_int_equal(a.page.row[0].elapsed_seconds, 60);
    assert_int_equal(a.page.row[1].elapsed_seconds, 400);
    assert_int_equal(a.page.row[2].elapsed_seconds, 3600);
    assert_int_equal(a.page.row[4].elapsed_seconds, -1);
    a.question.sort = QUEUE_BY_START;
    assert_string_equal(found(&a), "1,4,3,60,57,2");
    end(&a);
}

/* Two clusters of the simulation. */
static struct board *large_board(void)
{
    struct board *board = board_new(2, MADE_NOW);

    for (size_t i = 0; i < 2; i++) {
        const struct sim sim = { .nodes = 64, .jobs = 1000, .seed = i + 1 };

        board->cluster[i].name = i ? STR("south") : STR("north");
        board->cluster[i].section[KIND_JOBS] = sim_section(&sim, KIND_JOBS, MADE_NOW);
    }
    board_sum(board);
    return board;
}

/* Whatever the order is, pages are parts of one list: nothing twice, nothing left out. */
TEST(pages_follow_one_another)
{
    struct asking a;

    begin(&a, large_board());
    for (int sort = 0; sort < 2 * QUEUE_SORTS; sort++) {
        struct queue_page all;
        size_t at = 0;

        a.question.sort = (enum queue_sort)(sort / 2);
        a.question.is_descending = sort % 2;
        a.question.offset = 0;
        a.question.limit = QUEUE_ROWS_MAX;
        found(&a);
        all = a.page;
        assert_int_equal(all.n, QUEUE_ROWS_MAX);
        assert_true(all.matches > QUEUE_ROWS_MAX);
        for (a.question.limit = 333; at < all.n; at += 333) {
            a.question.offset = at;
            found(&a);
            for (size_t i = 0; i < a.page.n && at + i < all.n; i++)
                assert_ptr_equal(a.page.row[i].job, all.row[at + i].job);
        }
    }
    end(&a);
}

TEST(past_the_end_there_is_nothing)
{
    static const size_t offsets[] = { 6, 7, SIZE_MAX };
    struct asking a;

    begin(&a, some_jobs());
    for (size_t i = 0; i < 2 * COUNT(offsets); i++) {
        a.question.sort = i % 2 ? QUEUE_BY_SUBMIT : QUEUE_BY_USER;
        a.question.is_descending = i % 2;
        a.question.offset = offsets[i / 2];
        assert_string_equal(found(&a), "");
        assert_int_equal(a.page.matches, 6);
    }
    end(&a);
    begin(&a, made_board(NULL, NULL));
    assert_string_equal(found(&a), "");
    assert_int_equal(a.page.matches, 0);
    end(&a);
}

TEST(texts_are_in_one_order_over_all_clusters)
{
    struct asking a;
    struct str before = STR("");

    begin(&a, large_board());
    a.question.sort = QUEUE_BY_NAME;
    found(&a);
    for (size_t i = 0; i < a.page.n; i++) {
        const struct queue_row *row = &a.page.row[i];
        struct str name = section_text(row->cluster->section[KIND_JOBS], row->job->name);
        size_t n = name.n < before.n ? name.n : before.n;
        int order = n ? memcmp(before.p, name.p, n) : 0;

        assert_true(order < 0 || (order == 0 && before.n <= name.n));
        before = name;
    }
    end(&a);
}

TEST(too_much_is_refused)
{
    static struct str many[STORE_WORDS_MAX + 1];
    struct asking a;

    begin(&a, some_jobs());
    for (size_t i = 0; i < COUNT(many); i++)
        many[i] = STR("x");
    a.filter.users = (struct words){ many, COUNT(many) };
    assert_int_equal(fails(&a), -E2BIG);
    job_filter_clear(&a.filter);
    a.question.reasons = (struct words){ many, COUNT(many) };
    assert_int_equal(fails(&a), -E2BIG);
    a.question.reasons = (struct words){ NULL, 0 };
    a.filter.nodes = one("n[0-999999]");
    assert_int_equal(fails(&a), -E2BIG);
    a.filter.nodes = one("n[");
    assert_int_equal(fails(&a), -EBADMSG);
    end(&a);
}
