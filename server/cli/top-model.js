import { isOpen } from './host.js'

/**
 * What `clusterdeck top` shows, and what its keys do. It is pure: what has come is handed to it, and what is to be done it hands back.
 *
 * An app with its figures, of a host or as a deck of its own.
 * @typedef {object} App
 * @property {string} key no other app has it
 * @property {string} name
 * @property {string} source what tells of it
 * @property {string | null} dataDir
 * @property {boolean} isInHost which can start it again
 * @property {'waiting' | 'starting' | 'running' | 'stopping' | 'stopped' | 'failed'} state
 * @property {string | null} reason why it waits or has failed
 * @property {{ tone: string, text: string, hint: string } | null} health
 * @property {{ ready: number, desired: number } | null} workers
 * @property {number | null} cpu percent of a core
 * @property {number | null} memoryBytes
 * @property {number | null} requestsPerSecond
 * @property {number | null} p99Ms
 * @property {number | null} restarts
 * @property {string | null} release
 * @property {string[]} addresses
 *
 * @typedef {import('./logs.js').Entry} Entry
 * @typedef {import('./output.js').Status} Status
 * @typedef {'apps' | 'logs'} Filtered
 * @typedef {'restart' | 'deploy' | 'stop' | 'start'} Action
 * @typedef {{ kind: 'confirm', action: Action, app: App } | { kind: 'filter', of: Filtered, before: string }} Prompt
 *
 * @typedef {object} State
 * @property {{ rows: number, columns: number }} size of the terminal
 * @property {App[]} apps of all sources
 * @property {Readonly<Record<string, string>>} problems what is wrong with a source, by its name
 * @property {string | null} chosen the key of an app
 * @property {string | null} wanted the data folder of the app that is to be chosen once it is there
 * @property {Status | null} status of the chosen app
 * @property {Entry[]} lines of the chosen app, oldest first
 * @property {number} scroll how many lines are below the ones that are shown; 0: new ones are shown as they come
 * @property {number} shift how many columns are left of the lines
 * @property {keyof typeof ORDERS} order
 * @property {Readonly<Record<Filtered, string>>} filters
 * @property {Prompt | null} prompt
 * @property {boolean} isHelp
 * @property {boolean} hasWorkers
 * @property {{ text: string, tone: string } | null} message
 *
 * @typedef {{ type: 'key', name: string, text: string }} KeyInput `text`: what has been typed, where that is text
 * @typedef {KeyInput | { type: 'pasted', text: string }
 *   | { type: 'resized', rows: number, columns: number }
 *   | { type: 'read', source: string, apps: App[] }
 *   | { type: 'lost', source: string, problem: string }
 *   | { type: 'gone', source: string }
 *   | { type: 'status', key: string, status: Status | null }
 *   | { type: 'lines', key: string, entries: Entry[] }
 *   | { type: 'said', text: string, tone?: string }} Input
 *
 * @typedef {{ type: 'quit' | 'suspend' | 'redraw' } | { type: 'follow', app: App | null } | { type: Action, app: App }} Command
 * @typedef {{ state: State, commands: Command[] }} Next
 */

/** More lines are not kept. */
const MAX_LINES = 1000
const MAX_FILTER_CHARS = 60
const SHIFT_COLUMNS = 20

/** The sick ones come first. @type {readonly string[]} */
const TONES = ['bad', 'warn', 'drain', 'info', 'ok', 'idle']

/** In which order apps are shown; those that are alike are by name. @type {Readonly<Record<string, (app: App) => number>>} */
export const ORDERS = {
  health: (app) => TONES.indexOf(healthOf(app).tone),
  name: () => 0,
  cpu: ({ cpu }) => -(cpu ?? -1),
  memory: ({ memoryBytes }) => -(memoryBytes ?? -1),
  requests: ({ requestsPerSecond }) => -(requestsPerSecond ?? -1)
}

/** What is done only after a question. @type {Readonly<Record<string, (state: State, app: App) => Action>>} */
const ACTIONS = {
  r: () => 'restart',
  d: () => 'deploy',
  s: (_, { state }) => state === 'stopped' || state === 'failed' ? 'start' : 'stop'
}

/** @type {Readonly<Record<string, (state: State) => Partial<State> | Command>>} */
const KEYS = {
  q: () => ({ type: 'quit' }),
  'ctrl+c': () => ({ type: 'quit' }),
  'ctrl+z': () => ({ type: 'suspend' }),
  'ctrl+l': () => ({ type: 'redraw' }),
  up: (state) => choose(state, -1),
  k: (state) => choose(state, -1),
  down: (state) => choose(state, 1),
  j: (state) => choose(state, 1),
  home: (state) => choose(state, -Infinity),
  g: (state) => choose(state, -Infinity),
  end: (state) => choose(state, Infinity),
  G: (state) => choose(state, Infinity),
  pageup: (state) => scrollBy(state, pageOf(state)),
  b: (state) => scrollBy(state, pageOf(state)),
  pagedown: (state) => scrollBy(state, -pageOf(state)),
  space: (state) => scrollBy(state, -pageOf(state)),
  e: () => ({ scroll: 0, shift: 0 }),
  left: ({ shift }) => ({ shift: Math.max(0, shift - SHIFT_COLUMNS) }),
  right: ({ shift }) => ({ shift: shift + SHIFT_COLUMNS }),
  o: ({ order }) => ({ order: nextOf(Object.keys(ORDERS), order) }),
  w: ({ hasWorkers }) => ({ hasWorkers: !hasWorkers }),
  return: ({ hasWorkers }) => ({ hasWorkers: !hasWorkers }),
  '/': ({ filters }) => ({ prompt: { kind: 'filter', of: 'apps', before: filters.apps } }),
  f: ({ filters }) => ({ prompt: { kind: 'filter', of: 'logs', before: filters.logs } }),
  escape: () => ({ filters: { apps: '', logs: '' }, scroll: 0 }),
  '?': () => ({ isHelp: true }),
  h: () => ({ isHelp: true })
}

/** @param {Partial<State>} [fields] @returns {State} */
export function createState (fields) {
  return {
    size: { rows: 24, columns: 80 },
    apps: [],
    problems: {},
    chosen: null,
    wanted: null,
    status: null,
    lines: [],
    scroll: 0,
    shift: 0,
    order: 'health',
    filters: { apps: '', logs: '' },
    prompt: null,
    isHelp: false,
    hasWorkers: true,
    message: null,
    ...fields
  }
}

/** @param {State} state @param {Input} input @returns {Next} */
export function update (state, input) {
  const next = EFFECTS[input.type](state, /** @type {any} */ (input))
  return withChoice(state, next)
}

/** @type {Readonly<Record<Input['type'], (state: State, input: any) => Next>>} */
const EFFECTS = {
  key: pressKey,
  pasted: (state, { text }) => stay(state.prompt?.kind === 'filter' ? typeText(state, text) : state),
  resized: (state, { rows, columns }) => stay({ ...state, size: { rows, columns } }),
  read: (state, { source, apps }) => stay({ ...state, apps: [...state.apps.filter((app) => app.source !== source), ...apps], problems: without(state.problems, source) }),
  lost: (state, { source, problem }) => stay({ ...state, problems: { ...state.problems, [source]: problem } }),
  gone: (state, { source }) => stay({ ...state, apps: state.apps.filter((app) => app.source !== source), problems: without(state.problems, source) }),
  status: (state, { key, status }) => stay(key === state.chosen ? { ...state, status } : state),
  lines: addLines,
  said: (state, { text, tone = 'info' }) => stay({ ...state, message: { text, tone } })
}

/** @param {State} state @returns {App[]} those that are shown, in their order */
export function visibleApps ({ apps, filters, order }) {
  const wanted = filters.apps.toLowerCase()
  const rank = ORDERS[order]
  return apps
    .filter((app) => `${app.name} ${healthOf(app).text}`.toLowerCase().includes(wanted))
    .sort((one, other) => rank(one) - rank(other) || compareText(one.name, other.name) || compareText(one.key, other.key))
}

/** @param {State} state @returns {Entry[]} */
export function visibleLines ({ lines, filters }) {
  const wanted = filters.logs.toLowerCase()
  return wanted === '' ? lines : lines.filter(({ text }) => text.toLowerCase().includes(wanted))
}

/** @param {State} state @returns {App | null} */
export function chosenApp ({ apps, chosen }) {
  return apps.find(({ key }) => key === chosen) ?? null
}

/** @param {App} app @returns {{ tone: string, text: string }} in a few words */
export function healthOf ({ state, reason, health }) {
  const text = reason ? `${state}: ${reason}` : state
  if (state === 'failed') return { tone: 'bad', text }
  if (state === 'stopped') return { tone: 'idle', text }
  return health && state !== 'stopping' ? health : { tone: 'info', text }
}

/** How many lines of the log a key for a page moves; the view has about as many. @param {State} state */
function pageOf ({ size }) {
  return Math.max(1, Math.floor(size.rows / 3))
}

/** @param {State} state @param {KeyInput} key @returns {Next} */
function pressKey (state, key) {
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

/** @param {State} state @param {App} app @param {Action} action @returns {State} */
function ask (state, app, action) {
  if ((action === 'restart' || action === 'deploy') && !isOpen(app)) {
    return { ...state, message: { text: `${app.name} is ${app.state}: s starts it`, tone: 'warn' } }
  }
  return { ...state, prompt: { kind: 'confirm', action, app } }
}

/** Only y does it: any other key leaves all as it is. @param {State} state @param {Extract<Prompt, { kind: 'confirm' }>} prompt @param {KeyInput} key @returns {Next} */
function answerQuestion (state, { action, app }, { name }) {
  const asked = { ...state, prompt: null }
  if (name === 'ctrl+c') return { state: asked, commands: [{ type: 'quit' }] }
  if (name === 'y' || name === 'Y') return { state: asked, commands: [{ type: action, app }] }
  return stay({ ...asked, message: { text: 'nothing was done', tone: 'info' } })
}

/** @param {State} state @param {Extract<Prompt, { kind: 'filter' }>} prompt @param {KeyInput} key @returns {Next} */
function editFilter (state, { of, before }, { name, text }) {
  const set = (/** @type {string} */ filter) => ({ ...state, filters: { ...state.filters, [of]: filter }, scroll: 0 })
  if (name === 'ctrl+c') return { state, commands: [{ type: 'quit' }] }
  if (name === 'escape') return stay({ ...set(before), prompt: null })
  if (name === 'return') return stay({ ...state, prompt: null })
  if (name === 'backspace') return stay(set([...state.filters[of]].slice(0, -1).join('')))
  if (name === 'ctrl+u') return stay(set(''))
  return stay(typeText(state, text))
}

/** @param {State} state @param {string} text @returns {State} */
function typeText (state, text) {
  if (state.prompt?.kind !== 'filter') return state
  const { of } = state.prompt
  return { ...state, filters: { ...state.filters, [of]: `${state.filters[of]}${text}`.slice(0, MAX_FILTER_CHARS) }, scroll: 0 }
}

/** @param {State} state @param {number} by @returns {Partial<State>} */
function choose (state, by) {
  const apps = visibleApps(state)
  const index = apps.findIndex(({ key }) => key === state.chosen)
  return { chosen: apps[Math.min(apps.length - 1, Math.max(0, index + by))]?.key ?? state.chosen, wanted: null }
}

/** @param {State} state @param {number} by @returns {Partial<State>} */
function scrollBy (state, by) {
  return { scroll: Math.min(Math.max(0, visibleLines(state).length - 1), Math.max(0, state.scroll + by)) }
}

/** Lines that somebody has scrolled to stay where they are. @param {State} state @param {{ key: string, entries: Entry[] }} input @returns {Next} */
function addLines (state, { key, entries }) {
  if (key !== state.chosen) return stay(state)
  const added = { ...state, lines: [...state.lines, ...entries].slice(-MAX_LINES) }
  if (state.scroll === 0) return stay(added)
  return stay({ ...added, ...scrollBy(added, visibleLines({ ...state, lines: entries }).length) })
}

/** Chooses an app where none is chosen any more, and follows the one that is chosen. @param {State} before @param {Next} next @returns {Next} */
function withChoice (before, { state, commands }) {
  const apps = visibleApps(state)
  const wanted = state.wanted === null ? undefined : apps.find(({ dataDir }) => dataDir === state.wanted)
  const { key: chosen } = wanted ?? apps.find(({ key }) => key === state.chosen) ?? apps[0] ?? { key: null }
  if (chosen === before.chosen) return { state: { ...state, chosen }, commands }
  const chosenState = { ...state, chosen, wanted: wanted ? null : state.wanted, status: null, lines: [], scroll: 0, shift: 0 }
  return { state: chosenState, commands: [...commands, { type: 'follow', app: chosenApp(chosenState) }] }
}

/** @param {State} state @returns {Next} */
function stay (state) {
  return { state, commands: [] }
}

/** @param {string[]} names @param {string} name */
function nextOf (names, name) {
  return names[(names.indexOf(name) + 1) % names.length]
}

/** @param {Readonly<Record<string, string>>} problems @param {string} source */
function without (problems, source) {
  return Object.fromEntries(Object.entries(problems).filter(([name]) => name !== source))
}

/** @param {string} one @param {string} other */
function compareText (one, other) {
  return one < other ? -1 : one > other ? 1 : 0
}
