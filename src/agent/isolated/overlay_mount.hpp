#pragma once

#include "agent/isolated/namespace_plan.hpp"

namespace opensandbox::agent {

// Allocate nothing; -1 and false leave errno.

/// Whether overlays made by this process must keep their marks in attributes that users may write:
/// it is not in the initial user namespace. Not among the mounts of a session.
bool needs_user_attributes();
/// A detached overlay of directories that are open in the caller's mount namespace.
int make_overlay(int lower, int upper, int work, bool user_attributes);
/// The same by names without `:` and `\`, from the working directory.
int make_overlay(const char* lower, const char* upper, const char* work, bool user_attributes);
/// Opens the upper layers of an attachment by their paths and makes its overlay over the open
/// directory `lower`. Layers in memory are made first.
int open_overlay(const Attachment& attachment, int lower);
/// mkdir -p, or an empty file.
bool make_target(const char* target, bool directory);
/// Puts a detached mount on `target`, which is made when it is missing and its parent can be
/// written.
bool attach_mount(int mount, const char* target, bool directory);
/// Sets and clears attributes (MOUNT_ATTR_…) of a mount; `recursive` of those below it, too.
bool set_mount_attributes(int directory, const char* path, unsigned long set, unsigned long clear,
                          bool recursive);

}  // namespace opensandbox::agent
