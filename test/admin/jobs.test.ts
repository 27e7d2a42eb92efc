import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startAdmin } from '../support/admin.ts'

test('jobs are listed with what runs next and how the last run ended, and never with their command', async (t) => {
  const { api, deck } = await startAdmin(t)
  await api('post', '/api/v1/jobs/nightly/runs').expect(201)
  await deck.jobs.commands[0].finish({ code: 3 })
  const { body, text } = await api('get', '/api/v1/jobs').expect(200)
  assert.deepEqual(
    body.items.map(({ name, nextAt, last }) => [name, nextAt === null, last?.state ?? null, last?.actor ?? null]),
    [['nightly', true, 'failed', 'the owner\'s token'], ['reindex', true, null, null]]
  )
  assert.doesNotMatch(text, /report\.js|reindex\.js/)
  assert.equal((await api('get', '/api/v1/jobs/nightly/runs')).body.items[0].reason, 'nightly exited with code 3')
})

test('a job that runs is not started again, and a run is ended once', async (t) => {
  const { api, deck } = await startAdmin(t)
  const { body: { id } } = await api('post', '/api/v1/jobs/nightly/runs').expect(201)
  const { body: problem } = await api('post', '/api/v1/jobs/nightly/runs').expect(409)
  assert.deepEqual([problem.code, problem.detail], ['job-running', `nightly is running (run ${id})`])
  await api('post', `/api/v1/jobs/runs/${id}/end`).expect(202)
  await deck.jobs.commands[0].finish({ code: null, signal: 'SIGTERM' })
  assert.equal((await api('post', `/api/v1/jobs/runs/${id}/end`).expect(409)).body.code, 'run-ended')
  assert.equal((await api('get', `/api/v1/jobs/runs/${id}`)).body.cause, 'operator')
})

test('output is streamed as it comes, and ends with the run', async (t) => {
  const { api, deck } = await startAdmin(t)
  const { body: { id } } = await api('post', '/api/v1/jobs/runs').send({ command: ['npm', 'run', 'migrate'] }).expect(
    201
  )
  deck.jobs.commands[0].write('one\n')
  deck.jobs.commands[0].write('two\n', 'stderr')
  await deck.jobs.commands[0].finish()
  const { text } = await api('get', `/api/v1/jobs/runs/${id}/stream`).set('Accept', 'text/event-stream').buffer(true)
    .expect(200)
  const said = text.split('\n\n').filter((block: string) => /^(data|event)/.test(block))
  assert.deepEqual(said.slice(0, 2), ['data: {"stream":"stdout","text":"one\\n"}',
    'data: {"stream":"stderr","text":"two\\n"}'])
  assert.match(said[2], /^event: end\ndata: \{.*"state":"succeeded"/)
})

test('the command line pauses, resumes and explains what it expects', async (t) => {
  const admin = await startAdmin(t)
  const cli = (...words: string[]) => admin.cli('jobs', ...words)
  assert.equal((await cli('pause', 'nightly')).stdout, 'nightly is paused\n')
  assert.match((await cli('ls')).stdout,
    /^JOB .*\nnightly {2}paused by the owner's token {2}every day at 03:00 UTC \(0 3 \* \* \*\) /)
  assert.equal((await cli('resume', 'nightly')).stdout, 'nightly is resumed\n')
  assert.match((await cli('runs', 'nihgtly')).stderr, /There is no job "nihgtly" \(did you mean "nightly"\?\)/)
  assert.match((await cli('pause', 'nihgtly')).stderr, /There is no job "nihgtly" \(did you mean "nightly"\?\)/)
  assert.equal((await cli('pause')).code, 2)
  assert.equal((await cli('runs', 'a', 'b')).code, 2)
})

test('the page says what has failed first, and what a program has written is no HTML', async (t) => {
  const { visit, deck } = await startAdmin(t)
  const pageOf = async (path: string) => (await visit(path)).text
  await deck.jobs.runNow('reindex', { actor: 'ada' })
  deck.jobs.commands[0].write('<b>why</b>')
  await deck.jobs.commands[0].finish({ code: 1 })
  const page = await pageOf('/jobs')
  assert.ok(page.indexOf('job-reindex') < page.indexOf('job-nightly'))
  assert.match(page, /<a href="\/jobs" data-of-time aria-current="page">Jobs<\/a>/)
  const [{ id }] = deck.jobs.runs('reindex', {}).items
  const run = await pageOf(`/jobs/runs/${id}`)
  assert.ok(run.includes('&lt;b&gt;why') && !run.includes('<b>why'))
  assert.match(run, /Failed/)
  assert.match(page, /title="0 3 \* \* \*">every day at 03:00 UTC<\/span>/)
  await deck.jobs.runNow('reindex', { actor: 'ada' })
  await deck.jobs.commands[1].finish()
  assert.match(await pageOf(`/jobs/runs/${id}`),
    /Last runs<[^]*aria-label="Failed [^"]*took 2\.1 s"[^]*aria-label="Succeeded /)
})

test('a job that fails is in the health of its app, on its pages and in the metrics, until it is acknowledged', async (t) => {
  const { api, cli, deck, visit } = await startAdmin(t)
  const pageOf = async (path: string) => (await visit(path)).text
  const health = async () => (await api('get', '/api/v1/status').expect(200)).body.health
  const calm = await health()
  await deck.jobs.runNow('nightly', { actor: 'cron' })
  await deck.jobs.commands[0].finish({ code: 3, reason: 'nightly exited with code 3 after 2 s: lost <connection>' })
  const { tone, text, hint } = await health()
  assert.deepEqual([tone, text, hint], ['warn', `${calm.text}; job nightly failed`,
    'nightly exited with code 3 after 2 s: lost <connection>.'])
  assert.match(await pageOf('/'), /<h1[^>]*>[^<]*; job nightly failed<\/h1>/)
  assert.ok((await pageOf('/jobs')).includes('/actions/acknowledgeJob'))
  const { text: metrics } = await api('get', '/metrics')
  assert.match(metrics, /^clusterdeck_job_runs_total\{job="nightly",result="failed"\} 1$/m)
  assert.match(metrics, /^clusterdeck_job_runs_total\{job="reindex",result="succeeded"\} 0$/m)
  assert.doesNotMatch(metrics, /^clusterdeck_job_last_success_timestamp_seconds\{/m)
  const acknowledged = await cli('jobs', 'acknowledge', 'nightly')
  assert.equal(acknowledged.stdout, 'the failure of nightly is acknowledged\n')
  assert.deepEqual(await health(), calm)
  await api('post', '/api/v1/jobs/nightly/acknowledge').expect(404)
  assert.ok(!(await pageOf('/jobs')).includes('/actions/acknowledgeJob'))
  assert.equal((await api('get', '/api/v1/jobs/nightly/runs')).body.items[0].acknowledgedBy, 'the owner\'s token')
})
