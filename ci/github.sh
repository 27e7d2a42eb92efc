#!/bin/sh
# The step of action.yml: deploys, and tells the verdict to GitHub as outputs, summary and comment.
set -eu
umask 077
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
here=$(dirname "$0")

code=0
if [ -n "${SSH_HOST:-}" ]; then
  sh "$here/ssh-deploy.sh" > "$folder/verdict" || code=$?
else
  sh "$here/deploy.sh" > "$folder/verdict" || code=$?
fi
cat "$folder/verdict" >> "$GITHUB_OUTPUT"

value () {
  sed -n "s/^$1=//p" "$folder/verdict"
}

state=$(value state)
reason=$(value reason)
release=$(value release)
title="Deploy${DEPLOY_APP:+ of $DEPLOY_APP}: ${state:-failed}${release:+, $release}"
# In a fence nothing of the reason is Markdown. It is one line without ~, so it cannot end the fence.
{
  printf '### %s\n' "$title"
  if [ -n "$reason" ]; then printf '\n~~~~~~~~\n%s\n~~~~~~~~\n' "$(printf '%s' "$reason" | tr -d '~')"; fi
} > "$folder/summary"
cat "$folder/summary" >> "$GITHUB_STEP_SUMMARY"
# The reason is never at the beginning of a line, where it could be a command for the runner.
echo "$title${reason:+: $reason}"

if [ -n "${COMMENT_TOKEN:-}" ]; then
  number=$(jq --raw-output '.pull_request.number // empty' "$GITHUB_EVENT_PATH")
  place=${number:+issues/$number}
  printf 'Authorization: Bearer %s\n' "$COMMENT_TOKEN" > "$folder/headers"
  jq --raw-input --slurp '{ body: . }' "$folder/summary" > "$folder/comment"
  curl --silent --show-error --fail --max-time 60 --output /dev/null --header "@$folder/headers" --header 'Content-Type: application/json' \
    --data-binary "@$folder/comment" "$GITHUB_API_URL/repos/$GITHUB_REPOSITORY/${place:-commits/$GITHUB_SHA}/comments" ||
    echo 'the comment could not be written'
fi
exit "$code"
