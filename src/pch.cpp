// Exists so that the precompiled header belongs to one target that all others reuse.
