// Reads TrainingJobs as the operator does, for crd_test.py: an object as JSON on each line of the
// input, and for each a line of the output: {"problems": ["PATH: MESSAGE", ...]} or
// {"manifest": "..."}, which has every default.

#include <exception>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "operator/kube/schema/job_object.h"
#include "proto/adamant/v1/job.pb.h"

namespace adamant::kube {
namespace {

using nlohmann::json;

json Told(const std::string& line) {
  const job::ParseResult result = ReadJob(json::parse(line, nullptr, false));
  json told = json::object();
  if (result.job != nullptr) {
    told["manifest"] = job::ToYaml(*result.job);
  }
  for (const job::Diagnostic& problem : result.problems) {
    told["problems"].push_back(job::Format(problem).substr(2));  // after ": "
  }
  return told;
}

}  // namespace
}  // namespace adamant::kube

int main() {
  try {
    for (std::string line; std::getline(std::cin, line);) {
      std::cout << adamant::kube::Told(line).dump() << "\n" << std::flush;
    }
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
  return 0;
}
