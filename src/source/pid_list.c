/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Process ids from cgroup.procs (cgroups(7)) and task/TID/children (proc(5)). */
#include "source/pid_list.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <unistd.h>

/* What was read of a word that may go on in the next piece. */
struct word {
    uint64_t value;
    bool is_number;
};

static int end_word(struct pid_list *list, struct word *word, size_t max)
{
    pid_t pid = word->is_number && word->value <= INT_MAX ? (pid_t)word->value : 0;

    *word = (struct word){ .is_number = true };
    /* 0 is a process of another pid namespace. */
    if (pid == 0)
        return 0;
    if (list->n >= max)
        return -EFBIG;
    pid_list_add(list, pid);
    return 0;
}

static int take_piece(struct pid_list *list, struct str piece, struct word *word, size_t max)
{
    int code = 0;

    for (size_t i = 0; i < piece.n && !code; i++) {
        char c = piece.p[i];

        if (c == ' ' || c == '\n')
            code = end_word(list, word, max);
        else if (c >= '0' && c <= '9' && word->value <= INT_MAX)
            word->value = word->value * 10 + (uint64_t)(c - '0');
        else
            word->is_number = false;
    }
    return code;
}

int pid_list_read(struct pid_list *list, int fd, size_t max)
{
    struct word word = { .is_number = true };
    char piece[4096];
    ssize_t n;
    int code = 0;

    while (!code && (n = read(fd, piece, sizeof(piece))) != 0)
        code = n < 0 ? -errno : take_piece(list, (struct str){ piece, (size_t)n }, &word, max);
    return code ? code : end_word(list, &word, max);
}
