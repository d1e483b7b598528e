#!/bin/sh
# Installs acp-skills-proxy on Linux and macOS:
#
#   curl -LsSf https://github.com/acp-skills/acp-skills-proxy/releases/latest/download/install.sh | sh
#
# It downloads the archive of this platform, checks its SHA-256, and puts the program into a directory of the user. It needs
# no rights, changes no other file, and can be run again for a newer version.
#
#   ACP_SKILLS_PROXY_VERSION      for example 0.1.0; otherwise the latest
#   ACP_SKILLS_PROXY_INSTALL_DIR  where the program goes; otherwise ~/.local/bin
#   ACP_SKILLS_PROXY_DOWNLOAD     where the archives are, for mirrors
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

# The triple of this machine, as the archives are named.
target() {
    os=$(uname -s)
    arch=$(uname -m)
    case $os in
        Linux) system=unknown-linux-musl ;;
        Darwin)
            system=apple-darwin
            # A shell under Rosetta says x86_64 on a machine that is not.
            if [ "$arch" = x86_64 ] && [ "$(sysctl -n sysctl.proc_translated 2>/dev/null || true)" = 1 ]; then
                arch=arm64
            fi
            ;;
        *) fail "there is no archive for $os" "on Windows use install.ps1; with Rust: cargo install $NAME --locked" ;;
    esac
    case $arch in
        x86_64 | amd64) arch=x86_64 ;;
        aarch64 | arm64) arch=aarch64 ;;
        *) fail "there is no archive for $os on $arch" "with Rust it can be built: cargo install $NAME --locked" ;;
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
        fail "neither curl nor wget is here" "install one of them, or download $1 yourself"
    fi || fail "cannot download $1" "is there such a version, and is the network reachable? All are listed at $RELEASES"
}

sha256() {
    if has sha256sum; then
        sha256sum "$1"
    elif has shasum; then
        shasum -a 256 "$1"
    elif has openssl; then
        openssl dgst -sha256 -r "$1"
    else
        fail "nothing here can check a SHA-256" "install coreutils, perl or openssl"
    fi | cut -d' ' -f1
}

# Everything is in a function, so that half a download of this script does nothing.
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
    # A substitution in an assignment ends the script when it fails; as a part of a word it would not.
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
        fail "the archive is not what it should be: its SHA-256 is $found, not $expected" \
            "try again; if it stays so, tell us at ${RELEASES%/releases}/issues, and do not use it"
    fi
    tar -C "$scratch" -xzf "$scratch/$base.tar.gz" || fail "cannot unpack the archive" "is there space in ${TMPDIR:-/tmp}?"
    mkdir -p "$to" || fail "cannot create $to" "choose another directory with ACP_SKILLS_PROXY_INSTALL_DIR"
    # Beside its place and then over it: a program that runs keeps its file, and nobody sees half of one.
    if ! { cp "$scratch/$base/$NAME" "$to/.$NAME.new" && chmod 755 "$to/.$NAME.new" && mv -f "$to/.$NAME.new" "$to/$NAME"; }; then
        fail "cannot write to $to" "choose another directory with ACP_SKILLS_PROXY_INSTALL_DIR"
    fi
    echo "installed $("$to/$NAME" --version) as $to/$NAME"
    case :$PATH: in
        *":$to:"*) ;;
        *) echo "hint: $to is not in your PATH; editors take the whole path $to/$NAME as the command" ;;
    esac
    echo "see it work: $NAME try --help"
}

main
