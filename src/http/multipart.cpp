#include "http/multipart.hpp"

#include "http/fields.hpp"
#include "http/head_parser.hpp"
#include "http/input_buffer.hpp"
#include "http/message.hpp"

#include <algorithm>
#include <cstring>

namespace opensandbox::http {
namespace {

constexpr std::size_t kMaxPartFields = 16 * 1024;
constexpr std::size_t kMaxParts = 1000;
constexpr std::size_t kMaxBoundary = 200;
constexpr std::size_t kFillSize = 64 * 1024;

Error malformed(std::string_view what) {
    return {ErrorCode::protocol, "malformed multipart body: " + std::string(what)};
}

bool is_blank(char c) {
    return c == ' ' || c == '\t';
}

/// Takes a quoted string without its quotes off the front of `rest`.
std::string take_quoted(std::string_view& rest) {
    std::string text;
    std::size_t i = 1;
    for (; i < rest.size() && rest[i] != '"'; ++i) {
        bool escape =
            rest[i] == '\\' && i + 1 < rest.size() && (rest[i + 1] == '"' || rest[i + 1] == '\\');
        if (escape) ++i;
        text += rest[i];
    }
    rest.remove_prefix(i < rest.size() ? i + 1 : rest.size());
    return text;
}

std::string take_value(std::string_view& rest) {
    while (!rest.empty() && is_blank(rest.front()))
        rest.remove_prefix(1);
    if (!rest.empty() && rest.front() == '"') return take_quoted(rest);
    auto end = rest.find(';');
    std::string text(trim(rest.substr(0, end)));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end);
    return text;
}

/// `UTF-8'language'percent-encoded`; empty when it is something else.
std::optional<std::string> decode_extended(std::string_view text) {
    auto first = text.find('\'');
    if (first == std::string_view::npos) return std::nullopt;
    auto second = text.find('\'', first + 1);
    if (second == std::string_view::npos) return std::nullopt;
    if (!equal_ignoring_case(text.substr(0, first), "UTF-8")) return std::nullopt;
    return percent_decode(text.substr(second + 1));
}

}  // namespace

struct MultipartReader::State {
    State(BodyReader& b, const std::string& boundary) : body(b), delimiter("\r\n--" + boundary) {
        // The first delimiter may stand at the very start, where no line end precedes it.
        auto room = buffer.prepare(2);
        std::memcpy(room.data(), "\r\n", 2);
        buffer.commit(2);
    }

    Awaitable<Status> fill();
    Awaitable<Status> require(std::size_t count);
    Awaitable<Result<std::size_t>> read_content(std::span<char> into);
    Awaitable<Result<std::optional<PartHead>>> read_head();

    BodyReader& body;
    std::string delimiter;
    InputBuffer buffer;
    bool in_part = true;  ///< the preamble counts as one
    bool ended = false;
    std::size_t parts = 0;
};

/// Reads more; the end of the body is an error here.
Awaitable<Status> MultipartReader::State::fill() {
    auto count = co_await body.read_some(buffer.prepare(kFillSize).first(kFillSize));
    if (!count) co_return count.error();
    if (*count == 0) co_return malformed("it ends before its last boundary");
    buffer.commit(*count);
    co_return Status();
}

Awaitable<Status> MultipartReader::State::require(std::size_t count) {
    while (buffer.size() < count) {
        auto filled = co_await fill();
        if (!filled) co_return filled;
    }
    co_return Status();
}

/// Content up to the next delimiter, which is consumed; 0 at that point. With an empty `into` the
/// content is dropped.
Awaitable<Result<std::size_t>> MultipartReader::State::read_content(std::span<char> into) {
    while (true) {
        std::size_t wanted = into.empty() ? buffer.size() : into.size();
        std::string_view window = buffer.view();
        window = window.substr(0, std::min(window.size(), wanted + delimiter.size()));
        auto found = window.find(delimiter);
        if (found == 0) {
            buffer.consume(delimiter.size());
            in_part = false;
            co_return 0;
        }
        // What cannot be the start of a delimiter is content.
        std::size_t safe = found != std::string_view::npos ? found
                           : window.size() < delimiter.size()
                               ? 0
                               : window.size() - delimiter.size() + 1;
        if (safe == 0) {
            auto filled = co_await fill();
            if (!filled) co_return filled.error();
            continue;
        }
        std::size_t count = std::min(safe, wanted);
        if (!into.empty()) std::memcpy(into.data(), window.data(), count);
        buffer.consume(count);
        if (!into.empty()) co_return count;
    }
}

/// What follows a delimiter: "--" after the last one, else fields and an empty line.
Awaitable<Result<std::optional<PartHead>>> MultipartReader::State::read_head() {
    auto started = co_await require(2);
    if (!started) co_return started.error();
    if (buffer.view().substr(0, 2) == "--") {
        ended = true;
        co_return std::nullopt;
    }
    if (++parts > kMaxParts) co_return malformed("it has more than 1000 parts");
    // The rest of the delimiter's line may hold blanks only.
    while (buffer.view().front() == ' ' || buffer.view().front() == '\t') {
        buffer.consume(1);
        auto more = co_await require(2);
        if (!more) co_return more.error();
    }
    if (buffer.view().substr(0, 2) != "\r\n") co_return malformed("text follows a boundary");
    buffer.consume(2);
    HeadScanner scanner;
    HeadScanner::State state = HeadScanner::State::incomplete;
    while (true) {
        auto view = buffer.view().substr(0, kMaxPartFields);
        state = scanner.scan(view);
        if (state != HeadScanner::State::incomplete) break;
        if (view.size() == kMaxPartFields)
            co_return malformed("the fields of a part are too large");
        auto filled = co_await fill();
        if (!filled) co_return filled.error();
    }
    if (state == HeadScanner::State::malformed) co_return malformed("bare line feed");
    PartHead head;
    if (auto reason = parse_fields(buffer.view().substr(0, scanner.size()), head.fields)) {
        co_return malformed(*reason);
    }
    buffer.consume(scanner.size());
    auto disposition = head.fields.get("Content-Disposition").value_or("");
    if (auto name = form_parameter(disposition, "name")) head.name = std::move(*name);
    head.filename = form_parameter(disposition, "filename");
    in_part = true;
    co_return std::optional<PartHead>(std::move(head));
}

MultipartReader::MultipartReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
MultipartReader::MultipartReader(MultipartReader&&) noexcept = default;
MultipartReader::~MultipartReader() = default;

Result<MultipartReader> MultipartReader::open(std::string_view content_type, BodyReader& body) {
    std::string_view type = content_type.substr(0, content_type.find(';'));
    while (!type.empty() && (type.back() == ' ' || type.back() == '\t'))
        type.remove_suffix(1);
    if (!equal_ignoring_case(type, "multipart/form-data")) {
        return Error(ErrorCode::invalid_argument, "the body is not multipart/form-data");
    }
    auto boundary = form_parameter(content_type, "boundary");
    bool usable = boundary && !boundary->empty() && boundary->size() <= kMaxBoundary &&
                  boundary->find_first_of("\r\n") == std::string::npos;
    if (!usable)
        return Error(ErrorCode::invalid_argument, "multipart/form-data without a boundary");
    return MultipartReader(std::make_unique<State>(body, *boundary));
}

Awaitable<Result<std::optional<PartHead>>> MultipartReader::next_part() {
    State& state = *state_;
    if (state.ended) co_return std::nullopt;
    while (state.in_part) {
        auto skipped = co_await state.read_content(std::span<char>());
        if (!skipped) co_return skipped.error();
    }
    co_return co_await state.read_head();
}

Awaitable<Result<std::size_t>> MultipartReader::read_some(std::span<char> into) {
    State& state = *state_;
    bool readable = !state.ended && state.in_part && state.parts > 0 && !into.empty();
    if (!readable) co_return 0;
    co_return co_await state.read_content(into);
}

std::optional<std::string> form_parameter(std::string_view value, std::string_view name) {
    std::optional<std::string> plain;
    auto mark = value.find(';');
    std::string_view rest =
        mark == std::string_view::npos ? std::string_view() : value.substr(mark);
    while (!rest.empty()) {
        // Anything odd between two parameters is skipped.
        auto start = rest.find(';');
        if (start == std::string_view::npos) break;
        rest.remove_prefix(start + 1);
        auto end = rest.find_first_of("=;");
        if (end == std::string_view::npos) break;
        if (rest[end] == ';') continue;
        std::string_view key = trim(rest.substr(0, end));
        rest.remove_prefix(end + 1);
        std::string text = take_value(rest);
        if (equal_ignoring_case(key, name)) {
            if (!plain) plain = std::move(text);
        } else if (!key.empty() && key.back() == '*' &&
                   equal_ignoring_case(key.substr(0, key.size() - 1), name)) {
            if (auto extended = decode_extended(text)) return extended;
        }
    }
    return plain;
}

}  // namespace opensandbox::http
