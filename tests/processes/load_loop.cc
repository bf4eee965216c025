#include "tests/processes/load_loop.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "proto/adamant/v1/control.pb.h"
#include "proto/adamant/v1/parameter_server.pb.h"
#include "services/common/base/log.h"
#include "services/common/base/rng.h"
#include "services/common/rpc/frame.h"

namespace adamant::processes {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kRefusedWait{5};  // before a server that was not ready is asked again
constexpr milliseconds kLookEvery{100};
constexpr seconds kDrainTimeout{20};
constexpr seconds kCheckTimeout{30};

}  // namespace

LoadLoop::LoadLoop(LoadIdentity identity, const LoadSettings& settings, ShardLayout layout)
    : identity_(std::move(identity)),
      settings_(settings),
      layout_(std::move(layout)),
      book_(layout_,
            {.writer = identity_.slot, .writers = identity_.writers, .retain = settings.retain}),
      times_(settings.shortest_gap),
      rng_(MixSeed(identity_.slot, identity_.incarnation)),
      flights_(layout_.shards().size()),
      acknowledged_at_(layout_.shards().size()) {
  for (const Shard& shard : layout_.shards()) {
    free_.push_back(shard.id);
    unchecked_.insert(shard.id);
  }
  stage_began_ = next_update_ = next_read_ = std::chrono::steady_clock::now();
  servers_.emplace(LoadServers::Identity{.job_uid = identity_.job_uid,
                                         .slot = identity_.slot,
                                         .incarnation = identity_.incarnation},
                   inbox_,
                   LoadServers::Handlers{
                       .on_lost = [this](std::uint32_t server) { OnLost(server); },
                       .on_reply = [this](const rpc::IncomingFrame& frame) { OnReply(frame); }});
  thread_ = std::jthread([this] { Run(); });
}

LoadLoop::~LoadLoop() {
  quit_ = true;
  inbox_.Wake();
  thread_.join();
  servers_.reset();  // its streams post to the inbox until they are gone
}

void LoadLoop::OnMembership(const protocol::Membership& membership) {
  inbox_.Post([this, membership] { OnPlacement(membership); });
}

void LoadLoop::OnPause(std::function<void(std::uint64_t begun)> paused) {
  inbox_.Post([this, paused = std::move(paused)] {
    pausing_ = true;
    paused_ = paused;
  });
}

void LoadLoop::OnResume() {
  inbox_.Post([this] {
    pausing_ = false;
    paused_ = nullptr;
    next_update_ = std::chrono::steady_clock::now();
  });
}

void LoadLoop::Run() {
  while (!quit_) {
    for (const worker::Inbox::Task& task : inbox_.Take()) {
      task();
    }
    const TimePoint now = std::chrono::steady_clock::now();
    Turn(now);
    TimePoint next = next_look_;
    if (stage_ == Stage::kPushing && settings_.rate != 0 && !free_.empty() && !pausing_) {
      next = std::min(next, next_update_);
    }
    if (stage_ == Stage::kPushing && settings_.reads != 0) {
      next = std::min(next, next_read_);
    }
    if (!unsent_.empty()) {
      next = std::min(next, now + kRefusedWait);
    }
    inbox_.Wait(next - now);
  }
}

void LoadLoop::Turn(TimePoint now) {
  if (stage_ == Stage::kPushing && !pausing_) {
    BeginUpdates(now);
  } else if (stage_ == Stage::kDraining) {
    CatchUp(now);
  }
  SendUpdates(now);
  if (paused_ != nullptr && free_.size() == flights_.size()) {
    std::exchange(paused_, nullptr)(begun_);
  }
  if (stage_ == Stage::kPushing && settings_.reads != 0 && now >= next_read_) {
    next_read_ = now + std::chrono::nanoseconds(seconds(1)) / settings_.reads;
    Fetch(static_cast<ShardId>(rng_.Below(layout_.shards().size())));
  }
  if (now >= next_look_) {
    next_look_ = now + kLookEvery;
    RepeatUnanswered(now);
    Advance(now);
    WriteProgress(identity_.folder, book_.counts(), answers_, times_);
  }
}

// What was sent to the server and not answered may be sent again.
void LoadLoop::OnLost(std::uint32_t server) {
  std::erase_if(requests_, [&](const auto& entry) { return entry.second.server == server; });
  for (const Shard& shard : layout_.shards()) {
    if (flights_[shard.id].route.server == server && book_.InFlight(shard.id) != nullptr) {
      unsent_.insert(shard.id);
    }
  }
}

void LoadLoop::OnPlacement(const protocol::Membership& membership) {
  if (!servers_->Update(membership)) {
    return;
  }
  for (const Shard& shard : layout_.shards()) {
    const auto route = servers_->RouteTo(shard.bucket);
    if (book_.InFlight(shard.id) != nullptr && route != flights_[shard.id].route) {
      unsent_.insert(shard.id);
    }
  }
}

// --- Updates

void LoadLoop::BeginUpdates(TimePoint now) {
  if (!servers_->known()) {
    next_update_ = now;
    return;
  }
  while (!free_.empty() && (settings_.rate == 0 || now >= next_update_)) {
    const ShardId shard = free_.front();
    free_.pop_front();
    ++begun_;
    Begin(shard, settings_.poison_every != 0 && begun_ % settings_.poison_every == 0, now);
    if (settings_.rate != 0) {
      next_update_ += std::chrono::nanoseconds(seconds(1)) / settings_.rate;
    }
  }
  if (free_.empty()) {
    next_update_ = std::max(next_update_, now);  // a rate that was missed is not made up for
  }
}

// Begins only what a server has lost.
void LoadLoop::CatchUp(TimePoint now) {
  std::erase_if(free_, [&](ShardId shard) {
    if (!book_.Behind(shard)) {
      return false;
    }
    Begin(shard, false, now);
    return true;
  });
}

void LoadLoop::Begin(ShardId shard, bool poisoned, TimePoint now) {
  book_.Begin(shard, poisoned);
  Flight& flight = flights_[shard];
  ++flight.number;
  flight.begun = now;
  flight.not_before = now;
  unsent_.insert(shard);
}

void LoadLoop::SendUpdates(TimePoint now) {
  std::erase_if(unsent_, [&](ShardId shard) {
    const auto route = servers_->RouteTo(layout_.shards()[shard].bucket);
    if (!route.has_value() || flights_[shard].not_before > now) {
      return false;
    }
    SendUpdate(*book_.InFlight(shard), *route, now);
    return true;
  });
}

void LoadLoop::SendUpdate(const LoadBook::Update& update,
                          const LoadServers::Route& route,
                          TimePoint now) {
  const Shard& shard = layout_.shards()[update.shard];
  v1::ExchangeRequest request;
  request.set_id(++last_request_);
  v1::ShardUpdate& pushed = *request.mutable_push()->add_updates();
  pushed.set_shard(update.shard);
  pushed.set_bucket_epoch(route.version);
  pushed.set_sequence(update.sequence);
  pushed.set_after_loss(update.after_loss);
  pushed.set_kind(v1::WEIGHT_CHANGE);
  std::vector<float> values(shard.size());
  values[update.element] = 1;
  if (update.poisoned) {
    values[(update.element + identity_.writers) % shard.size()] =
        std::numeric_limits<float>::quiet_NaN();
  }
  Flight& flight = flights_[update.shard];
  flight.route = route;
  flight.sent = now;
  requests_[last_request_] = {.shard = update.shard,
                              .server = route.server,
                              .flight = flight.number,
                              .sequence = update.sequence};
  servers_->Send(route.server, request, std::move(values));
}

void LoadLoop::RepeatUnanswered(TimePoint now) {
  for (const Shard& shard : layout_.shards()) {
    if (book_.InFlight(shard.id) != nullptr && now - flights_[shard.id].sent >= settings_.retry) {
      unsent_.insert(shard.id);
    }
  }
}

void LoadLoop::Fetch(ShardId shard) {
  const auto route = servers_->RouteTo(layout_.shards()[shard].bucket);
  if (!route.has_value()) {
    return;
  }
  v1::ExchangeRequest request;
  request.set_id(++last_request_);
  request.mutable_fetch()->add_shards(shard);
  requests_[last_request_] = {.shard = shard,
                              .server = route->server,
                              .flight = 0,
                              .sequence = book_.acknowledged(shard),
                              .rolled_back = book_.counts().rolled_back};
  servers_->Send(route->server, request, {});
}

// --- Answers

void LoadLoop::OnReply(const rpc::IncomingFrame& frame) {
  v1::ExchangeReply reply;
  if (!reply.ParseFromString(std::string(frame.header()))) {
    return Violate("a header that is no ExchangeReply");
  }
  const auto node = requests_.extract(reply.id());
  if (node.empty()) {
    return;  // of a stream that broke
  }
  const Request& request = node.mapped();
  if (reply.has_push() && reply.push().acks_size() == 1 && request.flight != 0) {
    OnAck(request, reply.push().acks(0), std::chrono::steady_clock::now());
  } else if (reply.has_fetch() && reply.fetch().values_size() == 1 && request.flight == 0) {
    OnValue(request, reply.fetch().values(0), frame);
  } else {
    Violate("an answer that does not fit its request");
  }
}

void LoadLoop::OnAck(const Request& request, const v1::ShardAck& ack, TimePoint now) {
  const ShardId shard = request.shard;
  book_.OnPersisted(shard, ack.persisted());
  Flight& flight = flights_[shard];
  const LoadBook::Update* update = book_.InFlight(shard);
  if (update == nullptr || flight.number != request.flight ||
      update->sequence != request.sequence) {
    return;  // answered before
  }
  ++answers_[v1::ShardAck::Outcome_Name(ack.outcome())];
  using Answer = LoadBook::Answer;
  switch (ack.outcome()) {
    case v1::ShardAck::APPLIED:
    case v1::ShardAck::DUPLICATE:
      NoteAcknowledged(request, now);
      book_.OnAnswer(shard, request.sequence, Answer::kAcknowledged, 0);
      break;
    case v1::ShardAck::NOT_FINITE:
      book_.OnAnswer(shard, request.sequence, Answer::kRefused, 0);
      break;
    case v1::ShardAck::UNEXPECTED_SEQUENCE:
      NoteRollback(request, ack.expected());
      book_.OnAnswer(shard, request.sequence, Answer::kUnexpected, ack.expected());
      break;
    case v1::ShardAck::NOT_PRIMARY:
    case v1::ShardAck::NOT_READY:
      flight.not_before = now + kRefusedWait;
      break;
    default:
      Violate("shard " + std::to_string(shard) + ": " + v1::ShardAck::Outcome_Name(ack.outcome()));
      flight.not_before = now + seconds(1);
  }
  if (book_.InFlight(shard) == nullptr) {
    unsent_.erase(shard);
    free_.push_back(shard);
  } else {
    unsent_.insert(shard);
  }
}

void LoadLoop::NoteAcknowledged(const Request& request, TimePoint now) {
  times_.OnAcknowledged(layout_.shards()[request.shard].bucket, flights_[request.shard].begun, now);
  std::vector<TimePoint>& times = acknowledged_at_[request.shard];
  times.resize(std::max<std::size_t>(times.size(), request.sequence));
  times[request.sequence - 1] = now;
}

void LoadLoop::NoteRollback(const Request& request, std::uint64_t expected) {
  const std::vector<TimePoint>& times = acknowledged_at_[request.shard];
  if (expected >= 1 && expected <= times.size()) {
    rollbacks_.push_back(
        {.bucket = layout_.shards()[request.shard].bucket, .oldest = times[expected - 1]});
  }
}

void LoadLoop::OnValue(const Request& request,
                       const v1::ShardValue& value,
                       const rpc::IncomingFrame& frame) {
  if (value.outcome() != v1::ShardValue::FOUND) {
    return;
  }
  ++reads_;
  const bool known_rollback = book_.counts().rolled_back != request.rolled_back;
  if (value.included_sequence() < request.sequence && !known_rollback) {
    stale_reads_.push_back("shard " + std::to_string(request.shard) + ": a read includes " +
                           std::to_string(value.included_sequence()) + " after " +
                           std::to_string(request.sequence) + " was acknowledged");
  }
  if (stage_ == Stage::kChecking) {
    CheckValues(request.shard, frame);
  }
}

void LoadLoop::Violate(const std::string& what) {
  if (violations_.size() < LoadBook::kMaxFaults) {
    LogError("violation", {{"what", what}});
    violations_.push_back(what);
  }
}

// --- The end: what is still to be answered, then what the servers hold

void LoadLoop::Advance(TimePoint now) {
  const Stage before = stage_;
  if (stage_ == Stage::kPushing && std::filesystem::exists(identity_.folder / "finish")) {
    stage_ = Stage::kDraining;
  } else if (stage_ == Stage::kDraining &&
             (free_.size() == flights_.size() || now - stage_began_ >= kDrainTimeout)) {
    stage_ = Stage::kChecking;
    requests_.clear();  // reads from before say less
  } else if (stage_ == Stage::kChecking && now - stage_began_ >= kCheckTimeout) {
    for (const ShardId shard : unchecked_) {
      Violate("shard " + std::to_string(shard) + " could not be read");
    }
    unchecked_.clear();
  }
  if (stage_ == Stage::kChecking) {
    std::set<ShardId> asked;
    for (const auto& [id, request] : requests_) {
      asked.insert(request.flight == 0 ? request.shard : std::numeric_limits<ShardId>::max());
    }
    for (const ShardId shard : unchecked_) {
      if (!asked.contains(shard)) {
        Fetch(shard);
      }
    }
    if (unchecked_.empty()) {
      stage_ = Stage::kDone;
      violations_.insert(violations_.end(), book_.violations().begin(), book_.violations().end());
      WriteReport(identity_.folder,
                  {.counts = book_.counts(),
                   .times = times_,
                   .reads = reads_,
                   .rollbacks = rollbacks_,
                   .stale_reads = stale_reads_,
                   .violations = violations_});
    }
  }
  if (stage_ != before) {
    stage_began_ = now;
  }
}

void LoadLoop::CheckValues(ShardId id, const rpc::IncomingFrame& frame) {
  if (unchecked_.erase(id) == 0) {
    return;
  }
  const Shard& shard = layout_.shards()[id];
  std::vector<float> initial(shard.size());
  InitialiseShard(identity_.seed, layout_.parameters()[shard.tensor], shard, initial);
  std::vector<float> values(frame.payload_bytes() / sizeof(float));
  rpc::PayloadReader reader(frame);
  if (!reader.Read(std::as_writable_bytes(std::span(values))).ok()) {
    return Violate("a payload that is no floats");
  }
  for (const std::string& fault : book_.Check(id, initial, values, LoadBook::kMaxFaults)) {
    Violate(fault);
  }
}

}  // namespace adamant::processes
