// The parts of our libmnl that only libnftnl uses, by the documentation of the interface.
#include <catch2/catch.hpp>
#include <libmnl/libmnl.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

namespace {

struct Message {
    alignas(8) std::array<char, 512> buffer{};
    nlmsghdr* head = mnl_nlmsg_put_header(buffer.data());
};

std::vector<int> types_of(const nlmsghdr* head, unsigned offset, int stop_after = 1000) {
    struct Seen {
        std::vector<int> types;
        int left;
    } seen{{}, stop_after};
    mnl_attr_parse(
        head, offset,
        [](const nlattr* attribute, void* data) {
            auto& found = *static_cast<Seen*>(data);
            found.types.push_back(mnl_attr_get_type(attribute));
            return --found.left > 0 ? MNL_CB_OK : MNL_CB_STOP;
        },
        &seen);
    return seen.types;
}

const nlattr* first(const nlmsghdr* head) {
    return static_cast<const nlattr*>(mnl_nlmsg_get_payload(head));
}

int count_data(const nlmsghdr*, void* data) {
    ++*static_cast<int*>(data);
    return MNL_CB_OK;
}

}  // namespace

TEST_CASE("mnl: attributes are read back as they were put") {
    Message message;
    mnl_attr_put_u8(message.head, 1, 7);
    mnl_attr_put_u16(message.head, 2, 700);
    mnl_attr_put_u32(message.head, 3, 70000);
    mnl_attr_put_u64(message.head, 4, 1ULL << 40);
    mnl_attr_put_strz(message.head, 5, "text");
    CHECK(message.head->nlmsg_len == 16 + 8 + 8 + 8 + 12 + 12);
    CHECK(types_of(message.head, 0) == std::vector<int>{1, 2, 3, 4, 5});
    CHECK(types_of(message.head, 8) == std::vector<int>{2, 3, 4, 5});
    CHECK(types_of(message.head, 0, 2) == std::vector<int>{1, 2});

    const auto* attribute = first(message.head);
    CHECK(mnl_attr_get_u8(attribute) == 7);
    attribute = mnl_attr_next(attribute);
    CHECK(mnl_attr_get_u16(attribute) == 700);
    attribute = mnl_attr_next(attribute);
    CHECK(mnl_attr_get_u32(attribute) == 70000);
    // Wider than it is: nothing beyond it is read.
    CHECK(mnl_attr_get_u64(attribute) == 70000);
    attribute = mnl_attr_next(attribute);
    CHECK(mnl_attr_get_u64(attribute) == 1ULL << 40);
    attribute = mnl_attr_next(attribute);
    CHECK(std::strcmp(mnl_attr_get_str(attribute), "text") == 0);
    CHECK(mnl_attr_get_payload_len(attribute) == 5);
}

TEST_CASE("mnl: walking attributes stops at a length that lies") {
    Message message;
    mnl_attr_put_u32(message.head, 1, 1);
    mnl_attr_put_u32(message.head, 2, 2);
    auto* second = mnl_attr_next(first(message.head));
    SECTION("too long") {
        second->nla_len = 9;
    }
    SECTION("too short") {
        second->nla_len = 3;
    }
    CHECK(types_of(message.head, 0) == std::vector<int>{1});
    CHECK(types_of(message.head, 4096).empty());
}

TEST_CASE("mnl: an attribute that does not fit leaves the message as it was") {
    Message message;
    const auto before = message.head->nlmsg_len;
    const std::array<char, 512> data{};
    CHECK_FALSE(mnl_attr_put_check(message.head, 512, 1, data.size(), data.data()));
    CHECK_FALSE(mnl_attr_put_check(message.head, 1 << 20, 1, 65532, data.data()));
    CHECK(mnl_attr_nest_start_check(message.head, 19, 1) == nullptr);
    CHECK(message.head->nlmsg_len == before);
    CHECK(mnl_attr_put_check(message.head, 512, 1, 512 - 16 - 4, data.data()));
    CHECK(message.head->nlmsg_len == 512);
}

TEST_CASE("mnl: types are validated by length and shape") {
    Message message;
    mnl_attr_put(message.head, 1, 4, "abc");
    const auto* attribute = first(message.head);
    CHECK(mnl_attr_validate(attribute, MNL_TYPE_U32) == 0);
    CHECK(mnl_attr_validate(attribute, MNL_TYPE_NUL_STRING) == 0);
    CHECK(mnl_attr_validate(attribute, MNL_TYPE_NESTED) == 0);
    CHECK(mnl_attr_validate(attribute, MNL_TYPE_BINARY) == 0);
    errno = 0;
    CHECK(mnl_attr_validate(attribute, MNL_TYPE_U16) == -1);
    CHECK(errno == ERANGE);
    CHECK(mnl_attr_validate(attribute, MNL_TYPE_U64) == -1);
    CHECK(mnl_attr_validate(attribute, MNL_TYPE_FLAG) == -1);
    CHECK(mnl_attr_type_valid(attribute, 1) == 1);
    CHECK(mnl_attr_type_valid(attribute, 0) == -1);
    CHECK(errno == EOPNOTSUPP);

    Message open_text;
    mnl_attr_put_str(open_text.head, 1, "abc");
    CHECK(mnl_attr_validate(first(open_text.head), MNL_TYPE_NUL_STRING) == -1);
    CHECK(errno == EINVAL);
}

TEST_CASE("mnl: a batch tells when a message passes its limit") {
    alignas(8) std::array<char, 256> buffer{};
    auto* batch = mnl_nlmsg_batch_start(buffer.data(), 40);
    CHECK(mnl_nlmsg_batch_is_empty(batch));
    for (int i = 0; i < 2; ++i) {
        mnl_nlmsg_put_header(mnl_nlmsg_batch_current(batch));
        CHECK(mnl_nlmsg_batch_next(batch));
    }
    mnl_nlmsg_put_header(mnl_nlmsg_batch_current(batch));
    CHECK_FALSE(mnl_nlmsg_batch_next(batch));
    CHECK(mnl_nlmsg_batch_size(batch) == 32);
    CHECK(mnl_nlmsg_batch_head(batch) == buffer.data());
    CHECK_FALSE(mnl_nlmsg_batch_is_empty(batch));
    mnl_nlmsg_batch_stop(batch);
}

TEST_CASE("mnl: answers are handed out until an acknowledgement, an error or the end") {
    alignas(8) std::array<char, 256> buffer{};
    auto* data = mnl_nlmsg_put_header(buffer.data());
    data->nlmsg_type = NLMSG_MIN_TYPE;
    data->nlmsg_seq = 3;
    auto* end = mnl_nlmsg_put_header(buffer.data() + 16);
    end->nlmsg_seq = 3;
    int seen = 0;
    const auto run = [&](unsigned sequence) {
        const std::size_t size = 16 + end->nlmsg_len;
        return mnl_cb_run(buffer.data(), size, sequence, 0, count_data, &seen);
    };
    SECTION("the end of a dump") {
        end->nlmsg_type = NLMSG_DONE;
        CHECK(run(3) == MNL_CB_STOP);
        CHECK(seen == 1);
    }
    SECTION("an error") {
        end->nlmsg_type = NLMSG_ERROR;
        auto* reply = static_cast<nlmsgerr*>(mnl_nlmsg_put_extra_header(end, sizeof(nlmsgerr)));
        reply->error = -EEXIST;
        CHECK(run(3) == MNL_CB_ERROR);
        CHECK(errno == EEXIST);
        reply->error = 0;
        CHECK(run(3) == MNL_CB_STOP);
    }
    SECTION("an error cut short") {
        end->nlmsg_type = NLMSG_ERROR;
        CHECK(run(3) == MNL_CB_ERROR);
        CHECK(errno == EBADMSG);
    }
    SECTION("the answer to another question") {
        CHECK(run(4) == MNL_CB_ERROR);
        CHECK(errno == EPROTO);
        CHECK(seen == 0);
    }
    SECTION("a dump that a change interrupted") {
        end->nlmsg_flags = NLM_F_DUMP_INTR;
        CHECK(run(3) == MNL_CB_ERROR);
        CHECK(errno == EINTR);
    }
}
