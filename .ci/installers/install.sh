#!/bin/sh
# Installs acp-skills-proxy on Linux and macOS:
#
#   curl -LsSf https://github.com/acp-skills/acp-skills-proxy/releases/latest/download/install.sh | sh
#
# The script downloads the archive for this platform, verifies its SHA-256, and installs the program for the current user. It
# needs no root permissions and changes no other file. To update, run it again. These environment variables change what it does:
#
#   ACP_SKILLS_PROXY_VERSION      the version, for example 0.1.0; the default is the latest
#   ACP_SKILLS_PROXY_INSTALL_DIR  the directory for the program; the default is ~/.local/bin
#   ACP_SKILLS_PROXY_DOWNLOAD     the URL of the directory with the archives, for mirrors
set -eu

NAME=acp-skills-proxy
RELEASES=https://github.com/acp-skills/acp-skills-proxy/releases

fail() {
    echo "error: $1" >&2
    echo "hint: $2" >&2
    exit 1
}

has() {
    command -v "$1" >/dev/null 2>&1
}

# Prints the target triple of this machine, which is part of the archive's name.
target() {
    os=$(uname -s)
    arch=$(uname -m)
    case $os in
        Linux) system=unknown-linux-musl ;;
        Darwin)
            system=apple-darwin
            # A shell under Rosetta reports x86_64 on an ARM machine.
            if [ "$arch" = x86_64 ] && [ "$(sysctl -n sysctl.proc_translated 2>/dev/null || true)" = 1 ]; then
                arch=arm64
            fi
            ;;
        *) fail "there is no archive for $os" "on Windows, use install.ps1; to build from source, run: cargo install $NAME --locked" ;;
    esac
    case $arch in
        x86_64 | amd64) arch=x86_64 ;;
        aarch64 | arm64) arch=aarch64 ;;
        *) fail "there is no archive for $os on $arch" "to build from source, run: cargo install $NAME --locked" ;;
    esac
    echo "$arch-$system"
}

# download URL FILE
download() {
    if has curl; then
        curl --proto-default https -LsSf "$1" -o "$2"
    elif has wget; then
        wget -q "$1" -O "$2"
    else
        fail "neither curl nor wget is installed" "install one of them, or download $1 manually"
    fi || fail "cannot download $1" "check the network connection, and that the version is listed at $RELEASES"
}

sha256() {
    if has sha256sum; then
        sha256sum "$1"
    elif has shasum; then
        shasum -a 256 "$1"
    elif has openssl; then
        openssl dgst -sha256 -r "$1"
    else
        fail "cannot compute a SHA-256" "install coreutils, perl or openssl"
    fi | cut -d' ' -f1
}

# The whole script is in a function, so that a partial download of it does nothing.
main() {
    version=${ACP_SKILLS_PROXY_VERSION:-}
    if [ -n "${ACP_SKILLS_PROXY_DOWNLOAD:-}" ]; then
        from=$ACP_SKILLS_PROXY_DOWNLOAD
    elif [ -n "$version" ]; then
        from=$RELEASES/download/v${version#v}
    else
        from=$RELEASES/latest/download
    fi
    if [ -n "${ACP_SKILLS_PROXY_INSTALL_DIR:-}" ]; then
        to=$ACP_SKILLS_PROXY_INSTALL_DIR
    else
        to=${HOME:?is not set; set it or ACP_SKILLS_PROXY_INSTALL_DIR}/.local/bin
    fi
    # Use an assignment, because a failed substitution ends the script only there.
    target=$(target)
    base=$NAME-$target
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    trap 'exit 1' HUP INT TERM

    echo "downloading $from/$base.tar.gz"
    download "$from/$base.tar.gz" "$scratch/$base.tar.gz"
    download "$from/$base.tar.gz.sha256" "$scratch/sha256"
    expected=$(cut -d' ' -f1 "$scratch/sha256")
    found=$(sha256 "$scratch/$base.tar.gz")
    if [ -z "$expected" ] || [ "$expected" != "$found" ]; then
        fail "the checksum of the archive is wrong: its SHA-256 is $found, but should be $expected" \
            "try again; if it fails again, do not use the archive, and report it at ${RELEASES%/releases}/issues"
    fi
    tar -C "$scratch" -xzf "$scratch/$base.tar.gz" || fail "cannot unpack the archive" "check the free space in ${TMPDIR:-/tmp}"
    mkdir -p "$to" || fail "cannot create $to" "set ACP_SKILLS_PROXY_INSTALL_DIR to another directory"
    # Write a new file and rename it, so that a running program keeps its file and no other process sees a partial one.
    if ! { cp "$scratch/$base/$NAME" "$to/.$NAME.new" && chmod 755 "$to/.$NAME.new" && mv -f "$to/.$NAME.new" "$to/$NAME"; }; then
        fail "cannot write to $to" "set ACP_SKILLS_PROXY_INSTALL_DIR to another directory"
    fi
    echo "installed $("$to/$NAME" --version) as $to/$NAME"
    case :$PATH: in
        *":$to:"*) ;;
        *) echo "hint: $to is not in your PATH; add it, or use the full path $to/$NAME in the settings of editors" ;;
    esac
    echo "to try it, run: $NAME try --help"
}

main
