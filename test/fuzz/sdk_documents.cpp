// What a server and an agent answer: whatever it is, it becomes a document or an error.
#include "sdk/wire.hpp"
#include "sdk/wire_code.hpp"
#include "sdk/wire_egress.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

using namespace opensandbox::sdk;

template <class Decoded>
void check(const Decoded& decoded) {
    if (!decoded && decoded.error().message().empty()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::string_view text(reinterpret_cast<const char*>(data), size);
    check(wire::decode_created_id(text));
    check(wire::decode_sandbox(text));
    check(wire::decode_sandbox_page(text));
    check(wire::decode_forks(text));
    check(wire::decode_expiry(text));
    check(wire::decode_endpoint(text));
    check(wire::decode_version(text));
    check(wire::decode_images(text));
    check(wire::decode_snapshot_page(text));
    check(wire::decode_transfer_line(text));
    check(wire::decode_image_details(text));
    check(wire::decode_pruned(text));
    check(wire::decode_command_status(text));
    check(wire::decode_command_page(text));
    check(wire::decode_metrics(text));
    check(wire::decode_file_list(text));
    check(wire::decode_file_map(text, {"/a"}));
    check(wire::decode_replaced_count(text, "/a"));
    check(wire::decode_session_id(text));
    check(wire::decode_code_contexts(text));
    check(wire::decode_egress_status(text, true));
    check(wire::decode_vault(text));
    check(wire::decode_credentials(text));
    check(wire::decode_bindings(text));
    check(wire::decode_template_page(text));
    check(wire::decode_diagnostic_content(text));
    return 0;
}
