import { splitOption } from './node-options.ts'

/**
 * What a package manager is asked for: a script of package.json, or a command of an installed package; `either`: the
 * script, if there is one.
 */
export type Errand = {
  kind: 'script' | 'command' | 'either',
  name: string,
  args: string[],
  /** another one than the working folder */
  folder: string | null,
  workspace: string | null
}
/** `refused`: a word that says something else; `isOnlyItsOwn`: only the package manager itself can do that. */
type Parsed = Errand | { refused: string, isOnlyItsOwn?: boolean }

/** One package manager: the options before its errand, with and without a value, and the words that begin one. */
type Manager = {
  /** options that name a folder */
  folder: readonly string[],
  workspace: readonly string[],
  /** options whose value is of no interest */
  valued?: readonly string[],
  /** options with which it runs more than one script, or a text as a shell would */
  refused?: readonly string[],
  verbs: Readonly<Record<string, Errand['kind'] | 'start' | 'workspace' | 'node'>>,
  /** another word is the name of a script or a command */
  runsAnything: boolean,
  /** what it does with `--` behind a script's name; npm: keeps back what looks like an option before it */
  separator: 'npm' | 'drop' | 'keep'
}

const NPX_VALUED = ['-p', '--package', '--loglevel', '--userconfig', '--registry', '--cache']

const MANAGERS: Readonly<Record<string, Manager>> = Object.freeze({
  npm: { folder: ['--prefix', '-C'], workspace: ['-w', '--workspace'], valued: NPX_VALUED,
    refused: ['--workspaces', '-ws', '-c', '--call'],
    verbs: { start: 'start', run: 'script', 'run-script': 'script', rum: 'script', urn: 'script', exec: 'command',
      x: 'command' }, runsAnything: false, separator: 'npm' },
  yarn: { folder: ['--cwd'], workspace: [],
    verbs: { start: 'start', run: 'either', workspace: 'workspace', node: 'node', exec: 'command', dlx: 'command' },
    runsAnything: true, separator: 'drop' },
  pnpm: { folder: ['-C', '--dir', '--prefix'], workspace: ['-F', '--filter'], valued: ['--loglevel', '--reporter'],
    refused: ['-r', '--recursive', '--parallel', '-c', '--shell-mode'],
    verbs: { start: 'start', run: 'script', 'run-script': 'script', exec: 'command', dlx: 'command', node: 'node' },
    runsAnything: true, separator: 'keep' },
  npx: { folder: ['--prefix'], workspace: ['-w', '--workspace'], valued: NPX_VALUED, refused: ['-c', '--call'],
    verbs: {}, runsAnything: true, separator: 'keep' }
})

/** Other names of the same. */
const ALIASES: Readonly<Record<string, string>> = Object.freeze({ yarnpkg: 'yarn', pnpx: 'npx' })

/** Words that only manage packages. */
const MANAGES = new Set(['install', 'i', 'ci', 'add', 'remove', 'update', 'upgrade', 'test', 't', 'build', 'publish',
  'stop', 'restart', 'init', 'create'])

export function isPackageManager (name: string): boolean {
  return Object.hasOwn(MANAGERS, name) || Object.hasOwn(ALIASES, name)
}

/** `words`: behind it */
export function parseManagerWords (called: string, words: string[]): Parsed {
  const name = ALIASES[called] ?? called
  const manager = MANAGERS[name]
  const before = readOptions(words, manager)
  if ('refused' in before) return before
  const [verb, ...rest] = before.rest
  const place = { folder: before.folder, workspace: before.workspace }
  if (verb === undefined) return { refused: `${called} alone` }
  if (name === 'npx') return { kind: 'command', name: withoutVersion(verb), args: rest, ...place }
  const kind = Object.hasOwn(manager.verbs, verb) ? manager.verbs[verb] : undefined
  if (kind === undefined) {
    if (!manager.runsAnything || (MANAGES.has(verb) && name !== 'yarn')) return { refused: `${called} ${verb}` }
    return scriptErrand('either', verb, rest, place, manager)
  }
  if (kind === 'start') return scriptErrand('script', 'start', rest, place, manager)
  if (kind === 'node') return { kind: 'command', name: 'node', args: rest, ...place }
  if (kind === 'workspace')
    return rest.length > 1 ? { ...parseInner(called, rest.slice(1)), workspace: rest[0] } : { refused: words.join(' ') }
  const inner = readOptions(rest, manager)
  if ('refused' in inner) return inner
  const [what, ...args] = inner.rest
  const where = { folder: inner.folder ?? place.folder, workspace: inner.workspace ?? place.workspace }
  if (what === undefined) return { refused: `${called} ${verb}` }
  return kind === 'command'
    ? { kind, name: withoutVersion(what), args, ...where }
    : scriptErrand(kind, what, args, where, manager)
}

function parseInner (called: string, words: string[]) {
  return parseManagerWords(called, words)
}

function scriptErrand (kind: Errand['kind'], name: string, words: string[],
  place: { folder: string | null, workspace: string | null }, manager: Manager): Parsed
{
  if (manager.separator === 'npm') return npmScript(name, words, place, manager)
  return { kind, name, args: manager.separator === 'drop' && words[0] === '--' ? words.slice(1) : words, ...place }
}

/** npm takes options also behind the script's name; what is to reach the script stands behind `--`. */
function npmScript (name: string, words: string[], place: { folder: string | null, workspace: string | null },
  manager: Manager): Parsed
{
  const end = words.includes('--') ? words.indexOf('--') : words.length
  const given = []
  let where = place
  for (let rest = words.slice(0, end); rest.length > 0;) {
    const read = readOptions(rest, manager)
    if ('refused' in read) return read
    where = { folder: read.folder ?? where.folder, workspace: read.workspace ?? where.workspace }
    given.push(...read.rest.slice(0, 1))
    rest = read.rest.slice(1)
  }
  return { kind: 'script', name, args: [...given, ...words.slice(end + 1)], ...where }
}

/** Without one that the manager would take, and the app never see. */
const KNOWN_SWITCHES =
  /^(-s|-q|-y|-d|--silent|--quiet|--yes|--no|--no-install|--if-present|--offline|--prefer-offline|--foreground-scripts|--ignore-scripts|--production|--no-[a-z-]+|--stream|--bun)$/

function readOptions (words: string[], { folder: folders, workspace: workspaces, valued = [], refused = [] }: Manager):
  | { rest: string[], folder: string | null, workspace: string | null }
  | { refused: string, isOnlyItsOwn?: boolean }
{
  const found: { folder: string | null, workspace: string | null } = { folder: null, workspace: null }
  for (let at = 0; at < words.length; at++) {
    const word = words[at]
    if (word === '--') return { ...found, rest: words.slice(at + 1) }
    if (!word.startsWith('-')) return { ...found, rest: words.slice(at) }
    const [name, inner] = splitOption(word)
    if (refused.includes(name)) return { refused: name, isOnlyItsOwn: true }
    const isOf = { folder: folders.includes(name), workspace: workspaces.includes(name) }
    if (isOf.folder || isOf.workspace || valued.includes(name)) {
      const value = inner ?? words[++at]
      if (isOf.folder) found.folder = value ?? null
      if (isOf.workspace) found.workspace = value ?? null
    } else if (!KNOWN_SWITCHES.test(name)) {
      return { refused: name }
    }
  }
  return { ...found, rest: [] }
}

/** `name`: `tool@1.2`, `@scope/tool@latest` */
function withoutVersion (name: string) {
  return name.replace(/(?<=.)@[^/@]*$/, '')
}
