/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lines: "time SECONDS", then "COMPARISON EXPLAINED UNEXPLAINED" for each comparison. */
#include "record/reconcile_file.h"

#include "base/num.h"
#include "store/store.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum { FILE_MAX = 4096, PATH_MAX_BYTES = STORE_PATH_MAX + 1024 };

/* Other bytes of a cluster's name than letters, digits and a few more are escaped. */
static int make_path(struct str store, struct str cluster, struct buf *ret, struct err *err)
{
    char path[STORE_PATH_MAX];
    int r = store_path(store, path, err);

    if (r < 0)
        return r;
    buf_printf(ret, "%s.reconcile.", path);
    buf_url(ret, cluster);
    return ret->over ? err_set(err, ENAMETOOLONG, "the path of the store is too long") : 0;
}

static void put_summary(const struct reconcile_summary *summary, struct buf *to)
{
    buf_printf(to, "time %lld\n", (long long)summary->time);
    for (int i = 0; i < RECONCILE_COMPARISONS; i++)
        buf_printf(to, "%s %llu %llu\n", reconcile_words[i].p,
                   (unsigned long long)summary->explained[i],
                   (unsigned long long)summary->unexplained[i]);
}

static int write_new(const char *path, struct str text, struct err *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0640);
    bool is_written;

    if (fd < 0)
        return err_set(err, errno, "cannot write %s: %s (run as the user that owns the store)",
                       path, err_words(errno));
    is_written = write(fd, text.p, text.n) == (ssize_t)text.n && fsync(fd) == 0;
    close(fd);
    return is_written ? 0 : err_set(err, EIO, "cannot write %s: is the disk full?", path);
}

int reconcile_file_write(struct str store, struct str cluster,
                         const struct reconcile_summary *summary, struct err *err)
{
    struct buf path, fresh, text;
    int r;

    buf_init(&path, PATH_MAX_BYTES);
    buf_init(&fresh, PATH_MAX_BYTES);
    buf_init(&text, FILE_MAX);
    r = make_path(store, cluster, &path, err);
    buf_printf(&fresh, "%s.new", path.p);
    put_summary(summary, &text);
    if (r == 0)
        r = write_new(fresh.p, buf_str(&text), err);
    if (r == 0 && rename(fresh.p, path.p) < 0)
        r = err_set(err, errno, "cannot rename %s: %s", fresh.p, err_words(errno));
    buf_free(&path);
    buf_free(&fresh);
    buf_free(&text);
    return r;
}

static bool read_counts(struct str *rest, int comparison, struct reconcile_summary *ret)
{
    struct str line = str_cut(rest, '\n');

    return str_eq(str_cut(&line, ' '), reconcile_words[comparison]) &&
           num_get_u64(str_cut(&line, ' '), &ret->explained[comparison]) &&
           num_get_u64(line, &ret->unexplained[comparison]);
}

static bool read_text(struct str text, struct reconcile_summary *ret)
{
    struct str rest = text, line = str_cut(&rest, '\n');

    if (!str_eq(str_cut(&line, ' '), STR("time")) || !num_get_i64(line, &ret->time))
        return false;
    for (int i = 0; i < RECONCILE_COMPARISONS; i++)
        if (!read_counts(&rest, i, ret))
            return false;
    return true;
}

bool reconcile_file_read(struct str store, struct str cluster, struct reconcile_summary *ret)
{
    char text[FILE_MAX];
    struct buf path;
    ssize_t n = -1;
    int fd = -1;

    buf_init(&path, PATH_MAX_BYTES);
    if (make_path(store, cluster, &path, NULL) == 0)
        fd = open(path.p, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0) {
        n = read(fd, text, sizeof(text));
        close(fd);
    }
    buf_free(&path);
    return n > 0 && read_text((struct str){ text, (size_t)n }, ret);
}
