#include "augment/own_operation.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <exception>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "augment/shardpack_op.h"
#include "formats/io/bytes.h"
#include "formats/io/file.h"
#include "formats/io/hash.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

constexpr uint64_t kMostPluginBytes = uint64_t{1} << 30;

using ErrorText = std::array<char, SHARDPACK_OP_ERROR_BYTES>;

// What stands up to the first zero byte, if one stands there.
std::string TextOf(const ErrorText& error) {
  return std::string(error.begin(), std::find(error.begin(), error.end(), '\0'));
}

// Calls into code of others, which may throw.
template <typename Call>
absl::Status Guarded(const Call& call) {
  try {
    return call();
  } catch (const std::exception& error) {
    return absl::DataLossError(absl::StrCat("an exception: ", error.what()));
  } catch (...) {
    return absl::DataLossError("an exception that is not a std::exception");
  }
}

OwnFunction FunctionOf(shardpack_op_run run, std::shared_ptr<void> self) {
  return [run, self = std::move(self)](const EditablePixels& image, const SampleIdentity& sample,
                                       uint64_t random) -> absl::Status {
    const uint64_t identity[] = {sample.seed, sample.epoch, sample.id, sample.view};
    ErrorText error = {};
    const int32_t code = run(self.get(), image.pixels, image.width, image.height, image.channels,
                             image.stride_bytes, identity, random, error.data());
    if (code == 0) return absl::OkStatus();
    const std::string why = TextOf(error);
    return absl::DataLossError(why.empty() ? absl::StrCat("it returned ", code) : why);
  };
}

bool IsWord(std::string_view name) {
  const auto is_part = [](char c) {
    return c == '_' || absl::ascii_isalnum(static_cast<unsigned char>(c));
  };
  return !name.empty() && name.size() <= 64 && !absl::ascii_isdigit(name[0]) &&
         std::all_of(name.begin(), name.end(), is_part);
}

absl::StatusOr<std::shared_ptr<void>> MadeBy(const shardpack_op& op, const std::string& path,
                                             std::string_view parameters) {
  void* self = nullptr;
  ErrorText error = {};
  if (op.make != nullptr) {
    const absl::Status made = Guarded([&] {
      self = op.make(std::string(parameters).c_str(), error.data());
      return absl::OkStatus();
    });
    if (!made.ok()) {
      return absl::FailedPreconditionError(absl::StrCat(
          EscapeForTerminal(path), ": its make has thrown ", std::string(made.message())));
    }
  }
  if (self == nullptr && error[0] != '\0') {
    return absl::InvalidArgumentError(
        absl::StrCat(EscapeForTerminal(path), " refuses the parameters ",
                     EscapeForTerminal(parameters), ": ", TextOf(error)));
  }
  return std::shared_ptr<void>(self, [release = op.release](void* made) {
    if (made != nullptr && release != nullptr) release(made);
  });
}

// Whether this is the file whose code the process has. dlopen returns a library that is loaded
// already for a path that it knows and for a file that it knows, whatever is there by now: so it is
// asked which library that is, and what this one's file hashed to when it was first loaded decides.
absl::Status CheckUnchanged(const void* library, const std::string& path, const std::string& hash) {
  static std::mutex mutex;
  // Never destroyed: libraries are never unloaded.
  static auto& hashes = *new std::unordered_map<const void*, std::string>;
  const std::lock_guard lock(mutex);
  if (hashes.try_emplace(library, hash).first->second == hash) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(EscapeForTerminal(path),
                   " has changed since this process loaded it, and what is loaded stays: use the "
                   "new plug-in in a new process, or under another name"));
}

}  // namespace

absl::Status CheckOwnOperation(const OwnOperation& operation) {
  if (!IsWord(operation.name)) {
    return absl::InvalidArgumentError(
        absl::StrCat("an operation is named by a word of letters, digits and _, and not ",
                     EscapeForTerminal(operation.name)));
  }
  // A cursor notes the version of OpenCV under this name.
  if (operation.name == "opencv") {
    return absl::InvalidArgumentError(
        "opencv is the name of the library's own operations; choose another name");
  }
  if (operation.run) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(operation.name, " has no function"));
}

absl::StatusOr<OwnOperation> OpenPlugin(const std::string& path, std::string_view parameters) {
  const auto refused = [&](std::string_view why) {
    return absl::FailedPreconditionError(
        absl::StrCat(EscapeForTerminal(path), " is not a plug-in: ", std::string(why)));
  };
  // Not what LD_LIBRARY_PATH may have under this name: that which is hashed.
  const std::string file = path.find('/') == std::string::npos ? "./" + path : path;
  ASSIGN_OR_RETURN(const std::string bytes, ReadWholeFile(file, kMostPluginBytes));
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) return refused(dlerror());
  const std::string hash = Xxh3_128(AsBytes(bytes)).ToHex();
  RETURN_IF_ERROR(CheckUnchanged(library, path, hash));
  // What is loaded stays.
  const std::string again = "; a new build needs a new process, or another name";
  const auto* const op = static_cast<const shardpack_op*>(dlsym(library, "shardpack_op_v1"));
  if (op == nullptr) return refused("it exports no shardpack_op_v1" + again);
  if (op->abi != SHARDPACK_OP_ABI) {
    return absl::UnimplementedError(absl::StrCat(
        EscapeForTerminal(path), " is a plug-in of another version: its shardpack_op_v1 has ABI ",
        op->abi, ", and this library ", SHARDPACK_OP_ABI, again));
  }
  if (op->name == nullptr || !IsWord(op->name)) return refused("its name is not a word" + again);
  if (op->run == nullptr) return refused("its run is NULL" + again);
  ASSIGN_OR_RETURN(std::shared_ptr<void> self, MadeBy(*op, path, parameters));
  return OwnOperation{.name = op->name,
                      .facts = absl::StrCat(std::string(parameters), " xxh3:", hash),
                      .run = FunctionOf(op->run, std::move(self))};
}

OwnOperation OwnOfC(std::string name, std::string_view parameters, const void* run, void* self) {
  OwnOperation made{.name = std::move(name), .facts = std::string(parameters), .run = nullptr};
  // The caller's: never released.
  if (run != nullptr)
    made.run = FunctionOf(reinterpret_cast<shardpack_op_run>(const_cast<void*>(run)),
                          std::shared_ptr<void>(self, [](void*) {}));
  return made;
}

absl::Status RunOwn(const OwnDraw& drawn, const EditablePixels& image) {
  if (drawn.operation == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("own(", drawn.name, "): no operation of this name was added to the plan"));
  }
  const absl::Status done =
      Guarded([&] { return drawn.operation->run(image, drawn.sample, drawn.random); });
  if (done.ok()) return done;
  return absl::DataLossError(absl::StrCat("own(", drawn.name, "): ", std::string(done.message())));
}

}  // namespace shardpack
