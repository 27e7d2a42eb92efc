#!/bin/sh
# Deploys an app by the API of clusterdeck, waits for the verdict and prints it. It needs curl and jq.
#
#   CLUSTERDECK_URL     the admin page, such as https://ops.example.com/deck
#   CLUSTERDECK_TOKEN   a token of the role operator
#   DEPLOY_GIT          a branch, a tag or a commit to build and deploy there, with the output of the build on stderr; without it DEPLOY_PATH, or what is on the disk
#   DEPLOY_APP          an app of a host; DEPLOY_PATH, DEPLOY_NOTE, DEPLOY_SURGE, DEPLOY_CANARY, DEPLOY_ON_FAILURE: as flags of "clusterdeck deploy"
#   DEPLOY_TIMEOUT      seconds to wait for build and verdict, 1800 by default
#
# Exit codes are those of clusterdeck: 0 it has succeeded, 1 it has not, 2 and 3 the request or the token is wrong, 4 not now, 5 nobody
# answers, 124 it takes longer.
set -eu
umask 077
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# A reason may have what an app has thrown, so it is made one line without control characters.
finish () {
  printf '%s' "$3" | tr -s '[:cntrl:]' ' ' > "$folder/reason"
  printf 'state=%s\nrollout=%s\nrelease=%s\nreason=%s\n' "$2" "${rollout:-}" "${release:-}" "$(cut -c 1-2000 "$folder/reason")"
  exit "$1"
}

# The token goes to curl in a file, as everybody on this machine can read the arguments of a process.
printf 'Authorization: Bearer %s\n' "${CLUSTERDECK_TOKEN:-}" > "$folder/headers"

ask () {
  status=$(curl --silent --show-error --max-time 60 --header "@$folder/headers" --output "$folder/answer" --write-out '%{http_code}' "$@" 2> "$folder/error") || status=none
}

told () {
  jq --raw-output "$1 // empty" "$folder/answer" 2> "$folder/error" || printf 'an answer that is not JSON'
}

case ${CLUSTERDECK_URL:-} in
  http://* | https://*) api=${CLUSTERDECK_URL%/}/api/v1 ;;
  *) finish 2 refused 'CLUSTERDECK_URL: expected an address that begins with http:// or https://' ;;
esac
case ${DEPLOY_APP:-} in
  '') ;;
  *[!A-Za-z0-9._-]*) finish 2 refused 'DEPLOY_APP: expected the name of an app' ;;
  *) api=$api/apps/$DEPLOY_APP ;;
esac
case ${DEPLOY_TIMEOUT:=1800} in
  *[!0-9]*) finish 2 refused 'DEPLOY_TIMEOUT: expected a number of seconds' ;;
esac

case ${DEPLOY_GIT:+git}${DEPLOY_PATH:+path} in
  gitpath) finish 2 refused 'expected either DEPLOY_GIT or DEPLOY_PATH' ;;
  git) orders=$api/releases fields='{ git: text("DEPLOY_GIT"), guess: true }' ;;
  *) orders=$api/rollouts fields='{ kind: "deploy", path: text("DEPLOY_PATH") }' ;;
esac

jq --null-input 'def text($name): env[$name] // ""; def count($name): text($name) | tonumber? // .;
  '"$fields"' + { note: text("DEPLOY_NOTE"),
    strategy: { surge: count("DEPLOY_SURGE"), canary: { workers: count("DEPLOY_CANARY") }, onFailure: text("DEPLOY_ON_FAILURE") } }
  | walk(if type == "object" then with_entries(select(.value != "" and .value != {})) else . end)' > "$folder/order"

# With a key the order is carried out once, however often it is sent.
key=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
for pause in 1 2 4 0; do
  ask --header 'Content-Type: application/json' --header "Idempotency-Key: $key" --data-binary "@$folder/order" "$orders"
  case $status in
    none) sleep "$pause" ;;
    *) break ;;
  esac
done
case $status in
  202) id=$(told .id) ;;
  none) finish 5 unreachable "nobody answers at $CLUSTERDECK_URL: $(cat "$folder/error")" ;;
  401 | 403) finish 3 refused "$(told .detail)" ;;
  409) finish 4 refused "$(told .detail)" ;;
  4*) finish 2 refused "$(told .detail)" ;;
  *) finish 1 refused "${status}: $(told .detail)" ;;
esac

until=$(($(date +%s) + DEPLOY_TIMEOUT))
missed=0

# A master that is replaced is back within seconds, so it is asked again for a while.
wait_for_master () {
  [ $((missed += 1)) -le 30 ] || finish 5 unreachable "nobody answers at $CLUSTERDECK_URL any more: $status $(cat "$folder/error")"
  sleep 1
}

check_time () {
  [ "$(date +%s)" -lt "$until" ] || finish 124 running "not done within $DEPLOY_TIMEOUT s; it goes on"
}

# What a build writes is indented, so that no line of it is a command for whoever reads this log.
indent () {
  jq --raw-input --unbuffered --raw-output '"  " + gsub("\r"; "\n  ")' >&2
}

follow_build () {
  : > "$folder/events"
  while :; do
    place=$(sed -n 's/^id: //p' "$folder/events" | tail -n 1)
    place=${place:-0}
    left=$((until - $(date +%s)))
    # A connection that is cut is opened again.
    { curl --silent --no-buffer --max-time "$((left > 0 ? left : 1))" --header "@$folder/headers" --header "Last-Event-ID: $place" "$api/jobs/runs/$id/stream" 2> "$folder/error" || true; } |
      tee -a "$folder/events" | jq --raw-input --unbuffered --join-output 'select(startswith("data: {")) | .[6:] | fromjson? | .text? // empty' | indent
    ask "$api/jobs/runs/$id"
    if [ "$status" = 200 ]; then
      missed=0
      case $(told .state) in
        succeeded) break ;;
        running) sleep 1 ;;
        *) finish 1 failed "$(told .reason)" ;;
      esac
    else
      wait_for_master
    fi
    check_time
  done
  id=$(told .rollout)
  release=$(told .release)
}

case $orders in
  */releases) follow_build ;;
esac
rollout=$id
echo "rollout $rollout has started" >&2

while :; do
  ask "$api/rollouts/$rollout?wait=5s"
  if [ "$status" = 200 ]; then
    missed=0
    release=$(told .to)
    # A deploy that is held waits for a person, perhaps for days: this script does not.
    case $(told '"\(.state) \(.done)"') in
      'succeeded true') finish 0 succeeded '' ;;
      *' true' | 'held '*) finish 1 "$(told .state)" "$(told .reason)" ;;
    esac
  else
    wait_for_master
  fi
  check_time
done
