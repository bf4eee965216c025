#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "operator/core/state/state.h"
#include "operator/kube/api/custom_resources.h"
#include "operator/kube/storage/epoch_objects.h"
#include "operator/kube/storage/kube_state_store.h"
#include "operator/kube_client/api/client.h"
#include "operator/kube_client/base/base64.h"
#include "services/common/base/ids.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/kube/fake_sleeper.h"
#include "tests/fakes/kube/memory_api_server.h"
#include "tests/unit/operator/kube/job/job_fixture.h"

namespace adamant::kube {

/// A state whose configurations all have this version.
inline controller::JobState StateWith(std::uint64_t term,
                                      std::size_t buckets,
                                      ConfigurationVersion version = 1) {
  controller::JobState state;
  state.job_uid = 42;
  state.term = term;
  for (std::size_t i = 0; i < buckets; ++i) {
    const controller::ServerId server{.slot = static_cast<std::uint32_t>(i % 3), .incarnation = 1};
    state.buckets.push_back({.version = version, .primary = server, .replicas = {server}});
    state.histories.push_back({.updates = i});
  }
  return state;
}

/// Controllers whose states are in a Kubernetes API in memory.
class StateStoreRig : public testing::Test {
 protected:
  using Entries = std::vector<controller::Persist::Entry>;
  using Fault = MemoryApiServer::Fault;

  [[nodiscard]] Client NewClient() {
    return Client(server_, clock_, sleeper_, {.rate = 1e6, .burst = 1e6}).WithoutRetries();
  }

  [[nodiscard]] KubeStateStore NewStore(const std::string& writer, const JobIdentity& job = kJob) {
    return {NewClient(), job, writer};
  }

  static Entries Stored(const controller::JobState& state) {
    return {{controller::kStateKey, Encode(state)}};
  }

  static controller::JobState StateIn(const controller::StateStore::Snapshot& snapshot) {
    const auto found = snapshot.entries.find(controller::kStateKey);
    if (found == snapshot.entries.end()) {
      ADD_FAILURE() << "there is no state";
      return {};
    }
    const auto state = controller::DecodeState(found->second);
    EXPECT_TRUE(state.ok()) << state.status();
    return state.value_or(controller::JobState{});
  }

  /// What a new controller finds.
  controller::StateStore::Snapshot Reload() {
    const auto snapshot = NewStore("reader").Load();
    EXPECT_TRUE(snapshot.ok()) << snapshot.status();
    return snapshot.value_or(controller::StateStore::Snapshot{});
  }

  /// Makes the `index`th write from now, counted from 0, go wrong.
  void FailWrite(std::size_t index, Fault fault) {
    server_.SetFaults([this, index, fault, seen = std::size_t{0}](const HttpRequest& r) mutable {
      const bool hit = r.method != "GET" && seen++ == index;
      failed_ = failed_ || hit;
      return hit ? fault : Fault::kNone;
    });
    failed_ = false;
  }

  using Rows = std::map<DataEpoch, std::string>;

  static controller::Persist::Entry Row(DataEpoch epoch, const std::string& bytes) {
    return {controller::kResultPrefix + std::to_string(epoch), bytes};
  }

  [[nodiscard]] std::vector<Json> EpochObjectsThere() {
    auto objects = NewClient().List(kConfigMaps, {.ns = kJob.key.ns}).value_or(std::vector<Json>());
    std::erase_if(objects, [](const Json& object) {
      return !KeyOf(object).name.starts_with(kJob.key.name + "-epochs-");
    });
    return objects;
  }

  /// The results of all epochs, as a pod finds them.
  Rows StoredRows() {
    Rows rows;
    for (const Json& object : EpochObjectsThere()) {
      const Json entries = object.value("binaryData", Json::object());
      for (const auto& [name, value] : entries.items()) {
        const std::string epoch = name.substr(std::string_view(kEpochEntryPrefix).size());
        rows[std::stoull(epoch)] = DecodeBase64(value.get<std::string>()).value_or("damaged");
      }
    }
    return rows;
  }

  /// resourceVersions of the ShardMaps.
  std::vector<std::string> MapVersions() {
    std::vector<std::string> versions;
    const auto maps = NewClient().List(kShardMaps, {.ns = kJob.key.ns});
    EXPECT_TRUE(maps.ok()) << maps.status();
    for (const Json& map : maps.value_or(std::vector<Json>())) {
      versions.push_back(ResourceVersionOf(map));
    }
    return versions;
  }

  FakeClock clock_;
  FakeSleeper sleeper_{clock_};
  MemoryApiServer server_{clock_};
  bool failed_ = false;  // a write has gone wrong as asked
};

}  // namespace adamant::kube
