#include "runtime/native/ground/kernel/signals.hpp"

#include <csignal>

namespace opensandbox::runtime::native {

void reset_signals(std::initializer_list<int> ignored) {
    for (int number = 1; number < NSIG; ++number)
        ::signal(number, SIG_DFL);
    for (const int number : ignored)
        ::signal(number, SIG_IGN);
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

}  // namespace opensandbox::runtime::native
