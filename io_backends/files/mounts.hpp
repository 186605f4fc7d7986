// Where things are mounted on this machine.
#pragma once

#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

namespace penstock {

struct TierFacts;

// From the text of a mountinfo (/proc/self/mountinfo), in its order.
std::vector<std::string> mount_points(std::istream& mountinfo);

// Whether files of this type ("proc", "sysfs", "cgroup2", "devtmpfs", ...) are what the kernel says of
// itself, and no storage. "tmpfs" holds files.
bool is_pseudo_file_system(std::string_view fs_type);

// Whether it is known that no server is behind the tier: memory, or a file system that lies on a device of
// this machine. Of a network, of FUSE but for a few, of an overlay, whose layers may lie anywhere, and of a
// type that is not known here it is not.
bool lies_on_this_machine(const TierFacts& facts);

}  // namespace penstock
