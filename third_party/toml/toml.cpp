// The bodies of toml++, once for the whole program.

namespace opensandbox::third_party {
[[noreturn]] void malformed_toml();
}

// 3.3.0 asserts on documents such as "[=]": what a file holds must never abort the program.
#define TOML_ASSERT(expr) \
    ((expr) ? static_cast<void>(0) : ::opensandbox::third_party::malformed_toml())
#undef NDEBUG
#define TOML_IMPLEMENTATION
#include <toml++/toml.h>

namespace opensandbox::third_party {

void malformed_toml() {
    throw toml::parse_error("malformed key or table header", toml::source_region());
}

}  // namespace opensandbox::third_party
