#include "cli/interrupts.hpp"

#include <csignal>
#include <cstdlib>

namespace opensandbox::cli {

Interrupts::Interrupts(asio::any_io_executor executor, std::function<void(int)> end)
    : signals_(executor, SIGINT, SIGTERM, SIGHUP), end_(std::move(end)) {
    wait();
}

void Interrupts::wait() {
    signals_.async_wait([this](boost::system::error_code failed, int number) {
        if (failed) return;
        // Whoever asks twice does not want to wait for a thread that is stuck in a write.
        if (received_ != 0) {
            if (before_forced_end_) before_forced_end_();
            std::_Exit(128 + number);
        }
        received_ = number;
        if (handler_) {
            handler_();
        } else {
            end_(128 + number);
        }
        wait();
    });
}

}  // namespace opensandbox::cli
