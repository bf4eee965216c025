#pragma once

#include <nlohmann/json_fwd.hpp>

namespace adamant::v1 {
class TrainingJob;
}  // namespace adamant::v1

namespace adamant::kube {

/// Where the data servers' pods have the claims that hold data: in folders of this one, "train" and
/// "validation" (Welcome.data_root).
inline constexpr char kDataRoot[] = "/inputs";

/// Mounts the claims that the job's data is on into a data server's pod, which cannot write them.
void MountData(const v1::TrainingJob& job, nlohmann::json& pod);

}  // namespace adamant::kube
