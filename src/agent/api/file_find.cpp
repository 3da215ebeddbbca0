#include "agent/api/file_routes.hpp"
#include "agent/api/file_stop.hpp"
#include "agent/files/file_info.hpp"
#include "agent/files/glob.hpp"
#include "agent/files/tree_walk.hpp"
#include "agent/ground/reply.hpp"
#include "base/json_string.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <charconv>
#include <limits>

namespace opensandbox::agent {
namespace {

/// A batch goes out when it has this many bytes, so that memory does not grow with the tree.
constexpr std::size_t kBatch = std::size_t{256} * 1024;
/// …or when this many entries were looked at, so that no one holds a thread for long.
constexpr std::size_t kSteps = 20'000;

/// The answer in the making: a JSON array of FileInfo, written batch by batch.
class Finding {
  public:
    Finding(std::string root, std::size_t depth, std::optional<Glob> pattern)
        : walk_(std::move(root), depth), pattern_(std::move(pattern)) {}

    /// The next batch; ended() tells whether it was the last.
    Result<std::string> next() {
        batch_ = std::string();
        for (std::size_t step = 0; step < kSteps && batch_.size() < kBatch; ++step) {
            const TreeWalk::Entry* entry = walk_.next();
            if (!entry) {
                ended_ = true;
                break;
            }
            if (!pattern_ || (!entry->directory && pattern_->matches(entry->name))) {
                put(entry->path);
            }
        }
        return std::move(batch_);
    }
    [[nodiscard]] bool ended() const { return ended_; }
    /// The whole answer for a root that is no directory: itself when its name matches.
    Result<std::string> only_root(const std::string& path) {
        std::size_t slash = path.find_last_of('/');
        if (!pattern_ || pattern_->matches(std::string_view(path).substr(slash + 1))) put(path);
        ended_ = true;
        return std::move(batch_);
    }

  private:
    void put(const std::string& path) {
        std::size_t before = batch_.size();
        if (!first_) batch_ += ',';
        if (writer_.append(batch_, path)) {
            first_ = false;
        } else {
            // It vanished between being named and being looked at.
            batch_.resize(before);
        }
    }

    TreeWalk walk_;
    std::optional<Glob> pattern_;
    FileInfoWriter writer_;
    std::string batch_;
    bool first_ = true;
    bool ended_ = false;
};

/// Sends an array in batches; a short one in one piece with its length.
Awaitable<void> send_found(FileCall call, std::shared_ptr<Finding> finding, std::string first,
                           std::stop_token stop) {
    if (finding->ended()) {
        co_await reply_json(call.exchange, 200, "[" + first + "]");
        co_return;
    }
    http::ResponseHead head(200);
    head.fields.set("Content-Type", "application/json; charset=utf-8");
    Status sent = co_await call.exchange.start(std::move(head));
    std::string piece = "[" + first;
    while (sent) {
        if (!piece.empty()) sent = co_await call.exchange.write(piece);
        if (!sent || finding->ended()) break;
        // Without a match nothing is sent, which would show that nobody listens.
        if (stop.stop_requested()) co_return;
        std::function<Result<std::string>()> work = [finding] { return finding->next(); };
        Result<std::string> batch =
            co_await call.services.files.run(call.identity, std::move(work));
        if (!batch) co_return;
        piece = std::move(*batch);
    }
    if (sent) sent = co_await call.exchange.write("]");
    if (sent) sent = co_await call.exchange.finish();
}

Awaitable<void> find_and_send(FileCall call, std::shared_ptr<Finding> finding,
                              std::function<Result<std::string>()> first) {
    FileStop stop(call);
    Result<std::string> batch = co_await call.services.files.run(call.identity, std::move(first));
    if (batch) {
        co_await send_found(call, finding, std::move(*batch), stop.token());
    } else {
        co_await reply_error(call.exchange, batch.error());
    }
}

Result<std::size_t> depth_of(const http::Query& query) {
    auto text = query.get("depth");
    if (!text || text->empty()) return std::size_t{1};
    std::uint32_t depth = 0;
    auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), depth);
    if (error != std::errc() || end != text->data() + text->size()) {
        return Error(ErrorCode::invalid_argument, "depth: must be an integer of 0 or more");
    }
    return std::size_t{depth};
}

}  // namespace

Awaitable<void> search_files(FileCall call) {
    Result<std::string> root = call.path_parameter();
    http::Query query(call.exchange.request().query());
    Result<Glob> pattern = Glob::compile(query.get("pattern").value_or(""));
    if (!root || !pattern) {
        co_await reply_error(call.exchange, root ? pattern.error() : root.error());
        co_return;
    }
    constexpr auto kEveryLevel = std::numeric_limits<std::size_t>::max();
    auto finding = std::make_shared<Finding>(std::string(), 0, std::nullopt);
    std::function<Result<std::string>()> first = [path = *root, glob = *pattern,
                                                  finding]() -> Result<std::string> {
        struct stat info{};
        if (::lstat(path.c_str(), &info) != 0) return Error::from_errno(errno, path);
        bool directory = S_ISDIR(info.st_mode);
        *finding = Finding(path, directory ? kEveryLevel : 0, glob);
        return directory ? finding->next() : finding->only_root(path);
    };
    co_await find_and_send(call, finding, std::move(first));
}

Awaitable<void> list_directory(FileCall call) {
    Result<std::string> root = call.path_parameter();
    http::Query query(call.exchange.request().query());
    Result<std::size_t> depth = depth_of(query);
    if (!root || !depth) {
        co_await reply_error(call.exchange, root ? depth.error() : root.error());
        co_return;
    }
    auto finding = std::make_shared<Finding>(std::string(), 0, std::nullopt);
    std::function<Result<std::string>()> first = [path = *root, depth = *depth,
                                                  finding]() -> Result<std::string> {
        struct stat info{};
        if (::lstat(path.c_str(), &info) != 0) return Error::from_errno(errno, path);
        if (!S_ISDIR(info.st_mode)) {
            return Error(ErrorCode::invalid_argument, path + " is not a directory");
        }
        *finding = Finding(path, depth, std::nullopt);
        return finding->next();
    };
    co_await find_and_send(call, finding, std::move(first));
}

}  // namespace opensandbox::agent
