import { z } from 'zod'
import { APP_STATES } from '../config/app-states.ts'
import { DECK_NAME } from '../config/apps.ts'
import { didYouMean } from '../config/nearest.ts'
import { APP_ORDER, type AppOrder } from '../config/orders.ts'
import { DeckError } from '../errors.ts'
import { HEALTH } from '../api/cluster.ts'
import { created, operation, refuseLimited, type Call, type Resource } from '../api/endpoint.ts'
import { COUNT, listOf, TIME } from '../api/fields.ts'
import { booleanParam } from '../api/input.ts'
import { mayUse, visibleNames, type Auth } from '../api/roles.ts'
import type { Deck } from '../deck.ts'
import type { History } from '../../db/history.ts'
import type { Past } from '../../db/past.ts'
import type { Searched } from '../logs/api-lines.ts'
import type { AdoptionView, Host } from './api.ts'
import type { Fleet } from '../fleet/fleet.ts'
import type { Upgrade } from '../handover/api.ts'

/** The apps of a host. */
export type AppView = z.infer<typeof APP>
export type OrderedView = z.infer<typeof ORDERED>
type By = { actor: string }
/** `run`: does work as a part of the app */
export type OpenedApp = { deck: Deck, history: History, run: <T>(work: () => T) => T }
/** see host/apps.js */
export type Apps = {
  /** the name of the only app of a host in the foreground; null: the host has all apps of its user */
  only: string | null,
  /** by name; it asks the histories of all of them */
  list: () => AppView[],
  /** by name; it asks no history */
  states: () => Pick<AppView, 'name' | 'state'>[],
  /** throws not-found */
  view: (name: string) => AppView,
  /** of this very app, which no later one of its name has; null: there is none */
  identity: (name: string) => string | null,
  /** of the data folders of those that are open, by name */
  tokens: () => [app: string, token: string][],
  /** null: it is stopped or has failed */
  opened: (name: string) => OpenedApp | null,
  /** `isIdle`: it is not started; `applies`: where it runs, the order counts from its next deploy on */
  add: (order: AppOrder, how: By & { isIdle?: boolean, applies?: boolean }) => Promise<OrderedView>,
  /** returns the names of those that differ from what runs; throws not-found, not-stored */
  changeVariables: (name: string, env: AppOrder['env'], how: { isDry: boolean }) => Promise<string[]>,
  start: (name: string, by: By) => Promise<AppView>,
  /** `atOnce`: its workers finish nothing */
  stop: (name: string, how: By & { atOnce?: boolean }) => Promise<AppView>,
  remove: (name: string, how: By & { purge: boolean }) => Promise<AppView>,
  /** an app was added, opened, closed or removed */
  onChange: (handler: () => void) => () => void,
  /** what an app that does not run has left */
  left: (name: string) => Past,
  /** searches the logs of an app that does not run; null: nobody knows where they are */
  leftLogs: (name: string) => Searched | null,
  /** the histories of these apps, as far as they run, as one; `isWhole`: with that of the host itself */
  past: (names: readonly string[], isWhole: boolean) => Pick<History, 'page' | 'count' | 'times'>,
  /** of the host */
  alerts: Deck['alerts'],
  /** of the host */
  notices: Deck['notices'],
  upgradeHost: (order: By & { execPath: string | null, note: string | null }) => Upgrade,
  stopHost: (by: By) => void,
  /** of decks; `view` throws not-found */
  adoptions: { begin: (how: By & { name?: string }) => Promise<{ view: AdoptionView, path: string, secret: string }>,
    view: (id: number) => AdoptionView },
  about: () => Host,
  /** hosts on other machines; null: it is alone, or has not joined them yet */
  fleet: () => Fleet | null,
  /** whether it is to be in a fleet */
  joinsFleet: boolean
}

export const APP_NAME = z.string().regex(DECK_NAME).meta({ description: 'the name of an app', examples: ['shop'] })

const FIGURE = z.number().min(0).nullable()
const HEALTH_IN_WORDS = HEALTH.pick({ tone: true, text: true, hint: true })
const OUTCOME = z.strictObject({ state: z.string(), release: z.string().nullable(), finishedAt: TIME.nullable() })

export const APP = z.strictObject({ name: APP_NAME,
  state: z.enum(APP_STATES).describe(
    'waiting: for the apps that it depends on; failed: the host cannot run it, and `reason` says why'
  ),
  reason: z.string().nullable().describe(
    'why it waits or has failed, or why what ran before runs in place of what was ordered'
  ), isRetried: z.boolean().describe('its part of the host has failed and is made anew; its workers serve on'),
  nextTryAt: TIME.nullable().describe('when the host starts it again, where that has failed'),
  entry: z.string().nullable(), cwd: z.string(), configFile: z.string().nullable(), dataDir: z.string().nullable(),
  path: z.string().meta({ description: 'where its pages and its API are, on this port', examples: ['/apps/shop'] }),
  startedAt: TIME.nullable(), health: HEALTH_IN_WORDS.nullable().describe('null: it does not run'),
  workers: z.strictObject({ ready: COUNT, desired: COUNT }).nullable(), cpu: FIGURE.describe('percent of a core'),
  memoryBytes: FIGURE, requestsPerSecond: FIGURE, p99Ms: FIGURE.describe('of the slowest worker'),
  restarts: COUNT.nullable().describe('how often a worker was replaced because it had died'),
  openCrashes: COUNT.nullable().describe('groups that nobody has resolved'), release: z.string().nullable(),
  lastDeploy: OUTCOME.nullable(), addresses: z.array(z.string()) }).meta({ id: 'App' })

const ORDERED = APP.extend({
  notApplied: z.array(z.string()).describe(
    'what the order has and what runs has not, as `workers 1 → 2` or `variable PORT`; it runs so from its next deploy or start on, if the order was applied'
  )
}).meta({ id: 'OrderedApp' })
const VARIABLES = z.strictObject({ variables: z.array(z.string()).describe('the names of those that differ') })

/** What the calls that start and stop an app have in common. */
const CHANGE = { role: 'operator', path: { app: APP_NAME }, status: 202, others: { 200: { 'application/json': APP } },
  problems: ['not-found', 'stopping', 'not-stored'], answer: APP } as const

/** An order has the whole environment of the shell that it comes from. */
const ORDER_LIMIT_BYTES = 1024 * 1024

export function appResources ({ apps }: { apps: Apps }): Record<string, Resource> {
  const path = { app: APP_NAME }
  return {
    '/apps': {
      GET: operation({ name: 'listApps', summary: 'Lists the apps of this host by name', role: 'viewer',
        answer: listOf(APP), handle: ({ auth }) => ({ body: { items: visibleNames(apps, auth).map((name) =>
          apps.view(name)
        ) } }) }),

      POST: operation({
        name: 'addApp',
        summary: 'Adds an app to this host, or starts it anew, and does not wait until it is ready',
        description:
          'The host remembers it until it is removed. An app that runs already is left as it is, unless `apply` says otherwise; what differs is told.',
        role: 'admin',
        // The body names a program to run.
        byToken: 'A new app',
        query: z.strictObject({ start: booleanParam('"false": a new app stays stopped'),
          apply: booleanParam(
            '"true": where it runs, the order counts from its next deploy on, and what needs none at once'
          ) }),
        body: APP_ORDER,
        largestBodyBytes: ORDER_LIMIT_BYTES,
        status: 201,
        location: true,
        problems: ['name-taken', 'invalid-config', 'entry-not-found', 'data-dir-unusable', 'stopping', 'app-running',
          'not-stored'],
        answer: ORDERED,
        async handle ({ query: { start = true, apply = false }, body, auth }) {
          refuseLimited(auth, 'adds apps')
          const app = await apps.add(body, { actor: auth.actor, isIdle: !start, applies: apply })
          return created(`/apps/${app.name}`, app)
        }
      })
    },

    '/apps/:app': {
      GET: operation({ name: 'getApp', summary: 'Returns one app', role: 'viewer', path, problems: ['not-found'],
        answer: APP, handle: ({ params, auth }) => ({ body: findApp(apps, params.app, auth) }) }),

      DELETE: operation({ name: 'removeApp',
        summary: 'Stops an app and removes it from this host; its data folder stays', role: 'admin', path,
        query: z.strictObject({ purge: booleanParam('"true": removes its data folder, too') }), status: 202,
        problems: ['not-found', 'stopping'], answer: APP, async handle ({ params, query: { purge = false }, auth }) {
        const name = findName(apps, params.app, auth)
        refuseLimited(auth, 'removes apps')
        return { body: await apps.remove(name, { purge, actor: auth.actor }) }
      } })
    },

    '/apps/:app/variables': { PUT: operation({
      name: 'changeVariables',
      summary: 'Gives an app the variables of another shell, from its next deploy on',
      role: 'admin',
      path,
      // They may say what Node is to load.
      byToken: 'Variables',
      query: z.strictObject({ dryRun: booleanParam('"true": changes nothing') }),
      body: z.strictObject({ env: APP_ORDER.shape.env }).meta({ examples: [{ env: { PORT: '3000' } }] }),
      largestBodyBytes: ORDER_LIMIT_BYTES,
      problems: ['not-found', 'not-stored'],
      answer: VARIABLES,
      async handle ({ params, query: { dryRun = false }, body, auth }) {
        const name = findName(apps, params.app, auth)
        return { body: { variables: await apps.changeVariables(name, body.env, { isDry: dryRun }) } }
      }
    }) },

    '/apps/:app/start': {
      POST: operation({ name: 'startApp', summary: 'Starts an app that is stopped, and does not wait until it is ready',
        ...CHANGE, handle: (call) =>
          change(call, ['waiting', 'starting', 'running'], (name, by) => apps.start(name, by)) })
    },

    '/apps/:app/stop': {
      POST: operation({ name: 'stopApp',
        summary: 'Drains the workers of an app and stops it; it stays stopped until it is started', ...CHANGE,
        query: z.strictObject({ now: booleanParam('"true": its workers finish nothing') }), handle: (call) =>
          change(call, ['stopped'], (name, by) => apps.stop(name, { ...by, atOnce: call.query.now })) })
    }
  }

  /** `done`: states in which there is nothing to do */
  async function change ({ params, auth }: Pick<Call, 'params' | 'auth'>, done: AppView['state'][],
    work: (name: string, by: By) => Promise<AppView>)
  {
    const app = findApp(apps, params.app, auth)
    if (done.includes(app.state)) return { status: 200, body: app }
    return { body: await work(app.name, { actor: auth.actor }) }
  }
}

/**
 * Returns the name, of an app that there is.
 * @throws {DeckError} not-found, also for an app that is not the sender's to see
 */
export function findName (apps: Pick<Apps, 'states'>, name: unknown, auth: Pick<Auth, 'apps'>): string {
  const names = visibleNames(apps, auth)
  const found = names.find((each) => each === name)
  if (found !== undefined) return found
  throw new DeckError('not-found',
    `There is no app ${JSON.stringify(String(name).slice(0, 60))} on this host${didYouMean(String(name), names)}`)
}

/** @throws {DeckError} not-found */
export function findApp (apps: Pick<Apps, 'states' | 'view'>, name: unknown, auth: Auth) {
  return apps.view(findName(apps, name, auth))
}

const WORDS: Readonly<Record<AppView['state'], string>> = Object.freeze({ waiting: 'waits', starting: 'is starting',
  running: 'is starting', stopping: 'is stopping', stopped: 'is stopped', failed: 'has failed' })

/** @returns what becomes of a request for it while it does not run */
export function notRunning (app: AppView): DeckError {
  const { name, state, reason } = app
  const rest = state === 'stopped' || state === 'failed' ? `: POST /api/v1/apps/${name}/start starts it` : ''
  return new DeckError('app-not-running', `${whyNotRunning(app)}${reason ? ` (${reason})` : ''}${rest}`, {
    details: { app: name, state }
  })
}

export function whyNotRunning ({ name, state }: AppView): string {
  return `${name} ${WORDS[state]}`
}

/**
 * For which apps a new token or a link is: for no others than those of who makes it. `body`: which has APPS_FIELD as
 * `apps`. Returns null: for all.
 * @throws {DeckError} invalid-body, forbidden
 */
export function appsWithin (apps: Pick<Apps, 'states'>, auth: Auth, body: object): readonly string[] | null {
  const { apps: wanted } = body as { apps?: readonly string[] }
  if (wanted === undefined) return auth.apps ?? null
  const names = visibleNames(apps, auth)
  for (const name of wanted) {
    if (!mayUse(auth, name))
      throw new DeckError('forbidden',
        `apps: expected some of ${auth.apps?.join(', ')}, for which ${auth.actor} has a role, received ${
          JSON.stringify(name)
        }`)
    if (!names.includes(name))
      throw new DeckError('invalid-body',
        `apps: expected apps of this host, received ${JSON.stringify(name)}${didYouMean(name, names)}`)
  }
  return [...new Set(wanted)]
}

/** The body of a new token or link has this as `apps`. */
export const APPS_FIELD = z.array(APP_NAME).min(1).max(100).optional().describe(
  'the apps of the host that it is for, 1 to 100 names; default: all that its maker may use'
)
