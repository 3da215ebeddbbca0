/*
 * The part of libmnl's interface that libnftnl and src/net use, for linking where a distribution
 * ships libmnl as a shared object only. Written from the interface's documentation and the netlink
 * protocol (linux/netlink.h); behaviour that is ours is marked.
 */
#include <libmnl/libmnl.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Attributes */

uint16_t mnl_attr_get_type(const struct nlattr* attr) {
    return attr->nla_type & NLA_TYPE_MASK;
}

uint16_t mnl_attr_get_len(const struct nlattr* attr) {
    return attr->nla_len;
}

/* Ours: a length below the header counts as empty instead of wrapping round to 64 KiB. */
uint16_t mnl_attr_get_payload_len(const struct nlattr* attr) {
    return attr->nla_len < MNL_ATTR_HDRLEN ? 0 : attr->nla_len - MNL_ATTR_HDRLEN;
}

void* mnl_attr_get_payload(const struct nlattr* attr) {
    return (char*)attr + MNL_ATTR_HDRLEN;
}

/* Ours: integers shorter than asked for read as zero in the missing bytes, never past the end.
 * Payloads are aligned to 4 bytes only, hence the copies. */
#define GET_INTEGER(bits)                                            \
    uint##bits##_t mnl_attr_get_u##bits(const struct nlattr* attr) { \
        uint##bits##_t value = 0;                                    \
        size_t length = mnl_attr_get_payload_len(attr);              \
        memcpy(&value, mnl_attr_get_payload(attr),                   \
               length < sizeof(value) ? length : sizeof(value));     \
        return value;                                                \
    }
GET_INTEGER(8)
GET_INTEGER(16)
GET_INTEGER(32)
GET_INTEGER(64)
#undef GET_INTEGER

/* The caller validates that the string ends inside the attribute (MNL_TYPE_NUL_STRING). */
const char* mnl_attr_get_str(const struct nlattr* attr) {
    return mnl_attr_get_payload(attr);
}

bool mnl_attr_ok(const struct nlattr* attr, int len) {
    return len >= (int)sizeof(struct nlattr) && attr->nla_len >= sizeof(struct nlattr) &&
           (int)attr->nla_len <= len;
}

struct nlattr* mnl_attr_next(const struct nlattr* attr) {
    return (struct nlattr*)((char*)attr + MNL_ALIGN(attr->nla_len));
}

int mnl_attr_type_valid(const struct nlattr* attr, uint16_t max) {
    if (mnl_attr_get_type(attr) > max) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return 1;
}

static int invalid(int number) {
    errno = number;
    return -1;
}

int mnl_attr_validate(const struct nlattr* attr, enum mnl_attr_data_type type) {
    static const size_t exact[MNL_TYPE_MAX] = {
        [MNL_TYPE_U8] = sizeof(uint8_t),     [MNL_TYPE_U16] = sizeof(uint16_t),
        [MNL_TYPE_U32] = sizeof(uint32_t),   [MNL_TYPE_U64] = sizeof(uint64_t),
        [MNL_TYPE_MSECS] = sizeof(uint64_t),
    };
    size_t length = mnl_attr_get_payload_len(attr);
    const char* bytes = mnl_attr_get_payload(attr);

    if ((unsigned)type >= MNL_TYPE_MAX) return invalid(EINVAL);
    if (exact[type] != 0) return length == exact[type] ? 0 : invalid(ERANGE);
    switch (type) {
        case MNL_TYPE_FLAG: return length == 0 ? 0 : invalid(ERANGE);
        case MNL_TYPE_NUL_STRING:
            if (length == 0) return invalid(ERANGE);
            return bytes[length - 1] == '\0' ? 0 : invalid(EINVAL);
        case MNL_TYPE_STRING: return length == 0 ? invalid(ERANGE) : 0;
        case MNL_TYPE_NESTED: /* empty nests are allowed */
            return length != 0 && length < MNL_ATTR_HDRLEN ? invalid(ERANGE) : 0;
        default: return 0;
    }
}

static int parse_attributes(const void* payload, size_t size, mnl_attr_cb_t cb, void* data) {
    const char* end = (const char*)payload + size;
    const struct nlattr* attr = payload;
    while (end - (const char*)attr > 0 && mnl_attr_ok(attr, (int)(end - (const char*)attr))) {
        int verdict = cb(attr, data);
        if (verdict <= MNL_CB_STOP) return verdict;
        attr = mnl_attr_next(attr);
    }
    return MNL_CB_OK;
}

int mnl_attr_parse(const struct nlmsghdr* nlh, unsigned int offset, mnl_attr_cb_t cb, void* data) {
    size_t payload = mnl_nlmsg_get_payload_len(nlh);
    size_t skip = MNL_ALIGN(offset);
    if (skip > payload) return MNL_CB_OK;
    return parse_attributes((char*)mnl_nlmsg_get_payload(nlh) + skip, payload - skip, cb, data);
}

int mnl_attr_parse_nested(const struct nlattr* nest, mnl_attr_cb_t cb, void* data) {
    return parse_attributes(mnl_attr_get_payload(nest), mnl_attr_get_payload_len(nest), cb, data);
}

/* Ours: an attribute beyond the 16 bits of its length field is a bug of the caller. A wrapped
 * length would make the kernel read the rest as other attributes, so the program stops. */
static uint16_t attribute_length(size_t length) {
    if (length > UINT16_MAX) abort();
    return (uint16_t)length;
}

void mnl_attr_put(struct nlmsghdr* nlh, uint16_t type, size_t len, const void* data) {
    if (len > UINT16_MAX - MNL_ATTR_HDRLEN) abort();
    struct nlattr* attr = mnl_nlmsg_get_payload_tail(nlh);
    char* payload = mnl_attr_get_payload(attr);

    attr->nla_type = type;
    attr->nla_len = attribute_length(MNL_ATTR_HDRLEN + len);
    if (len != 0) memcpy(payload, data, len);
    memset(payload + len, 0, MNL_ALIGN(len) - len);
    nlh->nlmsg_len += MNL_ALIGN(attr->nla_len);
}

bool mnl_attr_put_check(struct nlmsghdr* nlh, size_t buflen, uint16_t type, size_t len,
                        const void* data) {
    if (len > UINT16_MAX - MNL_ATTR_HDRLEN) return false;
    if (MNL_ALIGN((size_t)nlh->nlmsg_len) + MNL_ATTR_HDRLEN + MNL_ALIGN(len) > buflen) return false;
    mnl_attr_put(nlh, type, len, data);
    return true;
}

#define PUT_INTEGER(bits)                                                              \
    void mnl_attr_put_u##bits(struct nlmsghdr* nlh, uint16_t type, uint##bits##_t v) { \
        mnl_attr_put(nlh, type, sizeof(v), &v);                                        \
    }
PUT_INTEGER(8)
PUT_INTEGER(16)
PUT_INTEGER(32)
PUT_INTEGER(64)
#undef PUT_INTEGER

/* Without the terminating zero. */
void mnl_attr_put_str(struct nlmsghdr* nlh, uint16_t type, const char* text) {
    mnl_attr_put(nlh, type, strlen(text), text);
}

/* With the terminating zero. */
void mnl_attr_put_strz(struct nlmsghdr* nlh, uint16_t type, const char* text) {
    mnl_attr_put(nlh, type, strlen(text) + 1, text);
}

struct nlattr* mnl_attr_nest_start(struct nlmsghdr* nlh, uint16_t type) {
    struct nlattr* start = mnl_nlmsg_get_payload_tail(nlh);
    start->nla_type = NLA_F_NESTED | type;
    start->nla_len = MNL_ATTR_HDRLEN; /* a valid empty nest until it is ended */
    nlh->nlmsg_len += MNL_ATTR_HDRLEN;
    return start;
}

struct nlattr* mnl_attr_nest_start_check(struct nlmsghdr* nlh, size_t buflen, uint16_t type) {
    if (MNL_ALIGN((size_t)nlh->nlmsg_len) + MNL_ATTR_HDRLEN > buflen) return NULL;
    return mnl_attr_nest_start(nlh, type);
}

void mnl_attr_nest_end(struct nlmsghdr* nlh, struct nlattr* start) {
    start->nla_len =
        attribute_length((size_t)((char*)mnl_nlmsg_get_payload_tail(nlh) - (char*)start));
}

/* Messages */

size_t mnl_nlmsg_size(size_t len) {
    return len + MNL_NLMSG_HDRLEN;
}

size_t mnl_nlmsg_get_payload_len(const struct nlmsghdr* nlh) {
    return nlh->nlmsg_len < MNL_NLMSG_HDRLEN ? 0 : nlh->nlmsg_len - MNL_NLMSG_HDRLEN;
}

struct nlmsghdr* mnl_nlmsg_put_header(void* buf) {
    struct nlmsghdr* nlh = buf;
    memset(nlh, 0, MNL_NLMSG_HDRLEN);
    nlh->nlmsg_len = MNL_NLMSG_HDRLEN;
    return nlh;
}

void* mnl_nlmsg_put_extra_header(struct nlmsghdr* nlh, size_t size) {
    void* extra = mnl_nlmsg_get_payload_tail(nlh);
    memset(extra, 0, MNL_ALIGN(size));
    nlh->nlmsg_len += MNL_ALIGN(size);
    return extra;
}

bool mnl_nlmsg_ok(const struct nlmsghdr* nlh, int len) {
    return len >= (int)sizeof(struct nlmsghdr) && nlh->nlmsg_len >= sizeof(struct nlmsghdr) &&
           nlh->nlmsg_len <= (unsigned)len;
}

struct nlmsghdr* mnl_nlmsg_next(const struct nlmsghdr* nlh, int* len) {
    *len -= (int)MNL_ALIGN(nlh->nlmsg_len);
    return (struct nlmsghdr*)((char*)nlh + MNL_ALIGN(nlh->nlmsg_len));
}

/* Zero on either side means "not tracked": notifications carry sequence and port 0. */
bool mnl_nlmsg_seq_ok(const struct nlmsghdr* nlh, unsigned int seq) {
    return nlh->nlmsg_seq == 0 || seq == 0 || nlh->nlmsg_seq == seq;
}

bool mnl_nlmsg_portid_ok(const struct nlmsghdr* nlh, unsigned int portid) {
    return nlh->nlmsg_pid == 0 || portid == 0 || nlh->nlmsg_pid == portid;
}

void* mnl_nlmsg_get_payload(const struct nlmsghdr* nlh) {
    return (char*)nlh + MNL_NLMSG_HDRLEN;
}

void* mnl_nlmsg_get_payload_offset(const struct nlmsghdr* nlh, size_t offset) {
    return (char*)nlh + MNL_NLMSG_HDRLEN + MNL_ALIGN(offset);
}

void* mnl_nlmsg_get_payload_tail(const struct nlmsghdr* nlh) {
    return (char*)nlh + MNL_ALIGN(nlh->nlmsg_len);
}

/* Batches: messages one after another in the caller's buffer. The buffer must have room for one
 * message beyond `limit`, since a message is only measured once it is complete. */

struct mnl_nlmsg_batch {
    char* buffer;
    size_t limit;
    size_t size; /* bytes of complete messages */
    char* current;
    bool overflow; /* the message at `current` did not fit any more */
};

struct mnl_nlmsg_batch* mnl_nlmsg_batch_start(void* buf, size_t limit) {
    struct mnl_nlmsg_batch* batch = calloc(1, sizeof(*batch));
    if (batch == NULL) return NULL;
    batch->buffer = buf;
    batch->current = buf;
    batch->limit = limit;
    return batch;
}

void mnl_nlmsg_batch_stop(struct mnl_nlmsg_batch* batch) {
    free(batch);
}

bool mnl_nlmsg_batch_next(struct mnl_nlmsg_batch* batch) {
    const struct nlmsghdr* message = (const struct nlmsghdr*)batch->current;
    if (batch->size + message->nlmsg_len > batch->limit) {
        batch->overflow = true;
        return false;
    }
    batch->size += message->nlmsg_len;
    batch->current = batch->buffer + batch->size;
    return true;
}

size_t mnl_nlmsg_batch_size(struct mnl_nlmsg_batch* batch) {
    return batch->size;
}

void* mnl_nlmsg_batch_head(struct mnl_nlmsg_batch* batch) {
    return batch->buffer;
}

void* mnl_nlmsg_batch_current(struct mnl_nlmsg_batch* batch) {
    return batch->current;
}

bool mnl_nlmsg_batch_is_empty(struct mnl_nlmsg_batch* batch) {
    return batch->size == 0;
}

/* Sockets */

struct mnl_socket {
    int fd;
    struct sockaddr_nl address;
};

/* Ours: always close-on-exec, because this program starts untrusted ones. */
struct mnl_socket* mnl_socket_open(int bus) {
    struct mnl_socket* nl = calloc(1, sizeof(*nl));
    if (nl == NULL) return NULL;
    nl->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, bus);
    if (nl->fd >= 0) return nl;
    free(nl);
    return NULL;
}

int mnl_socket_bind(struct mnl_socket* nl, unsigned int groups, pid_t pid) {
    struct sockaddr_nl address;
    socklen_t length = sizeof(address);
    memset(&address, 0, sizeof(address));
    address.nl_family = AF_NETLINK;
    address.nl_groups = groups;
    address.nl_pid = (uint32_t)pid;
    if (bind(nl->fd, (struct sockaddr*)&address, sizeof(address)) < 0) return -1;
    /* With MNL_SOCKET_AUTOPID the kernel chose the port. */
    if (getsockname(nl->fd, (struct sockaddr*)&address, &length) < 0) return -1;
    if (length != sizeof(address) || address.nl_family != AF_NETLINK) return invalid(EINVAL);
    nl->address = address;
    return 0;
}

int mnl_socket_close(struct mnl_socket* nl) {
    int result = close(nl->fd);
    free(nl);
    return result;
}

int mnl_socket_get_fd(const struct mnl_socket* nl) {
    return nl->fd;
}

unsigned int mnl_socket_get_portid(const struct mnl_socket* nl) {
    return nl->address.nl_pid;
}

ssize_t mnl_socket_sendto(const struct mnl_socket* nl, const void* req, size_t size) {
    struct sockaddr_nl kernel;
    memset(&kernel, 0, sizeof(kernel));
    kernel.nl_family = AF_NETLINK;
    return sendto(nl->fd, req, size, 0, (struct sockaddr*)&kernel, sizeof(kernel));
}

ssize_t mnl_socket_recvfrom(const struct mnl_socket* nl, void* buf, size_t size) {
    struct sockaddr_nl sender;
    struct iovec part = {.iov_base = buf, .iov_len = size};
    struct msghdr message = {
        .msg_name = &sender,
        .msg_namelen = sizeof(sender),
        .msg_iov = &part,
        .msg_iovlen = 1,
    };
    ssize_t received = recvmsg(nl->fd, &message, 0);
    if (received < 0) return received;
    if (message.msg_flags & MSG_TRUNC) return invalid(ENOSPC);
    if (message.msg_namelen != sizeof(sender)) return invalid(EINVAL);
    return received;
}

/* Replies */

static int control_message(const struct nlmsghdr* nlh) {
    switch (nlh->nlmsg_type) {
        case NLMSG_ERROR: {
            if (mnl_nlmsg_get_payload_len(nlh) < sizeof(struct nlmsgerr)) return invalid(EBADMSG);
            const struct nlmsgerr* reply = mnl_nlmsg_get_payload(nlh);
            if (reply->error == 0) return MNL_CB_STOP; /* an acknowledgement */
            errno = reply->error < 0 ? -reply->error : reply->error;
            return MNL_CB_ERROR;
        }
        case NLMSG_DONE: return MNL_CB_STOP;
        default: return MNL_CB_OK;
    }
}

int mnl_cb_run(const void* buf, size_t numbytes, unsigned int seq, unsigned int portid,
               mnl_cb_t cb_data, void* data) {
    const struct nlmsghdr* nlh = buf;
    int left = numbytes > INT32_MAX ? INT32_MAX : (int)numbytes;
    int verdict = MNL_CB_OK;

    while (mnl_nlmsg_ok(nlh, left)) {
        if (!mnl_nlmsg_portid_ok(nlh, portid)) return invalid(ESRCH);
        if (!mnl_nlmsg_seq_ok(nlh, seq)) return invalid(EPROTO);
        if (nlh->nlmsg_flags & NLM_F_DUMP_INTR) return invalid(EINTR);

        if (nlh->nlmsg_type < NLMSG_MIN_TYPE)
            verdict = control_message(nlh);
        else if (cb_data != NULL)
            verdict = cb_data(nlh, data);
        if (verdict <= MNL_CB_STOP) return verdict;
        nlh = mnl_nlmsg_next(nlh, &left);
    }
    return verdict;
}
