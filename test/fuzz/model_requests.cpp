// Bodies of pools, copies and snapshots.
#include "json/document.hpp"
#include "model/fork_request.hpp"
#include "model/pool_request.hpp"
#include "model/snapshot_request.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

using namespace opensandbox;

/// Errors are never none, and valid JSON.
template <class Parsed>
void check(const Parsed& parsed) {
    const auto* errors = std::get_if<model::FieldErrors>(&parsed);
    if (errors && (errors->empty() || !json::parse(model::to_json(*errors)))) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::string_view text(reinterpret_cast<const char*>(data), size);
    check(model::parse_fork_request(text));
    check(model::parse_pool_request(text));
    check(model::parse_capacity_request(text));
    check(model::parse_snapshot_request(text));
    return 0;
}
