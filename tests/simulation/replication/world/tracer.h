#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "operator/core/state/messages.h"
#include "services/common/base/ids.h"
#include "services/parameter_server/core/replication/messages.h"

namespace adamant::replication_simulation {

/// Writes what happens to one bucket on three servers as a trace of the replication model
/// (docs/design/0013-replication-model.md). Keeps what of the model's state says whether a step is
/// one: what is without effect in the model has no line, and what the model has no words for makes
/// the trace useless. Threads: one.
class Tracer {
 public:
  using Slot = std::uint32_t;

  /// The trace so far; empty while the bucket has not been served.
  [[nodiscard]] const std::string& text() const { return text_; }

  /// Something happened that is not in the model, or the trace is as long as it may be.
  [[nodiscard]] bool useless() const { return useless_; }
  [[nodiscard]] bool full() const;
  [[nodiscard]] std::size_t steps() const { return steps_; }

  // --- One update

  void Appends(Slot primary, const std::string& update, parameter_server::Lsn lsn);
  void Acknowledges(Slot slot,
                    ConfigurationVersion configuration_version,
                    parameter_server::Lsn lsn);
  void Commits(Slot slot, bool as_primary, parameter_server::Lsn lsn);
  void Answers(Slot primary, const std::string& update);
  void Reads(Slot primary, ConfigurationVersion configuration_version);

  // --- Leases

  void Promises(Slot slot, Slot primary, ConfigurationVersion configuration_version);
  void Proposes(Slot slot);
  void Releases(Slot primary, ConfigurationVersion configuration_version);

  // --- Records

  void RecordIs(const controller::Configuration& record,
                const std::vector<controller::ServerId>& dead);
  void Adopts(Slot slot, const parameter_server::Configuration& configuration);

  // --- Learners and deaths

  void Copies(Slot primary,
              Slot learner,
              ConfigurationVersion configuration_version,
              parameter_server::Lsn base);
  void TurnsJoint(Slot primary);
  void GivesUp(Slot primary);
  void Crashes(Slot slot);

 private:
  using Lsn = parameter_server::Lsn;

  static constexpr std::size_t kServers = 3;

  struct Server {
    bool fresh = true;
    bool primary = false;
    bool promised = false;
    ConfigurationVersion configuration_version = 0;
    ConfigurationVersion proposed = 0;  // of a change of the record of which it has not heard
    ConfigurationVersion learner_of = 0;
    std::set<Slot> replicas;
    std::optional<Slot> copying;
    std::optional<Slot> joint;
    Lsn committed = 0;  // in the model
    Lsn applied = 0;    // in truth
    Lsn copied = 0;     // up to here the copy under way has it
  };
  struct Known {  // of a configuration
    Lsn base = 0;
    Lsn announced = 0;
    bool begun = false;  // its primary has heard of it
    bool handed_over = false;
    bool proved = false;
    std::set<Slot> replicas;
    std::map<Slot, Lsn> acked;
  };

  void Line(const std::string& line);
  void Start(const controller::Configuration& record);
  void CatchUp(Slot slot);
  void Outcome(Slot slot);
  void Abandon(Slot slot);
  void TellChange(const controller::Configuration& record);
  void TellDeaths(const std::vector<controller::ServerId>& dead);
  [[nodiscard]] Lsn AckedOrBase(Slot slot, ConfigurationVersion configuration_version);
  [[nodiscard]] static std::string Name(Slot slot) { return "s" + std::to_string(slot); }
  [[nodiscard]] static std::set<Slot> SlotsOf(const controller::Configuration& record);

  std::string text_;
  bool useless_ = false;
  std::size_t steps_ = 0;
  controller::Configuration record_;
  ConfigurationVersion first_epoch_ = 0;
  ConfigurationVersion generation_ = 0;  // configuration of the last recovery
  Lsn longest_ = 0;
  std::vector<Server> servers_ = std::vector<Server>(kServers);
  std::map<ConfigurationVersion, Known> epochs_;
  std::set<std::string> updates_;  // since the last recovery
  std::size_t all_updates_ = 0;
};

}  // namespace adamant::replication_simulation
