import { readFileSync } from 'node:fs'
import path from 'node:path'
import { parseEnv } from 'node:util'
import { DeckError } from '../errors.js'
import { parseNodeWords } from './node-options.js'
import { isPackageManager, parseManagerWords } from './package-manager.js'
import { fileOf, findCommand, installedPackage, isExecutable, isFile, mainOf, nearestPackage, nodeFileOf, readPackage, foldersUpwards } from './packages.js'
import { launchRefusal } from './refusal.js'
import { OF_THE_SHELL, shownWords, splitWords } from './shell-words.js'
import { SEES_NO_NODE, SUBSTITUTES } from './substitutes.js'
import { withNote, WATCH_NOTE, withAssignments, WRAPPERS, wrongOption } from './wrappers.js'

/**
 * A command on its way to the program that it runs.
 * @typedef {object} Command
 * @property {string[]} words
 * @property {string} cwd
 * @property {Record<string, string>} env  over what is inherited
 * @property {string[]} execArgv
 * @property {string[]} notes  what is not done that it would have done
 * @property {string} source  where the user has said it
 * @property {string} received  what is being read, in the user's words
 */
/** @typedef {Omit<Command, 'words' | 'source' | 'received'> & { runtime: import('./launch.js').Runtime, entry: string, args: string[] }} Program */
/** @typedef {Readonly<Record<string, string | undefined>>} Environment of whoever asks */

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
 * @param {Command | Program} command @param {Environment} inherited
 * @returns {Program}
 * @throws {import('../errors.js').DeckError} invalid-config
 */
export function followCommand (command, inherited) {
  /** @type {Command | Program} */
  let at = command
  for (let steps = 0; !('entry' in at); steps++) {
    if (steps === MAX_STEPS) throw launchRefusal('circle', at)
    at = unwrapStep(at, inherited)
  }
  return at
}

/** @param {Command} command @param {Environment} inherited @returns {Command | Program} */
function unwrapStep (command, inherited) {
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

/** @param {Command} command @param {string} name @param {Environment} inherited @returns {Command | Program} */
function unwrap (command, name, inherited) {
  try {
    return WRAPPERS[name]({ ...command, words: command.words.slice(1) }, name)
  } catch (error) {
    // It is asked for something that only it can do itself.
    if (!(error instanceof DeckError) || !ONLY_ITSELF.has(String(error.details?.reason)) || !isFound(command, inherited)) throw error
    return asItIs(command, SEES_NO_NODE, inherited)
  }
}

/** @param {Command} command @param {import('./substitutes.js').Substitute} substitute @param {Environment} inherited @returns {Command | Program} */
function withSubstitute (command, substitute, inherited) {
  if ('reason' in substitute) throw launchRefusal(substitute.reason, { ...command, why: substitute.why, instead: substitute.instead })
  if (!('words' in substitute)) return asItIs(command, substitute.note, inherited)
  const { words, note } = substitute
  return note ? withNote({ ...command, words }, note) : { ...command, words }
}

/** @param {Command} command @param {string} note @param {Environment} inherited @returns {Program} also where Node would run it */
function asItIs (command, note, inherited) {
  const { words: [word = '', ...args] } = command
  return otherProgram(withNote(command, note), installedCommand(command, word, inherited), args, inherited)
}

/** @param {Command} command @param {Environment} inherited */
function isFound ({ words: [word], cwd, env }, inherited) {
  return findCommand(word, cwd, env.PATH ?? inherited.PATH) !== undefined
}

/** @param {Command} command  its first word is `node` @param {Environment} inherited @returns {Command | Program} */
function runNode (command, inherited) {
  const { execArgv, rest: [file, ...args], watches, runs, refused } = parseNodeWords(command.words.slice(1))
  if (refused) return asItIs(command, SEES_NO_NODE, inherited)
  const next = { ...(watches ? withNote(command, WATCH_NOTE) : command), execArgv: [...command.execArgv, ...execArgv] }
  if (runs !== null) return runScript(next, { name: runs, args: file === undefined ? [] : [file, ...args] }, inherited)
  if (file === undefined) throw launchRefusal('no-file', command)
  const wanted = path.resolve(command.cwd, file)
  const entry = fileOf(wanted) ?? mainOf(wanted) ?? fileOf(path.join(wanted, 'index'))
  if (!entry) throw launchRefusal('not-found', { ...command, why: `runs ${wanted}, which is not there`, instead: 'Build it, or name the file' })
  return toProgram(next, entry, args)
}

/** @param {Command} command @param {string} entry @param {string[]} args @returns {Program} */
function toProgram ({ cwd, env, execArgv, notes }, entry, args) {
  return { runtime: 'node', entry, args, execArgv, env, cwd, notes }
}

/** @param {Command} command @param {string} entry @param {string[]} args @param {Environment} inherited @returns {Program} */
export function otherProgram (command, entry, args, inherited) {
  if (!isExecutable(entry)) throw launchRefusal('not-executable', { ...command, why: `runs ${entry}, which may not be executed` })
  const { cwd, env, notes } = command
  return { runtime: 'other', entry, args, execArgv: [], env: { ...variablesFor(command, inherited), ...env }, cwd, notes }
}

/** The variables in files that Node would have read. What is set already counts more, and of two files the last. @param {Command} command @param {Environment} inherited @returns {Record<string, string>} */
function variablesFor ({ execArgv, cwd }, inherited) {
  const files = execArgv.flatMap((option) => option.startsWith(ENV_FILE) ? [path.resolve(cwd, option.slice(ENV_FILE.length))] : [])
  const values = Object.assign({}, ...files.map((file) => parseEnv(readFileSync(file, 'utf8').replace(/^\uFEFF/, ''))))
  return Object.fromEntries(Object.entries(values).filter(([name]) => inherited[name] === undefined))
}

/** @param {Command} command @param {string} text @param {Environment} inherited @returns {Program} a shell that runs it */
export function byShell (command, text, inherited) {
  return otherProgram(STARTS_NODE.test(text) ? withNote(command, SEES_NO_NODE) : command, '/bin/sh', ['-c', text], inherited)
}

/** @param {string} name @param {string} cwd @param {Environment} inherited @returns {boolean} whether it means anything as a command */
export function isInstalled (name, cwd, inherited) {
  const isNamed = NODE_NAMES.has(name) || OF_THE_SHELL.has(name) || isPackageManager(name) || Object.hasOwn(WRAPPERS, name) || Object.hasOwn(SUBSTITUTES, name)
  return isNamed || findCommand(name, cwd, inherited.PATH) !== undefined
}

/** @param {Command} command @param {string} word @param {Environment} inherited @returns {Program} */
function runFile (command, word, inherited) {
  if (OF_THE_SHELL.has(word)) return byShell(command, shownWords([word, ...command.words]), inherited)
  const file = installedCommand(command, word, inherited)
  const found = nodeFileOf(file)
  if (!found) return otherProgram(command, file, command.words, inherited)
  return toProgram({ ...command, env: { ...command.env, ...found.env }, execArgv: [...command.execArgv, ...found.execArgv] }, found.entry, command.words)
}

/** @param {Command} command @param {string} word @param {Environment} inherited @returns {string} its file @throws {DeckError} invalid-config */
function installedCommand (command, word, inherited) {
  const { cwd, env } = command
  const file = findCommand(word, cwd, env.PATH ?? inherited.PATH)
  if (file) return file
  const isPacked = hasPlugAndPlay(cwd)
  throw launchRefusal('not-installed', { ...command, why: `runs ${word}, which is not installed in ${cwd}${isPacked ? ' by files (Yarn Plug\'n\'Play)' : ''}`, ...(isPacked && { instead: 'Set "nodeLinker: node-modules" in .yarnrc.yml' }) })
}

/** @param {string} folder */
function hasPlugAndPlay (folder) {
  return foldersUpwards(folder).some((each) => isFile(path.join(each, '.pnp.cjs')))
}

/** @param {Command} command  its first word is the manager's @param {string} manager @param {Environment} inherited @returns {Command | Program} */
function runManager (command, manager, inherited) {
  const errand = parseManagerWords(manager, command.words.slice(1))
  if ('refused' in errand) {
    if (errand.isOnlyItsOwn) return asItIs(command, SEES_NO_NODE, inherited)
    if (errand.refused.startsWith('-')) throw wrongOption(command, errand.refused)
    throw launchRefusal('no-file', { ...command, why: `starts no program ("${errand.refused}")`, instead: 'Name a script of package.json: npm run <script>' })
  }
  const cwd = folderOf(command, errand)
  const next = { ...command, cwd }
  const { kind, name, args } = errand
  if (kind === 'script' || (kind === 'either' && hasScript(cwd, name))) return runScript(next, { name, args }, inherited)
  return { ...next, words: [commandOfPackage(name, cwd), ...args] }
}

/** A package may have a command of another name. @param {string} name @param {string} cwd @returns {string} */
function commandOfPackage (name, cwd) {
  if (!name.startsWith('@')) return name
  const installed = installedPackage(name, cwd)
  const bin = installed && readPackage(installed)?.content.bin
  return bin && typeof bin === 'object' ? Object.keys(bin)[0] : name.replace(/^.*\//, '')
}

/** @param {Command} command @param {import('./package-manager.js').Errand} errand */
function folderOf (command, { folder, workspace }) {
  const cwd = path.resolve(command.cwd, folder ?? '.')
  if (workspace === null) return cwd
  const places = [path.resolve(cwd, workspace), ...foldersUpwards(cwd).map((each) => path.join(each, 'node_modules', workspace))]
  const found = places.find((place) => isFile(path.join(place, 'package.json')))
  if (!found) throw launchRefusal('not-found', { ...command, why: `names the workspace ${workspace}, which is neither a folder nor linked into node_modules`, instead: 'Name its folder by --cwd' })
  return found
}

/** @param {string} folder @param {string} name */
function hasScript (folder, name) {
  return typeof nearestPackage(folder)?.content.scripts?.[name] === 'string'
}

/**
 * The command that a script of package.json is, in the folder of that.
 * @param {Command} command @param {{ name: string, args: string[] }} script @param {Environment} inherited
 * @returns {Command | Program}
 */
export function runScript (command, { name, args }, inherited) {
  const found = nearestPackage(command.cwd)
  if (!found) throw launchRefusal('not-found', { ...command, why: `needs a package.json in ${command.cwd}`, instead: 'Name the app\'s main file, or its folder by --cwd' })
  const { folder, content: { scripts = {} } } = found
  // npm runs server.js where there is no script `start`.
  const text = Object.hasOwn(scripts, name) ? scripts[name] : name === 'start' && isFile(path.join(folder, 'server.js')) ? 'node server.js' : undefined
  const file = path.join(folder, 'package.json')
  if (typeof text !== 'string') throw launchRefusal('not-found', { ...command, why: `needs a script "${name}" in ${file}`, instead: `It has ${Object.keys(scripts).join(', ') || 'none'}` })
  const received = `${JSON.stringify(text)} (script "${name}" of ${file})`
  const words = splitWords(text)
  const around = [`pre${name}`, `post${name}`].filter((each) => typeof scripts[each] === 'string')
  /** @type {Command} */
  const own = { ...command, received, words: [], cwd: folder, env: { ...command.env, ...scriptVariables(found, name, command.env.PATH ?? inherited.PATH) } }
  const next = around.reduce((noted, each) => withNote(noted, `"${each}" is not run; run it before each deploy if the app needs it`), own)
  return words === null ? byShell(next, [text, ...args.map((word) => shownWords([word]))].join(' '), inherited) : withAssignments({ ...next, words: [...words, ...args] })
}

/**
 * What a package manager tells a script.
 * @param {import('./packages.js').Package} found @param {string} name @param {string} [searchPath]
 * @returns {Record<string, string>}
 */
function scriptVariables ({ folder, content }, name, searchPath = '') {
  const texts = PACKAGE_TEXTS.filter((key) => typeof content[key] === 'string').map((key) => [`npm_package_${key}`, content[key]])
  const settings = Object.entries(content.config ?? {}).filter(([, value]) => ['string', 'number', 'boolean'].includes(typeof value)).map(([key, value]) => [`npm_package_config_${key}`, String(value)])
  const commands = foldersUpwards(folder).map((each) => path.join(each, 'node_modules', '.bin')).filter((each) => !searchPath.split(path.delimiter).includes(each))
  return {
    npm_lifecycle_event: name,
    npm_package_json: path.join(folder, 'package.json'),
    ...Object.fromEntries([...texts, ...settings]),
    PATH: [...commands, searchPath].filter(Boolean).join(path.delimiter)
  }
}
