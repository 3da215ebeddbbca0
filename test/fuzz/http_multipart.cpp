// Reads a form twice, the body coming whole and in small pieces: both must agree.
#include "http/multipart.hpp"
#include "net/task.hpp"

#include <boost/asio/io_context.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>

using namespace opensandbox;

namespace {

class Pieces final : public http::BodyReader {
  public:
    Pieces(std::string_view text, std::size_t piece) : rest_(text), piece_(piece) {}
    Awaitable<Result<std::size_t>> read_some(std::span<char> into) override {
        std::size_t count = std::min({into.size(), piece_, rest_.size()});
        if (count > 0) std::memcpy(into.data(), rest_.data(), count);
        rest_.remove_prefix(count);
        co_return count;
    }
    std::optional<std::uint64_t> content_length() const override { return std::nullopt; }

  private:
    std::string_view rest_;
    std::size_t piece_;
};

Awaitable<void> read_form(std::string_view text, std::size_t piece, std::string& out) {
    Pieces body(text, piece);
    auto reader = http::MultipartReader::open("multipart/form-data; boundary=b", body);
    if (!reader) std::abort();
    std::string buffer(piece, '\0');
    while (true) {
        auto part = co_await reader->next_part();
        if (!part || !*part) {
            out += part ? "|end" : "|error";
            co_return;
        }
        out += "|" + (*part)->name + "|" + (*part)->filename.value_or("-") + "|";
        while (true) {
            auto count = co_await reader->read_some(buffer);
            if (!count || *count == 0) break;
            out.append(buffer, 0, *count);
        }
    }
}

std::string run(std::string_view text, std::size_t piece) {
    asio::io_context context(1);
    std::string out;
    net::spawn(context.get_executor(), read_form(text, piece, out), "form");
    context.run();
    return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::string_view text(reinterpret_cast<const char*>(data), size);
    (void)http::form_parameter(text, "filename");
    if (run(text, 65536) != run(text, 3)) std::abort();
    return 0;
}
