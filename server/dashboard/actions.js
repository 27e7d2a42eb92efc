import { Router, urlencoded } from 'express'
import { z } from 'zod'
import { permit } from '../api/endpoint.js'
import { parseBody } from '../api/input.js'
import { ID } from '../config/id.js'
import { MESSAGE_ORDER } from '../config/orders.js'
import { RELEASE_ID } from '../config/release-id.js'
import { STEERING } from '../config/steering.js'
import { DeckError } from '../errors.js'

/**
 * What the forms of the dashboard ask for.
 * @typedef {Pick<import('../deck.js').Deck, 'dispatch' | 'deploy' | 'webhooks' | 'send'>} Deck
 */

const MAX_WORKERS = 256
const MAX_NOTE_CHARS = 500

const WEBHOOK_EXPECTED = 'webhook: expected the id of a webhook'
const NUMBER = z.string().regex(ID).transform(Number)
const JSON_TEXT = z.string().transform(parseJson)
const WORKER_COUNT = z.string().regex(/^\d{1,4}$/).transform(Number).pipe(z.number().min(1).max(MAX_WORKERS))

/** @type {Readonly<Record<string, (deck: Deck, body: Record<string, unknown>, actor: string) => unknown>>} what a form may ask for */
export const ACTIONS = {
  restart: (deck, _body, actor) => deck.dispatch({ type: 'rollout', kind: 'restart', actor }),
  deploy: (deck, { note }, actor) => deck.deploy({ ...optionalNote(note), actor }),
  rollback: (deck, { release, note }, actor) => deck.dispatch({
    type: 'rollout',
    kind: 'rollback',
    release: checked(z.string().regex(RELEASE_ID), release, 'release: expected a release such as r12'),
    ...optionalNote(note),
    actor
  }),
  ...Object.fromEntries(STEERING.map((type) => [`${type}-rollout`, steering(type)])),
  scale: (deck, { workers }, actor) => deck.dispatch({
    type: 'scale', workers: checked(WORKER_COUNT, workers, `workers: expected an integer from 1 to ${MAX_WORKERS}`), actor
  }),
  'restart-worker': (deck, { worker }, actor) => deck.dispatch({
    type: 'restart-worker', worker: checked(NUMBER, worker, 'worker: expected the id of a worker'), actor
  }),
  'test-webhook': (deck, { webhook }, actor) => deck.webhooks.test({ id: checked(NUMBER, webhook, WEBHOOK_EXPECTED), actor }),
  'retry-delivery': (deck, { webhook, delivery }, actor) => deck.webhooks.retry({
    id: checked(NUMBER, webhook, WEBHOOK_EXPECTED), delivery: checked(NUMBER, delivery, 'delivery: expected the id of a delivery'), actor
  }),
  message
}

/** @param {{ deck: Deck }} parts */
export function actionsRouter ({ deck }) {
  const router = Router()
  router.post('/actions/:name', onlyPeople, urlencoded({ extended: false, limit: '16kb' }), async (req, res, next) => {
    const name = String(req.params.name)
    if (!Object.hasOwn(ACTIONS, name)) return next()
    permit(req.auth, 'operator')
    await ACTIONS[name](deck, req.body ?? {}, String(req.auth?.actor))
    // Nothing to swap: the live page shows what comes of it.
    res.status(204).end()
  })
  return router
}

/** @param {import('../config/steering.js').Steering} type @returns {(deck: Deck, body: Record<string, unknown>, actor: string) => unknown} */
function steering (type) {
  return (deck, { rollout }, actor) => deck.dispatch({ type, rollout: checked(NUMBER, rollout, 'rollout: expected the id of a rollout'), actor })
}

/** An empty field is a message without data, or to all workers. @param {Deck} deck @param {Record<string, unknown>} body @param {string} actor */
function message (deck, { type, data, worker }, actor) {
  const order = parseBody(MESSAGE_ORDER, { type, ...(data ? { data: checked(JSON_TEXT, data, 'data: expected JSON') } : {}) })
  const { workers } = deck.send({
    type: order.type, data: order.data, actor, ...(worker ? { worker: checked(NUMBER, worker, 'worker: expected the id of a worker') } : {})
  })
  if (workers.length === 0) throw new DeckError('not-possible', 'no worker is ready to get a message')
}

/** Forms are for the browser's session; scripts have the API, which says what it does. */
function onlyPeople (/** @type {import('express').Request} */ req, /** @type {unknown} */ res, /** @type {() => void} */ next) {
  if (req.auth?.via !== 'session') throw new DeckError('forbidden', 'Dashboard actions require a session; scripts use /api/v1')
  next()
}

function optionalNote (/** @type {unknown} */ note) {
  const text = checked(z.string().trim().max(MAX_NOTE_CHARS).optional(), note, `note: expected at most ${MAX_NOTE_CHARS} characters`)
  return text ? { note: text } : {}
}

/**
 * @template T
 * @param {import('zod').ZodType<T>} schema @param {unknown} value @param {string} expectation
 * @returns {T}
 */
function checked (schema, value, expectation) {
  const { success, data } = schema.safeParse(value)
  if (!success) throw new DeckError('invalid-body', `${expectation}, received ${JSON.stringify(String(value).slice(0, 60))}`)
  return data
}

/** @param {string} text @param {z.RefinementCtx} context @returns {unknown} */
function parseJson (text, context) {
  try {
    return JSON.parse(text)
  } catch {
    context.addIssue({ code: 'custom', message: 'unreadable' })
    return z.NEVER
  }
}
