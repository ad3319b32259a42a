/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Starts named threads that block all signals, and takes capabilities from them. */
#include "base/thread.h"

#include <linux/capability.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

int thread_start(pthread_t *ret, const char *name, void *(*run)(void *), void *arg, struct err *err)
{
    sigset_t all, before;
    int code;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    code = pthread_create(ret, NULL, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code)
        return err_set(err, code,
                       "cannot start the %s thread: %s; is the limit on threads too low?", name,
                       err_words(code));
    pthread_setname_np(*ret, name);
    return 0;
}

/* libcap would be one more library for two system calls. */
bool thread_get_capabilities(struct thread_capabilities *ret)
{
    struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };

    if (syscall(SYS_capget, &header, data) < 0)
        return false;
    *ret = (struct thread_capabilities){
        .permitted = data[0].permitted | (uint64_t)data[1].permitted << 32,
        .effective = data[0].effective | (uint64_t)data[1].effective << 32,
    };
    return true;
}

/* The system call filter of a unit may refuse the call. That does not matter if there is nothing to
 * give up. */
static bool has_exactly(uint64_t set)
{
    struct thread_capabilities has;
    int refusal = errno;
    bool is_so = thread_get_capabilities(&has) && has.permitted == set && has.effective == set;

    errno = refusal;
    return is_so;
}

bool thread_set_capabilities(uint64_t set)
{
    struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {
        { .permitted = (uint32_t)set, .effective = (uint32_t)set },
        { .permitted = (uint32_t)(set >> 32), .effective = (uint32_t)(set >> 32) },
    };

    return syscall(SYS_capset, &header, data) == 0 || has_exactly(set);
}
