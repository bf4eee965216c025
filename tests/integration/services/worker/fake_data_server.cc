#include "tests/integration/services/worker/fake_data_server.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "services/common/base/rng.h"
#include "services/common/base/status_macros.h"

namespace adamant::worker {
namespace {

constexpr std::uint32_t kBatchSize = 32;
constexpr std::size_t kExampleBytes = 784;

}  // namespace

FakeDataServer::FakeDataServer() {
  rpc::FrameMethod method;
  method.name = "/adamant.v1.DataServer/Work";
  method.handler = [this](rpc::FrameStream& stream) {
    streams_.Add(stream);
    const absl::Status status = Serve(stream);
    streams_.Remove(stream);
    MutexLock lock(mutex_);
    stream_ = nullptr;
    changed_.NotifyAll();
    return status;
  };
  server_ = rpc::StartServer({}, {}, {method}).value();
}

absl::Status FakeDataServer::Serve(rpc::FrameStream& stream) {
  for (;;) {
    ADAMANT_ASSIGN_OR_RETURN(const rpc::IncomingFrame frame, stream.Read());
    v1::WorkRequest request;
    EXPECT_TRUE(request.ParseFromString(std::string(frame.header())));
    MutexLock lock(mutex_);
    stream_ = &stream;
    Handle(request);
    DispatchSome();
    changed_.NotifyAll();
  }
}

void FakeDataServer::Handle(const v1::WorkRequest& request) {
  v1::WorkReply reply;
  if (request.has_hello()) {
    window_ = request.hello().window();
    for (const auto& [lease, batch] : out_) {
      to_dispatch_.push_back(batch);  // nobody knows whether they arrived
    }
    out_.clear();
    for (int channel = 0; channel < channels_; ++channel) {
      reply.mutable_hello()->add_mean(128);
      reply.mutable_hello()->add_deviation(64);
    }
    Send(reply);
  }
  for (const v1::LeaseResult& result : request.acknowledge().results()) {
    const v1::Lease& lease = result.lease();
    out_.erase(lease.id());
    EXPECT_GT(result.examples(), 0u);
    Counts& counts = lease.kind() == v1::TRAIN ? acknowledged_ : evaluated_;
    ++counts[lease.index()];
    *reply.mutable_acknowledged()->add_leases() = lease;
  }
  if (request.has_acknowledge()) {
    Send(reply);
  }
  for (const v1::Lease& lease : request.hand_back().leases()) {
    if (out_.erase(lease.id()) > 0) {
      ++handed_back_[lease.index()];
      if (dispatches_again_) {
        to_dispatch_.push_back(lease.index());
      } else {
        to_dispatch_.clear();
      }
    }
  }
}

void FakeDataServer::DispatchSome() {
  if (stream_ == nullptr || to_dispatch_.empty()) {
    return;
  }
  while (!to_dispatch_.empty() && out_.size() < window_) {
    v1::Lease lease;
    lease.set_epoch(1);
    lease.set_index(to_dispatch_.back());
    lease.set_id(next_lease_++);
    to_dispatch_.pop_back();
    out_[lease.id()] = lease.index();
    dispatched_.insert(lease.index());
    SendBatch(lease, 0);
  }
  if (to_dispatch_.empty()) {
    v1::WorkReply reply;
    reply.mutable_drained()->set_epoch(1);
    Send(reply);
  }
}

void FakeDataServer::SendBatch(const v1::Lease& lease, std::uint64_t snapshot) {
  v1::WorkReply reply;
  v1::Batch& batch = *reply.mutable_batch();
  *batch.mutable_lease() = lease;
  batch.set_snapshot(snapshot);
  batch.set_job_examples(std::uint64_t{lease.index()} * kBatchSize);
  auto pixels = std::make_shared<std::vector<std::byte>>(kBatchSize * kExampleBytes);
  Rng rng(lease.index());
  for (std::uint32_t i = 0; i < kBatchSize; ++i) {
    batch.add_labels(static_cast<std::uint32_t>(rng.Below(10)));
  }
  for (std::byte& pixel : *pixels) {
    pixel = static_cast<std::byte>(rng.Below(256));
  }
  Send(reply, {{.bytes = *pixels, .owner = pixels}});
}

void FakeDataServer::Send(const v1::WorkReply& reply, std::vector<rpc::LentBytes> payload) {
  if (stream_ != nullptr) {
    // A stream that broke is noticed by who reads it.
    stream_->Write({.header = reply.SerializeAsString(), .payload = std::move(payload)})
        .IgnoreError();
  }
}

void FakeDataServer::Dispatch(std::uint32_t batches) {
  MutexLock lock(mutex_);
  std::vector<std::uint32_t> more;
  for (std::uint32_t i = 0; i < batches; ++i) {
    more.push_back(batches_++);
  }
  to_dispatch_.insert(to_dispatch_.begin(), more.rbegin(), more.rend());
  DispatchSome();
}

void FakeDataServer::DispatchAgain() {
  const MutexLock lock(mutex_);
  dispatches_again_ = true;
}

void FakeDataServer::DispatchValidation(std::uint32_t batches, std::uint64_t snapshot) {
  MutexLock lock(mutex_);
  for (std::uint32_t i = 0; i < batches; ++i) {
    v1::Lease lease;
    lease.set_kind(v1::EVALUATE);
    lease.set_epoch(1);
    lease.set_index(i);
    lease.set_id(next_lease_++);
    SendBatch(lease, snapshot);
  }
}

void FakeDataServer::CloseEpoch(DataEpoch epoch) {
  MutexLock lock(mutex_);
  v1::WorkReply reply;
  reply.mutable_epoch_closed()->set_epoch(epoch);
  Send(reply);
}

void FakeDataServer::AwaitAcknowledged(std::size_t batches) {
  MutexLock lock(mutex_);
  while (acknowledged_.size() < batches) {
    changed_.Wait(mutex_);
  }
}

void FakeDataServer::AwaitEvaluated(std::size_t batches) {
  MutexLock lock(mutex_);
  while (evaluated_.size() < batches) {
    changed_.Wait(mutex_);
  }
}

void FakeDataServer::AwaitEnd() {
  MutexLock lock(mutex_);
  while (stream_ != nullptr) {
    changed_.Wait(mutex_);
  }
}

std::size_t FakeDataServer::acknowledged() {
  MutexLock lock(mutex_);
  return acknowledged_.size();
}

std::size_t FakeDataServer::handed_back() {
  MutexLock lock(mutex_);
  return handed_back_.size();
}

std::size_t FakeDataServer::out() {
  MutexLock lock(mutex_);
  return out_.size();
}

std::size_t FakeDataServer::dispatched() {
  MutexLock lock(mutex_);
  return dispatched_.size();
}

}  // namespace adamant::worker
