#include "io_backends/testing/forgetful_disk_testing.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace penstock {
namespace {

using Node = ForgetfulDisk::Node;
using Place = ForgetfulDisk::Place;
using Blob = ForgetfulDisk::Blob;
// For each node, the number of its placements since the last sync that have reached the disk.
using Chosen = std::map<const Node*, size_t>;

const Place& place_of(const Node& node, size_t chosen) {
  return chosen == 0 ? node.on_disk : node.since[chosen - 1];
}

// Returns `wanted`, the number of placements of this node that survive the cut, or a smaller number: if a cut
// lost the node that replaced this one, this node must still be at its former place, because replacing is
// atomic.
size_t not_replaced_by_nothing(const Node& node, size_t wanted, const Chosen& newer) {
  while (wanted > 0) {
    const Node* by = node.since[wanted - 1].replaced_by;
    if (by == nullptr || newer.at(by) > 0 || by->on_disk.folder != nullptr) break;
    --wanted;
  }
  return wanted;
}

// If two nodes have the same place, the later one stays there, and the other moves on to its next placement.
// Returns whether it found such a pair.
bool resolve_one(Chosen& chosen) {
  std::map<std::pair<const Node*, std::string_view>, const Node*> taken;
  for (const auto& [node, index] : chosen) {
    const Place& place = place_of(*node, index);
    if (place.folder == nullptr) continue;
    const auto [there, fresh] = taken.emplace(std::pair(place.folder, std::string_view(place.name)), node);
    if (fresh) continue;
    const Node* other = there->second;
    const bool other_goes = place_of(*other, chosen.at(other)).when < place.when;
    ++chosen.at(other_goes ? other : node);
    return true;
  }
  return false;
}

Blob torn(const Blob& whole, const RandomStream& random) {
  auto bytes = *whole;
  const size_t part = random.below(1, bytes.size() + 1);
  switch (random.below(0, 5)) {
    case 0:
      break;
    case 1:
      bytes.clear();
      break;
    case 2:
      std::fill(bytes.begin(), bytes.end(), std::byte{0});
      break;
    case 3:
      bytes.resize(part);
      break;
    default:
      std::fill(bytes.begin() + ptrdiff_t(part), bytes.end(), std::byte{0});
  }
  return std::make_shared<const std::vector<std::byte>>(std::move(bytes));
}

// Collects the nodes that can be reached from the root. Others are lost.
void reach(const Node& node, std::set<const Node*>& reached) {
  if (!reached.insert(&node).second) return;
  for (const auto& [name, child] : node.children) reach(*child, reached);
}

}  // namespace

ForgetfulDisk::ForgetfulDisk() {
  nodes_.emplace(0, std::make_unique<Node>());
}

Node* ForgetfulDisk::find(std::string_view name) {
  Node* node = &root();
  while (!name.empty()) {
    const size_t end = std::min(name.find('/'), name.size());
    const auto child = node->children.find(name.substr(0, end));
    if (child == node->children.end()) return nullptr;
    node = child->second;
    name.remove_prefix(std::min(end + 1, name.size()));
  }
  return node;
}

void ForgetfulDisk::put(Node& node, Place place) {
  if (const Place& now = node.now(); now.folder != nullptr) now.folder->children.erase(now.name);
  place.when = ++placements_;
  if (place.folder != nullptr) place.folder->children.insert_or_assign(place.name, &node);
  node.since.push_back(std::move(place));
}

Node& ForgetfulDisk::add(Node& folder, std::string_view name, Blob blob, bool bytes_synced) {
  auto made = std::make_unique<Node>();
  Node& node = *made;
  node.number = ++numbers_;
  node.blob = std::move(blob);
  node.bytes_synced = bytes_synced;
  nodes_.emplace(node.number, std::move(made));
  if (const auto there = folder.children.find(name); there != folder.children.end())
    put(*there->second, {.replaced_by = &node});
  put(node, {.folder = &folder, .name = std::string(name)});
  return node;
}

void ForgetfulDisk::move(Node& node, Node& folder, std::string_view name) {
  put(node, {.folder = &folder, .name = std::string(name)});
}

void ForgetfulDisk::remove(Node& node) {
  put(node, {});
}

void ForgetfulDisk::sync(Node& folder) {
  for (auto& [number, node] : nodes_) {
    if (node->now().folder == &folder) {
      if (!node->since.empty()) node->on_disk = node->since.back();
      node->since.clear();
    } else {
      std::erase_if(node->since, [&](const Place& place) { return place.folder == &folder; });
      if (node->on_disk.folder == &folder) node->on_disk = {};
    }
  }
}

void ForgetfulDisk::settle(Chosen chosen) {
  while (resolve_one(chosen)) {
  }
  for (auto& [number, node] : nodes_) {
    node->on_disk = Place(place_of(*node, chosen.at(node.get())));
    node->on_disk.replaced_by = nullptr;
    node->since.clear();
    node->children.clear();
  }
  for (auto& [number, node] : nodes_)
    if (node->on_disk.folder != nullptr)
      node->on_disk.folder->children.emplace(node->on_disk.name, node.get());
  std::set<const Node*> reached;
  reach(root(), reached);
  std::erase_if(nodes_, [&](const auto& item) { return !reached.contains(item.second.get()); });
}

void ForgetfulDisk::lose_all() {
  Chosen chosen;
  for (auto& [number, node] : nodes_) {
    chosen[node.get()] = 0;
    if (!node->bytes_synced) node->blob = std::make_shared<const std::vector<std::byte>>();
    node->bytes_synced = true;
  }
  settle(std::move(chosen));
}

void ForgetfulDisk::lose_some(const RandomStream& random) {
  Chosen chosen;
  // Newer nodes are handled first, because a node that replaces another is newer.
  for (auto item = nodes_.rbegin(); item != nodes_.rend(); ++item) {
    Node& node = *item->second;
    const RandomStream its_own = random.substream(node.number);
    const size_t wanted = its_own.below(0, node.since.size() + 1);
    chosen[&node] = not_replaced_by_nothing(node, wanted, chosen);
    if (!node.bytes_synced) node.blob = torn(node.blob, its_own.substream(0));
    node.bytes_synced = true;
  }
  settle(std::move(chosen));
}

uint64_t ForgetfulDisk::bytes() const {
  uint64_t sum = 0;
  for (const auto& [number, node] : nodes_)
    if (node->blob && node->now().folder != nullptr) sum += node->blob->size();
  return sum;
}

}  // namespace penstock
