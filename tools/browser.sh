#!/bin/sh
# Chromium and its driver for the tests of the report. Installed only where they are missing, on
# Debian, as root; elsewhere the browser tests say that they were skipped and why.
set -u
command -v chromium >/dev/null 2>&1 && command -v chromedriver >/dev/null 2>&1 && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "Installing chromium for the browser tests."
    apt-get update -qq &&
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
            chromium chromium-driver fonts-dejavu-core >/dev/null && exit 0
fi
echo "No chromium here: the browser tests will be skipped (install chromium and chromedriver)." >&2
exit 0
