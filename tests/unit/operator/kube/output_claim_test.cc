#include "operator/kube/output_claim.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/unit/operator/kube/job_body_rig.h"

// A model's way out, before it is trained.
namespace adamant::kube {
namespace {

using std::chrono::seconds;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr Resource kStorageClasses{"storage.k8s.io", "v1", "storageclasses", "StorageClass", false};

class OutputClaimTest : public JobBodyRig {
 protected:
  void MakeClaim(const std::string& phase, const std::string& storage_class = "") {
    Json claim = {{"metadata", {{"namespace", kJob.key.ns}, {"name", "out"}}}};
    if (!storage_class.empty()) {
      claim["spec"]["storageClassName"] = storage_class;
    }
    claim = client_.Create(kPersistentVolumeClaims, claim).value();
    claim["status"]["phase"] = phase;
    ASSERT_TRUE(client_.Update(kPersistentVolumeClaims, claim, "status").ok());
  }

  void Change(const Json& spec) {
    ASSERT_TRUE(
        client_
            .Patch(
                kPersistentVolumeClaims, {kJob.key.ns, "out"}, PatchType::kMerge, {{"spec", spec}})
            .ok());
  }

  void MakeClass(const std::string& name, const std::string& mode) {
    ASSERT_TRUE(
        client_
            .Create(kStorageClasses, {{"metadata", {{"name", name}}}, {"volumeBindingMode", mode}})
            .ok());
  }

  [[nodiscard]] std::string Checked() const {
    return std::string(CheckClaim(client_, {kJob.key.ns, "out"}).message());
  }

  void WorkForTenSeconds() {
    for (int i = 0; i < 10; ++i) {
      WorkAfter(seconds(1));
    }
  }

  [[nodiscard]] std::string Message() const {
    return StringAt(client_.Get(kTrainingJobs, kJob.key).value(), {"status", "message"});
  }
};

TEST_F(OutputClaimTest, AClaimWithAVolumeIsFine) {
  MakeClaim("Bound");
  EXPECT_EQ(Checked(), "");
}

TEST_F(OutputClaimTest, AClaimThatCanOnlyBeReadIsNot) {
  MakeClaim("Bound");
  Change({{"accessModes", {"ReadOnlyMany"}}});
  EXPECT_THAT(Checked(), HasSubstr("it can only be read (accessModes: ReadOnlyMany)"));
  Change({{"accessModes", {"ReadOnlyMany", "ReadWriteOnce"}}});
  EXPECT_EQ(Checked(), "");
}

TEST_F(OutputClaimTest, AClaimWithoutAFileSystemIsNot) {
  MakeClaim("Bound");
  Change({{"volumeMode", "Block"}});
  EXPECT_THAT(Checked(), HasSubstr("it is a block device"));
  Change({{"volumeMode", "Filesystem"}});
  EXPECT_EQ(Checked(), "");
}

TEST_F(OutputClaimTest, AClaimWhoseVolumeIsMadeForItsPodIsFine) {
  MakeClass("local", "WaitForFirstConsumer");
  MakeClaim("Pending", "local");
  EXPECT_EQ(Checked(), "");
}

TEST_F(OutputClaimTest, AClaimThatShouldHaveAVolumeByNowIsNot) {
  MakeClass("fast", "Immediate");
  MakeClaim("Pending", "fast");
  EXPECT_THAT(Checked(),
              HasSubstr("it has no volume, and nothing shows that it will get one "
                        "(storage class fast)"));
}

TEST_F(OutputClaimTest, AClaimOfAnUnknownClassWaitsForAVolume) {
  MakeClaim("Pending", "by-hand");
  EXPECT_THAT(Checked(), HasSubstr("(storage class by-hand)"));
}

TEST_F(OutputClaimTest, ALostVolumeIsTold) {
  MakeClaim("Lost");
  EXPECT_EQ(Checked(), "its volume is lost");
}

TEST_F(OutputClaimTest, AJobWhoseOutputClaimIsMissingWaitsBeforeItsFirstPod) {
  Lead({{"output", {{"claim", "out"}}}});
  WorkForTenSeconds();
  EXPECT_THAT(Names(kPods), IsEmpty());
  EXPECT_EQ(Message(),
            "cannot mount claim out: there is no claim out in namespace team; the job begins once "
            "there is");
  MakeClaim("Bound");
  WorkForTenSeconds();
  EXPECT_THAT(Names(kPods), Not(IsEmpty()));
  EXPECT_EQ(Message(), "");
}

TEST_F(OutputClaimTest, AClaimThatTheJobMakesForItsOutputIsThereFromTheStart) {
  Lead(Json::object());
  Work();
  EXPECT_THAT(Names(kPersistentVolumeClaims), Contains("mnist-output"));
}

}  // namespace
}  // namespace adamant::kube
