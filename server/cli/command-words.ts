/**
 * The words of the help of all commands. A block is a command: its arguments and what it does, its own usage where that
 * differs, what its argument is, its options, and examples, each with what somebody wants. An option without words has
 * those of the first block. Help lists the commands in this order.
 */
const WORDS = `--json: print the result as JSON
--wait: wait for the end; fail if the rollout fails
--note <text>: why, for the history
--update-env: an app of the host: deploy it with the variables of this shell
--wait-for-turn: where another rollout of the app runs, begin once it has ended
--release <value>: only this release
--slot <n>: only this slot
--worker <id>: only this worker
--stream <stdout|stderr>: only this stream
--since <value>: only since: 2026-01-31T12:00:00Z, or 15m, 2h, 7d ago
--until <value>: only before this time
--all-hosts: of all members of the fleet that have the app; with --member: of that one alone
-c, --config <path>: config file with the apps (default: clusterdeck.config.{js,mjs,json}; env: CLUSTERDECK_CONFIG)
--scope <system|user>: which service manager: that of the machine, or of the user (default: system for root, else user)
--dry-run: print what would be done, and do nothing
--name <name>: name of the units (default: that of the package, or of the file)
--user <name>: user of the service (default: the current one; for root, a user of its own)
--socket <address>: port, address with port, or path that systemd listens on; repeatable
--notify-reload: Type=notify-reload, which needs systemd 253

start: run an app as a cluster: in the foreground, or in the host of this user; arguments for the app follow --
  usage: [options] [entry] [-- app arguments]
  [entry...]: a file, a folder, an installed program, or npm, npx, yarn or pnpm with arguments after --, or after -- any command, such as python3 app.py (default: "main" or script "start" of package.json); or apps of the host that are stopped
  -d, --detach: let the host of this user run it, which is started if there is none; return once the app is ready
  --no-wait: with --detach, or apps of the host: return at once
  --timeout <duration>: with --detach, or apps of the host: how long they may take to get ready (default: 5m; env: CLUSTERDECK_TIMEOUT)
  --apply: with --detach: deploy an app that runs already as it is ordered now
  --all: start all apps of the host
  --json: with --detach, or apps of the host: print the result as JSON
  clusterdeck start app.js --workers 4 -- --app-flag value  # four workers, with arguments for the app
  clusterdeck start app.js --detach  # in the background: it survives this terminal
  clusterdeck start app.js --workers 2 --watch  # for development: deploy each change that you save

host: run the host of this user: the apps of "clusterdeck ls" that are not stopped, with one admin page
  -d, --detach: in the background; return once its page is there
  clusterdeck host  # in the foreground, as a unit of systemd does
  clusterdeck host --detach  # bring back its apps in the background
  clusterdeck host --admin-port 9800  # with the admin page on another port

systemd: print a systemd unit file that runs an app with these options of start
  usage: [options] [entry] [-- app arguments]
  [entry]: what "clusterdeck start" would run (default: "main" or script "start" of package.json)
  The unit:
  --name <name>
  --user <name>
  --socket <address>
  --notify-reload
  --scope <system|user>: which service manager: that of the machine, or of the user (default: system)
  clusterdeck systemd app.js --name shop > shop.service  # a unit file for this app
  clusterdeck systemd app.js --socket 3000 > app.units  # and a socket that systemd holds

install: have systemd run the host with all its apps, or one app with these options of start, now and at every boot
  usage: [options] [entry] [-- app arguments]
  [entry]: the main file of an app; without it and without options of an app: the host
  The installation:
  --scope <system|user>
  --dry-run
  --force: replace other units of this name
  The unit:
  --name <name>
  --user <name>
  --socket <address>
  --notify-reload
  clusterdeck install  # the host, with what "clusterdeck start -d" has started
  clusterdeck install app.js --dry-run  # see what would be done for one app
  clusterdeck install app.js --name shop  # one app, for yourself, or as root for the machine

uninstall: undo install; the data folder stays
  [entry]: the main file of an app; without it and without a name: the host
  --scope <system|user>
  --dry-run
  --name <name>
  --app <name>: one of the apps of the config file
  -c, --config <path>: config file that names the entry
  --force: also remove units that "clusterdeck install" has not written
  clusterdeck uninstall  # stop the host, and remove its unit
  clusterdeck uninstall --name shop --dry-run  # see what would be done
  clusterdeck uninstall --name shop  # stop an app, and remove its units

up [name...]: run the apps of the config file, or some and what they depend on, in the host of this user, until Ctrl-C
  -c, --config <path>
  --timeout <duration>: with --detach: how long they may take to get ready (default: 5m; env: CLUSTERDECK_TIMEOUT)
  -d, --detach: return once they are ready; they go on in the host
  --no-wait: with --detach: return at once
  --apply: with --detach: deploy those that run already as they are configured now
  clusterdeck up  # all apps of the config file, until Ctrl-C
  clusterdeck up --detach  # in the background: returns once they are ready
  clusterdeck up mail --detach  # one of them, and what it depends on

down [name...]: stop the apps of the config file, or some, and wait for their end
  -c, --config <path>
  --timeout <duration>: how long each may take (default: 5m; env: CLUSTERDECK_TIMEOUT)
  --json
  --all: end the host of this user, with all apps that are in it; its next start brings them back
  clusterdeck down  # all apps of the config file
  clusterdeck down mail  # one of them
  clusterdeck down --all  # the host, with all its apps

adopt [folder]: move what runs into the host of this user, which is started if there is none: a deck with its history, or a program that something else has started. No connection is refused
  A program that is no deck:
  --pm2 [name...]: all apps that the running PM2 runs, or these
  --port <n>: the program that listens on this port
  --pid <n>: the program of this process
  -w, --workers <n>: how many workers it gets (default: what its config file says, else one, or one for each of its processes of node:cluster)
  --grace <duration>: how long its connections may take to end by themselves before it is asked to end (default: 10s)
  A deck:
  --app <name>: which app of the config file in the folder
  --no-wait: return once the host has agreed
  Options:
  --name <name>: what the host is to call it (default: its own name)
  --timeout <duration>: how long its new workers may take to get ready (default: 5m; env: CLUSTERDECK_TIMEOUT)
  --json
  clusterdeck adopt  # the deck of this folder
  clusterdeck adopt --pm2  # all apps of PM2
  clusterdeck adopt --port 3000  # what listens on port 3000, whoever has started it

ls: list the apps of the host of this user, also those that do not run, and all other decks of this user on this machine
  --json
  clusterdeck ls  # what runs, and its state
  clusterdeck ls --json | jq -r .[].name  # for a script

backup <file>: write the apps of the host of this user, and all histories, into one file; everything runs on meanwhile
  --with-secrets: also the values of variables, the tokens of the data folders, and the alerts
  --force: replace a file that is there
  --json
  clusterdeck backup /backups/host.tgz  # without secrets
  clusterdeck backup /backups/host.tgz --with-secrets --force  # with all that a new machine needs, each night over the last one

restore <file>: put a backup in place where no host runs: apps, histories and tokens; it starts nothing
  --dry-run: check the file, print what would be restored and what is missing, and change nothing
  --update-env: take the variables that the backup has left out from this shell
  --force: where apps or histories are there already: put these aside, into before-restore-… beside them
  --json
  clusterdeck restore /backups/host.tgz --dry-run  # look first: what is missing?
  clusterdeck restore /backups/host.tgz --update-env  # with the variables of this shell

import [file]: write a config file from a PM2 file (a JavaScript file is executed), or from a running PM2
  --pm2: ask the running PM2, with "pm2 jlist"
  --env <name>: use the variables of env_<name>
  --output <file>: the config file (default: clusterdeck.config.mjs)
  --force: overwrite it
  --print: print it to stdout, and write nothing
  clusterdeck import ecosystem.config.js  # from a PM2 file
  clusterdeck import ecosystem.config.js --env production --print  # print it, with the variables of env_production
  clusterdeck import --pm2  # from the running PM2

status [app...]: print the state of an app and its workers, or a line for each of several
  --watch: refresh every second until Ctrl-C; print one line per change when piped
  clusterdeck status --watch  # of the app of this folder, each second
  clusterdeck status --url https://deck.example.com --token-file /run/secrets/deck  # of another machine
  clusterdeck status shop mail  # of apps of this user, in any folder

doctor [app...]: check an app and this machine: what could drop a request or lose a release, and how to mend it
  usage: [options] [app...] [entry]
  clusterdeck doctor  # the app of this folder, whether it runs or not
  clusterdeck doctor ./app.js --workers 4  # an app before its first start, with the options of start
  clusterdeck doctor --all  # all apps of the host; for CI, it exits with 6 if one has a problem

restart [app...]: restart all workers; each new one is ready before its old one drains
  --wait
  --note <text>
  --update-env
  --wait-for-turn
  clusterdeck restart --wait  # the app of this folder, and wait for the end
  clusterdeck restart shop mail --note "new certificates"  # two apps, and say why
  clusterdeck restart --all  # all apps of the host

deploy [app...]: deploy the code on disk, slot by slot
  --wait
  --note <text>: what is new, for the history
  --update-env
  --wait-for-turn
  --path <folder>: deploy this folder, below releases.root
  --dry-run: print what would run, what has changed and what would be refused, and change nothing
  --git <ref>: deploy this branch, tag or commit: exported by git into a folder of its own, and built there
  --yes: with --git: build as the lock file suggests, where hooks.build is not set
  Overrides of the configuration:
  --surge <n|n%>: how many workers are replaced at the same time
  --min-ready <duration>: how long a new worker must stay ready before the old one drains
  --canary <n>: first run this many new workers beside the old ones and compare them
  --canary-time <duration>: how long the canary lasts
  --on-failure <rollback|hold>: after a failure: roll back, or hold the rollout until you decide
  clusterdeck deploy --wait --note "faster totals"  # deploy the code on disk, and fail if that fails
  clusterdeck deploy --git main --wait  # a commit of the repository, built in a folder of its own
  clusterdeck deploy --wait --canary 1 --canary-time 2m  # compare one new worker for two minutes first

setup-git-push [folder]: make a git repository for pushes: what is pushed to its branch is deployed
  --branch <name>: the branch that is deployed (default: main)
  clusterdeck setup-git-push  # for the app of this folder
  clusterdeck setup-git-push --branch production  # another branch

rollback [app...]: roll back to the previous release, or to another one
  usage: [options] [app...] [release]
  --wait: wait for the end; fail if the rollback fails
  --note <text>
  --dry-run: print what would run and what would be refused, and change nothing
  clusterdeck rollback --wait  # to the previous release
  clusterdeck rollback shop r12 --wait  # to another one that "clusterdeck releases shop" lists

pause: pause the running rollout
  --wait: wait for the end of the rollout
  clusterdeck pause  # pause the rollout
  clusterdeck pause --wait  # and follow it, until somebody resumes or aborts it

resume: resume the paused rollout
  --wait: wait for the end of the rollout
  clusterdeck resume  # resume the rollout
  clusterdeck resume --wait --timeout 30m  # and wait for the end

abort: abort the running rollout and roll back what it replaced
  --wait: wait for the end of the rollout
  clusterdeck abort  # abort the rollout
  clusterdeck abort --wait  # and wait until the old release serves again

promote: end the canary of the running rollout without a verdict
  --wait: wait for the end of the rollout
  clusterdeck promote  # deploy what the canary tries
  clusterdeck promote --wait  # and wait for the end

retry: retry the failed step of a rollout that is held
  --wait: wait for the end of the rollout
  clusterdeck retry  # try once more
  clusterdeck retry --wait  # and wait for the end

fleet [action] [subject]: print the hosts of the fleet; restart, deploy or roll back an app on all of them, host by host; pause, resume or abort that; resolve, mute or reopen a crash group on all; forget a host that will not come back
  --wait: wait for the end, with a line per host; fail if it fails
  --note <text>: why, for the histories
  --path <folder>: with deploy: this folder, below releases.root of each host
  --push <folder>: with deploy: send this folder to all hosts, and deploy it
  --push-also <names>: with --push: also send these .env or ignored files, separated by commas
  --batch <n|n%>: how many hosts at the same time (default: 1)
  --pause <duration>: how long to wait between two batches
  --deadline <duration>: how long one host may take (default: 1h)
  --order <label>: sort the hosts by this label
  --canary <member>: begin with this host, alone
  --only <label=value>: only hosts with these labels, separated by commas
  --dry-run: print which host would get what when, and which are left out, and change nothing
  --on-failure <hold|rollback>: when a host fails: start no other (default), or roll back the finished ones, last first
  clusterdeck fleet  # the hosts on all machines, with their apps
  clusterdeck fleet deploy --app shop --canary web-1 --batch 25% --pause 60s --wait  # deploy an app host by host, the first one alone
  clusterdeck fleet abort --wait  # roll back what is done of the app of this folder

releases [app...]: print the releases, or one of them
  usage: [options] [app...] [release]
  clusterdeck releases  # the releases that you can roll back to
  clusterdeck releases r7  # what changed in one of them

scale [app...]: run this many workers
  usage: [options] [app...] <n>
  --wait: wait until they are ready
  clusterdeck scale 8  # eight workers
  clusterdeck scale shop 2 --wait  # two, once the others have drained

send <type> [json]: send a message to the app: to all ready workers, or to one
  --worker <id>: only to this worker
  clusterdeck send reload  # to every ready worker
  clusterdeck send log-level '{"level": "debug"}' --worker 5  # with data, to one worker that "clusterdeck status" lists

acknowledge <notice>: acknowledge a notice: it leaves the status and the overview
  --host: a notice of the host itself
  clusterdeck acknowledge 812  # a notice that "clusterdeck status" lists
  clusterdeck acknowledge 812 --json  # for a script

kill <worker>: kill one worker with SIGKILL; its replacement starts at once
  clusterdeck kill 5  # a worker that "clusterdeck status" lists
  clusterdeck kill 5 --json  # for a script

end-connections <worker>: end the WebSockets, event streams and other connections that a replaced worker keeps, and then the worker
  clusterdeck end-connections 5  # a worker that "clusterdeck status" lists as draining
  clusterdeck end-connections 5 --json  # for a script

diagnose <worker>: profile or inspect one worker; a heap snapshot pauses it and contains its secrets
  --kind <cpu-profile|heap-snapshot|heap-statistics|report>: what to take (required)
  --duration <duration>: how long to profile, at most 60s (default: 10s)
  --output <file>: output file (default: a generated name in the working folder)
  clusterdeck diagnose 7 --kind cpu-profile --duration 10s --output slow.cpuprofile  # what a worker is busy with
  clusterdeck diagnose 7 --kind heap-statistics  # what its memory consists of

profile: print what the workers ran, by continuous profiling: the busiest functions of a time, or what has changed
  --since <value>: from then on: 2026-01-31T12:00:00Z, or 15m, 1h ago (default: all of the last hour)
  --until <value>: up to then
  --worker <id>
  --release <value>
  --before-release <value>: what has changed against this release
  --output <file>: also write it as a CPU profile (.cpuprofile), for a flame graph
  clusterdeck profile --since 10m  # what took the time in the last ten minutes
  clusterdeck profile --release r9 --before-release r8  # what a release brought

upgrade: switch to the installed version of clusterdeck, or to another node, without downtime
  --node <path>: node binary of the next master (default: the current one)
  --wait: wait for the end; fail if the upgrade fails
  --note <text>
  clusterdeck upgrade --wait  # to the version that was just installed
  clusterdeck upgrade --node /opt/node-24/bin/node --wait  # to another node; apps stay on theirs

history [app...]: print events, newest first; where this is the folder of no app, those of all apps of the host
  --host: those of the host itself: apps added, stopped, failed, removed; tokens, sign-ins, masters
  --csv: print all that match as CSV
  --all-hosts: as all members of the fleet have reported it; with --member: as that one has, also if it is gone
  --limit <n>: how many events, at most 1000 (default: 50; with --csv: all)
  --type <value>: only these types: worker.exited, worker.*, problems; separated by commas
  --cause <value>: only this cause: crash, killed, deploy, …
  --slot <n>
  --worker <id>
  --release <value>
  --rollout <value>: only this rollout
  --since <value>
  --until <value>
  --q <value>: only with this text in message, type or cause
  clusterdeck history --type worker.exited --since 24h  # which workers exited since yesterday
  clusterdeck history --host --type "app.*"  # who has added, stopped or removed which app of the host
  clusterdeck history --all-hosts --type problems  # what went wrong on any host of the fleet

logs [app...]: print the last lines of the workers' output
  -f, --follow: follow new output
  --timestamps: print when each line arrived
  --all-hosts
  --slot <n>
  --stream <stdout|stderr>
  --lines <n>: lines of each log, or of all matches together, at most 1000, of several hosts 200 (default: 100)
  --q <words>: search all files: only lines with these words, or with /a regular expression/
  --level <names>: only these levels: error, warn, info, debug, none; separated by commas
  --since <value>
  --until <value>
  --around <value>: the lines before and after this time, or the place of a line from --json
  clusterdeck logs --follow --timestamps --stream stderr  # follow the errors of all workers, with the time
  clusterdeck logs --q payment --level error --since 2h --all-hosts  # errors about payments of the last two hours, on all hosts of its fleet
  clusterdeck logs shop mail --follow  # of several apps, with the name of the app before each line

proxy [app...]: print a configuration of nginx or Caddy for what runs: WebSockets, event streams, deploys; it changes nothing
  usage: [options] <nginx|caddy> [app...]
  --domain <name>: the host name of the app; of several apps: each gets its own name below this one
  clusterdeck proxy nginx --domain shop.example.com  # for the app of this folder
  clusterdeck proxy caddy shop mail --domain example.com  # one file for shop.example.com and mail.example.com

routes [app...]: print which routes are slow or fail: requests, errors, p50 and p99 of each
  --since <value>: only of the last hour: 15m ago, or since a time such as 2026-01-31T12:00:00Z (default: all since the master began)
  --release <value>
  --compare <value>: beside the figures of this release
  --sort <requests|errors|p50|p99>: the highest first (default: those with the most time)
  clusterdeck routes --since 15m --sort p99  # the slowest routes of the last quarter of an hour
  clusterdeck routes --release r8 --compare r7  # what a release has made slower

crashes [app...]: print the crash groups, or one of them
  usage: [options] [app...] [group]
  --state <open|resolved|muted>: only this state
  --q <words>: only with these words in message or stack
  --all-hosts
  --release <value>
  --since <value>
  clusterdeck crashes --since 24h  # the crashes of the last day
  clusterdeck crashes --all-hosts  # those of all hosts of the fleet, each fault once
  clusterdeck crashes 12  # one group, with its newest crash

jobs [app...]: print the jobs of an app; start one, end a run, acknowledge a failure, pause or resume a job, print runs and their output
  usage: [options] [app...] [ls|run|runs|end|acknowledge|pause|resume] [job|run]
  --limit <n>: with runs: how many, at most 100 (default: 20)
  --wait: with run: print its output, wait for its end, and exit as it does
  clusterdeck jobs  # what runs next, and how the last runs ended
  clusterdeck jobs run nightly --wait  # start one now, and wait for its end
  clusterdeck jobs runs nightly  # its runs, and the output of one of them

run [app...]: run a command once in the folder of the current release, with the variables of its workers
  usage: [options] [app] -- command [arguments]
  -i, --interactive: with the stdin and the terminal of this shell: a console, or a program that reads a file; its output is not kept
  --detach: print the id of the run, and do not wait for its end
  clusterdeck run -- npm run migrate  # a migration
  clusterdeck run --interactive -- node  # a console
  clusterdeck run --detach -- node rebuild-index.js  # without waiting for its end

alerts [action] [word...]: print the alerts and their deliveries; add, change, pause, resume, delete or test one, or send a failed delivery again
  usage: [options] [add|change|pause|resume|delete|test|retry] [kind|id] [receiver|delivery]
  --title <name>: with add and change: what it is called
  --events <types>: with add and change: the events that are sent, such as worker.*,rollout.failed (default: the problems)
  --url-file <path>: with add and change: read the address from this file, as others can see arguments
  --secret-file <path>: with a webhook: sign messages with the secret in this file
  --body-file <path>: with a webhook: the JSON that is sent, with placeholders such as {{title}}
  --headers-file <path>: with a webhook: more headers, as a JSON object of texts by name
  --server <host:port>: with mail: the SMTP server
  --host: those of the host, for all of its apps (default where this is the folder of no app)
  --apps <names>: of the host: with add and change, the apps that it is for, such as shop,mail (default: all; * with change)
  --from <address>: with mail: the sender
  --user <name>: with mail: the user to sign in as at that server
  --password-file <path>: with mail: a file with the password of that user
  clusterdeck alerts add slack --url-file slack-url.txt  # send the problems to a channel of Slack; discord, teams, mail, sentry and webhook are the other kinds
  clusterdeck alerts add slack --url-file slack-url.txt --apps shop,mail  # of the host: when one of two apps has a problem, or the host itself
  clusterdeck alerts test  # send a test to all of them, or to one, and fail if that fails

config [set] [change...]: print the options and where each value comes from, or change some while the app runs
  clusterdeck config  # every option, its value and where that comes from
  clusterdeck config set drain.deadlineMs=10s  # let workers drain for ten seconds at most
  clusterdeck config set rollout.surge=25% rollout.onFailure=hold  # several at once, all or none

open: print a one-time sign-in link and open it
  --as <name>: for this person: the history names them
  --role <viewer|operator|admin>: what they may do (default: admin)
  --apps <names>: the apps of the host for which they may, such as shop,mail (default: all)
  clusterdeck open  # in the browser of this machine
  clusterdeck open --url https://deck.example.com --token-file /run/secrets/deck  # a link for a browser elsewhere
  clusterdeck open --as ada --role viewer  # for somebody who may only look

tokens [action] [subject]: print the tokens; create one (create NAME), or revoke one (revoke ID)
  --role <viewer|operator|admin>: with create: what its holder may do
  --ttl <duration>: with create: how long it is valid (default: 90d)
  --apps <names>: with create: the apps of the host that it is for, such as shop,mail (default: all)
  clusterdeck tokens  # all tokens
  clusterdeck tokens create ci --role operator --ttl 30d  # create one for a script that deploys
  clusterdeck tokens revoke 3  # revoke one, and close its sessions

mcp: let an agent ask and steer: the Model Context Protocol on stdin and stdout
  --role <viewer|operator|admin>: what its tools may do: only read, also change what was previewed, or also options (default: viewer)
  --host: all apps of the host
  clusterdeck mcp  # for the app of this folder, as an agent starts it
  clusterdeck mcp --role operator  # an agent that may also deploy and roll back, once somebody has agreed
  clusterdeck mcp --host  # all apps of the host

stop [app...]: let an app finish its requests, stop it, and wait for its end
  clusterdeck stop  # stop the app of this folder
  clusterdeck stop shop  # stop an app of the host: it stays stopped, also after a reboot
  clusterdeck stop --timeout 15m  # give its requests more time

describe [app...]: print all about an app of the host: state, place, workers, release, last deploy
  clusterdeck describe shop  # an app of the host
  clusterdeck describe shop --json | jq -r .state  # for a script

delete [app...]: stop an app of the host, and take it off the list; its data folder stays
  --yes: do not ask
  --purge: also remove its data folder: history, logs, releases
  clusterdeck delete shop  # an app of the host
  clusterdeck delete shop --yes --purge  # without a question, and with its data folder

top [app...]: show all apps of this user live, or some, with workers and output
  clusterdeck top  # all apps of this user
  clusterdeck top shop mail  # two of them
  clusterdeck top --url https://deck.example.com --token-file /run/secrets/deck  # those of another machine

completion <bash|zsh|fish>: print a script that lets the shell complete commands, options and values
  source <(clusterdeck completion bash)  # for this bash, or in ~/.bashrc for every one
  clusterdeck completion zsh > $fpath[1]/_clusterdeck  # for every zsh
  clusterdeck completion fish > ~/.config/fish/completions/clusterdeck.fish  # for every fish

help [topic]: print the help of a command, or a page of the manual
  clusterdeck help deploy  # the flags of a command
  clusterdeck help getting-started  # a page of the manual
  clusterdeck help logs.md  # a page with the name of a command`

const [SHARED, ...BLOCKS] = WORDS.split('\n\n').map((block) => block.split(/\n */))

export const COMMAND_NAMES: readonly string[] = BLOCKS.map(([head]) => head.split(/[ :]/, 1)[0])

/** @returns the line of the command, and the lines about it @throws {Error} */
export function wordsOf (name: string): [head: string, ...lines: string[]] {
  const [head, ...lines] = BLOCKS[COMMAND_NAMES.indexOf(name)] ?? []
  if (head === undefined) throw new Error(`command "${name}": expected words of its help, received none`)
  return [head, ...lines.map((line) => SHARED.find((shared) => shared.startsWith(`${line}: `)) ?? line)]
}
