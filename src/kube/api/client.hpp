#pragma once

#include "json/document.hpp"
#include "json/selection.hpp"
#include "kube/api/connection.hpp"
#include "kube/api/resource.hpp"

#include <memory>
#include <optional>
#include <string>

namespace opensandbox::kube {

/// Which objects, and what of them.
struct ListChoice {
    std::string name_space;  ///< empty: all namespaces
    std::string label_selector;
    std::string field_selector;
    /// "0": what the API server has in memory, which may be a moment old. Empty: what holds now.
    std::string resource_version;
    std::size_t page = 500;  ///< objects at once; 0: all
    std::string page_token;  ///< where the page before ended
    /// Members to keep of the list ("items.metadata.name"); null: all. `metadata` is always kept.
    std::shared_ptr<const json::Selection> selection;
};

/// Objects of a list, without apiVersion and kind, as the API server has it.
struct ObjectList {
    json::array items;
    std::string resource_version;
    std::string page_token;  ///< of the next page; empty: this was the last
};

enum class PatchKind : std::uint8_t { merge, json, strategic };

/// A change of an object. In a merge patch, metadata.resourceVersion or metadata.uid make it
/// conditional: `conflict` when the object has another.
struct Patch {
    PatchKind kind = PatchKind::merge;
    json::value content;
    std::string subresource;  ///< "status", "scale"…
};

/// Server-side apply of our part of an object.
struct Apply {
    json::object content;       ///< with apiVersion and kind
    std::string field_manager;  ///< whose part it is
    bool force = false;         ///< takes fields from other managers; else `conflict`
    std::string subresource;
};

struct Deletion {
    std::optional<std::int64_t> grace_seconds;
    /// Only this one, not another of its name that came since: else `conflict`.
    std::string uid;
    std::string resource_version;
    std::string propagation;  ///< Background, Foreground, Orphan; empty: the kind's default
};

/// Reads and writes of objects. Errors are those of Connection::call(), each within the object's
/// name; `protocol` when an answer is no object. Borrows the connection.
class Client {
  public:
    /// `field_manager` owns what is written without naming another.
    Client(Connection& connection, std::string field_manager);

    Awaitable<Result<json::object>> get(Resource resource, ObjectKey key);
    /// One page.
    Awaitable<Result<ObjectList>> list(Resource resource, ListChoice choice);
    /// Page after page. A list whose later pages are not to be had any more is read anew at once.
    Awaitable<Result<ObjectList>> list_all(Resource resource, ListChoice choice);
    /// `conflict` with wire() "AlreadyExists" when the name is taken, perhaps by a try of this call
    /// whose answer was lost.
    Awaitable<Result<json::object>> create(Resource resource, std::string name_space,
                                           json::object object);
    /// The whole object. With metadata.resourceVersion: `conflict` when it has changed since.
    Awaitable<Result<json::object>> replace(Resource resource, ObjectKey key, json::object object,
                                            std::string subresource = {});
    Awaitable<Result<json::object>> patch(Resource resource, ObjectKey key, Patch patch);
    Awaitable<Result<json::object>> apply(Resource resource, ObjectKey key, Apply apply);
    /// Success also when it is not there.
    Awaitable<Status> remove(Resource resource, ObjectKey key, Deletion deletion = {});

    [[nodiscard]] Connection& connection() { return connection_; }

  private:
    Awaitable<Result<json::object>> call_for_object(Call call, std::string about);

    Connection& connection_;
    std::string manager_query_;
};

}  // namespace opensandbox::kube
