#include "cli/commands/cluster_jobs.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "formats/io/file.h"
#include "formats/io/shell_quoted.h"
#include "formats/io/staged_file.h"
#include "formats/io/status_macros.h"

namespace shardpack::cli {
namespace {

using absl::StrCat;

constexpr uint64_t kMaxJobBytes = 1 << 20;
constexpr size_t kDefaultWorkers = 64;
// The program in the image, which has its own.
constexpr char kInImage[] = "pack";
// Slurm replaces these in the names of logs, and gives up at others.
constexpr std::string_view kSlurmSpecial = "%\\\"' \t";

absl::StatusOr<std::string> Absolute(const std::string& path) {
  std::error_code error;
  const std::string absolute = std::filesystem::absolute(path, error).lexically_normal().native();
  if (error) return IoStatus("look at", path, error.value());
  const bool plain = std::none_of(absolute.begin(), absolute.end(),
                                  [](unsigned char c) { return c < ' ' || c >= 0x7F; });
  if (plain) return absolute;
  return absl::InvalidArgumentError(
      StrCat("a job's file cannot hold this path: ", EscapeForTerminal(absolute)));
}

// JSON is YAML; this one escapes what YAML would take apart.
std::string Yaml(const std::string& text) { return nlohmann::json(text).dump(); }

std::string Words(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words)
    absl::StrAppend(&text, text.empty() ? "" : ", ", Yaml(word));
  return StrCat("[", text, "]");
}

std::string SlurmHead(const std::string& name, const std::string& folder, const std::string& log) {
  const bool named = folder.find_first_of(kSlurmSpecial) == std::string::npos;
  return StrCat("#!/bin/bash\n#SBATCH --job-name=", name, "\n#SBATCH --open-mode=append\n",
                named ? StrCat("#SBATCH --output=", folder, "/", log, "\n") : "");
}

// The folder that holds plan, source and dataset. Where that is the root, which nothing can be
// mounted at, one mount for each.
std::string Mounts(const ClusterJobs& jobs) {
  const std::filesystem::path plan = std::filesystem::path(jobs.plan).parent_path();
  const auto line = [](const std::filesystem::path& path, const std::string& more) {
    return StrCat("        - {name: data, mountPath: ", Yaml(path.native()), more, "}\n");
  };
  std::filesystem::path shared = plan;
  for (const std::filesystem::path path : {jobs.out, jobs.source}) {
    const auto end = std::mismatch(shared.begin(), shared.end(), path.begin(), path.end()).first;
    std::filesystem::path same;
    for (auto part = shared.begin(); part != end; ++part) same /= *part;
    shared = same;
  }
  if (shared != shared.root_path()) return line(shared, "");
  std::string text;
  const std::filesystem::path out = std::filesystem::path(jobs.out).parent_path();
  for (const std::filesystem::path& path : std::set<std::filesystem::path>{plan, out, jobs.source})
    text += line(path, StrCat(", subPath: ", Yaml(path.relative_path().native())));
  return text;
}

// What pods need, for both jobs: to be adapted to the cluster.
std::string Pod(const ClusterJobs& jobs, const std::string& command, const std::string& env) {
  return StrCat(
      "    spec:\n      restartPolicy: Never\n      containers:\n      - name: pack\n",
      "        # As packaging/Containerfile makes it.\n        image: shardpack\n",
      "        command: ", command, "\n", env, "        volumeMounts:\n", Mounts(jobs),
      "      volumes:\n",
      "      # What holds the plan, the source and the dataset, at the same paths for all.\n",
      "      - {name: data, persistentVolumeClaim: {claimName: data}}\n");
}

// Whether the file is there already, with this text.
absl::StatusOr<bool> IsWritten(const JobFile& file) {
  const std::string path = StrCat(file.folder, "/", file.name);
  const absl::StatusOr<std::string> there = ReadWholeFile(path, kMaxJobBytes);
  if (there.ok() && *there == file.text) return true;
  if (there.ok()) {
    return absl::AlreadyExistsError(
        StrCat(EscapeForTerminal(path), " is there, with another text; move it away"));
  }
  return absl::IsNotFound(there.status()) ? absl::StatusOr<bool>(false) : there.status();
}

absl::Status CheckFolder(const std::string& flag, const std::string& folder) {
  if (folder.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string path, Absolute(folder));
  std::error_code error;
  const std::filesystem::file_status there = std::filesystem::status(path, error);
  if (!std::filesystem::exists(there) || std::filesystem::is_directory(there))
    return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat(flag, " ", EscapeForTerminal(folder), " is a file; it must be a folder"));
}

}  // namespace

std::string SlurmBuild(const ClusterJobs& jobs, const std::string& folder) {
  return StrCat(
      SlurmHead("pack-build", folder, "build-%A_%a.log"), "#SBATCH --array=0-", jobs.workers - 1,
      "\n#SBATCH --requeue\n#SBATCH --cpus-per-task=8\n"
      "# Before its time is over, a task stops; the others go on with its shards.\n"
      "#SBATCH --signal=B:TERM@60\n"
      "exec ",
      ShellQuoted(jobs.program), " build --plan ", ShellQuoted(jobs.plan), " -o ",
      ShellQuoted(jobs.out), " --worker auto --join -q -j \"${SLURM_CPUS_PER_TASK:-1}\"\n");
}

std::string SlurmCommit(const ClusterJobs& jobs, const std::string& folder) {
  return StrCat(
      SlurmHead("pack-commit", folder, "commit-%j.log"), ShellQuoted(jobs.program), " commit ",
      ShellQuoted(jobs.out),
      "\ncode=$?\n"
      "# 3: published, and inputs were skipped. 7: shards are missing; submit build.sbatch "
      "again.\n"
      "if [ \"$code\" -eq 3 ]; then exit 0; fi\n"
      "exit \"$code\"\n");
}

std::string KubernetesBuild(const ClusterJobs& jobs) {
  return StrCat(
      "apiVersion: batch/v1\nkind: Job\nmetadata: {name: pack-build}\nspec:\n"
      "  completionMode: Indexed\n  completions: ",
      jobs.workers, "\n  parallelism: ", jobs.workers,
      "\n  backoffLimitPerIndex: 5\n  podFailurePolicy:\n    rules:\n"
      "    # What another attempt would not change: usage, damage, another plan.\n"
      "    - {action: FailJob, onExitCodes: {operator: In, values: [2, 4, 5]}}\n"
      "  template:\n",
      Pod(jobs,
          Words({kInImage, "build", "--plan", jobs.plan, "-o", jobs.out, "--worker", "auto",
                 "--join", "-q"}),
          StrCat("        env:\n        - {name: SHARDPACK_WORKERS, value: \"", jobs.workers,
                 "\"}\n")));
}

std::string KubernetesCommit(const ClusterJobs& jobs) {
  const std::string program = kInImage, out = ShellQuoted(jobs.out);
  return StrCat(
      "apiVersion: batch/v1\nkind: Job\nmetadata: {name: pack-commit}\nspec:\n"
      "  backoffLimit: 5\n  template:\n",
      Pod(jobs,
          Words({"sh", "-c",
                 StrCat(program, " status --wait ", out, " && ", program, " commit ", out,
                        "; code=$?; if [ $code -eq 3 ]; then exit 0; fi; exit $code")}),
          ""));
}

absl::Status CheckJobFlags(const CommandLine& line) {
  const PackFlags& flags = line.pack();
  if (flags.slurm_folder.empty() && flags.k8s_folder.empty()) {
    if (flags.tasks == 0) return absl::OkStatus();
    return absl::InvalidArgumentError("--tasks is for --slurm and --k8s");
  }
  if (flags.write_plan.empty() || flags.out.empty()) {
    return absl::InvalidArgumentError(
        "--slurm and --k8s write jobs that build a plan in a folder: give --write FILE and -o OUT, "
        "too");
  }
  RETURN_IF_ERROR(Absolute(flags.write_plan).status());
  RETURN_IF_ERROR(Absolute(flags.out).status());
  RETURN_IF_ERROR(CheckFolder("--slurm", flags.slurm_folder));
  return CheckFolder("--k8s", flags.k8s_folder);
}

absl::StatusOr<JobFiles> PlanClusterJobs(const CommandLine& line, const Plan& plan) {
  const PackFlags& flags = line.pack();
  JobFiles made;
  if (flags.slurm_folder.empty() && flags.k8s_folder.empty()) return made;
  ClusterJobs jobs;
  // A program that was found in PATH is found there by the tasks.
  jobs.program = line.program;
  if (jobs.program.find('/') != std::string::npos) {
    ASSIGN_OR_RETURN(jobs.program, Absolute(jobs.program));
  }
  ASSIGN_OR_RETURN(jobs.plan, Absolute(flags.write_plan));
  ASSIGN_OR_RETURN(jobs.out, Absolute(flags.out));
  ASSIGN_OR_RETURN(jobs.source, Absolute(plan.listing().root));
  jobs.workers = flags.tasks > 0 ? flags.tasks : std::min(plan.shards().size(), kDefaultWorkers);
  if (!flags.slurm_folder.empty()) {
    ASSIGN_OR_RETURN(const std::string folder, Absolute(flags.slurm_folder));
    made.files.push_back({folder, "build.sbatch", SlurmBuild(jobs, folder)});
    made.files.push_back({folder, "commit.sbatch", SlurmCommit(jobs, folder)});
    const std::string quoted = ShellQuoted(flags.slurm_folder);
    absl::StrAppend(&made.next,
                    "\nWith Slurm:\n  sbatch --dependency=afterany:$(sbatch --parsable ", quoted,
                    "/build.sbatch) ", quoted, "/commit.sbatch");
  }
  if (!flags.k8s_folder.empty()) {
    ASSIGN_OR_RETURN(const std::string folder, Absolute(flags.k8s_folder));
    made.files.push_back({folder, "build.yaml", KubernetesBuild(jobs)});
    made.files.push_back({folder, "commit.yaml", KubernetesCommit(jobs)});
    absl::StrAppend(&made.next, "\nWith Kubernetes, once image and volume in them are right:\n",
                    "  kubectl apply -f ", ShellQuoted(flags.k8s_folder));
  }
  for (const JobFile& file : made.files) {
    RETURN_IF_ERROR(IsWritten(file).status());
    RETURN_IF_ERROR(MakeDirectory(file.folder));
  }
  return made;
}

absl::Status WriteClusterJobs(const JobFiles& jobs) {
  for (const JobFile& file : jobs.files) {
    ASSIGN_OR_RETURN(const bool written, IsWritten(file));
    if (written) continue;
    const std::string path = StrCat(file.folder, "/", file.name);
    ASSIGN_OR_RETURN(const std::unique_ptr<StagedFile> staged, StagedFile::Create(path + ".part"));
    RETURN_IF_ERROR(staged->Append(AsBytes(file.text)));
    RETURN_IF_ERROR(staged->Publish(path));
  }
  return absl::OkStatus();
}

}  // namespace shardpack::cli
