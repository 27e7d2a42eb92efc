import { DeckError, type ErrorCode } from '../errors.ts'
import { splitArguments } from './app-arguments.ts'
import { createContext, createTools } from './context.ts'
import { flagOfDeck } from './deck-options.ts'
import { runForEach, type How } from './each-app.ts'
import { withoutPlace } from './find-master.ts'
import { callHost, expectHost, findHost, isOpen } from './host.ts'
import { appsOfHost, BRING_BACK, findTargets, notRunning, toTarget, type Target } from './known-apps.ts'
import { misuse, timeoutOf } from './usage.ts'
import type { Context, Options, Tools } from './commands.ts'
import type { Terminal } from './program.ts'
import type { ApiClient } from './api-client.ts'
import type { AppView } from '../api/apps.ts'

/** What a command at the host has to work with. */
export type HostContext = Tools & { host: ApiClient, hostUrl: string, env: Terminal['env'], app: AppView,
  options: Options, timeoutMs: number }
/** A command that takes apps. */
export type AppCommand = {
  name: string,
  /** at the master of the app; the exit code, if not 0 */
  run(context: Context, argument?: string | string[]): Promise<number | void>,
  /** run where the app of this folder does not run, or something else is meant */
  withoutMaster?: { isMeant: (argument: string | undefined, options: Options) => boolean,
    run: (argument: string | undefined, options: Options, terminal: Terminal) => Promise<number> },
  /** who is meant where no app is named; default: the master of the app of this folder */
  find?: Parameters<typeof createContext>[2],
  /** it cannot be for several apps */
  isForOne?: true,
  /** at the host of the app, where it has one */
  onHost?: (context: HostContext) => Promise<void>,
  /** which apps of the host are meant by --all; default: those that are not stopped */
  isMeant?: (app: AppView) => boolean,
  /** throws unless it is to be done */
  confirm?: (targets: readonly Target[], options: Options, terminal: Terminal) => Promise<void>,
  /** the app of this folder is not meant by naming none */
  needsName?: true,
  textOfAll?: How['textOfAll']
}

/** These print what has no place for the name of an app. */
const ALONE: readonly ('watch' | 'csv')[] = ['watch', 'csv']
const NOT_RUNNING: readonly ErrorCode[] = ['no-master', 'app-not-running']

/**
 * Runs a command for the app of this folder, or for those that are named. Returns the exit code.
 * @throws {DeckError} usage: nothing was done for any
 */
export async function runForApps (command: AppCommand,
  { words, options, terminal }: { words: string[], options: Options, terminal: Terminal }): Promise<number>
{
  const { names, argument } = splitArguments(command.name, words)
  checkNamedOnce(command.name, names, options)
  const { env, cwd } = terminal
  if (names.length === 0 && !options.all) {
    if (command.needsName) throw misuse(command.name, 'an app, or --all')
    return await runHere(command, argument, options, terminal) ?? 0
  }
  const { isMeant = ({ state }: AppView) => state !== 'stopped' } = command
  const targets = options.all
    ? (await appsOfHost(env)).filter(({ view }) => view && isMeant(view)).map(toTarget)
    : await findTargets(command.name, names, { env, cwd }, { takesAll: !command.isForOne })
  if (targets.length === 0)
    throw new DeckError('no-master',
      `${command.name}: ${findHost(env) === null ? BRING_BACK : 'no app of the host is meant'}`)
  await command.confirm?.(targets, options, terminal)
  const work = (target: Target, tools = {}) => runAt(target, command, argument, { options, terminal, tools })
  if (targets.length === 1 && !options.all) return await work(targets[0]) ?? 0
  if (command.isForOne) throw misuse(command.name, 'one app', 'several')
  const alone = ALONE.find((name) => options[name])
  if (alone) throw misuse(`--${alone}`, 'with one app', 'several')
  return await runForEach(targets, work, { options, terminal, textOfAll: command.textOfAll })
}

/** @throws {DeckError} usage */
function checkNamedOnce (command: string, names: string[], options: Options) {
  if (options.all && names.length > 0) throw misuse(command, 'either apps or --all', 'both')
  const flag = flagOfDeck(options)
  if (flag !== null && (options.all || names.length > 0))
    throw misuse(command, `either ${options.all ? '--all' : 'an app'} or ${flag}`, 'both')
}

/** Tells whether somebody has named a deck that runs, and not a place where one would */
function meansRunning ({ name, url, member }: Options,
  { CLUSTERDECK_NAME, CLUSTERDECK_URL }: Terminal['env']): boolean
{
  return [name, url, member, CLUSTERDECK_NAME, CLUSTERDECK_URL].some(Boolean)
}

async function runHere (command: AppCommand, argument: string | string[] | undefined, options: Options,
  terminal: Terminal)
{
  const { withoutMaster } = command
  const word = argument === undefined ? undefined : String(argument)
  if (withoutMaster?.isMeant(word, options)) return await withoutMaster.run(word, options, terminal)
  const context = await createContext(options, terminal, command.find).catch((error) => {
    if (withoutMaster && error instanceof DeckError && NOT_RUNNING.includes(error.code) &&
      !meansRunning(options, terminal.env)) return null
    throw error
  })
  if (context === null) return await withoutMaster?.run(word, options, terminal)
  const { app } = context.master
  if (!command.onHost || app === null) return await command.run(context, argument)
  const hostContext = createHostContext(options, terminal)
  await command.onHost({ ...hostContext, app: await hostContext.host.get(`/apps/${app.name}`) })
}

async function runAt (target: Target, { run, onHost }: AppCommand, argument: string | string[] | undefined,
  { options, terminal, tools }: { options: Options, terminal: Terminal, tools: Partial<Tools> })
{
  if (onHost && target.view)
    return await onHost({ ...createHostContext(options, terminal), ...tools, app: target.view })
  if (target.view && !isOpen(target)) throw notRunning(target)
  const place = { ...terminal, env: withoutPlace(terminal.env) }
  return await run({ ...await createContext({ ...options, ...target.place }, place), ...tools }, argument)
}

export function createHostContext (options: Options, terminal: Terminal): Omit<HostContext, 'app'> {
  const { env } = terminal
  const { timeoutMs } = timeoutOf(options, env)
  const host = expectHost(env)
  return { ...createTools(options, terminal), host: callHost(host, { env, timeoutMs }), hostUrl: host.url, env, options,
    timeoutMs }
}
