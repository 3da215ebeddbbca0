#!/bin/sh
# What a server puts before a sandbox's command. The agent beside it does all the work: it prepares
# the environment, becomes process 1, runs the command and ends with its status. EXECD may name
# another path, and flags behind it.
agent=${EXECD:-/opt/opensandbox/execd}
exec "${agent%% *}" bootstrap "$@"
