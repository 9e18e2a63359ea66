# What is remembered between calls: where a service comes from, its port, its data. Sourced by tests/services.
# shellcheck shell=bash

STATE=$(realpath -m "${SERVICES_DIR:-$ROOT/.services}")
if [[ -n ${SERVICES_CACHE-} ]]; then
    CACHE=$(realpath -m "$SERVICES_CACHE")
elif [[ $(id -u) == 0 ]]; then
    # Not root's home: the server's own user must be able to run what lies here.
    CACHE=/var/cache/handstamp
else
    CACHE=${XDG_CACHE_HOME:-${HOME:?}/.cache}/handstamp
fi
mkdir -p "$STATE/postgres" "$STATE/kafka" "$CACHE/ports"

die() {
    echo "services: $*" >&2
    exit 1
}

# die, after the end of a log.
die_with() {
    tail -n 20 "$1" >&2 || true
    shift
    die "$*"
}

variable() {
    case $1 in
        postgres) echo DATABASE_URL ;;
        kafka) echo KAFKA_BROKERS ;;
    esac
}

port() { cat "$STATE/$1/port" 2>/dev/null || true; }

address() {
    case $1 in
        postgres) echo "postgres://postgres@127.0.0.1:$(port postgres)/postgres" ;;
        kafka) echo "127.0.0.1:$(port kafka)" ;;
    esac
}

# Whether the environment names a server that is not ours. (After `eval "$(tests/services env)"` it names ours.)
given() {
    local name
    name=$(variable "$1")
    [[ -n ${!name-} && ${!name} != "$(address "$1")" ]]
}

origin() { cat "$STATE/$1/origin" 2>/dev/null || echo local; }

# Decides once where a service comes from, so that `down` stops it in the same way.
remember_origin() {
    [[ ! -f $STATE/$1/origin ]] || return 0
    case ${SERVICES_SOURCE-} in
        docker | local) echo "$SERVICES_SOURCE" ;;
        '') if docker_usable; then echo docker; else echo local; fi ;;
        *) die "SERVICES_SOURCE is docker or local, not '$SERVICES_SOURCE'" ;;
    esac >"$STATE/$1/origin"
}

# One change at a time per state folder. Servers must not inherit the lock: start them with 8>&-.
lock_state() {
    exec 8>"$STATE/lock"
    flock -w 900 8 || die "another tests/services has held $STATE/lock for 15 minutes"
}

# Runs a download alone, since clones share the cache, with $work as its scratch folder there.
with_cache() {
    (
        flock -w 900 9 || die "another download has held $CACHE/lock for 15 minutes"
        work=$(mktemp -d "$CACHE/download.XXXXXX")
        trap 'rm -rf "$work"' EXIT
        "$@"
    ) 9>"$CACHE/lock"
}

listening() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# A port belongs to the instance that remembers it, even while that instance is stopped.
port_usable() {
    local holder
    holder=$(cat "$CACHE/ports/$1" 2>/dev/null || true)
    if [[ -n $holder && $holder != "$2" && $(cat "$holder/port" 2>/dev/null || true) == "$1" ]]; then
        return 1
    fi
    ! listening "$1"
}

# The defaults lie below 32768, where the kernel picks ports for outgoing connections: a client that keeps
# trying to reach a stopped server from there can end up connected to itself, and the server cannot start.
take_port() {
    local dir=$STATE/$1 port
    case $1 in
        postgres) port=${POSTGRES_PORT:-25432} ;;
        kafka) port=${KAFKA_PORT:-29192} ;;
    esac
    port=$(cat "$dir/port" 2>/dev/null || echo "$port")
    (
        flock 9
        # In steps of two: Kafka's controller listens on the one above.
        until port_usable "$port" "$dir" && ! listening "$((port + 1))"; do
            port=$((port + 2))
        done
        echo "$port" >"$dir/port"
        echo "$dir" >"$CACHE/ports/$port"
    ) 9>"$CACHE/ports.lock"
}

# Whether process $1 exists and its command line has $2 in it. A zombie's is empty.
runs() { [[ -n $1 ]] && tr '\0' ' ' 2>/dev/null <"/proc/$1/cmdline" | grep -qF -- "$2"; } 2>/dev/null

# Signals a process and its children. It is stopped first, so that no child escapes by being born meanwhile.
signal_tree() {
    local signal=$1 pid=$2 children
    kill -STOP "$pid" 2>/dev/null || return 0
    children=$(cat "/proc/$pid/task/$pid/children" 2>/dev/null || true)
    # shellcheck disable=SC2086
    kill "-$signal" $children "$pid" 2>/dev/null || true
}

# Waits up to $1 seconds until the command fails.
wait_until_not() {
    local end=$((SECONDS + $1))
    shift
    while "$@"; do
        ((SECONDS < end)) || return 1
        sleep 0.05
    done
}
