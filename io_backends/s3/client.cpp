#include "io_backends/s3/client.hpp"

#include <utility>

namespace penstock::s3 {

Client::Lease::Lease(Client& client) : client_(client) {
  {
    const std::lock_guard lock(client.mutex_);
    if (!client.idle_.empty()) {
      transfers_ = std::move(client.idle_.back());
      client.idle_.pop_back();
    }
  }
  if (!transfers_) transfers_ = std::make_unique<Transfers>(client.settings_);
}

Client::Lease::~Lease() {
  if (transfers_->in_flight() > 0 || transfers_->any_done()) return;  // cut off
  const std::lock_guard lock(client_.mutex_);
  client_.idle_.push_back(std::move(transfers_));
}

Result<Answer> Client::perform(Request request) {
  Lease transfers(*this);
  transfers->start(0, std::move(request));
  while (!transfers->any_done()) transfers->drive(true);
  return transfers->next().answer;
}

}  // namespace penstock::s3
