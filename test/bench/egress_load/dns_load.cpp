#include "base/unique_fd.hpp"
#include "figures.hpp"
#include "measures.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <poll.h>
#include <system_error>

namespace opensandbox::bench {

namespace {

constexpr std::size_t kBatch = 64;
constexpr std::size_t kHeader = 12;
constexpr std::size_t kLongest = 4096;
/// After so long without an answer what is outstanding counts as lost.
constexpr int kPatienceMs = 200;
/// Of the rest of an identifier, which tells an answer from a late one to the slot's query before.
constexpr unsigned kSlotBits = 10;

UniqueFd connect_to(const std::string& server) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(53);
    if (::inet_pton(AF_INET, server.c_str(), &address.sin_addr) != 1) {
        throw std::invalid_argument(server);
    }
    UniqueFd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    const int room = 4 << 20;
    ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
        throw std::system_error(errno, std::generic_category(), server);
    }
    return fd;
}

/// For the addresses of n<NUMBER>.bench.example, in answers of up to 4,096 bytes.
std::string make_query(std::size_t number) {
    std::string query("\0\0\1\0\0\1\0\0\0\0\0\1", kHeader);
    for (const std::string& label :
         {"n" + std::to_string(number), std::string("bench"), std::string("example")}) {
        query += static_cast<char>(label.size());
        query += label;
    }
    query += std::string("\0\0\1\0\1", 5);
    query += std::string("\0\0\x29\x10\0\0\0\0\0\0\0", 11);
    return query;
}

std::vector<std::string> make_queries(std::size_t count) {
    std::vector<std::string> queries;
    for (std::size_t i = 0; i < count; ++i)
        queries.push_back(make_query(i));
    return queries;
}

void set_id(std::string& query, std::size_t id) {
    query[0] = static_cast<char>(id >> 8U & 0xff);
    query[1] = static_cast<char>(id & 0xff);
}

std::size_t id_of(const unsigned char* message) {
    return std::size_t{message[0]} << 8U | message[1];
}

/// How many records a good answer brings; 0 for any other.
std::size_t records_of(const unsigned char* message, std::size_t size) {
    if (size < kHeader || (message[2] & 0x80) == 0 || (message[3] & 0x0f) != 0) return 0;
    return std::size_t{message[6]} << 8U | message[7];
}

/// Keeps so many queries on their way.
class Window {
  public:
    Window(UniqueFd fd, std::size_t outstanding, std::vector<std::string> queries)
        : fd_(std::move(fd)), slots_(outstanding), queries_(std::move(queries)) {
        for (std::size_t slot = 0; slot < outstanding; ++slot)
            free_.push_back(slot);
    }

    void run(double seconds) {
        const auto begun = Clock::now();
        while (seconds_since(begun) < seconds) {
            send();
            pollfd entry{fd_.get(), POLLIN, 0};
            if (::poll(&entry, 1, kPatienceMs) == 1) {
                receive();
            } else {
                give_up();
            }
        }
        took_ = seconds_since(begun);
    }

    [[nodiscard]] Figures figures() const {
        Figures made;
        made.add("rate", static_cast<double>(answers_) / took_);
        made.add("answers", static_cast<double>(answers_));
        made.add("bad", static_cast<double>(bad_));
        made.add("lost", static_cast<double>(lost_));
        return made;
    }

  private:
    struct Slot {
        std::size_t id = 0;
        bool waits = false;
    };

    void send() {
        while (!free_.empty()) {
            const std::size_t count = std::min(free_.size(), kBatch);
            std::array<iovec, kBatch> parts{};
            std::array<mmsghdr, kBatch> messages{};
            std::array<std::string, kBatch> bytes;
            for (std::size_t i = 0; i < count; ++i) {
                const std::size_t slot = free_.back();
                free_.pop_back();
                slots_[slot] = {(slot | ++turn_ << kSlotBits) & 0xffff, true};
                bytes[i] = queries_[next_++ % queries_.size()];
                set_id(bytes[i], slots_[slot].id);
                parts[i] = {bytes[i].data(), bytes[i].size()};
                messages[i].msg_hdr.msg_iov = &parts[i];
                messages[i].msg_hdr.msg_iovlen = 1;
            }
            // What does not get out counts as lost in time.
            ::sendmmsg(fd_.get(), messages.data(), static_cast<unsigned>(count), 0);
        }
    }

    void receive() {
        static thread_local std::array<std::array<unsigned char, kLongest>, kBatch> bytes;
        std::array<iovec, kBatch> parts{};
        std::array<mmsghdr, kBatch> messages{};
        for (std::size_t i = 0; i < kBatch; ++i) {
            parts[i] = {bytes[i].data(), kLongest};
            messages[i].msg_hdr.msg_iov = &parts[i];
            messages[i].msg_hdr.msg_iovlen = 1;
        }
        const int count = ::recvmmsg(fd_.get(), messages.data(), kBatch, MSG_DONTWAIT, nullptr);
        for (int i = 0; i < count; ++i) {
            const auto at = static_cast<std::size_t>(i);
            take(bytes[at].data(), messages[at].msg_len);
        }
    }

    void take(const unsigned char* message, std::size_t size) {
        if (size < kHeader) return;
        const std::size_t id = id_of(message);
        const std::size_t slot = id & ((1U << kSlotBits) - 1);
        if (slot >= slots_.size() || !slots_[slot].waits || slots_[slot].id != id) return;
        slots_[slot].waits = false;
        free_.push_back(slot);
        ++(records_of(message, size) > 0 ? answers_ : bad_);
    }

    void give_up() {
        for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
            if (!slots_[slot].waits) continue;
            slots_[slot].waits = false;
            free_.push_back(slot);
            ++lost_;
        }
    }

    UniqueFd fd_;
    std::vector<Slot> slots_;
    std::vector<std::size_t> free_;
    std::vector<std::string> queries_;
    std::size_t next_ = 0;
    std::size_t turn_ = 0;
    std::size_t answers_ = 0;
    std::size_t bad_ = 0;
    std::size_t lost_ = 0;
    double took_ = 0;
};

/// Asks, and waits for the answer; the number of its records, 0 when there was none.
std::size_t ask(int fd, std::string& query, std::size_t id) {
    set_id(query, id);
    std::array<unsigned char, kLongest> answer{};
    if (::send(fd, query.data(), query.size(), 0) < 0) return 0;
    while (true) {
        pollfd entry{fd, POLLIN, 0};
        if (::poll(&entry, 1, 10 * kPatienceMs) != 1) return 0;
        const ssize_t size = ::recv(fd, answer.data(), answer.size(), 0);
        if (size < static_cast<ssize_t>(kHeader)) return 0;
        if (id_of(answer.data()) == id) {
            return records_of(answer.data(), static_cast<std::size_t>(size));
        }
    }
}

}  // namespace

void dns_rate(const Arguments& arguments) {
    const std::size_t outstanding = std::stoul(arguments[2]);
    if (outstanding > 1U << kSlotBits) throw std::invalid_argument("too many outstanding");
    Window window(connect_to(arguments[0]), outstanding, make_queries(std::stoul(arguments[3])));
    window.run(std::stod(arguments[1]));
    window.figures().tell();
}

void dns_latency(const Arguments& arguments) {
    const UniqueFd fd = connect_to(arguments[0]);
    const std::size_t count = std::stoul(arguments[1]);
    std::vector<std::string> queries = make_queries(std::stoul(arguments[2]));
    Times times;
    std::size_t bad = 0;
    for (std::size_t i = 0; i < count; ++i) {
        times.measure([&] {
            if (ask(fd.get(), queries[i % queries.size()], i & 0xffff) == 0) ++bad;
        });
    }
    Figures figures;
    figures.add("answer", times);
    figures.add("bad", static_cast<double>(bad));
    figures.tell();
}

void dns_learn(const Arguments& arguments) {
    const UniqueFd fd = connect_to(arguments[0]);
    const std::size_t last = std::stoul(arguments[2]);
    std::size_t addresses = 0;
    for (std::size_t number = std::stoul(arguments[1]); number <= last; ++number) {
        std::string query = make_query(number);
        addresses += ask(fd.get(), query, number & 0xffff);
    }
    Figures figures;
    figures.add("addresses", static_cast<double>(addresses));
    figures.tell();
}

}  // namespace opensandbox::bench
