import { oneLine } from '../system/one-line.ts'

/** At most this many of the app's own message names are reported. */
const MAX_TOLD = 5
const MAX_NAME_CHARS = 60
const MAX_INNER = 10
/** Where libraries and apps say what a message is about. */
const NAMES = ['topic', 'channel', 'source', 'from', 'cmd', 'command', 'action', 'event', 'eventName']
/** These name a sender. A message to an operator has `type` and `data`, and none of these. */
const SENDERS = ['topic', 'channel', 'source', 'from']
/**
 * Types of the messages that PM2's libraries send by themselves. `human:event` and `process:exception` are the app's
 * own, sent through them.
 */
const PM2_REPORT = /^(axm:|http:transaction$|application:dependencies$|profilings$)/

/**
 * Libraries of node:cluster of which one half runs in the app's own primary, which does not run here.
 * `advice`: what is lost, and what to set
 */
const LIBRARIES: readonly { library: string, isFrom: (message: Record<string, unknown>) => boolean, advice: string }[] =
  Object.freeze([{ library: 'log4js', isFrom: ({ topic }) => topic === 'log4js:message',
    advice: 'the lines of its log are lost; set disableClustering: true in log4js.configure()' }, {
    library: 'rate-limiter-flexible',
    isFrom: ({ channel }) => channel === 'rate_limiter_flexible',
    advice:
      'each consume() fails after timeoutMs; take RateLimiterRedis for one limit over all workers, or RateLimiterMemory for one of each'
  }, { library: '@express-rate-limit/cluster-memory-store', isFrom: ({ from }) => from === 'cluster-memory-store',
    advice:
      'each request waits for it and fails; take rate-limit-redis for one limit over all workers, or the store that express-rate-limit has by itself for one of each' },
    { library: '@socket.io/cluster-adapter', isFrom: ({ source }) => source === '_sio_adapter',
      advice:
        'a broadcast reaches the clients of one worker alone; take an adapter over Redis or Postgres, such as @socket.io/redis-adapter' },
    { library: '@socket.io/sticky', isFrom: ({ type }) => isText(type) && type.startsWith('sticky:'),
      advice: 'set dispatch: sticky in clusterdeck instead' }, { library: '@pm2/io, pmx or tx2',
    isFrom: ({ type }) => isText(type) && PM2_REPORT.test(type),
    advice:
      'it reports to PM2 alone, and clusterdeck keeps nothing of it; its own metrics are on the admin page and under /metrics' }])

/** Reports messages to a primary of the app's own, which nobody answers: each library or name once. */
export function createUnanswered (
  { tell }: { tell: (worker: number, message: string, detail: { library: string | null, name: string }) => void }
) {
  /** libraries, and names of other messages */
  const told: Set<string> = new Set()
  let others = 0

  /** Tells whether it was for a primary, and needs no more */
  return function hear (worker: number, message: Record<string, unknown>): boolean {
    const known = LIBRARIES.find(({ isFrom }) => isFrom(message))
    const isForOperator = isText(message.type) && ('data' in message || !SENDERS.some((key) => isText(message[key])))
    const name = nameOf(message)
    if (known) {
      const { library, advice } = known
      const text =
        `the library ${library} sends "${name}" to a primary of the app's own, which does not run under clusterdeck: ${advice}`
      tellOnce(library, () => tell(worker, text, { library, name }))
    } else if (!isForOperator && name !== '' && others < MAX_TOLD) {
      tellOnce(`"${name}"`, () => {
        others++
        const text =
          `the app sends "${name}" to a primary of its own, which does not run under clusterdeck: nobody answers it or passes it on`
        tell(worker, text, { library: null, name })
      })
    }
    return known !== undefined || !isForOperator
  }

  function tellOnce (key: string, work: () => void) {
    if (told.has(key)) return
    told.add(key)
    work()
  }
}

/** Finds what a message is about. Some libraries wrap it in an object of their own. @returns empty: it has no name */
function nameOf (message: Record<string, unknown>): string {
  const inner = Array.isArray(message) ? [] : Object.values(message).slice(0, MAX_INNER).filter(isRecord)
  const namesOf = (each: Record<string, unknown>) => NAMES.map((key) => each[key])
  const name = [...namesOf(message), message.type, ...inner.flatMap(namesOf)].find(isText) ?? ''
  return oneLine(name.slice(0, MAX_NAME_CHARS))
}

export function isRecord (value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

function isText (value: unknown): value is string {
  return typeof value === 'string'
}
