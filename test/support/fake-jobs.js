import { nextRun } from '../../server/config/cron.js'
import { createJobs } from '../../server/jobs/jobs.js'
import { tempFolder } from './folder.js'

/** @typedef {import('../../server/jobs/jobs.js').JobConfigs} JobConfigs */
/** @typedef {import('../../server/cluster/command-run.js').CommandEnd} CommandEnd */
/**
 * A command that runs until a test ends it, or until it is told to end.
 * @typedef {{ order: Parameters<typeof import('../../server/cluster/command-run.js').runCommand>[0], toldTo: { why: string, graceMs?: number }[], write: (text: string, stream?: 'stdout' | 'stderr') => void, finish: (end?: Partial<CommandEnd>) => Promise<void> }} FakeCommand
 */

/** @type {JobConfigs} */
export const JOBS = Object.freeze({
  nightly: { cron: '0 3 * * *', command: 'node report.js', overlap: 'skip', timeoutMs: 3_600_000, timeZone: 'UTC' },
  reindex: { command: ['node', 'reindex.js'], overlap: 'skip', timeoutMs: 60_000 }
})

/**
 * Jobs whose commands are no processes.
 * @param {object} parts
 * @param {any} parts.history  a real one
 * @param {import('../../server/events/stream.js').EventStream} parts.events
 * @param {JobConfigs} [parts.jobs]
 * @param {Partial<Parameters<typeof createJobs>[0]>} [parts.more]
 */
export function createFakeJobs ({ history, events, jobs = JOBS, more = {} }) {
  /** @type {FakeCommand[]} oldest first */
  const commands = []
  const release = /** @type {any} */ ({ id: 'r1', entry: '/srv/app/app.js', path: '/srv/app', cwd: '/', createdAt: '2026-01-01T00:00:00.000Z' })
  const made = createJobs({
    jobs,
    current: () => ({ release: 'r1', isStopping: false, isUpgrading: false }),
    keeper: { held: new Map(), hold () {}, drop () {}, exits: [] },
    release: () => release,
    environment: () => ({}),
    inherited: {},
    cwd: '/',
    events,
    store: history.jobRuns,
    dataFolder: tempFolder(),
    logFolder: tempFolder(),
    logLimits: () => ({ maxBytes: 1024 * 1024, maxFiles: 2 }),
    nextRun: (cron, after, timeZone = 'UTC') => nextRun(cron, after, timeZone),
    run: startFake,
    ...more
  })
  return Object.assign(made, { commands })

  /** @param {FakeCommand['order']} order */
  function startFake (order) {
    /** @type {(end: CommandEnd) => void} */
    let resolveEnd = () => {}
    let output = ''
    /** @type {string | null} */
    let endedFor = null
    const ended = new Promise((/** @type {(end: CommandEnd) => void} */ resolve) => { resolveEnd = resolve })
    /** @type {FakeCommand} */
    const command = {
      order,
      toldTo: [],
      write (text, stream = 'stdout') {
        output += text
        order.onOutput?.(stream, text)
      },
      async finish (end = {}) {
        const code = end.code ?? 0
        const why = endedFor ?? (code === 0 ? null : `exited with code ${code}`)
        resolveEnd({ passed: why === null, code, signal: null, durationMs: 2100, timedOut: false, reason: why && `${order.name} ${why}`, output, ...end })
        await ended
        await new Promise((resolve) => setImmediate(resolve))
      }
    }
    commands.push(command)
    return {
      name: order.name,
      identity: { pid: 5000 + commands.length, startTime: null },
      handles: { stdout: null, stderr: null },
      letGo: () => null,
      leave () {},
      ended,
      end (/** @type {string} */ why, { graceMs } = /** @type {{ graceMs?: number }} */ ({})) {
        endedFor ??= why
        command.toldTo.push({ why, graceMs })
      }
    }
  }
}
