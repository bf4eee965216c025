#pragma once

#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "operator/kube_client/cache/informer.h"

namespace adamant::kube {

/// A kind of objects, and the namespaces in which they are looked at; none: in all.
struct Watched {
  Resource resource;
  std::vector<std::string> namespaces;
};

/// Informers of one kind, as one: of each of some namespaces, or of all. Who may only list within
/// namespaces needs one for each.
///
/// Threads: as Informer; but `parse`, index functions and handlers are called by several, one for
/// each namespace.
template <class T>
class Informers {
 public:
  using Pointer = typename Informer<T>::Pointer;

  /// `options.selection.ns` is not used. `clock` and `sleeper` must outlive this.
  Informers(const Client& client,
            const Watched& watched,
            const InformerOptions& options,
            const typename Informer<T>::Parse& parse,
            const Clock& clock,
            Sleeper& sleeper) {
    const std::vector<std::string> all = {""};
    for (const std::string& ns : watched.namespaces.empty() ? all : watched.namespaces) {
      InformerOptions of_this = options;
      of_this.selection.ns = ns;
      of_this.seed += informers_.size();  // their watches do not end together
      informers_.emplace(
          ns,
          std::make_unique<Informer<T>>(client, watched.resource, of_this, parse, clock, sleeper));
    }
  }

  /// Before Start.
  void AddIndex(std::string_view name, const typename Informer<T>::IndexFunction& values_of) {
    for (auto& [ns, informer] : informers_) {
      informer->AddIndex(name, values_of);
    }
  }
  void AddHandler(const typename Informer<T>::Handler& handler) {
    for (auto& [ns, informer] : informers_) {
      informer->AddHandler(handler);
    }
  }

  void Start() {
    for (auto& [ns, informer] : informers_) {
      informer->Start();
    }
  }

  /// Idempotent.
  void Stop() {
    for (auto& [ns, informer] : informers_) {
      informer->Stop();
    }
  }

  /// Instead of Start, for those who have no threads: a step of each.
  void Step() {
    for (auto& [ns, informer] : informers_) {
      informer->Step();
    }
  }

  [[nodiscard]] bool synced() const {
    return std::ranges::all_of(informers_,
                               [](const auto& entry) { return entry.second->synced(); });
  }

  /// False if one of them was waited for as long as `timeout` in vain.
  [[nodiscard]] bool WaitUntilSynced(std::chrono::milliseconds timeout) const {
    return std::ranges::all_of(
        informers_, [&](const auto& entry) { return entry.second->WaitUntilSynced(timeout); });
  }

  /// Null: there is none, or it is not of these namespaces.
  [[nodiscard]] Pointer Get(const ObjectKey& key) const {
    const auto all = informers_.find("");
    const auto found = all != informers_.end() ? all : informers_.find(key.ns);
    return found == informers_.end() ? nullptr : found->second->Get(key);
  }

  /// In the order of their keys.
  [[nodiscard]] std::vector<Pointer> All() const {
    return Together([](const Informer<T>& informer) { return informer.All(); });
  }
  [[nodiscard]] std::vector<Pointer> ByIndex(std::string_view index, std::string_view value) const {
    return Together([&](const Informer<T>& informer) { return informer.ByIndex(index, value); });
  }

 private:
  template <class Read>
  [[nodiscard]] std::vector<Pointer> Together(const Read& read) const {
    std::vector<Pointer> together;
    for (const auto& [ns, informer] : informers_) {
      std::ranges::move(read(*informer), std::back_inserter(together));
    }
    return together;
  }

  std::map<std::string, std::unique_ptr<Informer<T>>> informers_;  // by namespace; "": of all
};

}  // namespace adamant::kube
