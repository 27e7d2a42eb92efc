import { createRecords } from '../../server/host/records.ts'
import type { AppOrder } from '../../server/config/orders.ts'
import { createApps } from '../../server/host/apps.ts'
import { createEventStream } from '../../server/events/stream.ts'
import { createJointUpgrade } from '../../server/handover/joint-upgrade.ts'
import { createAppScopes } from '../../server/host/app-scopes.ts'
import { readConfigOf } from '../../server/host/order-config.ts'
import { openDataDir } from '../../server/system/data-dir.ts'
import { createAppLinks } from '../../server/keeper/app-links.ts'
import { createTurns } from '../../server/host/turns.ts'
import { fake } from './fake.ts'
import { tempFolder } from './folder.ts'
import { untilFound } from './until.ts'
import type { TestOwner } from './deck.ts'
import type { KeeperLink } from '../../server/keeper/link.ts'
import type { AppView } from '../../server/host/api-apps.ts'

/**
 * Runs the apps of a host in this very process, without a page and a keeper: real workers, histories and releases.
 * `folder`: of a host before.
 */
export function hostAppsHere (t: TestOwner,
  { folder = tempFolder(), rolloutsAtOnce = 2 }: { folder?: string, rolloutsAtOnce?: number } = {})
{
  const said: string[] = []
  const scopes = createAppScopes({ onLateFault: (error, app) => console.error(`late, of ${app}`, error) })
  const say = (text: string) => {
    said.push(text)
  }
  const sayError = (fields: { err?: Error }, text: string) => say(`${text}: ${fields.err?.stack}`)
  const log = { error: sayError, warn: sayError, fatal: sayError, close () {} }
  const events = createEventStream()
  const told: string[] = []
  events.subscribe(({ type, detail, message }) => {
    told.push([type, detail?.app, message].filter(Boolean).join(' '))
  })
  const keeper = fake<KeeperLink>({ isKept: false, role: 'current', predecessor: null, exits: [], reaps: false,
    held: new Map(), copies: new Map(), hold () {}, drop () {}, send () {}, on () {}, onLost () {}, offLost () {},
    rememberedApps: () => [], memoryOf: () => ({ read: () => null, write: () => false }),
    spareOf: () => ({ events: [], keep () {}, clear () {} }) })
  const terminal = { show () {}, line: say, fail: say, quote: say, started () {}, resolved () {} }
  const forgotten: string[] = []
  const apps = createApps({ records: createRecords({ folder, log, onProblem: (reason) => say(`records: ${reason}`) }),
    lent: { links: createAppLinks(keeper), scopes, log, titleOf: (name) => name,
      placeOf: (name) => ({ below: `/apps/${name}`, host: folder }), readConfig: readConfigOf, keepsOrders: true,
      openFolder: (of) => ({ dataDir: openDataDir(of), log }), terminal: { ...terminal, of: () => terminal },
      turns: createTurns({ atOnce: 2 }), rolloutTurns: createTurns({ atOnce: rolloutsAtOnce, turnMs: 60_000 }),
      upgrade: createJointUpgrade(keeper, { turnMs: 3000, events }), streams: process,
      software: { version: '0.0.0', nodeVersion: process.version }, others: fake({ list: () => [] }),
      fleetMembership: { isWanted: false, of: () => null, enter: () => async () => {} },
      addressOf: (name) => ({ adminUrl: `http://127.0.0.1:9/apps/${name}`, publicUrl: null, fingerprint: null,
        host: folder }) }, forget: (id) => {
      forgotten.push(id)
    }, events, log })
  t.after(async () => {
    await apps.leave('test')
    scopes.close()
  })

  return { ...apps, folder, said, told, forgotten, until,
    untilState: (name: string, wanted: AppView['state']) => until(name, ({ state }) => state === wanted) }

  function until (name: string, isIt: (view: AppView) => unknown) {
    const look = () => {
      const view = apps.view(name)
      return isIt(view) ? view : null
    }
    // Often enough for what does not last.
    return untilFound(look, () => `${name} to get there: ${JSON.stringify(apps.view(name))}; ${said.join('\n')}`, {
      everyMs: 20
    })
  }
}

/** An order for an app that answers with its name. */
export function orderOf (name: string,
  { flags = {}, dependsOn = [], cwd = tempFolder() }: { flags?: Record<string, string>, dependsOn?: string[],
    cwd?: string } = {}): AppOrder
{
  return { name, cwd, flags: { entry: 'app.js', workers: '1', ...flags }, env: { PATH: String(process.env.PATH) },
    dependsOn }
}
