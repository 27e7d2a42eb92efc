import os from 'node:os'
import path from 'node:path'
import { readAlerts } from '../../db/alerts.ts'
import { createAlerts, type Alerts } from '../alerts/alerts.ts'
import { kindOf } from '../events/kinds.ts'
import { createNotices } from '../events/notices.ts'
import { isToldByHost } from '../events/told-by-host.ts'
import type { Deck as Sender } from '../alerts/services.ts'
import type { History } from '../../db/history.ts'
import type { DeckEvent, EventStream } from '../events/stream.ts'
import type { Log } from '../system/log.ts'
import type { HostedApp } from './hosted-app.ts'

export type HostAlerts = ReturnType<typeof createHostAlerts>
type App = Pick<HostedApp, 'name' | 'dataDir' | 'record' | 'config' | 'part' | 'present'>

/**
 * Who is told what happens in a host. An alert of the host hears of all of its apps, or of some. What concerns all of
 * them, and an app that has failed, the host also tells by the alerts of the apps: to each receiver once.
 */
export function createHostAlerts ({ history, events, log, apps, about }: {
  /** of the host, as `events` */
  history: History,
  events: EventStream,
  log: Log,
  apps: () => App[],
  /** `url`: of the host's pages; `folder`: its data */
  about: { url: string | null, folder: string, version: string }
}, options: Parameters<typeof createAlerts>[1] = {}) {
  /** What is told is handed over below. */
  const isOwn = () => false
  const notices = createNotices({ history, events })
  const alerts = createAlerts({ configured: [], store: history.alerts, events, isOwn, deck: () => senderOf(null), log,
    appNames: () => apps().map(({ name }) => name) }, options)
  /** Alerts of apps that have failed, and so cannot tell it themselves, until they run again. By name. */
  const standIns: Map<string, Alerts> = new Map()
  /** What concerns all apps, by its type, and those that are still to be opened, to tell it by their alerts. */
  const owed: Map<string, { tell: (app: App) => void, names: Set<string> }> = new Map()
  /** The apps whose history waits for room on the disk; `null`: the host itself */
  const waiting: Set<string | null> = new Set()
  const unsubscribe = events.subscribe(hearHost)

  return {
    alerts,
    notices,

    /** `name`: of the app in whose own history the event is */
    hear (name: string, event: DeckEvent, sender: () => Sender) {
      tellOwed(name)
      if (event.type === 'worker.ready') endStandIn(name)
      if (event.type === 'history.recovered') noteRoom(name)
      if (isToldByHost(event)) {
        if (event.type === 'history.degraded') noteFull(event, name)
      } else if (!event.type.startsWith('master.')) {
        // A part that has failed is told by the host, too: as a failed app.
        alerts.hear(event, () => ({ ...sender(), app: name, keptBy: name }))
      }
    },

    async close () {
      unsubscribe()
      await Promise.all([alerts, ...standIns.values()].map(({ close }) => close()))
    }
  }

  function hearHost (event: DeckEvent) {
    const name = typeof event.detail?.app === 'string' ? event.detail.app : null
    if (event.type === 'app.removed') endStandIn(String(name))
    if (event.type === 'history.recovered') waiting.delete(null)
    if (event.type === 'history.degraded' && isToldByHost(event) && !event.detail?.waiting) {
      const isTold = waiting.size > 0
      waiting.add(null)
      if (isTold) return
    }
    const told: Set<string> = new Set()
    const sender = () => senderOf(name)
    alerts.hear(event, sender, told)
    const tell = ({ part }: App) => part?.run(() => part.app.deck.alerts.hear(event, sender, told))
    if (event.type === 'app.failed') standInOf(String(name))?.hear(event, sender, told)
    else if (name !== null) apps().filter((app) => app.name === name).forEach(tell)
    else if (kindOf(event).weight === 'alert') tellAll(event.type, tell)
  }

  function tellAll (type: string, tell: (app: App) => void) {
    apps().forEach(tell)
    const missing = apps().filter(({ part, record }) => part === null && record.wish === 'running')
    owed.set(type, { tell, names: new Set(missing.map(({ name }) => name)) })
  }

  function tellOwed (name: string) {
    for (const { tell, names } of owed.values()) {
      const app = names.has(name) && apps().find((each) => each.name === name)
      if (app && app.part && names.delete(name)) tell(app)
    }
  }

  function noteFull ({ message }: DeckEvent, name: string) {
    const isFirst = waiting.size === 0
    waiting.add(name)
    if (isFirst)
      events.publish({ type: 'history.degraded', actor: 'system',
        message: `no room on the disk of ${name}: ${message}; the apps serve as ever`, detail: { waiting: name } })
  }

  function noteRoom (name: string) {
    if (waiting.delete(name) && waiting.size === 0)
      events.publish({ type: 'history.recovered', actor: 'system',
        message: 'there is room on the disk again: the histories of all apps are written' })
  }

  /** Null: the app is being made anew, and will tell it itself. */
  function standInOf (name: string): Alerts | null {
    const app = apps().find((each) => each.name === name)
    if (!app || app.present) return null
    const known = standIns.get(name)
    if (known) return known
    const store = { ...history.alerts, list: () => readAlerts(path.join(app.dataDir, 'history.db')) }
    const standIn = createAlerts({ configured: app.config?.alerts ?? [], store, events, isOwn,
      deck: () => senderOf(name), log }, options)
    standIns.set(name, standIn)
    return standIn
  }

  function endStandIn (name: string) {
    standIns.get(name)?.close()
    standIns.delete(name)
  }

  /** `name`: of the app that it is about; null: the host as a whole */
  function senderOf (name: string | null): Sender {
    const host = os.hostname()
    const { config = null } = apps().find((app) => app.name === name) ?? {}
    return { host, app: name ?? `host ${host}`, keptBy: null, isHost: name === null, url: about.url,
      entry: config?.entry ?? about.folder, pid: process.pid, version: about.version }
  }
}
