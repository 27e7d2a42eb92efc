import { Option, type Command } from 'commander'
import { appsOf } from '../config/apps.ts'
import { readConfigFile } from '../config/file.ts'
import { MEMBER_NAME } from '../config/member-name.ts'
import { STEERING } from '../config/steering.ts'
import { DeckError } from '../errors.ts'
import { alertsCommand } from '../alerts/cli.ts'
import { runForApps, type AppCommand, type Form, type Outcome } from './app-command.ts'
import { findApps } from './apps.ts'
import { COMMAND_NAMES } from './command-words.ts'
import * as commands from './commands.ts'
import { configCommand } from '../config/cli.ts'
import { createContext } from './context.ts'
import { crashesCommand } from '../crashes/cli.ts'
import { addDeckOptions, namesDeck } from './deck-options.ts'
import { decksTable } from './decks-table.ts'
import { diagnoseCommand, endConnectionsCommand, killCommand, profileCommand } from '../diagnostics/cli.ts'
import { doctorCommand, doctorHere, isBeforeStart } from '../doctor/cli.ts'
import { findHostMeant, findMasterOrHost } from './find-master.ts'
import { fleetCommand } from '../fleet/cli.ts'
import { historyCommand } from '../events/cli.ts'
import { fleetOptions } from '../fleet/cli-host.ts'
import { jobsCommand } from '../jobs/cli.ts'
import { proxyCommand, proxyOfAll } from './proxy.ts'
import { routesCommand } from '../vitals/cli-routes.ts'
import { runCommand } from './run.ts'
import { confirmDelete, deleteApp, describeApp, refuseOutside, stopApp } from './host-apps.ts'
import { logsCommand, printLogsOfAll } from '../logs/cli.ts'
import { releasesCommand } from '../releases/cli.ts'
import { rolloutCommand, steerCommand } from '../rollouts/cli.ts'
import { setupGitPush } from './setup-git-push.ts'
import { addStartOptions, appArguments, appWords } from './start.ts'
import { tokensCommand } from '../access/cli-tokens.ts'
import { checkedForm } from './usage.ts'
import type { DeckCommand } from './help.ts'
import type { Terminal } from './program.ts'
import type { Status } from '../api/cluster.ts'

type Options = commands.Options
/** a command line, and where it was typed */
type Typed = { argv: string[], terminal: Terminal, outcome: { exitCode: number } }

/** Commander hands over a text for each argument, or a list for the last one. */
type Run = { run(context: commands.Context, ...args: (string | string[] | undefined)[]): Promise<number | void> }['run']
/** what a command does, and what is special about it */
type How = Partial<Omit<AppCommand, 'name' | 'run' | 'beside'>> & {
  run: Run,
  /** why it cannot be meant for another member of the fleet */
  onlyHere?: string,
  /** replaces the options where no app is named; null: nothing is left to do */
  prepare?: (options: Options, terminal: Terminal, argument?: string) => Promise<Options | null>
}

const NUMBER = /^r?\d+$/
/** What a word may be beside the names of apps, as the usage of a command has it. */
const BESIDE: Readonly<Record<string, Form>> = Object.freeze({
  '[release]': { form: NUMBER, expected: 'a release such as r12' },
  '[group]': { form: NUMBER, expected: 'the id of a group' },
  '[entry]': { form: /[/\\]|\.([cm]?[jt]s|[jt]sx)$/, expected: 'a file or folder to start' },
  '<n>': { form: /^\d+$/, expected: 'an integer from 1 to 256', isRequired: true },
  '<nginx|caddy>': { form: /^(nginx|caddy)$/, expected: 'nginx or caddy', isRequired: true }
})

/** Which of the options of `start` a command cannot have, as it uses them for something else. */
const START_OPTIONS: readonly { of: string, omit: string[] }[] = [{ of: 'systemd', omit: ['name'] }, { of: 'install',
  omit: ['name'] }, { of: 'doctor', omit: ['app', 'name', 'dataDir'] }]

/** The commands that talk to a running master. `behind`: what follows --. */
function clientCommands (behind: string[]): Readonly<Record<string, How>> {
  return { status: { run: commands.statusCommand, prepare: statusOfAll, textOfAll: statusesText },
    doctor: { run: doctorCommand,
      withoutMaster: { isMeant: isBeforeStart,
        run: (entry, options, terminal) => doctorHere(entry, options, terminal, behind) } },
    restart: { run: rolloutCommand('restart') }, deploy: { run: rolloutCommand('deploy') },
    'setup-git-push': { run: setupGitPush, onlyHere: 'the repository is on the machine of the app' },
    rollback: { run: rolloutCommand('rollback') },
    ...Object.fromEntries(STEERING.map((action) => [action, { run: steerCommand(action) }])),
    fleet: { run: fleetCommand, onlyHere: 'the fleet is the same for all its members',
      prepare: (options, terminal, action) => fleetOptions(options, action, terminal) },
    releases: { run: releasesCommand }, scale: { run: commands.scaleCommand }, send: { run: commands.sendCommand },
    acknowledge: { run: commands.acknowledgeCommand, find: findMasterOrHost }, kill: { run: killCommand },
    'end-connections': { run: endConnectionsCommand },
    diagnose: { run: diagnoseCommand, onlyHere: 'the file holds secrets of the process and stays on its machine' },
    profile: { run: profileCommand },
    upgrade: { run: commands.upgradeCommand, onlyHere: 'a master is upgraded on its own machine', find: findHostMeant },
    history: { run: historyCommand, find: findMasterOrHost }, logs: { run: logsCommand, textOfAll: printLogsOfAll },
    proxy: { run: proxyCommand, textOfAll: proxyOfAll }, routes: { run: routesCommand },
    crashes: { run: crashesCommand }, jobs: { run: jobsCommand },
    run: { run: (context) => runCommand(context, behind), isForOne: true },
    alerts: { run: alertsCommand, find: findMasterOrHost }, config: { run: configCommand },
    open: { run: commands.openCommand, onlyHere: 'a sign-in link leads to the deck that made it' },
    tokens: { run: tokensCommand, onlyHere: 'each deck has its own tokens' },
    stop: { run: commands.stopCommand, onlyHere: 'a deck is stopped on its own machine', onHost: stopApp },
    describe: { run: refuseOutside, onlyHere: 'a host tells of its own apps', onHost: describeApp,
      isMeant: () => true },
    delete: { run: refuseOutside, onlyHere: 'a host deletes its own apps', onHost: deleteApp, isMeant: () => true,
      needsName: true, confirm: confirmDelete } }
}

/** What a command does that talks to no master, or to several. Its code is loaded by that command alone. */
type Work = (...given: Parameters<Parameters<Command['action']>[0]>) => Promise<unknown>

function otherCommands (program: DeckCommand, { argv, terminal }: Typed): Readonly<Record<string, Work>> {
  return {
    systemd: async (entry, flags) =>
      (await import('./systemd.ts')).printUnits({ ...flags, ...appWords(argv, entry, flags) }, terminal),
    install: async (entry, flags) =>
      (await import('./install.ts')).installCommand({ ...flags, ...appWords(argv, entry, flags) }, terminal),
    uninstall: async (entry, flags) => (await import('./install.ts')).uninstallCommand({ ...flags, entry }, terminal),
    up: async (names, options) => (await import('./up.ts')).upCommand(names, options, terminal),
    down: async (names, options) => (await import('./down.ts')).downCommand(names, options, terminal),
    adopt: async (folder, options) =>
      options.pm2 === undefined && options.port === undefined && options.pid === undefined
        ? (await import('./adopt.ts')).adoptCommand(folder, options, terminal)
        : (await import('./adopt-program.ts')).adoptPrograms(folder, options, terminal),
    ls: async (options) => (await import('./ls.ts')).lsCommand(options, terminal),
    backup: async (file, options) =>
      (await import('../backup/cli.ts')).backupCommand(file, { ...options, version: String(program.version()) },
        terminal),
    restore: async (file, options) => (await import('../backup/cli.ts')).restoreCommand(file, options, terminal),
    import: async (file, options) => (await import('../import/cli.ts')).importCommand(file, options, terminal),
    mcp: async (options) => (await import('./mcp.ts')).serveMcp(options, terminal),
    top: async (names, options) => (await import('../vitals/cli-top.ts')).topCommand(names, options, terminal),
    completion: async (shell) => (await import('./completion.ts')).printCompletion(program, shell, terminal)
  }
}

/**
 * Adds all commands that become no master, in the order of their words. `isWanted`: whether the help of a command is
 * to know the options of `start`
 */
export async function addClientCommands (program: DeckCommand, typed: Typed, isWanted: (name: string) => boolean) {
  const client = clientCommands(appArguments(typed.argv).args ?? [])
  const others = otherCommands(program, typed)
  const placeOf = (name: string) => COMMAND_NAMES.indexOf(name)
  for (const name of Object.keys({ ...client, ...others }).sort((one, other) => placeOf(one) - placeOf(other))) {
    const command = Object.hasOwn(client, name)
      ? addCommand(program, name, client[name], typed)
      : addOther(program, name, others[name], typed)
    const { omit = null } = START_OPTIONS.find(({ of }) => of === name) ?? {}
    if (omit && isWanted(name)) await addStartOptions(command, { omit })
  }
}

function addOther (program: DeckCommand, name: string, work: Work, { outcome }: Typed): Command {
  const command = program.told(name).action(async (...given) => {
    const code = await work(...given)
    if (typeof code === 'number') outcome.exitCode = code
  })
  if (name === 'mcp') addDeckOptions(command, { dataDir: '.clusterdeck' })
  if (name === 'top') addDeckOptions(command)
  return name === 'ls' ? command.alias('list') : command
}

function addCommand (program: DeckCommand, name: string, { run, onlyHere, prepare, ...how }: How,
  { terminal, outcome }: Typed): Command
{
  const command = program.told(name, (told) => {
    told.option('--json', 'print the result as JSON')
    if (takesApps(told) && !how.isForOne)
      told.option('--all', how.isMeant ? 'all apps of the host' : 'all apps of the host that are not stopped')
    addDeckOptions(told, { dataDir: '.clusterdeck' }).option('--timeout <duration>',
      'give up after this time (default: 5m; env: CLUSTERDECK_TIMEOUT)').addOption(
        new Option('--member <name>', 'another member of its fleet, asked through it').hideHelp(onlyHere !== undefined)
      )
  })
  return command.action(async (...given) => {
    // Commander adds the options and the command itself to the arguments.
    const args = given.slice(0, -2)
    const member = memberOf(command, onlyHere)
    await explainUnreadableAnswer(member, async () => {
      const areNamed = takesApps(command) && (args[0].length > 0 || command.opts().all)
      const options: Options | null = areNamed || !prepare
        ? command.opts()
        : await prepare(command.opts(), terminal, args[0])
      if (options === null) return
      if (takesApps(command))
        outcome.exitCode = await runForApps({ name, run, beside: besideOf(command.usage()), ...how }, { words: args[0],
          options, terminal })
      else await run(await createContext(options, terminal, how.find), ...args)
    })
  })
}

/** `usage`: such as `[options] [app...] [release]`, or with the word before the apps */
function besideOf (usage: string): AppCommand['beside'] {
  const [, before, after = ''] = /(?:(<\S+>) )?\[app\.\.\.\] ?(\S*)/.exec(usage) ?? []
  const word = before ?? after
  return BESIDE[word] ?? (word.includes('|') ? { actions: word.slice(1, -1).split('|') } : undefined)
}

/** Tells whether it is for an app, several or all. */
function takesApps ({ registeredArguments: [first] }: Command): boolean {
  return first?.name() === 'app' && first.variadic
}

/** Prints one line per app where the config file has several and nobody has named one. Returns null: that is done. */
async function statusOfAll (options: Options, terminal: Terminal): Promise<Options | null> {
  const { env, cwd } = terminal
  if (options.member !== undefined || namesDeck(options, env) || options.watch) return options
  const found = await readConfigFile(env.CLUSTERDECK_CONFIG || undefined, cwd)
  if (!found || appsOf(found).size < 2) return options
  const { appsStatus } = await import('./ls.ts')
  await appsStatus(await findApps('status', {}, terminal), options, terminal)
  return null
}

function statusesText (outcomes: Outcome[]) {
  const rows = outcomes.map(({ target, result, error }) => ({ ...target,
    answer: result === null ? null : { status: result as Status, problem: null },
    reason: error === null ? null : target.reason })
  )
  return decksTable(rows, { now: Date.now() })
}

/**
 * `onlyHere`: why no other deck does it
 * @throws {DeckError} usage
 */
function memberOf (command: Command, onlyHere: string | undefined): string | undefined {
  const { member } = command.opts()
  if (member !== undefined && onlyHere !== undefined)
    throw new DeckError('usage', `${command.name()}: expected without --member: ${onlyHere}`)
  return member && checkedForm('--member', MEMBER_NAME, 'the name of a member of the fleet', member)
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
