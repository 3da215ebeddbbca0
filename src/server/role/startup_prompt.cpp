#include "server/role/startup.hpp"

#include <cstdio>
#include <poll.h>
#include <string>
#include <unistd.h>

namespace opensandbox::server {
namespace {

constexpr std::size_t kMaxLine = 256;

}  // namespace

bool confirm_insecure_start(int in, int out, std::chrono::milliseconds patience) {
    using Clock = std::chrono::steady_clock;
    if (!::isatty(in)) return false;
    ::dprintf(out,
              "No API key is set: whoever reaches this server controls it.\n"
              "Type YES within %lld seconds to start it all the same: ",
              static_cast<long long>(patience.count() / 1000));
    auto end = Clock::now() + patience;
    std::string line;
    while (line.size() < kMaxLine && line.find('\n') == std::string::npos) {
        auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
        pollfd waiting{in, POLLIN, 0};
        if (left.count() <= 0 || ::poll(&waiting, 1, static_cast<int>(left.count())) <= 0)
            return false;
        char piece[kMaxLine];
        ssize_t count = ::read(in, piece, sizeof piece);
        if (count <= 0) return false;
        line.append(piece, static_cast<std::size_t>(count));
    }
    line.resize(line.find('\n') == std::string::npos ? 0 : line.find('\n'));
    if (line.ends_with('\r')) line.pop_back();
    return line == "YES";
}

}  // namespace opensandbox::server
