#include "cuda/device/open_device.h"

#include <charconv>
#include <cstdlib>
#include <optional>

#include "absl/strings/str_cat.h"
#include "cuda/device/cuda_device.h"
#include "cuda/device/host_device.h"
#include "formats/io/file.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

std::optional<int> NumberOf(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

absl::StatusOr<Device*> OpenGpuOfThisRank() {
  const char* const rank = std::getenv("LOCAL_RANK");
  const std::optional<int> number = NumberOf(rank == nullptr ? "0" : rank);
  if (!number) {
    return absl::InvalidArgumentError(
        absl::StrCat("LOCAL_RANK is not a number: ", EscapeForTerminal(rank)));
  }
  return OpenCudaDevice(*number);
}

absl::StatusOr<OpenedDevice> OpenAny() {
  const absl::StatusOr<Device*> cuda = OpenGpuOfThisRank();
  if (cuda.ok()) return OpenedDevice{*cuda, ""};
  if (!absl::IsUnavailable(cuda.status()) && !absl::IsUnimplemented(cuda.status()))
    return cuda.status();
  return OpenedDevice{&HostDevice::Get(), std::string(cuda.status().message())};
}

}  // namespace

absl::StatusOr<OpenedDevice> OpenDevice(std::string_view wanted) {
  if (wanted == "auto") return OpenAny();
  if (wanted == "cpu") return OpenedDevice{&HostDevice::Get(), ""};
  if (wanted == "cuda") {
    ASSIGN_OR_RETURN(Device* const cuda, OpenGpuOfThisRank());
    return OpenedDevice{cuda, ""};
  }
  constexpr std::string_view kCuda = "cuda:";
  const std::optional<int> number =
      NumberOf(wanted.substr(0, kCuda.size()) == kCuda ? wanted.substr(kCuda.size()) : wanted);
  if (!number) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a device is a GPU's number (3, or \"cuda:3\"), \"cuda\", \"cpu\" or \"auto\", not \"",
        EscapeForTerminal(wanted), "\""));
  }
  ASSIGN_OR_RETURN(Device* const cuda, OpenCudaDevice(*number));
  return OpenedDevice{cuda, ""};
}

}  // namespace shardpack
