# Sourced by the scripts in this directory: starts and stops bennu and PostgreSQL with data in a temporary
# directory ($work), and runs psql on them. Needs psql and a PostgreSQL server of Debian's packages;
# PostgreSQL runs as the user `postgres` if the script runs as root.

work=$(mktemp -d)
chmod 755 "$work"
pg_bin=$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -n 1)
free_port() { # from: the first port that nobody listens on
    local port=$1
    while (: <>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do port=$((port + 1)); done
    echo "$port"
}
pg_port=$(free_port 54329)
bennu_port=$(free_port 54429)
bennu_pid=
bennu=${BENNU_BINARY:-${CARGO_TARGET_DIR:-target}/release/bennu}

build_bennu() { # unless BENNU_BINARY says which one to measure
    [ -n "${BENNU_BINARY:-}" ] || cargo build --release --locked --quiet
}

describe_run() { # the script's arguments: prints command, date, commit and machine, as docs/internals/performance.md has them
    cat <<RUN
\`benches/$(basename "$0")${*:+ $*}\`, $(date +%F), commit $(git rev-parse --short=8 HEAD),
$(nproc) cores ($(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)), $(awk '/^MemTotal/ {printf "%d", $2 / 1048576 + 0.5}' /proc/meminfo) GiB; PostgreSQL $("$pg_bin/postgres" -V | awk '{print $3}').

RUN
}

as_postgres() {
    if [ "$(id -u)" = 0 ]; then
        (cd / && setpriv --reuid=postgres --regid=postgres --clear-groups "$@")
    else
        "$@"
    fi
}

cleanup() {
    [ -n "$bennu_pid" ] && kill "$bennu_pid" 2>/dev/null && wait "$bennu_pid" 2>/dev/null || true
    [ -d "$work/pg" ] && as_postgres "$pg_bin/pg_ctl" -D "$work/pg" -m immediate stop >/dev/null 2>&1 || true
    rm -rf "$work"
}
trap cleanup EXIT

now() { date +%s%N; }
millis_since() { echo $((($(now) - $1) / 1000000)); }
median() { sort -n | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}'; }

start_bennu() { # bennu serve's flags; sets ready_ms
    local began
    : >"$work/bennu.log"
    began=$(now)
    "$bennu" serve --data "$work/bennu" --listen 127.0.0.1:$bennu_port "$@" \
        >"$work/bennu.log" 2>"$work/bennu.err" &
    bennu_pid=$!
    until grep -q '^bennu: ready' "$work/bennu.log"; do
        kill -0 "$bennu_pid" || { cat "$work/bennu.err" >&2; exit 1; }
    done
    ready_ms=$(millis_since "$began")
}

stop_bennu() {
    kill "$bennu_pid"
    wait "$bennu_pid" || true
    bennu_pid=
}

start_postgres() { # settings, such as -c shared_buffers=1GB
    mkdir "$work/pg"
    [ "$(id -u)" != 0 ] || chown postgres "$work/pg"
    as_postgres "$pg_bin/initdb" -D "$work/pg" -A trust -U postgres >/dev/null
    as_postgres "$pg_bin/pg_ctl" -D "$work/pg" -w -l "$work/pg/log" -o "-p $pg_port \
        -c listen_addresses=127.0.0.1 -c unix_socket_directories= $*" start >/dev/null
}

on_bennu() {
    psql -X -q -v ON_ERROR_STOP=1 -h 127.0.0.1 -p $bennu_port -U bennu -d bennu "$@"
}
on_postgres() {
    psql -X -q -v ON_ERROR_STOP=1 -h 127.0.0.1 -p $pg_port -U postgres -d postgres "$@"
}

time_of() { # client, query: milliseconds; the answer's rows, sorted, are left in $work/answer
    "$1" -At -c '\timing on' -c "$2" >"$work/timed"
    { grep -v '^Time: \|^Timing is' "$work/timed" || true; } | sort >"$work/answer"
    awk '/^Time: / {print $2}' "$work/timed"
}
