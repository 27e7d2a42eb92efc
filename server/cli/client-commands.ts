import { Option, type Command } from 'commander'
import { appsOf } from '../config/apps.ts'
import { readConfigFile } from '../config/file.ts'
import { MEMBER_NAME } from '../config/member-name.ts'
import { DeckError } from '../errors.ts'
import { alertsCommand } from './alerts.ts'
import { runForApps, type AppCommand } from './app-command.ts'
import { findApps } from './apps.ts'
import * as commands from './commands.ts'
import { configCommand } from './config.ts'
import { createContext } from './context.ts'
import { crashesCommand } from './crashes.ts'
import { addDeckOptions, namesDeck } from './deck-options.ts'
import { decksTable } from './decks-table.ts'
import { diagnoseCommand, endConnectionsCommand, killCommand } from './diagnose.ts'
import { doctorCommand, doctorHere, isBeforeStart } from './doctor.ts'
import { findHostMeant, findMasterOrHost } from './find-master.ts'
import { fleetCommand } from './fleet.ts'
import { historyCommand } from './history.ts'
import { fleetOptions } from './host-fleet.ts'
import { jobsCommand } from './jobs.ts'
import { routesCommand } from './routes.ts'
import { runCommand } from './run.ts'
import { confirmDelete, deleteApp, describeApp, refuseOutside, stopApp } from './host-apps.ts'
import { logsCommand, printLogsOfAll } from './logs.ts'
import { serveMcp } from './mcp.ts'
import { profileCommand } from './profile.ts'
import { releasesCommand } from './releases.ts'
import { rolloutCommand, steerCommand } from './rollouts.ts'
import { setupGitPush } from './setup-git-push.ts'
import { tokensCommand } from './tokens.ts'
import { upgradeCommand } from './upgrade.ts'
import { misuse } from './usage.ts'
import type { DeckCommand } from './deck-command.ts'
import type { Terminal } from './program.ts'
import type { Steering } from '../config/steering.ts'
import type { Outcome } from './each-app.ts'
import type { Status } from '../api/cluster.ts'

type Options = commands.Options

/** Commander hands over a text for each argument, or a list for the last one. */
type Run = { run(context: commands.Context, ...args: (string | string[] | undefined)[]): Promise<number | void> }['run']
/** what is special about a command */
type How = Partial<Omit<AppCommand, 'name' | 'run'>> & OwnHow
type OwnHow = {
  /** why it cannot be meant for another member of the fleet */
  onlyHere?: string,
  /** replaces the options where no app is named; null: nothing is left to do */
  prepare?: (options: Options, argument?: string) => Promise<Options | null>
}

/** Adds the commands that talk to a running master. `behind`: what follows --. */
export function addClientCommands (program: DeckCommand, terminal: Terminal, outcome: { exitCode: number },
  behind: string[])
{
  addCommand('status [app...]', 'print the state of an app and its workers, or a line for each of several',
    commands.statusCommand, { prepare: (options) => statusOfAll(options, terminal), textOfAll: statusesText }).option(
      '--watch',
      'refresh every second until Ctrl-C; print one line per change when piped'
    ).example('of the app of this folder, each second', 'clusterdeck status --watch').example('of another machine',
      'clusterdeck status --url https://deck.example.com --token-file /run/secrets/deck').example(
      'of apps of this user, in any folder',
      'clusterdeck status shop mail'
    )
  addCommand('doctor [app...]',
    'check an app and this machine: what could drop a request or lose a release, and how to mend it', doctorCommand, {
    withoutMaster: { isMeant: isBeforeStart, run: (entry, options, place) => doctorHere(entry, options, place, behind) }
  }).usage('[options] [app...] [entry]').example('the app of this folder, whether it runs or not', 'clusterdeck doctor')
    .example('an app before its first start, with the options of start', 'clusterdeck doctor ./app.js --workers 4')
    .example('all apps of the host; for CI, it exits with 6 if one has a problem', 'clusterdeck doctor --all')
  addCommand('restart [app...]', 'restart all workers; each new one is ready before its old one drains',
    rolloutCommand('restart')).option('--wait', 'wait for the end; fail if the rollout fails').option('--note <text>',
      'why, for the history').option('--update-env', UPDATE_ENV).option('--wait-for-turn', WAIT_FOR_TURN).example(
      'the app of this folder, and wait for the end',
      'clusterdeck restart --wait'
    ).example('two apps, and say why', 'clusterdeck restart shop mail --note "new certificates"').example(
      'all apps of the host',
      'clusterdeck restart --all'
    )
  addCommand('deploy [app...]', 'deploy the code on disk, slot by slot', rolloutCommand('deploy')).option('--wait',
    'wait for the end; fail if the rollout fails').option('--note <text>', 'what is new, for the history').option(
      '--update-env',
      UPDATE_ENV
    ).option('--wait-for-turn', WAIT_FOR_TURN).option('--path <folder>', 'deploy this folder, below releases.root')
    .option('--dry-run', 'print what would run, what has changed and what would be refused, and change nothing').option(
      '--git <ref>',
      'deploy this branch, tag or commit: exported by git into a folder of its own, and built there'
    ).option('--yes', 'with --git: build as the lock file suggests, where hooks.build is not set').optionsGroup(
      'Overrides of the configuration:'
    ).option('--surge <n|n%>', 'how many workers are replaced at the same time').option('--min-ready <duration>',
      'how long a new worker must stay ready before the old one drains').option('--canary <n>',
      'first run this many new workers beside the old ones and compare them').option('--canary-time <duration>',
      'how long the canary lasts').option('--on-failure <rollback|hold>',
      'after a failure: roll back, or hold the rollout until you decide').example(
      'deploy the code on disk, and fail if that fails',
      'clusterdeck deploy --wait --note "faster totals"'
    ).example('a commit of the repository, built in a folder of its own', 'clusterdeck deploy --git main --wait')
    .example('compare one new worker for two minutes first', 'clusterdeck deploy --wait --canary 1 --canary-time 2m')
  addCommand('setup-git-push [folder]', 'make a git repository for pushes: what is pushed to its branch is deployed',
    setupGitPush, { onlyHere: 'the repository is on the machine of the app' }).option('--branch <name>',
      'the branch that is deployed', 'main').example('for the app of this folder', 'clusterdeck setup-git-push')
    .example('another branch', 'clusterdeck setup-git-push --branch production')
  addCommand('rollback [app...]', 'roll back to the previous release, or to another one', rolloutCommand('rollback'))
    .usage('[options] [app...] [release]').option('--wait', 'wait for the end; fail if the rollback fails').option(
      '--note <text>',
      'why, for the history'
    ).option('--dry-run', 'print what would run and what would be refused, and change nothing').example(
      'to the previous release',
      'clusterdeck rollback --wait'
    ).example('to another one that "clusterdeck releases shop" lists', 'clusterdeck rollback shop r12 --wait')
  addSteeringCommand('pause', 'pause the running rollout').example('pause the rollout', 'clusterdeck pause').example(
    'and follow it, until somebody resumes or aborts it',
    'clusterdeck pause --wait'
  )
  addSteeringCommand('resume', 'resume the paused rollout').example('resume the rollout', 'clusterdeck resume').example(
    'and wait for the end',
    'clusterdeck resume --wait --timeout 30m'
  )
  addSteeringCommand('abort', 'abort the running rollout and roll back what it replaced').example('abort the rollout',
    'clusterdeck abort').example('and wait until the old release serves again', 'clusterdeck abort --wait')
  addSteeringCommand('promote', 'end the canary of the running rollout without a verdict').example(
    'deploy what the canary tries',
    'clusterdeck promote'
  ).example('and wait for the end', 'clusterdeck promote --wait')
  addSteeringCommand('retry', 'retry the failed step of a rollout that is held').example('try once more',
    'clusterdeck retry').example('and wait for the end', 'clusterdeck retry --wait')
  addCommand('fleet [action] [subject]', FLEET_ABOUT, fleetCommand, {
    onlyHere: 'the fleet is the same for all its members',
    prepare: (options, action) => fleetOptions(options, action, terminal)
  }).option('--wait', 'wait for the end, with a line per host; fail if it fails').option('--note <text>',
    'why, for the histories').option('--path <folder>', 'with deploy: this folder, below releases.root of each host')
    .option('--push <folder>', 'with deploy: send this folder to all hosts, and deploy it').option(
      '--push-also <names>',
      'with --push: also send these .env or ignored files, separated by commas'
    ).option('--batch <n|n%>', 'how many hosts at the same time (default: 1)').option('--pause <duration>',
      'how long to wait between two batches').option('--deadline <duration>',
      'how long one host may take (default: 1h)').option('--order <label>', 'sort the hosts by this label').option(
      '--canary <member>',
      'begin with this host, alone'
    ).option('--only <label=value>', 'only hosts with these labels, separated by commas').option('--dry-run',
      'print which host would get what when, and which are left out, and change nothing').option(
      '--on-failure <hold|rollback>',
      'when a host fails: start no other (default), or roll back the finished ones, last first'
    ).option('--type <value>', 'with history: only these types: worker.exited, worker.*, problems; separated by commas')
    .option('--limit <n>', 'with history: how many events, at most 1000 (default: 50)').option('--lines <n>',
      'with logs: how many lines of all hosts together, at most 200 (default: 100)').option('--cause <value>',
      'with history: only this cause: crash, killed, deploy, …').option('--q <words>',
      'with logs: only lines with these words, or with /a regular expression/; with history: only with this text in message, type or cause')
    .option('--level <names>', 'with logs: only these levels: error, warn, info, debug, none; separated by commas')
    .option('--stream <stdout|stderr>', 'with logs: only this stream').option('--since <value>',
      'with logs and history: only since: 2026-01-31T12:00:00Z, or 15m, 2h, 7d ago').option('--until <value>',
      'with logs and history: only before this time').option('--around <value>',
      'with logs: the lines before and after this time').example('the hosts on all machines, with their apps',
      'clusterdeck fleet').example('deploy an app host by host, the first one alone',
      'clusterdeck fleet deploy --app shop --canary web-1 --batch 25% --pause 60s --wait').example(
      'roll back what is done of the app of this folder',
      'clusterdeck fleet abort --wait'
    )
  addCommand('releases [app...]', 'print the releases, or one of them', releasesCommand).usage(
    '[options] [app...] [id]'
  ).example('the releases that you can roll back to', 'clusterdeck releases').example('what changed in one of them',
    'clusterdeck releases r7')
  addCommand('scale [app...]', 'run this many workers', commands.scaleCommand).usage('[options] [app...] <n>').option(
    '--wait',
    'wait until they are ready'
  ).example('eight workers', 'clusterdeck scale 8').example('two, once the others have drained',
    'clusterdeck scale shop 2 --wait')
  addCommand('send <type> [json]', 'send a message to the app: to all ready workers, or to one', commands.sendCommand)
    .option('--worker <id>', 'only to this worker').example('to every ready worker', 'clusterdeck send reload').example(
      'with data, to one worker that "clusterdeck status" lists',
      'clusterdeck send log-level \'{"level": "debug"}\' --worker 5'
    )
  addCommand('acknowledge <notice>', 'acknowledge a notice: it leaves the status and the overview',
    commands.acknowledgeCommand, { find: findMasterOrHost }).option('--host', 'a notice of the host itself').example(
      'a notice that "clusterdeck status" lists',
      'clusterdeck acknowledge 812'
    ).example('for a script', 'clusterdeck acknowledge 812 --json')
  addCommand('kill <worker>', 'kill one worker with SIGKILL; its replacement starts at once', killCommand).example(
    'a worker that "clusterdeck status" lists',
    'clusterdeck kill 5'
  ).example('for a script', 'clusterdeck kill 5 --json')
  addCommand('end-connections <worker>',
    'end the WebSockets, event streams and other connections that a replaced worker keeps, and then the worker',
    endConnectionsCommand).example('a worker that "clusterdeck status" lists as draining',
      'clusterdeck end-connections 5').example('for a script', 'clusterdeck end-connections 5 --json')
  addCommand('diagnose <worker>', 'profile or inspect one worker; a heap snapshot pauses it and contains its secrets',
    diagnoseCommand, { onlyHere: 'the file holds secrets of the process and stays on its machine' }).requiredOption(
      '--kind <cpu-profile|heap-snapshot|heap-statistics|report>',
      'what to take'
    ).option('--duration <duration>', 'how long to profile, at most 60s (default: 10s)').option('--output <file>',
      'output file (default: a generated name in the working folder)').example('what a worker is busy with',
      'clusterdeck diagnose 7 --kind cpu-profile --duration 10s --output slow.cpuprofile').example(
      'what its memory consists of',
      'clusterdeck diagnose 7 --kind heap-statistics'
    )
  addCommand('profile',
    'print what the workers ran, by continuous profiling: the busiest functions of a time, or what has changed',
    profileCommand).option('--since <value>',
      'from then on: 2026-01-31T12:00:00Z, or 15m, 1h ago (default: all of the last hour)').option('--until <value>',
      'up to then').option('--worker <id>', 'only this worker').option('--release <value>', 'only this release').option(
      '--before-release <value>',
      'what has changed against this release'
    ).option('--output <file>', 'also write it as a CPU profile (.cpuprofile), for a flame graph').example(
      'what took the time in the last ten minutes',
      'clusterdeck profile --since 10m'
    ).example('what a release brought', 'clusterdeck profile --release r9 --before-release r8')
  addCommand('upgrade', 'switch to the installed version of clusterdeck, or to another node, without downtime',
    upgradeCommand, { onlyHere: 'a master is upgraded on its own machine', find: findHostMeant }).option(
      '--node <path>',
      'node binary of the next master (default: the current one)'
    ).option('--wait', 'wait for the end; fail if the upgrade fails').option('--note <text>', 'why, for the history')
    .example('to the version that was just installed', 'clusterdeck upgrade --wait').example(
      'to another node; apps stay on theirs',
      'clusterdeck upgrade --node /opt/node-24/bin/node --wait'
    )
  addCommand('history [app...]',
    'print events, newest first; where this is the folder of no app, those of all apps of the host', historyCommand, {
    find: findMasterOrHost
  }).option('--host', 'those of the host itself: apps added, stopped, failed, removed; tokens, sign-ins, masters')
    .option('--csv', 'print all that match as CSV').option('--limit <n>',
      'how many events, at most 1000 (default: 50; with --csv: all)').option('--type <value>',
      'only these types: worker.exited, worker.*, problems; separated by commas').option('--cause <value>',
      'only this cause: crash, killed, deploy, …').option('--slot <value>', 'only this slot').option('--worker <value>',
      'only this worker').option('--release <value>', 'only this release').option('--rollout <value>',
      'only this rollout').option('--since <value>', 'since this time: 2026-01-31T12:00:00Z, or 15m, 2h, 7d ago')
    .option('--until <value>', 'before this time').option('--q <value>',
      'only with this text in message, type or cause').example('which workers exited since yesterday',
      'clusterdeck history --type worker.exited --since 24h').example(
      'who has added, stopped or removed which app of the host',
      'clusterdeck history --host --type "app.*"'
    ).example('everything, for a spreadsheet', 'clusterdeck history --csv > history.csv')
  addCommand('logs [app...]', 'print the last lines of the workers\' output', logsCommand, {
    textOfAll: printLogsOfAll
  }).option('-f, --follow', 'follow new output').option('--timestamps', 'print when each line arrived').option(
    '--slot <n>',
    'only this slot'
  ).option('--stream <stdout|stderr>', 'only this stream').option('--lines <n>',
    'lines of each log, or of all matches together, at most 1000', '100').option('--q <words>',
      'search all files: only lines with these words, or with /a regular expression/').option('--level <names>',
      'only these levels: error, warn, info, debug, none; separated by commas').option('--since <value>',
      'only lines since: 2026-01-31T12:00:00Z, or 15m, 2h, 7d ago').option('--until <value>',
      'only lines before this time').option('--around <value>',
      'the lines before and after this time, or the place of a line from --json').example(
      'follow the errors of all workers, with the time',
      'clusterdeck logs --follow --timestamps --stream stderr'
    ).example('errors about payments of the last two hours', 'clusterdeck logs --q payment --level error --since 2h')
    .example('of several apps, with the name of the app before each line', 'clusterdeck logs shop mail --follow')
  addCommand('routes [app...]', 'print which routes are slow or fail: requests, errors, p50 and p99 of each',
    routesCommand).option('--since <value>',
      'only of the last hour: 15m ago, or since a time such as 2026-01-31T12:00:00Z (default: all since the master began)')
    .option('--release <value>', 'only this release').option('--compare <value>', 'beside the figures of this release')
    .option('--sort <requests|errors|p50|p99>', 'the highest first (default: those with the most time)').example(
      'the slowest routes of the last quarter of an hour',
      'clusterdeck routes --since 15m --sort p99'
    ).example('what a release has made slower', 'clusterdeck routes --release r8 --compare r7')
  addCommand('crashes [app...]', 'print the crash groups, or one of them', crashesCommand).usage(
    '[options] [app...] [id]'
  ).option('--state <open|resolved|muted>', 'only this state').option('--q <words>',
    'only with these words in message or stack').option('--release <value>', 'only this release').option(
      '--since <value>',
      'only crashes since: 2026-01-31T12:00:00Z, or 15m, 2h, 7d ago'
    ).example('the crashes of the last day', 'clusterdeck crashes --since 24h').example(
      'one group, with its newest crash',
      'clusterdeck crashes 12'
    )
  addCommand('jobs [app...]',
    'print the jobs of an app; start one, end a run, acknowledge a failure, pause or resume a job, print runs and their output',
    jobsCommand).usage('[options] [app...] [ls|run|runs|end|acknowledge|pause|resume] [job|run]').option('--limit <n>',
      'with runs: how many, at most 100 (default: 20)').example('what runs next, and how the last runs ended',
      'clusterdeck jobs').example('start one now, and wait for its end', 'clusterdeck jobs run nightly --wait').example(
      'its runs, and the output of one of them',
      'clusterdeck jobs runs nightly'
    ).option('--wait', 'with run: print its output, wait for its end, and exit as it does')
  addCommand('run [app...]',
    'run a command once in the folder of the current release, with the variables of its workers',
    (context) => runCommand(context, behind), { isForOne: true }).usage('[options] [app] -- command [arguments]')
    .option('-i, --interactive',
      'with the stdin and the terminal of this shell: a console, or a program that reads a file; its output is not kept')
    .option('--detach', 'print the id of the run, and do not wait for its end').example('a migration',
      'clusterdeck run -- npm run migrate').example('a console', 'clusterdeck run --interactive -- node').example(
      'without waiting for its end',
      'clusterdeck run --detach -- node rebuild-index.js'
    )
  addCommand('alerts [action] [word...]',
    'print the alerts and their deliveries; add, change, pause, resume, delete or test one, or send a failed delivery again',
    alertsCommand, { find: findMasterOrHost }).usage(
      '[options] [add|change|pause|resume|delete|test|retry] [kind|id] [receiver|delivery]'
    ).option('--title <name>', 'with add and change: what it is called').option('--events <types>',
      'with add and change: the events that are sent, such as worker.*,rollout.failed (default: the problems)').option(
      '--url-file <path>',
      'with add and change: read the address from this file, as others can see arguments'
    ).option('--secret-file <path>', 'with a webhook: sign messages with the secret in this file').option(
      '--server <host:port>',
      'with mail: the SMTP server'
    ).option('--host', 'those of the host, for all of its apps (default where this is the folder of no app)').option(
      '--apps <names>',
      'of the host: with add and change, the apps that it is for, such as shop,mail (default: all; * with change)'
    ).option('--from <address>', 'with mail: the sender').option('--user <name>',
      'with mail: the user to sign in as at that server').option('--password-file <path>',
      'with mail: a file with the password of that user').example(
      'send the problems to a channel of Slack; discord, teams, mail, sentry and webhook are the other kinds',
      'clusterdeck alerts add slack --url-file slack-url.txt'
    ).example('of the host: when one of two apps has a problem, or the host itself',
      'clusterdeck alerts add slack --url-file slack-url.txt --apps shop,mail').example(
      'send a test to all of them, or to one, and fail if that fails',
      'clusterdeck alerts test'
    )
  addCommand('config [set] [change...]',
    'print the options and where each value comes from, or change some while the app runs', configCommand).example(
      'every option, its value and where that comes from',
      'clusterdeck config'
    ).example('let workers drain for ten seconds at most', 'clusterdeck config set drain.deadlineMs=10000').example(
      'several at once, all or none',
      'clusterdeck config set rollout.surge=25% rollout.onFailure=hold'
    )
  addCommand('open', 'print a one-time sign-in link and open it', commands.openCommand, {
    onlyHere: 'a sign-in link leads to the deck that made it'
  }).option('--as <name>', 'for this person: the history names them').option('--role <viewer|operator|admin>',
    'what they may do (default: admin)').option('--apps <names>',
      'the apps of the host for which they may, such as shop,mail (default: all)').example(
      'in the browser of this machine',
      'clusterdeck open'
    ).example('a link for a browser elsewhere',
      'clusterdeck open --url https://deck.example.com --token-file /run/secrets/deck').example(
      'for somebody who may only look',
      'clusterdeck open --as ada --role viewer'
    )
  addCommand('tokens [action] [subject]', 'print the tokens; create one (create NAME), or revoke one (revoke ID)',
    tokensCommand, { onlyHere: 'each deck has its own tokens' }).option('--role <viewer|operator|admin>',
      'with create: what its holder may do').option('--ttl <duration>',
      'with create: how long it is valid (default: 90d)').option('--apps <names>',
      'with create: the apps of the host that it is for, such as shop,mail (default: all)').example('all tokens',
      'clusterdeck tokens').example('create one for a script that deploys',
      'clusterdeck tokens create ci --role operator --ttl 30d').example('revoke one, and close its sessions',
      'clusterdeck tokens revoke 3')
  addDeckOptions(
    program.command('mcp').description('let an agent ask and steer: the Model Context Protocol on stdin and stdout')
      .optionsGroup('Options:').option('--role <viewer|operator|admin>',
        'what its tools may do: only read, also change what was previewed, or also options', 'viewer').option('--host',
        'all apps of the host'),
    { dataDir: '.clusterdeck' }
  ).example('for the app of this folder, as an agent starts it', 'clusterdeck mcp').example(
    'an agent that may also deploy and roll back, once somebody has agreed',
    'clusterdeck mcp --role operator'
  ).example('all apps of the host', 'clusterdeck mcp --host').action((options) => serveMcp(options, terminal))
  addCommand('stop [app...]', 'let an app finish its requests, stop it, and wait for its end', commands.stopCommand, {
    onlyHere: 'a deck is stopped on its own machine',
    onHost: stopApp
  }).example('stop the app of this folder', 'clusterdeck stop').example(
    'stop an app of the host: it stays stopped, also after a reboot',
    'clusterdeck stop shop'
  ).example('give its requests more time', 'clusterdeck stop --timeout 15m')
  addCommand('describe [app...]', 'print all about an app of the host: state, place, workers, release, last deploy',
    refuseOutside, { onlyHere: 'a host tells of its own apps', onHost: describeApp, isMeant: () => true }).example(
      'an app of the host',
      'clusterdeck describe shop'
    ).example('for a script', 'clusterdeck describe shop --json | jq -r .state')
  addCommand('delete [app...]', 'stop an app of the host, and take it off the list; its data folder stays',
    refuseOutside, { onlyHere: 'a host deletes its own apps', onHost: deleteApp, isMeant: () => true, needsName: true,
    confirm: confirmDelete }).option('--yes', 'do not ask').option('--purge',
      'also remove its data folder: history, logs, releases').example('an app of the host', 'clusterdeck delete shop')
    .example('without a question, and with its data folder', 'clusterdeck delete shop --yes --purge')

  function addSteeringCommand (action: Steering, about: string) {
    return addCommand(action, about, steerCommand(action)).option('--wait', 'wait for the end of the rollout')
  }

  function addCommand (usage: string, about: string, run: Run,
    { onlyHere, prepare = async (options) => options, ...how }: How = {})
  {
    const command = program.command(usage).description(about).optionsGroup('Options:').option('--json',
      'print the result as JSON')
    const takesApps = usage.endsWith('[app...]')
    if (takesApps && !how.isForOne)
      command.option('--all', how.isMeant ? 'all apps of the host' : 'all apps of the host that are not stopped')
    addDeckOptions(command, { dataDir: '.clusterdeck' }).option('--timeout <duration>',
      'give up after this time (default: 5m; env: CLUSTERDECK_TIMEOUT)')
    addMemberOption(command, { isHidden: onlyHere !== undefined })
    return command.optionsGroup('Options:').action(async (...given) => {
      // Commander adds the options and the command itself to the arguments.
      const args = given.slice(0, -2)
      const member = memberOf(command, onlyHere)
      await explainUnreadableAnswer(member, async () => {
        const areNamed = takesApps && (args[0].length > 0 || command.opts().all)
        const options = areNamed ? command.opts() : await prepare(command.opts(), args[0])
        if (options === null) return
        if (takesApps)
          outcome.exitCode = await runForApps({ name: command.name(), run, ...how }, { words: args[0], options,
            terminal })
        else await run(await createContext(options, terminal, how.find), ...args)
      })
    })
  }
}

const WAIT_FOR_TURN = 'where another rollout of the app runs, begin once it has ended'
const UPDATE_ENV = 'an app of the host: deploy it with the variables of this shell'
const FLEET_ABOUT =
  'print the hosts of the fleet; restart, deploy or roll back an app on all of them, host by host; pause, resume or abort that; ' +
  'print the history, the logs or the crashes of all, and resolve, mute or reopen a crash group; forget a host that will not come back'

/** Prints one line per app where the config file has several and nobody has named one. Returns null: that is done. */
async function statusOfAll (options: Options, terminal: Terminal): Promise<Options | null> {
  const { env, cwd } = terminal
  if (isNamed(options, env) || options.watch) return options
  const found = await readConfigFile(env.CLUSTERDECK_CONFIG || undefined, cwd)
  if (!found || appsOf(found).size < 2) return options
  const { appsStatus } = await import('./ls.ts')
  await appsStatus(await findApps('status', {}, terminal), options, terminal)
  return null
}

/** Tells whether somebody has said which deck is meant */
function isNamed (options: Options, env: Terminal['env']): boolean {
  return options.member !== undefined || namesDeck(options, env)
}

function statusesText (outcomes: Outcome[]) {
  const rows = outcomes.map(({ target, result, error }) => ({ ...target,
    answer: result === null ? null : { status: result as Status, problem: null },
    reason: error === null ? null : target.reason })
  )
  return decksTable(rows, { now: Date.now() })
}

/** @returns the same */
function addMemberOption<C extends Command> (command: C, { isHidden }: { isHidden: boolean }): C {
  return command.addOption(
    new Option('--member <name>', 'another member of its fleet, asked through it').hideHelp(isHidden)
  )
}

/** `onlyHere`: why no other deck does it @throws {DeckError} usage */
function memberOf (command: Command, onlyHere: string | undefined): string | undefined {
  const { member } = command.opts()
  if (member === undefined) return undefined
  if (onlyHere !== undefined) throw new DeckError('usage', `${command.name()}: expected without --member: ${onlyHere}`)
  if (!MEMBER_NAME.test(member)) throw misuse('--member', 'the name of a member of the fleet', JSON.stringify(member))
  return member
}

/**
 * Another member may have another version, or answer anything.
 * @throws {DeckError} also not-possible
 */
async function explainUnreadableAnswer<T> (member: string | undefined, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (cause) {
    if (member === undefined ||
      !(cause instanceof TypeError || cause instanceof RangeError || cause instanceof SyntaxError)) throw cause
    throw new DeckError('not-possible', `the answer of ${member} cannot be read (${cause.message})`, { cause })
  }
}
