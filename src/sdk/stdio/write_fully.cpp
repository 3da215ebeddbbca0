#include "sdk/stdio/write_fully.hpp"

#include <cerrno>
#include <poll.h>
#include <unistd.h>

namespace opensandbox::sdk {

bool write_fully(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t count = ::write(fd, bytes.data(), bytes.size());
        if (count >= 0) {
            bytes.remove_prefix(static_cast<std::size_t>(count));
        } else if (errno == EAGAIN) {
            // Someone made the terminal non-blocking, as shells' children do.
            struct pollfd wait{fd, POLLOUT, 0};
            ::poll(&wait, 1, -1);
        } else if (errno != EINTR) {
            return false;
        }
    }
    return true;
}

}  // namespace opensandbox::sdk
