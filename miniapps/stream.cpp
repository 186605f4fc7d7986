// Only reads and batches: measures what the tier and the loader deliver without any further work.
#include "miniapps/pipeline/transform.hpp"
#include "miniapps/train/miniapp.hpp"

namespace penstock {
namespace {

Result<Transform> make_stream(const TrainRequest&) {
  return leave_as_stored();
}

}  // namespace

extern const MiniAppInfo miniapp_stream;
const MiniAppInfo miniapp_stream{
    .name = "stream",
    .summary = "reads samples of any kind in N threads and batches them as stored: no decoding, no copies",
    .options = {},
    .reproduces = "STREAM of Chien et al., tf-Darshan, CLUSTER 2020: read and batch small and large files",
    .codec = "",
    .defaults = {.batch = 128, .prefetch = 10},
    .make = make_stream};

}  // namespace penstock
