import { invalid } from './invalid.js'
import { OPTIONS } from './options.js'

/** @typedef {import('../launch/launch.js').Runtime} Runtime */
/** @typedef {{ expected: string, isFine: (value: any) => boolean }} Rule */

const OF_NODE = 'for a program that is not run by Node.js'

/** What takes a Node.js process inside, and what of it another program can have. @type {Readonly<Record<string, Rule>>} */
const NEEDS_NODE = Object.freeze({
  execArgv: { expected: `no options of Node ${OF_NODE}; its own go into "args"`, isFine: (words) => words.length === 0 },
  standby: { expected: `0 ${OF_NODE}, as it cannot load the app and wait`, isFine: (number) => number === 0 },
  dispatch: { expected: `"shared" ${OF_NODE}`, isFine: (way) => way === 'shared' },
  portPerSlot: { expected: `0 ${OF_NODE}, as it listens on nothing that it has not bound itself`, isFine: (port) => port === 0 },
  'ready.signal': { expected: `"auto", "listening" or "online" ${OF_NODE}, as it sends no message`, isFine: (signal) => signal !== 'message' },
  'stop.message': { expected: `nothing ${OF_NODE}, as it gets no message; stop.signal says which signal it gets`, isFine: isDefault('stop.message') },
  'crash.graceMs': { expected: `nothing ${OF_NODE}, as its exceptions are its own`, isFine: isDefault('crash.graceMs') },
  'watchdog.timeoutMs': { expected: `nothing or 0 ${OF_NODE}, as it has no event loop to watch`, isFine: (ms) => ms === 0 || isDefault('watchdog.timeoutMs')(ms) },
  'recycle.maxRequests': { expected: `0 ${OF_NODE}, as its requests are not counted; recycle.maxAgeMs and recycle.maxRssBytes count`, isFine: (number) => number === 0 }
})

/** And the other way round. @type {Readonly<Record<string, Rule>>} */
const NEEDS_OTHER = Object.freeze({
  'stop.signal': { expected: '"SIGTERM" for a Node.js program, which is told to stop by a message first', isFine: (signal) => signal === 'SIGTERM' }
})

/**
 * Refuses what means nothing for the program that is run.
 * @param {{ runtime?: Runtime } & Partial<import('./config.js').Values>} values @param {(name: string) => string} [sourceOf]
 * @throws {import('../errors.js').DeckError} invalid-config
 */
export function checkRuntime ({ runtime = 'node', ...values }, sourceOf = (name) => name) {
  for (const [name, { expected, isFine }] of Object.entries(runtime === 'other' ? NEEDS_NODE : NEEDS_OTHER)) {
    const value = valueAt(values, name)
    if (value === undefined || isFine(value)) continue
    const isSecret = OPTIONS.find((option) => option.name === name)?.isSecret
    throw invalid(sourceOf(name), expected, isSecret ? 'some' : typeof value === 'string' ? JSON.stringify(value) : String(value))
  }
}

/** @param {string} name @returns {(value: unknown) => boolean} */
function isDefault (name) {
  return (value) => value === OPTIONS.find((option) => option.name === name)?.fallback
}

/** @param {Record<string, any>} values @param {string} name */
function valueAt (values, name) {
  return name.split('.').reduce((part, key) => part?.[key], /** @type {any} */ (values))
}
