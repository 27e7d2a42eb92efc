#!/bin/sh
# As deploy.sh, but by "clusterdeck deploy" on the machine itself, over SSH. It needs ssh and jq.
#
#   SSH_HOST, SSH_USER, SSH_PORT   where it is
#   SSH_KEY                        the private key, as text
#   SSH_KNOWN_HOSTS                lines of known_hosts with the key of that machine: "ssh-keyscan <host>", checked once by you
set -eu
umask 077
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# The same as in deploy.sh, which has to stand alone where somebody copies it from the manual.
finish () {
  printf '%s' "$3" | tr -s '[:cntrl:]' ' ' > "$folder/reason"
  printf 'state=%s\nrollout=%s\nrelease=%s\nreason=%s\n' "$2" "${rollout:-}" "${release:-}" "$(cut -c 1-2000 "$folder/reason")"
  exit "$1"
}

# A name that begins with a dash would be an option of ssh.
checked () {
  case $2 in
    '' | -* | *[!A-Za-z0-9._:-]*) finish 2 refused "$1: expected a name or an address" ;;
  esac
}

# The shell of the other machine reads this line again.
words=
add () {
  words="$words '$(printf '%s' "$1" | sed "s/'/'\\\\''/g")'"
}

given () {
  if [ -n "$2" ]; then
    add "$1"
    add "$2"
  fi
}

checked SSH_HOST "${SSH_HOST:-}"
checked SSH_USER "${SSH_USER:-}"
checked SSH_PORT "${SSH_PORT:=22}"
[ -n "${SSH_KNOWN_HOSTS:-}" ] || finish 2 refused 'SSH_KNOWN_HOSTS: expected the key of the machine, as ssh-keyscan prints it'
case ${DEPLOY_APP:-} in
  -*) finish 2 refused 'DEPLOY_APP: expected the name of an app' ;;
esac
case ${DEPLOY_TIMEOUT:=1800} in
  *[!0-9]*) finish 2 refused 'DEPLOY_TIMEOUT: expected a number of seconds' ;;
esac
printf '%s\n' "${SSH_KEY:-}" > "$folder/key"
printf '%s\n' "$SSH_KNOWN_HOSTS" > "$folder/known_hosts"

for word in clusterdeck deploy ${DEPLOY_APP:+"$DEPLOY_APP"} --wait --json --timeout "${DEPLOY_TIMEOUT}s"; do add "$word"; done
given --git "${DEPLOY_GIT:-}"
[ -z "${DEPLOY_GIT:-}" ] || add --yes
given --path "${DEPLOY_PATH:-}"
given --note "${DEPLOY_NOTE:-}"
given --surge "${DEPLOY_SURGE:-}"
given --canary "${DEPLOY_CANARY:-}"
given --on-failure "${DEPLOY_ON_FAILURE:-}"

# What comes is shown at once. It is indented, so that no line of it is a command for whoever reads this log.
{
  code=0
  ssh -i "$folder/key" -o IdentitiesOnly=yes -o BatchMode=yes -o ConnectTimeout=30 -o ServerAliveInterval=15 \
    -o StrictHostKeyChecking=yes -o "UserKnownHostsFile=$folder/known_hosts" -p "$SSH_PORT" -l "$SSH_USER" "$SSH_HOST" "$words" \
    2>&1 > "$folder/answer" || code=$?
  echo "$code" > "$folder/code"
} | tee "$folder/error" | jq --raw-input --unbuffered --raw-output '"  " + gsub("\r"; "\n  ")' >&2
code=$(cat "$folder/code")

told () {
  jq --raw-output "$1 // empty" "$folder/answer" 2> /dev/null || true
}

rollout=$(told .id)
release=$(told .to)
last=$(tail -n 1 "$folder/error")
case $code in
  0) finish 0 succeeded '' ;;
  255) finish 5 unreachable "${last:-ssh has failed}" ;;
  124) finish 124 running "$last" ;;
esac
if [ -n "$rollout" ]; then finish "$code" "$(told .state)" "$(told .reason)"; fi
case $code${DEPLOY_GIT:+git} in
  1git) finish 1 failed "$last" ;;
  *) finish "$code" refused "${last:-exit code $code}" ;;
esac
