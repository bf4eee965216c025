#include "tests/simulation/job/processes/exporter.h"

#include <utility>

namespace adamant::simulation {

void Exporter::Begin(const std::vector<std::string>& addresses,
                     const std::vector<std::uint32_t>& primaries) {
  for (std::uint32_t server = 0; server < addresses.size(); ++server) {
    const StreamId stream = world_.network.Open(owner_, addresses[server], StreamKind::kExchange);
    servers_[stream] = server;
    world_.network.Send(stream, owner_, ExchangeHello{});
    worker::FetchMessage fetch{.request = 1, .snapshot = snapshot_};
    for (const Shard& shard : world_.setup.layout.shards()) {
      if (primaries[shard.bucket] == server) {
        fetch.shards.push_back(shard.id);
      }
    }
    world_.network.Send(stream, owner_, std::move(fetch));
  }
}

void Exporter::OnMessage(StreamId stream, const Message& message) {
  const auto* answer = std::get_if<FetchAnswer>(&message);
  if (answer == nullptr || servers_.erase(stream) == 0) {
    return;
  }
  world_.network.Close(stream, owner_);
  for (const parameter_server::ShardValue& value : answer->values) {
    if (value.outcome != parameter_server::FetchOutcome::kFound) {
      const bool gone = value.outcome == parameter_server::FetchOutcome::kNoSuchSnapshot;
      return Finish(gone ? absl::NotFoundError("a server does not have the snapshot")
                         : absl::UnavailableError("a server is not ready"));
    }
    world_.updates.CheckSnapshot(snapshot_, value.shard, value.values);
  }
  if (servers_.empty()) {
    Finish(absl::OkStatus());
  }
}

void Exporter::OnEnded(StreamId stream) {
  if (servers_.contains(stream)) {
    Finish(absl::UnavailableError("a server is away"));
  }
}

void Exporter::Finish(const absl::Status& status) {
  if (!std::exchange(finished_, true)) {
    done_(status);
  }
}

}  // namespace adamant::simulation
