import { DeckError } from '../errors.ts'
import { durationText } from '../lifecycle/duration.ts'
import { runtimeOf } from '../lifecycle/state.ts'
import type { OpenRequest } from '../../workers/request-list.ts'
import type { Cluster } from './cluster.ts'

/** A page may take this long to load. */
const PATIENCE_MS = 2000
const MAX_REQUESTS = 100
const MAX_METHOD_CHARS = 20
const MAX_PATH_CHARS = 500

/** `items`: the oldest */
type OpenRequests = { items: OpenRequest[], total: number }

/** Asks workers for their requests in flight, each once at a time, however many callers wait. */
export function createOpenRequests (cluster: Cluster, patienceMs: number = PATIENCE_MS) {
  /** by worker */
  const asked: Map<number,
    { id: number, answered: Promise<OpenRequests | DeckError>, end: (answer: OpenRequests | DeckError) => void }> =
      new Map()
  let lastId = 0
  cluster.on('left', (worker) => asked.get(worker)?.end(new DeckError('not-found', `worker ${worker} has ended`)))

  return {
    /** `id`: a worker's @throws {DeckError} not-found, not-possible */
    async ask (id: number): Promise<OpenRequests> {
      const worker = cluster.state.workers[id]
      if (!worker) throw new DeckError('not-found', `No worker ${id} is alive`)
      if (runtimeOf(cluster.state, worker.release) === 'other')
        throw new DeckError('not-possible', `worker ${id} is no Node.js process, so its open requests are not known`)
      if (worker.orphan) throw new DeckError('not-possible', `worker ${id} belongs to another master`)
      if (worker.state === 'unresponsive') throw new DeckError('not-possible', `worker ${id} is unresponsive`)
      const answer = await (asked.get(id) ?? askWorker(id)).answered
      if (answer instanceof DeckError) throw answer
      return answer
    },

    /** `answer`: untrusted @throws {TypeError} */
    answered (worker: number, { id, requests, total }: { id: number, requests: unknown, total?: unknown }) {
      const question = asked.get(worker)
      if (!question || question.id !== id) return
      const items = checkRequests(requests)
      question.end({ items, total: Number.isSafeInteger(total) ? Math.max(Number(total), items.length) : items.length })
    }
  }

  function askWorker (worker: number) {
    const id = ++lastId
    const { promise: reached, resolve: reach }: PromiseWithResolvers<OpenRequests | DeckError> = Promise.withResolvers()
    const timer = setTimeout(() => {
      endQuestion(new DeckError('not-possible', `worker ${worker} did not answer within ${durationText(patienceMs)}`))
    }, patienceMs).unref()
    asked.set(worker, { id, answered: reached, end: endQuestion })
    cluster.tell(worker, { type: 'list-requests', id })
    return { answered: reached }

    function endQuestion (answer: OpenRequests | DeckError) {
      clearTimeout(timer)
      asked.delete(worker)
      reach(answer)
    }
  }
}

/** `requests`: untrusted @throws {TypeError} */
export function checkRequests (requests: unknown): OpenRequest[] {
  if (!Array.isArray(requests)) throw new TypeError(`requests: expected a list, received ${typeof requests}`)
  return requests.slice(0, MAX_REQUESTS).map((request) => {
    const { method, path, ageMs, isHanging } = Object(request)
    return { method: String(method).slice(0, MAX_METHOD_CHARS), path: String(path).slice(0, MAX_PATH_CHARS),
      ageMs: Number.isFinite(ageMs) ? Math.max(0, Math.round(ageMs)) : 0, ...(isHanging === true && { isHanging }) }
  })
}
