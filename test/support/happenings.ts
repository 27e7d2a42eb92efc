import assert from 'node:assert/strict'
import { attempt } from '../../server/errors.ts'
import { NEW_RELEASE, verdict, type Fed, type Simulation } from './simulation.ts'
import type { Drift, Refusal } from '../../server/lifecycle/state.ts'

export type Fields = Record<string, unknown>
/** What a test has words of its own for. `acts`: by the whole of what happens; `orders`: by a word after a rollout. */
export type Words = { acts?: Record<string, (pool: Simulation) => Refusal | null | void>,
  orders?: Record<string, Fields> }

/** How a rollout may be ordered. */
const ORDERS: Record<string, Fields> = { unprepared: { release: undefined }, 'in-turn': { awaitsTurn: true },
  canary: { strategy: { canary: { workers: 1, durationMs: 60_000 } } }, hold: { strategy: { onFailure: 'hold' } },
  'stop-first': { strategy: { order: 'stop-first' } }, soak: { strategy: { minReadyMs: 60_000 } } }

const NOTHING_HELD = Object.freeze({ requests: 0, transfers: 0, webSockets: 0, eventStreams: 0, connections: 0,
  sessions: 0 })

/** What happens to a worker where that is not named as its input, or needs more. */
const OF_WORKERS: Record<string, (words: string[], fields: Fields) => Fields> = { silent: () => ({ message: 'silent' }),
  crashing: () => ({ errorName: 'Error', errorMessage: 'boom' }),
  due: () => ({ cause: 'memory-limit', message: 'large' }), active: () => ({ resources: ['Timeout'] }),
  idle: () => ({ type: 'worker-active', resources: ['Timeout'], isIdle: true }),
  listens: ([url]) => ({ type: 'worker-listening', url, isFixed: true }),
  closes: ([url]) => ({ type: 'worker-closed', url }), captured: () => ({ type: 'stack-captured' }),
  killed: () => ({ type: 'kill-worker', actor: 'api' }), restarted: () => ({ type: 'restart-worker', actor: 'api' }),
  holds: (_, held) => ({ holds: { ...NOTHING_HELD, ...held } }) }
const VERDICTS: Record<string, boolean | null> = { good: true, bad: false, unclear: null }

/** What happens to all of them, by the word that begins it. */
const ACTS: Record<string, (pool: Simulation, words: string[], fields: Fields) => Refusal | null | void> = {
  prepared: (pool, [id], fields) =>
    pool.feed(asInput('release-prepared', { rollout: rolloutOf(pool), release: { ...NEW_RELEASE, id }, ...fields })),
  judged: (pool, [how, when], fields) =>
    pool.feed(
      asInput('judged', { rollout: rolloutOf(pool),
        verdict: { ...verdict(VERDICTS[how], when !== 'early'), ...fields } })
    ),
  scale: (pool, [workers]) => pool.feed({ type: 'scale', workers: Number(workers), actor: 'api' }),
  stop: (pool, _, fields) => pool.feed(asInput('stop', { actor: 'api', ...fields })),
  upgrade: (pool, _, fields) => pool.feed(asInput('upgrade', { actor: 'api', execPath: null, ...fields })),
  hook: (pool, [how], fields) => pool.endHook({ passed: how === 'passed', ...fields }),
  drift (pool, [release]) {
    pool.drift = { [release]: driftOf(release) }
  },
  restore (pool) {
    pool.drift = {}
  },
  wait: (pool, time) => pool.wait(msOf(time)),
  next: (pool, _, fields) => void assert.ok(pool.passNextDeadline(fields), 'a deadline is left'),
  settle: (pool, [release]) => pool.settle(release ? { isHealthy: (process) => process.release === release } : {}),
  /** The worker of slot 1 crashes so often, each time as soon as it serves. */
  'crash-loop' (pool, [times]) {
    for (let death = 0; death < Number(times) && pool.rollout?.actor !== 'guard'; death++) {
      while (pool.serving()[0] === 0) assert.ok(pool.passNextDeadline())
      const [worker] = pool.serving()
      pool.feed({ type: 'worker-ready', worker })
      pool.exit(worker, { code: 1 })
    }
  }
}
for (const verb of ['pause', 'resume', 'abort', 'promote', 'retry'])
  ACTS[verb] = (pool, _, fields) => pool.feed(asInput(verb, { rollout: rolloutOf(pool), actor: 'api', ...fields }))

/**
 * Has something happen to a cluster without processes, in the words of a test: `3 exits 1`, `1,2 ready`,
 * `deploy canary hold`, `wait 5 s`, or an input by its name, with fields: `next-gone reason="it crashed"`.
 * @returns the refusal of the last input that was refused
 */
export function happen (pool: Simulation, what: string, { acts = {}, orders = {} }: Words = {}): Refusal | null {
  if (Object.hasOwn(acts, what)) return acts[what](pool) ?? null
  const [first, ...rest] = partsOf(what, ' ')
  const fields = Object.fromEntries(rest.filter(isField).map(fieldOf))
  const words = rest.filter((part) => !isField(part))
  if (/^[\d,]+$/.test(first)) {
    const refusals = first.split(',').map((worker) => happenTo(pool, Number(worker), words, fields))
    return refusals.findLast(Boolean) ?? null
  }
  if (['deploy', 'restart', 'rollback'].includes(first))
    return pool.feed(orderOf(first, words, fields, { ...ORDERS, ...orders }))
  return Object.hasOwn(ACTS, first) ? ACTS[first](pool, words, fields) ?? null : pool.feed(asInput(first, fields))
}

function happenTo (pool: Simulation, worker: number, [verb, ...words]: string[], fields: Fields): Refusal | null
  | void
{
  if (verb === 'exits') return pool.exit(worker, { ...exitOf(words[0]), ...fields })
  if (verb === 'boots') return pool.becomeReady(worker)
  if (verb === 'ends') {
    pool.feed({ type: 'worker-drained', worker })
    return pool.exit(worker, { code: 0 })
  }
  return pool.feed(asInput(`worker-${verb}`, { worker, ...OF_WORKERS[verb]?.(words, fields), ...fields }))
}

/** `names`: of a rollback, first the release that it goes to */
function orderOf (kind: string, names: string[], fields: Fields, known: Record<string, Fields>): Fed {
  const release = kind === 'deploy' ? NEW_RELEASE : kind === 'rollback' ? { ...NEW_RELEASE, id: names[0] } : undefined
  const parts = names.slice(kind === 'rollback' ? 1 : 0).map((name) =>
    known[name] ?? assert.fail(`nothing is known of ${name}`)
  )
  return asInput('rollout', { kind, actor: 'api', release, ...fields, ...Object.assign({}, ...parts),
    strategy: Object.assign({}, ...parts.map(({ strategy }) => strategy)) })
}

function rolloutOf (pool: Simulation): number {
  return pool.state.rollout?.id ?? pool.last('rollout.started')?.rollout ?? 1
}

function exitOf (how: string) {
  if (how === 'unseen') return {}
  return how.startsWith('SIG') ? { signal: how } : { code: Number(how) }
}

/** The first file of a release was changed. */
function driftOf (release: string): Drift {
  return { kind: 'code', count: 1, files: [`/srv/${release}/app.js`], since: null, by: null }
}

function asInput (type: string, fields: Fields): Fed {
  return { type, ...fields } as Fed
}

/** `text`: parts with a separator between, which may also be within quotes, brackets and braces */
export function partsOf (text: string, separator: string): string[] {
  const parts = ['']
  let depth = 0
  let isQuoted = false
  for (const char of text.trim()) {
    if (char === '"') isQuoted = !isQuoted
    if (!isQuoted) depth += '[{'.includes(char) ? 1 : ']}'.includes(char) ? -1 : 0
    if (char === separator && !isQuoted && depth === 0) parts.push('')
    else parts[parts.length - 1] += char
  }
  return parts.map((part) => part.trim()).filter((part) => part !== '' || separator === '|')
}

export function isField (part: string): boolean {
  return /^[\w.]+=./.test(part)
}

export function fieldOf (part: string): [string, unknown] {
  const at = part.indexOf('=')
  return [part.slice(0, at), plainOf(part.slice(at + 1))]
}

function plainOf (text: string): unknown {
  return attempt(() => JSON.parse(text), text)
}

export function msOf ([number, unit]: string[]): number {
  const ms = { ms: 1, s: 1000, min: 60_000, h: 3_600_000 }[unit] ?? assert.fail(`${unit} is no unit of time`)
  return Number(number) * ms
}
