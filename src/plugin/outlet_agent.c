/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Datagrams to the agent's socket (unix(7)). The agent may not be there, go and come back: a lost
 * connection is made again with the next message. Nothing waits in send(2). */
#include "plugin/outlet.h"

#include "base/str.h"
#include "plugin/text.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

struct agent {
    struct outlet outlet;
    struct sockaddr_un address;
    int fd;        /* -1: not connected */
    bool has_told; /* anything, to any agent */
    size_t next;   /* the dataset where a turn was cut short, and the next goes on */
    char message[PROFILE_MESSAGE];
};

static int open_socket(struct agent *agent, struct err *err)
{
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return err_set(err, errno, "cannot make a socket: %s", err_words(errno));
    if (connect(fd, (const struct sockaddr *)&agent->address, sizeof(agent->address)) < 0) {
        int code = errno;

        close(fd);
        return err_set(err, code, "cannot reach %s: %s; is sonde agent running on this node?",
                       agent->outlet.peer, err_words(code));
    }
    agent->fd = fd;
    return 0;
}

static void close_socket(struct agent *agent)
{
    if (agent->fd >= 0)
        close(agent->fd);
    agent->fd = -1;
}

/* The agent's queue of messages is short (net.unix.max_dgram_qlen). */
static int await_room(struct agent *agent, const struct patience *patience, struct err *err)
{
    struct pollfd fds[] = {
        { .fd = agent->fd, .events = POLLOUT },
        { .fd = patience->wake_fd, .events = POLLIN },
    };
    int left_ms = patience_left_ms(patience);
    int n = left_ms ? poll(fds, COUNT(fds), left_ms) : 0;

    if (n < 0 && errno != EINTR)
        return err_set(err, errno, "cannot wait for %s: %s", agent->outlet.peer, err_words(errno));
    if (n > 0 && fds[1].revents)
        return -ECANCELED;
    if (!left_ms)
        return err_set(err, EAGAIN, "%s does not read what it is told; is the agent overloaded?",
                       agent->outlet.peer);
    return 0;
}

/* Sends the first n bytes of the message. */
static int send_message(struct agent *agent, size_t n, const struct patience *patience,
                        struct err *err)
{
    bool is_new = false;
    int code = 0;

    for (;;) {
        if (agent->fd < 0) {
            is_new = true;
            code = open_socket(agent, err);
            if (code < 0)
                return code;
        }
        if (send(agent->fd, agent->message, n, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
            break;
        code = errno;
        if (code == EAGAIN) {
            code = await_room(agent, patience, err);
            if (code < 0)
                return code;
            continue;
        }
        /* An agent that has gone: there may be another at the same place. */
        close_socket(agent);
        if (is_new)
            return err_set(err, code, "cannot send to %s: %s", agent->outlet.peer, err_words(code));
    }
    agent->has_told = true;
    return 0;
}

static int tell(struct outlet *outlet, const struct telling *telling,
                const struct patience *patience, struct err *err)
{
    struct agent *agent = (struct agent *)outlet;
    size_t next = agent->next, n;

    while ((n = text_message(telling->samples, telling->step, telling->settings, &next,
                             agent->message, sizeof(agent->message))) > 0 &&
           next > agent->next) {
        int code = send_message(agent, n, patience, err);

        if (code < 0)
            return code;
        agent->next = next;
    }
    agent->next = 0;
    return 0;
}

static int end(struct outlet *outlet, const struct telling *telling,
               const struct patience *patience, struct err *err)
{
    struct agent *agent = (struct agent *)outlet;
    int code;

    agent->next = 0;
    code = tell(outlet, telling, patience, err);
    if (code < 0 || !agent->has_told)
        return code;
    return send_message(agent, text_farewell(telling->step, agent->message, PROFILE_MESSAGE),
                        patience, err);
}

static struct outlet *agent_free(struct outlet *outlet)
{
    close_socket((struct agent *)outlet);
    free(outlet);
    return NULL;
}

struct outlet *outlet_agent_new(const struct profile_settings *settings, struct err *err)
{
    struct agent *agent = calloc(1, sizeof(*agent));

    _Static_assert(sizeof(settings->socket) == sizeof(agent->address.sun_path), "a socket's path");
    if (!agent) {
        err_set(err, ENOMEM, "there is no memory to tell the agent");
        return NULL;
    }
    agent->outlet = (struct outlet){ .tell = tell, .end = end, .free = agent_free };
    snprintf(agent->outlet.peer, sizeof(agent->outlet.peer), "the agent's socket %s",
             settings->socket);
    agent->fd = -1;
    agent->address.sun_family = AF_UNIX;
    memcpy(agent->address.sun_path, settings->socket, sizeof(settings->socket));
    return &agent->outlet;
}
