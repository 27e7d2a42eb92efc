import { oneLine } from '../system/one-line.ts'
import { createUnanswered, isRecord } from './unanswered.ts'
import type { Cluster } from './cluster.ts'

const MAX_TOLD = 10
const WINDOW_MS = 1000
/** An endless flood is reported from time to time. */
const MAX_WINDOWS = 60
const MAX_TYPE_CHARS = 100

/**
 * The messages of one worker since it was last quiet.
 * `told`: in this window; `leftOutBefore`: until this window began
 */
type Flow = { told: number, leftOut: number, leftOutBefore: number, windows: number, timer: NodeJS.Timeout | undefined }

const MAX_CHARS = 2000
/** Beyond this depth JSON.stringify() could run out of stack when the value is stored. */
const MAX_DEPTH = 8

/** A number, a brace or a comma counts as this many characters. */
const CHARS_OF_OTHERS = 8

/**
 * Messages of the app by `process.send({ type, data })` become events, up to a limit a second and worker. The others
 * are only counted, and reported in one event when the flood is over. A message of another shape is meant for a primary
 * of the app's own.
 */
export function createAppMessages (cluster: Cluster) {
  /** by worker */
  const flows: Map<number, Flow> = new Map()
  const isForPrimary = createUnanswered({
    tell: (worker, message, detail) => publishForWorker('worker.unanswered', worker, message, detail)
  })
  cluster.on('left', (worker) => {
    const flow = flows.get(worker)
    if (flow) endFlow(worker, flow)
  })

  return function hear (worker: number, message: unknown) {
    if (!isRecord(message) || isForPrimary(worker, message) || typeof message.type !== 'string') return
    const flow = flows.get(worker) ?? beginFlow(worker)
    if (flow.told === MAX_TOLD) {
      flow.leftOut++
      return
    }
    flow.told++
    const type = message.type.slice(0, MAX_TYPE_CHARS)
    publishForWorker('worker.message', worker, oneLine(type), { type, data: excerpt(message.data ?? null) })
  }

  function beginFlow (worker: number) {
    const flow: Flow = { told: 0, leftOut: 0, leftOutBefore: 0, windows: 0, timer: undefined }
    flows.set(worker, flow)
    openWindow(worker, flow)
    return flow
  }

  function openWindow (worker: number, flow: Flow) {
    flow.told = 0
    flow.windows++
    flow.leftOutBefore = flow.leftOut
    flow.timer = setTimeout(closeWindow, WINDOW_MS, worker, flow)
    flow.timer.unref()
  }

  function closeWindow (worker: number, flow: Flow) {
    if (flow.leftOut > flow.leftOutBefore && flow.windows < MAX_WINDOWS) openWindow(worker, flow)
    else endFlow(worker, flow)
  }

  function endFlow (worker: number, { leftOut, timer }: Flow) {
    clearTimeout(timer)
    flows.delete(worker)
    if (leftOut === 0) return
    const what = leftOut === 1 ? 'message was' : 'messages were'
    publishForWorker('worker.message', worker, `${leftOut.toLocaleString('en-US')} more ${what} left out`, { leftOut })
  }

  function publishForWorker (type: 'worker.message' | 'worker.unanswered', worker: number, message: string,
    detail: Record<string, unknown>)
  {
    const { slot = null, pid = null, release = null } = cluster.state.workers[worker] ?? {}
    cluster.events.publish({ type, worker, slot, pid, release, message, detail })
  }
}

/**
 * Copies the part of a value that is worth keeping; `…` stands for the rest, which is never looked at. `value`: as
 * JSON.parse() has made it. Returns a copy.
 */
export function excerpt (value: unknown): unknown {
  let room = MAX_CHARS
  return takeValue(value, 0)

  function takeValue (value: unknown, depth: number): unknown {
    if (typeof value === 'string') return takeText(value)
    room -= CHARS_OF_OTHERS
    if (!isRecord(value)) return value
    if (depth === MAX_DEPTH) return '…'
    return Array.isArray(value) ? takeList(value, depth + 1) : takeObject(value, depth + 1)
  }

  function takeText (text: string) {
    const kept = text.slice(0, Math.max(0, room))
    room -= kept.length + CHARS_OF_OTHERS
    return kept.length < text.length ? `${kept}…` : text
  }

  function takeList (list: unknown[], depth: number) {
    const kept = []
    for (const item of list) {
      if (room <= 0) return [...kept, '…']
      kept.push(takeValue(item, depth))
    }
    return kept
  }

  function takeObject (object: Record<string, unknown>, depth: number) {
    const kept: [string, unknown][] = []
    for (const name in object) {
      if (room <= 0) return Object.fromEntries([...kept, ['…', '…']])
      kept.push([takeText(name), takeValue(object[name], depth)])
    }
    return Object.fromEntries(kept)
  }
}
