#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "services/common/storage/kv_store.h"

namespace adamant::parameter_server {

/// A store that tells when a call of it begins and when one ends.
/// Threads: any, if `on_step` may be called on any.
class WatchedStore final : public storage::KvStore {
 public:
  /// `store` must outlive this.
  WatchedStore(storage::KvStore& store, std::function<void()> on_step)
      : store_(store), on_step_(std::move(on_step)) {}

  absl::StatusOr<std::string> Get(std::string_view key) const override {
    return Watch([&] { return store_.Get(key); });
  }
  absl::Status Write(const std::vector<storage::Change>& changes) override {
    return Watch([&] { return store_.Write(changes); });
  }
  absl::Status WriteLogged(const std::vector<storage::Change>& changes) override {
    return Watch([&] { return store_.WriteLogged(changes); });
  }
  absl::Status WriteLazily(const std::vector<storage::Change>& changes) override {
    return Watch([&] { return store_.WriteLazily(changes); });
  }
  absl::Status Flush() override {
    return Watch([&] { return store_.Flush(); });
  }
  absl::Status Scan(std::string_view prefix,
                    const std::function<bool(std::string_view key, std::string_view value)>& visit)
      const override {
    return Watch([&] {
      return store_.Scan(prefix, [&](std::string_view key, std::string_view value) {
        on_step_();
        return visit(key, value);
      });
    });
  }

 private:
  template <class Call>
  std::invoke_result_t<const Call&> Watch(const Call& call) const {
    on_step_();
    auto result = call();
    on_step_();
    return result;
  }

  storage::KvStore& store_;
  const std::function<void()> on_step_;
};

}  // namespace adamant::parameter_server
