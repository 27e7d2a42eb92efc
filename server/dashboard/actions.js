import { Router, urlencoded } from 'express'
import { z } from 'zod'
import { cutEndlessBody } from '../api/body.js'
import { ASSIGNEE, NOTE_TEXT } from '../api/crashes.js'
import { permit } from '../api/endpoint.js'
import { parseBody } from '../api/input.js'
import { ID } from '../config/id.js'
import { MESSAGE_ORDER } from '../config/orders.js'
import { RELEASE_ID } from '../config/release-id.js'
import { STEERING } from '../config/steering.js'
import { valueFromText } from '../config/value-text.js'
import { DeckError } from '../errors.js'
import { permitSwitch, switchDeck } from './decks.js'
import { FLEET_ACTIONS } from './fleet-orders.js'
import { isAtLoopback } from './page-address.js'
import { powersOf } from './powers.js'

/**
 * What the forms of the dashboard ask for.
 * @typedef {Pick<import('../deck.js').Deck, 'dispatch' | 'snapshot' | 'deploy' | 'notices' | 'webhooks' | 'send' | 'settings' | 'configure' | 'diagnostics' | 'crashes' | 'status' | 'events' | 'others' | 'fleet'>} Deck
 * @typedef {{ auth: import('../admin/guard.js').Auth, isAtLoopback: boolean, now: number }} Asker  `isAtLoopback`: see isAtLoopback()
 */

const readFields = urlencoded({ extended: false, limit: '16kb' })
const MAX_WORKERS = 256
const MAX_NOTE_CHARS = 500
const MAX_VALUE_CHARS = 2000

const WEBHOOK_EXPECTED = 'webhook: expected the id of a webhook'
const GROUP_EXPECTED = 'crash: expected the id of a crash group'
const NUMBER = z.string().regex(ID).transform(Number)
const LOOK = z.enum(['cpu-profile', 'heap-snapshot'])
const SECONDS = z.string().regex(/^\d{1,2}$/).transform(Number).pipe(z.number().min(1).max(60))
const RELEASE_NAME = z.string().regex(RELEASE_ID)
const DECK_ID = z.string().regex(/^[\da-f]{16}$/)
const JSON_TEXT = z.string().transform(parseJson)
const WORKER_COUNT = z.string().regex(/^\d{1,4}$/).transform(Number).pipe(z.number().min(1).max(MAX_WORKERS))

/** @type {Readonly<Record<string, (deck: Deck, body: Record<string, unknown>, actor: string, asker: Asker) => unknown>>} what a form may ask for; a URL leads the browser there */
export const ACTIONS = {
  restart: (deck, _body, actor) => deck.dispatch({ type: 'rollout', kind: 'restart', actor, client: 'dashboard' }),
  deploy: (deck, { note }, actor) => deck.deploy({ ...optionalNote(note), actor, client: 'dashboard' }),
  rollback,
  ...Object.fromEntries(STEERING.map((type) => [`${type}-rollout`, steering(type)])),
  scale: (deck, { workers }, actor) => deck.dispatch({
    type: 'scale', workers: checked(WORKER_COUNT, workers, `workers: expected an integer from 1 to ${MAX_WORKERS}`), actor
  }),
  'restart-worker': (deck, { worker }, actor) => deck.dispatch({
    type: 'restart-worker', worker: checked(NUMBER, worker, 'worker: expected the id of a worker'), actor, client: 'dashboard'
  }),
  'kill-worker': (deck, { worker }, actor) => deck.dispatch({
    type: 'kill-worker', worker: checked(NUMBER, worker, 'worker: expected the id of a worker'), actor
  }),
  diagnose: (deck, { worker, kind, seconds }, actor) => deck.diagnostics.start({
    worker: checked(NUMBER, worker, 'worker: expected the id of a worker'),
    kind: checked(LOOK, kind, 'kind: expected cpu-profile or heap-snapshot'),
    ...(seconds === undefined ? {} : { durationMs: 1000 * checked(SECONDS, seconds, 'seconds: expected an integer from 1 to 60') }),
    actor
  }),
  acknowledge: (deck, { notice }, actor) => deck.notices.acknowledge(checked(NUMBER, notice, 'notice: expected the id of a notice'), actor),
  'test-webhook': (deck, { webhook }, actor) => deck.webhooks.test({ id: checked(NUMBER, webhook, WEBHOOK_EXPECTED), actor }),
  'retry-delivery': (deck, { webhook, delivery }, actor) => deck.webhooks.retry({
    id: checked(NUMBER, webhook, WEBHOOK_EXPECTED), delivery: checked(NUMBER, delivery, 'delivery: expected the id of a delivery'), actor
  }),
  'settle-crashes': settleCrashes,
  'assign-crash': (deck, { crash, assignee }, actor) => {
    const name = assignee ? checked(ASSIGNEE, assignee, `assignee: expected ${ASSIGNEE.description}`) : null
    return deck.crashes.assign(checked(NUMBER, crash, GROUP_EXPECTED), name, actor)
  },
  'note-crash': (deck, { crash, text }, actor) => deck.crashes.addNote(
    checked(NUMBER, crash, GROUP_EXPECTED), checked(NOTE_TEXT, text, `text: expected ${NOTE_TEXT.description}`), actor
  ),
  'remove-crash-note': (deck, { crash, note }, actor) => deck.crashes.removeNote(
    checked(NUMBER, crash, GROUP_EXPECTED), checked(NUMBER, note, 'note: expected the id of a note'), actor
  ),
  ...FLEET_ACTIONS,
  message,
  configure,
  switch (deck, { deck: id }, _actor, asker) {
    permitSwitch(powersOf(asker.auth))
    return switchDeck({ deck, id: checked(DECK_ID, id, 'deck: expected the id of a deck'), ...asker })
  }
}

/** @param {string} action @returns {import('../api/roles.js').Role} who may ask for it */
export function roleOf (action) {
  return ['configure', 'switch'].includes(action) ? 'admin' : 'operator'
}

/** @param {{ deck: Deck, now: () => number }} parts */
export function actionsRouter ({ deck, now }) {
  const router = Router()
  router.post('/actions/:name', onlyPeople, (req, res, next) => readFields(cutEndlessBody(req), res, next), async (req, res, next) => {
    const name = String(req.params.name)
    if (!Object.hasOwn(ACTIONS, name)) return next()
    permit(req.auth, roleOf(name))
    const auth = /** @type {import('../admin/guard.js').Auth} */ (req.auth)
    const outcome = await ACTIONS[name](deck, req.body ?? {}, auth.actor, { auth, isAtLoopback: isAtLoopback(req), now: now() })
    // By a script: the policy of our pages lets no form lead elsewhere.
    if (outcome instanceof URL) res.set('HX-Redirect', outcome.href)
    // Nothing to swap: the live page shows what comes of it.
    res.status(204).end()
  })
  return router
}

/** @param {import('../config/steering.js').Steering} type @returns {(deck: Deck, body: Record<string, unknown>, actor: string) => unknown} */
function steering (type) {
  return (deck, { rollout }, actor) => deck.dispatch({ type, rollout: checked(NUMBER, rollout, 'rollout: expected the id of a rollout'), actor })
}

/** One group or several. @param {Deck} deck @param {Record<string, unknown>} body @param {string} actor */
function settleCrashes (deck, { crash, action }, actor) {
  const groups = [crash ?? []].flat()
  if (groups.length === 0) throw new DeckError('invalid-body', 'crash: expected at least one crash group, received none')
  const name = checked(z.enum(['resolve', 'mute', 'reopen']), action, 'action: expected resolve, mute or reopen')
  deck.crashes.actOnAll(groups.map((group) => checked(NUMBER, group, GROUP_EXPECTED)), name, actor)
}

/** @param {Deck} deck @param {Record<string, unknown>} body `from`: what ran when its sender looked @param {string} actor */
function rollback (deck, { release, from, note }, actor) {
  const order = { release: checked(RELEASE_NAME, release, 'release: expected a release such as r12'), ...optionalNote(note) }
  const seen = checked(RELEASE_NAME.optional(), from, 'from: expected a release such as r12')
  const current = deck.snapshot().release.id
  if (seen !== undefined && seen !== current) throw new DeckError('precondition-failed', `${current} runs by now, not ${seen}: look again at what a rollback to ${order.release} changes`)
  deck.dispatch({ type: 'rollout', kind: 'rollback', ...order, actor, client: 'dashboard' })
}

/** An empty field is a message without data, or to all workers. @param {Deck} deck @param {Record<string, unknown>} body @param {string} actor */
function message (deck, { type, data, worker }, actor) {
  const order = parseBody(MESSAGE_ORDER, { type, ...(data ? { data: checked(JSON_TEXT, data, 'data: expected JSON') } : {}) })
  const { workers } = deck.send({
    type: order.type, data: order.data, actor, ...(worker ? { worker: checked(NUMBER, worker, 'worker: expected the id of a worker') } : {})
  })
  if (workers.length === 0) throw new DeckError('not-possible', 'no worker is ready to get a message')
}

/** @param {Deck} deck @param {Record<string, unknown>} body `tag`: of the settings that its sender has seen @param {string} actor */
function configure (deck, { name, value, tag }, actor) {
  const option = checked(z.string().min(1), name, 'name: expected an option')
  const text = checked(z.string().max(MAX_VALUE_CHARS), value, `value: expected at most ${MAX_VALUE_CHARS} characters`)
  if (tag !== deck.settings.digest()) throw new DeckError('precondition-failed', 'somebody has changed the settings meanwhile: look at them again first')
  deck.configure({ wanted: { [option]: valueFromText(text) }, actor })
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
