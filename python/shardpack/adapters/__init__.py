"""Shardpack in the words of other frameworks: each module imports its own, and only when it is imported itself."""
