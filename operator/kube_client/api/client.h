#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "operator/kube_client/api/client_options.h"
#include "operator/kube_client/api/event_lines.h"
#include "operator/kube_client/api/request_sender.h"
#include "operator/kube_client/api/resource.h"
#include "operator/kube_client/base/json.h"
#include "operator/kube_client/base/sleeper.h"
#include "operator/kube_client/base/transport.h"
#include "services/common/base/clock.h"

namespace adamant::kube {

/// Objects that a list or a watch is of.
struct Selection {
  std::string ns = {};  ///< empty: all namespaces
  std::string label_selector = {};
  std::string field_selector = {};
};

/// Gets the objects of a list, page by page.
struct ListReader {
  std::function<void()> begin;  ///< first, and again when the list has to start over
  std::function<void(Json& object)> object;
};

struct WatchOptions {
  std::string resource_version = {};       ///< after which events are wanted
  bool initial_events = false;             ///< WatchList: first all objects, then a bookmark
  std::chrono::seconds lifetime{300};      ///< the server ends the watch after this
  std::chrono::milliseconds idle{30'000};  ///< silence that ends the watch with DeadlineExceeded
};

struct CreateOptions {
  std::string_view subresource = {};  ///< "eviction": what is sent is posted to that
  bool strict = false;   ///< fields that the API does not know are refused, not dropped
  bool dry_run = false;  ///< the API checks, and stores nothing
};

enum class PatchType { kMerge, kStrategicMerge, kJson };

struct ApplyOptions {
  std::string field_manager;
  bool force = false;  ///< take fields that others own; else Aborted, naming them
  std::string subresource = {};
};

enum class Propagation { kBackground, kForeground, kOrphan };

struct DeleteOptions {
  std::string uid = {};               ///< if not empty: only this very object, else Aborted
  std::string resource_version = {};  ///< if not empty: only as it was then, else Aborted
  std::optional<std::chrono::seconds> grace_period = {};  ///< 0: at once, without the node's word
  std::optional<Propagation> propagation = {};
};

/// The verbs of the Kubernetes API on objects as JSON.
///
/// Requests go out no faster than `rate`. A refusal that says when to come again (429 or 503 with
/// Retry-After) is obeyed up to `max_retries` times, whatever the verb: the server has not acted on
/// the request. Reads are also tried again when the connection broke or the server failed; writes
/// are not, as they may have been carried out: the caller reads and decides.
///
/// Errors: as listed in api_status.h, and those of the transport. InvalidArgument for a name that
/// cannot be one, before anything is sent.
/// Threads: any; calls wait. Cheap to copy; copies share the rate limit.
class Client {
 public:
  /// All must outlive this and its copies.
  Client(Transport& transport,
         const Clock& clock,
         Sleeper& sleeper,
         const ClientOptions& options = {});

  /// Copies whose requests `cancellation` ends, or that wait only for `timeout`, or never retry, or
  /// whose waiting threads call `meanwhile` (HttpRequest::meanwhile).
  [[nodiscard]] Client With(Cancellation cancellation) const;
  [[nodiscard]] Client With(std::chrono::milliseconds timeout) const;
  [[nodiscard]] Client WithoutRetries() const;
  [[nodiscard]] Client With(std::function<void()> meanwhile) const;

  /// A copy that tells of each warning that comes with an answer: what the API does not refuse, but
  /// finds wrong.
  [[nodiscard]] Client WithWarnings(WarningSink sink) const;

  absl::StatusOr<Json> Get(const Resource& resource,
                           const ObjectKey& key,
                           std::string_view subresource = "") const;

  /// Reads a consistent list of all that is selected, and returns its resourceVersion. Objects of
  /// lists carry neither apiVersion nor kind. A continuation that expired on the way starts the
  /// list over, in one piece.
  absl::StatusOr<std::string> List(const Resource& resource,
                                   const Selection& selection,
                                   const ListReader& reader) const;
  absl::StatusOr<std::vector<Json>> List(const Resource& resource,
                                         const Selection& selection) const;

  /// Watches until the server ends it (OK) or `reader` does. OutOfRange: 410, as a status or as an
  /// event. DataLoss: a line that is no event. Internal: an ERROR event of code 5xx.
  /// DeadlineExceeded: nothing came for as long as `idle`.
  absl::Status Watch(const Resource& resource,
                     const Selection& selection,
                     const WatchOptions& options,
                     const WatchReader& reader) const;

  /// Creates `object` and returns it as the API has it; its metadata say where. apiVersion and kind
  /// are filled in.
  absl::StatusOr<Json> Create(const Resource& resource,
                              Json object,
                              const CreateOptions& options = {}) const;

  /// Replaces the object of that name. With a metadata.resourceVersion only if the object still has
  /// that one, else Aborted.
  absl::StatusOr<Json> Update(const Resource& resource,
                              Json object,
                              std::string_view subresource = "") const;

  absl::StatusOr<Json> Patch(const Resource& resource,
                             const ObjectKey& key,
                             PatchType type,
                             const Json& patch,
                             std::string_view subresource = "") const;

  /// Server-side apply: creates the object or takes over the fields in `object` (and gives up those
  /// that it named before and no longer does).
  absl::StatusOr<Json> Apply(const Resource& resource,
                             Json object,
                             const ApplyOptions& options) const;

  /// OK also when the object goes later (finalizers, grace period).
  absl::Status Delete(const Resource& resource,
                      const ObjectKey& key,
                      const DeleteOptions& options = {}) const;
  absl::Status DeleteCollection(const Resource& resource,
                                const Selection& selection,
                                const DeleteOptions& options = {}) const;

  /// The body of a path that is not of objects: "/readyz", "/version", a pod's log.
  absl::StatusOr<std::string> GetRaw(std::string_view target) const;

  /// The lines of such a path as they come ("…/log?follow=true"); false ends it. Errors: as
  /// Watch's, but those of events.
  absl::Status ReadLines(std::string_view target,
                         std::chrono::milliseconds idle,
                         const std::function<bool(std::string_view line)>& on_line) const;

 private:
  absl::StatusOr<Json> SendForJson(const ApiRequest& request) const;
  absl::StatusOr<std::string> ListPages(const Resource& resource,
                                        const Selection& selection,
                                        bool paged,
                                        const ListReader& reader) const;

  RequestSender sender_;
};

}  // namespace adamant::kube
