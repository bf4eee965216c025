#include "operator/cli/warnings/machine_warning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "proto/adamant/v1/job.pb.h"

namespace adamant::cli {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

v1::TrainingJob Job(int workers, int servers, int data_servers) {
  v1::TrainingJob job;
  v1::Distribution& distribution = *job.mutable_spec()->mutable_distribution();
  distribution.set_workers(workers);
  distribution.mutable_parameter_servers()->set_count(servers);
  distribution.set_data_servers(data_servers);
  return job;
}

TEST(MachineWarningTest, FarMoreProcessesThanProcessorsAreWarnedOf) {
  EXPECT_EQ(MachineWarning(Job(2, 3, 1), 1), "");
  EXPECT_EQ(MachineWarning(Job(16, 8, 8), 2), "");
  EXPECT_THAT(MachineWarning(Job(2, 3, 256), 2),
              StartsWith("spec.distribution.dataServers: 261 processes (2 workers, 3 parameter "
                         "servers, 256 data servers) are more than the 2 processors of this "
                         "machine can serve: "));
  EXPECT_THAT(MachineWarning(Job(1024, 3, 1), 16), StartsWith("spec.distribution.workers: 1028"));
  EXPECT_THAT(MachineWarning(Job(2, 400, 1), 1),
              StartsWith("spec.distribution.parameterServers.count: 403 processes"));
  EXPECT_THAT(MachineWarning(Job(1, 1, 256), 2),
              HasSubstr("258 processes (1 worker, 1 parameter server, 256 data servers)"));
  EXPECT_EQ(MachineWarning(Job(2, 3, 256), 64), "");
}

TEST(MachineWarningTest, WhereProcessesEndedTooOftenTheirNumberMayBeWhy) {
  EXPECT_EQ(CrowdText(Job(1, 30, 1), 2),
            "32 processes share 2 processors, which may be why: try fewer parameter servers, "
            "workers or data servers");
  EXPECT_EQ(CrowdText(Job(4, 3, 1), 2), "");
  EXPECT_THAT(CrowdText(Job(1, 3, 1), 1), HasSubstr("5 processes share 1 processor,"));
  v1::TrainingJob job = Job(1, 30, 1);
  job.mutable_spec()->mutable_pods();
  EXPECT_EQ(CrowdText(job, 2), "");
}

TEST(MachineWarningTest, AJobForAClusterIsNotJudgedByThisMachine) {
  v1::TrainingJob job = Job(2, 3, 256);
  job.mutable_spec()->mutable_pods();
  EXPECT_EQ(MachineWarning(job, 2), "");
  job = Job(2, 3, 256);
  job.mutable_spec()->mutable_data()->mutable_train()->mutable_idx()->set_claim("mnist");
  EXPECT_EQ(MachineWarning(job, 2), "");
}

}  // namespace
}  // namespace adamant::cli
