#include "api/loader_on_device.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "api/errors.h"
#include "formats/io/status_macros.h"

namespace shardpack::api {
namespace {

using Clock = std::chrono::steady_clock;

absl::Status Stopped() { return absl::CancelledError("the loader was stopped"); }

DeviceTarget TargetOf(const shardpack_target& target) {
  return {.pixels = target.pixels,
          .pixel_bytes = target.pixel_bytes,
          .labels = target.labels,
          .label_bytes = target.label_bytes};
}

// Whether the batch can be copied there.
absl::Status CheckFits(const DeviceTarget& target, const DeviceBatch& batch) {
  const DeviceTensor* const pixels = batch.pixels();
  if (pixels == nullptr) {
    return absl::InvalidArgumentError(
        "a batch of encoded bytes has no fixed size to be copied into a target");
  }
  if (target.labels != nullptr && batch.labels() == nullptr) {
    return absl::InvalidArgumentError(
        "the target has labels, but the loader was opened with no_labels");
  }
  return CheckTarget(target, pixels->bytes(), batch.info().ids.size());
}

// When a wait that begins now is over.
AskAt EndOf(int64_t wait_ms) {
  return wait_ms < 0 ? AskAt::max() : Clock::now() + EndedFlag::LimitedWait(wait_ms);
}

class CopiedBatches final : public DeviceSource {
 public:
  CopiedBatches(DeviceLoader loader, std::shared_ptr<HostMemory> memory)
      : memory_(std::move(memory)), loader_(std::move(loader)) {}

  absl::StatusOr<std::optional<DeviceBatch>> Next(const Interrupted& interrupted,
                                                  AskAt ask_at) override {
    return loader_.Next(interrupted, ask_at);
  }
  Cursor cursor() const override { return loader_.cursor(); }
  std::string StatsJson() const override {
    const DeviceLoaderStats stats = loader_.stats();
    const nlohmann::ordered_json json = {
        {"batches", stats.batches},
        {"uploaded_bytes", stats.uploaded_bytes},
        {"device_bytes", stats.device_bytes},
        {"buffers", stats.buffers},
        {"growths", stats.growths},
        {"waits", stats.waits},
        {"consumer_wait_ns", stats.consumer_wait_ns},
        {"buffer_wait_ns", stats.buffer_wait_ns},
        {"copy_wait_ns", stats.copy_wait_ns},
        {"pinned", stats.pinned},
        {"decoded_by",
         {{"hardware", stats.decode.hardware},
          {"hybrid", stats.decode.hybrid},
          {"cpu", stats.decode.cpu}}},
        {"decoded_by_region", stats.decode.regions},
        {"why_whole_images", stats.decode.why_whole},
        {"skipped_by_engines", stats.decode.skipped},
        {"nvjpeg_bytes", stats.decode.nvjpeg_bytes},
        {"decode_backends", stats.decode_backends},
        {"decode_choice", stats.decode.choice},
        {"decode_threads", stats.decode_threads},
        {"engine_us_an_image", stats.decode.engine_us},
        {"thread_us_an_image", stats.decode.lane_us},
        {"ranks_on_node", stats.ranks},
        {"fallbacks", stats.fallbacks},
        {"why_fallback", stats.why_fallback},
        {"augmentation", stats.host.augmentation},
        {"host", nlohmann::ordered_json::parse(stats.host.ToJson())}};
    return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  }
  std::string Explain() const override {
    const DeviceLoaderStats stats = loader_.stats();
    const auto line = [](const char* what, const std::string& text) {
      return text.empty() ? "" : absl::StrCat(what, text, "\n");
    };
    return absl::StrCat(stats.host.Explain(), line("decoded by ", stats.decode.choice),
                        line("done without the device: ", stats.why_fallback));
  }
  std::vector<BadSample> TakeBadSamples() override { return loader_.TakeBadSamples(); }
  void Stop() override { loader_.Stop(); }

 private:
  const std::shared_ptr<HostMemory> memory_;
  DeviceLoader loader_;
};

class ResidentBatches final : public DeviceSource {
 public:
  explicit ResidentBatches(ResidentLoader loader) : loader_(std::move(loader)) { Note(); }

  absl::StatusOr<std::optional<DeviceBatch>> Next(const Interrupted& interrupted,
                                                  AskAt ask_at) override {
    absl::StatusOr<std::optional<DeviceBatch>> batch = loader_.Next(interrupted, ask_at);
    Note();
    return batch;
  }
  absl::Status EnqueueStep(const DeviceTarget& target, Stream stream) override {
    return loader_.EnqueueStep(target, stream);
  }
  absl::StatusOr<std::optional<BatchInfo>> NextStep(Stream stream, const Interrupted& interrupted,
                                                    AskAt ask_at) override {
    absl::StatusOr<std::optional<BatchInfo>> info = loader_.NextStep(stream, interrupted, ask_at);
    Note();
    return info;
  }
  Cursor cursor() const override {
    const std::lock_guard lock(mutex_);
    return cursor_;
  }
  std::string StatsJson() const override {
    const ResidentStats stats = noted();
    return nlohmann::ordered_json{{"images", stats.images},
                                  {"image_bytes", stats.image_bytes},
                                  {"batches", stats.batches},
                                  {"fill_seconds", stats.fill_seconds},
                                  {"uploaded_bytes", stats.uploaded_bytes}}
        .dump();
  }
  std::string Explain() const override {
    const ResidentStats stats = noted();
    return absl::StrCat(stats.images, " images of ", stats.image_bytes,
                        " bytes in all stay on the device; filled in ", stats.fill_seconds, " s\n");
  }
  std::vector<BadSample> TakeBadSamples() override { return {}; }
  void Stop() override {}  // its Next asks whether it is interrupted

 private:
  // The loader is of one thread.
  void Note() {
    const std::lock_guard lock(mutex_);
    cursor_ = loader_.cursor();
    stats_ = loader_.stats();
  }
  ResidentStats noted() const {
    const std::lock_guard lock(mutex_);
    return stats_;
  }

  ResidentLoader loader_;
  mutable std::mutex mutex_;
  Cursor cursor_;
  ResidentStats stats_;
};

}  // namespace

std::unique_ptr<DeviceSource> SourceOf(DeviceLoader loader, std::shared_ptr<HostMemory> memory) {
  return std::make_unique<CopiedBatches>(std::move(loader), std::move(memory));
}

std::unique_ptr<DeviceSource> SourceOf(ResidentLoader loader) {
  return std::make_unique<ResidentBatches>(std::move(loader));
}

LoaderOnDevice::LoaderOnDevice(DeviceOpener opener, std::shared_ptr<const BatchesOnDevice> common,
                               const Cursor& start)
    : common_(std::move(common)), start_(start) {
  const SignalsBlocked blocked;
  thread_ = std::thread([this, opener = std::move(opener)]() mutable {
    OpenNow(opener);
    opener = nullptr;  // with what it holds
  });
}

LoaderOnDevice::~LoaderOnDevice() {
  Stop();
  thread_.join();
}

void LoaderOnDevice::OpenNow(const DeviceOpener& opener) {
  absl::StatusOr<std::unique_ptr<DeviceSource>> source = absl::UnknownError("");
  try {
    source = opener([this] { return stop_.load(); });
  } catch (...) {
    source = StatusOfException();
  }
  const std::lock_guard lock(mutex_);
  status_ = stop_.load() ? Stopped() : source.status();
  if (source.ok()) source_ = *std::move(source);
  opened_.notify_all();
}

absl::StatusOr<shardpack_code> LoaderOnDevice::Opened(int64_t wait_ms) {
  std::unique_lock lock(mutex_);
  const auto ended = [this] { return status_.has_value(); };
  if (wait_ms < 0) {
    opened_.wait(lock, ended);
  } else if (!opened_.wait_for(lock, EndedFlag::LimitedWait(wait_ms), ended)) {
    return SHARDPACK_WAIT;
  }
  RETURN_IF_ERROR(*status_);
  return SHARDPACK_OK;
}

DeviceSource* LoaderOnDevice::source() const {
  const std::lock_guard lock(mutex_);
  return source_.get();
}

template <typename Value>
absl::StatusOr<std::optional<Value>> LoaderOnDevice::Within(
    int64_t wait_ms, const std::function<absl::StatusOr<Value>(const Interrupted&, AskAt)>& take) {
  const AskAt end = EndOf(wait_ms);
  ASSIGN_OR_RETURN(const shardpack_code opened, Opened(wait_ms));
  if (opened == SHARDPACK_WAIT) return std::nullopt;
  if (stop_.load()) return Stopped();
  bool late = false;
  absl::StatusOr<Value> taken =
      take([&] { return stop_.load() || (late = Clock::now() >= end); }, end);
  if (taken.ok()) return std::optional<Value>(*std::move(taken));
  if (absl::IsCancelled(taken.status()) && stop_.load()) return Stopped();
  if (absl::IsCancelled(taken.status()) && late) return std::nullopt;
  return taken.status();
}

absl::StatusOr<LoaderOnDevice::Fetched> LoaderOnDevice::Fetch(int64_t wait_ms) {
  return Within<std::optional<DeviceBatch>>(
      wait_ms,
      [this](const Interrupted& interrupted,
             AskAt ask_at) -> absl::StatusOr<std::optional<DeviceBatch>> {
        if (!kept_.has_value()) return source()->Next(interrupted, ask_at);
        const std::lock_guard lock(mutex_);
        return std::exchange(kept_, std::nullopt);
      });
}

absl::StatusOr<Taken> LoaderOnDevice::Next(int64_t wait_ms) {
  ASSIGN_OR_RETURN(Fetched fetched, Fetch(wait_ms));
  if (!fetched.has_value()) return Taken{SHARDPACK_WAIT, nullptr};
  if (!fetched->has_value()) return Taken{SHARDPACK_END, nullptr};
  BatchInfo info = (*fetched)->info();
  return Taken{SHARDPACK_OK,
               std::make_shared<BatchOnDevice>(std::move(info), **std::move(fetched), common_)};
}

absl::StatusOr<Taken> LoaderOnDevice::NextInto(int64_t wait_ms, const shardpack_target& target,
                                               Stream stream) {
  RETURN_IF_ERROR(CheckIsStream(stream));
  RETURN_IF_ERROR(CheckNotCapturing(common_->device, stream));
  const Cursor before = *cursor();
  ASSIGN_OR_RETURN(Fetched fetched, Fetch(wait_ms));
  if (!fetched.has_value()) return Taken{SHARDPACK_WAIT, nullptr};
  if (!fetched->has_value()) return Taken{SHARDPACK_END, nullptr};
  DeviceBatch batch = **std::move(fetched);
  if (absl::Status wrong = CheckFits(TargetOf(target), batch); !wrong.ok()) {
    const std::lock_guard lock(mutex_);
    kept_ = std::move(batch);
    before_kept_ = before;
    return wrong;
  }
  Device& device = common_->device;
  absl::Status status = batch.WaitOn(stream);
  if (status.ok())
    status = device.CopyWithin(target.pixels, batch.pixels()->data, target.pixel_bytes, stream);
  if (status.ok() && target.labels != nullptr) {
    status =
        device.CopyWithin(target.labels, batch.labels()->data, batch.labels()->bytes(), stream);
  }
  BatchInfo info = batch.info();
  status.Update(batch.Release(stream));
  RETURN_IF_ERROR(status);
  return Taken{SHARDPACK_OK,
               std::make_shared<BatchOnDevice>(std::move(info), std::nullopt, common_)};
}

absl::Status LoaderOnDevice::EnqueueStep(const shardpack_target& target, Stream stream) {
  RETURN_IF_ERROR(CheckIsStream(stream));
  ASSIGN_OR_RETURN(const shardpack_code opened, Opened(0));
  if (opened == SHARDPACK_WAIT)
    return absl::FailedPreconditionError("the loader is still being opened: wait for that first");
  if (stop_.load()) return Stopped();
  return source()->EnqueueStep(TargetOf(target), stream);
}

absl::StatusOr<Taken> LoaderOnDevice::NextStep(int64_t wait_ms, Stream stream) {
  RETURN_IF_ERROR(CheckIsStream(stream));
  ASSIGN_OR_RETURN(
      std::optional<std::optional<BatchInfo>> info,
      Within<std::optional<BatchInfo>>(wait_ms, [&](const Interrupted& interrupted, AskAt ask_at) {
        return source()->NextStep(stream, interrupted, ask_at);
      }));
  if (!info.has_value()) return Taken{SHARDPACK_WAIT, nullptr};
  if (!info->has_value()) return Taken{SHARDPACK_END, nullptr};
  return Taken{SHARDPACK_OK,
               std::make_shared<BatchOnDevice>(**std::move(info), std::nullopt, common_)};
}

absl::StatusOr<Cursor> LoaderOnDevice::cursor() const {
  const std::lock_guard lock(mutex_);
  if (kept_.has_value()) return before_kept_;
  return source_ == nullptr ? start_ : source_->cursor();
}

absl::StatusOr<std::string> LoaderOnDevice::StatsJson() const {
  const DeviceSource* const opened = source();
  return opened == nullptr ? "{}" : opened->StatsJson();
}

absl::StatusOr<std::string> LoaderOnDevice::Explain() const {
  const DeviceSource* const opened = source();
  return opened == nullptr ? "it is being opened\n" : opened->Explain();
}

std::vector<BadSample> LoaderOnDevice::TakeBadSamples() {
  DeviceSource* const opened = source();
  std::vector<BadSample> taken;
  {
    const std::lock_guard lock(mutex_);
    taken.swap(bad_samples_);
  }
  if (opened == nullptr) return taken;
  for (BadSample& bad : opened->TakeBadSamples()) taken.push_back(std::move(bad));
  return taken;
}

void LoaderOnDevice::SetBadSamples(std::vector<BadSample> before) {
  const std::lock_guard lock(mutex_);
  bad_samples_ = std::move(before);
}

void LoaderOnDevice::Stop() {
  stop_.store(true);
  if (DeviceSource* const opened = source(); opened != nullptr) opened->Stop();
}

}  // namespace shardpack::api
