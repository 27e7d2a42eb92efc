import { once } from 'node:events'
import { appsOf } from '../config/apps.js'
import { readConfigFile } from '../config/file.js'
import { DeckError } from '../errors.js'
import { createApiClient } from './api-client.js'
import * as commands from './commands.js'
import { config } from './config.js'
import { crashes } from './crashes.js'
import { fleet } from './fleet.js'
import { addMemberOption, memberOf, understood } from './member.js'
import { diagnose, kill } from './diagnose.js'
import { timeoutOf } from './duration.js'
import { findMaster } from './find-master.js'
import { history } from './history.js'
import { logs } from './logs.js'
import { checkAnswers } from './reachable.js'
import { releases } from './releases.js'
import { rollout, steer } from './rollouts.js'
import { tokens } from './tokens.js'
import { webhooks } from './webhooks.js'
import { send } from './send.js'

/** @typedef {import('commander').Command} Command */
/** @typedef {import('./program.js').Terminal} Terminal */

/** @param {Command} program @param {Terminal} terminal */
export function addClientCommands (program, terminal) {
  /**
   * @param {string} usage @param {string} about @param {(context: commands.Context, ...args: any[]) => Promise<void>} work
   * @param {{ first?: (options: Record<string, any>, ...args: any[]) => Promise<Record<string, any> | null> }} [how] `first`: what counts instead of the options; null: all is done already
   */
  const client = (usage, about, work, { first = async (options) => options } = {}) => addMemberOption(program.command(usage)
    .description(about)
    .optionsGroup('Options:')
    .option('--json', 'print the result as JSON')
    .optionsGroup('Which master:')
    .option('--data-dir <path>', 'its data folder (default: .clusterdeck; env: CLUSTERDECK_DATA_DIR)')
    .option('--app <name>', 'of the apps of the config file, the one that it runs (env: CLUSTERDECK_APP)')
    .option('-n, --name <name>', 'its name, from any folder: one of those that "clusterdeck ls" lists (env: CLUSTERDECK_NAME)')
    .option('--url <url>', 'the address of its admin page (env: CLUSTERDECK_URL)')
    .option('--token <token>', 'its admin token; every user of this machine can see it here, so rather use one of the others (env: CLUSTERDECK_TOKEN)')
    .option('--token-file <file>', 'a file with its admin token in it (env: CLUSTERDECK_TOKEN_FILE)')
    .option('--timeout <duration>', 'give up after this time (default: 5m; env: CLUSTERDECK_TIMEOUT)'))
    .optionsGroup('Options:')
    .action(async (...given) => {
      const command = /** @type {Command} */ (given.pop())
      given.pop()
      const options = await first(command.opts(), ...given)
      if (!options) return
      const member = memberOf(command)
      await understood(member, async () => work(await createContext({ ...options, member }, terminal), ...given))
    })

  client('status', 'print the state of the cluster and its workers, or of each of several apps', commands.status, { first: (options) => statusOfAll(options, terminal) })
    .option('--watch', 'print it anew each second, until Ctrl-C; a line each where stdout is no terminal')
  client('restart [app]', 'restart all workers, of one of several apps: new ones are ready before old ones drain', rollout('restart'), { first: async (options, app) => ofApp(options, app) })
    .option('--wait', 'wait for the end; fail if the rollout fails')
    .option('--note <text>', 'why, for the history')
  client('deploy', 'deploy the code on disk, slot by slot', rollout('deploy'))
    .option('--wait', 'wait for the end; fail if the rollout fails')
    .option('--note <text>', 'what is new, for the history')
    .option('--path <folder>', 'deploy this folder, below releases.root')
    .optionsGroup('Overrides of the configuration:')
    .option('--surge <n|n%>', 'how many workers are replaced at the same time')
    .option('--min-ready <duration>', 'how long a new worker must stay ready before the old one drains')
    .option('--canary <n>', 'how many new workers serve beside the old ones first and are judged')
    .option('--canary-time <duration>', 'how long the canary lasts')
    .option('--on-failure <rollback|hold>', 'what a failure does: take back what was replaced, or wait for an operator')
  client('rollback [release]', 'roll back to the previous release, or to another one', rollout('rollback'))
    .option('--wait', 'wait for the end; fail if the rollback fails')
    .option('--note <text>', 'why, for the history')
  for (const [name, about] of Object.entries(STEERING)) {
    client(name, about, steer(/** @type {import('./rollouts.js').Steering} */ (name))).option('--wait', 'wait for the end of the rollout')
  }
  client('fleet [action] [subject]', 'print the decks of the fleet; restart, deploy, rollback over all of them, host by host; pause, resume, abort; history; crashes of all, and resolve, mute, reopen one', fleet)
    .option('--wait', 'wait for the end, with a line per host; fail if it fails')
    .option('--note <text>', 'why, for the histories')
    .option('--path <folder>', 'with deploy: this folder, below releases.root of each')
    .option('--push <folder>', 'with deploy: send this folder to all of them, and deploy it')
    .option('--push-also <names>', 'with --push: send these too, which are .env files or in .gitignore, separated by commas')
    .option('--batch <n|n%>', 'how many hosts at the same time (default: 1)')
    .option('--pause <duration>', 'between two batches')
    .option('--deadline <duration>', 'how long the turn of a host may take (default: 1h)')
    .option('--order <label>', 'by the values of this label')
    .option('--canary <member>', 'this one first, alone')
    .option('--only <label=value>', 'only those with these labels, separated by commas')
    .option('--on-failure <hold|rollback>', 'where a host fails: begin no other (default), or roll back what is done, last first')
    .option('--type <value>', 'with history: only these types: worker.exited, worker.*, problems; separated by commas')
    .option('--limit <n>', 'with history: how many events, at most 1000 (default: 50)')
  client('releases [id]', 'print the releases, or one of them', releases)
  client('scale <n>', 'run this many workers', commands.scale)
    .option('--wait', 'wait until they are ready')
  client('send <type> [json]', 'send a message to the app: in all workers that are ready, or in one', send)
    .option('--worker <id>', 'only to this worker')
  client('acknowledge <notice>', 'take a notice off the status and the overview; the history keeps who did', commands.acknowledge)
  client('kill <worker>', 'kill one worker with SIGKILL; its replacement starts at once', kill)
  client('diagnose <worker>', 'profile or inspect one worker; a heap snapshot pauses it and contains its secrets', diagnose)
    .requiredOption('--kind <cpu-profile|heap-snapshot|heap-statistics|report>', 'what to take')
    .option('--duration <duration>', 'how long to profile, at most 60s (default: 10s)')
    .option('--output <file>', 'output file (default: a generated name in the working folder)')
  client('upgrade', 'switch to the installed version of clusterdeck, or to another node, without downtime', commands.upgrade)
    .option('--node <path>', 'node binary of the next master and its workers (default: the current one)')
    .option('--wait', 'wait for the end; fail if the upgrade fails')
    .option('--note <text>', 'why, for the history')
  const past = client('history', 'print events, newest first', history)
    .option('--csv', 'print all that match as CSV')
    .option('--limit <n>', 'how many events, at most 1000 (default: 50; with --csv: all)')
  for (const [name, about] of Object.entries(HISTORY_OPTIONS)) past.option(`--${name} <value>`, about)
  client('logs', 'print the last lines of the workers\' output', logs)
    .option('-f, --follow', 'follow new output')
    .option('--timestamps', 'print when each line has arrived')
    .option('--slot <n>', 'only this slot')
    .option('--stream <stdout|stderr>', 'only this stream')
    .option('--lines <n>', 'lines of each log, or of all that match together, at most 1000', '100')
    .option('--q <words>', 'only lines with these words, of all files')
    .option('--since <value>', 'only lines since: 2026-01-31T12:00:00Z, or 15m, 2h, 7d ago')
    .option('--until <value>', 'only lines before')
    .option('--around <value>', 'the lines before and after that time')
  client('crashes [id]', 'print the crash groups, or one of them', crashes)
    .option('--state <open|resolved|muted>', 'only this state')
    .option('--q <words>', 'only with these words in message or stack')
    .option('--release <value>', 'only this release')
    .option('--since <value>', 'only crashes since: 2026-01-31T12:00:00Z, or 15m, 2h, 7d ago')
  client('webhooks [test|retry] [id] [delivery]', 'print the webhooks and their deliveries; test one or all, or send a failed delivery again', webhooks)
  client('config [set] [change...]', 'print the options and where each value comes from, or change some until the next start', config)
  client('open', 'print a one-time sign-in link and open it', commands.open)
    .option('--as <name>', 'for this person: the history will name them')
    .option('--role <viewer|operator|admin>', 'what they may do (default: admin)')
  client('tokens [action] [subject]', 'print the tokens; make one (create NAME), or end one (revoke ID)', tokens)
    .option('--role <viewer|operator|admin>', 'with create: what its holder may do')
    .option('--ttl <duration>', 'with create: how long it may be used (default: 90d)')
  client('stop', 'stop the master and its workers, and wait for their exit', commands.stop)
}

/** @type {Readonly<Record<import('../config/steering.js').Steering, string>>} */
const STEERING = Object.freeze({
  pause: 'pause the running rollout',
  resume: 'resume the paused rollout',
  abort: 'abort the running rollout and roll back what it replaced',
  promote: 'end the canary of the running rollout without a verdict',
  retry: 'retry the failed step of a rollout that is held'
})

const HISTORY_OPTIONS = Object.freeze({
  type: 'only these types: worker.exited, worker.*, problems; separated by commas',
  cause: 'only this cause: crash, killed, deploy, …',
  slot: 'only this slot',
  worker: 'only this worker',
  release: 'only this release',
  rollout: 'only this rollout',
  since: 'since this time: 2026-01-31T12:00:00Z, or 15m, 2h, 7d ago',
  until: 'before this time',
  q: 'only with this text in message, type or cause'
})

/** @param {Record<string, any>} options @param {string | undefined} app @throws {DeckError} usage */
function ofApp (options, app) {
  if (app === undefined) return options
  const other = ['app', 'name', 'dataDir', 'url'].find((name) => options[name] !== undefined)
  if (other) throw new DeckError('usage', `restart: expected either an app or --${other === 'dataDir' ? 'data-dir' : other}, received both`)
  return { ...options, app }
}

/**
 * Where there are several apps, and nobody has named one.
 * @param {Record<string, any>} options @param {Terminal} terminal @returns {Promise<Record<string, any> | null>}
 */
async function statusOfAll (options, terminal) {
  const { env, cwd } = terminal
  const isNamed = ['app', 'name', 'dataDir', 'url', 'member'].some((name) => options[name] !== undefined) || ['APP', 'NAME', 'DATA_DIR', 'URL'].some((name) => env[`CLUSTERDECK_${name}`])
  if (isNamed || options.watch) return options
  const found = await readConfigFile(env.CLUSTERDECK_CONFIG || undefined, cwd)
  if (!found || appsOf(found).size < 2) return options
  const [{ findApps }, { appsStatus }] = await Promise.all([import('./apps.js'), import('./apps-status.js')])
  await appsStatus(await findApps('status', {}, terminal), options, terminal)
  return null
}

/** Whoever says how long, or waits for something else anyway, also waits for a master that is between two lives. @param {Record<string, any>} options @param {Terminal['env']} env */
function isPatient ({ wait, follow, watch, timeout }, env) {
  return Boolean(wait || follow || watch || timeout || env.CLUSTERDECK_TIMEOUT)
}

/** @param {Record<string, any>} options @param {Terminal} terminal @returns {Promise<commands.Context>} */
async function createContext (options, { stdout, stderr, env, cwd }) {
  const { timeoutMs } = timeoutOf(options, env)
  const { member } = options
  const master = { ...await findMaster(options, { env, cwd }), member }
  if (!isPatient(options, env)) await checkAnswers(master, { env })
  const findAgain = async () => ({ ...await findMaster({ ...options, dataDir: master.dataDir, name: undefined, app: undefined }, { env, cwd }), member })
  return {
    api: createApiClient(master, { timeoutMs, findAgain }),
    master,
    findAgain,
    options,
    cwd,
    timeoutMs,
    print: (text) => { stdout.write(`${text}\n`) },
    async write (text) {
      if (stdout.write(text) === false) await once(stdout, 'drain')
    },
    tell: (text) => { stderr.write(`${text}\n`) },
    stdout,
    isTerminal: Boolean(stdout.isTTY),
    canDraw: Boolean(stdout.isTTY) && env.TERM !== 'dumb',
    isInteractive: Boolean(stdout.isTTY && stderr.isTTY)
  }
}
