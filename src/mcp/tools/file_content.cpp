#include "mcp/output_pages.hpp"
#include "mcp/tool.hpp"
#include "mcp/tools/describe.hpp"
#include "mcp/tools/file_bytes.hpp"
#include "mcp/tools/file_mode.hpp"
#include "mcp/workspace.hpp"

#include <algorithm>

namespace opensandbox::mcp {

using schema::Object;

namespace {

constexpr std::int64_t kLargestRead = std::int64_t{4} << 20U;
constexpr int kRangeNotSatisfiable = 416;

/// Takes what was asked for and one byte more, which tells that there is more.
class Collector : public sdk::ByteWriter {
  public:
    explicit Collector(std::uint64_t limit) : limit_(limit) {}
    Awaitable<sdk::Status> write(std::string_view bytes) override {
        bytes_.append(bytes.substr(0, limit_ + 1 - bytes_.size()));
        if (bytes_.size() > limit_) co_return cancelled_error();
        co_return sdk::Status();
    }
    [[nodiscard]] bool has_more() const { return bytes_.size() > limit_; }
    [[nodiscard]] std::string take() {
        bytes_.resize(std::min<std::size_t>(bytes_.size(), limit_));
        return std::move(bytes_);
    }

  private:
    std::uint64_t limit_;
    std::string bytes_;
};

/// Where to read. A range of its own makes no pages: it is answered whole, up to the limit.
struct Wanted {
    std::uint64_t begin = 0;
    std::uint64_t size = 0;
};

Awaitable<sdk::Result<Wanted>> read_wanted(Call& call, sdk::Files files) {
    Wanted wanted;
    wanted.size = static_cast<std::uint64_t>(
        call.integer("limit", static_cast<std::int64_t>(call.workspace().limits().output)));
    wanted.begin = static_cast<std::uint64_t>(call.integer("offset", 0));
    auto header = call.optional_text("range_header");
    if (!header) co_return wanted;
    if (wanted.begin != 0) co_return invalid("range_header", "not together with offset");
    auto range = parse_byte_range(*header);
    if (!range) co_return range.error();
    if (range->last_bytes) {
        std::vector<std::string> paths{call.text("path")};
        auto info = co_await files.info(std::move(paths));
        if (!info) co_return info.error();
        const std::uint64_t all = info->front().size;
        wanted.begin = all - std::min(all, *range->last_bytes);
    } else {
        wanted.begin = range->begin;
    }
    const auto asked = range->end ? *range->end - range->begin + 1 : UINT64_MAX;
    const bool given = json::find(call.arguments(), "limit") != nullptr;
    const auto most = given ? wanted.size : static_cast<std::uint64_t>(kLargestRead);
    wanted.size = std::min(asked, most);
    co_return wanted;
}

Awaitable<ToolResult> read(Call& call) {
    auto encoding = parse_encoding(call.optional_text("encoding").value_or("utf-8"));
    if (!encoding) co_return encoding.error();
    auto sandbox = co_await call.workspace().sandbox(call);
    if (!sandbox) co_return sandbox.error();
    const sdk::Files files = sandbox->files();
    auto wanted = co_await read_wanted(call, files);
    if (!wanted) co_return wanted.error();
    const std::string path = call.text("path");
    Collector sink(wanted->size);
    std::optional<sdk::ByteRange> range;
    if (wanted->begin > 0) range.emplace(wanted->begin, std::nullopt);
    const auto report = [&](std::uint64_t done, std::uint64_t total) {
        const std::uint64_t most = std::min(total > 0 ? total : wanted->size, wanted->size);
        call.progress(static_cast<double>(std::min(done, most)), static_cast<double>(most), path);
    };
    auto size = co_await files.download(path, sink, report, range);
    const bool more = sink.has_more();
    const bool beyond = !size && size.error().status() == kRangeNotSatisfiable;
    if (!size && !more && !beyond) co_return size.error();
    std::string bytes = sink.take();
    // A page ends where a character does.
    if (more && *encoding == Encoding::utf8) bytes.resize(bytes.size() - partial_character(bytes));
    if (more && bytes.empty()) {
        const bool ranged = call.optional_text("range_header").has_value();
        co_return invalid(ranged ? "range_header" : "limit",
                          "ends within the character at byte " + std::to_string(wanted->begin) +
                              "; expected at least 4 bytes for utf-8");
    }
    auto content = to_json_text(bytes, *encoding);
    if (!content) co_return content.error();
    json::object out;
    out["path"] = path;
    out["content"] = *content;
    out["offset"] = wanted->begin;
    out["next_offset"] = more ? json::value(wanted->begin + bytes.size()) : json::value();
    co_return out;
}

Awaitable<ToolResult> write(Call& call) {
    auto encoding = parse_encoding(call.optional_text("encoding").value_or("utf-8"));
    if (!encoding) co_return encoding.error();
    auto permissions = read_permissions(call.arguments());
    if (!permissions) co_return permissions.error();
    auto content = from_json_text(call.text("content"), *encoding);
    if (!content) co_return content.error();
    auto sandbox = co_await call.workspace().sandbox(call);
    if (!sandbox) co_return sandbox.error();
    const std::string path = call.text("path");
    auto source = sdk::read_bytes(*content);
    const auto report = [&](std::uint64_t done, std::uint64_t) {
        call.progress(static_cast<double>(done), static_cast<double>(content->size()), path);
    };
    auto written = co_await sandbox->files().upload(path, *source, std::move(*permissions), report);
    if (!written) co_return written.error();
    co_return status_document("written");
}

json::object read_input() {
    Object members = with_sandbox();
    members.required("path", schema::text(), "Absolute path")
        .optional("encoding", schema::text(), "utf-8",
                  "utf-8, latin-1, or base64 for what is no text")
        .nullable("range_header", schema::text(), "bytes=0-99, bytes=100- or bytes=-100")
        .optional("offset", schema::integer(0, INT64_MAX), 0, "Byte to begin at")
        .nullable("limit", schema::integer(1, kLargestRead), "Bytes in this answer");
    return add_connect_if_missing(members).build();
}

json::object read_output() {
    return Object()
        .required("path", schema::text())
        .required("content", schema::text())
        .required("offset", schema::integer())
        .nullable("next_offset", schema::integer(), "Pass it as offset to go on; null: the end")
        .build(true);
}

json::object write_input() {
    Object members = with_sandbox();
    members.required("path", schema::text(), "Absolute path; directories are made")
        .required("content", schema::text())
        .optional("encoding", schema::text(), "utf-8",
                  "How to take content: utf-8, latin-1, or base64 for what is no text")
        .optional("mode", schema::integer(), 755, "Octal digits as a number")
        .nullable("owner", schema::text())
        .nullable("group", schema::text());
    return add_connect_if_missing(members).build();
}

}  // namespace

void add_file_content_tools(std::vector<Tool>& tools) {
    tools.push_back({"file_read", "Read a file",
                     "Content of a file. Long files come in pages: pass next_offset as offset for "
                     "the next one.",
                     Effect::reads, read_input(), read_output(), read});
    tools.push_back({"file_write", "Write a file",
                     "Writes a whole file, in place of what was there. To change parts of one use "
                     "file_replace_contents.",
                     Effect::changes, write_input(), status_schema(), write});
}

}  // namespace opensandbox::mcp
