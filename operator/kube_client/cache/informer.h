#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "operator/kube_client/api/client.h"
#include "operator/kube_client/base/step_thread.h"
#include "operator/kube_client/cache/object_cache.h"
#include "operator/kube_client/cache/reflector.h"

namespace adamant::kube {

struct InformerOptions {
  Selection selection = {};
  std::chrono::seconds resync = std::chrono::hours(10);  ///< handlers hear of every object again
  std::uint64_t seed = 1;
};

/// The part of an Informer that does not depend on its type: a cache and what feeds it.
/// Threads: as Informer.
class InformerCore {
 public:
  /// `clock` and `sleeper` must outlive this.
  InformerCore(const Client& client,
               const Resource& resource,
               InformerOptions options,
               ObjectCache::Parse parse,
               const Clock& clock,
               Sleeper& sleeper);
  ~InformerCore() { Stop(); }
  InformerCore(const InformerCore&) = delete;
  InformerCore& operator=(const InformerCore&) = delete;

  void Start();
  void Stop();
  Clock::Duration Step();

  ObjectCache& cache() { return cache_; }
  [[nodiscard]] const ObjectCache& cache() const { return cache_; }

 private:
  const Clock& clock_;
  Sleeper& sleeper_;
  const std::chrono::seconds resync_;
  const Cancellation cancellation_;
  ObjectCache cache_;
  Reflector reflector_;
  Clock::TimePoint resent_;
  std::optional<StepThread> thread_;
};

/// Keeps the objects of a selection in memory, as what `parse` makes of each: the JSON is dropped,
/// so memory is in proportion to what is ours. Objects of the same name but another UID are
/// different objects: the cache says that the one was deleted and the other added.
///
/// Threads: AddIndex, AddHandler, Start, Stop and Step by one thread, reading by any. `parse`,
/// index functions and handlers are called on the informer's thread, handlers without any lock and
/// after the cache has changed.
template <class T>
class Informer {
 public:
  using Pointer = std::shared_ptr<const T>;

  using Change = ObjectChange<T>;

  using Parse = std::function<Pointer(const Json& object)>;  ///< null: not kept
  using IndexFunction = std::function<std::vector<std::string>(const T& value)>;
  using Handler = std::function<void(const Change& change)>;

  /// `clock` and `sleeper` must outlive this.
  Informer(const Client& client,
           const Resource& resource,
           InformerOptions options,
           Parse parse,
           const Clock& clock,
           Sleeper& sleeper)
      : core_(
            client,
            resource,
            std::move(options),
            [parse = std::move(parse)](const Json& object) { return parse(object); },
            clock,
            sleeper) {}

  /// Before Start.
  void AddIndex(std::string_view name, IndexFunction values_of) {
    core_.cache().AddIndex(std::string(name),
                           [values_of = std::move(values_of)](const void* value) {
                             return values_of(*static_cast<const T*>(value));
                           });
  }
  void AddHandler(Handler handler) {
    core_.cache().AddHandler([handler = std::move(handler)](const ObjectCache::Change& change) {
      handler({change.key, Typed(change.before), Typed(change.after), change.final_state_unknown});
    });
  }

  /// Starts the thread that lists and watches.
  void Start() { core_.Start(); }

  /// Ends it. Idempotent.
  void Stop() { core_.Stop(); }

  /// Instead of Start, for those who have no threads: lists, or watches until the watch ends.
  /// Returns the time to wait before the next step.
  Clock::Duration Step() { return core_.Step(); }

  [[nodiscard]] bool synced() const { return core_.cache().synced(); }

  /// False if `timeout` passed before.
  [[nodiscard]] bool WaitUntilSynced(std::chrono::milliseconds timeout) const {
    return core_.cache().WaitUntilSynced(timeout);
  }

  /// Null: there is none.
  [[nodiscard]] Pointer Get(const ObjectKey& key) const { return Typed(core_.cache().Get(key)); }

  /// In the order of their keys.
  [[nodiscard]] std::vector<Pointer> All() const { return Typed(core_.cache().All()); }
  [[nodiscard]] std::vector<Pointer> ByIndex(std::string_view index, std::string_view value) const {
    return Typed(core_.cache().ByIndex(index, value));
  }
  [[nodiscard]] std::size_t size() const { return core_.cache().size(); }

 private:
  static Pointer Typed(const ObjectCache::Value& value) {
    return std::static_pointer_cast<const T>(value);
  }
  static std::vector<Pointer> Typed(const std::vector<ObjectCache::Value>& values) {
    std::vector<Pointer> result;
    result.reserve(values.size());
    for (const ObjectCache::Value& value : values) {
      result.push_back(Typed(value));
    }
    return result;
  }

  InformerCore core_;
};

}  // namespace adamant::kube
