#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "services/common/base/ids.h"
#include "services/common/protocol/control.h"
#include "services/worker/core/base/messages.h"

namespace adamant::worker {

/// Place where a process of a server runs.
struct ServerAddress {
  ServerSlot slot = 0;
  std::string address;  ///< host:port
  Incarnation incarnation = 0;

  friend bool operator==(const ServerAddress&, const ServerAddress&) = default;
};

/// Returns the servers of this role in the view.
std::vector<ServerAddress> ServersOf(const protocol::Membership& view, protocol::Role role);

/// The streams to all servers of one role: each as long as the same process is a member.
/// Threads: one at a time.
template <class Stream>
class ServerTable {
 public:
  /// Destroys the streams to servers that are no longer where they were, telling `on_removed` of
  /// each after that; then takes a std::unique_ptr<Stream> from `open` for every new place.
  template <class OnRemoved, class Open>
  void Update(const std::vector<ServerAddress>& places,
              const OnRemoved& on_removed,
              const Open& open) {
    std::map<ServerSlot, Entry> current;
    for (const ServerAddress& place : places) {
      const auto known = entries_.find(place.slot);
      if (known != entries_.end() && known->second.place == place) {
        current.insert(entries_.extract(known));
      } else {
        current[place.slot].place = place;
      }
    }
    for (auto& [server, entry] : entries_) {
      entry.stream.reset();
      on_removed(server);
    }
    entries_ = std::move(current);
    for (auto& [server, entry] : entries_) {
      if (entry.stream == nullptr) {
        entry.stream = open(entry.place);
      }
    }
  }

  /// Null where there is none.
  [[nodiscard]] Stream* Find(ServerSlot server) {
    const auto entry = entries_.find(server);
    return entry == entries_.end() ? nullptr : entry->second.stream.get();
  }

  template <class Visit>
  void ForEach(const Visit& visit) {
    for (auto& [server, entry] : entries_) {
      visit(*entry.stream);
    }
  }

  /// Destroys all streams.
  void Clear() {
    for (auto& [server, entry] : entries_) {
      entry.stream.reset();
    }
    entries_.clear();
  }

 private:
  struct Entry {
    ServerAddress place;
    std::unique_ptr<Stream> stream;
  };

  std::map<ServerSlot, Entry> entries_;
};

}  // namespace adamant::worker
