#pragma once

#include <cstdint>
#include <vector>

#include "operator/kube/job/job_observer.h"
#include "proto/adamant/v1/job.pb.h"
#include "proto/adamant/v1/resources.pb.h"

namespace adamant::kube {

/// An observer of jobs that remembers what it is told.
class RecordedJobs final : public JobObserver {
 public:
  struct Report {
    ObjectKey job;
    controller::Phase phase;
    std::uint64_t uid;
    v1::TrainingJobStatus status;
    std::int64_t workers;  ///< of its spec
  };
  struct Note {
    ObjectKey job;
    controller::Note note;
  };

  void OnReport(const ObjectKey& job, const JobStanding& standing) override {
    reports.push_back({.job = job,
                       .phase = standing.report.phase,
                       .uid = standing.state.job_uid,
                       .status = standing.status,
                       .workers = standing.job.spec().distribution().workers()});
  }
  void OnGone(const ObjectKey& job) override { gone.push_back(job); }
  void OnAllGone() override { reports.clear(); }

  std::vector<Report> reports{};
  std::vector<Note> notes{};
  std::vector<ObjectKey> gone{};

 private:
  void OnFailoverPhase(const ObjectKey& /*job*/,
                       const controller::FailoverPhase& /*phase*/) override {}
  void OnPromoted(const ObjectKey& /*job*/, const controller::Promoted& /*promoted*/) override {}
  void OnNote(const ObjectKey& job, const controller::Note& note) override {
    notes.push_back({job, note});
  }
};

}  // namespace adamant::kube
