#pragma once

#include <nlohmann/json_fwd.hpp>

namespace adamant::job {
class Comments;
}

// The CustomResourceDefinitions of helm/adamant, made from job.proto and resources.proto.
namespace adamant::kube {

nlohmann::ordered_json TrainingJobDefinition(const job::Comments& comments);

nlohmann::ordered_json ShardMapDefinition(const job::Comments& comments);

}  // namespace adamant::kube
