#pragma once

#include <cstdint>
#include <string>

namespace adamant {

/// One attempt of a job's training. A job that goes back begins another, with processes of its own:
/// whoever is left of the one before must reach nobody.
struct JobAttempt {
  std::uint64_t job_uid = 0;
  std::uint64_t attempt = 1;
};

/// The attempt that a message names; programs from before there were attempts say 0.
inline std::uint64_t AttemptOf(std::uint64_t said) { return said == 0 ? 1 : said; }

/// Returns why a server of one job and attempt refuses the client of another; "" if they are the
/// same. Does not tell who asks which job the server is of: that is all that a stranger would need
/// to be let in.
inline std::string WhyRefused(const JobAttempt& server, const JobAttempt& client) {
  if (client.job_uid != server.job_uid) {
    return "this server is not of the client's job, " + std::to_string(client.job_uid);
  }
  if (client.attempt != server.attempt) {
    return "this server belongs to attempt " + std::to_string(server.attempt) +
           " of the job, the client to attempt " + std::to_string(client.attempt);
  }
  return "";
}

}  // namespace adamant
