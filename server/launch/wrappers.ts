import { readFileSync } from 'node:fs'
import path from 'node:path'
import { parseEnv } from 'node:util'
import { parseNodeWords, splitOption } from './node-options.ts'
import { installedPackage, isFile } from './packages.ts'
import { launchRefusal } from './refusal.ts'
import { splitWords } from './shell-words.ts'
import { tsxLoader } from './typescript.ts'
import type { Command } from './command.ts'

/** What is known of a command that only prepares another one: it becomes that. */
type Wrapper = (command: Command, called: string) => Command

export const WATCH_NOTE = 'it would restart at changes; clusterdeck does with --watch'

export const WRAPPERS: Readonly<Record<string, Wrapper>> = Object.freeze({ exec: (command) => command,
  corepack: ({ words: [manager = '', ...words], ...command }) => ({ ...command,
    words: [manager.replace(/(?<=.)@.*$/, ''), ...words] }),
  'dumb-init': (command) =>
    withoutInit(command, { valued: ['-r', '--rewrite'], switches: ['-c', '--single-child', '-v', '--verbose'] }),
  tini: (command) => withoutInit(command, { valued: ['-p', '-e'], switches: ['-s', '-w', '-g', '-v', '-vv', '-vvv'] }),
  nohup: (command) => command, env: withAssignments, 'cross-env': withAssignments, 'cross-env-shell': withAssignments,
  dotenv: withEnvFiles, 'env-cmd': withEnvCommand, nodemon: withoutNodemon,
  'node-dev': (command) => withNote({ ...command, words: ['node', ...command.words] }, WATCH_NOTE), tsx: withTsx,
  'ts-node': withTsNode, 'ts-node-esm': (command) => withTsNode({ ...command, words: ['--esm', ...command.words] }),
  'ts-node-dev': (command) => withNote(withTsNode(command), WATCH_NOTE),
  tsnd: (command) => withNote(withTsNode(command), WATCH_NOTE) })

export function withNote (command: Command, note: string): Command {
  return command.notes.includes(note) ? command : { ...command, notes: [...command.notes, note] }
}

/** `NAME=value` before a command. */
export function withAssignments (command: Command): Command {
  const end = command.words.findIndex((word) => !/^[A-Za-z_]\w*=/.test(word))
  const given = command.words.slice(0, end === -1 ? undefined : end)
  const words = end === -1 ? [] : command.words.slice(end)
  if (words[0]?.startsWith('-')) throw wrongOption(command, words[0])
  return { ...command, words, env: { ...command.env, ...Object.fromEntries(given.map(splitAssignment)) } }
}

function splitAssignment (word: string) {
  const at = word.indexOf('=')
  return [word.slice(0, at), word.slice(at + 1)]
}

/** An init around a server has nothing to do around a worker. */
function withoutInit (command: Command, known: { valued: string[], switches: string[] }) {
  return withNote({ ...command, words: readOptions(command, known).rest },
    'its init is not run; clusterdeck reaps and passes on signals itself')
}

/** dotenv-cli: of several files the first one counts, under node the last. What is set already counts more. */
function withEnvFiles (command: Parameters<Wrapper>[0]): ReturnType<Wrapper> {
  const { found, rest } = readOptions(command, { valued: ['-e', '-v'],
    switches: ['--quiet', '--no-expand', '--debug'] })
  const files = (found['-e'] ?? ['.env']).filter((file) => isFile(path.resolve(command.cwd, file)))
  for (const file of found['--no-expand'] ? [] : files) {
    if (readFileSync(path.resolve(command.cwd, file), 'utf8').includes('$'))
      throw launchRefusal('expansion', { ...command, why: `has dotenv put values into others ("$" in ${file})` })
  }
  const env = { ...command.env, ...Object.fromEntries((found['-v'] ?? []).map(splitAssignment)) }
  return { ...command, words: rest, env,
    execArgv: [...command.execArgv, ...files.reverse().map((file) => `--env-file=${file}`)] }
}

/** env-cmd: what the file says counts more than what is set. */
function withEnvCommand (command: Parameters<Wrapper>[0]): ReturnType<Wrapper> {
  const { found, rest } = readOptions(command, { valued: ['-f', '--file'], switches: ['--silent', '--verbose'] })
  const [name = '.env'] = found['-f'] ?? found['--file'] ?? []
  const file = path.resolve(command.cwd, name)
  if (!isFile(file))
    throw launchRefusal('not-found', { ...command, why: `reads ${file}, which is not there`, instead: 'Create it' })
  const values = parseEnv(readFileSync(file, 'utf8').replace(/^\uFEFF/, '')) as Record<string, string>
  return { ...command, words: rest, env: { ...command.env, ...values } }
}

const NODEMON = {
  valued: ['-w', '--watch', '-e', '--ext', '-i', '--ignore', '-d', '--delay', '-x', '--exec', '--config', '-s',
    '--signal', '--polling-interval'],
  switches: ['-V', '--verbose', '-q', '--quiet', '-L', '--legacy-watch', '-I', '--no-stdin', '-C', '--on-change-only',
    '--no-colors', '--exitcrash', '--spawn']
}

function withoutNodemon (command: Parameters<Wrapper>[0]): ReturnType<Wrapper> {
  const { found, rest, others } = readOptions(command, { ...NODEMON, passes: true })
  const [exec] = found['-x'] ?? found['--exec'] ?? []
  const file = rest.find((word) => !word.startsWith('-'))
  if (exec === undefined && file === undefined)
    throw launchRefusal('no-file', { ...command, instead: 'Start the file itself, with --watch' })
  const runner = exec === undefined
    ? [file?.endsWith('.ts') && installedPackage('ts-node', command.cwd) ? 'ts-node' : 'node', ...others]
    : wordsOf(command, exec)
  return withNote({ ...command, words: [...runner, ...rest] }, WATCH_NOTE)
}

function wordsOf (command: Command, text: string) {
  const words = splitWords(text)
  if (words === null) throw launchRefusal('expansion', command)
  return words
}

/** It would fork a Node with its loader. */
function withTsx (command: Parameters<Wrapper>[0]): ReturnType<Wrapper> {
  const watches = command.words[0] === 'watch'
  const loader = tsxLoader(command.cwd)
  if (loader === null)
    throw launchRefusal('not-installed', { ...command, why: 'needs tsx, which is not installed there' })
  const { execArgv, rest, refused } = parseNodeWords(command.words.slice(watches ? 1 : 0),
    new Set(['--tsconfig', '--include', '--exclude', '--ignore']))
  if (refused) throw wrongOption(command, refused)
  const env = { ...command.env }
  const options = []
  for (let at = 0; at < execArgv.length; at++) {
    const [name, inner] = splitOption(execArgv[at])
    if (name === '--tsconfig') env.TSX_TSCONFIG_PATH = inner ?? execArgv[++at]
    else if (['--include', '--exclude', '--ignore'].includes(name)) at += inner === undefined ? 1 : 0
    else if (name !== '--clear-screen' && name !== '--no-cache') options.push(execArgv[at])
  }
  const next = { ...command, env, words: ['node', '--import', loader, ...options, ...rest] }
  return watches ? withNote(next, WATCH_NOTE) : next
}

const TS_NODE = {
  valued: ['-P', '--project', '-O', '--compiler-options', '-r', '--require', '--ignore-watch', '--watch'],
  switches: ['-T', '--transpile-only', '--transpileOnly', '--files', '--esm', '--respawn', '--clear', '--quiet',
    '--notify', '--exit-child', '--poll', '--pretty', '--cls', '--rs']
}
const TS_NODE_ENV = Object.freeze({ '-P': 'TS_NODE_PROJECT', '--project': 'TS_NODE_PROJECT',
  '-O': 'TS_NODE_COMPILER_OPTIONS', '--compiler-options': 'TS_NODE_COMPILER_OPTIONS' })

function withTsNode (command: Command): Command {
  if (!installedPackage('ts-node', command.cwd))
    throw launchRefusal('not-installed', { ...command, why: 'needs ts-node, which is not installed there' })
  const { found, rest, others } = readOptions(command, { ...TS_NODE, passes: true })
  const isQuick = ['-T', '--transpile-only', '--transpileOnly'].some((name) => found[name])
  const register = found['--esm']
    ? ['--loader', 'ts-node/esm']
    : ['-r', isQuick ? 'ts-node/register/transpile-only' : 'ts-node/register']
  const required = [...found['-r'] ?? [], ...found['--require'] ?? []].flatMap((name) => ['-r', name])
  const wrong = others.find((word) => !word.startsWith('--inspect'))
  if (wrong) throw wrongOption(command, wrong)
  const env: Record<string, string> = { ...command.env, ...(found['--files'] && { TS_NODE_FILES: 'true' }) }
  for (const [name, variable] of Object.entries(TS_NODE_ENV)) if (found[name]) env[variable] = found[name][0]
  return { ...command, env, words: ['node', ...others, ...register, ...required, ...rest] }
}

/** `passes`: others are kept apart, not refused */
function readOptions (command: Command,
  { valued, switches, passes = false }: { valued: string[], switches: string[], passes?: boolean }
): { found: Record<string, string[]>, others: string[], rest: string[] } {
  const found: Record<string, string[]> = {}
  const others = []
  const { words } = command
  for (let at = 0; at < words.length; at++) {
    const [name, inner] = splitOption(words[at])
    if (words[at] === '--') return { found, others, rest: words.slice(at + 1) }
    if (!words[at].startsWith('-')) return { found, others, rest: words.slice(at) }
    if (valued.includes(name)) (found[name] ??= []).push(inner ?? words[++at] ?? '')
    else if (switches.includes(name)) found[name] = []
    else if (passes) others.push(words[at])
    else throw wrongOption(command, name)
  }
  return { found, others, rest: [] }
}

export function wrongOption (command: Command, option: string) {
  return launchRefusal('option', { ...command, why: `has "${option}", which has no meaning here` })
}
