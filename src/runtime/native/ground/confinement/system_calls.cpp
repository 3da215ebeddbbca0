#include "runtime/native/ground/confinement/seccomp_filter.hpp"

namespace opensandbox::runtime::native {

namespace {

// clang-format off: one call a line would hide the groups.
constexpr const char* kAllowed[] = {
    // Files: open, read, write, attributes.
    "access", "chdir", "chmod", "chown", "close", "close_range", "copy_file_range", "creat", "dup",
    "dup2", "dup3", "faccessat", "faccessat2", "fadvise64", "fallocate", "fchdir", "fchmod",
    "fchmodat", "fchmodat2", "fchown", "fchownat", "fcntl", "fdatasync", "fgetxattr", "flistxattr",
    "flock", "fremovexattr", "fsetxattr", "fstat", "fstatfs", "fsync", "ftruncate", "futimesat",
    "getcwd", "getdents", "getdents64", "getxattr", "lchown", "lgetxattr", "link", "linkat",
    "listxattr", "llistxattr", "lremovexattr", "lseek", "lsetxattr", "lstat", "mkdir", "mkdirat",
    "mknod", "mknodat", "name_to_handle_at", "newfstatat", "open", "openat", "openat2", "pread64",
    "preadv", "preadv2", "pwrite64", "pwritev", "pwritev2", "read", "readahead", "readlink",
    "readlinkat", "readv", "removexattr", "rename", "renameat", "renameat2", "rmdir", "sendfile",
    "setxattr", "splice", "stat", "statfs", "statx", "symlink", "symlinkat", "sync",
    "sync_file_range", "syncfs", "tee", "truncate", "umask", "unlink", "unlinkat", "utime",
    "utimensat", "utimes", "vmsplice", "write", "writev", "chroot", "ustat", "memfd_create",
    "cachestat",
    // Waiting for events.
    "epoll_create", "epoll_create1", "epoll_ctl", "epoll_ctl_old", "epoll_pwait", "epoll_pwait2",
    "epoll_wait", "epoll_wait_old", "eventfd", "eventfd2", "inotify_add_watch", "inotify_init",
    "inotify_init1", "inotify_rm_watch", "ioctl", "poll", "ppoll", "pselect6", "select", "signalfd",
    "signalfd4", "timerfd_create", "timerfd_gettime", "timerfd_settime", "pipe", "pipe2",
    // Memory.
    "brk", "madvise", "membarrier", "mincore", "mlock", "mlock2", "mlockall", "mmap", "mprotect",
    "mremap", "mseal", "msync", "munlock", "munlockall", "munmap", "pkey_alloc", "pkey_free",
    "pkey_mprotect", "process_madvise", "process_mrelease", "remap_file_pages", "memfd_secret",
    "map_shadow_stack",
    // Processes and threads.
    "arch_prctl", "capget", "capset", "execve", "execveat", "exit", "exit_group", "fork", "futex",
    "futex_requeue", "futex_wait", "futex_waitv", "futex_wake", "get_robust_list",
    "get_thread_area", "getcpu", "getegid", "geteuid", "getgid", "getgroups", "getitimer",
    "getpgid", "getpgrp", "getpid", "getppid", "getpriority", "getresgid", "getresuid", "getrlimit",
    "getrusage", "getsid", "gettid", "getuid", "ioprio_get", "ioprio_set", "kcmp", "kill",
    "modify_ldt", "pause", "pidfd_getfd", "pidfd_open", "pidfd_send_signal", "prctl", "prlimit64",
    "process_vm_readv", "process_vm_writev", "ptrace", "restart_syscall", "rseq", "rt_sigaction",
    "rt_sigpending", "rt_sigprocmask", "rt_sigqueueinfo", "rt_sigreturn", "rt_sigsuspend",
    "rt_sigtimedwait", "rt_tgsigqueueinfo", "sched_get_priority_max", "sched_get_priority_min",
    "sched_getaffinity", "sched_getattr", "sched_getparam", "sched_getscheduler",
    "sched_rr_get_interval", "sched_setaffinity", "sched_setattr", "sched_setparam",
    "sched_setscheduler", "sched_yield", "seccomp", "set_robust_list", "set_thread_area",
    "set_tid_address", "setfsgid", "setfsuid", "setgid", "setgroups", "setitimer", "setpgid",
    "setpriority", "setregid", "setresgid", "setresuid", "setreuid", "setrlimit", "setsid",
    "setuid", "sigaltstack", "tgkill", "time", "times", "tkill", "vfork", "wait4", "waitid",
    "landlock_add_rule", "landlock_create_ruleset", "landlock_restrict_self",
    // Clocks are read, never set.
    "adjtimex", "alarm", "clock_adjtime", "clock_getres", "clock_gettime", "clock_nanosleep",
    "gettimeofday", "nanosleep", "timer_create", "timer_delete", "timer_getoverrun",
    "timer_gettime", "timer_settime",
    // Sockets once made; `socket` and `socketpair` have conditions.
    "accept", "accept4", "bind", "connect", "getpeername", "getsockname", "getsockopt", "listen",
    "recvfrom", "recvmmsg", "recvmsg", "sendmmsg", "sendmsg", "sendto", "setsockopt", "shutdown",
    // System V and POSIX communication, in the sandbox's own ipc namespace.
    "mq_getsetattr", "mq_notify", "mq_open", "mq_timedreceive", "mq_timedsend", "mq_unlink",
    "msgctl", "msgget", "msgrcv", "msgsnd", "semctl", "semget", "semop", "semtimedop", "shmat",
    "shmctl", "shmdt", "shmget",
    // The system.
    "getrandom", "sysinfo", "uname", "sethostname", "setdomainname",
};

constexpr const char* kAbsent[] = {
    // Its flags are in memory, out of a filter's sight; the C library falls back to clone.
    "clone3",
    // Databases read and write otherwise.
    "io_uring_enter", "io_uring_register", "io_uring_setup",
    // Asynchronous I/O of the old kind: the kernel counts its requests for the host alone.
    "io_cancel", "io_destroy", "io_getevents", "io_pgetevents", "io_setup", "io_submit",
    // Kerberos and PAM keep what they have in files.
    "add_key", "keyctl", "request_key",
    // Placement of memory: kernels of one node may lack it, and so do libraries that ask.
    "get_mempolicy", "mbind", "migrate_pages", "move_pages", "set_mempolicy",
    "set_mempolicy_home_node",
    // New ways to learn what /proc tells.
    "listmount", "listns", "lsm_get_self_attr", "lsm_list_modules", "lsm_set_self_attr", "statmount",
};
// clang-format on

}  // namespace

std::span<const char* const> allowed_system_calls() {
    return kAllowed;
}

std::span<const char* const> absent_system_calls() {
    return kAbsent;
}

}  // namespace opensandbox::runtime::native
