import { closeSync, openSync } from 'node:fs'
import path from 'node:path'
import { createForker } from '../../server/cluster/forker.ts'
import { createSupervisor } from '../../server/cluster/supervisor.ts'
import { loadConfig } from '../../server/config/config.ts'
import { createState } from '../../server/lifecycle/state.ts'
import { createJudge } from '../../server/releases/judge.ts'
import { createAnswers } from '../../server/vitals/answers.ts'
import { servicesOf } from './cluster.ts'
import { createSeenEvents, type SeenEvent } from './event-log.ts'
import { tempFolder } from './folder.ts'
import { inPatience, PATIENCE_MS } from './until.ts'
import type { TestContext } from 'node:test'
import type { DeckEvent } from '../../server/events/stream.ts'
import type { Logs } from '../../server/logs/logs.ts'

type Report = { statuses: number[], inFlight: number }

const FIXTURES = path.resolve(import.meta.dirname, '../fixtures')
const INHERITED = Object.freeze({ stdout: 'inherit', stderr: 'inherit', close () {} })

/**
 * Runs a fixture app below this very process: real forks and sockets, without history and admin page, and so on every
 * version of Node. `flags`: by key, as `readyPath`.
 */
export async function supervised (t: TestContext, app: string,
  { workers = 1, flags = {}, args = [] }: { workers?: number, flags?: Record<string, unknown>, args?: string[] } = {})
{
  const folder = tempFolder()
  const entry = path.join(FIXTURES, app)
  const config = await loadConfig({ flags: { entry, args, ...flags }, env: {}, cwd: FIXTURES })
  const { seen: events, take, watch } = createSeenEvents()
  const reports: Report[] = []
  const { ready, drain, stop, crash, restart, recycle } = config
  const release = { id: 'r1', createdAt: '', entry, path: FIXTURES }
  const state = createState({ options: { ready, drain, stop, crash, restart, recycle }, release })
  const logs = { open: () => config.ready.log === undefined ? INHERITED : inFile(path.join(folder, 'log')),
    ended () {} } as unknown as Logs
  const fork = createForker({ current: config }, { crashFolder: folder, orderFolder: folder, outlives: () => false,
    logs })
  const deck = createSupervisor(state, servicesOf({ fork, events: { publish: (told) => {
    take(told as SeenEvent)
    return told as DeckEvent
  } }, limits: { watchdog: { timeoutMs: 0, stack: 'off' }, recycle }, judge: createJudge(),
    vitals: { began () {}, accept: (_worker, _slot, body) => {
      reports.push(body as Report)
    }, left () {}, latest: () => null, answers: createAnswers() } }))
  t.after(async () => {
    if (!['stopping', 'stopped'].includes(deck.snapshot().state)) deck.dispatch({ type: 'stop', actor: 'test' })
    const timer = setTimeout(() => deck.killAll('the test is over'), PATIENCE_MS)
    await deck.finished
    clearTimeout(timer)
  })
  deck.start({ workers })

  return {
    deck,
    events,
    /** What the workers have said of how they feel. */
    reports,
    release,
    url: () => String(deck.addresses()[0]),
    count: (type: string) => events.filter((event) => event.type === type).length,
    last: (type: string) => events.findLast((event) => event.type === type)!,

    /** `count`: of those, since the start. Returns the last of them. */
    until: (type: string, count: number = 1): Promise<SeenEvent> =>
      inPatience(watch(() => events.filter((event) => event.type === type)[count - 1]), () =>
        `${count} × ${type}; came: ${events.map((event) => `${event.type}: ${event.message ?? ''}`).join('\n')}`)
  }
}

function inFile (file: string) {
  const stdout = openSync(file, 'a+')
  return { stdout, stderr: 'inherit', close () {
    closeSync(stdout)
  } }
}
