#include "services/data_server/rpc/record_client.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "proto/adamant/v1/control.pb.h"
#include "proto/adamant/v1/parameter_server.grpc.pb.h"
#include "services/common/base/log.h"
#include "services/common/rpc/channel.h"
#include "services/common/rpc/frame.h"
#include "services/common/rpc/status_grpc.h"
#include "services/common/rpc/stream_guard.h"
#include "services/common/rpc/tls/channel_security.h"
#include "services/common/security/peer_identity.h"
#include "services/common/tensor/shard_layout.h"

namespace adamant::data_server {
namespace {

constexpr int kThreads = 4;
constexpr std::chrono::seconds kCallTimeout(2);
constexpr std::uint64_t kMaxMessageBytes = std::uint64_t{2} << 20;

std::string KeyOf(std::uint32_t part) { return "ledger/" + std::to_string(part); }

std::uint32_t PartOf(const RecordClient::Request& request) {
  return std::visit([](const auto& r) { return r.part; }, request);
}

bool IsPermanent(const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::FAILED_PRECONDITION ||
         status.error_code() == grpc::StatusCode::INVALID_ARGUMENT;
}

// What one try of a request came to: an answer, an error to give up at, or neither.
struct Outcome {
  std::optional<Input> answer;
  absl::Status failure;
};

void Prepare(const JobAttempt& job, grpc::ClientContext& context) {
  context.set_deadline(std::chrono::system_clock::now() + kCallTimeout);
  context.AddMetadata(rpc::kJobKey, std::to_string(job.job_uid));
}

Outcome Read(v1::ParameterServer::Stub& stub, const JobAttempt& job, const ReadRecord& read) {
  v1::GetRecordRequest request;
  request.set_job_uid(job.job_uid);
  request.set_attempt(job.attempt);
  request.set_key(KeyOf(read.part));
  v1::GetRecordReply reply;
  grpc::ClientContext context;
  Prepare(job, context);
  const grpc::Status status = stub.GetRecord(&context, request, &reply);
  if (!status.ok()) {
    return {.answer = {}, .failure = IsPermanent(status) ? rpc::FromGrpc(status) : absl::Status()};
  }
  RecordRead answer{.request = read.request, .record = {}};
  switch (reply.outcome()) {
    case v1::GetRecordReply::FOUND:
      answer.record = VersionedRecord{.version = reply.version(), .value = reply.value()};
      return {.answer = std::move(answer), .failure = {}};
    case v1::GetRecordReply::ABSENT:
      return {.answer = std::move(answer), .failure = {}};
    default:
      return {};
  }
}

Outcome Write(v1::ParameterServer::Stub& stub, const JobAttempt& job, const WriteRecord& write) {
  v1::PutRecordRequest request;
  request.set_job_uid(job.job_uid);
  request.set_attempt(job.attempt);
  request.set_key(KeyOf(write.part));
  request.set_expected_version(write.expected_version);
  request.set_value(write.value);
  v1::PutRecordReply reply;
  grpc::ClientContext context;
  Prepare(job, context);
  const grpc::Status status = stub.PutRecord(&context, request, &reply);
  if (!status.ok()) {
    return {.answer = {}, .failure = IsPermanent(status) ? rpc::FromGrpc(status) : absl::Status()};
  }
  switch (reply.outcome()) {
    case v1::PutRecordReply::STORED:
    case v1::PutRecordReply::VERSION_CONFLICT:
      return {.answer = RecordWritten{.request = write.request,
                                      .conflict = reply.outcome() != v1::PutRecordReply::STORED,
                                      .version = reply.version()},
              .failure = {}};
    case v1::PutRecordReply::STORAGE_ERROR:
      LogWarning("a parameter server cannot store the ledger",
                 {{"part", write.part}, {"error", reply.error()}});
      return {};
    default:
      return {};
  }
}

}  // namespace

BucketAddresses BucketAddressesOf(const protocol::Membership& view) {
  std::map<protocol::ServerId, std::string> servers;
  for (const protocol::Member& member : view.members) {
    if (member.id.role == protocol::Role::kParameterServer) {
      servers[{member.id.slot, member.incarnation}] = member.address;
    }
  }
  BucketAddresses addresses;
  for (const protocol::Configuration& bucket : view.buckets) {
    const auto server = servers.find(bucket.primary);
    addresses.push_back(server == servers.end() ? "" : server->second);
  }
  return addresses;
}

// The connections to the parameter servers of the map. Threads: any.
class RecordClient::Connections {
 public:
  using Stub = v1::ParameterServer::Stub;

  explicit Connections(rpc::MemberSecurity security) : security_(std::move(security)) {}

  void SetMap(BucketAddresses addresses) {
    MutexLock lock(mutex_);
    addresses_ = std::move(addresses);
    std::erase_if(stubs_, [this](const auto& entry) ABSL_NO_THREAD_SAFETY_ANALYSIS {
      return std::find(addresses_.begin(), addresses_.end(), entry.first) == addresses_.end();
    });
  }

  // The server of a part's record; null while the map names none.
  std::shared_ptr<Stub> Find(std::uint32_t part) {
    MutexLock lock(mutex_);
    if (addresses_.empty()) {
      return nullptr;
    }
    const auto buckets = static_cast<std::uint32_t>(addresses_.size());
    const std::string& address = addresses_[BucketOfRecord(KeyOf(part), buckets)];
    if (address.empty()) {
      return nullptr;
    }
    if (const std::uint64_t version = security_.version(); version != version_) {
      version_ = version;
      stubs_.clear();  // they have an old certificate
    }
    std::shared_ptr<Stub>& stub = stubs_[address];
    if (stub == nullptr) {
      const auto security = security_.To(security::Role::kParameterServer);
      stub = v1::ParameterServer::NewStub(
          rpc::NewChannel(address, kMaxMessageBytes, {}, security.get()));
    }
    return stub;
  }

 private:
  const rpc::MemberSecurity security_;

  Mutex mutex_;
  BucketAddresses addresses_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::shared_ptr<Stub>> stubs_ ABSL_GUARDED_BY(mutex_);  // by address
  std::uint64_t version_ ABSL_GUARDED_BY(mutex_) = 0;  // of the identity that they have
};

RecordClient::RecordClient(const Options& options,
                           RecordHandlers handlers,
                           const DataMetrics& metrics)
    : job_(options.job),
      handlers_(std::move(handlers)),
      metrics_(metrics),
      connections_(std::make_unique<Connections>(options.security)) {
  for (int i = 0; i < kThreads; ++i) {
    threads_.emplace_back([this] { Run(); });
  }
}

RecordClient::~RecordClient() {
  MutexLock lock(mutex_);
  stopped_ = true;
  changed_.NotifyAll();
}

void RecordClient::SetMap(BucketAddresses addresses) {
  connections_->SetMap(std::move(addresses));
  MutexLock lock(mutex_);
  std::multimap<Clock::TimePoint, std::unique_ptr<Pending>> now;
  for (auto& [due, pending] : queue_) {
    pending->backoff.Reset();
    now.emplace(clock_.Now(), std::move(pending));
  }
  queue_ = std::move(now);
  changed_.NotifyAll();
}

void RecordClient::Submit(Request request) {
  const std::uint64_t seed = PartOf(request);
  auto pending = std::make_unique<Pending>(std::move(request), seed);
  pending->submitted = clock_.Now();
  MutexLock lock(mutex_);
  queue_.emplace(pending->submitted, std::move(pending));
  changed_.NotifyOne();
}

void RecordClient::Run() {
  mutex_.Lock();
  while (!stopped_) {
    const Clock::TimePoint now = clock_.Now();
    if (queue_.empty()) {
      changed_.Wait(mutex_);
    } else if (queue_.begin()->first > now) {
      changed_.WaitFor(mutex_, queue_.begin()->first - now);
    } else {
      std::unique_ptr<Pending> pending = std::move(queue_.begin()->second);
      queue_.erase(queue_.begin());
      mutex_.Unlock();
      Try(std::move(pending));
      mutex_.Lock();
    }
  }
  mutex_.Unlock();
}

void RecordClient::Try(std::unique_ptr<Pending> pending) {
  const std::shared_ptr<Connections::Stub> stub = connections_->Find(PartOf(pending->request));
  Outcome outcome;
  if (stub != nullptr) {
    const auto* write = std::get_if<WriteRecord>(&pending->request);
    outcome = write != nullptr ? Write(*stub, job_, *write)
                               : Read(*stub, job_, std::get<ReadRecord>(pending->request));
  }
  if (!outcome.failure.ok()) {
    handlers_.on_failure(outcome.failure);
  } else if (outcome.answer) {
    if (std::holds_alternative<WriteRecord>(pending->request)) {
      const std::chrono::duration<double> seconds = clock_.Now() - pending->submitted;
      metrics_.ledger_write_seconds.Observe(seconds.count());
    }
    handlers_.on_answer(*std::move(outcome.answer));
  } else {
    TryLater(std::move(pending));
  }
}

void RecordClient::TryLater(std::unique_ptr<Pending> pending) {
  metrics_.record_retries.Increment();
  const Clock::TimePoint due = clock_.Now() + pending->backoff.Next();
  MutexLock lock(mutex_);
  queue_.emplace(due, std::move(pending));
  changed_.NotifyOne();
}

}  // namespace adamant::data_server
