#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "operator/control/control_server.h"
#include "tests/simulation/operator/world/world.h"

namespace adamant::orchestration {

/// A member's end of control streams.
class Peer {
 public:
  virtual ~Peer() = default;
  virtual void OnMessage(const controller::ControllerMessage& message) = 0;
  virtual void OnClosed(controller::ConnectionId connection) = 0;
  [[nodiscard]] virtual const LifePtr& life() const = 0;
};

class Network;

/// The control server of one operator.
class Hub final : public control::ControlServer {
 public:
  explicit Hub(Network& network);
  ~Hub() override;
  Hub(const Hub&) = delete;
  Hub& operator=(const Hub&) = delete;

  [[nodiscard]] const std::string& address() const override { return address_; }
  absl::Status Listen(const control::SecuredListener& /*listener*/) override {
    return absl::OkStatus();
  }
  [[nodiscard]] std::string secured_address() const override { return ""; }
  void AddJob(const std::string& job,
              control::StreamSecurity security,
              const v1::TrainingJob& spec,
              const std::string& data_root,
              Sink sink) override;
  void RemoveJob(const std::string& job) override;
  void Send(const controller::Send& send) override;
  void Close(controller::ConnectionId connection) override;
  void SetReport(const std::string& job, const controller::JobReport& report) override;
  void Stop() override;

  /// The operator's process is dead: what its code still says is not heard.
  void Mute() { muted_ = true; }

  [[nodiscard]] bool Leads(const std::string& job) const;
  void Deliver(const std::string& job, controller::Event event);

 private:
  Network& network_;
  const std::string address_ = "simulated";
  std::map<std::string, Sink> jobs_;
  bool muted_ = false;
};

/// Control streams between members and operators. Each keeps its order and has its own delay.
class Network {
 public:
  explicit Network(World& world) : world_(world) {}

  /// A stream to one of the operators that lead the job; 0: there is none.
  controller::ConnectionId Connect(const std::string& job, Peer& peer);

  void ToController(controller::ConnectionId connection, controller::MemberMessage message);
  void ToMember(Hub& hub, const controller::Send& send);

  /// One end closes the stream, or it breaks; the other end learns of it later.
  void CloseByMember(controller::ConnectionId connection);
  void CloseByController(controller::ConnectionId connection);
  void CloseAllOf(Hub& hub, const std::string& job);

  /// Breaks some stream.
  void BreakOne();

 private:
  friend class Hub;
  struct Stream {
    controller::ConnectionId id = 0;
    Hub* hub = nullptr;
    std::string job;
    Peer* peer = nullptr;
    LifePtr life;  // of the member
    Clock::Duration delay{};
  };
  using StreamPtr = std::shared_ptr<Stream>;

  [[nodiscard]] StreamPtr Find(controller::ConnectionId connection) const;
  void TellMember(const StreamPtr& stream);

  World& world_;
  std::vector<Hub*> hubs_;  // in order of their making: an order by address would not replay
  std::map<controller::ConnectionId, StreamPtr> streams_;  // open ones
  controller::ConnectionId last_ = 0;
};

}  // namespace adamant::orchestration
