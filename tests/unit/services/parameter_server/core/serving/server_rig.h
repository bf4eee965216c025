#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "services/common/storage/memory_store.h"
#include "services/parameter_server/core/serving/parameter_server.h"
#include "tests/fakes/fake_clock.h"

namespace adamant::parameter_server {

/// Parameter servers in one thread: their disks, the network between them, and a controller that
/// changes records by compare and swap. Time stands still but for Advance.
class ServerRig {
 public:
  explicit ServerRig(std::size_t servers) : nodes_(servers) {
    for (std::size_t slot = 0; slot < servers; ++slot) {
      nodes_[slot] = std::make_unique<Node>(*this, static_cast<std::uint32_t>(slot));
    }
  }

  /// Starts the process of a slot; it has the slot's disk.
  void Start(std::uint32_t slot, ParameterServerOptions options) {
    Node& node = *nodes_[slot];
    ++node.self.incarnation;
    options.self = node.self;
    if (map.empty()) {
      map.resize(options.buckets);
    }
    node.server = std::make_unique<ParameterServer>(std::move(options), node.store, clock, node);
    EXPECT_TRUE(node.server->ReadStored().ok());
    node.stored = node.server->Stored();
    node.storage_error = {};
    Connect(node);
    Publish();
  }

  /// Kills a process; `proved`: everybody hears that it is dead.
  void Kill(std::uint32_t slot, bool proved = true) {
    Node& node = *nodes_[slot];
    node.server.reset();
    node.store.Crash();
    if (proved) {
      dead.push_back(node.self);
      Publish();
    }
  }

  /// Gives every bucket to `slot` alone, as a new job does.
  void AssignAll(std::uint32_t slot) {
    for (Configuration& line : map) {
      line = {.version = line.version + 1,
              .generation = 1,
              .primary = nodes_[slot]->self,
              .replicas = {nodes_[slot]->self}};
    }
    Publish();
  }

  /// Names a learner for every bucket.
  void AddEverywhere(std::uint32_t slot) {
    for (Configuration& line : map) {
      line.learner = nodes_[slot]->self;
    }
    Publish();
  }

  /// All replicas of every bucket were lost: it comes back from the disk of `slot`, as it was live
  /// or as a snapshot has it.
  void RestoreAll(std::uint32_t slot, std::uint64_t snapshot = 0) {
    for (Configuration& line : map) {
      line = {.version = line.version + 1,
              .generation = line.generation + 1,
              .primary = nodes_[slot]->self,
              .replicas = {nodes_[slot]->self},
              .created = true,
              .restored_snapshot = snapshot};
    }
    Publish();
  }

  /// All buckets begin anew, under the id of a snapshot that nobody has.
  void MakeAnew(std::uint32_t slot, std::uint64_t snapshot) {
    for (Configuration& line : map) {
      line = {.version = line.version + 1,
              .generation = line.generation + 1,
              .primary = nodes_[slot]->self,
              .replicas = {nodes_[slot]->self},
              .restored_snapshot = snapshot};
    }
    Publish();
  }

  /// Everybody hears the records, and all that follows without time passing happens.
  void Publish() {
    Tell();
    Run();
  }

  /// Delivers messages and does what servers want, until there is nothing more.
  void Run() {
    while (Step()) {
    }
  }

  /// Delivers what was held.
  void Release() {
    held = nullptr;
    messages_.swap(held_);
    Run();
  }

  void Advance(Clock::Duration time) {
    for (Clock::Duration passed{0}; passed < time; passed += kTick) {
      clock.Advance(kTick);
      for (const auto& node : nodes_) {
        if (node->server != nullptr) {
          node->server->Tick();
        }
      }
      Run();
    }
  }

  /// Flushes a server.
  absl::Status Flush(std::uint32_t slot) {
    const absl::Status status = nodes_[slot]->server->Flush();
    Run();
    return status;
  }

  /// Pushes to one server; nullopt: no answer yet.
  std::optional<std::vector<ShardAck>> Push(std::uint32_t slot, const Push& push) {
    auto acks = std::make_shared<std::optional<std::vector<ShardAck>>>();
    nodes_[slot]->server->Submit(
        push, [acks](std::vector<ShardAck> settled) { *acks = std::move(settled); });
    Run();
    return *acks;
  }

  std::optional<RecordAnswer> Put(std::uint32_t slot,
                                  std::string_view key,
                                  std::uint64_t expected,
                                  std::string_view value) {
    auto answer = std::make_shared<std::optional<RecordAnswer>>();
    EXPECT_TRUE(
        nodes_[slot]
            ->server->records()
            .Put(key, expected, value, [answer](const RecordAnswer& told) { *answer = told; })
            .ok());
    Run();
    return *answer;
  }

  ParameterServer& server(std::uint32_t slot) { return *nodes_[slot]->server; }
  storage::MemoryStore& store(std::uint32_t slot) { return nodes_[slot]->store; }
  const StoredBuckets& stored(std::uint32_t slot) { return nodes_[slot]->stored; }
  const absl::Status& storage_error(std::uint32_t slot) { return nodes_[slot]->storage_error; }
  [[nodiscard]] ServerId server_id(std::uint32_t slot) const { return nodes_[slot]->self; }

  FakeClock clock;
  std::vector<Configuration> map;
  std::vector<ServerId> dead;
  std::set<std::pair<std::uint32_t, std::uint32_t>> cut;  ///< from, to
  std::set<std::uint32_t> away;                           ///< do not hear from the controller
  std::function<bool(const PeerMessage&)> held;           ///< what waits for Release; null: nothing
  std::vector<BucketReport> reports;

 private:
  static constexpr auto kTick = std::chrono::milliseconds(50);

  struct Node final : Driver {
    Node(ServerRig& rig_in, std::uint32_t slot) : self{.slot = slot}, rig(rig_in) {}

    void SendToPeer(const ServerId& to, PeerMessage message) override {
      rig.messages_.push_back({self, to, std::move(message)});
    }
    void Propose(const Proposal& proposal) override { rig.proposals_.push_back(proposal); }
    void Report(const BucketReport& report) override {
      rig.reports.push_back(report);
      rig.reported_.push_back(report);
    }
    void WantApply() override { apply = true; }
    void WantStorage() override { storage = true; }

    ServerId self;
    ServerRig& rig;
    storage::MemoryStore store;
    StoredBuckets stored;
    absl::Status storage_error;
    std::atomic<bool> apply = false;
    std::atomic<bool> storage = false;
    std::unique_ptr<ParameterServer> server;  // last: it uses the others
  };

  struct Letter {
    ServerId from;
    ServerId to;
    PeerMessage message;
  };

  void Connect(const Node& node) {
    for (const auto& other : nodes_) {
      if (other->server != nullptr && other->self.slot != node.self.slot) {
        other->server->OnPeerConnected(node.self);
        node.server->OnPeerConnected(other->self);
      }
    }
  }

  bool Step() {
    if (!messages_.empty()) {
      const Letter letter = std::move(messages_.front());
      messages_.pop_front();
      if (held != nullptr && held(letter.message)) {
        held_.push_back(letter);
        return true;
      }
      Node& to = *nodes_[letter.to.slot];
      const bool lost = cut.contains({letter.from.slot, letter.to.slot});
      if (to.server != nullptr && to.self == letter.to && !lost) {
        to.server->OnPeerMessage(letter.from, letter.message);
      }
      return true;
    }
    for (const auto& node : nodes_) {
      if (node->server == nullptr) {
        continue;
      }
      if (node->apply.exchange(false)) {
        node->server->ApplyCommitted();
        return true;
      }
      if (node->storage.exchange(false)) {
        node->storage_error.Update(node->server->DoStorage());
        return true;
      }
    }
    return Control();
  }

  void Tell() {
    for (const auto& node : nodes_) {
      if (node->server != nullptr && !away.contains(node->self.slot)) {
        node->server->SetConfigurations(map, dead);
      }
    }
  }

  bool Control() {
    bool changed = false;
    for (const Proposal& proposal : std::exchange(proposals_, {})) {
      changed = Decide(proposal) || changed;
    }
    for (const BucketReport& report : std::exchange(reported_, {})) {
      Configuration& line = map[report.bucket];
      if (!report.lost && !line.created && report.configuration_version == line.version) {
        line.created = true;
        changed = true;
      }
    }
    if (changed) {
      Tell();
    }
    return changed;
  }

  bool Decide(const Proposal& proposal) {
    Configuration& line = map[proposal.bucket];
    if (proposal.configuration_version != line.version) {
      return false;
    }
    ++line.version;
    switch (proposal.kind) {
      case Proposal::Kind::kPromote:
        if (!proposal.released) {
          std::erase(line.replicas, line.primary);
        }
        line.primary = proposal.proposer;
        line.successor.reset();
        break;
      case Proposal::Kind::kDrop:
        std::erase(line.replicas, proposal.subject);
        line.departing.reset();
        break;
      case Proposal::Kind::kAdd:
        line.replicas.push_back(proposal.subject);
        line.learner.reset();
        break;
    }
    return true;
  }

  std::deque<Letter> messages_;
  std::deque<Letter> held_;
  std::vector<Proposal> proposals_;
  std::vector<BucketReport> reported_;
  std::vector<std::unique_ptr<Node>> nodes_;  // last: servers use the others
};

}  // namespace adamant::parameter_server
