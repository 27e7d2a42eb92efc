import { DeckError } from '../errors.ts'
import { oneLine } from '../system/one-line.ts'
import { nullOn, type ApiClient } from './api-client.ts'
import { createContext, createTools } from './context.ts'
import { flagOfDeck } from './deck-options.ts'
import { withoutPlace } from './find-master.ts'
import { callHost, expectHost, findHost, isOpen } from './host.ts'
import { appsOfHost, BRING_BACK, findTargets, notRunning, toTarget, type Target } from './known-apps.ts'
import { jsonText } from './output.ts'
import { createPrefixed, type Prefixed } from './prefixed.ts'
import { misuse, timeoutOf } from './usage.ts'
import type { Context, Options, Tools } from './commands.ts'
import type { Terminal } from './program.ts'
import type { AppView } from '../host/api-apps.ts'

/** A word of that form is for the command, and any other one names an app. */
export type Form = { form: RegExp, expected: string, isRequired?: true }
/** The first one of these names the action of the command, and what follows is for that. */
type Actions = { actions: readonly string[] }
/** What a command has come to for one of several apps; `text`: of its result; `code`: its exit code. */
export type Outcome = { target: Target, result: unknown, text: string | null, error: DeckError | null, code: number }
/** what is printed for people of several apps */
type TextOfAll = (outcomes: Outcome[], tools: { prefixed: Prefixed, options: Options, env: Terminal['env'] }) => string

/** What a command at the host has to work with. */
export type HostContext = Tools & { host: ApiClient, hostUrl: string, env: Terminal['env'], app: AppView,
  options: Options }
/** A command that takes apps. */
export type AppCommand = {
  name: string,
  /** what its words may be beside names of apps */
  beside?: Form | Actions,
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
  textOfAll?: TextOfAll
}

/** These print what has no place for the name of an app. */
const ALONE: readonly ('watch' | 'csv')[] = ['watch', 'csv']

/**
 * Runs a command for the app of this folder, or for those that are named. Returns the exit code.
 * @throws {DeckError} usage: nothing was done for any
 */
export async function runForApps (command: AppCommand,
  { words, options, terminal }: { words: string[], options: Options, terminal: Terminal }): Promise<number>
{
  const { names, argument } = splitArguments(command, words)
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
  const isHereEnough = withoutMaster && !meansRunning(options, terminal.env)
  const context = await createContext(options, terminal, command.find).catch(
    isHereEnough ? nullOn('no-master', 'app-not-running') : undefined
  )
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

function createHostContext (options: Options, terminal: Terminal): Omit<HostContext, 'app'> {
  const { env } = terminal
  const { timeoutMs } = timeoutOf(options, env)
  const host = expectHost(env)
  return { ...createTools(options, terminal), host: callHost(host, { env, timeoutMs }), hostUrl: host.url, env,
    options }
}

/**
 * Returns `names`: of apps, each once; `argument`: of a command with actions, the words from the action on.
 * @throws {DeckError} usage
 */
function splitArguments ({ name, beside }: Pick<AppCommand, 'name' | 'beside'>,
  words: readonly string[]): { names: string[], argument: string | string[] | undefined }
{
  if (beside && 'actions' in beside) return splitAtAction(beside, words)
  const [first, second] = words.filter((word) => beside?.form.test(word))
  const names = [...new Set(words.filter((word) => !beside?.form.test(word)))]
  if (second !== undefined) throw misuse(name, `${beside?.expected} once`, `${first} and ${second}`)
  if (first === undefined && beside?.isRequired)
    throw misuse(name, beside.expected, words.length === 0 ? 'none' : JSON.stringify(words.join(' ')))
  return { names, argument: first }
}

function splitAtAction ({ actions }: Actions, words: readonly string[]) {
  const index = words.findIndex((word) => actions.includes(word))
  return { names: [...new Set(index === -1 ? words : words.slice(0, index))],
    argument: index === -1 ? undefined : words.slice(index) }
}

/**
 * Does the same for several apps, side by side. One that fails stops none of the others.
 * @returns the exit code: 0 if all have succeeded, else that of the first one that has not
 */
async function runForEach (targets: readonly Target[],
  work: (target: Target, tools: Partial<Tools>) => Promise<number | void>,
  { options, terminal, textOfAll = blocksOf }: { options: Options, terminal: Terminal,
    textOfAll?: TextOfAll }): Promise<number>
{
  const { stdout, stderr } = terminal
  const prefixed = createPrefixed(targets.map(({ name }) => name), terminal)
  const outcomes = await Promise.all(targets.map(runFor))
  if (options.json && !options.follow)
    stdout.write(
      `${
        jsonText(
          outcomes.map(({ target: { name: app }, result, error }) =>
            error ? { app, error: { code: error.code, message: error.message } } : { app, result }
          )
        )
      }\n`
    )
  const text = options.json ? '' : textOfAll(outcomes, { prefixed, options, env: terminal.env })
  if (text !== '') stdout.write(`${text}\n`)
  return outcomes.find(({ code }) => code !== 0)?.code ?? 0

  async function runFor (target: Target): Promise<Outcome> {
    const { name } = target
    const outcome: Outcome = { target, result: null, text: null, error: null, code: 0 }
    try {
      outcome.code = await work(target, { print: (text) => {
        options.json
          ? stdout.write(`${JSON.stringify({ app: name, ...JSON.parse(text) })}\n`)
          : prefixed.print(name, text)
      }, tell: (text) => prefixed.say(name, text), keep: (result) => {
        outcome.result = result
      }, answer (result, textOf) {
        outcome.result = result
        outcome.text = options.json ? null : textOf()
      } }) ?? 0
    } catch (error) {
      if (!(error instanceof DeckError)) throw error
      outcome.error = error
      outcome.code = error.exitCode
      if (!options.json)
        stderr.write(
          `clusterdeck: ${
            oneLine(error.message.startsWith(`${name} `) ? error.message : `${name}: ${error.message}`)
          }\n`
        )
    }
    return outcome
  }
}

function blocksOf (outcomes: Outcome[]) {
  const texts = outcomes.flatMap(({ target: { name }, text }) =>
    text === null ? [] : [text.includes('\n') ? `${name}:\n${text}` : `${name}: ${text}`]
  )
  return texts.join(texts.some((text) => text.includes('\n')) ? '\n\n' : '\n')
}
