// Linked with TBB under --config=tsan. The distribution's libtbb is not instrumented, so
// ThreadSanitizer cannot see that handing a task to another thread orders memory, and would report
// every hand-over as a race. Suppressing stacks that pass through the library leaves races between
// our own threads visible; a test that wants its code checked calls that code from std::thread
// rather than from a TBB task.

extern "C" const char* __tsan_default_suppressions();

extern "C" __attribute__((visibility("default"), used)) const char* __tsan_default_suppressions() {
  return "race:libtbb.so\n"
         "race:tbb::detail\n"
         "mutex:libtbb.so\n"
         "thread:libtbb.so\n";
}
