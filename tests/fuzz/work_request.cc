// What workers send to a data server, and what its core does with that: of each piece the first
// byte is the worker's slot, the rest a message. A piece without a message lets time pass.

#include <chrono>

#include "proto/adamant/v1/data_server.pb.h"
#include "services/common/base/check.h"
#include "services/common/codec/work.h"
#include "services/data_server/core/batch_scheduler.h"
#include "services/data_server/rpc/message_codec.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/silent_protobuf.h"

namespace adamant::fuzz {
namespace {

namespace ds = data_server;

constexpr std::uint32_t kWorkers = 2;
constexpr std::uint32_t kExamples = 100;

/// Alone in its job, with an epoch open. Its records are stored at once.
class Server {
 public:
  Server()
      : scheduler_({.batch_size = 8,
                    .train_examples = kExamples,
                    .validation_examples = 20,
                    .epochs = 2}) {
    Handle(ds::WorkView{.workers = {{.slot = 0, .incarnation = 1}, {.slot = 1, .incarnation = 1}},
                        .part_owner = {0}});
    Handle(ds::OpenEpoch{.epoch = 1});
  }

  bool Take(const std::string& piece) {
    if (piece.size() < 2) {
      now_ += std::chrono::seconds(1);
      Handle(ds::Tick{});
      return true;
    }
    v1::WorkRequest request;
    if (!request.ParseFromArray(piece.data() + 1, static_cast<int>(piece.size() - 1))) {
      return false;
    }
    ds::WorkerId worker{.slot = static_cast<unsigned char>(piece[0]), .incarnation = 1};
    switch (request.kind_case()) {
      case v1::WorkRequest::kHello:
        worker.slot = request.hello().worker_slot();
        worker.incarnation = request.hello().worker_incarnation();
        Handle(ds::Hello{.worker = worker, .window = request.hello().window()});
        return true;
      case v1::WorkRequest::kAcknowledge:
        Handle(ds::FromProto(worker, request.acknowledge()));
        return true;
      case v1::WorkRequest::kHandBack:
        Handle(ds::FromProto(worker, request.hand_back()));
        return true;
      case v1::WorkRequest::kKeepAlive:
        Handle(ds::KeepAlive{.worker = worker,
                             .controller_heard = request.keep_alive().controller_heard()});
        return true;
      default:
        return false;
    }
  }

  /// Leases of batches that were dispatched.
  [[nodiscard]] const std::vector<ds::Lease>& leases() const { return leases_; }

  [[nodiscard]] std::uint64_t counted() const { return counted_; }

 private:
  void Handle(const ds::Input& input) {
    for (const ds::Output& output : scheduler_.Handle(input, now_)) {
      if (const auto* read = std::get_if<ds::ReadRecord>(&output)) {
        Handle(ds::RecordRead{.request = read->request, .record = record_});
      } else if (const auto* write = std::get_if<ds::WriteRecord>(&output)) {
        Store(*write);
      } else if (const auto* dispatch = std::get_if<ds::Dispatch>(&output)) {
        leases_.push_back(dispatch->lease);
      }
    }
    ADAMANT_CHECK(scheduler_.Upcoming(4).size() <= 4, "more than asked for");
    const auto wake = scheduler_.NextWake();
    ADAMANT_CHECK(!wake || *wake > now_ - std::chrono::hours(1), "a time that was");
  }

  void Store(const ds::WriteRecord& write) {
    const std::uint64_t version = record_ ? record_->version : 0;
    const bool conflict = write.expected_version != version;
    if (!conflict) {
      const auto ledger = ds::ParseLedger(write.value);
      ADAMANT_CHECK(ledger.ok() && ledger->counted_examples <= kExamples,
                    "a ledger that cannot be");
      counted_ = ledger->counted_examples;
      record_ = {.version = version + 1, .value = write.value};
    }
    Handle(
        ds::RecordWritten{.request = write.request, .conflict = conflict, .version = version + 1});
  }

  ds::BatchScheduler scheduler_;
  Clock::TimePoint now_{std::chrono::hours(1)};
  std::optional<ds::VersionedRecord> record_;
  std::vector<ds::Lease> leases_;
  std::uint64_t counted_ = 0;
};

std::string Piece(char worker, const v1::WorkRequest& request) {
  return worker + request.SerializeAsString();
}

std::vector<std::string> Hellos() {
  std::vector<std::string> pieces;
  for (std::uint32_t worker = 0; worker < kWorkers; ++worker) {
    v1::WorkRequest request;
    request.mutable_hello()->set_worker_slot(worker);
    request.mutable_hello()->set_worker_incarnation(1);
    request.mutable_hello()->set_window(3);
    pieces.push_back(Piece(static_cast<char>(worker), request));
  }
  return pieces;
}

}  // namespace

std::vector<std::string> Seeds() {
  std::vector<std::string> pieces = Hellos();
  Server server;
  for (const std::string& piece : pieces) {
    server.Take(piece);
  }
  const std::vector<ds::Lease> leases = server.leases();
  ADAMANT_CHECK(leases.size() == 6, "workers get work");
  v1::WorkRequest acknowledge;
  v1::WorkRequest hand_back;
  for (std::size_t i = 0; i < 3; ++i) {
    codec::Encode(leases[i], *acknowledge.mutable_acknowledge()->add_results()->mutable_lease());
    codec::Encode(leases[3 + i], *hand_back.mutable_hand_back()->add_leases());
  }
  v1::WorkRequest keep_alive;
  keep_alive.mutable_keep_alive()->set_controller_heard(true);
  std::vector<std::string> seeds = {Join(pieces)};
  pieces.push_back(Piece(0, acknowledge));
  pieces.push_back(Piece(1, hand_back));
  pieces.emplace_back();
  pieces.push_back(Piece(1, keep_alive));
  seeds.push_back(Join(pieces));
  for (const std::string& piece : pieces) {
    server.Take(piece);
  }
  ADAMANT_CHECK(server.counted() > 0, "results are counted");
  return seeds;
}

bool Try(std::string_view input) {
  Server server;
  bool accepted = true;
  for (const std::string& piece : Split(input)) {
    accepted = server.Take(piece) && accepted;
  }
  return accepted;
}

}  // namespace adamant::fuzz
