import { realpathSync, statSync } from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { DeckError } from '../errors.ts'
import { followCommand, isInstalled, byShell, otherProgram, runScript } from './command.ts'
import { commandOf, fileOf, findCommand, isFile, isForeign, mainOf, nodeFileOf, readPackage,
  foldersUpwards } from './packages.ts'
import { isLauncher } from './launcher.ts'
import { launchRefusal } from './refusal.ts'
import { shownWords, splitWords } from './shell-words.ts'
import { typeScriptOptions } from './typescript.ts'
import type { Command, Environment, Program } from './command.ts'

/** What a user has said that is to be started. */
export type Wish = {
  /** a file, a folder, a command of an installed package, `npm`, `npx`, `yarn`, `pnpm`; default: the working folder */
  entry?: string,
  /** a script of package.json, instead */
  script?: string,
  args?: string[],
  /** options of node */
  execArgv?: string[],
  /** what it is to run in; absolute, as `folder` */
  cwd: string,
  /** what a relative entry starts from; default: `cwd` */
  folder?: string,
  /** where it was said, for messages */
  source?: string
}
/**
 * What runs an entry; `other`: it is a program itself.
 * The Node of an app. `by`: what has asked for it; `command`: it is the one with which the command was typed,
 * `clusterdeck`: nothing has, so it is the one of clusterdeck; `instead`: why it is not the one that a file of the app
 * asks for.
 */
export type Runtime = 'node' | 'other'
export type AppNode = { file: string, version: string,
  by: 'option' | '.nvmrc' | '.node-version' | 'volta' | 'command' | 'clusterdeck', instead?: string }
/** What is to run for it. */
type Launch = {
  runtime: Runtime,
  /** absolute; links stay */
  entry: string,
  args: string[],
  /** those of the wish come last */
  execArgv: string[],
  /** over what is inherited */
  env: Record<string, string>,
  cwd: string,
  /**
   * in a line what was made of what; null: the wish was a file, or another program with its arguments, and is run as it
   * is
   */
  said: string | null,
  /** what is not done that the wish would have done, a sentence each */
  notes: string[]
}

/** What is for another program by its name. */
const FOREIGN_FILE = /\.(py|rb|php|pl|sh|bash|zsh|jar|exe|go|rs|lua)$/
/** What may be the name of a program. */
const IS_WORD = /^(?!.*\.[cm]?[jt]sx?$)[^/\\]+$/s
const IS_JAVASCRIPT = /\.[cm]?js$/
const OLD_NODE_NOTE =
  'its Node is too old for workers, which need 20.19, 22.12 or later: it is run as a program of another language is'
const LAUNCHER_NOTE =
  'it starts its server as another process, so it is run as a program of another language is, with all that it starts'
/** They say where they come from themselves. */
const OF_A_SCRIPT = /^(npm_.*|PATH|NODE_PATH)$/

/**
 * What would run in the end, read from the disk as it is now. `node`: the file of the workers' Node;
 * `isOldNode`: it can run no workers, and is run as another program; `stripsTypes`: whether it runs TypeScript unasked.
 * @throws {DeckError} entry-not-found, invalid-config; with `details: { reason }` where it is no Node program
 */
export function resolveLaunch (wish: Wish,
  { env = process.env, node = process.execPath, isOldNode = false, stripsTypes = process.features.typescript }: {
    env?: Environment,
    node?: string,
    isOldNode?: boolean,
    stripsTypes?: unknown
  } = {}): Launch
{
  const { cwd, execArgv = [], source = wish.script === undefined ? 'entry' : 'script' } = wish
  const received = receivedOf(wish)
  const command: Command = { words: [], cwd, env: {}, execArgv: [], notes: [], source, received }
  const found = findProgram(wish, command, env)
  const program = found.runtime === 'node' && isLauncher(found.entry)
    ? byNode(found, execArgv, node, LAUNCHER_NOTE)
    : found
  const given = [...program.execArgv, ...execArgv]
  const all = [...plugAndPlay(program.entry, [...given, program.env.NODE_OPTIONS, env.NODE_OPTIONS]), ...given]
  if (program.runtime === 'other')
    return { ...program,
      said: isAsSaid(wish, program)
        ? null
        : `${received} → ${shownWords([program.entry, ...program.args])}${folderText(program.cwd, cwd)}` }
  const more = typeScriptOptions({ ...program, execArgv: all }, stripsTypes)
  if (more === null)
    throw launchRefusal('typescript', { source,
      received: received === program.entry ? received : `${received} → ${program.entry}` })
  const launch = { ...program, execArgv: [...more, ...all] }
  // A copy of the app has the file at the same place below the folder that it runs in.
  if (isOldNode)
    return { ...byNode({ ...launch, entry: shownFile(launch.entry, launch.cwd) }, [], node, OLD_NODE_NOTE), said: null }
  const isAsItWas = 'isPlain' in program && more.length === 0 && all.length === given.length
  return { runtime: 'node', entry: launch.entry, args: launch.args, execArgv: launch.execArgv, env: launch.env,
    cwd: launch.cwd, notes: launch.notes, said: isAsItWas ? null : launchSentence(wish, launch, received) }
}

/** `given`: options of node @returns which is Node itself */
function byNode ({ entry, args, execArgv, env, cwd, notes }: Program, given: string[], node: string,
  note: string): Program
{
  return { runtime: 'other', entry: node, args: [...execArgv, ...given, entry, ...args], execArgv: [], env, cwd,
    notes: [...notes, note] }
}

/**
 * What Yarn Plug'n'Play has Node load first, so that packages are found in their archives. Yarn says so by
 * NODE_OPTIONS. `given`: options of node.
 */
function plugAndPlay (entry: string, given: (string | undefined)[]): string[] {
  const file = foldersUpwards(path.dirname(entry)).map((folder) => path.join(folder, '.pnp.cjs')).find(isFile)
  // One that somebody else has put above the app would run in it.
  if (!file || !isOwn(file) || given.some((option) => option?.includes('.pnp.'))) return []
  const loader = path.join(path.dirname(file), '.pnp.loader.mjs')
  return ['--require', file,
    ...(isFile(loader) && isOwn(loader) ? ['--experimental-loader', pathToFileURL(loader).href] : [])]
}

/** Tells whether nobody but this user and root can have written it */
function isOwn (file: string): boolean {
  const { uid, mode } = statSync(file)
  return [0, process.getuid?.()].includes(uid) && (mode & 0o002) === 0
}

/** @returns the folder of the code, as far as the wish tells */
export function folderOfWish ({ entry, cwd, folder = cwd }: Wish): string {
  const place = path.resolve(folder, entry ?? '.')
  if (isDirectory(place)) return place
  return isFile(place) && !place.includes(`${path.sep}node_modules${path.sep}`) ? path.dirname(place) : cwd
}

/** The same wish for another copy of the app. */
export function movedTo (cwd: string, { entry, folder = cwd, ...wish }: Wish): Wish {
  const place = path.resolve(folder, entry ?? '.')
  const isApp = entry !== undefined && isDirectory(place) && (!IS_WORD.test(entry) || holdsApp(place))
  return { ...wish, entry: isApp ? '.' : entry, cwd, folder: cwd }
}

function isDirectory (place: string) {
  return statSync(place, { throwIfNoEntry: false })?.isDirectory() ?? false
}

/** Tells whether inFolder() or its index says what to run there */
function holdsApp (folder: string): boolean {
  const found = readPackage(folder)
  return Boolean(
    mainOf(folder) ?? found?.content.scripts?.start ?? (found && commandOf(found)) ?? fileOf(path.join(folder, 'index'))
  )
}

function receivedOf ({ entry, script, args = [], cwd }: Wish) {
  if (script !== undefined) return `the script ${JSON.stringify(script)}`
  return entry === undefined ? cwd : shownWords([entry, ...args])
}

function findProgram ({ entry, script, args = [], cwd, folder = cwd }: Wish, command: Command, env: Environment):
  & Program
  & { isPlain?: true }
{
  if (script !== undefined) return followCommand(runScript(command, { name: script, args }, env), env)
  if (entry === undefined) {
    const found = inFolder(folder, { ...command, words: args }, env) ??
      (folder === cwd ? null : inFolder(cwd, { ...command, words: args }, env))
    return found ??
      notFound(
        `entry: expected a file, or a package.json with "main", a script "start" or "bin" in ${cwd}, received neither`
      )
  }
  const place = path.resolve(folder, entry)
  const isWord = IS_WORD.test(entry)
  // As for a shell, except for files of Node.
  const isProgram = () => isWord && findCommand(entry, command.cwd, env.PATH) !== undefined
  const file = fileOf(place)
  if (file && !(file === place && nodeFileOf(file) === null && isProgram())) return asFile(file, args, command, env)
  const isFolder = isDirectory(place)
  const inside = isFolder
    ? inFolder(place, { ...command, words: args }, env) ??
      plainProgram(fileOf(path.join(place, 'index')), args, command)
    : null
  if (inside) return inside
  if (isWord && (!isFolder || isProgram())) return byName(entry, args, command, env)
  return notFound(
    `${command.source}: expected a file, received ${place}, which ${isFolder ? 'is none' : 'does not exist'}`
  )
}

function notFound (message: string): never {
  throw new DeckError('entry-not-found', message)
}

function plainProgram (entry: string | undefined, args: string[], { cwd }: Command):
  | (Program & { isPlain: true })
  | null
{
  return entry === undefined
    ? null
    : { runtime: 'node', entry, args, execArgv: [], env: {}, cwd, notes: [], isPlain: true }
}

function asFile (file: string, args: string[], command: Command, env: Environment) {
  if (path.basename(file).startsWith('ecosystem.config.'))
    notFound(
      `${command.source}: expected a program, received ${file}, which is of PM2: clusterdeck import takes it over`
    )
  if (path.basename(path.dirname(file)) === '.bin') return followCommand({ ...command, words: [file, ...args] }, env)
  if (FOREIGN_FILE.test(file) || (!IS_JAVASCRIPT.test(file) && isForeign(file)))
    return otherProgram(command, file, args, env)
  return plainProgram(file, args, command) as Program & { isPlain: true }
}

/** A package's folder: its main file, else its script "start", else its command. `words`: the arguments. */
function inFolder (folder: string, command: Command, env: Environment): Program & { isPlain?: true } | null {
  const { words: args } = command
  const main = mainOf(folder)
  if (main) return plainProgram(main, args, command)
  const found = readPackage(folder)
  if (typeof found?.content.scripts?.start === 'string')
    return followCommand(runScript({ ...command, cwd: folder }, { name: 'start', args }, env), env)
  const file = found ? commandOf(found) : undefined
  return file ? plainProgram(file, args, command) : null
}

/** Tells whether there is nothing to say of what runs, as it was said in the same words */
function isAsSaid ({ entry, script, args = [], cwd, folder = cwd }: Wish, program: Program): boolean {
  if (entry === undefined || script !== undefined || program.notes.length > 0 || program.cwd !== cwd) return false
  const isNamed = path.basename(program.entry) === entry || path.resolve(folder, entry) === program.entry
  return isNamed && args.length === program.args.length && args.every((word, at) => word === program.args[at])
}

function byName (name: string, args: string[], command: Command, env: Environment) {
  const words = splitWords(name)
  if (words === null) return byShell(command, name, env)
  const [word] = words
  if (word === name && !isInstalled(word, command.cwd, env))
    notFound(
      `${command.source}: expected a file, a folder or the name of a program, received ${name}, which is neither in ${command.cwd} nor installed there`
    )
  return followCommand({ ...command, words: [...words, ...args] }, env)
}

function launchSentence ({ entry, script, cwd, args = [] }: Wish,
  { entry: file, args: ownArgs, execArgv, env, cwd: ownCwd }: Program, received: string)
{
  const wished = script === undefined
    ? (entry === undefined ? 'start' : received)
    : shownWords(['script', script, ...args])
  // Any other may be a secret.
  const variables = Object.keys(env).filter((name) => !OF_A_SCRIPT.test(name)).map((name) =>
    name === 'NODE_ENV' ? `NODE_ENV=${shownWords([env.NODE_ENV])} ` : `${name}=… `
  ).join('')
  const where = folderText(ownCwd, cwd)
  return `${wished} → ${variables}node ${shownWords([...execArgv, shownFile(file, ownCwd), ...ownArgs])}${where}`
}

function folderText (folder: string, cwd: string) {
  return folder === cwd ? '' : ` in ${path.relative(cwd, folder)}`
}

function shownFile (file: string, cwd: string) {
  // The link there says less than what it leads to.
  const isLink = path.basename(path.dirname(file)) === '.bin'
  const way = isLink ? path.relative(realpathSync(cwd), realpathSync(file)) : path.relative(cwd, file)
  return way.startsWith(`..${path.sep}..`) ? file : way
}
