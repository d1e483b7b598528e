#!/bin/sh
# Prints changed files with their number of changed lines, largest first. Usage: changed-lines.sh [BASE]
git diff --numstat "${1:-HEAD}" | awk '{ print $1 + $2 "\t" $3 }' | sort -rn
