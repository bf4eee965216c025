#include "tests/bench/servers/servers_here.h"

#include <utility>

#include "services/common/base/check.h"
#include "services/common/base/mutex.h"
#include "services/common/codec/control.h"
#include "services/common/metrics/metrics.h"
#include "services/common/rpc/server.h"
#include "services/common/service/service.h"
#include "services/common/storage/memory_store.h"
#include "services/parameter_server/rpc/controller/cluster_view.h"
#include "services/parameter_server/rpc/controller/core_driver.h"
#include "services/parameter_server/rpc/gate/core_gate.h"
#include "services/parameter_server/rpc/peers/deliver.h"
#include "services/parameter_server/rpc/storage/storage_loop.h"
#include "services/parameter_server/rpc/workers/exchange.h"
#include "tests/bench/servers/bucket_records.h"

namespace adamant::parameter_server {
namespace {

constexpr char kExchangeMethod[] = "/adamant.v1.ParameterServer/Exchange";

}  // namespace

/// Does whatever is proposed.
class ServersHere::Controller final : public service::ControllerLink {
 public:
  void Send(const protocol::MemberMessage& message) override {
    records_.Hear(codec::Encode(message));
  }

  void Fail(const absl::Status& reason, bool /*fatal*/) override {
    ADAMANT_CHECK(false, reason.ToString());
  }

  void FailDiverged(const absl::Status& reason) override { Fail(reason, true); }

  [[nodiscard]] bool stopping() const override { return false; }

  BucketRecords& records() { return records_; }

 private:
  BucketRecords records_;
};

class ServersHere::Node {
 public:
  Node(const ParameterServerOptions& options, Controller& controller)
      : peers_({.job_uid = options.job_uid,
                .self = options.self,
                .on_connected = [this](const ServerId& peer) { core_.OnPeerConnected(peer); }},
               peer_metrics_),
        driver_({.peers = peers_,
                 .controller = controller,
                 .want_storage = [this] { storage_loop_.Want(); }},
                replication_metrics_),
        core_(options, store_, clock_, driver_),
        view_({.core = core_, .peers = peers_, .controller = controller}, replication_metrics_),
        storage_loop_(controller, registry_) {
    exchange_ = Serve(kExchangeMethod, [this](rpc::FrameStream& stream) {
      return ServeExchange(gate_, members_, traffic_metrics_, stream);
    });
    replication_ = Serve(kDeliverMethod, [this](rpc::FrameStream& stream) {
      return ServeDeliver(gate_, members_, peer_metrics_, stream);
    });
    driver_.Start(core_, options.times.beacon / 10);
    storage_loop_.Start(core_, clock_, [this] {
      gate_.Open(core_);
      view_.OnStored();
    });
  }

  ~Node() {
    gate_.Close();
    driver_.Stop();
    peers_.Stop();
    storage_loop_.Stop();
    exchange_->Stop();
    replication_->Stop();
  }

  ClusterView& view() { return view_; }
  [[nodiscard]] const std::string& address() const { return exchange_->address(); }

  [[nodiscard]] v1::Member member() const {
    v1::Member member;
    member.set_role(v1::PARAMETER_SERVER);
    member.set_slot(core_.options().self.slot);
    member.set_incarnation(core_.options().self.incarnation);
    member.set_replication_address(replication_->address());
    return member;
  }

 private:
  static std::unique_ptr<rpc::Server> Serve(const char* method, rpc::FrameHandler handler) {
    auto server = rpc::StartServer({.max_message_bytes = kMaxMessageBatchBytes},
                                   {},
                                   {{.name = method, .handler = std::move(handler)}});
    ADAMANT_CHECK(server.ok(), server.status().ToString());
    return *std::move(server);
  }

  storage::MemoryStore store_;
  SystemClock clock_;
  metrics::Registry registry_;
  const PeerMetrics peer_metrics_{registry_};
  const ReplicationMetrics replication_metrics_{registry_};
  const TrafficMetrics traffic_metrics_{registry_};
  CoreGate gate_;
  const service::MemberGenerations members_;  // none: it does without TLS
  Peers peers_;
  CoreDriver driver_;
  ParameterServer core_;
  ClusterView view_;
  StorageLoop storage_loop_;
  std::unique_ptr<rpc::Server> exchange_;
  std::unique_ptr<rpc::Server> replication_;
};

ServersHere::ServersHere(std::uint32_t servers, const ParameterServerOptions& options)
    : controller_(std::make_unique<Controller>()) {
  BucketRecords& records = controller_->records();
  std::vector<v1::Member> members;
  for (std::uint32_t slot = 0; slot < servers; ++slot) {
    ParameterServerOptions own = options;
    own.self = {.slot = slot, .incarnation = 1};
    nodes_.push_back(std::make_unique<Node>(own, *controller_));
    members.push_back(nodes_.back()->member());
  }
  records.Assign(std::move(members), options.buckets);
  Publish(records.Next());
  records.AwaitReady();
  records.SetCreated();
  Publish(records.Next());
  for (std::uint32_t slot = 1; slot < servers; ++slot) {
    records.SetLearner(slot);
    Publish(records.Next());
    records.AwaitAdded();
    Publish(records.Next());
  }
  version_ = records.Next().buckets(0).epoch();
}

ServersHere::~ServersHere() = default;

const std::string& ServersHere::address() const { return nodes_[0]->address(); }

void ServersHere::Publish(const v1::Membership& membership) {
  for (const auto& node : nodes_) {
    node->view().OnMembership(codec::Decode(membership));
  }
}

}  // namespace adamant::parameter_server
