/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the users that the agent's options name. */
#include "cmd/agent_users.h"

#include "base/buf.h"
#include "base/num.h"
#include "base/quote.h"

#include <fcntl.h>

enum {
    FILE_BYTES = 1 << 20,
    NAME_BYTES = 256,
    STEP_BYTES = 16 * 1024,
};

static int read_text(const char *path, struct buf *to, struct err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe without a writer is empty */
    ssize_t n = fd < 0 ? -1 : 1;
    int code = 0;

    buf_init(to, FILE_BYTES + STEP_BYTES);
    while (n > 0 && to->n <= FILE_BYTES) {
        char *room = buf_room(to, STEP_BYTES);

        n = read(fd, room, STEP_BYTES);
        if (n > 0)
            to->n += (size_t)n;
    }
    if (n < 0)
        code =
            err_set(err, EINVAL, "cannot read %s: %s", quote(str_of(path)).text, err_words(errno));
    else if (to->n > FILE_BYTES)
        code = err_set(err, EINVAL, "%s is longer than 1 MB", quote(str_of(path)).text);
    if (fd >= 0)
        close(fd);
    return code;
}

/* What a name may be on any system that has one (useradd's own rule is narrower). */
static bool is_name(struct str word)
{
    for (size_t i = 0; i < word.n; i++)
        if ((unsigned char)word.p[i] <= ' ' || word.p[i] == ':' || word.p[i] == 0x7f)
            return false;
    return word.n > 0 && word.n < NAME_BYTES && word.p[0] != '-';
}

/* 1: there is a uid to add; 0: none, or nobody knows it; or -EINVAL. */
static int read_line(struct str line, user_finder *find, struct blacklist *list, uint32_t *ret)
{
    struct str word = str_trim(str_head(line, str_find(line, '#')));
    char name[NAME_BYTES];
    uint64_t number;
    int code;

    if (!word.n)
        return 0;
    if (num_get_u64(word, &number)) {
        *ret = (uint32_t)number;
        return number < UINT32_MAX ? 1 : -EINVAL;
    }
    if (!is_name(word))
        return -EINVAL;
    snprintf(name, sizeof(name), "%.*s", STR_ARG(word));
    code = find(name, ret);
    if (code == 0)
        return 1;
    if (list->n_unknown++ == 0)
        snprintf(list->first_unknown, sizeof(list->first_unknown), "%s", quote(word).text);
    return 0;
}

static int compare(const void *a, const void *b)
{
    const uint32_t *left = a, *right = b;

    return (*left > *right) - (*left < *right);
}

static void sort(struct blacklist *list)
{
    size_t n = 0;

    if (!list->n)
        return;
    qsort(list->uids, list->n, sizeof(*list->uids), compare);
    for (size_t i = 1; i < list->n; i++)
        if (list->uids[i] != list->uids[n])
            list->uids[++n] = list->uids[i];
    list->n = n + 1;
}

static int read_lines(const char *path, struct str text, user_finder *find, struct arena *arena,
                      struct blacklist *list, struct err *err)
{
    size_t n_room = 0, number = 0;
    uint32_t *uids = NULL;
    int code = 0;

    for (struct str rest = text; rest.p && code >= 0;) {
        struct str line = str_cut(&rest, '\n');
        uint32_t uid;

        number++;
        code = read_line(line, find, list, &uid);
        if (code < 0)
            err_set(err, EINVAL, "%s:%zu: \"%s\" is neither a user id nor a user name",
                    quote(str_of(path)).text, number, quote(line).text);
        if (code <= 0)
            continue;
        uids = heap_grow(uids, list->n, &n_room, sizeof(*uids));
        uids[list->n++] = uid;
    }
    list->uids = uids;
    if (uids)
        arena_adopt(arena, uids);
    return code < 0 ? code : 0;
}

int blacklist_read(const char *path, user_finder *find, struct arena *arena, struct blacklist *ret,
                   struct err *err)
{
    struct blacklist list = { 0 };
    struct buf text;
    int code = read_text(path, &text, err);

    if (code == 0)
        code = read_lines(path, buf_str(&text), find, arena, &list, err);
    buf_free(&text);
    if (code < 0)
        return code;
    sort(&list);
    *ret = list;
    return 0;
}
