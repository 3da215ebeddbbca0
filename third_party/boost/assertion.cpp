// What Boost calls when one of its assertions does not hold. An object of its own: a program that
// links the client's package may have another.
#include <boost/assert.hpp>

#include <cstdio>
#include <cstdlib>

namespace boost {

void assertion_failed_msg(const char* expression, const char* message, const char* /*function*/,
                          const char* file, long line) {
    std::fprintf(stderr, "%s:%ld: assertion failed: %s%s%s\n", file, line, expression,
                 *message ? ": " : "", message);
    std::abort();
}

void assertion_failed(const char* expression, const char* function, const char* file, long line) {
    assertion_failed_msg(expression, "", function, file, line);
}

}  // namespace boost
