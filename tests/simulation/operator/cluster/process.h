#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "services/common/base/ids.h"
#include "tests/simulation/operator/cluster/network.h"
#include "tests/unit/operator/core/job/server_model.h"

namespace adamant::orchestration {

/// The content of a claim. One process uses it at a time.
struct Volume {
  controller::ServerDisk disk;
  LifePtr user;
};

/// The parameter servers of a job that run.
using Servers = std::map<controller::ServerId, controller::ServerModel*>;

/// A simple member: joins whoever leads its job, obeys the highest term that it has heard, and
/// answers what it is told after a while.
class Process final : public Peer {
 public:
  struct Settings {
    std::string job;  ///< UID
    controller::SlotId id;
    std::uint64_t generation = 0;
    std::string uid;                   ///< of the pod
    std::shared_ptr<Volume> volume;    ///< of a parameter server
    std::shared_ptr<Servers> servers;  ///< of the job
  };

  /// `exited` is called once, with the exit code, unless Kill was.
  Process(World& world, Network& network, Settings settings, std::function<void(int)> exited);
  ~Process() override { Kill(); }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  /// Ends without a word.
  void Kill();
  [[nodiscard]] bool ended() const { return life_->ended; }

  /// It was told to stop.
  [[nodiscard]] bool dismissed() const { return dismissed_; }

  [[nodiscard]] const LifePtr& life() const override { return life_; }
  void OnMessage(const controller::ControllerMessage& message) override;
  void OnClosed(controller::ConnectionId connection) override;

 private:
  void Connect();
  void Beat();
  void ProposeSometimes();
  void Exit(int code);
  void Answer(controller::MemberMessage message, Clock::Duration after = {});
  void OnWelcome(const controller::Welcome& welcome);
  void OnMembership(const controller::Membership& view);
  void ObeyAsDataServer(const controller::ControllerMessage& message);
  void ObeyAsWorker(const controller::ControllerMessage& message);

  World& world_;
  Network& network_;
  const Settings settings_;
  const std::function<void(int)> exited_;
  const LifePtr life_;

  controller::ConnectionId connection_ = 0;
  std::uint64_t term_ = 0;
  Incarnation incarnation_ = 0;
  bool dismissed_ = false;
  controller::Membership view_;
  std::unique_ptr<controller::ServerModel> server_;
};

}  // namespace adamant::orchestration
