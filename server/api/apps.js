import { z } from 'zod'
import { APP_STATES } from '../config/app-states.js'
import { DECK_NAME } from '../config/apps.js'
import { didYouMean } from '../config/nearest.js'
import { APP_ORDER } from '../config/orders.js'
import { DeckError } from '../errors.js'
import { HEALTH } from './cluster.js'
import { operation, refuseLimited } from './endpoint.js'
import { COUNT, listOf, TIME } from './fields.js'
import { mayUse } from './roles.js'

/**
 * The apps of a host.
 * @typedef {z.infer<typeof APP>} AppView
 * @typedef {z.infer<typeof APP_ORDER>} AppOrder
 * @typedef {{ actor: string }} By
 * @typedef {{ pid: number, keeperPid: number | null, version: string, nodeVersion: string, startedAt: string, folder: string, apps: number, upgrade: UpgradeView | null, upgradeFailure: { at: string, message: string } | null }} About
 * @typedef {{ startedAt: string, actor: string, note: string | null }} UpgradeView
 * @typedef {{ deck: import('../deck.js').Deck, history: import('../../db/history.js').History, run: <T>(work: () => T) => T }} OpenedApp  `run`: does work as a part of the app
 * @typedef {object} Apps  see host/apps.js
 * @property {() => AppView[]} list  by name; it asks the histories of all of them
 * @property {() => Pick<AppView, 'name' | 'state'>[]} states  by name; it asks no history
 * @property {(name: string) => AppView} view  throws not-found
 * @property {(name: string) => string | null} identity  of this very app, which no later one of its name has; null: there is none
 * @property {(name: string) => OpenedApp | null} opened  null: it is stopped or has failed
 * @property {(order: AppOrder, how: By & { isIdle?: boolean }) => Promise<AppView>} add  `isIdle`: it is not started
 * @property {(name: string, by: By) => Promise<AppView>} start
 * @property {(name: string, how: By & { atOnce?: boolean }) => Promise<AppView>} stop  `atOnce`: its workers finish nothing
 * @property {(name: string, how: By & { purge: boolean }) => Promise<AppView>} remove
 * @property {(handler: () => void) => () => void} onChange  an app was added, opened, closed or removed
 * @property {(order: By & { execPath: string | null, note: string | null }) => UpgradeView} upgradeHost
 * @property {(by: By) => void} stopHost
 * @property {{ begin: (how: By & { name?: string }) => Promise<{ view: import('./host.js').AdoptionView, path: string, secret: string }>, view: (id: number) => import('./host.js').AdoptionView }} adoptions  of decks; `view` throws not-found
 * @property {() => About} about
 * @property {() => import('../fleet/fleet.js').Fleet | null} fleet  hosts on other machines; null: it is alone, or has not joined them yet
 * @property {boolean} joinsFleet  whether it is to be in a fleet
 */

export const APP_NAME = z.string().regex(DECK_NAME).meta({ description: 'the name of an app', examples: ['shop'] })

const FIGURE = z.number().min(0).nullable()
const HEALTH_IN_WORDS = HEALTH.pick({ tone: true, text: true, hint: true })
const OUTCOME = z.strictObject({ state: z.string(), release: z.string().nullable(), finishedAt: TIME.nullable() })

export const APP = z.strictObject({
  name: APP_NAME,
  state: z.enum(APP_STATES)
    .describe('waiting: for the apps that it depends on; failed: the host cannot run it, and `reason` says why'),
  reason: z.string().nullable().describe('why it waits or has failed'),
  isRetried: z.boolean().describe('it has failed, and the host starts it again by itself'),
  entry: z.string().nullable(),
  cwd: z.string(),
  configFile: z.string().nullable(),
  dataDir: z.string().nullable(),
  path: z.string().meta({ description: 'where its pages and its API are, on this port', examples: ['/apps/shop'] }),
  startedAt: TIME.nullable(),
  health: HEALTH_IN_WORDS.nullable().describe('null: it does not run'),
  workers: z.strictObject({ ready: COUNT, desired: COUNT }).nullable(),
  cpu: FIGURE.describe('percent of a core'),
  memoryBytes: FIGURE,
  requestsPerSecond: FIGURE,
  p99Ms: FIGURE.describe('of the slowest worker'),
  restarts: COUNT.nullable().describe('how often a worker was replaced because it had died'),
  openCrashes: COUNT.nullable().describe('groups that nobody has resolved'),
  release: z.string().nullable(),
  lastDeploy: OUTCOME.nullable(),
  addresses: z.array(z.string())
}).meta({ id: 'App' })

/** What the calls that start and stop an app have in common. */
const CHANGE = /** @type {const} */ ({
  role: 'operator',
  path: { app: APP_NAME },
  status: 202,
  others: { 200: { 'application/json': APP } },
  problems: ['not-found', 'stopping'],
  answer: APP
})

/** An order has the whole environment of the shell that it comes from. */
const ORDER_LIMIT_BYTES = 1024 * 1024

/**
 * @param {{ apps: Apps }} parts
 * @returns {Record<string, import('./endpoint.js').Resource>}
 */
export function appResources ({ apps }) {
  const path = { app: APP_NAME }
  return {
    '/apps': {
      GET: operation({
        name: 'listApps',
        summary: 'Lists the apps of this host by name',
        role: 'viewer',
        answer: listOf(APP),
        handle: ({ auth }) => ({ body: { items: visibleNames(apps, auth).map((name) => apps.view(name)) } })
      }),

      POST: operation({
        name: 'addApp',
        summary: 'Adds an app to this host, or starts it anew, and does not wait until it is ready',
        description: 'The host remembers it until it is removed. An app that runs already is left as it is; the order counts from its next start.',
        role: 'admin',
        // The body names a program to run.
        byToken: 'A new app',
        query: z.strictObject({
          start: z.enum(['true', 'false']).transform((text) => text === 'true').optional()
            .meta({ description: '"false": a new app stays stopped', as: { type: 'boolean' } })
        }),
        body: APP_ORDER,
        largestBodyBytes: ORDER_LIMIT_BYTES,
        status: 201,
        location: true,
        problems: ['name-taken', 'invalid-config', 'entry-not-found', 'data-dir-unusable', 'stopping'],
        answer: APP,
        async handle ({ query: { start = true }, body, auth }) {
          refuseLimited(auth, 'adds apps')
          const app = await apps.add(body, { actor: auth.actor, isIdle: !start })
          return { headers: { Location: `/api/v1/apps/${app.name}` }, body: app }
        }
      })
    },

    '/apps/:app': {
      GET: operation({
        name: 'getApp',
        summary: 'Returns one app',
        role: 'viewer',
        path,
        problems: ['not-found'],
        answer: APP,
        handle: ({ req, auth }) => ({ body: findApp(apps, req.params.app, auth) })
      }),

      DELETE: operation({
        name: 'removeApp',
        summary: 'Stops an app and removes it from this host; its data folder stays',
        role: 'admin',
        path,
        query: z.strictObject({
          purge: z.enum(['true', 'false']).transform((text) => text === 'true').optional()
            .meta({ description: '"true": removes its data folder, too', as: { type: 'boolean' } })
        }),
        status: 202,
        problems: ['not-found', 'stopping'],
        answer: APP,
        async handle ({ req, query: { purge = false }, auth }) {
          const name = findName(apps, req.params.app, auth)
          refuseLimited(auth, 'removes apps')
          return { body: await apps.remove(name, { purge, actor: auth.actor }) }
        }
      })
    },

    '/apps/:app/start': {
      POST: operation({
        name: 'startApp',
        summary: 'Starts an app that is stopped, and does not wait until it is ready',
        ...CHANGE,
        handle: (call) => change(call, ['waiting', 'starting', 'running'], (name, by) => apps.start(name, by))
      })
    },

    '/apps/:app/stop': {
      POST: operation({
        name: 'stopApp',
        summary: 'Drains the workers of an app and stops it; it stays stopped until it is started',
        ...CHANGE,
        query: z.strictObject({
          now: z.enum(['true', 'false']).transform((text) => text === 'true').optional()
            .meta({ description: '"true": its workers finish nothing', as: { type: 'boolean' } })
        }),
        handle: (call) => change(call, ['stopped'], (name, by) => apps.stop(name, { ...by, atOnce: call.query.now }))
      })
    }
  }

  /**
   * @param {Pick<import('./endpoint.js').Call, 'req' | 'auth'>} call @param {AppView['state'][]} done  states in which there is nothing to do
   * @param {(name: string, by: By) => Promise<AppView>} work
   */
  async function change ({ req, auth }, done, work) {
    const app = findApp(apps, req.params.app, auth)
    if (done.includes(app.state)) return { status: 200, body: app }
    return { body: await work(app.name, { actor: auth.actor }) }
  }
}

/** @param {Pick<Apps, 'states'>} apps @param {import('./roles.js').Auth} auth @returns {string[]} of the apps that are the sender's to see */
export function visibleNames (apps, auth) {
  return apps.states().map(({ name }) => name).filter((name) => mayUse(auth, name))
}

/**
 * @param {Pick<Apps, 'states'>} apps @param {unknown} name @param {import('./roles.js').Auth} auth
 * @returns {string} the name, of an app that there is
 * @throws {DeckError} not-found, also for an app that is not the sender's to see
 */
export function findName (apps, name, auth) {
  const names = visibleNames(apps, auth)
  const found = names.find((each) => each === name)
  if (found !== undefined) return found
  throw new DeckError('not-found', `There is no app ${JSON.stringify(String(name).slice(0, 60))} on this host${didYouMean(String(name), names)}`)
}

/** @param {Pick<Apps, 'states' | 'view'>} apps @param {unknown} name @param {import('./roles.js').Auth} auth @throws {DeckError} not-found */
export function findApp (apps, name, auth) {
  return apps.view(findName(apps, name, auth))
}

/** @type {Readonly<Record<AppView['state'], string>>} */
const WORDS = Object.freeze({ waiting: 'waits', starting: 'is starting', running: 'is starting', stopping: 'is stopping', stopped: 'is stopped', failed: 'has failed' })

/** @param {AppView} app @returns {DeckError} what becomes of a request for it while it does not run */
export function notRunning ({ name, state, reason }) {
  const rest = state === 'stopped' || state === 'failed' ? `: POST /api/v1/apps/${name}/start starts it` : ''
  return new DeckError('app-not-running', `${name} ${WORDS[state]}${reason ? ` (${reason})` : ''}${rest}`, { details: { app: name, state } })
}

/** Says the same to people. @param {AppView} app */
export function whyNotRunning ({ name, state, reason }) {
  return { title: `${name} ${WORDS[state]}`, message: reason ?? '' }
}

/**
 * For which apps a new token or a link is: for no others than those of who makes it.
 * @param {Pick<Apps, 'states'>} apps @param {import('./roles.js').Auth} auth @param {object} body  which has APPS_FIELD as `apps`
 * @returns {readonly string[] | null} null: for all
 * @throws {DeckError} invalid-body, forbidden
 */
export function appsWithin (apps, auth, body) {
  const { apps: wanted } = /** @type {{ apps?: readonly string[] }} */ (body)
  if (wanted === undefined) return auth.apps ?? null
  const names = visibleNames(apps, auth)
  for (const name of wanted) {
    if (!mayUse(auth, name)) throw new DeckError('forbidden', `apps: expected some of ${auth.apps?.join(', ')}, for which ${auth.actor} has a role, received ${JSON.stringify(name)}`)
    if (!names.includes(name)) throw new DeckError('invalid-body', `apps: expected apps of this host, received ${JSON.stringify(name)}${didYouMean(name, names)}`)
  }
  return [...new Set(wanted)]
}

/** The body of a new token or link has this as `apps`. */
export const APPS_FIELD = z.array(APP_NAME).min(1).max(100).optional().describe('the apps of the host that it is for, 1 to 100 names; default: all that its maker may use')
