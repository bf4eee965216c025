#include "tests/integration/services/worker/parameter_server_here.h"

#include <gtest/gtest.h>

#include <chrono>
#include <utility>

namespace adamant::worker {

using parameter_server::Configuration;

void OpenStreams::Add(rpc::FrameStream& stream) {
  MutexLock lock(mutex_);
  streams_.push_back(&stream);
}

void OpenStreams::Remove(rpc::FrameStream& stream) {
  MutexLock lock(mutex_);
  std::erase(streams_, &stream);
}

void OpenStreams::BreakAll() {
  MutexLock lock(mutex_);
  for (rpc::FrameStream* stream : streams_) {
    stream->Cancel();
  }
}

ParameterServerHere::ParameterServerHere(parameter_server::ParameterServerOptions options)
    : options_(std::move(options)) {
  options_.self.incarnation = 1;
  record_ = {.version = 1, .generation = 1, .primary = options_.self, .replicas = {options_.self}};
  Start();
}

ParameterServerHere::~ParameterServerHere() { Die(); }

void ParameterServerHere::Restart() {
  Die();
  store_.Crash();
  ++options_.self.incarnation;
  record_ = {.version = record_.version + 1,
             .generation = record_.generation + 1,
             .primary = options_.self,
             .replicas = {options_.self},
             .created = true};
  Start();
}

void ParameterServerHere::Start() {
  parameter_server::Driver& driver = *this;
  core_ = std::make_unique<parameter_server::ParameterServer>(options_, store_, clock_, driver);
  EXPECT_TRUE(core_->ReadStored().ok());
  Configure();
  EXPECT_TRUE(core_->DoStorage().ok());
  record_.created = true;
  Configure();
  {
    MutexLock lock(mutex_);
    dying_ = false;
  }
  worker_ = std::jthread([this] { Work(); });
  gate_.Open(*core_);
  rpc::FrameMethod method;
  method.name = "/adamant.v1.ParameterServer/Exchange";
  method.handler = [this](rpc::FrameStream& stream) {
    streams_.Add(stream);
    const absl::Status status = parameter_server::ServeExchange(gate_, members_, metrics_, stream);
    streams_.Remove(stream);
    return status;
  };
  server_ =
      rpc::StartServer({.max_message_bytes = parameter_server::kMaxExchangeBytes}, {}, {method})
          .value();
}

void ParameterServerHere::Configure() {
  core_->SetConfigurations(std::vector<Configuration>(core_->layout().buckets(), record_), {});
}

void ParameterServerHere::Die() {
  server_->Stop();
  gate_.Close();
  {
    MutexLock lock(mutex_);
    dying_ = true;
    changed_.NotifyAll();
  }
  worker_.join();
  core_.reset();
}

void ParameterServerHere::Want() {
  MutexLock lock(mutex_);
  wanted_ = true;
  changed_.NotifyAll();
}

void ParameterServerHere::Work() {
  for (;;) {
    {
      MutexLock lock(mutex_);
      if (!wanted_ && !dying_) {
        changed_.WaitFor(mutex_, std::chrono::milliseconds(10));
      }
      wanted_ = false;
      if (dying_) {
        return;
      }
    }
    core_->ApplyCommitted();
    EXPECT_TRUE(core_->DoStorage().ok());
    if (core_->flusher().DueAt() <= clock_.Now()) {
      EXPECT_TRUE(core_->Flush().ok());
    }
  }
}

std::vector<std::uint64_t> ParameterServerHere::Versions() {
  std::vector<ShardId> shards;
  for (const Shard& shard : core_->layout().shards()) {
    shards.push_back(shard.id);
  }
  std::vector<std::uint64_t> versions;
  const auto values = core_->Fetch(nullptr, shards, 0).value();
  for (const parameter_server::ShardValue& value : values) {
    versions.push_back(value.version);
  }
  return versions;
}

}  // namespace adamant::worker
