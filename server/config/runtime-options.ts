import { invalid } from './invalid.ts'
import { OPTIONS, type Option } from './option-list.ts'
import { isOldNode } from '../system/app-node.ts'
import { valueIn } from './value-in.ts'
import type { AppNode, Runtime } from '../launch/launch.ts'
import type { Values } from './config.ts'

type Rule = { expected: string, isFine: (value: unknown, option: Option) => boolean }

const OF_NODE = 'for a program that is not run by Node.js'

/** Options that need a Node.js process, and which of their values another program can have. */
const NEEDS_NODE: Readonly<Record<string, Rule>> = Object.freeze({
  execArgv: { expected: `no options of Node ${OF_NODE}; its own go into "args"`, isFine: (words) =>
    Array.isArray(words) && words.length === 0 },
  standby: { expected: `0 ${OF_NODE}, as it cannot load the app and wait`, isFine: (number) => number === 0 },
  dispatch: { expected: `"shared" ${OF_NODE}`, isFine: (way) => way === 'shared' },
  portPerSlot: { expected: `0 ${OF_NODE}, as it listens on nothing that it has not bound itself`, isFine: (port) =>
    port === 0 },
  'ready.signal': { expected: `"auto", "listening", "notify" or "online" ${OF_NODE}, as it sends no message`,
    isFine: (signal) => signal !== 'message' },
  'stop.message': { expected: `nothing ${OF_NODE}, as it gets no message; stop.signal says which signal it gets`,
    isFine: isDefault },
  'crash.graceMs': { expected: `nothing ${OF_NODE}, as its exceptions are its own`, isFine: isDefault },
  'drain.stalledMs': { expected: `nothing ${OF_NODE}, as nobody sees what moves over its connections`,
    isFine: isDefault },
  'drain.longLivedMs': { expected: `nothing ${OF_NODE}, which ends its connections itself`, isFine: isDefault },
  'drain.maxOldWorkers': { expected: `nothing ${OF_NODE}, which ends its connections itself`, isFine: isDefault },
  'drain.spreadMs': { expected: `nothing ${OF_NODE}, which ends its connections itself`, isFine: isDefault },
  'recycle.maxRequests': {
    expected: `0 ${OF_NODE}, as its requests are not counted; recycle.maxAgeMs and recycle.maxRssBytes count`,
    isFine: (number) => number === 0
  }
})

/** Options that need a Node.js process too, but may have any value: nothing looks at it. */
const IGNORED_BY_OTHER = Object.freeze(['compileCache', 'sticky.by.header', 'sticky.by.cookie', 'sticky.by.query',
  'sticky.by.path', 'sticky.idleMs', 'sticky.failoverMs', 'rebalance', 'orphanMs', 'watchdog.stack'])

/** Options that only a program of another language has, and which of their values a Node.js program can have. */
const NEEDS_OTHER: Readonly<Record<string, Rule>> = Object.freeze({
  'ready.signal': {
    expected:
      '"auto", "listening", "message" or "online" for a Node.js program, which says by process.send(\'ready\') that it is ready',
    isFine: (signal) => signal !== 'notify'
  },
  'stop.signal': { expected: '"SIGTERM" for a Node.js program, which is told to stop by a message first',
    isFine: (signal) => signal === 'SIGTERM' }
})

/**
 * Refuses what means nothing for the program that is run.
 * @throws {import('../errors.ts').DeckError} invalid-config
 */
export function checkRuntime (
  { runtime = 'node', appNode, ...values }: { runtime?: Runtime, appNode?: AppNode } & Partial<Values>,
  sourceOf: (name: string) => string = (name) => name
) {
  const isOnOldNode = appNode !== undefined && values.entry === appNode.file && isOldNode(appNode.version)
  for (const option of OPTIONS) {
    const value = valueIn(values, option.path)
    const expected = expectedInstead(runtime, option, value)
    if (expected !== null)
      throw invalid(sourceOf(option.name), isOnOldNode
        ? expected.replace(OF_NODE,
          `for an app on Node ${appNode.version}, which is run as programs of other languages are (workers need Node 20.19, 22.12 or later)`)
        : expected, option.isSecret ? 'some' : typeof value === 'string' ? JSON.stringify(value) : String(value))
  }
}

/** `value`: undefined: none is set. Returns what a program that is run so can have instead; null: this value. */
export function expectedInstead (runtime: Runtime, option: Option, value: unknown): string | null {
  const rules = runtime === 'other' ? NEEDS_NODE : NEEDS_OTHER
  if (value === undefined || !Object.hasOwn(rules, option.name)) return null
  const { expected, isFine } = rules[option.name]
  return isFine(value, option) ? null : expected
}

/** `name`: of an option. Returns false: it means nothing for such a program. */
export function isUsed (runtime: Runtime | undefined, name: string): boolean {
  return !(runtime === 'other' ? UNUSED_BY_OTHER : UNUSED_BY_NODE).includes(name)
}

const UNUSED_BY_OTHER = [...namesIn(NEEDS_NODE), ...IGNORED_BY_OTHER]
const UNUSED_BY_NODE = namesIn(NEEDS_OTHER)

/** @returns without ready.signal, of which both kinds of programs have values of their own */
function namesIn (rules: Readonly<Record<string, Rule>>): string[] {
  return Object.keys(rules).filter((name) => name !== 'ready.signal')
}

function isDefault (value: unknown, { fallback }: Option) {
  return value === fallback
}
