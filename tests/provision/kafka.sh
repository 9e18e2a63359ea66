# One node of Apache Kafka from Maven's jars, controller included. Sourced by tests/services.
# shellcheck shell=bash

KAFKA_VERSION=4.3.1
KAFKA_JARS=$CACHE/kafka-$KAFKA_VERSION
KAFKA_FILES=$ROOT/tests/provision/kafka
KAFKA_DIR=$STATE/kafka
# Small, and quick to start rather than quick to run.
KAFKA_JVM=(-Xms128m -Xmx384m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xss512k -XX:-UsePerfData)

kafka_java() {
    local version
    version=$(java -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p;T;q') || version=
    [[ -n $version ]] && ((version >= 17)) ||
        die "Kafka needs Java 17 or newer (found: ${version:-none}); install it, or start Docker, or set KAFKA_BROKERS"
}

kafka_download() {
    [[ ! -f $KAFKA_JARS/complete ]] || return 0
    command -v mvn >/dev/null || die "Kafka: install Maven (mvn), or start Docker, or set KAFKA_BROKERS"
    echo "kafka: downloading $KAFKA_VERSION, once" >&2
    mvn --quiet --batch-mode -Dstyle.color=never --file "$KAFKA_FILES/pom.xml" "-Dkafka.version=$KAFKA_VERSION" \
        org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies \
        -DincludeScope=runtime "-DoutputDirectory=$work/jars" >"$work/log" 2>&1 ||
        die_with "$work/log" "Kafka: Maven cannot download $KAFKA_VERSION; set KAFKA_BROKERS to use another broker"
    # Formatted once for all brokers: without this checkpoint the feature levels stay 0 and the new group
    # protocol is refused, and StorageTool costs a second of JVM each time.
    kafka_properties "$work/data" 1 >"$work/format.properties"
    java "${KAFKA_JVM[@]}" -cp "$work/jars/*" kafka.tools.StorageTool format \
        --cluster-id "$(kafka_random_id)" --config "$work/format.properties" >"$work/log" 2>&1 ||
        die_with "$work/log" "Kafka: cannot format its storage"
    mv "$work/data/bootstrap.checkpoint" "$work/jars/"
    rm -rf "$KAFKA_JARS"
    mv "$work/jars" "$KAFKA_JARS"
    touch "$KAFKA_JARS/complete"
}

# 16 random bytes as Kafka writes ids.
kafka_random_id() { head -c 16 /dev/urandom | base64 | tr '+/' 'Aa' | cut -c 1-22; }

# The whole configuration, for data in $1 and port $2.
kafka_properties() {
    cat "$KAFKA_FILES/broker.properties"
    tr ';' '\n' <<<"${KAFKA_PROPERTIES-}"
    cat <<PROPERTIES
controller.quorum.voters=1@127.0.0.1:$(($2 + 1))
listeners=PLAINTEXT://127.0.0.1:$2,CONTROLLER://127.0.0.1:$(($2 + 1))
log.dirs=$1
PROPERTIES
}

kafka_pid() { cat "$KAFKA_DIR/pid" 2>/dev/null || true; }

kafka_alive() { runs "$(kafka_pid)" "$KAFKA_DIR/server.properties"; }

kafka_ready() {
    wait_until_not 90 kafka_starting || die_with "$KAFKA_DIR/broker.log" "Kafka is not up after 90 s; its log is $KAFKA_DIR/broker.log"
    kafka_alive || die_with "$KAFKA_DIR/broker.log" "Kafka does not start; its log is $KAFKA_DIR/broker.log"
}

kafka_starting() {
    kafka_alive && { ! grep -qs 'Kafka Server started' "$KAFKA_DIR/broker.log" || ! listening "$(port kafka)"; }
}

kafka_start() {
    local archive=$KAFKA_JARS/classes.jsa sharing
    kafka_java
    [[ -f $KAFKA_JARS/complete ]] || with_cache kafka_download
    kafka_properties "$KAFKA_DIR/data" "$(port kafka)" >"$KAFKA_DIR/server.properties"
    if [[ ! -f $KAFKA_DIR/data/meta.properties ]]; then
        mkdir -p "$KAFKA_DIR/data"
        cp "$KAFKA_JARS/bootstrap.checkpoint" "$KAFKA_DIR/data/"
        printf 'version=1\ncluster.id=%s\nnode.id=1\ndirectory.id=%s\n' "$(kafka_random_id)" "$(kafka_random_id)" \
            >"$KAFKA_DIR/data/meta.properties"
    fi
    # A class archive halves the start. The first broker that is stopped in good order writes it.
    if [[ -f $archive ]]; then
        sharing=(-Xshare:auto "-XX:SharedArchiveFile=$archive")
    else
        sharing=("-XX:ArchiveClassesAtExit=$KAFKA_DIR/classes.jsa")
    fi
    setsid java "${KAFKA_JVM[@]}" "${sharing[@]}" \
        "-Dlog4j2.configurationFile=file:$KAFKA_FILES/log4j2.properties" -Dlog4j2.disableJmx=true \
        -cp "$KAFKA_JARS/*" kafka.Kafka "$KAFKA_DIR/server.properties" \
        </dev/null >"$KAFKA_DIR/broker.log" 2>&1 8>&- &
    echo $! >"$KAFKA_DIR/pid"
    # Between fork and exec its command line is still this script's.
    wait_until_not 5 not_alive kafka || die_with "$KAFKA_DIR/broker.log" "Kafka's process ended at once"
    kafka_ready
}

not_alive() { ! "$1_alive"; }

kafka_stop() {
    kafka_alive || return 0
    kill -TERM "$(kafka_pid)"
    wait_until_not 30 kafka_alive || kafka_kill
    if [[ -f $KAFKA_DIR/classes.jsa ]]; then
        # Renamed into place, so that no starting broker maps half of it.
        mv "$KAFKA_DIR/classes.jsa" "$KAFKA_JARS/classes.$$"
        mv "$KAFKA_JARS/classes.$$" "$KAFKA_JARS/classes.jsa"
    fi
}

kafka_down() { kafka_stop; }

kafka_kill() {
    kafka_alive || return 0
    signal_tree KILL "$(kafka_pid)"
    wait_until_not 10 kafka_alive || die "Kafka survived SIGKILL; its process is $(kafka_pid)"
}

kafka_pause() { ! kafka_alive || signal_tree STOP "$(kafka_pid)"; }

kafka_resume() { ! kafka_alive || signal_tree CONT "$(kafka_pid)"; }

kafka_purge() {
    kafka_kill
    rm -rf "$KAFKA_DIR"
}
