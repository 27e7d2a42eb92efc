import { nextRun } from '../../server/config/cron.ts'
import { placesOf } from '../../server/cluster/command-place.ts'
import { createJobs, type JobConfigs } from '../../server/jobs/jobs.ts'
import { tempFolder } from './folder.ts'
import type { CommandEnd, runCommand } from '../../server/cluster/command-run.ts'
import type { EventStream } from '../../server/events/stream.ts'
import type { History } from '../../db/history.ts'

/** A command that runs until a test ends it, or until it is told to end. */
type FakeCommand = { order: Parameters<typeof runCommand>[0], toldTo: { why: string, graceMs?: number }[],
  write: (text: string, stream?: 'stdout' | 'stderr') => void, finish: (end?: Partial<CommandEnd>) => Promise<void> }

export const JOBS: JobConfigs = Object.freeze({
  nightly: { cron: '0 3 * * *', command: 'node report.js', overlap: 'skip', timeoutMs: 3_600_000, timeZone: 'UTC' },
  reindex: { command: ['node', 'reindex.js'], overlap: 'skip', timeoutMs: 60_000 }
})

/** Jobs whose commands are no processes. */
export function createFakeJobs ({ history, events, jobs = JOBS, more = {} }: {
  /** a real one */
  history: Pick<History, 'jobRuns'>,
  events: EventStream,
  jobs?: JobConfigs,
  more?: Partial<Parameters<typeof createJobs>[0]>
}) {
  /** oldest first */
  const commands: FakeCommand[] = []
  const release = { id: 'r1', entry: '/srv/app/app.js', path: '/srv/app', cwd: '/',
    createdAt: '2026-01-01T00:00:00.000Z' }
  const made = createJobs({ jobs, configured: () => jobs, current: () => ({ isStopping: false, isUpgrading: false }),
    keeper: { held: new Map(), hold () {}, drop () {}, exits: [] },
    place: () => placesOf({ environment: () => ({}), inherited: () => ({}) }, '/')(release), events,
    store: history.jobRuns, dataFolder: tempFolder(), logFolder: tempFolder(),
    logLimits: () => ({ maxBytes: 1024 * 1024, maxFiles: 2 }), hide: (text) => text,
    nextRun: (cron, after, timeZone = 'UTC') => nextRun(cron, after, timeZone), run: startFake, now: Date.now,
    timers: globalThis, ...more })
  return Object.assign(made, { commands })

  function startFake (order: FakeCommand['order']) {
    let resolveEnd: (end: CommandEnd) => void = () => {}
    let output = ''
    let endedFor: string | null = null
    const ended = new Promise((resolve: (end: CommandEnd) => void) => {
      resolveEnd = resolve
    })
    const command: FakeCommand = { order, toldTo: [], write (text, stream = 'stdout') {
      output += text
      order.onOutput?.(stream, text)
    }, async finish (end = {}) {
      const code = end.code ?? 0
      const why = endedFor ?? (code === 0 ? null : `exited with code ${code}`)
      resolveEnd({ passed: why === null, code, signal: null, durationMs: 2100, timedOut: false,
        reason: why && `${order.name} ${why}`, output, ...end })
      await ended
      await new Promise((resolve) => setImmediate(resolve))
    } }
    commands.push(command)
    return { name: order.name, identity: { pid: 5000 + commands.length, startTime: null },
      handles: { stdout: null, stderr: null }, letGo: () => null, leave () {}, ended,
      end (why: string, { graceMs } = ({} as { graceMs?: number })) {
        endedFor ??= why
        command.toldTo.push({ why, graceMs })
      } }
  }
}
