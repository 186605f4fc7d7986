// For tests only: no command has a view.
#include <vector>

#include "results/cells/record_view.hpp"

namespace penstock {

const Registry<RecordView>& view_registry() {
  static const Registry<RecordView> registry{"view", {}, {}};
  return registry;
}

}  // namespace penstock
