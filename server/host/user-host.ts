import { openHistory } from '../../db/history.ts'
import { tellLost } from '../app/start.ts'
import { cpuCount } from '../config/cpu-count.ts'
import { createRecorder } from '../events/recorder.ts'
import { createEventStream, type EventStream } from '../events/stream.ts'
import { openDataDir } from '../system/data-dir.ts'
import { createLog } from '../system/log.ts'
import { tellHostService } from '../systemd/host-service.ts'
import { createAdoptions } from './adoptions.ts'
import { createHostAlerts, type HostAlerts } from './host-alerts.ts'
import { readConfigOf } from './order-config.ts'
import { createRecords } from './records.ts'
import { createTurns, ROLLOUT_TURN_MS } from './turns.ts'
import type { HostConfig } from '../config/config.ts'
import type { HostServices } from '../app/app.ts'
import type { Host } from './host.ts'
import type { MakeKind } from './kind.ts'

/** The host of a user: all apps of its list, with a history, alerts and notices of its own. */
export function hostOfUser (config: HostConfig): MakeKind {
  return (host, apps) => {
    const { dataDir, keeper, log, terminal, software, scopes, closers } = host
    const isNext = keeper.role === 'next'
    const record = openRecord(config, host)
    const { history, events } = record
    /** Not before this is the only master. */
    let alerts: HostAlerts | null = null
    const records = createRecords({ folder: dataDir.folder, log,
      onProblem: (reason) =>
        events.publish({ type: 'unexpected', actor: 'system', message: reason === null
          ? 'the records of the apps are written again'
          : `the records of the apps cannot be written (${reason}): the next start of the host may not know what is asked of it now` }) })

    return {
      records,

      events,

      policy: { titleOf: (name) => name, placeOf: (name) => ({ below: `/apps/${name}`, host: dataDir.folder }),
        readConfig: readConfigOf, keepsOrders: true, turns: createTurns({ atOnce: cpuCount() }),
        rolloutTurns: createTurns({ atOnce: cpuCount(), turnMs: ROLLOUT_TURN_MS }),
        tellHostOf: (name): HostServices['tellHost'] => (event, sender) =>
          scopes.outside(() => alerts?.hear(name, event, sender)), openFolder (folder, ofApp) {
        const opened = openDataDir(folder)
        return { dataDir: opened, log: ofApp.add(createLog(opened.logFile), ({ close }) => close()) }
      } },

      // An app may take its time, and fail: the pages of the host are there meanwhile.
      openFirst: async () => null,

      begin () {
        record.begin()
        const { publicUrl = '' } = config.admin
        const made = alerts = closers.add(
          createHostAlerts({ history, events, log, apps: () => apps().all(),
            about: { url: publicUrl.replace(/\/+$/, '') || null, folder: dataDir.folder, version: software.version } }),
          ({ close }) => close()
        )
        const adoptions = closers.add(createAdoptions({ folder: dataDir.folder, apps: apps(), log }),
          ({ close }) => close())
        return { history, events, alerts: made.alerts, notices: made.notices, adoptions, options: config, only: null,
          ready: Promise.resolve(), ownHistory: history }
      },

      tellStart (port) {
        terminal.line(
          `clusterdeck ${software.version}  host of ${apps().all().length} apps  ${dataDir.folder}\n  admin  ${port.publicUrl}`
        )
        tellOfLost()
        events.publish({ type: 'master.started', pid: process.pid, actor: 'system', detail: software })
        if (isNext)
          events.publish({ type: 'master.upgraded', pid: process.pid, actor: 'system',
            message: `clusterdeck ${software.version} on Node ${software.nodeVersion}`, detail: { to: software } })
      },

      followService: () => tellHostService({ apps: apps(), keeper }),

      tellStop (startedAt, how) {
        events.publish({ type: 'master.stopped', pid: process.pid, uptimeMs: Date.now() - Date.parse(startedAt),
          code: 0, ...how })
      }
    }

    /** Writes the end of a master that has died, which it could not write itself. */
    function tellOfLost () {
      try {
        const [last] = history.page({ type: ['master.started', 'master.stopped'], limit: 1 }).items
        if (last?.type !== 'master.started' || last.pid === null) return
        const { predecessor } = keeper
        tellLost(events, predecessor?.pid === last.pid ? predecessor : { pid: last.pid, code: null, signal: null })
      } catch {
        // No start depends on it.
      }
    }
  }
}

/**
 * The host's own history: who has signed in, which apps were added, stopped, removed. In an upgrade it is the other
 * master's, and what happens before that one has gone is told by the apps. Returns `begin`: this is the only master.
 */
function openRecord (config: HostConfig, { dataDir, keeper, log, terminal, closers }: Host) {
  const isNext = keeper.role === 'next'
  const history = openHistory({ file: dataDir.historyFile, retention: config.history,
    owner: isNext ? 'another master has it' : null })
  const events: EventStream = createEventStream({ lastId: isNext ? 0 : history.lastEventId(),
    relay: isNext ? () => {} : null,
    onError: (error, event) => log.error({ err: error, event }, 'an event subscriber failed') })
  events.subscribe(terminal.show)
  return { history, events, begin () {
    if (isNext) history.takeOver()
    closers.add(history, ({ close }) => close())
    const recorder = closers.add(createRecorder({ history, events, spare: keeper.spare }), ({ close }) => close())
    if (isNext) events.takeOver(history.lastEventId())
    recorder.begin()
  } }
}
