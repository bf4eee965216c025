#include "operator/kube/volumes/claim_object.h"

#include <nlohmann/json.hpp>

#include "operator/core/state/messages.h"
#include "operator/kube/volumes/claim_size.h"
#include "operator/kube_client/base/json.h"
#include "proto/adamant/v1/job.pb.h"
#include "services/common/job/yaml/scalars.h"

namespace adamant::kube {
namespace {

// `Storage`: v1::Storage or v1::ServerStorage.
template <class Storage>
Json Claim(const JobIdentity& job,
           const std::string& name,
           std::int64_t bytes,
           const Storage& storage) {
  Json claim = {{"metadata", MetadataOf(job, name)},
                {"spec",
                 {{"accessModes", Json::array({"ReadWriteOnce"})},
                  {"resources", {{"requests", {{"storage", job::FormatBytes(bytes)}}}}}}}};
  if (storage.has_storage_class()) {
    claim["spec"]["storageClassName"] = storage.storage_class();
  }
  return claim;
}

}  // namespace

std::string ClaimName(const std::string& job, std::uint32_t slot, std::uint64_t volume) {
  return job + "-" +
         controller::ToString({.role = controller::Role::kParameterServer, .slot = slot}) + "-" +
         std::to_string(volume);
}

Json ClaimObject(const JobIdentity& job,
                 const v1::TrainingJob& spec,
                 std::uint32_t slot,
                 std::uint64_t volume) {
  return Claim(job,
               ClaimName(job.key.name, slot, volume),
               ServerClaimBytes(spec),
               spec.spec().distribution().parameter_servers().storage());
}

std::string OutputClaimName(const std::string& job, const v1::TrainingJob& spec) {
  const v1::Output& output = spec.spec().output();
  return output.has_claim() ? output.claim() : job + "-output";
}

Json OutputClaimObject(const JobIdentity& job, const v1::TrainingJob& spec) {
  const v1::Output& output = spec.spec().output();
  return output.has_claim() ? Json()
                            : Claim(job,
                                    OutputClaimName(job.key.name, spec),
                                    output.storage().size(),
                                    output.storage());
}

}  // namespace adamant::kube
