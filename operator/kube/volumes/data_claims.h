#pragma once

#include <nlohmann/json_fwd.hpp>

namespace adamant::v1 {
class TrainingJob;
}  // namespace adamant::v1

namespace adamant::kube {

/// Folder where the data servers' pods have the claims that hold data: in its folders "train" and
/// "validation" (Welcome.data_root).
inline constexpr char kDataRoot[] = "/inputs";

/// Mounts the claims that the job's data is on into a data server's pod. They cannot be written,
/// and Kubernetes changes no owners on them: other jobs may read them at the same time. A claim
/// with both sets is one volume, because before Kubernetes 1.35 a pod that has two volumes of one
/// claim never starts.
void MountData(const v1::TrainingJob& job, nlohmann::json& pod);

}  // namespace adamant::kube
