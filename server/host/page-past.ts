import { capitalised } from '../../public/format.ts'
import { WITHOUT_WORKERS } from '../config/app-states.ts'
import { titleOf } from '../crashes/page-kinds.ts'
import { readable } from '../dashboard/readable-text.ts'
import { urlOf } from '../events/page-filters.ts'
import { toShownEvent } from '../events/page-shown-event.ts'
import { whyNotRunning, type Apps, type AppView } from './api-apps.ts'

const TITLE_CHARS = 160
const SHOWN = 12

/** Why the app does not run, for its page and for the page that waits for it. */
export function absentModel (app: AppView) {
  const { name, state, nextTryAt } = app
  const reason = app.reason ?? ''
  // The name of an option keeps its letters, too.
  const message = /^[\w.]+: /.test(reason) ? reason : capitalised(reason, name)
  return { title: whyNotRunning(app), message, nextTryAt, section: 'apps', tone: WITHOUT_WORKERS[state].tone }
}

/** What the page of an app that does not run shows of it, beside why it does not. */
export function pastModel ({ name, state }: AppView, { events, crashes, lines }: ReturnType<Apps['left']>) {
  const stop = events.find(({ type }) => type === 'master.stopped')
  const by = events.find(({ type, cause }) => type === 'worker.exited' && cause === 'shutdown')?.actor
  return { logsUrl: urlOf('/logs', { app: name }), stop: state === 'stopped' && stop ? { at: stop.at, by } : null,
    events: events.map(toShownEvent).filter(({ kind }) => kind.weight !== 'routine').slice(0, SHOWN),
    crashes: crashes.map((group) => ({ id: group.id, count: group.count, lastSeenAt: group.lastSeenAt,
      title: titleOf(group, TITLE_CHARS) })
    ), lines: lines.length === 0 ? null : readable(lines.join('\n')) }
}
