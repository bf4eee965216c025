// Control streams without processes: the load that the members of many jobs put on an operator.
// Each member has a connection of its own, joins, serves what it is given, and sends a heartbeat a
// second; nothing is trained.
//
//   control_streams --controller HOST:PORT
//
// Reads lines "JOB_UID ROLE SLOT" (ROLE: data-server, parameter-server or worker) and opens a
// stream for each. Prints a line of JSON a second until standard input ends.

#include <grpcpp/grpcpp.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <deque>
#include <exception>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "proto/adamant/v1/control.grpc.pb.h"
#include "services/common/base/ids.h"
#include "services/common/base/mutex.h"
#include "services/common/rpc/channel.h"
#include "services/common/rpc/stream_guard.h"

namespace adamant {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::uint64_t kMaxMessageBytes = 16 << 20;
constexpr std::chrono::milliseconds kHeartbeat{1'000};
constexpr std::uint64_t kExamples = 1'000'000;  // of an epoch that never ends

struct Counts {
  std::atomic<std::uint64_t> open{0};
  std::atomic<std::uint64_t> welcomed{0};
  std::atomic<std::uint64_t> training{0};  // data servers that were told to open an epoch
  std::atomic<std::uint64_t> ended{0};     // streams, by the operator
  std::atomic<std::uint64_t> sent{0};      // messages
  std::atomic<std::uint64_t> received{0};
};

class Member final : public grpc::ClientBidiReactor<v1::MemberMessage, v1::ControllerMessage> {
 public:
  Member(const std::string& controller,
         const std::string& job,
         v1::Role role,
         std::uint32_t slot,
         Counts& counts)
      : counts_(counts),
        role_(role),
        slot_(slot),
        channel_(rpc::NewChannel(controller, kMaxMessageBytes)),
        stub_(v1::Controller::NewStub(channel_)) {
    v1::MemberMessage first;
    v1::Join& join = *first.mutable_join();
    join.set_format_version(1);
    join.set_role(role);
    join.set_slot(slot);
    join.set_uid(job + "/" + v1::Role_Name(role) + "/" + std::to_string(slot));
    join.set_address("127.0.0.1:1");
    join.set_replication_address("127.0.0.1:1");
    join.set_job(job);
    join.set_generation(1);
    context_.AddMetadata(rpc::kJobKey, job);
    stub_->async()->Attend(&context_, this);
    AddHold();  // heartbeats come from another thread; until the stream is over
    Send(std::move(first));
    StartRead(&received_);
    StartCall();
    ++counts_.open;
  }

  ~Member() override {
    context_.TryCancel();
    MutexLock lock(mutex_);
    while (!done_) {
      changed_.Wait(mutex_);
    }
  }
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  /// Whether the operator has ended the stream, as it does when the job is gone.
  [[nodiscard]] bool done() {
    MutexLock lock(mutex_);
    return done_;
  }

  void SendHeartbeat() {
    if (!welcomed_) {
      return;
    }
    v1::MemberMessage message;
    v1::Heartbeat& heartbeat = *message.mutable_heartbeat();
    if (role_ == v1::WORKER) {
      heartbeat.mutable_worker()->set_trained_examples(++beats_);
    } else if (role_ == v1::PARAMETER_SERVER) {
      heartbeat.mutable_parameter_server()->set_updates_applied(++beats_);
    } else {
      v1::DataServerProgress& progress = *heartbeat.mutable_data_server();
      progress.set_total_examples(kExamples);
      progress.set_training_examples(kExamples);
      progress.set_counted_examples(++beats_);
    }
    Send(std::move(message));
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      {
        MutexLock lock(mutex_);
        over_ = true;
      }
      RemoveHold();
      return;
    }
    ++counts_.received;
    Handle(received_);
    StartRead(&received_);
  }

  void OnWriteDone(bool ok) override {
    MutexLock lock(mutex_);
    outgoing_.pop_front();
    if (ok && !over_ && !outgoing_.empty()) {
      StartWrite(&outgoing_.front());
    }
  }

  void OnDone(const grpc::Status& /*status*/) override {
    ++counts_.ended;
    MutexLock lock(mutex_);
    done_ = true;
    changed_.NotifyAll();
  }

 private:
  void Send(v1::MemberMessage message) {
    MutexLock lock(mutex_);
    if (over_) {
      return;
    }
    ++counts_.sent;
    outgoing_.push_back(std::move(message));
    if (outgoing_.size() == 1) {
      StartWrite(&outgoing_.front());
    }
  }

  void Handle(const v1::ControllerMessage& message) {
    if (message.has_welcome()) {
      incarnation_ = message.welcome().incarnation();
      welcomed_ = true;
      ++counts_.welcomed;
      if (role_ == v1::PARAMETER_SERVER) {
        v1::MemberMessage stored;
        stored.mutable_stored_buckets();  // an empty disk
        Send(std::move(stored));
      }
      SendHeartbeat();
    } else if (message.has_membership() && role_ == v1::PARAMETER_SERVER) {
      Serve(message.membership());
    } else if (message.has_open_epoch() && role_ == v1::DATA_SERVER) {
      ++counts_.training;
    }
  }

  void Serve(const v1::Membership& view) {
    v1::MemberMessage message;
    v1::BucketsReady& ready = *message.mutable_buckets_ready();
    for (int i = 0; i < view.buckets_size(); ++i) {
      const v1::ServerId& primary = view.buckets(i).primary();
      if (primary.slot() == slot_ && primary.incarnation() == incarnation_) {
        v1::BucketState& state = *ready.add_buckets();
        state.set_bucket(static_cast<std::uint32_t>(i));
        state.set_epoch(view.buckets(i).epoch());
      }
    }
    Send(std::move(message));
  }

  Counts& counts_;
  const v1::Role role_;
  const std::uint32_t slot_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::Controller::Stub> stub_;
  grpc::ClientContext context_;
  v1::ControllerMessage received_;
  Incarnation incarnation_ = 0;
  std::atomic<bool> welcomed_{false};
  std::atomic<std::uint64_t> beats_{0};

  Mutex mutex_;
  CondVar changed_;
  std::deque<v1::MemberMessage> outgoing_ ABSL_GUARDED_BY(mutex_);  // the first is being written
  bool over_ ABSL_GUARDED_BY(mutex_) = false;  // nothing may be written any more
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
};

v1::Role RoleOf(const std::string& name) {
  return name == "worker"        ? v1::WORKER
         : name == "data-server" ? v1::DATA_SERVER
                                 : v1::PARAMETER_SERVER;
}

/// The members so far; each gets its heartbeat at its own moment of a second.
class Members {
 public:
  explicit Members(std::string controller) : controller_(std::move(controller)) {}

  void Open(const std::string& line) {
    std::istringstream words(line);
    std::string job;
    std::string role;
    std::uint32_t slot = 0;
    words >> job >> role >> slot;
    auto member = std::make_unique<Member>(controller_, job, RoleOf(role), slot, counts_);
    MutexLock lock(mutex_);
    members_.push_back(std::move(member));
  }

  void SendHeartbeats(const std::stop_token& stop) {
    constexpr int kMoments = 100;
    for (int moment = 0; !stop.stop_requested(); moment = (moment + 1) % kMoments) {
      const auto next = SteadyClock::now() + kHeartbeat / kMoments;
      {
        MutexLock lock(mutex_);
        for (std::size_t i = static_cast<std::size_t>(moment); i < members_.size(); i += kMoments) {
          members_[i]->SendHeartbeat();
        }
      }
      if (moment == 0) {
        Print();
        Forget();
      }
      std::this_thread::sleep_until(next);
    }
  }

 private:
  /// Closes the connections whose streams are done, as processes do that end.
  void Forget() {
    MutexLock lock(mutex_);
    std::erase_if(members_, [](const std::unique_ptr<Member>& member) { return member->done(); });
  }

  void Print() const {
    std::cout << nlohmann::json{{"open", counts_.open.load()},
                                {"welcomed", counts_.welcomed.load()},
                                {"training", counts_.training.load()},
                                {"ended", counts_.ended.load()},
                                {"sent", counts_.sent.load()},
                                {"received", counts_.received.load()}}
              << std::endl;
  }

  const std::string controller_;
  Counts counts_;
  Mutex mutex_;
  std::vector<std::unique_ptr<Member>> members_ ABSL_GUARDED_BY(mutex_);
};

int Main(int argc, char** argv) {
  CLI::App app("Opens control streams of members that train nothing.", "control_streams");
  std::string controller;
  app.add_option("--controller", controller, "Address of the operator's control port")->required();
  CLI11_PARSE(app, argc, argv);
  Members members(controller);
  std::jthread heartbeats([&](const std::stop_token& stop) { members.SendHeartbeats(stop); });
  for (std::string line; std::getline(std::cin, line);) {
    members.Open(line);
  }
  return 0;
}

}  // namespace
}  // namespace adamant

int main(int argc, char** argv) {
  try {
    return adamant::Main(argc, argv);
  } catch (const std::exception& error) {  // of a library; ours are values
    std::fprintf(stderr, "control_streams: %s\n", error.what());
    return 1;
  }
}
