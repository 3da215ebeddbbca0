#include "egress/role/supervisor.hpp"

#include "support/catch_result.hpp"
#include "support/scratch_directory.hpp"

#include <sys/socket.h>
#include <sys/wait.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <iterator>
#include <thread>
#include <unistd.h>

using namespace opensandbox;
using namespace opensandbox::egress;

namespace {

/// A supervisor in a process of its own, and a file to which each life adds a letter.
class Supervised {
  public:
    explicit Supervised(const std::function<int(int life, int ready)>& life) {
        pid_ = ::fork();
        if (pid_ != 0) return;
        // Not the test framework's.
        ::signal(SIGTERM, SIG_DFL);
        ::_exit(supervise([&](int ready) {
            std::ofstream(file(), std::ios::app) << 'x' << std::flush;
            return life(static_cast<int>(lives()), ready);
        }));
    }
    Supervised(const Supervised&) = delete;
    Supervised& operator=(const Supervised&) = delete;
    ~Supervised() {
        if (pid_ > 0) {
            ::kill(pid_, SIGKILL);
            ::waitpid(pid_, nullptr, 0);
        }
    }

    [[nodiscard]] std::string file() const { return scratch_.path / "lives"; }
    [[nodiscard]] std::size_t lives() const {
        std::ifstream in(file());
        return std::string(std::istreambuf_iterator<char>(in), {}).size();
    }
    /// Its exit code.
    int wait() {
        int status = 0;
        ::waitpid(pid_, &status, 0);
        pid_ = 0;
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }
    void tell(int signal) const { ::kill(pid_, signal); }

  private:
    test_support::ScratchDirectory scratch_;
    pid_t pid_ = 0;
};

void say(int ready) {
    CHECK(::write(ready, "1", 1) == 1);
}

}  // namespace

TEST_CASE("a sidecar that cannot start is not started again") {
    Supervised supervised([](int, int) { return 7; });
    CHECK(supervised.wait() == 7);
    CHECK(supervised.lives() == 1);
}

TEST_CASE("a sidecar that was killed is started again") {
    Supervised supervised([](int life, int ready) {
        say(ready);
        if (life < 3) ::raise(SIGKILL);
        while (true)
            ::pause();
        return 0;
    });
    while (supervised.lives() < 3)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    supervised.tell(SIGTERM);
    // The one at work ends by the signal that was passed on.
    CHECK(supervised.wait() == 128 + SIGTERM);
    CHECK(supervised.lives() == 3);
}

TEST_CASE("a sidecar that once was ready is started again whatever it ends with") {
    Supervised supervised([](int life, int ready) {
        if (life == 1) {
            say(ready);
            return 1;
        }
        if (life == 2) return 1;
        ::kill(::getppid(), SIGTERM);
        while (true)
            ::pause();
        return 0;
    });
    CHECK(supervised.wait() == 128 + SIGTERM);
    CHECK(supervised.lives() == 3);
}

TEST_CASE("the API's socket listens before anything answers on it") {
    ListenAddress address;
    address.address = boost::asio::ip::make_address("127.0.0.1");
    address.port = 0;
    auto socket = listen_for_api(address);
    REQUIRE(socket);
    int listens = 0;
    socklen_t size = sizeof listens;
    REQUIRE(::getsockopt(socket->get(), SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0);
    CHECK(listens == 1);
}
