// How many bytes a store's tier can still take: the free bytes, minus the bytes that pending checkpoints have
// reserved and not yet allocated.
//
//   reserved/<pending name>       bytes reserved for the folder of the same name in tmp/
//   taken/<pending name>.<rank>   a note: how many of these bytes the rank has allocated on the tier, so they
//                                 are not free any more
//
// A note is written after the bytes that it counts. So free space is sometimes underestimated, never
// overestimated.
#pragma once

#include <string_view>

#include "miniapps/checkpoint/store.hpp"

namespace penstock {

// Removes the reservation and the notes of a pending checkpoint.
void remove_reservation(const StoreFiles& files, std::string_view pending_name);
// Whether the file `name` in taken/ is a note (see above) of that pending checkpoint.
bool is_note_of(std::string_view name, std::string_view pending_name);

}  // namespace penstock
