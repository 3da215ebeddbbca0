#include "agent/code/drivers/control_frame.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

using namespace opensandbox::agent;

/// What an interpreter writes into its control channel, in any pieces: frames come out the same as
/// from the whole, and messages are parsed or refused.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 1) return 0;
    std::size_t step = 1 + data[0] % 31;
    std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
    std::string seen[2];
    for (int pass = 0; pass < 2; ++pass) {
        std::size_t piece = pass == 0 ? bytes.size() + 1 : step;
        ControlFrameReader reader;
        bool good = true;
        for (std::size_t at = 0; good && at < bytes.size(); at += piece) {
            reader.feed(bytes.substr(at, piece));
            while (true) {
                auto frame = reader.next();
                good = frame.has_value();
                if (!good || !*frame) break;
                if ((*frame)->payload.size() > ControlFrame::kMaxPayload) std::abort();
                seen[pass] += static_cast<char>((*frame)->kind) + (*frame)->payload + '\n';
                auto message = parse_control_message((*frame)->payload);
                if (message && message->mime.find('\n') != std::string::npos) std::abort();
            }
        }
    }
    if (seen[0] != seen[1]) std::abort();
    return 0;
}
