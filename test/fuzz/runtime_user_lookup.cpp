#include "runtime/native/inside/user_lookup.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

/// An image's user, /etc/passwd and /etc/group, separated by NUL: never an id beyond the sandbox's.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::string_view rest(reinterpret_cast<const char*>(data), size);
    std::string_view parts[3];
    for (std::string_view& part : parts) {
        const std::size_t end = rest.find('\0');
        part = rest.substr(0, end);
        rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    }
    const auto user = opensandbox::runtime::native::resolve_user(parts[0], parts[1], parts[2]);
    if (user && (user->uid > 65'535 || user->gid > 65'535)) std::abort();
    return 0;
}
