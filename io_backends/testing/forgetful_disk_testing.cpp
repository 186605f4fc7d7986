#include "io_backends/testing/forgetful_disk_testing.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace penstock {
namespace {

using Node = ForgetfulDisk::Node;
using Place = ForgetfulDisk::Place;
using Blob = ForgetfulDisk::Blob;
// For each node: how many of its placements after the last sync have reached the disk.
using SurvivingPlacements = std::map<const Node*, size_t>;

const Place& place_of(const Node& node, size_t surviving) {
  return surviving == 0 ? node.on_disk : node.later_places[surviving - 1];
}

// Returns how many placements of this node survive the cut: `wanted`, or a smaller number. Replacing is
// atomic. So if the cut lost the node that replaced this one, this node must still be at its former place.
size_t count_surviving(const Node& node, size_t wanted, const SurvivingPlacements& newer) {
  while (wanted > 0) {
    const Node* by = node.later_places[wanted - 1].replaced_by;
    if (by == nullptr || newer.at(by) > 0 || by->on_disk.folder != nullptr) break;
    --wanted;
  }
  return wanted;
}

// If two nodes have the same place, the later one stays there, and the other moves on to its next placement.
// Returns whether it found such a pair.
bool resolve_one_conflict(SurvivingPlacements& surviving) {
  std::map<std::pair<const Node*, std::string_view>, const Node*> taken;
  for (const auto& [node, index] : surviving) {
    const Place& place = place_of(*node, index);
    if (place.folder == nullptr) continue;
    const auto [there, fresh] = taken.emplace(std::pair(place.folder, std::string_view(place.name)), node);
    if (fresh) continue;
    const Node* other = there->second;
    const bool other_goes = place_of(*other, surviving.at(other)).change_number < place.change_number;
    ++surviving.at(other_goes ? other : node);
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
  if (const Place& current = node.current_place(); current.folder != nullptr)
    current.folder->children.erase(current.name);
  place.change_number = ++placements_;
  if (place.folder != nullptr) place.folder->children.insert_or_assign(place.name, &node);
  node.later_places.push_back(std::move(place));
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
    if (node->current_place().folder == &folder) {
      if (!node->later_places.empty()) node->on_disk = node->later_places.back();
      node->later_places.clear();
    } else {
      std::erase_if(node->later_places, [&](const Place& place) { return place.folder == &folder; });
      if (node->on_disk.folder == &folder) node->on_disk = {};
    }
  }
}

void ForgetfulDisk::apply_cut(SurvivingPlacements surviving) {
  while (resolve_one_conflict(surviving)) {
  }
  for (auto& [number, node] : nodes_) {
    node->on_disk = Place(place_of(*node, surviving.at(node.get())));
    node->on_disk.replaced_by = nullptr;
    node->later_places.clear();
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
  SurvivingPlacements surviving;
  for (auto& [number, node] : nodes_) {
    surviving[node.get()] = 0;
    if (!node->bytes_synced) node->blob = std::make_shared<const std::vector<std::byte>>();
    node->bytes_synced = true;
  }
  apply_cut(std::move(surviving));
}

void ForgetfulDisk::lose_some(const RandomStream& random) {
  SurvivingPlacements surviving;
  // Newer nodes are handled first, because a node that replaces another is newer.
  for (auto item = nodes_.rbegin(); item != nodes_.rend(); ++item) {
    Node& node = *item->second;
    const RandomStream node_random = random.substream(node.number);
    const size_t wanted = node_random.below(0, node.later_places.size() + 1);
    surviving[&node] = count_surviving(node, wanted, surviving);
    if (!node.bytes_synced) node.blob = torn(node.blob, node_random.substream(0));
    node.bytes_synced = true;
  }
  apply_cut(std::move(surviving));
}

uint64_t ForgetfulDisk::bytes() const {
  uint64_t sum = 0;
  for (const auto& [number, node] : nodes_)
    if (node->blob && node->current_place().folder != nullptr) sum += node->blob->size();
  return sum;
}

}  // namespace penstock
