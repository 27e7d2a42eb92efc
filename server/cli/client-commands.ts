import { Option, type Command } from 'commander'
import { appsOf } from '../config/apps.ts'
import { readConfigFile } from '../config/file.ts'
import { MEMBER_NAME } from '../config/member-name.ts'
import { STEERING } from '../config/steering.ts'
import { DeckError } from '../errors.ts'
import { alertsCommand } from './alerts.ts'
import { TAKES_APPS } from './app-arguments.ts'
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
import type { Outcome } from './each-app.ts'
import type { Status } from '../api/cluster.ts'

type Options = commands.Options

/** Commander hands over a text for each argument, or a list for the last one. */
type Run = { run(context: commands.Context, ...args: (string | string[] | undefined)[]): Promise<number | void> }['run']
/** what a command does, and what is special about it */
type How = Partial<Omit<AppCommand, 'name' | 'run'>> & {
  run: Run,
  /** why it cannot be meant for another member of the fleet */
  onlyHere?: string,
  /** replaces the options where no app is named; null: nothing is left to do */
  prepare?: (options: Options, argument?: string) => Promise<Options | null>
}

/** The commands that talk to a running master. `behind`: what follows --. */
function clientCommands (terminal: Terminal, behind: string[]): Readonly<Record<string, How>> {
  return {
    status: { run: commands.statusCommand, prepare: (options) => statusOfAll(options, terminal),
      textOfAll: statusesText },
    doctor: { run: doctorCommand, withoutMaster: { isMeant: isBeforeStart, run: (entry, options, place) =>
      doctorHere(entry, options, place, behind) } },
    restart: { run: rolloutCommand('restart') },
    deploy: { run: rolloutCommand('deploy') },
    'setup-git-push': { run: setupGitPush, onlyHere: 'the repository is on the machine of the app' },
    rollback: { run: rolloutCommand('rollback') },
    ...Object.fromEntries(STEERING.map((action) => [action, { run: steerCommand(action) }])),
    fleet: { run: fleetCommand, onlyHere: 'the fleet is the same for all its members', prepare: (options, action) =>
      fleetOptions(options, action, terminal) },
    releases: { run: releasesCommand },
    scale: { run: commands.scaleCommand },
    send: { run: commands.sendCommand },
    acknowledge: { run: commands.acknowledgeCommand, find: findMasterOrHost },
    kill: { run: killCommand },
    'end-connections': { run: endConnectionsCommand },
    diagnose: { run: diagnoseCommand, onlyHere: 'the file holds secrets of the process and stays on its machine' },
    profile: { run: profileCommand },
    upgrade: { run: upgradeCommand, onlyHere: 'a master is upgraded on its own machine', find: findHostMeant },
    history: { run: historyCommand, find: findMasterOrHost },
    logs: { run: logsCommand, textOfAll: printLogsOfAll },
    routes: { run: routesCommand },
    crashes: { run: crashesCommand },
    jobs: { run: jobsCommand },
    run: { run: (context) => runCommand(context, behind), isForOne: true },
    alerts: { run: alertsCommand, find: findMasterOrHost },
    config: { run: configCommand },
    open: { run: commands.openCommand, onlyHere: 'a sign-in link leads to the deck that made it' },
    tokens: { run: tokensCommand, onlyHere: 'each deck has its own tokens' },
    stop: { run: commands.stopCommand, onlyHere: 'a deck is stopped on its own machine', onHost: stopApp },
    describe: { run: refuseOutside, onlyHere: 'a host tells of its own apps', onHost: describeApp,
      isMeant: () => true },
    delete: { run: refuseOutside, onlyHere: 'a host deletes its own apps', onHost: deleteApp, isMeant: () => true,
      needsName: true, confirm: confirmDelete }
  }
}

/** Adds the commands that talk to a running master. `behind`: what follows --. */
export function addClientCommands (program: DeckCommand, terminal: Terminal, outcome: { exitCode: number },
  behind: string[])
{
  for (const [name, how] of Object.entries(clientCommands(terminal, behind)))
    addCommand(program, name, how, { terminal, outcome })
  addDeckOptions(program.told('mcp'), { dataDir: '.clusterdeck' }).action((options) => serveMcp(options, terminal))
}

function addCommand (program: DeckCommand, name: string,
  { run, onlyHere, prepare = async (options) => options, ...how }: How,
  { terminal, outcome }: { terminal: Terminal, outcome: { exitCode: number } })
{
  const takesApps = Object.hasOwn(TAKES_APPS, name)
  const command = program.told(name, (told) => {
    told.option('--json', 'print the result as JSON')
    if (takesApps && !how.isForOne)
      told.option('--all', how.isMeant ? 'all apps of the host' : 'all apps of the host that are not stopped')
    addDeckOptions(told, { dataDir: '.clusterdeck' }).option('--timeout <duration>',
      'give up after this time (default: 5m; env: CLUSTERDECK_TIMEOUT)').addOption(
        new Option('--member <name>', 'another member of its fleet, asked through it').hideHelp(onlyHere !== undefined)
      )
  })
  command.action(async (...given) => {
    // Commander adds the options and the command itself to the arguments.
    const args = given.slice(0, -2)
    const member = memberOf(command, onlyHere)
    await explainUnreadableAnswer(member, async () => {
      const areNamed = takesApps && (args[0].length > 0 || command.opts().all)
      const options = areNamed ? command.opts() : await prepare(command.opts(), args[0])
      if (options === null) return
      if (takesApps)
        outcome.exitCode = await runForApps({ name, run, ...how }, { words: args[0], options, terminal })
      else await run(await createContext(options, terminal, how.find), ...args)
    })
  })
}

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
