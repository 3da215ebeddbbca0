#include "egress/vault/secret.hpp"

#include <cstring>
#include <new>

namespace opensandbox::egress {

void wipe(std::string& text) {
    // Up to its capacity: a text that became shorter left its end there.
    text.resize(text.capacity());
    ::explicit_bzero(text.data(), text.size());
    text.clear();
}

Secret::Secret(std::string_view value)
    : bytes_(std::make_unique<char[]>(value.size())), size_(value.size()) {
    std::memcpy(bytes_.get(), value.data(), value.size());
}

Secret::~Secret() {
    ::explicit_bzero(bytes_.get(), size_);
}

// Boost gives some blocks back under another (small) alignment than it asked for: none below the
// usual one tells blocks apart.
void* WipedMemory::do_allocate(std::size_t bytes, std::size_t alignment) {
    if (alignment <= __STDCPP_DEFAULT_NEW_ALIGNMENT__) return ::operator new(bytes);
    return ::operator new(bytes, std::align_val_t(alignment));
}

void WipedMemory::do_deallocate(void* at, std::size_t bytes, std::size_t alignment) {
    ::explicit_bzero(at, bytes);
    if (alignment <= __STDCPP_DEFAULT_NEW_ALIGNMENT__) return ::operator delete(at);
    ::operator delete(at, std::align_val_t(alignment));
}

}  // namespace opensandbox::egress
