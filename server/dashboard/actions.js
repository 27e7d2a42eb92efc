import { Router, urlencoded } from 'express'
import { z } from 'zod'
import { cutEndlessBody } from '../api/body.js'
import { changeOfAlert } from '../api/alerts.js'
import { ASSIGNEE, changeOfAssignee, NOTE_TEXT } from '../api/crashes.js'
import { changeOfScale } from '../api/cluster.js'
import { requireRole } from '../api/endpoint.js'
import { parseBody } from '../api/input.js'
import { checkSeen, doerOf, lastOf } from '../api/preconditions.js'
import { changeOfRollouts, lastRollout } from '../api/rollouts.js'
import { ALERT, ALERT_CHANGES, ALERT_ID } from '../config/alert.js'
import { ID } from '../config/id.js'
import { MESSAGE_ORDER } from '../config/orders.js'
import { RELEASE_ID } from '../config/release-id.js'
import { STEERING } from '../config/steering.js'
import { textOfValue, valueFromText } from '../config/value-text.js'
import { DeckError } from '../errors.js'
import { alertOfForm, changesOfForm } from './alert-form.js'
import { permitSwitch, switchDeck } from './decks.js'
import { FLEET_ACTIONS } from './fleet-orders.js'
import { isAtLoopback } from './page-address.js'
import { isFormOfPage, pageBefore } from './page-router.js'
import { powersOf } from './powers.js'
import { commitOfForm, strategyOfForm } from './strategy-form.js'

/**
 * The forms of the dashboard post to these actions.
 * @typedef {Pick<
 *   import('../deck.js').Deck,
 *   'dispatch' | 'snapshot' | 'deploy' | 'deployCommit' | 'notices' | 'alerts' | 'jobs' | 'send' | 'settings' | 'configure' | 'diagnostics' | 'crashes' | 'status' |
 *   'events' | 'others' | 'fleet'
 * >} Deck
 * @typedef {(deck: Deck, body: Record<string, unknown>, actor: string, asker: Asker) => unknown} Action
 * An action that returns a URL, or the path of a page, sends the browser there.
 * @typedef {Pick<import('../../db/history.js').History, 'page' | 'rollouts'>} History
 * @typedef {{ auth: import('../api/roles.js').Auth, history: History, isAtLoopback: boolean, now: number }} Asker  `isAtLoopback`: see isAtLoopback()
 */

const readForm = urlencoded({ extended: false, limit: '16kb' })
const MAX_WORKERS = 256
const MAX_NOTE_CHARS = 500
const MAX_VALUE_CHARS = 2000

const RUN_EXPECTED = 'run: expected the id of a run'
const GROUP_EXPECTED = 'crash: expected the id of a crash group'
const NUMBER = z.string().regex(ID).transform(Number)
const LOOK = z.enum(['cpu-profile', 'heap-snapshot'])
const SECONDS = z.string().regex(/^\d{1,2}$/).transform(Number).pipe(z.number().min(1).max(60))
const RELEASE_NAME = z.string().regex(RELEASE_ID)
const DECK_ID = z.string().regex(/^[\da-f]{16}$/)
const JSON_TEXT = z.string().transform(parseJson)
const WORKER_COUNT = z.string().regex(/^\d{1,4}$/).transform(Number).pipe(z.number().min(1).max(MAX_WORKERS))

/** @type {Readonly<Record<string, Action>>} by name */
export const ACTIONS = {
  restart (deck, { seen }, actor, { history }) {
    checkRollouts(deck, history, seen)
    deck.dispatch({ type: 'rollout', kind: 'restart', actor, client: 'dashboard' })
  },
  deploy: startDeploy,
  rollback: startRollback,
  ...Object.fromEntries(STEERING.map((type) => [`${type}-rollout`, steeringAction(type)])),
  scale (deck, { workers: wanted, seen }, actor, { history }) {
    const workers = parseField(WORKER_COUNT, wanted, `workers: expected an integer from 1 to ${MAX_WORKERS}`)
    const { desiredWorkers } = deck.snapshot()
    checkSeen(seen, desiredWorkers, () => `${changeOfScale(history, desiredWorkers)}; you were shown ${seen}`)
    deck.dispatch({ type: 'scale', workers, actor })
  },
  'restart-worker': (deck, { worker }, actor) => deck.dispatch({
    type: 'restart-worker', worker: parseField(NUMBER, worker, 'worker: expected the id of a worker'), actor, client: 'dashboard'
  }),
  'kill-worker': (deck, { worker }, actor) => deck.dispatch({
    type: 'kill-worker', worker: parseField(NUMBER, worker, 'worker: expected the id of a worker'), actor
  }),
  'end-connections': (deck, { worker }, actor) => deck.dispatch({
    type: 'end-connections', worker: parseField(NUMBER, worker, 'worker: expected the id of a worker'), actor
  }),
  diagnose: (deck, { worker, kind, seconds }, actor) => deck.diagnostics.start({
    worker: parseField(NUMBER, worker, 'worker: expected the id of a worker'),
    kind: parseField(LOOK, kind, 'kind: expected cpu-profile or heap-snapshot'),
    ...(seconds === undefined ? {} : { durationMs: 1000 * parseField(SECONDS, seconds, 'seconds: expected an integer from 1 to 60') }),
    actor
  }),
  acknowledge: (deck, { notice }, actor) => deck.notices.acknowledge(parseField(NUMBER, notice, 'notice: expected the id of a notice'), actor),
  'add-alert': (deck, fields, actor) => {
    const id = deck.alerts.add({ wanted: parseBody(ALERT, alertOfForm(fields)), actor })
    deck.alerts.test({ id, actor })
    return '/alerts'
  },
  'change-alert': (deck, { alert, seen, ...fields }, actor, { history }) => {
    const id = alertId(alert)
    checkSeen(seen, deck.alerts.digest(id), () => changeOfAlert(history, id))
    deck.alerts.change({ id, changes: parseBody(ALERT_CHANGES, changesOfForm(fields)), actor })
    return '/alerts'
  },
  'pause-alert': (deck, { alert }, actor) => deck.alerts.change({ id: alertId(alert), changes: { isPaused: true }, actor }),
  'resume-alert': (deck, { alert }, actor) => deck.alerts.change({ id: alertId(alert), changes: { isPaused: false }, actor }),
  'delete-alert': (deck, { alert, seen }, actor, { history }) => {
    const id = alertId(alert)
    checkSeen(seen, deck.alerts.digest(id), () => changeOfAlert(history, id))
    deck.alerts.delete({ id, actor })
  },
  'test-alert': (deck, { alert }, actor) => { deck.alerts.test({ id: alertId(alert), actor }) },
  'retry-delivery': (deck, { alert, delivery }, actor) => { deck.alerts.retry({ id: alertId(alert), delivery: parseField(NUMBER, delivery, 'delivery: expected the id of a delivery'), actor }) },
  'run-job': (deck, { job }, actor) => deck.jobs.runNow(String(job), { actor }),
  'end-run': (deck, { run }, actor) => deck.jobs.end(parseField(NUMBER, run, RUN_EXPECTED), { actor }),
  'acknowledge-job': (deck, { job }, actor) => deck.jobs.acknowledge(String(job), actor),
  'pause-job': (deck, { job }, actor) => deck.jobs.pause(String(job), actor),
  'resume-job': (deck, { job }, actor) => deck.jobs.resume(String(job), actor),
  'settle-crashes': settleCrashes,
  'assign-crash': (deck, { crash, assignee, seen }, actor, { history }) => {
    const name = assignee ? parseField(ASSIGNEE, assignee, `assignee: expected ${ASSIGNEE.description}`) : null
    const id = parseField(NUMBER, crash, GROUP_EXPECTED)
    const now = deck.crashes.group(id).assignee
    checkSeen(seen, now ?? '', () => changeOfAssignee(history, id, now))
    deck.crashes.assign(id, name, actor)
  },
  'note-crash': (deck, { crash, text }, actor) => deck.crashes.addNote(
    parseField(NUMBER, crash, GROUP_EXPECTED), parseField(NOTE_TEXT, text, `text: expected ${NOTE_TEXT.description}`), actor
  ),
  'remove-crash-note': (deck, { crash, note }, actor) => deck.crashes.removeNote(
    parseField(NUMBER, crash, GROUP_EXPECTED), parseField(NUMBER, note, 'note: expected the id of a note'), actor
  ),
  ...FLEET_ACTIONS,
  message: sendMessage,
  configure: changeSetting,
  switch (deck, { deck: id }, _actor, asker) {
    permitSwitch(powersOf(asker.auth))
    return switchDeck({ deck, id: parseField(DECK_ID, id, 'deck: expected the id of a deck'), ...asker })
  }
}

const ADMIN_ACTIONS = ['configure', 'switch', 'add-alert', 'change-alert', 'pause-alert', 'resume-alert', 'delete-alert']

/** @param {string} action @returns {import('../api/roles.js').Role} the lowest role that may use it */
export function roleOf (action) {
  return ADMIN_ACTIONS.includes(action) ? 'admin' : 'operator'
}

/** @param {{ deck: Deck, history: History, basePath: string, now: () => number }} parts */
export function actionsRouter ({ deck, history, basePath, now }) {
  const router = Router()
  router.post('/actions/:name', requireSession, readFields, async (req, res, next) => {
    const name = String(req.params.name)
    if (!Object.hasOwn(ACTIONS, name)) return next()
    const { auth } = req
    requireRole(auth, roleOf(name))
    const outcome = await ACTIONS[name](deck, req.body ?? {}, auth.actor, { auth, history, isAtLoopback: isAtLoopback(req), now: now() })
    // htmx redirects by a script, as the policy of our pages lets no form lead elsewhere.
    if (outcome instanceof URL) res.set('HX-Redirect', outcome.href)
    if (typeof outcome === 'string') res.set('HX-Redirect', basePath + outcome)
    // There is nothing to swap: the live page shows the result. Without JavaScript the page is loaded anew.
    if (isFormOfPage(req)) res.redirect(303, typeof outcome === 'string' ? basePath + outcome : pageBefore(req))
    else res.status(204).end()
  })
  return router
}

/** @param {import('../config/steering.js').Steering} type @returns {(deck: Deck, body: Record<string, unknown>, actor: string) => unknown} */
function steeringAction (type) {
  return (deck, { rollout }, actor) => deck.dispatch({ type, rollout: parseField(NUMBER, rollout, 'rollout: expected the id of a rollout'), actor })
}

/**
 * Deploys the code on the disk, or a commit: the output of its build is followed on the page of its run.
 * @param {Deck} deck @param {Record<string, unknown>} body @param {string} actor @param {Asker} asker
 */
async function startDeploy (deck, { note, seen, ...fields }, actor, { history }) {
  checkRollouts(deck, history, seen)
  const commit = commitOfForm(fields)
  const order = { ...optionalNote(note), ...strategyOfForm(fields), actor, client: /** @type {const} */ ('dashboard') }
  if (commit.git === undefined) {
    await deck.deploy(order)
    return
  }
  const { id } = await deck.deployCommit({ ...order, ...commit, git: commit.git })
  return `/jobs/runs/${id}`
}

/** Takes one group or several. @param {Deck} deck @param {Record<string, unknown>} body @param {string} actor */
function settleCrashes (deck, { crash, action }, actor) {
  const groups = [crash ?? []].flat()
  if (groups.length === 0) throw new DeckError('invalid-body', 'crash: expected at least one crash group, received none')
  const name = parseField(z.enum(['resolve', 'mute', 'reopen']), action, 'action: expected resolve, mute or reopen')
  deck.crashes.actOnAll(groups.map((group) => parseField(NUMBER, group, GROUP_EXPECTED)), name, actor)
}

/** @param {Deck} deck @param {Record<string, unknown>} body `from`: the release that its sender saw running @param {string} actor @param {Asker} asker */
function startRollback (deck, { release, from, note }, actor, { history }) {
  const order = { release: parseField(RELEASE_NAME, release, 'release: expected a release such as r12'), ...optionalNote(note) }
  const seen = parseField(RELEASE_NAME.optional(), from, 'from: expected a release such as r12')
  const current = deck.snapshot().release.id
  if (seen !== undefined && seen !== current) {
    throw new DeckError('precondition-failed', `${changeOfRollouts(history)}: ${current} is now running, not ${seen}. Check again what a rollback to ${order.release} changes`)
  }
  deck.dispatch({ type: 'rollout', kind: 'rollback', ...order, actor, client: 'dashboard' })
}

/** An empty field means no data, or all workers. @param {Deck} deck @param {Record<string, unknown>} body @param {string} actor */
function sendMessage (deck, { type, data, worker }, actor) {
  const order = parseBody(MESSAGE_ORDER, { type, ...(data ? { data: parseField(JSON_TEXT, data, 'data: expected JSON') } : {}) })
  const { workers } = deck.send({
    type: order.type, data: order.data, actor, ...(worker ? { worker: parseField(NUMBER, worker, 'worker: expected the id of a worker') } : {})
  })
  if (workers.length === 0) throw new DeckError('not-possible', 'No worker is ready to receive a message')
}

/**
 * Refuses if this setting was changed meanwhile; others do not matter.
 * @param {Deck} deck @param {Record<string, unknown>} body `tag`: of all settings that its sender has seen; `seen`: the value of this one
 * @param {string} actor @param {Asker} asker
 */
function changeSetting (deck, { name, value, tag, seen = '' }, actor, { history }) {
  const option = parseField(z.string().min(1), name, 'name: expected an option')
  const text = parseField(z.string().max(MAX_VALUE_CHARS), value, `value: expected at most ${MAX_VALUE_CHARS} characters`)
  const now = deck.settings.list().find((setting) => setting.name === option)?.value ?? null
  if (tag !== deck.settings.digest()) checkSeen(seen, now === null ? '' : textOfValue(now), () => `${changeOfSetting(history, option)}; you were shown ${seen}`)
  deck.configure({ wanted: { [option]: valueFromText(text) }, actor })
}

/**
 * While another rollout runs, nobody is asked to confirm, as that would be refused again.
 * @param {Deck} deck @param {History} history @param {unknown} seen  the newest rollout that the form knew of
 */
function checkRollouts (deck, history, seen) {
  const [last, running] = [lastRollout(deck, history), deck.snapshot().rollout]
  if (running && seen !== undefined && seen !== String(last)) throw new DeckError('rollout-running', changeOfRollouts(history), { details: { rollout: running.id } })
  checkSeen(seen, last, () => changeOfRollouts(history))
}

/** @param {Asker['history']} history @param {string} option */
function changeOfSetting (history, option) {
  const event = lastOf(history, ['config.changed'])
  const change = event?.detail?.changes?.find((/** @type {{ name: string }} */ { name }) => name === option)
  return change ? `${doerOf(event)} has set it to ${textOfValue(change.to)} since you opened this` : 'Somebody has changed it since you opened this'
}

/** @param {import('express').Request} req @param {import('express').Response} res @param {import('express').NextFunction} next */
export function readFields (req, res, next) {
  readForm(cutEndlessBody(req), res, next)
}

/** Forms are for browser sessions alone: scripts have the API, which describes what it does. */
export function requireSession (/** @type {import('express').Request} */ req, /** @type {unknown} */ res, /** @type {() => void} */ next) {
  if (req.auth?.via !== 'session') throw new DeckError('forbidden', 'Dashboard actions require a session; scripts use /api/v1')
  next()
}

/** @param {unknown} value */
function alertId (value) {
  return parseField(ALERT_ID, value, `alert: expected ${ALERT_ID.description}`)
}

function optionalNote (/** @type {unknown} */ note) {
  const text = parseField(z.string().trim().max(MAX_NOTE_CHARS).optional(), note, `note: expected at most ${MAX_NOTE_CHARS} characters`)
  return text ? { note: text } : {}
}

/**
 * @template T
 * @param {import('zod').ZodType<T>} schema @param {unknown} value @param {string} expectation
 * @returns {T}
 */
export function parseField (schema, value, expectation) {
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
