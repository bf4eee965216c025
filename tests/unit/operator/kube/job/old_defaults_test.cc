// A job that was begun by an operator with other defaults.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/unit/operator/kube/job/job_reconciler_rig.h"

namespace adamant::kube {
namespace {

class OldDefaultsTest : public JobReconcilerRig {
 protected:
  /// The job's state is as an operator has left it that had one copy by default.
  void ForgetDefaults() {
    const Json patch = {{"data", {{"defaults", nullptr}}}};
    const ObjectKey key{kJob.key.ns, kJob.key.name + "-state"};
    ASSERT_TRUE(client_.Patch(kConfigMaps, key, PatchType::kMerge, patch).ok());
  }

  [[nodiscard]] int Copies() const {
    return control_.job().spec().distribution().parameter_servers().copies();
  }
};

TEST_F(OldDefaultsTest, AJobThatWasBegunWithOneCopyKeepsOne) {
  Lead(Json::object());
  Work();
  EXPECT_EQ(Copies(), 3);
  Lead(Json::object());
  Work();
  EXPECT_EQ(Copies(), 3);
  ForgetDefaults();
  Lead(Json::object());
  Work();
  EXPECT_EQ(Copies(), 1);
}

TEST_F(OldDefaultsTest, CopiesThatTheSpecNamesAreKept) {
  const Json spec = {{"distribution", {{"parameterServers", {{"copies", 2}}}}}};
  Lead(spec);
  Work();
  ForgetDefaults();
  Lead(spec);
  Work();
  EXPECT_EQ(Copies(), 2);
}

}  // namespace
}  // namespace adamant::kube
