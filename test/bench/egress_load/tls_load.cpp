#include "figures.hpp"
#include "measures.hpp"
#include "tls_client.hpp"

#include <openssl/err.h>

#include <atomic>
#include <mutex>
#include <thread>

namespace opensandbox::bench {

namespace {

struct Shares {
    std::mutex mutex;
    std::size_t done = 0;
    std::size_t failed = 0;
    std::string failure;
    Times times;
};

void connect_until(const TlsClient& client, Clock::time_point end, Shares& all) {
    Shares own;
    while (Clock::now() < end) {
        try {
            const auto begun = Clock::now();
            const TlsClient::Connection connection = client.connect();
            client.request(connection.session.get(), true);
            SSL_shutdown(connection.session.get());
            own.times.add(seconds_since(begun));
            ++own.done;
        } catch (const std::exception& failure) {
            ++own.failed;
            own.failure = failure.what();
            ERR_clear_error();
        }
    }
    const std::lock_guard lock(all.mutex);
    all.done += own.done;
    all.failed += own.failed;
    if (!own.failure.empty()) all.failure = own.failure;
    all.times.add(own.times);
}

}  // namespace

void tls_connect(const Arguments& arguments) {
    const TlsClient client(arguments[0], arguments[1], arguments[2]);
    const auto begun = Clock::now();
    const auto end = begun + std::chrono::duration_cast<Clock::duration>(
                                 std::chrono::duration<double>(std::stod(arguments[3])));
    Shares all;
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < std::stoul(arguments[4]); ++i)
        threads.emplace_back([&] { connect_until(client, end, all); });
    threads.clear();
    const double took = seconds_since(begun);
    if (!all.failure.empty()) std::cerr << all.failure << '\n';
    Figures figures;
    figures.add("rate", static_cast<double>(all.done) / took);
    figures.add("failed", static_cast<double>(all.failed));
    figures.add("connection", all.times);
    figures.tell();
}

void tls_download(const Arguments& arguments) {
    constexpr std::chrono::seconds kWarmUp{1};
    const TlsClient client(arguments[0], arguments[1], arguments[2]);
    const auto begun = Clock::now() + kWarmUp;
    const auto end = begun + std::chrono::duration_cast<Clock::duration>(
                                 std::chrono::duration<double>(std::stod(arguments[3])));
    std::atomic<std::uint64_t> bytes = 0;
    std::mutex mutex;
    std::string failed;
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < std::stoul(arguments[4]); ++i) {
        threads.emplace_back([&] {
            try {
                const TlsClient::Connection connection = client.connect();
                auto count = [&](std::size_t piece) {
                    const auto now = Clock::now();
                    if (now >= begun && now < end) bytes += piece;
                    return now < end;
                };
                while (client.download(connection.session.get(), count)) {
                }
            } catch (const std::exception& failure) {
                const std::lock_guard lock(mutex);
                failed = failure.what();
            }
        });
    }
    threads.clear();
    if (!failed.empty()) throw std::runtime_error(failed);
    Figures figures;
    figures.add("rate", static_cast<double>(bytes) / std::stod(arguments[3]));
    figures.tell();
}

void tls_hold(const Arguments& arguments) {
    const TlsClient client(arguments[0], arguments[1], arguments[2]);
    std::vector<TlsClient::Connection> held;
    for (std::size_t i = 0; i < std::stoul(arguments[3]); ++i) {
        held.push_back(client.connect());
        client.request(held.back().session.get(), false);
    }
    Figures figures;
    figures.add("held", static_cast<double>(held.size()));
    figures.tell();
    while (std::cin.get() != std::char_traits<char>::eof()) {
    }
}

}  // namespace opensandbox::bench
