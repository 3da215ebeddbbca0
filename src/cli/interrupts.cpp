#include "cli/interrupts.hpp"

#include <csignal>

namespace opensandbox::cli {

Interrupts::Interrupts(asio::any_io_executor executor, std::function<void(int)> end)
    : signals_(executor, SIGINT, SIGTERM, SIGHUP), end_(std::move(end)) {
    wait();
}

void Interrupts::wait() {
    signals_.async_wait([this](boost::system::error_code failed, int number) {
        if (failed) return;
        const bool again = received_ != 0;
        if (!again) received_ = number;
        if (handler_ && !again) {
            handler_();
        } else {
            end_(128 + number);
        }
        wait();
    });
}

}  // namespace opensandbox::cli
