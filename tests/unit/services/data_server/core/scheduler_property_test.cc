// Random schedules: data servers, workers and records whose messages are delayed, lost with their
// connection, and whose processes die and come back. Whatever happens, each batch is counted once.

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "services/common/base/rng.h"
#include "tests/unit/services/data_server/core/scheduler_harness.h"

namespace adamant::data_server {
namespace {

constexpr std::uint32_t kServers = 2;
constexpr std::uint32_t kWorkers = 3;
constexpr std::uint32_t kExamples = 103;
constexpr std::uint32_t kBatchSize = 4;

class World {
 public:
  World(std::uint64_t seed, double completion) : rng_(seed), completion_(completion) {
    for (std::uint32_t slot = 0; slot < kServers; ++slot) {
      servers_.push_back({.slot = slot});
      StartServer(servers_[slot]);
    }
    for (std::uint32_t slot = 0; slot < kWorkers; ++slot) {
      workers_.push_back({.id = {.slot = slot, .incarnation = 1}});
    }
    PublishMembership();
    for (Worker& worker : workers_) {
      for (Server& server : servers_) {
        Connect(worker, server);
      }
    }
  }

  // Runs one epoch to its end; false if it does not end.
  bool RunEpoch(DataEpoch epoch) {
    epoch_ = epoch;
    closing_ = false;
    closed_parts_.clear();
    Command();
    for (int step = 0; step < 200000; ++step) {
      if (closing_ && closed_parts_.size() == kServers) {
        return true;
      }
      Step();
    }
    return false;
  }

  // Counted in the ledgers of the epoch that was run last.
  [[nodiscard]] std::uint64_t Counted() const {
    std::uint64_t sum = 0;
    for (std::uint32_t part = 0; part < kServers; ++part) {
      sum += records_.Get(part)->counted_examples;
    }
    return sum;
  }

  // How often a batch was acknowledged as counted. More than once is possible only when the server
  // that answered is not the one that judged, never within one stored ledger.
  [[nodiscard]] const std::map<BatchId, int>& counted_answers() const { return counted_answers_; }
  [[nodiscard]] int losses() const { return losses_; }

 private:
  struct Server {
    std::uint32_t slot = 0;
    Incarnation incarnation = 0;
    bool alive = true;
    Clock::TimePoint last_command = {};
    std::unique_ptr<BatchScheduler> scheduler = nullptr;
  };
  struct Worker {
    WorkerId id;
    bool alive = true;
    std::vector<Lease> to_train = {};
    std::vector<Lease> unanswered = {};
  };
  void StartServer(Server& server) {
    ++server.incarnation;
    server.alive = true;
    server.scheduler =
        std::make_unique<BatchScheduler>(BatchSchedulerOptions{.slot = server.slot,
                                                               .incarnation = server.incarnation,
                                                               .parts = kServers,
                                                               .batch_size = kBatchSize,
                                                               .train_examples = kExamples,
                                                               .validation_examples = 10,
                                                               .epoch_completion = completion_});
  }

  // Delivers `input` some time later, unless the server has died since.
  void Later(Server& server, Input input) {
    const Incarnation incarnation = server.incarnation;
    After([this, &server, incarnation, input = std::move(input)] {
      if (server.alive && server.incarnation == incarnation) {
        Handle(server, input);
      }
    });
  }

  void After(std::function<void()> run) {
    const Clock::TimePoint time = now_ + milliseconds(rng_.Below(30));
    events_.emplace(std::make_pair(time, next_event_++), std::move(run));
  }

  void Handle(Server& server, const Input& input) {
    for (const Output& output : server.scheduler->Handle(input, now_)) {
      std::visit([&](const auto& message) { Carry(server, message); }, output);
    }
  }

  template <class T>
  void Carry(Server&, const T&) {}
  void Carry(Server& server, const ReadRecord& read) {
    After([this, &server, read] { Later(server, records_.Read(read)); });
  }
  void Carry(Server& server, const WriteRecord& write) {
    // A write may be tried twice, as after a lost answer.
    const bool twice = rng_.Below(10) == 0;
    After([this, &server, write, twice] {
      if (twice) {
        records_.Write(write);
      }
      Later(server, records_.Write(write));
    });
  }
  void Carry(Server&, const Dispatch& dispatch) {
    WithWorker(dispatch.to,
               [dispatch](Worker& worker) { worker.to_train.push_back(dispatch.lease); });
  }
  void Carry(Server&, const Acknowledged& answer) {
    for (std::uint32_t i = 0; i < answer.leases.size(); ++i) {
      if (std::count(answer.duplicates.begin(), answer.duplicates.end(), i) == 0) {
        ++counted_answers_[answer.leases[i].batch];
      }
    }
    WithWorker(answer.to, [answer](Worker& worker) {
      for (const Lease& lease : answer.leases) {
        std::erase(worker.unanswered, lease);
      }
    });
  }
  void Carry(Server&, const EpochEnded& message) {
    After([this, message] {
      if (message.epoch == epoch_ && !closing_) {
        closing_ = true;
        Command();
      }
    });
  }
  void Carry(Server&, const PartClosed& message) {
    if (message.epoch == epoch_) {
      closed_parts_.insert(message.part);
    }
  }
  void Carry(Server&, const Failed& message) { FAIL() << message.reason; }

  void WithWorker(WorkerId id, const std::function<void(Worker&)>& act) {
    After([this, id, act] {
      if (workers_[id.slot].alive && workers_[id.slot].id == id) {
        act(workers_[id.slot]);
      }
    });
  }

  std::uint32_t OwnerOf(std::uint32_t part) const { return servers_[part].alive ? part : 1 - part; }

  void PublishMembership() {
    WorkView view;
    for (const Worker& worker : workers_) {
      if (worker.alive) {
        view.workers.push_back(worker.id);
      }
    }
    for (std::uint32_t part = 0; part < kServers; ++part) {
      view.part_owner.push_back(OwnerOf(part));
    }
    for (Server& server : servers_) {
      if (server.alive) {
        Ordered(server, view);
      }
    }
  }

  // The controller's stream is slow at times, but keeps its order: two servers may hold one part.
  void Ordered(Server& server, Input input) {
    const std::uint64_t delay = rng_.Below(8) == 0 ? 1500 : rng_.Below(5);
    server.last_command = std::max(server.last_command, now_ + milliseconds(delay));
    const Incarnation incarnation = server.incarnation;
    events_.emplace(std::make_pair(server.last_command, next_event_++),
                    [this, &server, incarnation, input = std::move(input)] {
                      if (server.alive && server.incarnation == incarnation) {
                        Handle(server, input);
                      }
                    });
  }

  void Command() {
    for (Server& server : servers_) {
      if (server.alive && epoch_ > 0) {
        Ordered(server, closing_ ? Input(CloseEpoch{epoch_}) : Input(OpenEpoch{epoch_}));
      }
    }
  }

  void Connect(Worker& worker, Server& server) {
    Handle(server, Hello{.worker = worker.id, .window = 4});
  }

  void Step() {
    now_ += milliseconds(1);
    while (!events_.empty() && events_.begin()->first.first <= now_) {
      const std::function<void()> run = std::move(events_.begin()->second);
      events_.erase(events_.begin());
      run();
    }
    for (Server& server : servers_) {
      const auto wake = server.alive ? server.scheduler->NextWake() : std::nullopt;
      if (wake && *wake <= now_) {
        Handle(server, Tick{});
      }
    }
    for (Worker& worker : workers_) {
      Work(worker);
    }
    if (rng_.Below(400) == 0) {
      Disturb();
    }
  }

  void Work(Worker& worker) {
    if (!worker.alive) {
      return;
    }
    if (!worker.to_train.empty() && rng_.Below(4) == 0) {
      worker.unanswered.push_back(worker.to_train.front());
      worker.to_train.erase(worker.to_train.begin());
    }
    if (rng_.Below(20) == 0) {
      SendResults(worker);
    }
  }

  // All that is unanswered, to whoever owns the part now.
  void SendResults(Worker& worker) {
    std::map<std::uint32_t, Acknowledge> messages;
    for (const Lease& lease : worker.unanswered) {
      Acknowledge& message = messages[OwnerOf(lease.batch.part)];
      message.worker = worker.id;
      message.results.push_back({.lease = lease});
    }
    for (auto& [slot, message] : messages) {
      Later(servers_[slot], message);
    }
    for (Server& server : servers_) {
      Later(server, KeepAlive{.worker = worker.id});
    }
  }

  void Disturb() {
    ++losses_;
    switch (rng_.Below(4)) {
      case 0:
        RestartWorker(workers_[rng_.Below(kWorkers)]);
        break;
      case 1:
        RestartServer(servers_[rng_.Below(kServers)]);
        break;
      case 2:
        BreakStream(workers_[rng_.Below(kWorkers)], servers_[rng_.Below(kServers)]);
        break;
      default:
        now_ += seconds(rng_.Below(15));  // everybody was silent
        break;
    }
  }

  void RestartWorker(Worker& worker) {
    worker.id.incarnation += 1;
    worker.to_train.clear();
    worker.unanswered.clear();
    if (rng_.Below(2) == 0) {
      PublishMembership();
    }
    for (Server& server : servers_) {
      if (server.alive) {
        Connect(worker, server);
      }
    }
    PublishMembership();
  }

  void RestartServer(Server& server) {
    Server& other = servers_[1 - server.slot];
    if (!other.alive) {
      return;
    }
    server.alive = false;
    PublishMembership();
    After([this, &server] {
      StartServer(server);
      PublishMembership();
      Command();
      for (Worker& worker : workers_) {
        Connect(worker, server);
      }
    });
  }

  void BreakStream(Worker& worker, Server& server) {
    if (server.alive) {
      Handle(server, WorkerDisconnected{.worker = worker.id});
      if (rng_.Below(2) == 0) {
        worker.to_train.clear();  // they were on their way
      }
      Connect(worker, server);
    }
  }

  Rng rng_;
  const double completion_;
  Clock::TimePoint now_ = Clock::TimePoint(seconds(1000));
  std::map<std::pair<Clock::TimePoint, std::uint64_t>, std::function<void()>> events_;
  std::uint64_t next_event_ = 0;
  FakeRecords records_;
  std::vector<Server> servers_;
  std::vector<Worker> workers_;
  DataEpoch epoch_ = 0;
  bool closing_ = false;
  std::set<std::uint32_t> closed_parts_;
  std::map<BatchId, int> counted_answers_;
  int losses_ = 0;
};

TEST(BatchSchedulerPropertyTest, EveryExampleIsCountedOncePerEpochUnderRandomSchedules) {
  int losses = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    World world(seed, 1.0);
    for (DataEpoch epoch = 1; epoch <= 3; ++epoch) {
      ASSERT_TRUE(world.RunEpoch(epoch)) << "seed " << seed << " epoch " << epoch;
      ASSERT_EQ(world.Counted(), kExamples) << "seed " << seed << " epoch " << epoch;
    }
    for (const auto& [batch, times] : world.counted_answers()) {
      ASSERT_LE(times, 1) << "seed " << seed << " epoch " << batch.epoch << " part " << batch.part
                          << " batch " << batch.index;
    }
    losses += world.losses();
  }
  EXPECT_GT(losses, 300);
}

TEST(BatchSchedulerPropertyTest, AtMostOncePerEpochWhenItMayEndEarly) {
  for (std::uint64_t seed = 1000; seed < 1060; ++seed) {
    World world(seed, 0.75);
    for (DataEpoch epoch = 1; epoch <= 3; ++epoch) {
      ASSERT_TRUE(world.RunEpoch(epoch)) << "seed " << seed << " epoch " << epoch;
      ASSERT_GE(world.Counted(), kExamples * 3 / 4) << "seed " << seed;
      ASSERT_LE(world.Counted(), kExamples) << "seed " << seed;
    }
    for (const auto& [batch, times] : world.counted_answers()) {
      ASSERT_LE(times, 1) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace adamant::data_server
