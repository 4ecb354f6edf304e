#!/bin/sh
# Install Chromium and its driver for the tests of the report: on Debian, as root, and only where
# they are missing. Nothing calls this but `make browser` and .ci/run.
set -eu
command -v chromium >/dev/null 2>&1 && command -v chromedriver >/dev/null 2>&1 && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "Installing chromium for the browser tests."
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        chromium chromium-driver fonts-dejavu-core >/dev/null
    exit 0
fi
echo "Install chromium and chromedriver by the means of this system (here: not Debian, or not root)." >&2
exit 1
