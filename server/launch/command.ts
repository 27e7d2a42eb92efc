import { readFileSync } from 'node:fs'
import path from 'node:path'
import { parseEnv } from 'node:util'
import { DeckError } from '../errors.ts'
import { parseNodeWords } from './node-options.ts'
import { isPackageManager, parseManagerWords, type Errand } from './package-manager.ts'
import { fileOf, findCommand, installedPackage, isExecutable, isFile, mainOf, nearestPackage, nodeFileOf, readPackage,
  foldersUpwards } from './packages.ts'
import { launchRefusal } from './refusal.ts'
import { SHELL_WORDS, shownWords, splitWords } from './shell-words.ts'
import { SEES_NO_NODE, SUBSTITUTES, type Substitute } from './substitutes.ts'
import { withNote, WATCH_NOTE, withAssignments, WRAPPERS, wrongOption } from './wrappers.ts'
import type { Runtime } from './launch.ts'
import type { Package } from './packages.ts'

/** A command on its way to the program that it runs. */
export type Command = {
  words: string[],
  cwd: string,
  /** over what is inherited */
  env: Record<string, string>,
  execArgv: string[],
  /** what is not done that it would have done */
  notes: string[],
  /** where the user has said it */
  source: string,
  /** what is being read, in the user's words */
  received: string
}
export type Program =
  & Omit<Command, 'words' | 'source' | 'received'>
  & { runtime: Runtime, entry: string, args: string[] }
/** of whoever asks */
export type Environment = Readonly<Record<string, string | undefined>>

const MAX_STEPS = 20
const NODE_NAMES = new Set(['node', 'nodejs'])
/** Where a wrapper is refused for one of these reasons, the wrapper itself is run. */
const ONLY_ITSELF = new Set(['option', 'expansion'])
const ENV_FILE = '--env-file='
/** Whether a shell that is to run a text starts Node, as far as that can be told. */
const STARTS_NODE = /(^|[\s;&|(])(node|nodejs|npm|npx|yarn|pnpm|tsx|ts-node|next|nuxt|nest)(\s|$)/
const PACKAGE_TEXTS = ['name', 'version']

/**
 * Follows a command to the file that Node would run in the end, or to another program.
 * @throws {import('../errors.ts').DeckError} invalid-config
 */
export function followCommand (command: Command | Program, inherited: Environment): Program {
  let at: Command | Program = command
  for (let steps = 0; !('entry' in at); steps++) {
    if (steps === MAX_STEPS) throw launchRefusal('circle', at)
    at = unwrapStep(at, inherited)
  }
  return at
}

function unwrapStep (command: Command, inherited: Environment): Command | Program {
  const { words: [word, ...words] } = command
  if (word === undefined) throw launchRefusal('empty', command)
  const name = path.basename(word)
  // A file of the app's own may be called like any of these.
  const isKnown = !word.includes('/') || word.includes('node_modules/.bin/')
  if (NODE_NAMES.has(name)) return runNode(command, inherited)
  if (isKnown && Object.hasOwn(WRAPPERS, name)) return unwrap(command, name, inherited)
  if (isKnown && isPackageManager(name)) return runManager(command, name, inherited)
  const substitute = isKnown && Object.hasOwn(SUBSTITUTES, name) ? SUBSTITUTES[name](words, command.cwd) : null
  if (substitute) return withSubstitute(command, substitute, inherited)
  return runFile({ ...command, words }, word, inherited)
}

function unwrap (command: Command, name: string, inherited: Environment): Command | Program {
  try {
    return WRAPPERS[name]({ ...command, words: command.words.slice(1) }, name)
  } catch (error) {
    // It is asked for something that only it can do itself.
    if (!(error instanceof DeckError) || !ONLY_ITSELF.has(String(error.details?.reason)) ||
      !isFound(command, inherited)) throw error
    return asItIs(command, SEES_NO_NODE, inherited)
  }
}

function withSubstitute (command: Command, substitute: Substitute, inherited: Environment): Command | Program {
  if ('reason' in substitute)
    throw launchRefusal(substitute.reason, { ...command, why: substitute.why, instead: substitute.instead })
  if (!('words' in substitute)) return asItIs(command, substitute.note, inherited)
  const { words, note } = substitute
  return note ? withNote({ ...command, words }, note) : { ...command, words }
}

/** @returns also where Node would run it */
function asItIs (command: Command, note: string, inherited: Environment): Program {
  const { words: [word = '', ...args] } = command
  return otherProgram(withNote(command, note), installedCommand(command, word, inherited), args, inherited)
}

function isFound ({ words: [word], cwd, env }: Command, inherited: Environment) {
  return findCommand(word, cwd, env.PATH ?? inherited.PATH) !== undefined
}

/** `command`: its first word is `node` */
function runNode (command: Command, inherited: Environment): Command | Program {
  const { execArgv, rest: [file, ...args], watches, runs, refused } = parseNodeWords(command.words.slice(1))
  if (refused) return asItIs(command, SEES_NO_NODE, inherited)
  const next = { ...(watches ? withNote(command, WATCH_NOTE) : command), execArgv: [...command.execArgv, ...execArgv] }
  if (runs !== null) return runScript(next, { name: runs, args: file === undefined ? [] : [file, ...args] }, inherited)
  if (file === undefined) throw launchRefusal('no-file', command)
  const wanted = path.resolve(command.cwd, file)
  const entry = fileOf(wanted) ?? mainOf(wanted) ?? fileOf(path.join(wanted, 'index'))
  if (!entry)
    throw launchRefusal('not-found', { ...command, why: `runs ${wanted}, which is not there`,
      instead: 'Build it, or name the file' })
  return toProgram(next, entry, args)
}

function toProgram ({ cwd, env, execArgv, notes }: Command, entry: string, args: string[]): Program {
  return { runtime: 'node', entry, args, execArgv, env, cwd, notes }
}

export function otherProgram (command: Command, entry: string, args: string[], inherited: Environment): Program {
  if (!isExecutable(entry))
    throw launchRefusal('not-executable', { ...command, why: `runs ${entry}, which may not be executed` })
  const { cwd, env, notes } = command
  return { runtime: 'other', entry, args, execArgv: [], env: { ...variablesFor(command, inherited), ...env }, cwd,
    notes }
}

/** The variables in files that Node would have read. What is set already counts more, and of two files the last. */
function variablesFor ({ execArgv, cwd }: Command, inherited: Environment): Record<string, string> {
  const files = execArgv.flatMap((option) =>
    option.startsWith(ENV_FILE) ? [path.resolve(cwd, option.slice(ENV_FILE.length))] : []
  )
  const values: Record<string, string> = Object.assign({},
    ...files.map((file) => parseEnv(readFileSync(file, 'utf8').replace(/^\uFEFF/, ''))))
  return Object.fromEntries(Object.entries(values).filter(([name]) => inherited[name] === undefined))
}

/** @returns a shell that runs it */
export function byShell (command: Command, text: string, inherited: Environment): Program {
  return otherProgram(STARTS_NODE.test(text) ? withNote(command, SEES_NO_NODE) : command, '/bin/sh', ['-c', text],
    inherited)
}

/** Tells whether it means anything as a command */
export function isInstalled (name: string, cwd: string, inherited: Environment): boolean {
  const isNamed = NODE_NAMES.has(name) || SHELL_WORDS.has(name) || isPackageManager(name) ||
    Object.hasOwn(WRAPPERS, name) || Object.hasOwn(SUBSTITUTES, name)
  return isNamed || findCommand(name, cwd, inherited.PATH) !== undefined
}

function runFile (command: Command, word: string, inherited: Environment): Program {
  if (SHELL_WORDS.has(word)) return byShell(command, shownWords([word, ...command.words]), inherited)
  const file = installedCommand(command, word, inherited)
  const found = nodeFileOf(file)
  if (!found) return otherProgram(command, file, command.words, inherited)
  return toProgram({ ...command, env: { ...command.env, ...found.env },
    execArgv: [...command.execArgv, ...found.execArgv] }, found.entry, command.words)
}

/** Returns its file @throws {DeckError} invalid-config */
function installedCommand (command: Command, word: string, inherited: Environment): string {
  const { cwd, env } = command
  const file = findCommand(word, cwd, env.PATH ?? inherited.PATH)
  if (file) return file
  const isPacked = hasPlugAndPlay(cwd)
  throw launchRefusal('not-installed', { ...command,
    why: `runs ${word}, which is not installed in ${cwd}${isPacked ? ' by files (Yarn Plug\'n\'Play)' : ''}`,
    ...(isPacked && { instead: 'Set "nodeLinker: node-modules" in .yarnrc.yml' }) })
}

function hasPlugAndPlay (folder: string) {
  return foldersUpwards(folder).some((each) => isFile(path.join(each, '.pnp.cjs')))
}

/** `command`: its first word is the manager's */
function runManager (command: Command, manager: string, inherited: Environment): Command | Program {
  const errand = parseManagerWords(manager, command.words.slice(1))
  if ('refused' in errand) {
    if (errand.isOnlyItsOwn) return asItIs(command, SEES_NO_NODE, inherited)
    if (errand.refused.startsWith('-')) throw wrongOption(command, errand.refused)
    throw launchRefusal('no-file', { ...command, why: `starts no program ("${errand.refused}")`,
      instead: 'Name a script of package.json: npm run <script>' })
  }
  const cwd = folderOf(command, errand)
  const next = { ...command, cwd }
  const { kind, name, args } = errand
  if (kind === 'script' || (kind === 'either' && hasScript(cwd, name)))
    return runScript(next, { name, args }, inherited)
  return { ...next, words: [commandOfPackage(name, cwd), ...args] }
}

/** A package may have a command of another name. */
function commandOfPackage (name: string, cwd: string): string {
  if (!name.startsWith('@')) return name
  const installed = installedPackage(name, cwd)
  const bin = installed && readPackage(installed)?.content.bin
  return bin && typeof bin === 'object' ? Object.keys(bin)[0] : name.replace(/^.*\//, '')
}

function folderOf (command: Command, { folder, workspace }: Errand) {
  const cwd = path.resolve(command.cwd, folder ?? '.')
  if (workspace === null) return cwd
  const places = [path.resolve(cwd, workspace),
    ...foldersUpwards(cwd).map((each) => path.join(each, 'node_modules', workspace))]
  const found = places.find((place) => isFile(path.join(place, 'package.json')))
  if (!found)
    throw launchRefusal('not-found', { ...command,
      why: `names the workspace ${workspace}, which is neither a folder nor linked into node_modules`,
      instead: 'Name its folder by --cwd' })
  return found
}

function hasScript (folder: string, name: string) {
  return typeof nearestPackage(folder)?.content.scripts?.[name] === 'string'
}

/** The command that a script of package.json is, in the folder of that. */
export function runScript (command: Command, { name, args }: { name: string, args: string[] }, inherited: Environment):
  | Command
  | Program
{
  const found = nearestPackage(command.cwd)
  if (!found)
    throw launchRefusal('not-found', { ...command, why: `needs a package.json in ${command.cwd}`,
      instead: 'Name the app\'s main file, or its folder by --cwd' })
  const { folder, content: { scripts = {} } } = found
  // npm runs server.js where there is no script `start`.
  const text = Object.hasOwn(scripts, name)
    ? scripts[name]
    : name === 'start' && isFile(path.join(folder, 'server.js'))
    ? 'node server.js'
    : undefined
  const file = path.join(folder, 'package.json')
  if (typeof text !== 'string')
    throw launchRefusal('not-found', { ...command, why: `needs a script "${name}" in ${file}`,
      instead: `It has ${Object.keys(scripts).join(', ') || 'none'}` })
  const received = `${JSON.stringify(text)} (script "${name}" of ${file})`
  const words = splitWords(text)
  const around = [`pre${name}`, `post${name}`].filter((each) => typeof scripts[each] === 'string')
  const own: Command = { ...command, received, words: [], cwd: folder,
    env: { ...command.env, ...scriptVariables(found, name, command.env.PATH ?? inherited.PATH) } }
  const next = around.reduce(
    (noted, each) => withNote(noted, `"${each}" is not run; run it before each deploy if the app needs it`),
    own
  )
  return words === null
    ? byShell(next, [text, ...args.map((word) => shownWords([word]))].join(' '), inherited)
    : withAssignments({ ...next, words: [...words, ...args] })
}

/** What a package manager tells a script. */
function scriptVariables ({ folder, content }: Package, name: string, searchPath: string = ''): Record<string, string> {
  const texts = PACKAGE_TEXTS.filter((key) => typeof content[key] === 'string').map((
    key
  ) => [`npm_package_${key}`, content[key]])
  const settings = Object.entries(content.config ?? {}).filter(([, value]) =>
    ['string', 'number', 'boolean'].includes(typeof value)
  ).map(([key, value]) => [`npm_package_config_${key}`, String(value)])
  const commands = foldersUpwards(folder).map((each) => path.join(each, 'node_modules', '.bin')).filter((each) =>
    !searchPath.split(path.delimiter).includes(each)
  )
  return { npm_lifecycle_event: name, npm_package_json: path.join(folder, 'package.json'),
    ...Object.fromEntries([...texts, ...settings]),
    PATH: [...commands, searchPath].filter(Boolean).join(path.delimiter) }
}
