import assert from 'node:assert/strict'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, test } from 'node:test'
import { runCliHere } from '../support/cli-here.ts'
import { spawnCli, startDeck, startReady, type Deck } from '../support/deck.ts'
import { startDeckHere, startReadyHere } from '../support/deck-here.ts'
import { app } from '../support/deploys.ts'
import { tempFolder } from '../support/folder.ts'
import { isGone } from '../support/is-gone.ts'
import { rareOnly, rareTest } from '../support/rare.ts'
import { createReleases } from '../support/releases.ts'
import { countDescriptors } from '../support/process-figures.ts'
import { until } from '../support/until.ts'
import type { DeckClient } from '../support/deck-client.ts'

const EACH_SECOND = '* * * * * *'

function site (jobs: object, more: object = {}) {
  const folder = tempFolder()
  const file = path.join(folder, 'clusterdeck.config.json')
  const place = (name: string) => path.join(folder, name)
  const configure = (wanted: object) => writeFileSync(file, JSON.stringify({ jobs: wanted, ...more }))
  configure(jobs)
  return { flags: ['--config', file], place, configure,
    read: (name: string) => existsSync(place(name)) ? readFileSync(place(name), 'utf8') : '' }
}

/** How many descriptors the keeper has: from the start of a run on two more, by which its output comes. */
const keptBy = ({ child }: Deck) => countDescriptors(child.pid)

const post = <P extends string>(deck: DeckClient, where: P, body: object = {}) => deck.post(`/jobs/${where}`, body)

describe('jobs', { concurrency: 3 }, () => {
  test('run at their times with folder and variables of the release, and a deploy changes them', async (t) => {
    const releases = await createReleases('answers-with-pid.js')
    const { flags, configure } = site({
      tick: { cron: EACH_SECOND, command: 'echo "$CLUSTERDECK_JOB $CLUSTERDECK_RELEASE $COLOUR $PWD"; echo oops >&2' }
    }, { env: { COLOUR: 'green' } })
    const deck = await startDeckHere(t, releases.entry, { workers: 1, flags })
    await deck.untilEvent('job.succeeded')
    // The newest one, as the output of the last few is kept, and each second makes another.
    const [ended] = await deck.history('type=job.succeeded&limit=1')
    const { body: run } = await deck.api(`/jobs/runs/${Number(ended.detail?.run)}`)
    assert.deepEqual([run.state, run.code, run.actor, run.release, run.job], ['succeeded', 0, 'cron', 'r1', 'tick'])
    assert.match(String(run.output), /^tick r1 green \/.*\n/)
    assert.match(String(run.output), /oops\n/)
    configure({ tick: { cron: '0 0 30 2 *', command: 'true' } })
    const refused = await deck.post('/rollouts', { kind: 'deploy' })
    assert.equal(refused.status, 422)
    assert.match(String(refused.body.detail),
      /^jobs\.tick\.cron in .*: expected a cron expression .* that comes some time, .*, received "0 0 30 2 \*"$/)
    configure({ yearly: { cron: '0 0 1 1 *', command: 'true', timeZone: 'Asia/Tokyo' } })
    await releases.add('second', app('response.end(\'next\')'))
    assert.equal((await deck.rollout('deploy')).state, 'succeeded')
    const { body: { items: [job, ...others] } } = await deck.api('/jobs')
    assert.deepEqual([job.name, job.nextAt?.slice(5), job.last, others], ['yearly', '12-31T15:00:00.000Z', null, []])
  })

  for (const how of ['dies', 'is upgraded in place']) {
    test(
      `a run goes on where its master ${how}: no line is lost, its end and exit code are on record, and "clusterdeck run" prints all of it once and exits as it does`,
      { skip: how !== 'dies' && rareOnly },
      async (t) => {
        const { flags, place, read, configure } = site({})
        const gate = place('gate')
        /** `name`: of the file with the number of the last line */
        const counts = (name: string, code: number) =>
          `n=0; while [ ! -e ${gate} ]; do n=$((n + 1)); echo "line $n"; echo "$n" > ${
            place(name)
          }; sleep 0.02; done; echo "last $n"; exit ${code}`
        configure({ work: { command: counts('job', 3) } })
        const dataDir = tempFolder()
        const deck = await startReady(t, 'answers-with-pid.js', { workers: 1, flags, dataDir })
        const run = (await post(deck, 'work/runs')).body
        const typed = runCliHere(['run', '--', 'sh', '-c', counts('typed', 7)], {
          env: { CLUSTERDECK_DATA_DIR: dataDir }
        })
        const untilWritten = (more: number) => {
          const before = ['job', 'typed'].map((name) => Number(read(name)))
          return until(() => ['job', 'typed'].every((name, index) => Number(read(name)) > before[index] + more),
            'more output')
        }
        await untilWritten(5)
        if (how === 'dies') await deck.loseMaster()
        else {
          assert.equal((await deck.post('/upgrade')).status, 202)
          await deck.meetNext()
        }
        await deck.until({ ready: 1 })
        const busy = await post(deck, 'work/runs')
        assert.deepEqual([busy.status, busy.body.code], [409, 'job-running'])
        await untilWritten(20)
        writeFileSync(gate, '')
        const { code, detail } = await deck.untilEvent('job.failed')
        assert.deepEqual([code, detail?.run], [3, run.id])
        const { body: ended } = await deck.api(`/jobs/runs/${run.id}`)
        assert.deepEqual([ended.state, ended.code, ended.pid], ['failed', 3, run.pid])
        const written = (name: string) => {
          const count = Number(read(name))
          return [...Array.from({ length: count }, (_, n) => `line ${n + 1}`), `last ${count}`, ''].join('\n')
        }
        assert.equal(ended.output, written('job'))
        const log = readFileSync(path.join(dataDir, 'logs', 'jobs', 'work.log'), 'utf8')
        assert.equal(log.slice(log.indexOf('\n') + 1), written('job'))
        const { code: exit, stdout } = await typed
        assert.deepEqual([exit, stdout], [7, written('typed')])
        assert.deepEqual(await deck.history('type=job.interrupted'), [])
        assert.ok(Number(ended.durationMs) >= 400)
      }
    )
  }

  rareTest('a run that goes on under the next master is ended when its time is over, with its whole group',
    async (t) => {
      const { flags, place, read, configure } = site({})
      configure({
        slow: { command: `trap "" TERM; echo $$ > ${place('pid')}; while :; do sleep 0.05; done`, timeoutMs: 4000 }
      })
      const deck = await startReady(t, 'answers-with-pid.js', { workers: 1, flags })
      const before = keptBy(deck)
      await post(deck, 'slow/runs')
      await until(() => read('pid') !== '' && keptBy(deck) === before + 2, 'the run')
      await deck.loseMaster()
      const { cause, message } = await deck.untilEvent('job.failed')
      assert.deepEqual([cause, message], ['timed-out', 'slow did not end within 4 s (option jobs.slow.timeoutMs)'])
      await until(() => isGone(read('pid')), 'the end of its process')
    })

  rareTest(
    'what nobody can follow any more, as the keeper has died too, is ended and told, and the job runs again only then',
    async (t) => {
      const { flags, read, place, configure } = site({})
      const command = `exec > ${place('output')} 2>&1; echo "in $$" >> ${
        place('noted')
      }; trap 'sleep 0.3; echo "out $$" >> ${place('noted')}; exit 0' TERM; while :; do sleep 0.05; done`
      configure({ work: { cron: EACH_SECOND, overlap: 'queue', command } })
      const dataDir = tempFolder()
      const deck = await startReady(t, 'answers-with-pid.js', { workers: 1, flags, dataDir })
      await until(() => read('noted') !== '', 'a run')
      const [, pid] = read('noted').trim().split(' ')
      for (const victim of [deck.child.pid, deck.masterPid]) process.kill(Number(victim), 'SIGKILL')
      const again = await startDeck(t, 'answers-with-pid.js', { workers: 1, flags, dataDir })
      await until(() => read('noted').split('\n').length > 3, 'the next run')
      assert.match(read('noted'), new RegExp(`^in ${pid}\\nout ${pid}\\nin \\d+\\n$`))
      const [lost] = await again.history('type=job.interrupted')
      assert.deepEqual([lost.cause, lost.message], ['master-lost',
        'work was interrupted: its master has died, and the run is ended'])
      assert.equal((await again.api(`/jobs/runs/${Number(lost.detail?.run)}`)).body.state, 'interrupted')
    }
  )

  rareTest(
    'run --interactive gives its command stdin, folder and variables, is on record, and ends by jobs end, by a signal, or with its own exit code',
    async (t) => {
      const { flags, place, read } = site({}, { env: { COLOUR: 'green' } })
      const dataDir = tempFolder()
      const deck = await startReady(t, 'answers-with-pid.js', { workers: 1, flags, dataDir })
      const begin = (script: string) =>
        spawnCli(t, ['run', '-i', '--', 'sh', '-c', script], { env: { CLUSTERDECK_DATA_DIR: dataDir } })
      const fed = begin('cat; echo "$COLOUR $CLUSTERDECK_RELEASE" >&2; exit 7')
      fed.child.stdin.end('select 1;\n')
      assert.deepEqual([await fed.exited, fed.output], [{ code: 7, signal: null }, { stdout: 'select 1;\n',
        stderr: 'green r1\n' }])
      const { detail, code } = await deck.untilEvent('job.command-failed')
      const { body: run } = await deck.api(`/jobs/runs/${Number(detail?.run)}`)
      assert.deepEqual([code, run.state, run.code, run.hasTerminal, run.output], [7, 'failed', 7, true, null])
      // Over a change of masters, too.
      const console = begin(`echo $$ > ${place('pid')}; while :; do sleep 0.05; done`)
      await until(() => read('pid') !== '', 'the console')
      await deck.loseMaster()
      const { body: { items: [open] } } = await deck.api('/jobs/runs')
      assert.deepEqual([open.state, open.pid], ['running', Number(read('pid'))])
      await deck.post(`/jobs/runs/${open.id}/end`, {})
      assert.equal((await console.exited).code, 143)
      await until(async () => (await deck.api(`/jobs/runs/${open.id}`)).body.state === 'interrupted', 'its end')
      assert.ok(isGone(read('pid')))
      const lost = begin(`echo $$ > ${place('lost')}; while :; do sleep 0.05; done`)
      await until(() => read('lost') !== '', 'another one')
      lost.child.kill('SIGTERM')
      assert.equal((await lost.exited).code, 143)
      const refused = await runCliHere(['run', '-i', '--detach', '--', 'true'], {
        env: { CLUSTERDECK_DATA_DIR: dataDir }
      })
      assert.match(refused.stderr, /expected --interactive without --detach/)
      assert.equal(
        (await deck.post('/jobs/runs', { command: ['true'], process: { pid: 1, startTime: 'another:1' } })).body.code,
        'invalid-body'
      )
    }
  )

  test('run prints what a command writes, and exits as it does', async (t) => {
    const { flags } = site({}, { env: { COLOUR: 'green' } })
    const dataDir = tempFolder()
    const deck = await startReadyHere(t, 'answers-with-pid.js', { workers: 1, flags, dataDir })
    const cli = (...words: string[]) => runCliHere(words, { env: { CLUSTERDECK_DATA_DIR: dataDir } })
    assert.deepEqual(await cli('run', '--', 'sh', '-c', 'echo "$COLOUR"; echo oops >&2; exit 7'), { code: 7,
      stdout: 'green\n', stderr: 'oops\n' })
    assert.equal((await cli('run', '--', 'sh', '-c', 'kill -9 $$')).code, 137)
    const missing = await cli('run', '--', 'no-such-program')
    assert.equal(missing.code, 1)
    assert.match(missing.stderr, /^no-such-program could not be started: no-such-program in .* \(ENOENT\)\n$/)
    assert.match((await cli('run')).stderr, /run: expected a command after --, received none/)
    const detached = JSON.parse((await cli('run', '--detach', '--json', '--', 'sleep', '60')).stdout)
    assert.equal(detached.state, 'running')
    assert.equal((await cli('jobs', 'end', String(detached.id))).stdout, `run ${detached.id} is told to end\n`)
    await deck.untilEvent('job.interrupted')
    const listed = (await cli('jobs', 'runs')).stdout
    for (const text of ['sleep 60', 'interrupted', 'sleep 60 was ended by the owner\'s token'])
      assert.ok(listed.includes(text), listed)
    assert.equal((await cli('jobs')).stdout, 'no jobs are configured (option jobs)\n')
  })
})
