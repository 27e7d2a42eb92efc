import { Router, urlencoded, type NextFunction, type Request, type Response } from 'express'
import { z, type ZodType } from 'zod'
import { cutEndlessBody } from '../api/body.ts'
import { changeOfAlert } from '../api/alerts.ts'
import { ASSIGNEE, changeOfAssignee, NOTE_TEXT } from '../api/crashes.ts'
import { changeOfScale } from '../api/cluster.ts'
import { requireRole } from '../api/endpoint.ts'
import { parseBody } from '../api/input.ts'
import { checkSeen, doerOf, lastOf } from '../api/preconditions.ts'
import { changeOfRollouts, lastRollout } from '../api/rollouts.ts'
import { ALERT, ALERT_CHANGES, ALERT_ID } from '../config/alert.ts'
import { ID } from '../config/id.ts'
import { MESSAGE_ORDER } from '../config/orders.ts'
import { RELEASE_ID } from '../config/release-id.ts'
import { STEERING, type Steering } from '../config/steering.ts'
import { textOfValue, valueFromText } from '../config/value-text.ts'
import { DeckError } from '../errors.ts'
import { alertOfForm, changesOfForm } from './alert-form.ts'
import { permitSwitch, switchDeck } from './decks.ts'
import { FLEET_ACTIONS } from './fleet-orders.ts'
import { isAtLoopback } from './page-address.ts'
import { isFormOfPage, pageBefore } from './page-router.ts'
import { powersOf } from './powers.ts'
import { commitOfForm, strategyOfForm } from './strategy-form.ts'
import type { Auth, Role } from '../api/roles.ts'

/** The forms of the dashboard post to these actions. */
export type Deck = Pick<import('../deck.ts').Deck,
  'dispatch' | 'snapshot' | 'deploy' | 'deployCommit' | 'notices' | 'alerts' | 'jobs' | 'send' | 'settings'
    | 'configure' | 'stored' | 'diagnostics' | 'crashes' | 'status' | 'events' | 'others' | 'fleet'>
type Action<Of = Deck> = (deck: Of, body: Record<string, unknown>, actor: string, asker: Asker) => unknown
/** An action that returns a URL, or the path of a page, sends the browser there. */
type History = Pick<import('../../db/history.ts').History, 'page' | 'rollouts'>
/** `isAtLoopback`: see isAtLoopback() */
type Asker = { auth: Auth, history: History, isAtLoopback: boolean, now: number }

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

/** What a host has, too, for all of its apps: by name. */
export const HOST_ACTIONS: Readonly<Record<string, Action<Pick<Deck, 'alerts' | 'notices'>>>> = {
  acknowledge: (deck, { notice }, actor) =>
    deck.notices.acknowledge(parseField(NUMBER, notice, 'notice: expected the id of a notice'), actor),
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
  'pause-alert': (deck, { alert }, actor) =>
    deck.alerts.change({ id: alertId(alert), changes: { isPaused: true }, actor }),
  'resume-alert': (deck, { alert }, actor) =>
    deck.alerts.change({ id: alertId(alert), changes: { isPaused: false }, actor }),
  'delete-alert': (deck, { alert, seen }, actor, { history }) => {
    const id = alertId(alert)
    checkSeen(seen, deck.alerts.digest(id), () => changeOfAlert(history, id))
    deck.alerts.delete({ id, actor })
  },
  'test-alert': (deck, { alert }, actor) => {
    deck.alerts.test({ id: alertId(alert), actor })
  },
  'retry-delivery': (deck, { alert, delivery }, actor) => {
    deck.alerts.retry({ id: alertId(alert),
      delivery: parseField(NUMBER, delivery, 'delivery: expected the id of a delivery'), actor })
  }
}

/** by name */
export const ACTIONS: Readonly<Record<string, Action>> = { restart (deck, { seen }, actor, { history }) {
  checkRollouts(deck, history, seen)
  deck.dispatch({ type: 'rollout', kind: 'restart', actor, client: 'dashboard' })
}, deploy: startDeploy, rollback: startRollback,
  ...Object.fromEntries(STEERING.map((type) => [`${type}-rollout`, steeringAction(type)])),
  async scale (deck, { workers: wanted, seen }, actor, { history }) {
    const workers = parseField(WORKER_COUNT, wanted, `workers: expected an integer from 1 to ${MAX_WORKERS}`)
    const { desiredWorkers } = deck.snapshot()
    checkSeen(seen, desiredWorkers, () => `${changeOfScale(history, desiredWorkers)}; you were shown ${seen}`)
    deck.dispatch({ type: 'scale', workers, actor })
    await deck.stored()
  },
  'restart-worker': (deck, { worker }, actor) =>
    deck.dispatch({ type: 'restart-worker', worker: parseField(NUMBER, worker, 'worker: expected the id of a worker'),
      actor, client: 'dashboard' }),
  'kill-worker': (deck, { worker }, actor) =>
    deck.dispatch({ type: 'kill-worker', worker: parseField(NUMBER, worker, 'worker: expected the id of a worker'),
      actor }),
  'end-connections': (deck, { worker }, actor) =>
    deck.dispatch({ type: 'end-connections', worker: parseField(NUMBER, worker, 'worker: expected the id of a worker'),
      actor }),
  diagnose: (deck, { worker, kind, seconds }, actor) =>
    deck.diagnostics.start({ worker: parseField(NUMBER, worker, 'worker: expected the id of a worker'),
      kind: parseField(LOOK, kind, 'kind: expected cpu-profile or heap-snapshot'), ...(seconds === undefined
        ? {}
        : { durationMs: 1000 * parseField(SECONDS, seconds, 'seconds: expected an integer from 1 to 60') }), actor }),
  ...HOST_ACTIONS, 'run-job': (deck, { job }, actor) => deck.jobs.runNow(String(job), { actor }),
  'end-run': (deck, { run }, actor) => deck.jobs.end(parseField(NUMBER, run, RUN_EXPECTED), { actor }),
  'acknowledge-job': (deck, { job }, actor) => deck.jobs.acknowledge(String(job), actor),
  'pause-job': (deck, { job }, actor) => deck.jobs.pause(String(job), actor),
  'resume-job': (deck, { job }, actor) => deck.jobs.resume(String(job), actor), 'settle-crashes': settleCrashes,
  'assign-crash': (deck, { crash, assignee, seen }, actor, { history }) => {
    const name = assignee ? parseField(ASSIGNEE, assignee, `assignee: expected ${ASSIGNEE.description}`) : null
    const id = parseField(NUMBER, crash, GROUP_EXPECTED)
    const now = deck.crashes.group(id).assignee
    checkSeen(seen, now ?? '', () => changeOfAssignee(history, id, now))
    deck.crashes.assign(id, name, actor)
  },
  'note-crash': (deck, { crash, text }, actor) =>
    deck.crashes.addNote(parseField(NUMBER, crash, GROUP_EXPECTED),
      parseField(NOTE_TEXT, text, `text: expected ${NOTE_TEXT.description}`), actor),
  'remove-crash-note': (deck, { crash, note }, actor) =>
    deck.crashes.removeNote(parseField(NUMBER, crash, GROUP_EXPECTED),
      parseField(NUMBER, note, 'note: expected the id of a note'), actor), ...FLEET_ACTIONS, message: sendMessage,
  configure: changeSetting, switch (deck, { deck: id }, _actor, asker) {
  permitSwitch(powersOf(asker.auth))
  return switchDeck({ deck, id: parseField(DECK_ID, id, 'deck: expected the id of a deck'), ...asker })
} }

const ADMIN_ACTIONS = ['configure', 'switch', 'add-alert', 'change-alert', 'pause-alert', 'resume-alert',
  'delete-alert']

/** @returns the lowest role that may use it */
export function roleOf (action: string): Role {
  return ADMIN_ACTIONS.includes(action) ? 'admin' : 'operator'
}

/** `actions`: by name; `check`: who may do them */
export function actionsRouter<Of> (
  { deck, actions, history, basePath, now, check = () => {} }: { deck: Of,
    actions: Readonly<Record<string, Action<Of>>>, history: History, basePath: string, now: () => number,
    check?: (auth: Auth) => void }
) {
  const router = Router()
  router.post('/actions/:name', requireSession, readFields, async (req, res, next) => {
    const name = String(req.params.name)
    if (!Object.hasOwn(actions, name)) return next()
    const { auth } = req
    requireRole(auth, roleOf(name))
    check(auth)
    const outcome = await actions[name](deck, req.body ?? {}, auth.actor, { auth, history,
      isAtLoopback: isAtLoopback(req), now: now() })
    // htmx redirects by a script, as the policy of our pages lets no form lead elsewhere.
    if (outcome instanceof URL) res.set('HX-Redirect', outcome.href)
    if (typeof outcome === 'string') res.set('HX-Redirect', basePath + outcome)
    // There is nothing to swap: the live page shows the result. Without JavaScript the page is loaded anew.
    if (isFormOfPage(req)) res.redirect(303, typeof outcome === 'string' ? basePath + outcome : pageBefore(req))
    else res.status(204).end()
  })
  return router
}

function steeringAction (type: Steering): (deck: Deck, body: Record<string, unknown>, actor: string) => unknown {
  return (deck, { rollout }, actor) =>
    deck.dispatch({ type, rollout: parseField(NUMBER, rollout, 'rollout: expected the id of a rollout'), actor })
}

/** Deploys the code on the disk, or a commit: the output of its build is followed on the page of its run. */
async function startDeploy (deck: Deck, { note, seen, ...fields }: Record<string, unknown>, actor: string,
  { history }: Asker)
{
  checkRollouts(deck, history, seen)
  const commit = commitOfForm(fields)
  const order = { ...optionalNote(note), ...strategyOfForm(fields), actor, client: 'dashboard' as const }
  if (commit.git === undefined) {
    await deck.deploy(order)
    return
  }
  const { id } = await deck.deployCommit({ ...order, ...commit, git: commit.git })
  return `/jobs/runs/${id}`
}

/** Takes one group or several. */
function settleCrashes (deck: Deck, { crash, action }: Record<string, unknown>, actor: string) {
  const groups = [crash ?? []].flat()
  if (groups.length === 0)
    throw new DeckError('invalid-body', 'crash: expected at least one crash group, received none')
  const name = parseField(z.enum(['resolve', 'mute', 'reopen']), action, 'action: expected resolve, mute or reopen')
  deck.crashes.actOnAll(groups.map((group) => parseField(NUMBER, group, GROUP_EXPECTED)), name, actor)
}

/** `from`: the release that its sender saw running */
function startRollback (deck: Deck, { release, from, note }: Record<string, unknown>, actor: string,
  { history }: Asker)
{
  const order = { release: parseField(RELEASE_NAME, release, 'release: expected a release such as r12'),
    ...optionalNote(note) }
  const seen = parseField(RELEASE_NAME.optional(), from, 'from: expected a release such as r12')
  const current = deck.snapshot().release.id
  if (seen !== undefined && seen !== current) {
    throw new DeckError('precondition-failed',
      `${
        changeOfRollouts(history)
      }: ${current} is now running, not ${seen}. Check again what a rollback to ${order.release} changes`)
  }
  deck.dispatch({ type: 'rollout', kind: 'rollback', ...order, actor, client: 'dashboard' })
}

/** An empty field means no data, or all workers. */
function sendMessage (deck: Deck, { type, data, worker }: Record<string, unknown>, actor: string) {
  const order = parseBody(MESSAGE_ORDER, { type,
    ...(data ? { data: parseField(JSON_TEXT, data, 'data: expected JSON') } : {}) })
  const { workers } = deck.send({ type: order.type, data: order.data, actor,
    ...(worker ? { worker: parseField(NUMBER, worker, 'worker: expected the id of a worker') } : {}) })
  if (workers.length === 0) throw new DeckError('not-possible', 'No worker is ready to receive a message')
}

/**
 * Refuses if this setting was changed meanwhile; others do not matter.
 * @param body `tag`: of all settings that its sender has seen; `seen`: the value of this one
 */
async function changeSetting (deck: Deck, { name, value, tag, seen = '' }: Record<string, unknown>, actor: string,
  { history }: Asker)
{
  const option = parseField(z.string().min(1), name, 'name: expected an option')
  const text = parseField(z.string().max(MAX_VALUE_CHARS), value,
    `value: expected at most ${MAX_VALUE_CHARS} characters`)
  const now = deck.settings.list().find((setting) => setting.name === option)?.value ?? null
  if (tag !== deck.settings.digest())
    checkSeen(seen, now === null ? '' : textOfValue(now),
      () => `${changeOfSetting(history, option)}; you were shown ${seen}`)
  deck.configure({ wanted: { [option]: valueFromText(text) }, actor })
  await deck.stored()
}

/**
 * While another rollout runs, nobody is asked to confirm, as that would be refused again.
 * @param seen the newest rollout that the form knew of
 */
function checkRollouts (deck: Deck, history: History, seen: unknown) {
  const [last, running] = [lastRollout(deck, history), deck.snapshot().rollout]
  if (running && seen !== undefined && seen !== String(last))
    throw new DeckError('rollout-running', changeOfRollouts(history), { details: { rollout: running.id } })
  checkSeen(seen, last, () => changeOfRollouts(history))
}

function changeOfSetting (history: Asker['history'], option: string) {
  const event = lastOf(history, ['config.changed'])
  const change = event?.detail?.changes?.find(({ name }) => name === option)
  return change
    ? `${doerOf(event)} has set it to ${textOfValue(change.to)} since you opened this`
    : 'Somebody has changed it since you opened this'
}

export function readFields (req: Request, res: Response, next: NextFunction) {
  readForm(cutEndlessBody(req), res, next)
}

/** Forms are for browser sessions alone: scripts have the API, which describes what it does. */
export function requireSession (req: Request, res: unknown, next: () => void) {
  if (req.auth?.via !== 'session')
    throw new DeckError('forbidden', 'Dashboard actions require a session; scripts use /api/v1')
  next()
}

function alertId (value: unknown) {
  return parseField(ALERT_ID, value, `alert: expected ${ALERT_ID.description}`)
}

function optionalNote (note: unknown) {
  const text = parseField(z.string().trim().max(MAX_NOTE_CHARS).optional(), note,
    `note: expected at most ${MAX_NOTE_CHARS} characters`)
  return text ? { note: text } : {}
}

export function parseField<T> (schema: ZodType<T>, value: unknown, expectation: string): T {
  const { success, data } = schema.safeParse(value)
  if (!success)
    throw new DeckError('invalid-body', `${expectation}, received ${JSON.stringify(String(value).slice(0, 60))}`)
  return data
}

function parseJson (text: string, context: z.RefinementCtx): unknown {
  try {
    return JSON.parse(text)
  } catch {
    context.addIssue({ code: 'custom', message: 'unreadable' })
    return z.NEVER
  }
}
