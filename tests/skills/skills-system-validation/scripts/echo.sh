#!/bin/sh
# Prints the marker, and each argument on a line of its own.
printf '%s\n' CONFORMANCE_SCRIPT_V1 "$@"
