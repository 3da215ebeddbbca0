#pragma once

#include "base/unique_fd.hpp"

#include <cerrno>
#include <fcntl.h>
#include <fstream>
#include <future>
#include <sched.h>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>

namespace opensandbox::test {

/// A network namespace of a test's own, alive as long as this object and the sockets made in it.
/// Links inside and the other ends of veth pairs vanish with it: nothing to clean up by name.
class TestNamespace {
  public:
    TestNamespace() : fd_(std::async(std::launch::async, make).get()) {}

    [[nodiscard]] int fd() const { return fd_.get(); }

    /// Runs `body` on a thread inside and returns what it returns. Sockets opened there belong to
    /// the namespace for good and may be used from anywhere.
    template <class Body>
    auto run(Body body) const -> decltype(body()) {
        return std::async(std::launch::async,
                          [this, &body] {
                              if (::setns(fd_.get(), CLONE_NEWNET) != 0) fail("setns");
                              return body();
                          })
            .get();
    }

    /// Writes /proc/sys/`path` inside.
    void write_sysctl(const std::string& path, const std::string& value) const {
        run([&] {
            std::ofstream file("/proc/sys/" + path);
            file << value << std::flush;
            if (!file) throw std::runtime_error("write /proc/sys/" + path);
        });
    }

  private:
    [[noreturn]] static void fail(const char* what) {
        throw std::system_error(errno, std::generic_category(), what);
    }
    static UniqueFd make() {
        if (::unshare(CLONE_NEWNET) != 0) fail("unshare");
        UniqueFd fd(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
        if (!fd) fail("open namespace");
        return fd;
    }

    UniqueFd fd_;
};

}  // namespace opensandbox::test
