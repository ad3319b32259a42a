/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads a password or token from a file. */
#include "base/secret.h"

#include "base/arena.h"
#include "base/quote.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static ssize_t read_up_to(int fd, char *to, size_t room)
{
    size_t n = 0;

    while (n < room) {
        ssize_t got = read(fd, to + n, room - n);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        n += (size_t)got;
    }
    return (ssize_t)n;
}

static bool is_one_line(struct str text)
{
    for (size_t i = 0; i < text.n; i++)
        if ((unsigned char)text.p[i] < ' ' || text.p[i] == 0x7f)
            return false;
    return text.n && text.n <= SECRET_MAX;
}

static int take(struct str text, const char *path, const char *what, char **ret, struct err *err)
{
    while (text.n && (text.p[text.n - 1] == '\n' || text.p[text.n - 1] == '\r'))
        text.n--;
    if (!is_one_line(text))
        return err_set(err, EINVAL, "the %s file %s holds no %s: one line is expected", what,
                       quote(str_of(path)).text, what);
    *ret = heap_str(text);
    return 0;
}

int secret_read(const char *path, const char *what, char **ret, struct err *err)
{
    size_t room = SECRET_MAX + sizeof("\r\n");
    char *bytes = heap_array(room, 1);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    ssize_t n = fd < 0 ? -1 : read_up_to(fd, bytes, room);
    int code;

    if (n < 0)
        code = err_set(err, errno, "cannot read the %s file %s: %s", what, quote(str_of(path)).text,
                       err_words(errno));
    else
        code = take((struct str){ bytes, (size_t)n }, path, what, ret, err);
    if (fd >= 0)
        close(fd);
    explicit_bzero(bytes, room);
    free(bytes);
    return code;
}

int secret_check(const char *path, const char *what, struct err *err)
{
    char *secret = NULL;
    struct stat file;
    int code = secret_read(path, what, &secret, err);

    secret_free(secret);
    if (code == 0 && stat(path, &file) == 0 && file.st_mode & (S_IROTH | S_IWOTH))
        code = err_set(err, EPERM,
                       "everybody may read or change the %s file %s: take that away with chmod o= "
                       "and make another %s",
                       what, quote(str_of(path)).text, what);
    return code;
}

char *secret_free(char *secret)
{
    if (secret)
        explicit_bzero(secret, strlen(secret));
    free(secret);
    return NULL;
}
