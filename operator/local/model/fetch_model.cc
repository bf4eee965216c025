#include "operator/local/model/fetch_model.h"

#include <algorithm>
#include <map>
#include <memory>
#include <span>

#include "proto/adamant/v1/parameter_server.pb.h"
#include "services/common/base/status_macros.h"
#include "services/common/protocol/format_versions.h"
#include "services/common/rpc/frame.h"
#include "services/common/security/peer_identity.h"

namespace adamant::local {
namespace {

constexpr char kExchange[] = "/adamant.v1.ParameterServer/Exchange";

// Shards asked for at once, and the largest reply: they are 1 MB each.
constexpr std::size_t kShardsPerFetch = 16;
constexpr std::uint64_t kMaxReplyBytes = std::uint64_t{32} << 20;

// One read-only stream to a parameter server.
class Reader {
 public:
  Reader(const ModelSource& source, std::uint32_t server)
      : name_("parameter-server-" + std::to_string(server) + " at " + source.servers[server]),
        stream_(Open(source, server)) {}

  ~Reader() { stream_->Cancel(); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  absl::Status Hello(std::uint64_t job_uid) {
    v1::ExchangeRequest request;
    v1::ExchangeHello& hello = *request.mutable_hello();
    hello.set_format_version(protocol::kExchangeFormatVersion);
    hello.set_job_uid(job_uid);
    hello.set_read_only(true);
    ADAMANT_ASSIGN_OR_RETURN(const rpc::IncomingFrame frame, Call(request));
    if (!reply_.hello().refused().empty()) {
      return absl::FailedPreconditionError(name_ + " refuses: " + reply_.hello().refused());
    }
    return absl::OkStatus();
  }

  // Fetches `shards` into their places in `values`.
  absl::Status Fetch(std::span<const Shard> shards,
                     const ModelSource& source,
                     const ShardLayout& layout,
                     std::span<float> values) {
    v1::ExchangeRequest request;
    request.mutable_fetch()->set_snapshot(source.snapshot);
    for (const Shard& shard : shards) {
      request.mutable_fetch()->add_shards(shard.id);
      if (!source.checksums.empty()) {
        request.mutable_fetch()->add_copies(source.checksums[shard.bucket]);
      }
    }
    ADAMANT_ASSIGN_OR_RETURN(const rpc::IncomingFrame frame, Call(request));
    if (reply_.fetch().values_size() != static_cast<int>(shards.size())) {
      return absl::DataLossError(name_ + " answered for another number of shards");
    }
    rpc::PayloadReader payload(frame);
    for (std::size_t i = 0; i < shards.size(); ++i) {
      const Shard& shard = shards[i];
      const v1::ShardValue& value = reply_.fetch().values(static_cast<int>(i));
      if (value.outcome() != v1::ShardValue::FOUND) {
        const bool later = value.outcome() == v1::ShardValue::NOT_READY ||
                           value.outcome() == v1::ShardValue::NOT_PRIMARY;
        return absl::Status(later ? absl::StatusCode::kUnavailable : absl::StatusCode::kNotFound,
                            name_ + " has no shard " + std::to_string(shard.id) + " of snapshot " +
                                std::to_string(source.snapshot) + ": " +
                                v1::ShardValue::Outcome_Name(value.outcome()));
      }
      if (value.shard() != shard.id || value.elements() != shard.size()) {
        return absl::DataLossError(name_ + " sent a shard " + std::to_string(shard.id) +
                                   " of another size");
      }
      const std::uint64_t begin = layout.OffsetOf(shard.tensor) + shard.begin;
      ADAMANT_RETURN_IF_ERROR(
          payload.Read(std::as_writable_bytes(values.subspan(begin, shard.size()))));
    }
    return absl::OkStatus();
  }

 private:
  static std::unique_ptr<rpc::FrameStream> Open(const ModelSource& source, std::uint32_t server) {
    const auto security = source.security.To(security::Role::kParameterServer, server);
    return rpc::OpenFrameStream(source.servers[server],
                                kExchange,
                                kMaxReplyBytes,
                                {},
                                std::to_string(source.job_uid),
                                security.get());
  }

  // Sends a request; its reply goes into `reply_`, the payload is returned.
  absl::StatusOr<rpc::IncomingFrame> Call(v1::ExchangeRequest& request) {
    request.set_id(++last_id_);
    ADAMANT_RETURN_IF_ERROR(
        Named(stream_->Write({.header = request.SerializeAsString(), .payload = {}})));
    absl::StatusOr<rpc::IncomingFrame> frame = stream_->Read();
    if (!frame.ok()) {
      return Named(frame.status());
    }
    if (!reply_.ParseFromArray(frame->header().data(), static_cast<int>(frame->header().size())) ||
        reply_.id() != last_id_) {
      return absl::DataLossError(name_ + " sent an answer that cannot be read");
    }
    return frame;
  }

  [[nodiscard]] absl::Status Named(const absl::Status& status) const {
    return status.ok() ? status
                       : absl::Status(status.code(), name_ + ": " + std::string(status.message()));
  }

  const std::string name_;
  const std::unique_ptr<rpc::FrameStream> stream_;
  std::uint64_t last_id_ = 0;
  v1::ExchangeReply reply_;
};

}  // namespace

absl::StatusOr<std::vector<float>> FetchModel(const ModelSource& source,
                                              const ShardLayout& layout) {
  if (source.holders.size() < layout.buckets() ||
      (!source.checksums.empty() && source.checksums.size() < layout.buckets())) {
    return absl::DataLossError("too few buckets are named");
  }
  std::map<std::uint32_t, std::vector<Shard>> by_server;
  for (const Shard& shard : layout.shards()) {
    by_server[source.holders[shard.bucket]].push_back(shard);
  }
  std::vector<float> values(layout.elements());
  for (const auto& [server, shards] : by_server) {
    if (server >= source.servers.size() || source.servers[server].empty()) {
      return absl::UnavailableError("parameter-server-" + std::to_string(server) + " is not there");
    }
    Reader reader(source, server);
    ADAMANT_RETURN_IF_ERROR(reader.Hello(source.job_uid));
    for (std::size_t i = 0; i < shards.size(); i += kShardsPerFetch) {
      const std::size_t count = std::min(kShardsPerFetch, shards.size() - i);
      ADAMANT_RETURN_IF_ERROR(
          reader.Fetch(std::span(shards).subspan(i, count), source, layout, values));
    }
  }
  return values;
}

}  // namespace adamant::local
