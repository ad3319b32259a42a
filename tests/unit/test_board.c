/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of web/board: the current sections of all clusters. */
#include "made_board.h"

#include "web/queue_index.h"

TEST(a_node_is_found_by_its_name)
{
    struct section *nodes = nodes_from("n1 idle partitions=main\n"
                                       "n2 idle partitions=main\n");
    struct board *board = made_board(nodes, NULL);

    assert_ptr_equal(board_node(&board->cluster[0], STR("n2")), &nodes->nodes.node[1]);
    assert_null(board_node(&board->cluster[0], STR("n3")));
    assert_null(board_node(&board->cluster[0], STR("main"))); /* a text, but of no node */
    assert_null(board_node(&board->cluster[0], STR("")));
    board_unref(board);
}

TEST(a_cluster_without_nodes_has_none_of_any_name)
{
    struct board *board = made_board(NULL, NULL);

    assert_null(board_node(&board->cluster[0], STR("n1")));
    board_unref(board);
}

TEST(the_only_cluster_needs_no_name)
{
    struct board *one = made_board(NULL, NULL), *two = board_new(2, MADE_NOW);

    assert_ptr_equal(board_find(one, STR("")), &one->cluster[0]);
    assert_ptr_equal(board_find(one, STR("north")), &one->cluster[0]);
    assert_null(board_find(one, STR("south")));
    two->cluster[0].name = STR("north");
    two->cluster[1].name = STR("south");
    board_sum(two);
    assert_null(board_find(two, STR("")));
    assert_ptr_equal(board_find(two, STR("south")), &two->cluster[1]);
    board_unref(one);
    board_unref(two);
}

TEST(a_board_lives_as_long_as_somebody_looks)
{
    struct section *jobs = jobs_from("RUNNING\n");
    struct board *board = made_board(NULL, jobs);

    assert_ptr_equal(board_ref(board), board);
    assert_null(board_unref(board));
    assert_int_equal(jobs->refs, 1);
    assert_int_equal(board->index->n, 1);
    assert_null(board_unref(board));
    assert_null(board_unref(NULL));
}
