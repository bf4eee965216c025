#include "tests/simulation/operator/cluster/network.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace adamant::orchestration {

using controller::ConnectionId;

Hub::Hub(Network& network) : network_(network) { network_.hubs_.push_back(this); }

Hub::~Hub() {
  Stop();
  std::erase(network_.hubs_, this);
}

void Hub::AddJob(const std::string& job,
                 control::StreamSecurity /*security*/,
                 const v1::TrainingJob& /*spec*/,
                 const std::string& /*data_root*/,
                 Sink sink) {
  jobs_[job] = std::move(sink);
}

void Hub::RemoveJob(const std::string& job) {
  jobs_.erase(job);
  network_.CloseAllOf(*this, job);
}

void Hub::Send(const controller::Send& send) {
  if (!muted_) {
    network_.ToMember(*this, send);
  }
}

void Hub::Close(ConnectionId connection) { network_.CloseByController(connection); }

void Hub::SetReport(const std::string& /*job*/, const controller::JobReport& /*report*/) {}

void Hub::Stop() {
  while (!jobs_.empty()) {
    RemoveJob(std::string(jobs_.begin()->first));
  }
}

bool Hub::Leads(const std::string& job) const { return !muted_ && jobs_.contains(job); }

void Hub::Deliver(const std::string& job, controller::Event event) {
  if (const auto found = jobs_.find(job); found != jobs_.end()) {
    found->second(std::move(event));
  }
}

ConnectionId Network::Connect(const std::string& job, Peer& peer) {
  std::vector<Hub*> leading;
  std::ranges::copy_if(
      hubs_, std::back_inserter(leading), [&](const Hub* hub) { return hub->Leads(job); });
  if (leading.empty()) {
    return 0;
  }
  auto stream = std::make_shared<Stream>();
  stream->id = ++last_;
  stream->hub = leading[world_.scheduler.rng().Below(leading.size())];
  stream->job = job;
  stream->peer = &peer;
  stream->life = peer.life();
  stream->delay = world_.scheduler.Random(milliseconds(1), milliseconds(20));
  streams_[stream->id] = stream;
  return stream->id;
}

Network::StreamPtr Network::Find(ConnectionId connection) const {
  const auto found = streams_.find(connection);
  return found != streams_.end() ? found->second : nullptr;
}

void Network::ToController(ConnectionId connection, controller::MemberMessage message) {
  const StreamPtr stream = Find(connection);
  if (stream == nullptr) {
    return;
  }
  world_.scheduler.After(stream->delay, nullptr, [this, stream, message = std::move(message)] {
    if (streams_.contains(stream->id)) {
      stream->hub->Deliver(stream->job, controller::Received{stream->id, message});
    }
  });
}

void Network::ToMember(Hub& hub, const controller::Send& send) {
  const StreamPtr stream = Find(send.connection);
  if (stream == nullptr || stream->hub != &hub) {
    return;
  }
  world_.scheduler.After(stream->delay, stream->life, [stream, message = send.message] {
    stream->peer->OnMessage(message);
  });
}

void Network::CloseByMember(ConnectionId connection) {
  const StreamPtr stream = Find(connection);
  if (stream == nullptr) {
    return;
  }
  world_.scheduler.After(stream->delay, nullptr, [this, stream] {
    if (streams_.erase(stream->id) > 0) {
      stream->hub->Deliver(stream->job, controller::Disconnected{stream->id});
    }
  });
}

void Network::TellMember(const StreamPtr& stream) {
  world_.scheduler.After(
      stream->delay, stream->life, [stream] { stream->peer->OnClosed(stream->id); });
}

void Network::CloseByController(ConnectionId connection) {
  if (const StreamPtr stream = Find(connection)) {
    streams_.erase(connection);
    TellMember(stream);
  }
}

void Network::CloseAllOf(Hub& hub, const std::string& job) {
  std::vector<ConnectionId> closed;
  for (const auto& [id, stream] : streams_) {
    if (stream->hub == &hub && stream->job == job) {
      closed.push_back(id);
    }
  }
  for (const ConnectionId id : closed) {
    CloseByController(id);
  }
}

void Network::BreakOne() {
  if (streams_.empty()) {
    return;
  }
  const auto victim = std::next(
      streams_.begin(), static_cast<std::ptrdiff_t>(world_.scheduler.rng().Below(streams_.size())));
  const StreamPtr stream = victim->second;
  CloseByMember(stream->id);
  TellMember(stream);
}

}  // namespace adamant::orchestration
