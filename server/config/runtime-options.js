import { invalid } from './invalid.js'
import { OPTIONS } from './option-list.js'
import { valueIn } from './value-in.js'

/** @typedef {import('../launch/launch.js').Runtime} Runtime */
/** @typedef {import('./option-list.js').Option} Option */
/** @typedef {{ expected: string, isFine: (value: any, option: Option) => boolean }} Rule */

const OF_NODE = 'for a program that is not run by Node.js'

/** Options that need a Node.js process, and which of their values another program can have. @type {Readonly<Record<string, Rule>>} */
const NEEDS_NODE = Object.freeze({
  execArgv: { expected: `no options of Node ${OF_NODE}; its own go into "args"`, isFine: (words) => words.length === 0 },
  standby: { expected: `0 ${OF_NODE}, as it cannot load the app and wait`, isFine: (number) => number === 0 },
  dispatch: { expected: `"shared" ${OF_NODE}`, isFine: (way) => way === 'shared' },
  portPerSlot: { expected: `0 ${OF_NODE}, as it listens on nothing that it has not bound itself`, isFine: (port) => port === 0 },
  'ready.signal': { expected: `"auto", "listening", "notify" or "online" ${OF_NODE}, as it sends no message`, isFine: (signal) => signal !== 'message' },
  'stop.message': { expected: `nothing ${OF_NODE}, as it gets no message; stop.signal says which signal it gets`, isFine: isDefault },
  'crash.graceMs': { expected: `nothing ${OF_NODE}, as its exceptions are its own`, isFine: isDefault },
  'drain.stalledMs': { expected: `nothing ${OF_NODE}, as nobody sees what moves over its connections`, isFine: isDefault },
  'drain.longLivedMs': { expected: `nothing ${OF_NODE}, which ends its connections itself`, isFine: isDefault },
  'drain.maxOldWorkers': { expected: `nothing ${OF_NODE}, which ends its connections itself`, isFine: isDefault },
  'drain.spreadMs': { expected: `nothing ${OF_NODE}, which ends its connections itself`, isFine: isDefault },
  'recycle.maxRequests': { expected: `0 ${OF_NODE}, as its requests are not counted; recycle.maxAgeMs and recycle.maxRssBytes count`, isFine: (number) => number === 0 }
})

/** Options that need a Node.js process too, but may have any value: nothing looks at it. */
const IGNORED_BY_OTHER = Object.freeze(['compileCache', 'sticky.by.header', 'sticky.by.cookie', 'sticky.by.query', 'sticky.by.path', 'sticky.idleMs', 'sticky.failoverMs', 'rebalance', 'orphanMs', 'watchdog.stack'])

/** Options that only a program of another language has, and which of their values a Node.js program can have. @type {Readonly<Record<string, Rule>>} */
const NEEDS_OTHER = Object.freeze({
  'ready.signal': { expected: '"auto", "listening", "message" or "online" for a Node.js program, which says by process.send(\'ready\') that it is ready', isFine: (signal) => signal !== 'notify' },
  'stop.signal': { expected: '"SIGTERM" for a Node.js program, which is told to stop by a message first', isFine: (signal) => signal === 'SIGTERM' }
})

/**
 * Refuses what means nothing for the program that is run.
 * @param {{ runtime?: Runtime } & Partial<import('./config.js').Values>} values @param {(name: string) => string} [sourceOf]
 * @throws {import('../errors.js').DeckError} invalid-config
 */
export function checkRuntime ({ runtime = 'node', ...values }, sourceOf = (name) => name) {
  for (const option of OPTIONS) {
    const value = valueIn(values, option.path)
    const expected = expectedInstead(runtime, option, value)
    if (expected !== null) throw invalid(sourceOf(option.name), expected, option.isSecret ? 'some' : typeof value === 'string' ? JSON.stringify(value) : String(value))
  }
}

/**
 * @param {Runtime} runtime @param {Option} option @param {unknown} value  undefined: none is set
 * @returns {string | null} what a program that is run so can have instead; null: this value
 */
export function expectedInstead (runtime, option, value) {
  const rules = runtime === 'other' ? NEEDS_NODE : NEEDS_OTHER
  if (value === undefined || !Object.hasOwn(rules, option.name)) return null
  const { expected, isFine } = rules[option.name]
  return isFine(value, option) ? null : expected
}

/**
 * @param {Runtime | undefined} runtime @param {string} name  of an option
 * @returns {boolean} false: it means nothing for such a program
 */
export function isUsed (runtime, name) {
  return !(runtime === 'other' ? UNUSED_BY_OTHER : UNUSED_BY_NODE).includes(name)
}

const UNUSED_BY_OTHER = [...namesIn(NEEDS_NODE), ...IGNORED_BY_OTHER]
const UNUSED_BY_NODE = namesIn(NEEDS_OTHER)

/** @param {Readonly<Record<string, Rule>>} rules @returns {string[]} without ready.signal, of which both kinds of programs have values of their own */
function namesIn (rules) {
  return Object.keys(rules).filter((name) => name !== 'ready.signal')
}

/** @param {unknown} value @param {Option} option */
function isDefault (value, { fallback }) {
  return value === fallback
}
