import path from 'node:path'
import { openHistory } from '../../db/history.ts'
import { createCrashService } from '../../server/crashes/crashes.ts'
import { createCrashRecorder } from '../../server/crashes/recorder.ts'
import { createEventStream, type Detail } from '../../server/events/stream.ts'
import { tempFolder } from './folder.ts'
import type { ExitNote } from '../../server/crashes/record.ts'
import type { Seen, SeenEvent } from './event-log.ts'

/** Crashes without processes: recorder and service over a real history, and a clock that ticks with each crash. */
export function setUp (options: Pick<Parameters<typeof openHistory>[0], 'retention' | 'now'> = {}) {
  const file = path.join(tempFolder(), 'history.db')
  const history = openHistory({ file, ...options })
  const events = createEventStream()
  const published: SeenEvent[] = []
  events.subscribe((event) => published.push(event as SeenEvent))
  const state = { at: Date.parse('2026-01-01T00:00:00Z'), release: 'r1' }
  const recorder = createCrashRecorder({ store: history.crashes, events, now: () => state.at++, soon: (work) => work(),
    lackedMemory: () => null, logs: { tail: () => ['last line'] }, vitals: { lastMinute: () => [{ rssBytes: 1 }] } })
  const service = createCrashService({ store: history.crashes, events, release: () => state.release })

  /** @returns the event of the exit, as it is published */
  function crash (name: string, { message = 'boom', cause = 'crash' }: { message?: string, cause?: string } = {}) {
    const note: ExitNote = { kind: 'exception', errorName: 'Error', errorMessage: message,
      stack: `Error: ${message}\n    at ${name} (/srv/r1/app.js:1:2)`, causes: [], requests: [],
      nodeVersion: 'v20.0.0' }
    const exit = { type: 'worker.exited', cause, code: 1, signal: null, slot: 1, worker: 5, pid: 9,
      release: state.release, rollout: null, uptimeMs: 5, message: 'w', detail: { errorName: 'Error' } }
    const told = recorder.record(exit, { root: '/srv/r1',
      ...recorder.examine({ slot: 1, worker: 5, pid: 9, code: 1, signal: null }), note })
    return told as typeof told & { detail: Seen<Detail> }
  }
  return { file, history, service, crash, published, state, recorder }
}
