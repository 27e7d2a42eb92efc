import { execFile } from 'node:child_process'
import { closeSync, openSync, readFileSync, readSync, realpathSync, statSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { attempt, DeckError, errorCode } from '../errors.ts'
import { installedNodes, isProgram, TYPED_VARIABLE, typedNode } from '../run-on.js'
import { withoutOwnVariables } from './own-variables.ts'
import { whyProgramDistrusted } from './trust.ts'
import type { AppNode } from '../launch/launch.ts'

export { isProgram }

type Environment = Record<string, string | undefined>
type Installed = { file: string, version: string }
/** The numbers that a version has to begin with; `lts`: it is of any line with long-term support. */
type Wanted = { numbers: string[], lts?: boolean }

/** The first minor version of each line that has what the worker's side takes. */
const WORKERS_SINCE = Object.freeze({ 20: 19, 22: 12, 23: 0 })
const LTS_NAMES = Object.freeze(['fermium', 'gallium', 'hydrogen', 'iron', 'jod', 'krypton'])
const FIRST_LTS_NAME_OF = 14
const MAX_FILE_BYTES = 1024 * 1024
const PATIENCE_MS = 5000
const ASK = 'process.stdout.write(process.execPath + "\\n" + process.version)'

/** What each file has said of itself, as long as it is the same file. */
const known: Map<string, { stamp: string, node: Installed }> = new Map()

/**
 * Finds the Node that an app runs on: the one of the option, else the one that its folder asks for, if it is installed,
 * else the one with which the command was typed, else that of this process.
 * @throws {DeckError} invalid-config
 */
export async function chooseNode ({ wanted, source = 'node', folder, env }: {
  /** the option `node`: an absolute path or a version */
  wanted?: string | number,
  /** where that was said */
  source?: string,
  /** of the code */
  folder: string,
  /** of the shell that the app is from */
  env: Environment
}): Promise<AppNode> {
  const place = { cwd: folder, env }
  if (wanted !== undefined) return { ...await nodeOfOption(String(wanted), source, place), by: 'option' }
  const asked = versionOfFolder(folder)
  const found = asked?.wanted ? await findVersion(asked.wanted, place) : null
  if (asked && found) return { ...found, by: asked.by }
  const node = await nodeOfCommand(place)
  if (!asked) return node
  return { ...node,
    instead: `${asked.file} asks for Node ${asked.text}, which ${
      asked.wanted ? 'is not installed for this user' : 'is not understood here'
    }; the app runs on Node ${node.version}` }
}

/** Tells whether the app has asked for it */
export function isAskedFor ({ by }: Pick<AppNode, 'by'>): boolean {
  return by !== 'command' && by !== 'clusterdeck'
}

/**
 * @returns whether such a Node can run no worker as node:cluster has them, and is run as a program of another language
 * is
 */
export function isOldNode (version: string): boolean {
  return !isFrom(version, WORKERS_SINCE)
}

/** Tells whether such a Node runs TypeScript unasked */
export function stripsTypes (version: string): boolean {
  return version === process.versions.node ? Boolean(process.features.typescript) : isFrom(version, { 22: 18, 23: 6 })
}

/**
 * Puts the folder of a Node before the others, with the npm in it; not where `node` means it already, as others have
 * programs of their own there. `node`: undefined: that of this process.
 */
export function pathWithNode (node: AppNode | undefined, searchPath: string = ''): string {
  const file = node?.file ?? process.execPath
  const found = nodeInPath(searchPath)
  if (found !== null && realpathSync(found) === attempt(() => realpathSync(file))) return searchPath
  const parts = [path.dirname(file), searchPath].filter((part) => part !== '')
  // The PATH of a service manager is often short.
  return (found === null && !(node && isAskedFor(node)) ? parts.reverse() : parts).join(path.delimiter)
}

/** @throws {DeckError} invalid-config */
async function nodeOfOption (option: string, source: string,
  place: { cwd: string, env: Environment }): Promise<Installed>
{
  if (path.isAbsolute(option)) {
    return await identify(option, place).catch((error) => {
      throw new DeckError('invalid-config',
        `${source}: expected a program of Node.js, received ${JSON.stringify(option)} (${
          errorCode(error) ?? 'which does not say that it is one'
        })`, { cause: error })
    })
  }
  const found = await findVersion(wantedBy(option) as Wanted, place)
  if (found) return found
  const others = [...new Set(installedNodes(place.env).map(({ version }) => version))]
  throw new DeckError('invalid-config',
    `${source}: expected a version of Node that nvm, fnm, volta, mise or asdf has installed for this user, or that of node in PATH, received ${
      JSON.stringify(option)
    }${others.length > 0 ? `; installed are ${others.slice(0, 10).join(', ')}` : ''}`)
}

async function findVersion (wanted: Wanted, place: { cwd: string, env: Environment }): Promise<Installed | null> {
  const installed = installedNodes(place.env).find(({ version }) => fits(version, wanted))
  if (installed) return { file: realpathSync(installed.file), version: installed.version }
  const inPath = nodeInPath(place.env.PATH ?? '')
  for (const file of [inPath !== null && isTrusted(inPath) ? inPath : null, typedNode(place.env)]) {
    const found = file === null ? null : await identify(file, place).catch(() => null)
    if (found && fits(found.version, wanted) && isTrusted(found.file)) return found
  }
  return null
}

async function nodeOfCommand (place: { cwd: string, env: Environment }): Promise<AppNode> {
  const { [TYPED_VARIABLE]: typed } = place.env
  const found = typed ? await identify(typed, place).catch(() => null) : null
  return found
    ? { ...found, by: 'command' }
    : { file: process.execPath, version: process.versions.node, by: typed ? 'clusterdeck' : 'command' }
}

/**
 * Asks a Node for its version, and what managers of versions put into its place for its own path.
 * @throws where it is none
 */
async function identify (file: string, { cwd, env }: { cwd: string, env: Environment }): Promise<Installed> {
  const real = realpathSync(file)
  if (real === process.execPath) return { file: real, version: process.versions.node }
  const { ino, size, mtimeMs } = statSync(real)
  const isShim = !path.basename(real).startsWith('node') || beginsAsScript(real)
  const [key, stamp] = [isShim ? `${file} in ${cwd}` : file, `${real} ${ino} ${size} ${mtimeMs}`]
  const before = known.get(key)
  if (before?.stamp === stamp && isProgram(before.node.file)) return before.node
  const variables = { ...withoutOwnVariables(env), NODE_OPTIONS: undefined, NODE_CHANNEL_FD: undefined }
  const { stdout } = await promisify(execFile)(file, isShim ? ['-e', ASK] : ['--version'], {
    cwd: statSync(cwd, { throwIfNoEntry: false })?.isDirectory() ? cwd : '/',
    env: variables,
    timeout: PATIENCE_MS,
    killSignal: 'SIGKILL'
  })
  const [own, version = own] = stdout.trim().split('\n')
  const [, numbers] = /^v(\d+\.\d+\.\d+)/.exec(version) ?? []
  const node = { file: isShim ? own : real, version: numbers }
  if (numbers === undefined || !isProgram(node.file)) throw new Error('it does not say which version it is')
  known.set(key, { stamp, node })
  return node
}

function beginsAsScript (file: string) {
  const first = Buffer.alloc(2)
  const fd = openSync(file, 'r')
  try {
    readSync(fd, first)
    return first.toString() === '#!'
  } finally {
    closeSync(fd)
  }
}

/** What the nearest folder asks for that asks for any, up to the one of the repository. */
function versionOfFolder (
  start: string
): { by: AppNode['by'], file: string, text: string, wanted: Wanted | null } | null {
  for (let folder = start;; folder = path.dirname(folder)) {
    for (const [name, by, read] of VERSION_FILES) {
      const file = path.join(folder, name)
      const text = read(textOf(file))
      if (text) return { by, file, text: JSON.stringify(text.slice(0, 40)).slice(1, -1), wanted: wantedBy(text) }
    }
    if (statSync(path.join(folder, '.git'), { throwIfNoEntry: false }) || folder === path.dirname(folder)) return null
  }
}

const VERSION_FILES: readonly [name: string, by: AppNode['by'], read: (text: string) => string | undefined][] = Object
  .freeze([['.nvmrc', '.nvmrc', firstLine], ['.node-version', '.node-version', firstLine], ['package.json', 'volta',
    (text) => text.includes('"volta"') ? voltaOf(text) : undefined]])

function firstLine (text: string) {
  return text.split('\n').map((line) => line.replace(/#.*/, '').trim()).find((line) => line !== '')
}

/** `text`: of a package.json */
function voltaOf (text: string): string | undefined {
  // SyntaxError: npm says so.
  return attempt(() => {
    const { node } = Object(JSON.parse(text).volta)
    return typeof node === 'string' ? node : undefined
  }) ?? undefined
}

/** @returns '': there is none, or somebody else could have put it there */
function textOf (file: string): string {
  return attempt(() => {
    const { size, uid, mode } = statSync(file)
    const isOwn = [0, process.geteuid?.()].includes(uid) && (mode & 0o002) === 0
    return isOwn && size <= MAX_FILE_BYTES ? readFileSync(file, 'utf8') : ''
  }, '')
}

/** Null: nobody here knows what it means */
function wantedBy (text: string): Wanted | null {
  const numbers = /^v?(\d+)(?:\.(\d+))?(?:\.(\d+))?(?:\.[x*])*$/.exec(text)?.slice(1).filter((each) =>
    each !== undefined
  )
  if (numbers) return { numbers }
  if (/^(node|stable|latest|current)$/.test(text)) return { numbers: [] }
  const [, name] = /^lts(?:\/|-)?(.*)$/.exec(text.toLowerCase()) ?? []
  if (name === '' || name === '*') return { numbers: [], lts: true }
  const at = LTS_NAMES.indexOf(name)
  return at === -1 ? null : { numbers: [String(FIRST_LTS_NAME_OF + 2 * at)] }
}

function fits (version: string, { numbers, lts = false }: Wanted) {
  const parts = version.split('.')
  return numbers.every((each, at) => parts[at] === each) && !(lts && Number.parseInt(version, 10) % 2 === 1)
}

/** @returns what `node` means */
function nodeInPath (searchPath: string): string | null {
  return searchPath.split(path.delimiter).filter((folder) => path.isAbsolute(folder)).map((folder) =>
    path.join(folder, 'node')
  ).find(isProgram) ?? null
}

function isTrusted (file: string) {
  return attempt(() => whyProgramDistrusted(file) === null, false)
}

/** `since`: the first minor version of each line; the lines after the last one have it */
function isFrom (version: string, since: Record<number, number>): boolean {
  const [major, minor] = version.split('.').map(Number)
  return major > Math.max(...Object.keys(since).map(Number)) || minor >= (since[major] ?? Infinity)
}
