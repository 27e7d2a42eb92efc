/** @typedef {import('commander').Command} Command */

/**
 * What help shows of each command: what is wanted, and the line that does it. A test parses every one of them.
 * @type {Readonly<Record<string, [want: string, line: string][]>>}
 */
export const EXAMPLES = Object.freeze({
  clusterdeck: [
    ['run an app on all CPUs', 'clusterdeck start app.js'],
    ['see how it is', 'clusterdeck status'],
    ['roll out new code, and fail if that fails', 'clusterdeck deploy --wait --note "faster totals"']
  ],
  start: [
    ['four workers, with arguments for the app', 'clusterdeck start app.js --workers 4 -- --app-flag value'],
    ['run what npm run serve would start', 'clusterdeck start npm -- run serve'],
    ['for development: roll out whatever is saved', 'clusterdeck start app.js --workers 2 --watch']
  ],
  systemd: [
    ['a unit file for this app', 'clusterdeck systemd app.js --name shop > shop.service'],
    ['and a socket that systemd holds', 'clusterdeck systemd app.js --socket 3000 > app.units']
  ],
  up: [
    ['all apps of the config file, until Ctrl-C', 'clusterdeck up'],
    ['in the background: returns once they are ready', 'clusterdeck up --detach'],
    ['one of them, and what it depends on', 'clusterdeck up mail --detach']
  ],
  down: [
    ['all apps of the config file', 'clusterdeck down'],
    ['one of them', 'clusterdeck down mail']
  ],
  ls: [
    ['what runs, and how it is', 'clusterdeck ls'],
    ['for a script', 'clusterdeck ls --json | jq -r .[].name']
  ],
  import: [
    ['from a file of PM2', 'clusterdeck import ecosystem.config.js'],
    ['with the variables of env_production, to be looked at', 'clusterdeck import ecosystem.config.js --env production --print'],
    ['from the PM2 that runs', 'clusterdeck import --pm2']
  ],
  install: [
    ['see what would be done', 'clusterdeck install app.js --dry-run'],
    ['now and at every boot, for yourself, or as root for the machine', 'clusterdeck install app.js --name shop']
  ],
  uninstall: [
    ['see what would be done', 'clusterdeck uninstall --name shop --dry-run'],
    ['stop it, and start it no more', 'clusterdeck uninstall --name shop']
  ],
  status: [
    ['of the app of this folder, each second', 'clusterdeck status --watch'],
    ['of another machine', 'clusterdeck status --url https://deck.example.com --token-file /run/secrets/deck'],
    ['of a deck in another folder', 'clusterdeck status -n shop']
  ],
  restart: [
    ['restart all workers, and wait for the end', 'clusterdeck restart --wait'],
    ['say why', 'clusterdeck restart --note "new certificates"']
  ],
  deploy: [
    ['roll out what is on the disk, and fail if that fails', 'clusterdeck deploy --wait --note "faster totals"'],
    ['let one new worker be judged for two minutes first', 'clusterdeck deploy --wait --canary 1 --canary-time 2m'],
    ['replace half of the workers at a time, and stop for a person where it fails', 'clusterdeck deploy --surge 50% --on-failure hold']
  ],
  rollback: [
    ['to the release before', 'clusterdeck rollback --wait'],
    ['to another one of those that "clusterdeck releases" lists', 'clusterdeck rollback r12 --wait']
  ],
  pause: [
    ['stop where it is', 'clusterdeck pause'],
    ['and follow it, until somebody resumes or aborts it', 'clusterdeck pause --wait']
  ],
  resume: [
    ['go on', 'clusterdeck resume'],
    ['and wait for the end', 'clusterdeck resume --wait --timeout 30m']
  ],
  abort: [
    ['give up', 'clusterdeck abort'],
    ['and wait until the old release serves again', 'clusterdeck abort --wait']
  ],
  promote: [
    ['roll out what the canary tries', 'clusterdeck promote'],
    ['and wait for the end', 'clusterdeck promote --wait']
  ],
  retry: [
    ['try once more', 'clusterdeck retry'],
    ['and wait for the end', 'clusterdeck retry --wait']
  ],
  fleet: [
    ['the decks on all machines, and their rollout', 'clusterdeck fleet'],
    ['roll out what is on the disk of each, host by host, the first one alone', 'clusterdeck fleet deploy --canary web-1 --batch 25% --pause 60s --wait'],
    ['take back what is done', 'clusterdeck fleet abort --wait']
  ],
  releases: [
    ['what can be gone back to', 'clusterdeck releases'],
    ['what was different in one of them', 'clusterdeck releases r7']
  ],
  scale: [
    ['eight workers', 'clusterdeck scale 8'],
    ['two, once the others have drained', 'clusterdeck scale 2 --wait']
  ],
  send: [
    ['to every worker that is ready', 'clusterdeck send reload'],
    ['with data, to one of those that "clusterdeck status" lists', "clusterdeck send log-level '{\"level\": \"debug\"}' --worker 5"]
  ],
  acknowledge: [
    ['one of those that "clusterdeck status" lists', 'clusterdeck acknowledge 812'],
    ['for a script', 'clusterdeck acknowledge 812 --json']
  ],
  kill: [
    ['one of those that "clusterdeck status" lists', 'clusterdeck kill 5'],
    ['for a script', 'clusterdeck kill 5 --json']
  ],
  diagnose: [
    ['what a worker is busy with', 'clusterdeck diagnose 7 --kind cpu-profile --duration 10s --output slow.cpuprofile'],
    ['what its memory is made of', 'clusterdeck diagnose 7 --kind heap-statistics']
  ],
  upgrade: [
    ['to the version that was just installed', 'clusterdeck upgrade --wait'],
    ['to another node', 'clusterdeck upgrade --node /opt/node-24/bin/node --wait']
  ],
  history: [
    ['who died since yesterday', 'clusterdeck history --type worker.exited --since 24h'],
    ['what went wrong in slot 2', 'clusterdeck history --type problems --slot 2'],
    ['all of it for a spreadsheet', 'clusterdeck history --csv > history.csv']
  ],
  logs: [
    ['follow the errors of all workers, with the time', 'clusterdeck logs --follow --timestamps --stream stderr'],
    ['what was written about payments in the last two hours', 'clusterdeck logs --q payment --since 2h'],
    ['for a script', 'clusterdeck logs --json | jq -r .text']
  ],
  crashes: [
    ['what the workers died of in the last day', 'clusterdeck crashes --since 24h'],
    ['one group, with its newest crash', 'clusterdeck crashes 12'],
    ['what is still to be looked at', 'clusterdeck crashes --state open']
  ],
  webhooks: [
    ['what was delivered, and what was not', 'clusterdeck webhooks'],
    ['send a test to all of them, or to one, and fail if that fails', 'clusterdeck webhooks test'],
    ['send delivery 7 of webhook 1 again', 'clusterdeck webhooks retry 1 7']
  ],
  config: [
    ['every option, its value and where that comes from', 'clusterdeck config'],
    ['let workers drain for ten seconds at most', 'clusterdeck config set drain.deadlineMs=10000'],
    ['several at once, all or none', 'clusterdeck config set rollout.surge=25% rollout.onFailure=hold']
  ],
  open: [
    ['in the browser of this machine', 'clusterdeck open'],
    ['a link for a browser elsewhere', 'clusterdeck open --url https://deck.example.com --token-file /run/secrets/deck'],
    ['for somebody who is to look, and no more', 'clusterdeck open --as ada --role viewer']
  ],
  tokens: [
    ['which there are', 'clusterdeck tokens'],
    ['one for a script that deploys', 'clusterdeck tokens create ci --role operator --ttl 30d'],
    ['end one, and all that was opened by it', 'clusterdeck tokens revoke 3']
  ],
  stop: [
    ['end the app of this folder', 'clusterdeck stop'],
    ['give its requests more time to end', 'clusterdeck stop --timeout 15m']
  ],
  completion: [
    ['for this bash, or in ~/.bashrc for every one', 'source <(clusterdeck completion bash)'],
    ['for every zsh', 'clusterdeck completion zsh > $fpath[1]/_clusterdeck'],
    ['for every fish', 'clusterdeck completion fish > ~/.config/fish/completions/clusterdeck.fish']
  ],
  help: [
    ['the flags of a command', 'clusterdeck help deploy'],
    ['a page of the manual', 'clusterdeck help getting-started'],
    ['a page with the name of a command', 'clusterdeck help logs.md']
  ]
})

/** @param {string} command */
export function examplesText (command) {
  return `\nExamples:\n${EXAMPLES[command].map(([want, line]) => `  # ${want}\n  ${line}`).join('\n')}`
}
