// What the processes of a job tell its controller, and what its core does with that: of each piece
// the first byte is the connection, the rest a message. A piece without a message lets time pass.
// What the controller stores it must be able to read, and what it sends must be sendable.

#include <chrono>
#include <memory>

#include "operator/core/job/job_controller.h"
#include "proto/adamant/v1/control.pb.h"
#include "services/common/base/check.h"
#include "services/common/codec/control.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/silent_protobuf.h"

namespace adamant::fuzz {
namespace {

using controller::Action;
using controller::Event;
using controller::JobController;
using controller::JobSettings;

JobSettings SmallJob() {
  JobSettings settings{
      .name = "fuzz", .workers = 2, .data_servers = 2, .parameter_servers = 2, .buckets = 4};
  settings.copies = 2;
  settings.epochs = 2;
  settings.training_examples = 1000;
  return settings;
}

class Job {
 public:
  Job() : controller_(JobController::Create(settings_, 42)) { Carry(controller_->Begin(now_, {})); }

  bool Handle(const std::string& piece) {
    if (piece.size() < 2) {
      now_ += std::chrono::seconds(1);
      Carry(controller_->Handle(controller::Tick{}, now_));
      return true;
    }
    v1::MemberMessage message;
    if (!message.ParseFromArray(piece.data() + 1, static_cast<int>(piece.size() - 1))) {
      return false;
    }
    auto decoded = codec::Decode(message);
    if (!decoded) {
      return false;
    }
    const auto connection = static_cast<unsigned char>(piece[0]);
    Carry(controller_->Handle(
        controller::Received{.connection = connection, .message = *std::move(decoded)}, now_));
    return true;
  }

 private:
  void Carry(const std::vector<Action>& actions) {
    for (const Action& action : actions) {
      if (const auto* send = std::get_if<controller::Send>(&action)) {
        codec::Encode(send->message);
      } else if (const auto* persist = std::get_if<controller::Persist>(&action)) {
        for (const auto& [key, value] : persist->entries) {
          ADAMANT_CHECK(
              key != controller::kStateKey || JobController::Restore(settings_, value).ok(),
              "a state that cannot be read");
        }
      }
    }
    const bool finite = controller_->NextTimer(now_) >= now_;
    ADAMANT_CHECK(finite && controller_->Report().phase == controller_->state().phase,
                  "a report of another state");
  }

  const JobSettings settings_ = SmallJob();
  std::unique_ptr<JobController> controller_;
  JobController::TimePoint now_{std::chrono::hours(1)};
};

/// One message of each kind, from the process that it suits.
class Story {
 public:
  // Of a slot, in the order in which they join: their connection.
  void JoinAll() {
    for (const v1::Role role : {v1::DATA_SERVER, v1::PARAMETER_SERVER, v1::WORKER}) {
      for (std::uint32_t slot = 0; slot < 2; ++slot) {
        v1::Join& join =
            *Add(static_cast<char>(2 * (role - v1::DATA_SERVER) + slot)).mutable_join();
        join.set_format_version(1);
        join.set_role(role);
        join.set_slot(slot);
        join.set_uid("u");
        join.set_address("host:1");
        join.set_replication_address("host:2");
        join.set_generation(1);
        Finish();
      }
    }
  }

  void ServeAll() {
    for (const char server : {'\2', '\3'}) {
      Add(server).mutable_stored_buckets();
      Finish();
      v1::MemberMessage& ready = Add(server);
      for (std::uint32_t bucket = 0; bucket < 4; ++bucket) {
        v1::BucketState& state = *ready.mutable_buckets_ready()->add_buckets();
        state.set_bucket(bucket);
        state.set_epoch(1);
      }
      Finish();
      v1::SnapshotTaken& taken = *Add(server).mutable_snapshot_taken();
      taken.set_snapshot(1);
      taken.set_ok(true);
      taken.add_buckets()->set_generation(1);
      Finish();
    }
  }

  void Train() {
    Add(0).mutable_heartbeat()->mutable_data_server()->set_training_examples(1000);
    Finish();
    Add(4).mutable_heartbeat()->mutable_worker()->set_trained_examples(64);
    Finish();
    Add(2).mutable_heartbeat()->mutable_parameter_server()->add_buckets()->set_epoch(1);
    Finish();
    Add(2).mutable_proposals()->add_proposals()->set_epoch(1);
    Finish();
    pieces_.emplace_back();  // time passes
    Add(0).mutable_epoch_ended()->set_epoch(1);
    Finish();
    Add(0).mutable_part_closed()->set_epoch(1);
    Finish();
    Add(4).mutable_worker_flushed()->set_epoch(1);
    Finish();
    Add(4).mutable_pushes_paused()->set_checkpoint(1);
    Finish();
    Add(0).mutable_evaluated()->set_epoch(1);
    Finish();
  }

  void End() {
    Add(0).mutable_loading()->set_what("data");
    Finish();
    Add(5).mutable_failure()->set_message("no");
    Finish();
    Add(3).mutable_draining();
    Finish();
    Add(4).mutable_leaving();
    Finish();
  }

  [[nodiscard]] std::string Told() const { return Join(pieces_); }

 private:
  v1::MemberMessage& Add(char connection) {
    connection_ = connection;
    message_.Clear();
    return message_;
  }
  void Finish() { pieces_.push_back(connection_ + message_.SerializeAsString()); }

  v1::MemberMessage message_;
  char connection_ = 0;
  std::vector<std::string> pieces_;
};

}  // namespace

std::vector<std::string> Seeds() {
  std::vector<std::string> seeds;
  Story story;
  story.JoinAll();
  seeds.push_back(story.Told());
  story.ServeAll();
  seeds.push_back(story.Told());
  story.Train();
  seeds.push_back(story.Told());
  story.End();
  seeds.push_back(story.Told());
  return seeds;
}

bool Try(std::string_view input) {
  Job job;
  bool accepted = true;
  for (const std::string& piece : Split(input)) {
    accepted = job.Handle(piece) && accepted;
  }
  return accepted;
}

}  // namespace adamant::fuzz
