// CoresOfRank: how many of a node's cores one of several training processes may use.
//
//   int threads = CoresOfRank();   // 16 on a node of 128 cores, where torchrun started 8
//
// All processes of a training run on a node do the same, so each has the same share: of as many
// ranks as $LOCAL_WORLD_SIZE (torchrun) or $OMPI_COMM_WORLD_LOCAL_SIZE (Open MPI) says, else one. A
// process that was bound to fewer cores than the node has keeps those that it has, up to its share
// of the node. What other processes run there is not known.
//
// Thread-safety: any thread, as long as nobody changes the environment.
// Errors: none; variables that are no numbers count as not set.
#ifndef SHARDPACK_FORMATS_IO_RANK_CORES_H_
#define SHARDPACK_FORMATS_IO_RANK_CORES_H_

namespace shardpack {

int CoresOfRank();  // >= 1, and at most AvailableCores (formats/io/resources.h)
int RanksOfNode();  // >= 1
// CoresOfRank for a process with `own` of the `node`'s cores.
int ShareOfCores(int node, int own, int ranks);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_IO_RANK_CORES_H_
