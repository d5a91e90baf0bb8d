// SignalsBlocked: while it exists, threads that this one starts get no signals but those of their
// own faults: a program's handlers run on its own threads.
//
//   const SignalsBlocked blocked;
//   thread_ = std::thread(...);
//
// Thread-safety: of one thread.
#ifndef SHARDPACK_FORMATS_IO_SIGNALS_BLOCKED_H_
#define SHARDPACK_FORMATS_IO_SIGNALS_BLOCKED_H_

#include <signal.h>

namespace shardpack {

class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t others;
    ::sigfillset(&others);
    // What a thread itself causes: blocked, these end the process without its handlers.
    for (const int own : {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS, SIGPROF})
      ::sigdelset(&others, own);
    ::pthread_sigmask(SIG_BLOCK, &others, &before_);
  }
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_IO_SIGNALS_BLOCKED_H_
