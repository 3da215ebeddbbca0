#pragma once

#include "agent/isolated/namespace_plan.hpp"

namespace opensandbox::agent {

// Allocate nothing; -1 and false leave errno.

/// A detached overlay of directories that are open in the caller's mount namespace.
int make_overlay(int lower, int upper, int work);
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
