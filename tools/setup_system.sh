#!/usr/bin/env bash
# Find Java 17+ and the PostgreSQL server programs; install them when that is possible; else say what is missing.
#
# What is missing does not stop the set-up: the simulator and the SQLite store need neither.
set -euo pipefail

updated=""

can_install() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; }

apt_update_once() {
    if [ -z "$updated" ]; then
        updated=yes
        apt-get -qq update >/dev/null 2>&1 || true
    fi
}

# apt_install PACKAGE...: the output is shown only when it fails.
apt_install() {
    apt_update_once
    local output
    if ! output="$(DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "$@" 2>&1)"; then
        echo "setup: apt-get install $* failed:" >&2
        printf '%s\n' "$output" | tail -n 5 >&2
        return 1
    fi
}

# java_major JAVA: 17 for "17.0.15", 1 for "1.8.0", nothing when it does not run.
java_major() {
    "$1" -version 2>&1 | sed -n 's/.* version "\([0-9][0-9]*\).*/\1/p' | head -n 1
}

# find_java: prints "PATH VERSION" of the first Java that is new enough.
find_java() {
    local java major
    for java in "${JAVA_HOME:+$JAVA_HOME/bin/java}" "$(command -v java || true)" /usr/lib/jvm/*/bin/java; do
        if [ -n "$java" ] && [ -x "$java" ]; then
            major="$(java_major "$java" || true)"
            if [ -n "$major" ] && [ "$major" -ge 17 ]; then
                echo "$java $major"
                return 0
            fi
        fi
    done
    return 1
}

# find_postgres: prints the folder of the PostgreSQL server programs, the newest version first.
find_postgres() {
    local folder
    if command -v initdb >/dev/null 2>&1 && command -v postgres >/dev/null 2>&1; then
        dirname "$(command -v postgres)"
        return 0
    fi
    for folder in $(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -t/ -k5 -rV); do
        if [ -x "$folder/initdb" ] && [ -x "$folder/postgres" ]; then
            echo "$folder"
            return 0
        fi
    done
    return 1
}

install_java() {
    apt_update_once
    local package
    for package in openjdk-17-jre-headless openjdk-21-jre-headless default-jre-headless; do
        if apt-cache show "$package" >/dev/null 2>&1; then
            echo "setup: installing $package"
            apt_install "$package"
            return
        fi
    done
    echo "setup: the distribution has no package of Java 17 or newer" >&2
    return 1
}

# The tests start a private server of their own, so no cluster is made and none is started.
install_postgres() {
    echo "setup: installing the PostgreSQL server programs"
    local settings=/etc/postgresql-common/createcluster.conf
    if ! [ -e "$settings" ]; then
        apt_install postgresql-common || return 1
        if [ -e "$settings" ]; then
            sed -i 's/^#\{0,1\} *create_main_cluster *=.*/create_main_cluster = false/' "$settings"
        fi
    fi
    apt_install postgresql
}

if ! java="$(find_java)" && can_install; then
    install_java || true
    java="$(find_java)" || true
fi
if [ -n "$java" ]; then
    echo "setup: Java ${java##* } at ${java% *}"
else
    cat >&2 <<'MESSAGE'
setup: NO JAVA 17 OR NEWER was found, neither in JAVA_HOME nor in PATH nor in /usr/lib/jvm.
setup:   The simulator works without it; Spark needs it. Install one (on Debian and Ubuntu:
setup:   apt-get install openjdk-17-jre-headless) or set JAVA_HOME to its folder, then run make setup again.
MESSAGE
fi

if ! postgres="$(find_postgres)" && can_install; then
    install_postgres || true
    postgres="$(find_postgres)" || true
fi
if [ -n "$postgres" ]; then
    echo "setup: PostgreSQL programs in $postgres"
else
    cat >&2 <<'MESSAGE'
setup: NO POSTGRESQL SERVER PROGRAMS (initdb, postgres) were found, neither in PATH nor in /usr/lib/postgresql.
setup:   The SQLite store works without them; the store tests on PostgreSQL need them. Install them (on Debian
setup:   and Ubuntu: apt-get install postgresql), then run make setup again.
MESSAGE
fi
