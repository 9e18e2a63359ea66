# Both services as containers of compose.yaml, one project per state folder. Sourced by tests/services.
# shellcheck shell=bash

docker_usable() { docker info >/dev/null 2>&1 && docker compose version >/dev/null 2>&1; }

compose() {
    local project
    project=handstamp-$(cksum <<<"$STATE" | cut -d ' ' -f 1)
    POSTGRES_PORT=$(port postgres) KAFKA_PORT=$(port kafka) KAFKA_CONFIG=$STATE/kafka/server.properties \
        docker compose --project-name "$project" --file "$ROOT/compose.yaml" "$@" 8>&-
}

docker_alive() { [[ -n $(compose ps --status running --status paused --quiet "$1" 2>/dev/null) ]]; }

docker_start() {
    { cat "$KAFKA_FILES/broker.properties" && tr ';' '\n' <<<"${KAFKA_PROPERTIES-}"; } >"$STATE/kafka/server.properties"
    compose up --detach --wait --quiet-pull "$1" ||
        die "Docker cannot start $1; SERVICES_SOURCE=local uses packages instead (after \`tests/services purge\`)"
}

docker_ready() { docker_start "$1" >/dev/null; }

docker_down() { compose stop "$1"; }

docker_stop() {
    case $1 in
        # PostgreSQL's immediate shutdown.
        postgres) compose kill --signal SIGQUIT postgres && compose wait postgres >/dev/null || true ;;
        kafka) compose stop kafka ;;
    esac
}

docker_kill() { compose kill "$1"; }

docker_pause() { compose pause "$1"; }

docker_resume() { compose unpause "$1"; }

# Runs a command on the data folder of the stopped server.
docker_on_data() {
    docker run --rm --volumes-from "$(compose ps --all --quiet postgres)" postgres:18 \
        sh -ec "cd /var/lib/postgresql && $1" 8>&-
}

docker_snapshot() { docker_on_data 'rm -rf snapshot && cp -a 18 snapshot'; }

docker_restore() { docker_on_data 'test -d snapshot && rm -rf 18 && cp -a snapshot 18'; }

docker_purge() {
    compose rm --stop --force --volumes "$1"
    rm -rf "${STATE:?}/$1"
}
