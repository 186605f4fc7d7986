#include "datagen/format/patchable_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace penstock {
namespace {

class HeldWriter final : public Writer {
 public:
  HeldWriter(std::unique_ptr<Writer> inner, std::string_view name) : inner_(std::move(inner)), name_(name) {}

  using Writer::append;
  Result<void> append(std::span<const std::byte> bytes) override {
    if (bytes.size() > kMostHeldBytes - held_.size())
      return make_error(
          Errc::unsupported,
          fmt::format("'{}' must be written over when it is whole, which its back end cannot, and "
                      "has more than the {} MiB that wait for that in memory: put fewer samples "
                      "into an object",
                      name_, kMostHeldBytes >> 20U));
    held_.insert(held_.end(), bytes.begin(), bytes.end());
    return success();
  }

  Result<void> write_at(std::uint64_t offset, std::span<const std::byte> bytes) override {
    if (offset > held_.size() || bytes.size() > held_.size() - offset)
      return make_error(Errc::internal, fmt::format("a patch behind the end of '{}'", name_));
    std::copy(bytes.begin(), bytes.end(), held_.begin() + static_cast<std::ptrdiff_t>(offset));
    return success();
  }

  Result<void> publish(Durability wanted, IfExists if_exists) override {
    PENSTOCK_TRY(inner_->append(held_));
    return inner_->publish(wanted, if_exists);
  }

 private:
  const std::unique_ptr<Writer> inner_;
  const std::string name_;
  std::vector<std::byte> held_;
};

}  // namespace

Result<std::unique_ptr<Writer>> create_patchable(Backend& backend, std::string_view name,
                                                 std::uint64_t bytes_hint) {
  PENSTOCK_ASSIGN(auto writer, backend.create(name, bytes_hint));
  if (backend.caps().write_at) return writer;
  return std::unique_ptr<Writer>(std::make_unique<HeldWriter>(std::move(writer), name));
}

}  // namespace penstock
