// What a spawner wrote down about sandboxes, snapshots and guards, and what a guest is told: files
// may be cut or damaged, and some stand where a sandbox could have reached them.
#include "runtime/native/inside/gvisor_slot.hpp"
#include "runtime/native/records/inspection_text.hpp"
#include "runtime/native/records/journal.hpp"
#include "runtime/native/records/sandbox_description.hpp"
#include "runtime/native/spawner/egress/guard_record.hpp"
#include "runtime/native/spawner/snapshots/snapshot_files.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

using namespace opensandbox;

template <class Parsed>
void check(const Parsed& parsed) {
    if (!parsed && parsed.error().message().empty()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace runtime::native;
    std::string_view text(reinterpret_cast<const char*>(data), size);
    if (auto guard = parse_guard(text)) {
        if (!parse_guard(format_guard(*guard))) std::abort();
    }
    if (auto description = parse_description(text)) {
        if (!parse_description(format_description(*description))) std::abort();
    }
    if (auto snapshot = parse_snapshot(text)) {
        if (!parse_snapshot(format_snapshot(*snapshot))) std::abort();
    }
    if (auto entry = parse_entry(text)) {
        if (!parse_entry(format_entry(*entry))) std::abort();
    }
    check(parse_view(text));
    check(parse_guest_request(text));
    return 0;
}
