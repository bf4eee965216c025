#include "services/parameter_server/rpc/peers/peers.h"

#include <atomic>
#include <utility>
#include <vector>

#include "proto/adamant/v1/replication.pb.h"
#include "services/common/codec/buckets.h"
#include "services/common/protocol/format_versions.h"
#include "services/common/rpc/frame.h"
#include "services/common/security/peer_identity.h"
#include "services/parameter_server/rpc/peers/peer_stream.h"

namespace adamant::parameter_server {
namespace {

// Of answers to hellos.
constexpr std::uint64_t kMaxReplyBytes = std::uint64_t{1} << 20;

// A lease must outlast a connection that breaks and is made anew.
constexpr rpc::Liveness kLiveness{.connect = std::chrono::milliseconds(750),
                                  .ask_after = std::chrono::milliseconds(1000),
                                  .give_up_after = std::chrono::milliseconds(2000)};

std::string Hello(std::uint64_t job_uid, const ServerId& from, const ServerId& to) {
  v1::ReplicationHello hello;
  hello.set_format_version(protocol::kPeerFormatVersion);
  hello.set_job_uid(job_uid);
  codec::Encode(from, *hello.mutable_from());
  codec::Encode(to, *hello.mutable_to());
  return hello.SerializeAsString();
}

std::string NameOf(const char* kind, const ServerId& to) {
  return std::string(kind) + " to parameter-server-" + std::to_string(to.slot) + "#" +
         std::to_string(to.incarnation);
}

}  // namespace

// Both ways to one peer.
class Peers::Link {
 public:
  Link(const Options& options, const ServerId& to, std::string address, const PeerMetrics& metrics)
      : options_(options),
        to_(to),
        address_(std::move(address)),
        bulk_(StreamOptions("bulk", bulk_opened_), metrics),
        control_(StreamOptions("control", control_opened_), metrics) {}

  [[nodiscard]] const std::string& address() const { return address_; }

  void Send(PeerMessage message) {
    PeerStream& stream = message.bulk() ? bulk_ : control_;
    stream.Send(std::move(message));
  }

  void Stop() {
    bulk_.Stop();
    control_.Stop();
  }

 private:
  PeerStream::Options StreamOptions(const char* kind, std::atomic<bool>& opened) {
    return {.name = NameOf(kind, to_),
            .hello = Hello(options_.job_uid, options_.self, to_),
            .connect =
                [this] {
                  const auto security =
                      options_.security.To(security::Role::kParameterServer, to_.slot);
                  return rpc::OpenFrameStream(address_,
                                              kDeliverMethod,
                                              kMaxReplyBytes,
                                              kLiveness,
                                              std::to_string(options_.job_uid),
                                              security.get());
                },
            .on_open =
                [this, &opened] {
                  opened = true;
                  if (bulk_opened_ && control_opened_) {
                    options_.on_connected(to_);
                  }
                }};
  }

  const Options& options_;
  const ServerId to_;
  const std::string address_;
  std::atomic<bool> bulk_opened_ = false;  // once
  std::atomic<bool> control_opened_ = false;
  PeerStream bulk_;  // last: their threads use the others
  PeerStream control_;
};

Peers::Peers(Options options, const PeerMetrics& metrics)
    : options_(std::move(options)), metrics_(metrics) {}

Peers::~Peers() { Stop(); }

void Peers::Set(const PeerAddresses& addresses) {
  std::vector<std::unique_ptr<Link>>
      gone;  // closed without the lock: their threads may wait for it
  const MutexLock lock(mutex_);
  for (auto link = links_.begin(); link != links_.end();) {
    const auto wanted = addresses.find(link->first);
    if (wanted == addresses.end() || wanted->second != link->second->address()) {
      link->second->Stop();
      gone.push_back(std::move(link->second));
      link = links_.erase(link);
    } else {
      ++link;
    }
  }
  for (const auto& [server, address] : addresses) {
    if (!links_.contains(server)) {
      links_.emplace(server, std::make_unique<Link>(options_, server, address, metrics_));
    }
  }
}

void Peers::Send(const ServerId& to, PeerMessage message) {
  const MutexLock lock(mutex_);
  if (const auto link = links_.find(to); link != links_.end()) {
    link->second->Send(std::move(message));
  }
}

void Peers::Stop() { Set({}); }

}  // namespace adamant::parameter_server
