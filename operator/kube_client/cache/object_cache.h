#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "operator/kube_client/api/resource.h"
#include "operator/kube_client/base/json.h"
#include "operator/kube_client/cache/reflector.h"
#include "services/common/base/mutex.h"

namespace adamant::kube {

/// Change of an object, as what was made of it.
template <class T>
struct ObjectChange {
  const ObjectKey& key;
  std::shared_ptr<const T> before;  ///< null: added
  std::shared_ptr<const T> after;   ///< null: deleted
  /// Of a deletion that was not seen but found out by a new list: `before` may not be the last
  /// state of the object.
  bool final_state_unknown = false;
};

/// The part of an Informer that does not depend on the type of its values: what was made of the
/// objects, by key and by index.
/// Threads: the ObjectSink's members, Resend and what they call: one; reading: any.
class ObjectCache final : public ObjectSink {
 public:
  using Value = std::shared_ptr<const void>;

  using Change = ObjectChange<void>;

  /// Null: the object is not kept.
  using Parse = std::function<Value(const Json& object)>;
  using IndexFunction = std::function<std::vector<std::string>(const void* value)>;
  using Handler = std::function<void(const Change& change)>;

  explicit ObjectCache(Parse parse) : parse_(std::move(parse)) {}

  /// Before the first object comes.
  void AddIndex(std::string name, IndexFunction values_of);
  void AddHandler(Handler handler);

  void BeginReplace() override;
  void EndReplace() override;
  void Upsert(const Json& object) override;
  void Remove(const Json& object) override;

  /// Tells the handlers of every object, as a change into itself.
  void Resend();

  [[nodiscard]] Value Get(const ObjectKey& key) const;
  [[nodiscard]] std::vector<Value> All() const;
  [[nodiscard]] std::vector<Value> ByIndex(std::string_view index, std::string_view value) const;
  [[nodiscard]] std::size_t size() const;

  /// The first copy is complete, and the handlers have been told of it.
  [[nodiscard]] bool synced() const;
  bool WaitUntilSynced(std::chrono::milliseconds timeout) const;

 private:
  struct Entry {
    std::string uid;
    std::string resource_version;
    Value value;
  };
  using Entries = std::map<ObjectKey, Entry>;

  struct Index {
    IndexFunction values_of;
    std::map<std::string, std::set<ObjectKey>, std::less<>> keys;  // by value
  };

  [[nodiscard]] Value KnownValue(const Json& object) const;
  void Put(const ObjectKey& key, Entry entry);
  void Erase(const ObjectKey& key, bool final_state_unknown);
  void Tell(const Change& change) const;
  void Link(const ObjectKey& key, const Value& value) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Unlink(const ObjectKey& key, const Value& value) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Constant once objects come.
  const Parse parse_;
  std::vector<Handler> handlers_;

  // The feeding thread's.
  bool replacing_ = false;
  Entries replacement_;

  // Guarded; written only by the feeding thread.
  mutable Mutex mutex_;
  mutable CondVar changed_;
  bool synced_ ABSL_GUARDED_BY(mutex_) = false;
  Entries entries_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Index, std::less<>> indexes_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace adamant::kube
