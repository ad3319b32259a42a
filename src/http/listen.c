/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opens sockets to listen on, or takes those from systemd. */
#include "http/listen.h"

#include "base/arena.h"
#include "base/num.h"
#include "base/quote.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

enum {
    FIRST_INHERITED_FD = 3,
    MOST_INHERITED = 64,
    /* Connections that wait to be accepted. The kernel allows net.core.somaxconn of them, 4096 by
     * default, and drops the handshakes of the others, which their clients repeat after seconds. */
    BACKLOG = 4096,
};

struct place {
    struct str host; /* empty: every address of this machine */
    uint16_t port;
};

static int parse_place(struct str address, struct place *ret, struct err *err)
{
    size_t colon = address.n;
    struct str host;
    uint64_t port;

    while (colon > 0 && address.p[colon - 1] != ':')
        colon--;
    if (colon == 0 || !num_get_u64(str_skip(address, colon), &port) || port > UINT16_MAX)
        return err_set(err, EINVAL,
                       "\"%s\" is no address to listen on: write \":9092\", \"127.0.0.1:9092\", "
                       "\"[::1]:9092\" or \"unix:/path\"",
                       quote(address).text);
    host = str_head(address, colon - 1);
    if (host.n >= 2 && host.p[0] == '[' && host.p[host.n - 1] == ']')
        host = str_head(str_skip(host, 1), host.n - 2);
    else if (str_find(host, ':') < host.n)
        return err_set(err, EINVAL, "an IPv6 address stands in brackets: \"[%s]:%u\"",
                       quote(host).text, (unsigned)port);
    *ret = (struct place){ host, (uint16_t)port };
    return 0;
}

static int bind_error(const struct place *place, int code, struct err *err)
{
    struct quote host = quote(place->host.n ? place->host : STR("0.0.0.0"));

    switch (code) {
    case EADDRINUSE:
        return err_set(err, code,
                       "port %u on %s is taken, by another sonde or exporter? Choose another "
                       "with --web.listen-address",
                       place->port, host.text);
    case EACCES:
        return err_set(err, code,
                       "port %u on %s needs a privilege that this process does not have: choose "
                       "one above 1023 with --web.listen-address",
                       place->port, host.text);
    case EADDRNOTAVAIL:
        return err_set(err, code,
                       "%s is not an address of this machine: choose another with "
                       "--web.listen-address",
                       host.text);
    }
    return err_set(err, code, "can't listen on port %u of %s: %s", place->port, host.text,
                   err_words(code));
}

/* A listening socket or -errno. */
static int open_tcp(const struct sockaddr *address, socklen_t size)
{
    static const int on = 1, off = 0;
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const struct sockaddr_in6 *six = (const void *)address;
    int code;

    if (fd < 0)
        return -errno;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (address->sa_family == AF_INET6) {
        /* "[::]:9092" and ":9092" take IPv4 too, whatever net.ipv6.bindv6only says. */
        const int *v6_only = IN6_IS_ADDR_UNSPECIFIED(&six->sin6_addr) ? &off : &on;

        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, v6_only, sizeof(*v6_only));
    }
    if (bind(fd, address, size) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    code = errno;
    close(fd);
    return -code;
}

static int open_everywhere(uint16_t port)
{
    struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
    struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons(port) };
    int fd = open_tcp((struct sockaddr *)&six, sizeof(six));

    if (fd == -EAFNOSUPPORT || fd == -EADDRNOTAVAIL)
        fd = open_tcp((struct sockaddr *)&four, sizeof(four));
    return fd;
}

/* A port that is taken or forbidden on one address is not looked for on the next of the same name:
 * clients would reach now the one server and now the other. */
static bool is_final(int fd)
{
    return fd >= 0 || fd == -EADDRINUSE || fd == -EACCES;
}

/* RFC 6761, 6.3: it is the loopback, also where no /etc/hosts says so, as in a small container. */
static int open_localhost(uint16_t port)
{
    struct sockaddr_in four = { .sin_family = AF_INET,
                                .sin_port = htons(port),
                                .sin_addr = { htonl(INADDR_LOOPBACK) } };
    struct sockaddr_in6 six = { .sin6_family = AF_INET6,
                                .sin6_port = htons(port),
                                .sin6_addr = IN6ADDR_LOOPBACK_INIT };
    int fd = open_tcp((struct sockaddr *)&four, sizeof(four));

    return is_final(fd) ? fd : open_tcp((struct sockaddr *)&six, sizeof(six));
}

/* A name may have several addresses: the first that this machine has is taken, IPv4 before IPv6. */
static int open_named(const struct place *place, struct err *err)
{
    static const int families[] = { AF_INET, AF_INET6 };
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE };
    char *name = heap_str(place->host);
    char port[NUM_U64_MAX + 1];
    struct addrinfo *found;
    int fd = -EADDRNOTAVAIL;
    int r;

    port[num_put_u64(port, place->port)] = '\0';
    r = getaddrinfo(name, port, &hints, &found);
    free(name);
    if (r)
        return err_set(err, EADDRNOTAVAIL, "can't listen on %s: %s", quote(place->host).text,
                       gai_strerror(r));
    for (size_t i = 0; i < 2 && !is_final(fd); i++)
        for (const struct addrinfo *a = found; a && !is_final(fd); a = a->ai_next)
            if (a->ai_family == families[i])
                fd = open_tcp(a->ai_addr, a->ai_addrlen);
    freeaddrinfo(found);
    return fd < 0 ? bind_error(place, -fd, err) : fd;
}

static int open_host(const struct place *place, struct err *err)
{
    int fd;

    if (!str_eq_nocase(place->host, STR("localhost")))
        return open_named(place, err);
    fd = open_localhost(place->port);
    return fd < 0 ? bind_error(place, -fd, err) : fd;
}

/* Where it listens, as people write it; port 0 has become a real one by now. */
static char *describe(int fd)
{
    struct sockaddr_storage address = { 0 };
    const struct sockaddr_in *four = (const void *)&address;
    const struct sockaddr_in6 *six = (const void *)&address;
    const struct sockaddr_un *local = (const void *)&address;
    socklen_t size = sizeof(address);
    char host[INET6_ADDRSTRLEN] = "", text[sizeof(local->sun_path) + 10] = "?";

    if (getsockname(fd, (struct sockaddr *)&address, &size) == 0) {
        switch (address.ss_family) {
        case AF_INET:
            inet_ntop(AF_INET, &four->sin_addr, host, sizeof(host));
            snprintf(text, sizeof(text), "%s:%u",
                     four->sin_addr.s_addr == htonl(INADDR_ANY) ? "localhost" : host,
                     ntohs(four->sin_port));
            break;
        case AF_INET6:
            inet_ntop(AF_INET6, &six->sin6_addr, host, sizeof(host));
            if (IN6_IS_ADDR_UNSPECIFIED(&six->sin6_addr))
                snprintf(text, sizeof(text), "localhost:%u", ntohs(six->sin6_port));
            else
                snprintf(text, sizeof(text), "[%s]:%u", host, ntohs(six->sin6_port));
            break;
        case AF_UNIX:
            snprintf(text, sizeof(text), "unix:%.*s", (int)sizeof(local->sun_path),
                     local->sun_path);
            break;
        }
    }
    return heap_str(str_of(text));
}

/* Removes the socket file of a process that is gone. -EADDRINUSE if somebody answers there. */
static int clear_stale(const struct sockaddr_un *address, struct err *err)
{
    const char *path = address->sun_path;
    struct stat info;
    int fd, code;

    if (lstat(path, &info) < 0)
        return 0;
    if (!S_ISSOCK(info.st_mode))
        return err_set(err, EEXIST, "%s is a file and no socket: remove it, or choose another path",
                       path);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_set(err, errno, "can't make a unix socket: %s", err_words(errno));
    code = connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 ? 0 : errno;
    close(fd);
    if (code == ECONNREFUSED)
        unlink(path);
    else if (code == 0 || code == EAGAIN)
        return err_set(err, EADDRINUSE,
                       "%s is taken, by another sonde or exporter? Choose another with "
                       "--web.listen-address",
                       path);
    return 0;
}

static int open_unix(struct str path, struct listen_socket *ret, struct err *err)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    struct stat info;
    int fd, r;

    if (path.n == 0 || path.n >= sizeof(address.sun_path) || str_find(path, '\0') < path.n)
        return err_set(err, EINVAL, "the path of a unix socket has 1 to %zu bytes, this one %zu",
                       sizeof(address.sun_path) - 1, path.n);
    memcpy(address.sun_path, path.p, path.n);
    r = clear_stale(&address, err);
    if (r < 0)
        return r;
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_set(err, errno, "can't make a unix socket: %s", err_words(errno));
    /* Before bind, so that it is never open to others; after it, because the umask took from it. */
    fchmod(fd, 0660);
    if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
        chmod(address.sun_path, 0660) < 0 || listen(fd, BACKLOG) < 0 ||
        lstat(address.sun_path, &info) < 0) {
        int code = errno;

        close(fd);
        return err_set(err, code, "can't listen on %s: %s", address.sun_path, err_words(code));
    }
    *ret = (struct listen_socket){ .fd = fd,
                                   .place = describe(fd),
                                   .unix_path = heap_str(path),
                                   .unix_device = info.st_dev,
                                   .unix_inode = info.st_ino };
    return 0;
}

int listen_open(struct str address, struct listen_socket *ret, struct err *err)
{
    struct place place = { 0 };
    int fd, r;

    if (str_starts(address, STR("unix:")))
        return open_unix(str_skip(address, 5), ret, err);
    r = parse_place(address, &place, err);
    if (r < 0)
        return r;
    if (place.host.n) {
        fd = open_host(&place, err);
        if (fd < 0)
            return fd;
    } else {
        fd = open_everywhere(place.port);
        if (fd < 0)
            return bind_error(&place, -fd, err);
    }
    *ret = (struct listen_socket){ .fd = fd, .place = describe(fd) };
    return 0;
}

static int check_inherited(int fd, struct err *err)
{
    int is_listening = 0, type = 0;
    socklen_t size = sizeof(int);

    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &size) < 0 ||
        getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) < 0 || !is_listening ||
        type != SOCK_STREAM)
        return err_set(err, EINVAL,
                       "descriptor %d, passed by systemd, is no listening stream socket: use "
                       "ListenStream= and Accept=no in the socket unit",
                       fd);
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    return 0;
}

int listen_inherited(struct listen_socket **ret, size_t *ret_n, struct err *err)
{
    const char *for_pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
    struct listen_socket *sockets;
    uint64_t pid, n;

    *ret = NULL;
    *ret_n = 0;
    if (!for_pid || !count || !num_get_u64(str_of(for_pid), &pid) || pid != (uint64_t)getpid())
        return 0;
    if (!num_get_u64(str_of(count), &n) || n > MOST_INHERITED)
        return err_set(err, EINVAL, "LISTEN_FDS=\"%.40s\" is not a number of sockets from 0 to %d",
                       count, MOST_INHERITED);
    for (int fd = FIRST_INHERITED_FD; fd < FIRST_INHERITED_FD + (int)n; fd++) {
        int r = check_inherited(fd, err);

        if (r < 0)
            return r;
    }
    if (n == 0)
        return 0;
    sockets = heap_alloc(n * sizeof(*sockets));
    for (size_t i = 0; i < n; i++) {
        int fd = FIRST_INHERITED_FD + (int)i;

        sockets[i] = (struct listen_socket){ .fd = fd, .place = describe(fd) };
    }
    *ret = sockets;
    *ret_n = n;
    return 0;
}

bool listen_is_local(const struct listen_socket *socket)
{
    struct sockaddr_storage address = { 0 };
    const struct sockaddr_in *four = (const void *)&address;
    const struct sockaddr_in6 *six = (const void *)&address;
    socklen_t size = sizeof(address);

    if (getsockname(socket->fd, (struct sockaddr *)&address, &size) < 0)
        return false;
    switch (address.ss_family) {
    case AF_INET:
        return ntohl(four->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    case AF_INET6:
        return IN6_IS_ADDR_LOOPBACK(&six->sin6_addr);
    default:
        return address.ss_family == AF_UNIX;
    }
}

void listen_close(struct listen_socket *socket)
{
    struct stat info;

    if (socket->fd >= 0)
        close(socket->fd);
    if (socket->unix_path && lstat(socket->unix_path, &info) == 0 &&
        info.st_dev == socket->unix_device && info.st_ino == socket->unix_inode)
        unlink(socket->unix_path);
    free(socket->unix_path);
    free(socket->place);
    *socket = (struct listen_socket){ .fd = -1 };
}
