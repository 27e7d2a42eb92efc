import { isOpen } from './host.ts'
import type { Entry } from './logs.ts'
import type { Status } from '../api/cluster.ts'

/**
 * What `clusterdeck top` shows, and what its keys do. It is pure: what has come is handed to it, and what is to be done
 * it hands back.
 *
 * An app with its figures, of a host or as a deck of its own.
 */
export type App = {
  /** no other app has it */
  key: string,
  name: string,
  /** what tells of it */
  source: string,
  dataDir: string | null,
  state: 'waiting' | 'starting' | 'running' | 'stopping' | 'stopped' | 'failed',
  /** why it waits or has failed */
  reason: string | null,
  health: { tone: string, text: string, hint: string } | null,
  workers: { ready: number, desired: number } | null,
  /** percent of a core */
  cpu: number | null,
  memoryBytes: number | null,
  requestsPerSecond: number | null,
  p99Ms: number | null,
  restarts: number | null,
  release: string | null,
  addresses: string[]
}
type Filtered = 'apps' | 'logs'
export type Action = 'restart' | 'deploy' | 'stop' | 'start'
type Prompt = { kind: 'confirm', action: Action, app: App } | { kind: 'filter', of: Filtered, before: string }
export type State = {
  /** of the terminal */
  size: { rows: number, columns: number },
  /** of all sources */
  apps: App[],
  /** what is wrong with a source, by its name */
  problems: Readonly<Record<string, string>>,
  /** the key of an app */
  chosen: string | null,
  /** the data folder of the app that is to be chosen once it is there */
  wanted: string | null,
  /** of the chosen app */
  status: Status | null,
  /** of the chosen app, oldest first */
  lines: Entry[],
  /** how many lines are below the ones that are shown; 0: new ones are shown as they come */
  scroll: number,
  /** how many columns are left of the lines */
  shift: number,
  order: keyof typeof ORDERS,
  filters: Readonly<Record<Filtered, string>>,
  prompt: Prompt | null,
  isHelp: boolean,
  hasWorkers: boolean,
  message: { text: string, tone: string } | null
}
/** `text`: what has been typed, where that is text */
type KeyInput = { type: 'key', name: string, text: string }
export type Input = KeyInput | { type: 'pasted', text: string } | { type: 'resized', rows: number, columns: number } | {
  type: 'read',
  source: string,
  apps: App[]
} | { type: 'lost', source: string, problem: string } | { type: 'gone', source: string } | { type: 'status',
  key: string, status: Status | null } | { type: 'lines', key: string, entries: Entry[] } | { type: 'said',
  text: string, tone?: string }
export type Command = { type: 'quit' | 'suspend' | 'redraw' } | { type: 'follow', app: App | null } | { type: Action,
  app: App }
type Next = { state: State, commands: Command[] }

/** More lines are not kept. */
const MAX_LINES = 1000
const MAX_FILTER_CHARS = 60
const SHIFT_COLUMNS = 20

/** The sick ones come first. */
const TONES: readonly string[] = ['bad', 'warn', 'drain', 'info', 'ok', 'idle']

/** In which order apps are shown; those that are alike are by name. */
export const ORDERS: Readonly<Record<string, (app: App) => number>> = {
  health: (app) => TONES.indexOf(healthOf(app).tone),
  name: () => 0,
  cpu: ({ cpu }) => -(cpu ?? -1),
  memory: ({ memoryBytes }) => -(memoryBytes ?? -1),
  requests: ({ requestsPerSecond }) => -(requestsPerSecond ?? -1)
}

/** What is done only after a question. */
const ACTIONS: Readonly<Record<string, (state: State, app: App) => Action>> = { r: () => 'restart', d: () => 'deploy',
  s: (_, { state }) => state === 'stopped' || state === 'failed' ? 'start' : 'stop' }

const KEYS: Readonly<Record<string, (state: State) => Partial<State> | Command>> = { q: () => ({ type: 'quit' }),
  'ctrl+c': () => ({ type: 'quit' }), 'ctrl+z': () => ({ type: 'suspend' }), 'ctrl+l': () => ({ type: 'redraw' }),
  up: (state) => choose(state, -1), k: (state) => choose(state, -1), down: (state) => choose(state, 1),
  j: (state) => choose(state, 1), home: (state) => choose(state, -Infinity), g: (state) => choose(state, -Infinity),
  end: (state) => choose(state, Infinity), G: (state) => choose(state, Infinity),
  pageup: (state) => scrollBy(state, pageOf(state)), b: (state) => scrollBy(state, pageOf(state)),
  pagedown: (state) => scrollBy(state, -pageOf(state)), space: (state) => scrollBy(state, -pageOf(state)),
  e: () => ({ scroll: 0, shift: 0 }), left: ({ shift }) => ({ shift: Math.max(0, shift - SHIFT_COLUMNS) }),
  right: ({ shift }) => ({ shift: shift + SHIFT_COLUMNS }),
  o: ({ order }) => ({ order: nextOf(Object.keys(ORDERS), order) }),
  w: ({ hasWorkers }) => ({ hasWorkers: !hasWorkers }), return: ({ hasWorkers }) => ({ hasWorkers: !hasWorkers }),
  '/': ({ filters }) => ({ prompt: { kind: 'filter', of: 'apps', before: filters.apps } }),
  f: ({ filters }) => ({ prompt: { kind: 'filter', of: 'logs', before: filters.logs } }),
  escape: () => ({ filters: { apps: '', logs: '' }, scroll: 0 }), '?': () => ({ isHelp: true }),
  h: () => ({ isHelp: true }) }

export function createState (fields?: Partial<State>): State {
  return { size: { rows: 24, columns: 80 }, apps: [], problems: {}, chosen: null, wanted: null, status: null, lines: [],
    scroll: 0, shift: 0, order: 'health', filters: { apps: '', logs: '' }, prompt: null, isHelp: false,
    hasWorkers: true, message: null, ...fields }
}

export function update (state: State, input: Input): Next {
  const next = effectOf(input.type, state, input)
  return withChoice(state, next)
}

function effectOf<Type extends Input['type']> (type: Type, state: State, input: Extract<Input, { type: Type }>): Next {
  return EFFECTS[type](state, input)
}

const EFFECTS: { readonly [Type in Input['type']]: (state: State, input: Extract<Input, { type: Type }>) => Next } = {
  key: pressKey,
  pasted: (state, { text }) => stay(state.prompt?.kind === 'filter' ? typeText(state, text) : state),
  resized: (state, { rows, columns }) => stay({ ...state, size: { rows, columns } }),
  read: (state, { source, apps }) =>
    stay({ ...state, apps: [...state.apps.filter((app) => app.source !== source), ...apps],
      problems: without(state.problems, source) }),
  lost: (state, { source, problem }) => stay({ ...state, problems: { ...state.problems, [source]: problem } }),
  gone: (state, { source }) =>
    stay({ ...state, apps: state.apps.filter((app) => app.source !== source),
      problems: without(state.problems, source) }),
  status: (state, { key, status }) => stay(key === state.chosen ? { ...state, status } : state),
  lines: addLines,
  said: (state, { text, tone = 'info' }) => stay({ ...state, message: { text, tone } })
}

/** @returns those that are shown, in their order */
export function visibleApps ({ apps, filters, order }: State): App[] {
  const wanted = filters.apps.toLowerCase()
  const rank = ORDERS[order]
  return apps.filter((app) => `${app.name} ${healthOf(app).text}`.toLowerCase().includes(wanted)).sort((one, other) =>
    rank(one) - rank(other) || compareText(one.name, other.name) || compareText(one.key, other.key)
  )
}

export function visibleLines ({ lines, filters }: State): Entry[] {
  const wanted = filters.logs.toLowerCase()
  return wanted === '' ? lines : lines.filter(({ text }) => text.toLowerCase().includes(wanted))
}

export function chosenApp ({ apps, chosen }: State): App | null {
  return apps.find(({ key }) => key === chosen) ?? null
}

/** @returns in a few words */
export function healthOf ({ state, reason, health }: App): { tone: string, text: string } {
  const text = reason ? `${state}: ${reason}` : state
  if (state === 'failed') return { tone: 'bad', text }
  if (state === 'stopped') return { tone: 'idle', text }
  return health && state !== 'stopping' ? health : { tone: 'info', text }
}

/** How many lines of the log a key for a page moves; the view has about as many. */
function pageOf ({ size }: State) {
  return Math.max(1, Math.floor(size.rows / 3))
}

function pressKey (state: State, key: KeyInput): Next {
  if (state.prompt?.kind === 'confirm') return answerQuestion(state, state.prompt, key)
  if (state.prompt?.kind === 'filter') return editFilter(state, state.prompt, key)
  if (state.isHelp && key.name !== 'ctrl+c' && key.name !== 'ctrl+z') return stay({ ...state, isHelp: false })
  const app = chosenApp(state)
  const quiet = { ...state, message: null }
  if (Object.hasOwn(ACTIONS, key.name)) return stay(app ? ask(quiet, app, ACTIONS[key.name](state, app)) : quiet)
  if (!Object.hasOwn(KEYS, key.name)) return stay(quiet)
  const effect = KEYS[key.name](state)
  return 'type' in effect ? { state: quiet, commands: [effect] } : stay({ ...quiet, ...effect })
}

function ask (state: State, app: App, action: Action): State {
  if ((action === 'restart' || action === 'deploy') && !isOpen(app))
    return { ...state, message: { text: `${app.name} is ${app.state}: s starts it`, tone: 'warn' } }
  return { ...state, prompt: { kind: 'confirm', action, app } }
}

/** Only y does it: any other key leaves all as it is. */
function answerQuestion (state: State, { action, app }: Extract<Prompt, { kind: 'confirm' }>,
  { name }: KeyInput): Next
{
  const asked = { ...state, prompt: null }
  if (name === 'ctrl+c') return { state: asked, commands: [{ type: 'quit' }] }
  if (name === 'y' || name === 'Y') return { state: asked, commands: [{ type: action, app }] }
  return stay({ ...asked, message: { text: 'nothing was done', tone: 'info' } })
}

function editFilter (state: State, { of, before }: Extract<Prompt, { kind: 'filter' }>,
  { name, text }: KeyInput): Next
{
  const set = (filter: string) => ({ ...state, filters: { ...state.filters, [of]: filter }, scroll: 0 })
  if (name === 'ctrl+c') return { state, commands: [{ type: 'quit' }] }
  if (name === 'escape') return stay({ ...set(before), prompt: null })
  if (name === 'return') return stay({ ...state, prompt: null })
  if (name === 'backspace') return stay(set([...state.filters[of]].slice(0, -1).join('')))
  if (name === 'ctrl+u') return stay(set(''))
  return stay(typeText(state, text))
}

function typeText (state: State, text: string): State {
  if (state.prompt?.kind !== 'filter') return state
  const { of } = state.prompt
  return { ...state, filters: { ...state.filters, [of]: `${state.filters[of]}${text}`.slice(0, MAX_FILTER_CHARS) },
    scroll: 0 }
}

function choose (state: State, by: number): Partial<State> {
  const apps = visibleApps(state)
  const index = apps.findIndex(({ key }) => key === state.chosen)
  return { chosen: apps[Math.min(apps.length - 1, Math.max(0, index + by))]?.key ?? state.chosen, wanted: null }
}

function scrollBy (state: State, by: number): Partial<State> {
  return { scroll: Math.min(Math.max(0, visibleLines(state).length - 1), Math.max(0, state.scroll + by)) }
}

/** Lines that somebody has scrolled to stay where they are. */
function addLines (state: State, { key, entries }: { key: string, entries: Entry[] }): Next {
  if (key !== state.chosen) return stay(state)
  const added = { ...state, lines: [...state.lines, ...entries].slice(-MAX_LINES) }
  if (state.scroll === 0) return stay(added)
  return stay({ ...added, ...scrollBy(added, visibleLines({ ...state, lines: entries }).length) })
}

/** Chooses an app where none is chosen any more, and follows the one that is chosen. */
function withChoice (before: State, { state, commands }: Next): Next {
  const apps = visibleApps(state)
  const wanted = state.wanted === null ? undefined : apps.find(({ dataDir }) => dataDir === state.wanted)
  const { key: chosen } = wanted ?? apps.find(({ key }) => key === state.chosen) ?? apps[0] ?? { key: null }
  if (chosen === before.chosen) return { state: { ...state, chosen }, commands }
  const chosenState = { ...state, chosen, wanted: wanted ? null : state.wanted, status: null, lines: [], scroll: 0,
    shift: 0 }
  return { state: chosenState, commands: [...commands, { type: 'follow', app: chosenApp(chosenState) }] }
}

function stay (state: State): Next {
  return { state, commands: [] }
}

function nextOf (names: string[], name: string) {
  return names[(names.indexOf(name) + 1) % names.length]
}

function without (problems: Readonly<Record<string, string>>, source: string) {
  return Object.fromEntries(Object.entries(problems).filter(([name]) => name !== source))
}

function compareText (one: string, other: string) {
  return one < other ? -1 : one > other ? 1 : 0
}
