import assert from 'node:assert/strict'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, test } from 'node:test'
import { runCliHere } from '../support/cli-here.js'
import { startDeck } from '../support/deck.js'
import { startDeckHere } from '../support/deck-here.js'
import { app, deploy } from '../support/deploys.js'
import { tempFolder } from '../support/folder.js'
import { createReleases } from '../support/releases.js'
import { until } from '../support/until.js'

const EACH_SECOND = '* * * * * *'

/** @param {Record<string, any>} jobs @param {Record<string, unknown>} [more] */
function site (jobs, more = {}) {
  const folder = tempFolder()
  const file = path.join(folder, 'clusterdeck.config.json')
  const place = (/** @type {string} */ name) => path.join(folder, name)
  const configure = (/** @type {Record<string, any>} */ wanted) => writeFileSync(file, JSON.stringify({ jobs: wanted, ...more }))
  configure(jobs)
  return {
    flags: ['--config', file],
    place,
    configure,
    read: (/** @type {string} */ name) => existsSync(place(name)) ? readFileSync(place(name), 'utf8') : ''
  }
}

/** @param {string} pid */
function isGone (pid) {
  try {
    return readFileSync(`/proc/${pid.trim()}/stat`, 'utf8').includes(') Z ')
  } catch {
    return true
  }
}

/** @param {any} deck @param {string} where @param {object} [body] */
const post = (deck, where, body = {}) => deck.api(`/jobs/${where}`, { method: 'POST', body: JSON.stringify(body) })

describe('jobs', { concurrency: 3 }, () => {
  test('run at their times with folder and variables of the release, and a deploy changes them', async (t) => {
    const releases = await createReleases('answers-with-pid.js')
    const { flags, configure } = site({ tick: { cron: EACH_SECOND, command: 'echo "$CLUSTERDECK_JOB $CLUSTERDECK_RELEASE $COLOUR $PWD"; echo oops >&2' } }, { env: { COLOUR: 'green' } })
    const deck = await startDeckHere(t, releases.entry, { workers: 1, flags })
    const ended = await deck.untilEvent(({ type }) => type === 'job.succeeded', 'the end of a run')
    const { body: run } = await deck.api(`/jobs/runs/${ended.detail.run}`)
    assert.deepEqual([run.state, run.code, run.actor, run.release, run.job], ['succeeded', 0, 'cron', 'r1', 'tick'])
    assert.match(run.output, /^tick r1 green \/.*\n/)
    assert.match(run.output, /oops\n/)
    configure({ tick: { cron: '0 0 30 2 *', command: 'true' } })
    const refused = await deck.api('/rollouts', { method: 'POST', body: JSON.stringify({ kind: 'deploy' }) })
    assert.equal(refused.status, 422)
    assert.match(refused.body.detail, /^jobs\.tick\.cron in .*: expected a cron expression .* that comes some time, .*, received "0 0 30 2 \*"$/)
    configure({ yearly: { cron: '0 0 1 1 *', command: 'true', timeZone: 'Asia/Tokyo' } })
    await releases.add('second', app("response.end('next')"))
    assert.equal((await deploy(deck)).state, 'succeeded')
    const { body: { items: [job, ...others] } } = await deck.api('/jobs')
    assert.deepEqual([job.name, job.nextAt.slice(5), job.last, others], ['yearly', '12-31T15:00:00.000Z', null, []])
  })

  test('one that takes too long is ended with all that it has started', async (t) => {
    const { flags, place, read, configure } = site({})
    configure({ slow: { command: `sh -c 'trap "" TERM; echo $$ > ${place('pid')}; while :; do sleep 0.05; done' & wait`, timeoutMs: 500 } })
    const deck = await startDeckHere(t, 'answers-with-pid.js', { workers: 1, flags })
    await deck.until({ ready: 1 })
    const { status, body: run } = await post(deck, 'slow/runs')
    assert.equal(status, 201)
    const { cause, detail } = await deck.untilEvent(({ type }) => type === 'job.failed', 'its end')
    assert.deepEqual([cause, detail.run], ['timed-out', run.id])
    await until(() => isGone(read('pid')), 'the end of its child')
  })

  test('with replace the next run starts once the one before has gone', async (t) => {
    const { flags, read, place, configure } = site({})
    configure({ work: { overlap: 'replace', command: `trap 'echo out >> ${place('noted')}; exit 0' TERM; echo in >> ${place('noted')}; while :; do sleep 0.05; done` } })
    const deck = await startDeckHere(t, 'answers-with-pid.js', { workers: 1, flags })
    await deck.until({ ready: 1 })
    const first = (await post(deck, 'work/runs')).body
    await until(() => read('noted') === 'in\n', 'the first run')
    const second = (await post(deck, 'work/runs')).body
    await until(() => read('noted') === 'in\nout\nin\n', 'the second run')
    assert.equal((await deck.api(`/jobs/runs/${first.id}`)).body.cause, 'replaced')
    await post(deck, `runs/${second.id}/end`)
    await deck.untilEvent(({ type, cause }) => type === 'job.interrupted' && cause === 'operator', 'its end')
    assert.equal((await post(deck, `runs/${second.id}/end`)).body.code, 'run-ended')
  })

  test('what a dead master has left running is ended and told, and the job runs again only then', async (t) => {
    const { flags, read, place, configure } = site({})
    // Nobody reads what it says once the master has died, and that would end it.
    const command = `exec > ${place('output')} 2>&1; echo "in $$" >> ${place('noted')}; trap 'sleep 0.3; echo "out $$" >> ${place('noted')}; exit 0' TERM; while :; do sleep 0.05; done`
    configure({ work: { cron: EACH_SECOND, overlap: 'queue', command } })
    const deck = await startDeck(t, 'answers-with-pid.js', { workers: 1, flags })
    await deck.until({ ready: 1 })
    await until(() => read('noted') !== '', 'a run')
    const [, pid] = read('noted').trim().split(' ')
    await deck.loseMaster()
    await until(() => read('noted').split('\n').length > 3, 'the next run')
    assert.match(read('noted'), new RegExp(`^in ${pid}\\nout ${pid}\\nin \\d+\\n$`))
    const [lost] = await deck.history('type=job.interrupted')
    assert.deepEqual([lost.cause, lost.message], ['master-lost', 'work was interrupted: its master has died, and the run is ended'])
    assert.equal((await deck.api(`/jobs/runs/${lost.detail.run}`)).body.state, 'interrupted')
  })

  test('run prints what a command writes, and exits as it does', async (t) => {
    const { flags } = site({}, { env: { COLOUR: 'green' } })
    const dataDir = tempFolder()
    const deck = await startDeckHere(t, 'answers-with-pid.js', { workers: 1, flags, dataDir })
    await deck.until({ ready: 1 })
    const cli = (/** @type {string[]} */ ...words) => runCliHere(words, { env: { CLUSTERDECK_DATA_DIR: dataDir } })
    assert.deepEqual(await cli('run', '--', 'sh', '-c', 'echo "$COLOUR"; echo oops >&2; exit 7'), { code: 7, stdout: 'green\n', stderr: 'oops\n' })
    assert.equal((await cli('run', '--', 'sh', '-c', 'kill -9 $$')).code, 137)
    const missing = await cli('run', '--', 'no-such-program')
    assert.equal(missing.code, 1)
    assert.match(missing.stderr, /^no-such-program could not be started: no-such-program in .* \(ENOENT\)\n$/)
    assert.match((await cli('run')).stderr, /run: expected a command after --, received none/)
    const detached = JSON.parse((await cli('run', '--detach', '--json', '--', 'sleep', '60')).stdout)
    assert.equal(detached.state, 'running')
    assert.equal((await cli('jobs', 'end', String(detached.id))).stdout, `run ${detached.id} is told to end\n`)
    await deck.untilEvent(({ type }) => type === 'job.interrupted', 'its end')
    const listed = (await cli('jobs', 'runs')).stdout
    for (const text of ['sleep 60', 'interrupted', 'sleep 60 was ended by cli']) assert.ok(listed.includes(text), listed)
    assert.equal((await cli('jobs')).stdout, 'no jobs are configured (option jobs)\n')
  })
})
