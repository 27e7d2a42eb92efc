import { DeckError } from '../errors.js'
import { splitArguments } from './app-arguments.js'
import { createContext, createTools } from './context.js'
import { flagOfDeck } from './deck-options.js'
import { withoutPlace } from './deck-status.js'
import { timeoutOf } from './duration.js'
import { runForEach } from './each-app.js'
import { callHost, expectHost, findHost } from './host.js'
import { BRING_BACK } from './remembered.js'
import { allTargets, findTargets } from './targets.js'

/** @typedef {import('./commands.js').Options} Options */
/** @typedef {import('./commands.js').Tools} Tools */
/** @typedef {import('./program.js').Terminal} Terminal */
/** @typedef {import('./targets.js').Target} Target */

/**
 * What a command at the host has to work with.
 * @typedef {Tools & { host: import('./api-client.js').ApiClient, hostUrl: string, env: Terminal['env'], app: import('./host.js').AppView, options: Options, timeoutMs: number }} HostContext
 *
 * A command that takes apps.
 * @typedef {object} AppCommand
 * @property {string} name
 * @property {(context: import('./commands.js').Context, argument?: any) => Promise<number | void>} run at the master of the app; the exit code, if not 0
 * @property {{ isMeant: (argument: string | undefined, options: Options) => boolean, run: (argument: string | undefined, options: Options, terminal: Terminal) => Promise<number> }} [withoutMaster] run where the app of this folder does not run, or something else is meant
 * @property {true} [isForOne] it cannot be for several apps
 * @property {(context: HostContext) => Promise<void>} [onHost] at the host of the app, where it has one
 * @property {(app: import('./host.js').AppView) => boolean} [isMeant] which apps of the host are meant by --all; default: those that are not stopped
 * @property {(targets: readonly Target[], options: Options, terminal: Terminal) => Promise<void>} [confirm] throws unless it is to be done
 * @property {true} [needsName] the app of this folder is not meant by naming none
 * @property {import('./each-app.js').How['textOfAll']} [textOfAll]
 */

/** These print what has no place for the name of an app. @type {readonly ('watch' | 'csv')[]} */
const ALONE = ['watch', 'csv']
/** @type {readonly import('../errors.js').ErrorCode[]} */
const NOT_RUNNING = ['no-master', 'app-not-running']

/**
 * Runs a command for the app of this folder, or for those that are named.
 * @param {AppCommand} command @param {{ words: string[], options: Options, terminal: Terminal }} given
 * @returns {Promise<number>} the exit code
 * @throws {DeckError} usage: nothing was done for any
 */
export async function runForApps (command, { words, options, terminal }) {
  const { names, argument } = splitArguments(command.name, words)
  checkNamedOnce(command.name, names, options)
  const { env, cwd } = terminal
  if (names.length === 0 && !options.all) {
    if (command.needsName) throw new DeckError('usage', `${command.name}: expected an app, or --all, received none`)
    return await runHere(command, argument, options, terminal) ?? 0
  }
  const targets = options.all ? await allTargets(env, command.isMeant ?? (({ state }) => state !== 'stopped')) : await findTargets(command.name, names, { env, cwd })
  if (targets.length === 0) throw new DeckError('no-master', `${command.name}: ${findHost(env) === null ? BRING_BACK : 'no app of the host is meant'}`)
  await command.confirm?.(targets, options, terminal)
  const work = (/** @type {Target} */ target, tools = {}) => runAt(target, command, argument, { options, terminal, tools })
  if (targets.length === 1 && !options.all) return await work(targets[0]) ?? 0
  if (command.isForOne) throw new DeckError('usage', `${command.name}: expected one app, received several`)
  const alone = ALONE.find((name) => options[name])
  if (alone) throw new DeckError('usage', `--${alone}: expected with one app, received several`)
  return await runForEach(targets, work, { options, terminal, textOfAll: command.textOfAll })
}

/** @param {string} command @param {string[]} names @param {Options} options @throws {DeckError} usage */
function checkNamedOnce (command, names, options) {
  if (options.all && names.length > 0) throw new DeckError('usage', `${command}: expected either apps or --all, received both`)
  const flag = flagOfDeck(options)
  if (flag !== null && (options.all || names.length > 0)) {
    throw new DeckError('usage', `${command}: expected either ${options.all ? '--all' : 'an app'} or ${flag}, received both`)
  }
}

/** @param {Options} options @param {Terminal['env']} env @returns {boolean} whether somebody has named a deck that runs, and not a place where one would */
function meansRunning ({ name, url, member }, { CLUSTERDECK_NAME, CLUSTERDECK_URL }) {
  return [name, url, member, CLUSTERDECK_NAME, CLUSTERDECK_URL].some(Boolean)
}

/** @param {AppCommand} command @param {string | string[] | undefined} argument @param {Options} options @param {Terminal} terminal */
async function runHere (command, argument, options, terminal) {
  const { withoutMaster } = command
  const word = argument === undefined ? undefined : String(argument)
  if (withoutMaster?.isMeant(word, options)) return await withoutMaster.run(word, options, terminal)
  const context = await createContext(options, terminal).catch((error) => {
    if (withoutMaster && error instanceof DeckError && NOT_RUNNING.includes(error.code) && !meansRunning(options, terminal.env)) return null
    throw error
  })
  if (context === null) return await withoutMaster?.run(word, options, terminal)
  const { app } = context.master
  if (!command.onHost || app === null) return await command.run(context, argument)
  const hostContext = createHostContext(options, terminal)
  await command.onHost({ ...hostContext, app: await hostContext.host.get(`/apps/${app.name}`) })
}

/** @param {Target} target @param {AppCommand} command @param {string | string[] | undefined} argument @param {{ options: Options, terminal: Terminal, tools: Partial<Tools> }} how */
async function runAt (target, { run, onHost }, argument, { options, terminal, tools }) {
  if (onHost && target.view) return await onHost({ ...createHostContext(options, terminal), ...tools, app: target.view })
  const place = { ...terminal, env: withoutPlace(terminal.env) }
  return await run({ ...await createContext({ ...options, ...target.place }, place), ...tools }, argument)
}

/** @param {Options} options @param {Terminal} terminal @returns {Omit<HostContext, 'app'>} */
export function createHostContext (options, terminal) {
  const { env } = terminal
  const { timeoutMs } = timeoutOf(options, env)
  const host = expectHost(env)
  return { ...createTools(options, terminal), host: callHost(host, { env, timeoutMs }), hostUrl: host.url, env, options, timeoutMs }
}
