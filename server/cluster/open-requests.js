import { DeckError } from '../errors.js'
import { durationText } from '../lifecycle/duration.js'
import { runtimeOf } from '../lifecycle/state.js'

/** A page may take this long to load. */
const PATIENCE_MS = 2000
const MAX_REQUESTS = 100
const MAX_METHOD_CHARS = 20
const MAX_PATH_CHARS = 500

/**
 * @typedef {import('../../workers/request-list.js').OpenRequest} OpenRequest
 * @typedef {{ items: OpenRequest[], total: number }} OpenRequests  `items`: the oldest
 */

/**
 * Asks workers for their requests in flight, each once at a time, however many callers wait.
 * @param {object} parts
 * @param {() => Pick<import('../lifecycle/state.js').PoolState, 'workers' | 'releases'>} parts.state
 * @param {Map<number, { tell: (message: import('../../workers/protocol.js').ToWorker) => void }>} parts.handles
 * @param {number} [parts.patienceMs]
 */
export function createOpenRequests ({ state, handles, patienceMs = PATIENCE_MS }) {
  /** @type {Map<number, { id: number, answered: Promise<OpenRequests | DeckError>, end: (answer: OpenRequests | DeckError) => void }>} by worker */
  const asked = new Map()
  let lastId = 0

  return {
    /**
     * @param {number} id a worker's
     * @returns {Promise<OpenRequests>}
     * @throws {DeckError} not-found, not-possible
     */
    async ask (id) {
      const worker = state().workers[id]
      if (!worker) throw new DeckError('not-found', `No worker ${id} is alive`)
      if (runtimeOf(state(), worker.release) === 'other') throw new DeckError('not-possible', `worker ${id} is no Node.js process, so its open requests are not known`)
      if (worker.orphan) throw new DeckError('not-possible', `worker ${id} belongs to another master`)
      if (worker.state === 'unresponsive') throw new DeckError('not-possible', `worker ${id} is unresponsive`)
      const answer = await (asked.get(id) ?? askWorker(id)).answered
      if (answer instanceof DeckError) throw answer
      return answer
    },

    /** @param {number} worker @param {{ id: number, requests: unknown, total?: unknown }} answer  untrusted @throws {TypeError} */
    answered (worker, { id, requests, total }) {
      const question = asked.get(worker)
      if (!question || question.id !== id) return
      const items = checkRequests(requests)
      question.end({ items, total: Number.isSafeInteger(total) ? Math.max(Number(total), items.length) : items.length })
    },

    /** @param {number} worker has ended */
    left (worker) {
      asked.get(worker)?.end(new DeckError('not-found', `worker ${worker} has ended`))
    }
  }

  /** @param {number} worker */
  function askWorker (worker) {
    const id = ++lastId
    /** @type {PromiseWithResolvers<OpenRequests | DeckError>} */
    const { promise: reached, resolve: reach } = Promise.withResolvers()
    const timer = setTimeout(() => {
      endQuestion(new DeckError('not-possible', `worker ${worker} did not answer within ${durationText(patienceMs)}`))
    }, patienceMs).unref()
    asked.set(worker, { id, answered: reached, end: endQuestion })
    handles.get(worker)?.tell({ type: 'list-requests', id })
    return { answered: reached }

    /** @param {OpenRequests | DeckError} answer */
    function endQuestion (answer) {
      clearTimeout(timer)
      asked.delete(worker)
      reach(answer)
    }
  }
}

/** @param {unknown} requests @returns {OpenRequest[]} */
function checkRequests (requests) {
  if (!Array.isArray(requests)) throw new TypeError(`requests: expected a list, received ${typeof requests}`)
  return requests.slice(0, MAX_REQUESTS).map((request) => {
    const { method, path, ageMs } = Object(request)
    return {
      method: String(method).slice(0, MAX_METHOD_CHARS),
      path: String(path).slice(0, MAX_PATH_CHARS),
      ageMs: Number.isFinite(ageMs) ? Math.max(0, Math.round(ageMs)) : 0
    }
  })
}
