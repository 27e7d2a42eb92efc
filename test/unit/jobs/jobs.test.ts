import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, test } from 'node:test'
import { openHistory, type History } from '../../../db/history.ts'
import { createEventStream } from '../../../server/events/stream.ts'
import { sentenceOf } from '../../../server/events/sentences.ts'
import { createFakeJobs } from '../../support/fake-jobs.ts'
import { tempFolder } from '../../support/folder.ts'
import { fake } from '../../support/fake.ts'
import type { JobConfig, JobConfigs, JobsMemory } from '../../../server/jobs/jobs.ts'

const EVERY_MINUTE = '* * * * *'
const MINUTE_MS = 60_000

function setUp (job: Partial<JobConfig> = {},
  { history = openHistory({ file: ':memory:' }), left = { runs: [], due: {} } }: { history?: History,
    left?: JobsMemory } = {})
{
  const clock = { now: Date.parse('2026-05-01T00:00:30Z'), isStopping: false, isUpgrading: false }
  let timers: (() => void)[] = []
  const events = createEventStream({ lastId: history.lastEventId() })
  events.subscribe((event) => history.record(event))
  const told: string[] = []
  events.subscribe((event) => {
    told.push(`${event.type.slice(4)}${event.cause ? ` (${event.cause})` : ''}: ${sentenceOf(event)}`)
  })
  const logFolder = tempFolder()
  let configured: JobConfigs = {
    nightly: { cron: EVERY_MINUTE, command: 'node report.js', overlap: 'skip', timeoutMs: 60_000, ...job }
  }
  const jobs = createFakeJobs({ history, events, jobs: configured,
    more: { configured: () => configured,
      current: () => ({ isStopping: clock.isStopping, isUpgrading: clock.isUpgrading }), logFolder,
      now: () => clock.now, timers: fake({ setTimeout: (run: () => void) => {
        timers = [run]
      }, clearTimeout () {
        timers = []
      } }) } })
  jobs.start(left)
  return {
    ...clock,
    clock,
    jobs,
    commands: jobs.commands,
    told,
    events,
    history,
    logFolder,
    configure (next: JobConfigs) {
      configured = next
    },
    /** The next time of the job comes; or the clock goes on by more at once, as that of a machine that has slept. */
    pass (ms = MINUTE_MS) {
      clock.now += ms
      timers.forEach((run) => run())
    }
  }
}

describe('a run', () => {
  test('is started by the clock, told, kept with its output, and in the log of its job', async () => {
    const { jobs, pass, told, logFolder } = setUp()
    pass()
    const [command] = jobs.commands
    assert.equal(command.order.command, 'node report.js')
    const { CLUSTERDECK_JOB: job, CLUSTERDECK_RUN: id } = command.order.env
    assert.deepEqual([job, id], ['nightly', '1'])
    const running = jobs.run(1)
    assert.deepEqual([running.state, running.actor, running.dueAt, jobs.get('nightly').running], ['running', 'cron',
      '2026-05-01T00:01:00.000Z', 1])
    command.write('one\n')
    command.write('two', 'stderr')
    assert.equal(jobs.run(1).output, 'one\ntwo')
    await command.finish()
    const { output, ...run } = jobs.run(1)
    assert.deepEqual([run.state, run.code, run.durationMs, run.reason, output], ['succeeded', 0, 2100, null,
      'one\ntwo'])
    assert.deepEqual(told, ['started: Job nightly started', 'succeeded: Job nightly took 2.1 s'])
    const { running: none, last, nextAt } = jobs.get('nightly')
    assert.deepEqual([none, last?.id, nextAt], [null, 1, '2026-05-01T00:02:00.000Z'])
    assert.match(readFileSync(path.join(logFolder, 'jobs', 'nightly.log'), 'utf8'),
      /^--- run 1 of nightly, .* release r1, by cron\none\ntwo\n$/)
  })

  test('that fails says how, and one that takes too long has failed too', async () => {
    const { pass, commands, told, jobs } = setUp()
    pass()
    await commands[0].finish({ code: 3 })
    pass()
    await commands[1].finish({ passed: false, code: null, signal: 'SIGTERM', timedOut: true,
      reason: 'nightly did not end within 1 min' })
    assert.deepEqual(told.filter((each) => each.startsWith('failed')), ['failed: Job nightly exited with code 3',
      'failed (timed-out): Job nightly did not end within 1 min'])
    assert.deepEqual(jobs.runs('nightly', {}).items.map(({ state, cause }) => [state, cause]), [['failed', 'timed-out'],
      ['failed', null]])
  })

  test('that somebody ends is interrupted, and cannot be ended twice', async () => {
    const { pass, commands, told, jobs } = setUp()
    pass()
    jobs.end(1, { actor: 'ada' })
    await commands[0].finish({ code: null, signal: 'SIGTERM' })
    assert.equal(told.at(-1), 'interrupted (operator): Job nightly was ended by ada')
    assert.throws(() => jobs.end(1, { actor: 'ada' }), { code: 'run-ended' })
    assert.throws(() => jobs.end(99, { actor: 'ada' }), { code: 'not-found' })
  })

  test('of several commands that build a commit tells its stage, also once it has ended, and no secret of an address', async () => {
    const { jobs } = setUp()
    const run = jobs.runSteps({ name: 'deploy --git main', git: 'main', option: 'hooks.build.timeoutMs',
      timeoutMs: 60_000, actor: 'ada', async steps ({ exec, tell }) {
      tell('fetching https://ada:secret@example.com/shop.git')
      await exec({ name: 'git fetch', command: ['git', 'fetch'], cwd: '/', env: {} })
      tell('$ npm ci')
      await exec({ name: 'npm ci', command: ['npm', 'ci'], cwd: '/', env: {} })
    } })
    assert.deepEqual([run.git, run.stage], ['main', null])
    await new Promise((resolve) => setImmediate(resolve))
    assert.equal(jobs.building()?.stage?.name, 'fetching https://…@example.com/shop.git')
    await jobs.commands[0].finish()
    assert.equal(jobs.run(run.id).stage?.name, 'npm ci')
    await jobs.commands[1].finish({ code: 1 })
    const { git, stage, state } = jobs.run(run.id)
    assert.deepEqual([git, stage?.name, state, jobs.building()], ['main', 'npm ci', 'failed', null])
    assert.deepEqual(jobs.runs(null, {}).items.map((each) => [each.git, each.stage?.name]), [['main', 'npm ci']])
  })

  test('of a command is shown as it was typed, and is no job', async () => {
    const { jobs, commands, told } = setUp()
    const run = jobs.runCommand({ command: ['npm', 'run', 'migrate'], actor: 'ada' })
    await commands[0].finish({ code: 1 })
    assert.deepEqual([run.command, run.job, jobs.run(run.id).state], ['npm run migrate', null, 'failed'])
    assert.deepEqual(told, ['started: Command npm run migrate started',
      'command-failed: Command npm run migrate exited with code 1'])
    assert.equal(jobs.get('nightly').last, null)
  })
})

describe('a time that comes while the job still runs', () => {
  test('is left out with skip', async () => {
    const { pass, commands, told } = setUp()
    pass()
    pass()
    assert.deepEqual([commands.length, told.at(-1)], [1, 'skipped: Job nightly was skipped: run 1 has not ended'])
    await commands[0].finish()
    pass()
    assert.equal(commands.length, 2)
  })

  test('waits with queue, and no more than one does', async () => {
    const { pass, commands, told, jobs } = setUp({ overlap: 'queue' })
    pass()
    pass()
    assert.deepEqual([commands.length, jobs.get('nightly').isWaiting], [1, true])
    pass()
    assert.equal(told.at(-1), 'skipped: Job nightly was skipped: run 1 has not ended, and the next one waits already')
    await commands[0].finish()
    assert.deepEqual([commands.length, jobs.get('nightly').isWaiting], [2, false])
    await commands[1].finish()
    assert.equal(commands.length, 2)
  })

  test('ends the run with replace, and starts once that has gone', async () => {
    const { pass, commands, told } = setUp({ overlap: 'replace' })
    pass()
    pass()
    pass()
    assert.equal(commands.length, 1)
    assert.ok(commands[0].toldTo.length > 0)
    await commands[0].finish({ code: null, signal: 'SIGTERM' })
    assert.deepEqual(told.slice(-2), ['interrupted (replaced): Job nightly was ended, as the next run begins',
      'started: Job nightly started'])
    assert.equal(commands.length, 2)
  })

  test('by hand it is refused, but with replace', async () => {
    await assert.rejects(async () => {
      const { pass, jobs } = setUp({ overlap: 'queue' })
      pass()
      await jobs.runNow('nightly', { actor: 'ada' })
    }, { code: 'job-running', message: 'nightly is running (run 1)' })
    const { pass, jobs, commands } = setUp({ overlap: 'replace' })
    pass()
    const asked = jobs.runNow('nightly', { actor: 'ada' })
    await commands[0].finish({ code: null, signal: 'SIGTERM' })
    assert.deepEqual([(await asked).actor, (await asked).dueAt], ['ada', null])
  })
})

describe('a job that runs by the clock', () => {
  const ended = { failed: { code: 3 }, succeeded: {}, cut: { code: null, signal: 'SIGTERM' } }

  async function runOnce ({ pass, commands }: ReturnType<typeof setUp>, how: keyof typeof ended) {
    pass()
    await commands[commands.length - 1].finish(ended[how])
  }

  test('needs attention from a run that fails until one succeeds, also under the next master', async () => {
    const parts = setUp()
    assert.deepEqual(parts.jobs.failing(), [])
    await runOnce(parts, 'failed')
    const [failure, ...others] = parts.jobs.failing()
    assert.deepEqual([failure.job, failure.reason, others.length, parts.jobs.get('nightly').isFailing], ['nightly',
      'nightly exited with code 3', 0, true])
    const next = setUp({}, { history: parts.history })
    assert.deepEqual(next.jobs.failing().map(({ job, reason }) => [job, reason]), [['nightly',
      'nightly exited with code 3']])
    await runOnce(next, 'succeeded')
    assert.deepEqual([next.jobs.failing(), next.jobs.get('nightly').isFailing], [[], false])
  })

  test('needs none once somebody has acknowledged its failure, until it fails again', async () => {
    const parts = setUp()
    const { jobs, history, told } = parts
    await runOnce(parts, 'failed')
    jobs.acknowledge('nightly', 'ada')
    assert.deepEqual([jobs.failing(), told.at(-1)], [[], 'acknowledged: Failure of job nightly acknowledged'])
    assert.throws(() => jobs.acknowledge('nightly', 'bob'), { code: 'not-found' })
    assert.equal(jobs.runs('nightly', {}).items[0].acknowledgedBy, 'ada')
    const next = setUp({}, { history })
    assert.deepEqual(next.jobs.failing(), [])
    await runOnce(next, 'failed')
    assert.equal(next.jobs.failing().length, 1)
  })

  test('is judged by no run that somebody has ended, and by one that died with its master', async () => {
    const parts = setUp()
    const { jobs, pass, commands, history } = parts
    await runOnce(parts, 'failed')
    pass()
    jobs.end(Number(jobs.get('nightly').running), { actor: 'ada' })
    await commands[1].finish(ended.cut)
    assert.equal(jobs.failing()[0].reason, 'nightly exited with code 3')
    assert.equal(setUp({}, { history }).jobs.failing()[0].reason, 'nightly exited with code 3')
    await runOnce(parts, 'succeeded')
    pass()
    assert.equal(setUp({}, { history }).jobs.failing()[0].reason, 'nightly was interrupted: its master has died')
  })

  test('is counted by how its runs have ended, with its last success', async () => {
    const parts = setUp()
    for (const how of ['succeeded', 'failed'] as const) await runOnce(parts, how)
    parts.pass()
    parts.pass()
    const [{ lastSuccessAt, ...counts }] = parts.jobs.metrics()
    assert.deepEqual(counts, { job: 'nightly', runs: { succeeded: 1, failed: 1, interrupted: 0, skipped: 1 } })
    const next = setUp({}, { history: parts.history }).jobs.metrics()[0]
    assert.ok(lastSuccessAt !== null)
    assert.equal(next.lastSuccessAt, lastSuccessAt)
  })

  test('runs once after a night in which the machine slept, and tells how much that stands for', async () => {
    const { pass, commands, told } = setUp()
    pass(8 * 60 * MINUTE_MS)
    assert.equal(commands.length, 1)
    assert.deepEqual(told, [
      'missed: Job nightly was due 7 h 59 min ago, and 479 other times have passed since; this one run stands for all of them: the machine slept, its clock was set, or no master ran',
      'started: Job nightly started'
    ])
  })

  test('is not late by a busy minute', () => {
    const { pass, told } = setUp()
    pass(2 * MINUTE_MS)
    assert.deepEqual(told, ['started: Job nightly started'])
  })
})

test('a job that runs only when somebody starts it needs no attention, as they see its end', async () => {
  const { jobs, commands } = setUp({ cron: undefined })
  await jobs.runNow('nightly', { actor: 'ada' })
  await commands[0].finish({ code: 1 })
  assert.deepEqual([jobs.failing(), jobs.get('nightly').isFailing], [[], false])
})

describe('a job that is paused', () => {
  test('lets its times pass, can be started by hand, and stays so under the next master', async () => {
    const { pass, commands, jobs, history, told } = setUp()
    jobs.pause('nightly', 'ada')
    jobs.pause('nightly', 'bob')
    pass()
    assert.deepEqual([commands.length, jobs.get('nightly').nextAt, jobs.get('nightly').paused?.actor], [0, null, 'ada'])
    assert.equal((await jobs.runNow('nightly', { actor: 'bob' })).state, 'running')
    const next = setUp({}, { history })
    assert.equal(next.jobs.get('nightly').paused?.actor, 'ada')
    next.jobs.resume('nightly', 'bob')
    next.pass()
    assert.equal(next.commands.length, 1)
    assert.deepEqual(told.filter((each) => each.startsWith('paused')), ['paused: Job nightly paused'])
  })
})

describe('the end of a master', () => {
  test('that stops ends its runs, and starts none', async () => {
    const { clock, pass, commands, jobs, told } = setUp()
    pass()
    clock.isStopping = true
    pass()
    await assert.rejects(jobs.runNow('nightly', { actor: 'ada' }), { code: 'stopping' })
    const closed = jobs.close()
    await commands[0].finish({ code: null, signal: 'SIGTERM' })
    await closed
    assert.deepEqual([commands.length, told.at(-1)], [1,
      'interrupted (stopping): Job nightly was ended, as the master was stopping'])
  })

  test('that dies has its runs told as interrupted by the next one, and what it has missed run once', async () => {
    const { pass, jobs, history } = setUp()
    pass()
    const left = jobs.memory()
    assert.deepEqual(left, {
      runs: [{ run: 1, job: 'nightly', name: 'nightly', timeoutMs: 60_000, hasTerminal: false, pid: 5001,
        startTime: null }],
      due: { nightly: { cron: EVERY_MINUTE, at: '2026-05-01T00:02:00.000Z' } }
    })
    const next = setUp({}, { history,
      left: { ...left, due: { nightly: { cron: EVERY_MINUTE, at: '2026-05-01T00:00:00.000Z' } } } })
    assert.deepEqual(next.told, ['interrupted (master-lost): Job nightly was interrupted: its master has died'])
    assert.deepEqual([next.jobs.run(1).state, next.jobs.run(1).cause], ['interrupted', 'master-lost'])
    assert.equal(next.jobs.get('nightly').nextAt, '2026-05-01T00:00:00.000Z')
  })

  test('whose checkpoint is lost is known from the history', () => {
    const { pass, history } = setUp()
    pass()
    const { told } = setUp({}, { history })
    assert.deepEqual(told, ['interrupted (master-lost): Job nightly was interrupted: its master has died'])
  })
})

describe('an upgrade in place', () => {
  test('postpones what comes meanwhile to the next master', async () => {
    const { clock, pass, commands, jobs, history } = setUp()
    clock.isUpgrading = true
    pass()
    await assert.rejects(jobs.runNow('nightly', { actor: 'ada' }), { code: 'upgrade-running' })
    assert.throws(() => jobs.runCommand({ command: ['true'], actor: 'ada' }), { code: 'upgrade-running' })
    assert.equal(commands.length, 0)
    const next = setUp({}, { history, left: jobs.memory() })
    assert.equal(next.jobs.get('nightly').nextAt, '2026-05-01T00:01:00.000Z')
  })

  test('hands a run over that waits for another one', () => {
    const { pass, jobs } = setUp({ overlap: 'queue' })
    pass()
    pass()
    assert.deepEqual(jobs.memory().due, { nightly: { cron: EVERY_MINUTE, at: '2026-05-01T00:02:00.000Z' } })
  })

  test('that comes to nothing runs what has come meanwhile', async () => {
    const { clock, pass, commands, events } = setUp()
    clock.isUpgrading = true
    pass()
    clock.isUpgrading = false
    events.publish({ type: 'master.upgrade-failed' })
    await null
    assert.equal(commands.length, 1)
  })
})

describe('a deploy', () => {
  test('has its jobs count once it has succeeded', async () => {
    const { events, jobs, configure } = setUp()
    configure({ hourly: { cron: '0 * * * *', command: 'true', overlap: 'skip', timeoutMs: 1000 } })
    events.publish({ type: 'rollout.failed', detail: { kind: 'deploy' } })
    await null
    assert.deepEqual(jobs.list().map(({ name }) => name), ['nightly'])
    events.publish({ type: 'rollout.succeeded', detail: { kind: 'deploy' } })
    await null
    assert.deepEqual(jobs.list().map(({ name, nextAt }) => [name, nextAt]), [['hourly', '2026-05-01T01:00:00.000Z']])
    assert.throws(() => jobs.pause('hourli', 'ada'), { code: 'not-found',
      message: 'There is no job "hourli" (did you mean "hourly"?)' })
  })
})

describe('what is kept', () => {
  test('are the runs, and of the last 20 the output', async () => {
    const { jobs, commands, pass } = setUp()
    for (let n = 0; n < 22; n++) {
      pass()
      commands[n].write('some')
      await commands[n].finish()
    }
    const runs = jobs.runs('nightly', { limit: 100 }).items
    assert.equal(runs.length, 22)
    assert.deepEqual([jobs.run(runs[19].id).output, jobs.run(runs[20].id).output], ['some', null])
    const page = jobs.runs('nightly', { limit: 20 })
    assert.equal(jobs.runs('nightly', { limit: 20, cursor: page.next }).items.length, 2)
  })

  test('output is followed by place, and says what a reader has missed', () => {
    const { jobs, commands, pass } = setUp()
    pass()
    const output = jobs.outputOf(1)
    commands[0].write('abc')
    commands[0].write('def', 'stderr')
    assert.deepEqual(output?.since(2), { parts: [{ stream: 'stdout', text: 'c' }, { stream: 'stderr', text: 'def' }],
      place: 6, missed: 0 })
    commands[0].write('x'.repeat(65_536 - 2))
    const { parts, missed, place } = output!.since(0)!
    assert.deepEqual([parts[0].text, missed, place], ['ef', 4, 65_540])
  })
})
