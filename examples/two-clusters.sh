#!/usr/bin/env bash
# Two clusters on this machine, 145 ms apart: people chat in both and win points, the link between them is cut and healed.
#
#   cargo build --release && PATH="$PWD/target/release:$PATH" examples/two-clusters.sh
#
# The actors are in crates/greenroom-cli/src/plaza.rs. Ports can be set: EU_DOOR, US_DOOR (where people come in), EU_GATEWAY,
# US_GATEWAY (where the clusters do) and EU_FAR, US_FAR (the same, from afar: the relay's).
set -euo pipefail

greenroom=${GREENROOM:-greenroom}
eu=127.0.0.1:${EU_DOOR:-7070}
us=127.0.0.1:${US_DOOR:-8070}
eu_gateway=127.0.0.1:${EU_GATEWAY:-7300}
us_gateway=127.0.0.1:${US_GATEWAY:-8300}
eu_far=127.0.0.1:${EU_FAR:-7310}
us_far=127.0.0.1:${US_FAR:-8310}

folder=$(mktemp -d)
started=()
# Only what was started here is ended.
trap '((${#started[@]} == 0)) || kill "${started[@]}" 2>/dev/null || true; wait; rm -rf "$folder"' EXIT

cluster() { # name gateway
    cat >"$folder/$1.toml" <<TOML
cluster = "$1"
store = "sqlite:$folder/state.db"

[geo]
gateway = "$2"
look_again_every = 2

[geo.clusters.eu]
gateways = ["$eu_far"]

[geo.clusters.us]
gateways = ["$us_far"]
TOML
}

node() { # name door
    "$greenroom" node --config "$folder/$1.toml" --name "$1" --http "$2" --kinds plaza_room,plaza_board --shards 1 \
        >"$folder/$1.log" 2>&1 &
    started+=($!)
}

call() { "$greenroom" call --node "$1" "${@:2}"; }

# Repeats a command until it says something, for a minute at most.
until_says() { # text command...
    for _ in {1..300}; do
        if "${@:2}" 2>&1 | grep -q "$1"; then return 0; fi
        sleep 0.2
    done
    echo "still no \"$1\": $("${@:2}" 2>&1)" >&2
    return 1
}

say() { printf '\n== %s\n' "$*"; }

# The link: every byte that the clusters send each other takes half of 145 ms, and `cut` and `heal` go in by a pipe.
mkfifo "$folder/link"
"$greenroom" relay "$eu_far=$eu_gateway" "$us_far=$us_gateway" --rtt 145ms <"$folder/link" >"$folder/relay.log" &
started+=($!)
exec 3>"$folder/link"

cluster eu "$eu_gateway"
cluster us "$us_gateway"
node eu "$eu"
node us "$us"
until_says 'us .*answers,' "$greenroom" clusters status --node "$eu"
until_says 'eu .*answers,' "$greenroom" clusters status --node "$us"

# Posts and points are kept when the call returns. An instance that another one has superseded refuses, and its cluster's next one
# takes the same call.
tell() {
    for _ in {1..50}; do
        if call "$@" >/dev/null 2>"$folder/refused"; then return 0; fi
        sleep 0.2
    done
    cat "$folder/refused" >&2
    return 1
}

show() {
    echo "in eu: $(call "$eu" plaza_room/lobby "$1"), on a node of $(call "$eu" plaza_room/lobby node)"
    echo "in us: $(call "$us" plaza_room/lobby "$1"), on a node of $(call "$us" plaza_room/lobby node)"
}

say 'both clusters hear each other, and people post: there is one room'
tell "$eu" plaza_room/lobby post '{"user":"ada","text":"good morning"}'
tell "$us" plaza_room/lobby post '{"user":"bob","text":"good night"}'
tell "$eu" plaza_board/chess won '{"player":"ada","points":3}'
tell "$us" plaza_board/chess won '{"player":"bob","points":1}'
show read

say 'the link is cut'
echo cut >&3
until_says 'does not answer' "$greenroom" clusters status --node "$us"
until_says 'does not answer' "$greenroom" clusters status --node "$eu"

say 'both sides go on: each has a room of its own now'
tell "$eu" plaza_room/lobby post '{"user":"ada","text":"anybody there?"}'
tell "$us" plaza_room/lobby post '{"user":"bob","text":"it is quiet here"}'
tell "$eu" plaza_board/chess won '{"player":"ada","points":2}'
tell "$us" plaza_board/chess won '{"player":"bob","points":5}'
show read

say 'the link is healed'
echo heal >&3
until_says 'us .*answers,' "$greenroom" clusters status --node "$eu"
until_says 'eu .*answers,' "$greenroom" clusters status --node "$us"
one_room() { [[ $(call "$eu" plaza_room/lobby node) == $(call "$us" plaza_room/lobby node) ]] && echo one; }
until_says one one_room

say 'what everyone sees now: one room again, and nothing that was kept is lost'
show read_latest
echo "board in eu: $(call "$eu" plaza_board/chess top | tr -d ' \n')"
echo "board in us: $(call "$us" plaza_board/chess top | tr -d ' \n')"
