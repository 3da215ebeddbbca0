#include "mcp/output_pages.hpp"

using namespace opensandbox::mcp;

TEST_CASE("pages put together are the text, and cut no character") {
    const std::string text = "a\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80z";
    for (std::size_t limit = 1; limit <= text.size(); ++limit) {
        std::string all;
        std::uint64_t at = 0;
        for (;;) {
            const Page page = page_of(text, at, limit);
            CHECK(as_text(page.text) == page.text);
            all += page.text;
            if (!page.next) break;
            REQUIRE(*page.next > at);
            at = *page.next;
        }
        CHECK(all == text);
    }
    CHECK(page_of(text, text.size(), 1).text.empty());
}

TEST_CASE("bytes that are no text become replacement characters") {
    CHECK(as_text("a\xFF"
                  "b") ==
          "a\xEF\xBF\xBD"
          "b");
    CHECK(as_text("\xC3\xA4\xC3") == "\xC3\xA4\xEF\xBF\xBD");
}

TEST_CASE("kept outputs are bounded, the oldest goes first") {
    KeptOutputs kept(10, 20);
    kept.keep("s", "one", std::string(10, 'a'), "");
    kept.keep("s", "two", std::string(10, 'b'), "e");
    CHECK(kept.find("s", "one", OutputStream::standard) == nullptr);
    REQUIRE(kept.find("s", "two", OutputStream::error) != nullptr);
    CHECK(*kept.find("s", "two", OutputStream::error) == "e");
    CHECK(kept.find("other", "two", OutputStream::standard) == nullptr);
}

TEST_CASE("of what is kept under one id the last is found") {
    KeptOutputs kept(10, 20);
    kept.keep("s", "context", std::string(10, 'a'), "");
    kept.keep("s", "other", "o", "");
    kept.keep("s", "context", "new", "");
    REQUIRE(kept.find("s", "context", OutputStream::standard) != nullptr);
    CHECK(*kept.find("s", "context", OutputStream::standard) == "new");
    // The first one's bytes count no longer.
    kept.keep("s", "third", std::string(10, 'c'), "");
    CHECK(kept.find("s", "other", OutputStream::standard) != nullptr);
}
